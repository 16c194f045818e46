//! Stacks as the profiler has them: a tree of frames, each of a function, with all names inside.

use std::io::{Result, Write};

use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Forest, MAX_FRAMES};
use systape_answers::derive::stacks::interner::Interner;
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::names::Names;
use systape_events::values::strings::NumberedStrings;
use systape_events::values::words::escaped;

use super::categories::Category;
use super::json::JsonObject;

/// A stack in a [`Forest`] and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ForestStack {
    /// Node of the innermost user frame.
    pub user: u32,
    /// Node of the innermost kernel frame.
    pub kernel: u32,
    /// How the user part ends.
    pub ending: StackEnding,
    /// Whether the thread was in the kernel, of which there may be no frame.
    pub in_kernel: bool,
}

/// A function: name, file of its code, source file, each the number of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FuncRow {
    name: u32,
    /// Number of the file among the resources.
    resource: Option<u32>,
    /// Number of the source file among the sources.
    source: Option<u32>,
}

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FrameRow {
    func: u32,
    category: Category,
    /// Line in the source file; 0: not known.
    line: u32,
    /// Number of functions at the same address that this one is inlined into.
    depth: u32,
}

/// Tables of stacks, which all threads share.
pub(super) struct StackTables<'a> {
    forest: &'a Forest,
    names: &'a Names,
    /// Number of each of the forest's mappings in `names`.
    mappings: Vec<Option<u32>>,
    /// Rows of each frame of the forest, the innermost inlined function first; empty: not looked up yet.
    rows: Vec<Vec<u32>>,
    funcs: Interner<FuncRow>,
    frames: Interner<FrameRow>,
    /// Number of the caller's stack, and of the frame.
    stacks: Interner<(Option<u32>, u32)>,
    /// Names of files with code.
    resources: Interner<u32>,
    /// Names of files with source.
    sources: Interner<u32>,
}

impl<'a> StackTables<'a> {
    /// No stacks yet.
    pub(super) fn new(forest: &'a Forest, names: &'a Names) -> Self {
        Self {
            forest,
            names,
            mappings: forest.mappings().values().iter().map(|mapping| names.mapping(mapping)).collect(),
            rows: vec![Vec::new(); forest.frames().len()],
            funcs: Interner::default(),
            frames: Interner::default(),
            stacks: Interner::default(),
            resources: Interner::default(),
            sources: Interner::default(),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.stacks.values().is_empty()
    }

    /// Number of `stack` in the tables.
    pub(super) fn stack(&mut self, stack: &ForestStack, strings: &mut NumberedStrings) -> u32 {
        let mut found = Vec::new();
        let (kernel, user) = (stack.kernel, stack.user);
        let whole = self.forest.frames_from(kernel, &mut found) && self.forest.frames_from(user, &mut found);
        let mut path = Vec::new();
        for frame in found {
            if self.rows[frame as usize].is_empty() {
                self.rows[frame as usize] = self.frame(frame, strings);
            }
            path.extend(&self.rows[frame as usize]);
        }
        let limit = 2 * MAX_FRAMES;
        let ending = if whole && path.len() <= limit { stack.ending } else { StackEnding::TooLong };
        path.truncate(limit);
        if let Some(mark) = ending.mark(path.is_empty()) {
            let category = match path.is_empty() {
                true if stack.in_kernel => Category::Kernel,
                true => Category::User,
                false => Category::Other,
            };
            let (name, _) = strings.number(mark.as_bytes());
            let func = self.funcs.id(&FuncRow { name, resource: None, source: None });
            path.push(self.frames.id(&FrameRow { func, category, line: 0, depth: 0 }));
        }
        let mut at = None;
        for frame in path.into_iter().rev() {
            at = Some(self.stacks.id(&(at, frame)));
        }
        // a stack without frames has a mark
        at.unwrap_or_default()
    }

    /// Rows of a frame of the forest.
    fn frame(&mut self, at: u32, strings: &mut NumberedStrings) -> Vec<u32> {
        let frame = &self.forest.frames()[at as usize];
        let mapping = &self.forest.mappings().values()[frame.mapping as usize];
        let labels = label::labels(self.names, self.mappings[frame.mapping as usize], mapping, frame);
        let outermost = labels.len() - 1;
        let mut rows = Vec::with_capacity(labels.len());
        for (depth, (function, label)) in labels.into_iter().enumerate() {
            // that it is inlined the profiler shows itself
            let name = if label.named { escaped(&label.name) } else { label.in_tree() };
            let (name, _) = strings.number(name.as_bytes());
            let (module, _) = strings.number(escaped(&label.module).as_bytes());
            let resource = Some(self.resources.id(&module));
            let file = function.map(|function| &function.file).filter(|file| !file.is_empty());
            let source = file.map(|file| self.sources.id(&strings.number(escaped(file).as_bytes()).0));
            let func = self.funcs.id(&FuncRow { name, resource, source });
            let category = if label.kernel { Category::Kernel } else { Category::User };
            let line = function.map_or(0, |function| function.line);
            rows.push(self.frames.id(&FrameRow { func, category, line, depth: (outermost - depth) as u32 }));
        }
        rows
    }

    /// Writes the tables as members of `shared`.
    pub(super) fn write<W: Write>(&self, shared: &mut JsonObject<'_, W>) -> Result<()> {
        let (stacks, frames, funcs) = (self.stacks.values(), self.frames.values(), self.funcs.values());
        let mut table = shared.object("stackTable")?;
        table.numbers("frame", stacks.iter().map(|(_, frame)| Some(*frame)))?;
        table.numbers("prefix", stacks.iter().map(|(prefix, _)| *prefix))?;
        length(table, stacks.len())?;

        let mut table = shared.object("frameTable")?;
        // without its library an address says nothing
        table.same("address", "-1", frames.len())?;
        table.numbers("inlineDepth", frames.iter().map(|frame| Some(frame.depth)))?;
        table.numbers("category", frames.iter().map(|frame| Some(frame.category.place())))?;
        table.same("subcategory", "0", frames.len())?;
        table.numbers("func", frames.iter().map(|frame| Some(frame.func)))?;
        table.same("nativeSymbol", "null", frames.len())?;
        table.same("innerWindowID", "0", frames.len())?;
        table.numbers("line", frames.iter().map(|frame| Some(frame.line).filter(|line| *line > 0)))?;
        table.same("column", "null", frames.len())?;
        length(table, frames.len())?;

        let mut table = shared.object("funcTable")?;
        table.numbers("name", funcs.iter().map(|func| Some(func.name)))?;
        table.same("isJS", "false", funcs.len())?;
        table.same("relevantForJS", "false", funcs.len())?;
        table.list("resource", funcs, |out, func| match func.resource {
            Some(resource) => write!(out, "{resource}"),
            None => out.write_all(b"-1"),
        })?;
        table.numbers("source", funcs.iter().map(|func| func.source))?;
        table.same("lineNumber", "null", funcs.len())?;
        table.same("columnNumber", "null", funcs.len())?;
        length(table, funcs.len())?;

        let mut table = shared.object("resourceTable")?;
        let resources = self.resources.values();
        table.same("lib", "null", resources.len())?;
        table.numbers("name", resources.iter().copied().map(Some))?;
        table.same("host", "null", resources.len())?;
        // a library
        table.same("type", "1", resources.len())?;
        length(table, resources.len())?;

        let mut table = shared.object("nativeSymbols")?;
        for column in ["libIndex", "address", "name", "functionSize"] {
            table.same(column, "null", 0)?;
        }
        length(table, 0)?;

        let mut table = shared.object("sources")?;
        let sources = self.sources.values();
        table.same("id", "null", sources.len())?;
        table.numbers("filename", sources.iter().copied().map(Some))?;
        length(table, sources.len())
    }
}

/// Ends a table with its number of rows.
pub(super) fn length<W: Write>(mut table: JsonObject<'_, W>, length: usize) -> Result<()> {
    table.value("length", &length.into())?;
    table.end()
}

//! Labels of frames.

use serde_json::{Value, json};
use systape_format::model::{FRAME_SIGNAL, Frame, Function, Mapping, MappingKind};

use super::names::Names;
use crate::render::json::{bytes, known};
use systape_events::values::words::escaped;

/// Most functions at one place: more inlining than any compiler does is damage.
const MAX_INLINED: usize = 128;

/// One function on a stack, or a pseudo frame for missing ones. Names are as stored: printing escapes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Name, `[0x1a2b]`, `[signal]`, `[stack ends: …]`.
    pub name: Vec<u8>,
    /// Path or name of its file; empty for a pseudo frame.
    pub module: Vec<u8>,
    /// Whether it has a name.
    pub named: bool,
    /// Whether it is of the kernel.
    pub kernel: bool,
    /// Inlined into its caller.
    pub inlined: bool,
}

impl Label {
    /// The pseudo frame for missing frames.
    pub fn mark(name: String) -> Self {
        Self { name: name.into_bytes(), ..Self::default() }
    }

    /// The name of a function, or of code without one.
    fn new(mapping: &Mapping, frame: &Frame, function: Option<&Function>, inlined: bool) -> Self {
        let known = function.map(|function| &function.name).filter(|name| !name.is_empty());
        let name = match known {
            Some(name) => name.clone(),
            None if frame.flags & FRAME_SIGNAL != 0 => b"[signal]".to_vec(),
            None => format!("[{:#x}]", frame.offset).into_bytes(),
        };
        let named = known.is_some() || frame.flags & FRAME_SIGNAL != 0;
        Self { name, module: module(mapping).to_vec(), named, kernel: in_kernel(mapping), inlined }
    }

    /// Whether it is a pseudo frame.
    pub fn is_mark(&self) -> bool {
        self.module.is_empty()
    }

    /// Text as perf prints it within a tree.
    pub fn in_tree(&self) -> String {
        if self.inlined || self.named || self.is_mark() { self.short() } else { self.in_list() }
    }

    /// Text as perf prints it in a list: `main (/bin/app)`.
    pub fn in_list(&self) -> String {
        if self.inlined || self.is_mark() {
            return self.short();
        }
        format!("{} ({})", escaped(&self.name), escaped(&self.module))
    }

    /// `main`, `load (inlined)`.
    fn short(&self) -> String {
        format!("{}{}", escaped(&self.name), if self.inlined { " (inlined)" } else { "" })
    }

    /// perf's `Symbol`: `[.] main`.
    pub fn symbol(&self) -> String {
        let letter = match self.kernel {
            // what stands for missing frames is in neither
            _ if self.is_mark() => "   ",
            true => "[k]",
            false => "[.]",
        };
        format!("{letter} {}", self.short())
    }

    /// perf's `Shared Object`: the file without its directories.
    pub fn object(&self) -> String {
        let file = self.module.rsplit(|byte| *byte == b'/').next().filter(|file| !file.is_empty());
        if self.is_mark() { "-".to_owned() } else { escaped(file.unwrap_or(&self.module)) }
    }
}

/// Whether code there runs in the kernel.
pub fn in_kernel(mapping: &Mapping) -> bool {
    matches!(mapping.kind, MappingKind::Kernel | MappingKind::Module | MappingKind::Bpf)
}

/// Path or name of a mapping.
pub fn module(mapping: &Mapping) -> &[u8] {
    if !mapping.path.is_empty() {
        return &mapping.path;
    }
    match mapping.kind {
        MappingKind::Kernel => b"[kernel]",
        MappingKind::Module => b"[module]",
        MappingKind::Vdso => b"[vdso]",
        MappingKind::Jit => b"[jit]",
        MappingKind::Bpf => b"[bpf]",
        MappingKind::Unknown | MappingKind::Elf => b"[unknown]",
    }
}

/// A function of `frame` as JSON.
pub fn object(function: Option<&Function>, label: &Label, frame: &Frame) -> Value {
    json!({
        "sym": function.map_or(Value::Null, |function| known(&function.name)),
        "off": format!("{:#x}", frame.offset),
        "module": bytes(&label.module),
        "file": function.map_or(Value::Null, |function| known(&function.file)),
        "line": function.map(|function| function.line).filter(|line| *line != 0),
        "inlined": label.inlined,
        "kernel": label.kernel,
    })
}

/// The functions of a frame with their labels, the innermost inlined one first; one label without a function if there
/// is no name. `id` is the mapping's number in `names`.
pub fn labels<'a>(
    names: &'a Names,
    id: Option<u32>,
    mapping: &Mapping,
    frame: &Frame,
) -> Vec<(Option<&'a Function>, Label)> {
    let functions = names.at(id, frame);
    if functions.is_empty() {
        return vec![(None, Label::new(mapping, frame, None, false))];
    }
    let last = functions.len() - 1;
    let label =
        |(at, function): (usize, &'a Function)| (Some(function), Label::new(mapping, frame, Some(function), at < last));
    functions.iter().enumerate().take(MAX_INLINED).map(label).collect()
}

//! The stack of one event: lines below the event's own, as perf trace prints them, and a JSON array.

use serde_json::Value;
use systape_format::model::{Ends, FRAME_GUESSED, FRAME_SIGNAL, Mapping, StackOf, Stacks};
use systape_format::reader::Segment;

use super::ending::StackEnding;
use super::forest::MAX_FRAMES;
use super::label;
use super::limits::Limits;
use super::names::Names;
use crate::render::form::{Form, Format};
use crate::render::row::Row;
use crate::render::sink;
use crate::values::output::{room, within};

systape_format::tables! {
    /// With `--call-graph` also:
    pub STACK = "listing_stack" {
        stack: Nested [Path] "an array of functions, the innermost first, see below; null: events of this kind have none"
        stack_status: Word "how it ends, see below; null: likewise"
    }
}

/// perf trace's indentation of a frame.
const INDENT: &str = "                                       ";

/// The stacks of one segment and the names for them.
#[derive(Debug)]
pub struct StackLines<'a> {
    names: &'a Names,
    limits: Limits,
    stacks: Stacks,
    /// The number of each mapping in `names`.
    mappings: Vec<Option<u32>>,
    unreadable: bool,
    /// Texts of the frames printed so far.
    texts: Vec<Option<Box<[String]>>>,
}

impl<'a> StackLines<'a> {
    /// Empty, for events outside of segments.
    pub fn none(names: &'a Names, limits: Limits) -> Self {
        Self::new(names, limits, Stacks::default(), false)
    }

    /// The stacks of `segment`. If they cannot be read, that is added to `findings` and shown on each event.
    pub fn read(segment: &Segment<'_>, names: &'a Names, limits: Limits, findings: &mut Vec<String>) -> Self {
        match segment.stacks() {
            Ok(stacks) => Self::new(names, limits, stacks, false),
            Err(error) => {
                findings.push(format!("segment {}: its stacks cannot be read: {error}", segment.info().segment));
                Self::new(names, limits, Stacks::default(), true)
            }
        }
    }

    fn new(names: &'a Names, limits: Limits, stacks: Stacks, unreadable: bool) -> Self {
        let mappings = stacks.mappings.iter().map(|mapping| names.mapping(mapping)).collect();
        let texts = vec![None; stacks.frames.len()];
        Self { names, limits, stacks, mappings, unreadable, texts }
    }

    /// Whether events with short stacks are hidden.
    pub fn limited(&self) -> bool {
        self.limits.min > 0
    }

    /// Whether the stack of an event has at least the requested number of functions. Here and below `row` is, for a
    /// table's row, the value of its stack column.
    pub fn passes(&mut self, of: StackOf, row: u32) -> bool {
        if self.limits.min == 0 {
            return true;
        }
        let (frames, _) = self.frames(of, row);
        let mut functions = 0;
        for frame in frames {
            functions += self.functions(frame).len();
        }
        functions >= self.limits.min
    }

    /// The numbers of an event's frames, the innermost (of the kernel, if recorded) first, and their end.
    fn frames(&self, of: StackOf, row: u32) -> (Vec<u32>, StackEnding) {
        let found = match of {
            StackOf::Row => self.stacks.of_code(row.into()).copied(),
            of => self.stacks.of(of, row).map(Ends::from),
        };
        let Some(Ends { user, kernel, status }) = found else {
            return (Vec::new(), if self.unreadable { StackEnding::Unreadable } else { StackEnding::NotStored });
        };
        let mut frames = Vec::new();
        for leaf in [kernel, user] {
            let mut next = leaf;
            while let Some(node) = next.and_then(|at| self.stacks.nodes.get(at as usize)) {
                if frames.len() == MAX_FRAMES {
                    return (frames, StackEnding::TooLong);
                }
                frames.push(node.frame);
                next = node.parent;
            }
        }
        (frames, StackEnding::Status(status))
    }

    /// `main (/bin/app)` of each function of a frame.
    fn functions(&mut self, at: u32) -> &[String] {
        let Some(frame) = self.stacks.frames.get(at as usize) else { return &[] };
        let (names, mappings, ids) = (self.names, &self.stacks.mappings, &self.mappings);
        self.texts[at as usize].get_or_insert_with(|| {
            let unknown = Mapping::default();
            let mapping = mappings.get(frame.mapping as usize).unwrap_or(&unknown);
            let id = ids.get(frame.mapping as usize).copied().flatten();
            label::labels(names, id, mapping, frame).iter().map(|(_, label)| label.in_list()).collect()
        })
    }

    /// The functions of an event's stack, the innermost first, and a line that says why it ends early or is missing.
    pub fn list(&mut self, of: StackOf, row: u32) -> Vec<String> {
        let (frames, ending) = self.frames(of, row);
        let max = self.limits.max;
        let mut lines = Vec::new();
        for frame in &frames {
            lines.extend_from_slice(self.functions(*frame));
            if lines.len() > max {
                // the end is not shown
                lines.truncate(max);
                return lines;
            }
        }
        lines.extend(ending.mark(frames.is_empty()));
        lines
    }

    /// What stands with the line of an event: columns behind those of JSON and CSV, or lines below text, each behind `lead`.
    pub fn more(&mut self, format: Format, lead: &[u8], of: StackOf, row: u32) -> Vec<u8> {
        if let Some(form) = format.rows() {
            let (stack, status) = self.json(of, row);
            return columns(form, stack, &status);
        }
        let line = |text: String| {
            // on a terminal the names of functions have more room
            let indent = room().map_or(INDENT, |room| &INDENT[..INDENT.len().min(room / 6)]);
            let text = within(&text, indent.len() + lead.len());
            [lead, indent.as_bytes(), text.as_bytes(), b"\n"].concat()
        };
        self.list(of, row).into_iter().flat_map(line).collect()
    }

    /// What stands with the line of an event of a kind without stacks.
    pub fn none_more(format: Format) -> Vec<u8> {
        format.rows().map_or_else(Vec::new, |form| columns(form, Value::Null, &Value::Null))
    }

    /// `stack` and `stack_status` of an event.
    pub fn json(&self, of: StackOf, row: u32) -> (Value, Value) {
        let (frames, ending) = self.frames(of, row);
        let mut stack = Vec::new();
        for at in frames {
            self.objects(at, &mut stack);
            if stack.len() >= self.limits.max {
                stack.truncate(self.limits.max);
                break;
            }
        }
        (stack.into(), ending.name().into())
    }

    fn objects(&self, at: u32, into: &mut Vec<Value>) {
        let Some(frame) = self.stacks.frames.get(at as usize) else { return };
        let unknown = Mapping::default();
        let mapping = self.stacks.mappings.get(frame.mapping as usize).unwrap_or(&unknown);
        let id = self.mappings.get(frame.mapping as usize).copied().flatten();
        for (function, label) in label::labels(self.names, id, mapping, frame) {
            let mut object = label::object(function, &label, frame);
            object["signal"] = (frame.flags & FRAME_SIGNAL != 0).into();
            object["guessed"] = (frame.flags & FRAME_GUESSED != 0).into();
            into.push(object);
        }
    }
}

fn columns(form: Form, stack: Value, status: &Value) -> Vec<u8> {
    let mut row = Row::new(&STACK);
    row.set("stack", stack).set("stack_status", status.as_str());
    sink::behind(form, &row)
}

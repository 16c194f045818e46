//! The stack of one event: lines below the event's own, as perf trace prints them, and a JSON array.

use serde_json::{Value, json};
use systape_format::model::{Attached, FRAME_GUESSED, FRAME_SIGNAL, Frame, StackOf, Stacks};
use systape_format::reader::Segment;

use super::ending::Ending;
use super::forest::MAX_FRAMES;
use super::label::{self, Label};
use super::names::Names;
use crate::render::json::lossless;

/// perf trace's indentation of a frame.
const INDENT: &str = "                                       ";

/// How much of a stack is shown, and which stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Functions at most.
    pub max: usize,
    /// Events with fewer are hidden.
    pub min: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max: usize::MAX, min: 0 }
    }
}

/// The stacks of one segment and the names for them.
#[derive(Debug)]
pub struct StackLines<'a> {
    names: &'a Names,
    limits: Limits,
    stacks: Stacks,
    /// What `names` calls each mapping.
    mappings: Vec<Option<u32>>,
    unreadable: bool,
    /// Labels of frames that were printed.
    labels: Vec<Option<Box<[Label]>>>,
}

impl<'a> StackLines<'a> {
    /// Those of `segment`; that they cannot be read is told in `findings` and on each event.
    pub fn read(segment: &Segment<'_>, names: &'a Names, limits: Limits, findings: &mut Vec<String>) -> Self {
        let read = segment.stacks();
        let unreadable = read.is_err();
        let stacks = read.unwrap_or_else(|error| {
            findings.push(format!("segment {}: its stacks cannot be read: {error}", segment.info().segment));
            Stacks::default()
        });
        let mappings = stacks.mappings.iter().map(|mapping| names.mapping(mapping)).collect();
        let labels = vec![None; stacks.frames.len()];
        Self { names, limits, stacks, mappings, unreadable, labels }
    }

    /// Whether the stack of an event has as many functions as are asked for.
    pub fn passes(&mut self, of: StackOf, row: u32) -> bool {
        self.limits.min == 0 || {
            let (frames, _) = self.frames(of, row);
            let mut functions = 0;
            for frame in frames {
                functions += self.labels(frame).len();
            }
            functions >= self.limits.min
        }
    }

    /// The numbers of an event's frames, the innermost (of the kernel, if those were asked for) first, and how they end.
    fn frames(&self, of: StackOf, row: u32) -> (Vec<u32>, Ending) {
        let Some(attached) = self.stacks.of(of, row) else {
            return (Vec::new(), if self.unreadable { Ending::Unreadable } else { Ending::NotStored });
        };
        let Attached { user, kernel, status, .. } = *attached;
        let mut frames = Vec::new();
        for leaf in [kernel, user] {
            let mut next = leaf;
            while let Some(node) = next.and_then(|at| self.stacks.nodes.get(at as usize)) {
                if frames.len() == MAX_FRAMES {
                    return (frames, Ending::TooLong);
                }
                frames.push(node.frame);
                next = node.parent;
            }
        }
        (frames, Ending::Status(status))
    }

    fn labels(&mut self, at: u32) -> &[Label] {
        let Some(frame) = self.stacks.frames.get(at as usize) else { return &[] };
        let labels = &mut self.labels[at as usize];
        labels.get_or_insert_with(|| {
            let mapping = self.stacks.mappings.get(frame.mapping as usize).cloned().unwrap_or_default();
            let id = self.mappings.get(frame.mapping as usize).copied().flatten();
            label::functions(self.names, id, frame).map(|named| label::label(&mapping, frame, named)).collect()
        })
    }

    /// Appends the lines of an event's stack: perf trace's, and one that says why it ends early or is not there.
    pub fn text(&mut self, out: &mut Vec<u8>, of: StackOf, row: u32) {
        let (frames, ending) = self.frames(of, row);
        let mut left = self.limits.max;
        for frame in &frames {
            let labels = self.labels(*frame);
            for label in labels.iter().take(left) {
                push(out, &label.in_list());
            }
            left = left.saturating_sub(labels.len());
        }
        // past the limit the end is not shown
        let ended = left > 0 || frames.is_empty();
        if let Some(mark) = ending.mark(frames.is_empty()).filter(|_| ended) {
            push(out, &mark);
        }
    }

    /// `"stack": [...], "stack_status": "..."` of an event.
    pub fn json(&mut self, of: StackOf, row: u32) -> (Value, Value) {
        let (frames, ending) = self.frames(of, row);
        let mut stack = Vec::new();
        for at in frames {
            let Some(frame) = self.stacks.frames.get(at as usize).copied() else { continue };
            self.objects(&frame, &mut stack);
            if stack.len() >= self.limits.max {
                stack.truncate(self.limits.max);
                break;
            }
        }
        (stack.into(), ending.name().into())
    }

    fn objects(&self, frame: &Frame, into: &mut Vec<Value>) {
        let id = self.mappings.get(frame.mapping as usize).copied().flatten();
        let unknown = systape_format::model::Mapping::default();
        let mapping = self.stacks.mappings.get(frame.mapping as usize).unwrap_or(&unknown);
        for named in label::functions(self.names, id, frame) {
            let text = |bytes: &[u8]| if bytes.is_empty() { Value::Null } else { lossless(bytes).into() };
            let function = named.function;
            into.push(json!({
                "sym": function.map_or(Value::Null, |function| text(&function.name)),
                "off": format!("{:#x}", frame.offset),
                "module": lossless(label::module(mapping)),
                "file": function.map_or(Value::Null, |function| text(&function.file)),
                "line": function.map(|function| function.line).filter(|line| *line != 0),
                "inlined": named.inlined,
                "kernel": label::in_kernel(mapping),
                "signal": frame.flags & FRAME_SIGNAL != 0,
                "guessed": frame.flags & FRAME_GUESSED != 0,
            }));
        }
    }
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(INDENT.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

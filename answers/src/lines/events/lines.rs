//! The lines of a segment's events, in order of time.

use systape_format::model::{Session, StackOf};
use systape_format::reader::Segment;

use super::form;
use super::kind::Wanted;
use super::walk::{StackAt, Walk};
use crate::catalogue::Event;
use crate::derive::identities::FileNames;
use crate::derive::stacks::limits::Limits;
use crate::derive::stacks::lines::{STACK, StackLines};
use crate::derive::stacks::names::Names;
use crate::lines::tables::{CALLS, EVENTS};
use crate::lines::text::Look;
use crate::render::columns::{self, Layout};
use crate::render::form::Format;
use crate::render::out::Out;
use crate::render::row::ShownTimes;
use crate::render::stamp::Stamps;
use systape_events::filter::Scope;
use systape_events::stream::Part;
use systape_events::values::clock::Clock;
use systape_events::values::devices::Devices;

/// Common state of all segments.
#[derive(Debug)]
pub struct EventLines<'a> {
    wanted: Wanted,
    format: Format,
    look: Look,
    stamps: Stamps,
    times: ShownTimes<'a>,
    /// The devices of the tape, with those that came later; those of its session until they are set.
    pub devices: Devices,
    /// Files that events have by number.
    pub files: FileNames,
    /// What writes their rows, in JSON and in columns of a tool those of events; in other CSV those of calls, which stand beside them.
    lines: columns::Lines,
    /// The rows are those of calls.
    as_calls: bool,
    /// What stands before each line of text.
    lead: Vec<u8>,
    /// Names for stacks and limits on them; None: stacks are not printed.
    pub stacks: Option<(&'a Names, Limits)>,
}

impl<'a> EventLines<'a> {
    /// Lines of the kinds `wanted` of the tape of `session` for `out`: text with `look`, or in the columns of `tool`; times by
    /// `clock`, which may be empty for text.
    pub fn new(
        wanted: Wanted,
        out: &Out<'_>,
        tool: Option<(&'static Layout, Stamps)>,
        (look, stamps): (Look, Stamps),
        session: &'a Session,
        clock: Clock,
        stacks: Option<(&'a Names, Limits)>,
    ) -> Self {
        let as_calls = tool.is_none() && out.format() == Format::Csv;
        let lines = out.writer(if as_calls { &CALLS } else { &EVENTS }, tool);
        let lines = if stacks.is_some() { lines.wider(&STACK) } else { lines };
        let (format, lead) = (out.format(), out.label().lead(out.format()));
        let (times, devices) = (ShownTimes { session, clock }, Devices::new(session));
        let files = FileNames::default();
        Self { wanted, format, look, stamps, times, devices, files, lines, as_calls, lead, stacks }
    }

    /// What stands with the line of an event for its stack, the one `of` that `row` among `stacks`.
    pub fn stack(&self, stacks: &mut StackLines<'_>, of: StackOf, row: u32) -> Vec<u8> {
        stacks.more(self.format, &self.lead, of, row)
    }

    /// The heading of a tool, and the names of columns.
    pub fn head(&self) -> Vec<u8> {
        self.lines.head(Vec::new)
    }

    /// The lines of `segment`, and the start of its window. A group that cannot be read is added to `findings`.
    pub fn segment(&self, segment: &Segment<'_>, scope: &Scope<'_>, findings: &mut Vec<String>) -> (Part, u64) {
        let number = segment.info().segment;
        let stacks = self.stacks.map(|(names, limits)| StackLines::read(segment, names, limits, findings));
        let mut told = |what: &str, error: systape_format::Error| {
            findings.push(format!("segment {number}: its {what} cannot be read: {error}"));
        };
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => {
                told("events", error);
                return (Part::default(), 0);
            }
        };
        let mut lines = Lines { all: self, stacks, part: Part::default(), unsorted: Vec::new() };
        let (times, devices, files) = (&self.times, &self.devices, &self.files);
        let walk = Walk { wanted: &self.wanted, scope, times, devices, files };
        for (what, error) in walk.segment(segment, &dict, |event, stack| lines.line(event, stack)) {
            told(what, error);
        }
        (lines.sorted(), dict.window_start)
    }
}

struct Lines<'a, 'b> {
    all: &'b EventLines<'a>,
    stacks: Option<StackLines<'b>>,
    /// Lines in the order they were read, family by family.
    part: Part,
    /// Key, begin and end in `part` of each.
    unsorted: Vec<(u64, usize, usize)>,
}

impl Lines<'_, '_> {
    fn line(&mut self, event: &Event<'_>, stack: Option<StackAt>) {
        let long = |stacks: &mut StackLines<'_>| match stack {
            Some((of, row)) => stacks.passes(of, row),
            None => !stacks.limited(),
        };
        if !self.stacks.as_mut().is_none_or(long) {
            return;
        }
        let (all, out) = (self.all, &mut self.part.bytes);
        let begin = out.len();
        let more = match (&mut self.stacks, stack) {
            (Some(stacks), Some((of, row))) => all.stack(stacks, of, row),
            (Some(_), None) => StackLines::none_more(all.format),
            (None, _) => Vec::new(),
        };
        let text = |out: &mut Vec<u8>| {
            out.extend_from_slice(&all.lead);
            form::text(out, event, all.look, &all.stamps);
        };
        let row = || match all.as_calls {
            true => form::call_row(event, &all.times),
            false => form::row(event, &all.times),
        };
        all.lines.line_and(out, text, row, &more);
        self.unsorted.push((event.ts, begin, out.len()));
    }

    fn sorted(mut self) -> Part {
        if self.unsorted.is_sorted_by_key(|(key, ..)| *key) {
            self.part.marks = self.unsorted.iter().map(|(key, _, end)| (*key, *end)).collect();
            return self.part;
        }
        self.unsorted.sort_by_key(|(key, ..)| *key);
        let mut sorted = Part { bytes: Vec::with_capacity(self.part.bytes.len()), marks: Vec::new() };
        for (key, begin, end) in self.unsorted {
            sorted.bytes.extend_from_slice(&self.part.bytes[begin..end]);
            sorted.end_line(key);
        }
        sorted
    }
}

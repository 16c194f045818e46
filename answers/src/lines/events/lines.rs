//! The lines of a segment's events, in order of time.

use systape_format::model::Session;
use systape_format::reader::Segment;

use super::form;
use super::kind::Wanted;
use super::walk::{StackAt, Walk};
use crate::catalogue::Event;
use crate::derive::identities::FileNames;
use crate::derive::stacks::limits::Limits;
use crate::derive::stacks::lines::StackLines;
use crate::derive::stacks::names::Names;
use crate::lines::tables::{CALLS, EVENTS};
use crate::lines::text::Look;
use crate::render;
use crate::render::form::{Form, Format};
use crate::render::row::ShownTimes;
use crate::render::sink::Sink;
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
    json: Sink<'static>,
    csv: Sink<'static>,
    /// Lines of a tool, which has no calls beside them; None: those of the listing.
    pub tool: Option<render::columns::Lines<'static>>,
    /// Names for stacks and limits on them; None: stacks are not printed.
    pub stacks: Option<(&'a Names, Limits)>,
}

impl<'a> EventLines<'a> {
    /// Lines of the kinds `wanted` of the tape of `session`: text with `look`, or with `clock`, which may be empty for text.
    pub fn new(
        wanted: Wanted,
        format: Format,
        (look, stamps): (Look, Stamps),
        session: &'a Session,
        clock: Clock,
    ) -> Self {
        let (json, csv) = (Sink::new(Form::Json, &EVENTS), Sink::new(Form::Csv, &CALLS));
        let (times, devices) = (ShownTimes { session, clock }, Devices::new(session));
        let files = FileNames::default();
        Self { wanted, format, look, stamps, times, devices, files, json, csv, tool: None, stacks: None }
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
        let out = &mut self.part.bytes;
        let begin = out.len();
        let (format, times) = (self.all.format, &self.all.times);
        match (&self.all.tool, format) {
            (Some(lines), _) => {
                lines.line(out, |_| {}, || form::row(event, times));
            }
            (None, Format::Text) => form::text(out, event, self.all.look, &self.all.stamps),
            (None, Format::Json) => self.all.json.row(out, &form::row(event, times)),
            (None, Format::Csv) => self.all.csv.row(out, &form::call_row(event, times)),
        }
        match (&mut self.stacks, stack) {
            (Some(stacks), Some((of, row))) => stacks.add(out, self.all.format, of, row),
            (Some(_), None) => StackLines::add_none(out, self.all.format),
            (None, _) => {}
        }
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

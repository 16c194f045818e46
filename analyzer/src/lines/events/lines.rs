//! The lines of a segment's events, in order of time.

use systape_format::BlockKind;
use systape_format::model::{Dict, Family, Session, StackOf};
use systape_format::reader::Segment;

use super::describe::{Describer, Event, Which};
use super::form;
use super::kind::{Kind, Wanted};
use crate::derive::stacks::limits::Limits;
use crate::derive::stacks::lines::StackLines;
use crate::derive::stacks::names::Names;
use crate::lines::tables::{CALLS, EVENTS};
use crate::lines::text::Look;
use crate::render;
use crate::render::form::{Form, Format};
use crate::render::row::Times;
use crate::render::sink::Sink;
use crate::render::stamp::Stamps;
use crate::table::filter::Scope;
use crate::table::stream::Part;
use crate::values::clock::Clock;
use crate::values::devices::Devices;

/// Common state of all segments.
#[derive(Debug)]
pub(crate) struct EventLines<'a> {
    wanted: Wanted,
    format: Format,
    look: Look,
    stamps: Stamps,
    times: Times<'a>,
    devices: Devices,
    json: Sink<'static>,
    csv: Sink<'static>,
    /// Lines of a tool, which has no calls beside them; None: those of the listing.
    pub tool: Option<render::columns::Lines<'static>>,
    /// Names for stacks and limits on them; None: stacks are not printed.
    pub stacks: Option<(&'a Names, Limits)>,
}

impl<'a> EventLines<'a> {
    /// Lines of the kinds `wanted` of the tape of `session`: text with `look`, or with `clock`, which may be empty for text.
    pub(crate) fn new(
        wanted: Wanted,
        format: Format,
        (look, stamps): (Look, Stamps),
        session: &'a Session,
        clock: Clock,
    ) -> Self {
        let (json, csv) = (Sink::new(Form::Json, &EVENTS), Sink::new(Form::Csv, &CALLS));
        let (times, devices) = (Times { session, clock }, Devices::new(session));
        Self { wanted, format, look, stamps, times, devices, json, csv, tool: None, stacks: None }
    }

    /// The lines of `segment`, and the start of its window. A group that cannot be read is added to `findings`.
    pub(crate) fn segment(&self, segment: &Segment<'_>, scope: &Scope<'_>, findings: &mut Vec<String>) -> (Part, u64) {
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
        let mut lines = Lines { all: self, scope, stacks, part: Part::default(), unsorted: Vec::new() };
        for family in self.wanted.families() {
            if let Err(error) = lines.family(family, segment, &dict) {
                told(crate::table::loss::family_name(family), error);
            }
        }
        if segment.has(BlockKind::Tables)
            && let Err(error) = lines.tables(segment, &dict)
        {
            told("tables", error);
        }
        (lines.sorted(), dict.window_start)
    }
}

struct Lines<'a, 'b> {
    all: &'b EventLines<'a>,
    scope: &'b Scope<'b>,
    stacks: Option<StackLines<'b>>,
    /// Lines in the order they were read, family by family.
    part: Part,
    /// Key, begin and end in `part` of each.
    unsorted: Vec<(u64, usize, usize)>,
}

impl Lines<'_, '_> {
    fn family(&mut self, family: Family, segment: &Segment<'_>, dict: &Dict) -> Result<(), systape_format::Error> {
        let describer = Describer { session: self.all.times.session, devices: &self.all.devices, dict };
        let wanted = &self.all.wanted;
        match family {
            Family::Sched => {
                if wanted.has(Kind::Switch) {
                    let events = segment.switches(dict)?;
                    self.lines(StackOf::Switch, events.iter().map(|e| describer.switch(e)));
                }
                if wanted.has(Kind::Waking) || wanted.has(Kind::WakeupNew) {
                    let events = segment.wakeups(dict)?;
                    self.lines(StackOf::Wakeup, events.iter().map(|e| describer.wakeup(e)));
                }
            }
            Family::Process => segment.processes(dict)?.iter().for_each(|e| self.line(&describer.process(e), None)),
            Family::Signal => {
                let events = segment.signals(dict)?;
                self.lines(StackOf::Signal, events.iter().map(|e| describer.signal(e)));
            }
            Family::Block => {
                let events = segment.blocks(dict)?;
                self.lines(StackOf::Block, events.iter().map(|e| describer.block(e)));
            }
            Family::Sample => {
                let events = segment.samples(dict)?;
                self.lines(StackOf::Sample, events.iter().map(|e| describer.sample(e)));
            }
            Family::Net => segment.nets(dict)?.iter().for_each(|e| self.line(&describer.net(e), None)),
            Family::IoUring => segment.urings(dict)?.iter().for_each(|e| self.line(&describer.uring(e), None)),
            _ => {}
        }
        Ok(())
    }

    /// Rows of the selected tables.
    fn tables(&mut self, segment: &Segment<'_>, dict: &Dict) -> Result<(), systape_format::Error> {
        let describer = Describer { session: self.all.times.session, devices: &self.all.devices, dict };
        for table in segment.tables(dict)?.iter().filter(|table| self.all.wanted.has_table(&table.def.name)) {
            let stacks = table.stacks();
            // codes are far below 2^32
            let stack = |at: usize| stacks.map(|codes| (StackOf::Row, u32::try_from(codes[at]).unwrap_or(0)));
            (0..table.ts.len()).for_each(|at| self.line(&describer.row(table, at), stack(at)));
        }
        Ok(())
    }

    /// Lines of events that may have stacks, in the segment's order.
    fn lines<'e>(&mut self, of: StackOf, events: impl Iterator<Item = Event<'e>>) {
        events.enumerate().for_each(|(row, event)| self.line(&event, Some((of, row as u32))));
    }

    fn line(&mut self, event: &Event<'_>, stack: Option<(StackOf, u32)>) {
        let wanted = match event.which {
            Which::Kind(kind) => self.all.wanted.has(kind),
            Which::Table(def) => self.all.wanted.has_table(&def.name),
        };
        if !wanted || !self.passes(event) {
            return;
        }
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

    /// Filters on tasks let an event pass if one of its two tasks does.
    fn passes(&self, event: &Event<'_>) -> bool {
        let cpus = self.scope.filters().cpus.as_ref();
        self.scope.at(event.ts)
            && cpus.is_none_or(|cpus| event.cpu.is_some_and(|cpu| cpus.binary_search(&cpu).is_ok()))
            && (self.scope.blamed(event.task, 0) || event.other.is_some_and(|other| self.scope.task(other)))
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

//! The selected events of a segment that pass the filters, family by family: for lines, and for sums.

use systape_format::BlockKind;
use systape_format::model::{Dict, Family, Session, StackOf};
use systape_format::reader::Segment;

use super::describe::{Describer, Event, Which};
use super::kind::{Kind, Wanted};
use crate::derive::block::files::Files;
use crate::derive::identities::FileNames;
use systape_events::filter::Scope;
use systape_events::loss::family_name;
use systape_events::values::devices::Devices;

/// A stack of an event: which, and in which row.
pub(crate) type StackAt = (StackOf, u32);

/// What is read of each segment.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// Events of these kinds and tables.
    pub wanted: &'a Wanted,
    /// Which of them pass.
    pub scope: &'a Scope<'a>,
    /// The tape.
    pub session: &'a Session,
    /// Devices of the tape.
    pub devices: &'a Devices,
    /// Files of the tape, for events that have an inode's number.
    pub files: &'a FileNames,
}

impl Walk<'_> {
    /// Calls `each` for the events of `segment`, with the place of their stack if they may have one. Returns what cannot be read,
    /// and why.
    pub fn segment(
        &self,
        segment: &Segment<'_>,
        dict: &Dict,
        mut each: impl FnMut(&Event<'_>, Option<StackAt>),
    ) -> Vec<(&'static str, systape_format::Error)> {
        let mut unread = Vec::new();
        for family in self.wanted.families() {
            if let Err(error) = self.family(family, segment, dict, &mut each) {
                unread.push((family_name(family), error));
            }
        }
        if segment.has(BlockKind::Tables)
            && let Err(error) = self.tables(segment, dict, &mut each)
        {
            unread.push(("tables", error));
        }
        unread
    }

    fn family(
        &self,
        family: Family,
        segment: &Segment<'_>,
        dict: &Dict,
        each: &mut impl FnMut(&Event<'_>, Option<StackAt>),
    ) -> Result<(), systape_format::Error> {
        let describer = Describer { session: self.session, devices: self.devices, files: self.files, dict };
        let wanted = self.wanted;
        match family {
            Family::Sched => {
                if wanted.has(Kind::Switch) {
                    let events = segment.switches(dict)?;
                    self.with_stacks(StackOf::Switch, events.iter().map(|e| describer.switch(e)), each);
                }
                if wanted.has(Kind::Waking) || wanted.has(Kind::WakeupNew) {
                    let events = segment.wakeups(dict)?;
                    self.with_stacks(StackOf::Wakeup, events.iter().map(|e| describer.wakeup(e)), each);
                }
            }
            Family::Process => {
                segment.processes(dict)?.iter().for_each(|e| self.event(&describer.process(e), None, each));
            }
            Family::Signal => {
                let events = segment.signals(dict)?;
                self.with_stacks(StackOf::Signal, events.iter().map(|e| describer.signal(e)), each);
            }
            Family::Block => {
                let events = segment.blocks(dict)?;
                let files = Files::read(segment, dict, &events)?;
                self.with_stacks(StackOf::Block, events.iter().map(|e| describer.block(e, &files)), each);
            }
            Family::Sample => {
                let events = segment.samples(dict)?;
                self.with_stacks(StackOf::Sample, events.iter().map(|e| describer.sample(e)), each);
            }
            Family::Net => segment.nets(dict)?.iter().for_each(|e| self.event(&describer.net(e), None, each)),
            Family::IoUring => segment.urings(dict)?.iter().for_each(|e| self.event(&describer.uring(e), None, each)),
            _ => {}
        }
        Ok(())
    }

    /// Rows of the selected tables.
    fn tables(
        &self,
        segment: &Segment<'_>,
        dict: &Dict,
        each: &mut impl FnMut(&Event<'_>, Option<StackAt>),
    ) -> Result<(), systape_format::Error> {
        let describer = Describer { session: self.session, devices: self.devices, files: self.files, dict };
        for table in segment.tables(dict)?.iter().filter(|table| self.wanted.has_table(&table.def.name)) {
            let stacks = table.stacks();
            // codes are far below 2^32
            let stack = |at: usize| stacks.map(|codes| (StackOf::Row, u32::try_from(codes[at]).unwrap_or(0)));
            (0..table.ts.len()).for_each(|at| self.event(&describer.row(table, at), stack(at), each));
        }
        Ok(())
    }

    /// Events that may have stacks, in the segment's order.
    fn with_stacks<'e>(
        &self,
        of: StackOf,
        events: impl Iterator<Item = Event<'e>>,
        each: &mut impl FnMut(&Event<'_>, Option<StackAt>),
    ) {
        events.enumerate().for_each(|(row, event)| self.event(&event, Some((of, row as u32)), each));
    }

    fn event(&self, event: &Event<'_>, stack: Option<StackAt>, each: &mut impl FnMut(&Event<'_>, Option<StackAt>)) {
        let wanted = match event.which {
            Which::Kind(kind) => self.wanted.has(kind),
            Which::Table(def) => self.wanted.has_table(&def.name),
        };
        if wanted && self.passes(event) {
            each(event, stack);
        }
    }

    /// Filters on tasks let an event pass if one of its two tasks does.
    fn passes(&self, event: &Event<'_>) -> bool {
        let cpus = self.scope.filters().cpus.as_ref();
        self.scope.at(event.ts)
            && cpus.is_none_or(|cpus| event.cpu.is_some_and(|cpu| cpus.binary_search(&cpu).is_ok()))
            && (self.scope.blamed(event.task, 0) || event.other.is_some_and(|other| self.scope.task(other)))
    }
}

//! The selected events of a segment that pass the filters, family by family: for lines, and for sums.

use systape_format::BlockKind;
use systape_format::model::{Dict, StackOf};
use systape_format::reader::Segment;

use super::describe::StoredTable;
use super::kind::Wanted;
use crate::catalogue::{Event, Surroundings, TABLES};
use crate::derive::identities::FileNames;
use crate::render::row::ShownTimes;
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
    /// The tape, and its clock if times of day are asked for.
    pub times: &'a ShownTimes<'a>,
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
        let at = Surroundings { times: self.times, devices: self.devices, dict, files: None };
        for table in TABLES.iter().filter(|table| self.wanted.has(**table)) {
            let mut event = |event: &Event<'_>, row: usize| {
                if self.wanted.of_kind(&event.shape.event).has(event) && self.passes(event) {
                    each(event, table.about().stacks.map(|of| (of, row as u32)));
                }
            };
            if let Err(error) = table.read(segment, at, &mut event) {
                unread.push((family_name(table.about().family), error));
            }
        }
        if segment.has(BlockKind::Tables)
            && let Err(error) = self.tables(segment, dict, &mut each)
        {
            unread.push(("tables", error));
        }
        unread
    }

    /// Rows of the selected tables.
    fn tables(
        &self,
        segment: &Segment<'_>,
        dict: &Dict,
        each: &mut impl FnMut(&Event<'_>, Option<StackAt>),
    ) -> Result<(), systape_format::Error> {
        for rows in segment.tables(dict)?.iter().filter(|rows| self.wanted.has_table(&rows.def.name)) {
            let table = StoredTable::new(rows, dict, self.files);
            let (selected, stacks) = (self.wanted.of_table(&table.shape), rows.stacks());
            for number in 0..rows.ts.len() {
                let row = table.row(number);
                let event = row.event(self.times);
                if self.passes(&event) && selected.has(&event) {
                    // codes are far below 2^32
                    each(&event, stacks.map(|codes| (StackOf::Row, u32::try_from(codes[number]).unwrap_or(0))));
                }
            }
        }
        Ok(())
    }

    /// Filters on tasks let an event pass if one of its two tasks does.
    fn passes(&self, event: &Event<'_>) -> bool {
        let cpus = self.scope.filters().cpus.as_ref();
        self.scope.at(event.ts)
            && cpus.is_none_or(|cpus| event.cpu.is_some_and(|cpu| cpus.binary_search(&cpu).is_ok()))
            && (self.scope.blamed(event.task, 0) || event.other.is_some_and(|other| self.scope.task(other)))
    }
}

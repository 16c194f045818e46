//! The rows of a table that pass the filters. Decisions that depend on the task alone are made once per task.

use systape_format::model::{Dict, Session};
use systape_format::table::Type;
use systape_format::tables::{CPU, TableRows};

use super::describe::StoredTable;
use super::kind::Wanted;
use crate::derive::identities::FileNames;
use crate::render::row::ShownTimes;
use systape_events::filter::Scope;
use systape_events::values::clock::Clock;

/// Which rows of a segment's table pass.
#[derive(Debug)]
pub struct PickedEvents<'a> {
    table: &'a TableRows,
    dict: &'a Dict,
    scope: &'a Scope<'a>,
    /// For each row 1 + the task of its line, 0 = not known; None = the table has no tasks.
    tasks: Option<&'a [u64]>,
    cpus: Option<&'a [u64]>,
    /// Whether events of each task pass; the first stands for an unknown task.
    passing: Vec<bool>,
}

/// The values of the first column after the time that satisfies `is`.
fn column(table: &TableRows, is: impl Fn(&systape_format::table::ColumnDef) -> bool) -> Option<&[u64]> {
    let at = table.def.columns.iter().skip(1).position(is)?;
    table.columns.get(at).map(Vec::as_slice)
}

impl<'a> PickedEvents<'a> {
    /// Rows of `table` that pass `scope`; its tasks are in `dict`.
    pub fn new(table: &'a TableRows, scope: &'a Scope<'a>, dict: &'a Dict) -> Self {
        let passing = std::iter::once(scope.blamed(None, 0)).chain(dict.tasks.iter().map(|task| scope.task(task)));
        Self {
            table,
            dict,
            scope,
            tasks: column(table, |column| column.ty == Type::Task),
            cpus: column(table, |column| column.name == CPU),
            passing: passing.collect(),
        }
    }

    /// The task of a row, by its index in the segment's tasks; None = not known.
    pub fn task(&self, row: usize) -> Option<usize> {
        usize::try_from(*self.tasks?.get(row)?).ok()?.checked_sub(1)
    }

    /// The CPU of a row; None = not known.
    pub fn cpu(&self, row: usize) -> Option<u32> {
        u32::try_from(*self.cpus?.get(row)?).ok()
    }

    /// The rows that pass.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        let wanted = self.scope.filters().cpus.as_ref();
        let on = move |row: usize| {
            wanted.is_none_or(|wanted| self.cpu(row).is_some_and(|cpu| wanted.binary_search(&cpu).is_ok()))
        };
        let whose = |row: usize| self.passing.get(self.task(row).map_or(0, |task| task + 1)) == Some(&true);
        let times = self.table.ts.iter().enumerate();
        times.filter(move |(row, ts)| self.scope.at(**ts) && whose(*row) && on(*row)).map(|(row, _)| row)
    }

    /// The rows that pass, and that `wanted` selects by their fields; `files`: those of the tape.
    pub fn selected(&self, wanted: &Wanted, files: &FileNames, session: &Session) -> Vec<usize> {
        if !wanted.has_filters() {
            return self.rows().collect();
        }
        let table = StoredTable::new(self.table, self.dict, files);
        let (selected, times) = (wanted.of_table(&table.shape), ShownTimes { session, clock: Clock::default() });
        self.rows().filter(|row| selected.has(&table.row(*row).event(&times))).collect()
    }
}

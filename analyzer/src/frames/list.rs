//! The list of tables.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use systape_format::header::BlockKind;
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::fields::{self, FrameField};
use super::views::Report;
use super::{defs, stored};
use systape_answers::catalogue::{EventTable, TABLES};
use systape_answers::derive::stacks::names::Names;
use systape_events::loss::family_name;

/// Where the rows of a table come from.
#[derive(Debug)]
pub(super) enum Rows {
    /// Calls of segments.
    Calls,
    /// Events of segments.
    Catalogued(&'static dyn EventTable),
    /// Calls of segments that were only counted.
    Ledger,
    /// Losses of segments.
    Gaps,
    /// Stacks of segments.
    Stacks,
    /// Rows of the table of this name that the tape defines.
    Stored(String),
    /// Threads of the tape.
    Threads,
    /// Processes of the tape.
    Processes,
    /// A report.
    Report(&'static Report),
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Name of the table in SQL.
    pub name: String,
    /// What a row is.
    pub doc: String,
    /// Columns of the table.
    pub fields: Vec<FrameField>,
    /// Declaration of the columns.
    pub(super) def: Cow<'static, TableDef>,
    pub(super) rows: Rows,
    /// The families whose loss can change it.
    pub(super) families: Vec<Family>,
    /// The family without which it has no rows.
    pub(super) needs: Option<Family>,
    /// The blocks with its rows.
    pub(super) kinds: &'static [BlockKind],
    /// Segments outside the time asked for have none of its rows.
    pub(super) prunes: bool,
    /// Calls of the ledger are in it, so that they are no loss.
    pub(super) counts_ledger: bool,
    /// The names of stacks.
    pub(super) symbols: OnceLock<Arc<Names>>,
}

impl Table {
    fn new(
        def: impl Into<Cow<'static, TableDef>>,
        rows: Rows,
        families: &[Family],
        kinds: &'static [BlockKind],
    ) -> Self {
        let def = def.into();
        Self {
            name: def.name.to_string(),
            doc: def.doc.trim().to_owned(),
            fields: fields::of(&def),
            rows,
            families: families.to_vec(),
            needs: None,
            kinds,
            prunes: true,
            counts_ledger: false,
            symbols: OnceLock::new(),
            def,
        }
    }

    /// Whether its rows come from a report, which reads the tape by itself.
    pub fn is_report(&self) -> bool {
        matches!(self.rows, Rows::Report(_))
    }

    /// Whether its rows are calls.
    pub(super) fn is_of_calls(&self) -> bool {
        matches!(self.rows, Rows::Calls)
    }

    /// Whether its rows are events, each at its time.
    pub(super) fn is_of_events(&self) -> bool {
        matches!(self.rows, Rows::Calls | Rows::Catalogued(_) | Rows::Stored(_))
    }

    /// Whether its rows say what is missing: it is whole when all else has been read.
    pub fn is_of_losses(&self) -> bool {
        matches!(self.rows, Rows::Gaps)
    }

    /// The families whose loss can change it, as words.
    pub fn families(&self) -> Vec<&'static str> {
        self.families.iter().map(|family| family_name(*family)).collect()
    }
}

/// Reports that are tables, with the families of their losses.
const REPORTS: &[(Report, &[Family])] = &[
    (
        Report {
            name: "summary",
            words: &["--summary"],
            keys: &["pid", "tid", "upid", "utid", "comm", "uid", "abi", "syscall"],
            columns: "summary",
        },
        &[Family::Syscall],
    ),
    (Report { name: "exec", words: &["exec"], keys: &[], columns: "exec" }, &[Family::Process, Family::Syscall]),
    (Report { name: "kills", words: &["kills"], keys: &[], columns: "kills" }, &[Family::Signal, Family::Process]),
    (
        Report { name: "files", words: &["files", "--top", "4294967295"], keys: &["file"], columns: "files" },
        &[Family::Syscall],
    ),
    (
        Report { name: "opens", words: &["files", "--opens"], keys: &[], columns: "file_calls" },
        &[Family::Syscall, Family::Process],
    ),
    (Report { name: "block", words: &["block"], keys: &[], columns: "block" }, &[Family::Block]),
    (Report { name: "net", words: &["net"], keys: &[], columns: "net" }, &[Family::Net, Family::Syscall]),
    (Report { name: "net_udp", words: &["net", "--udp"], keys: &[], columns: "net_udp" }, &[Family::Syscall]),
    (
        Report { name: "peers", words: &["net", "--by", "peer"], keys: &["peer"], columns: "net_sums" },
        &[Family::Net, Family::Syscall],
    ),
    (
        Report {
            name: "offcpu",
            words: &["offcpu", "--by", "pid,comm,state,syscall", "--top", "4294967295"],
            keys: &["pid", "upid", "comm", "state", "abi", "syscall"],
            columns: "offcpu",
        },
        &[Family::Sched, Family::Process, Family::Syscall],
    ),
    (
        Report {
            name: "states",
            words: &["states", "--by", "pid,state,syscall", "--top", "4294967295"],
            keys: &["pid", "upid", "comm", "state", "abi", "syscall"],
            columns: "states",
        },
        &[Family::Sched, Family::Process, Family::Syscall],
    ),
    (
        Report {
            name: "sched_latency",
            words: &["sched", "latency", "--by", "task"],
            keys: &["pid", "tid", "upid", "utid", "comm"],
            columns: "sched_latency",
        },
        &[Family::Sched, Family::Process],
    ),
    (
        Report { name: "sched_timehist", words: &["sched", "timehist"], keys: &[], columns: "sched_timehist" },
        &[Family::Sched, Family::Process],
    ),
    (Report { name: "runqlat", words: &["runqlat"], keys: &[], columns: "runqlat" }, &[Family::Sched, Family::Process]),
    (Report { name: "locks", words: &["locks"], keys: &[], columns: "locks" }, &[Family::Syscall, Family::Sched]),
    (
        Report {
            name: "stays",
            words: &["stays", "--by", "pid,state,syscall,file", "--top", "4294967295"],
            keys: &["pid", "upid", "comm", "state", "abi", "syscall", "file"],
            columns: "stays",
        },
        &[Family::Look, Family::Sample],
    ),
    (Report { name: "why", words: &["why"], keys: &[], columns: "why" }, Family::ALL),
    (Report { name: "info", words: &["info"], keys: &[], columns: "info" }, &[]),
];

/// The tables of `tape`; without one those that every tape has.
pub(super) fn tables(tape: Option<&Tape>) -> Vec<Table> {
    use BlockKind::{Gaps, Ledger, Stacks, SyscallsCore};
    let (calls, tasks) = ([Family::Syscall], [Family::Process, Family::Syscall]);
    let mut all = vec![
        Table {
            needs: Some(Family::Syscall),
            ..Table::new(Cow::Borrowed(&defs::SYSCALLS), Rows::Calls, &calls, &[SyscallsCore])
        },
        Table {
            prunes: false,
            counts_ledger: true,
            ..Table::new(Cow::Borrowed(&defs::LEDGER), Rows::Ledger, &calls, &[Ledger])
        },
        Table { prunes: false, ..Table::new(Cow::Borrowed(&defs::GAPS), Rows::Gaps, &[], &[Gaps]) },
        Table::new(Cow::Borrowed(&defs::PROCESSES), Rows::Processes, &tasks, &[]),
        Table::new(Cow::Borrowed(&defs::THREADS), Rows::Threads, &tasks, &[]),
        Table { prunes: false, ..Table::new(Cow::Borrowed(&defs::STACKS), Rows::Stacks, &[Family::Stack], &[Stacks]) },
    ];
    // a report has the rows of block I/O
    let events = TABLES.iter().filter(|table| table.about().family != Family::Block);
    all.extend(events.map(|table| Table {
        needs: Some(table.about().family),
        ..Table::new(
            Cow::Borrowed(table.about().def),
            Rows::Catalogued(*table),
            &[table.about().family],
            table.about().blocks,
        )
    }));
    all.extend(REPORTS.iter().map(|(report, families)| Table {
        counts_ledger: report.name == "summary",
        ..Table::new(Cow::Owned(report.def()), Rows::Report(report), families, &[])
    }));
    let Some(tape) = tape else { return all };
    let defined: BTreeMap<_, _> = tape.table_defs().values().map(|def| (def.name.to_string(), def)).collect();
    for (name, def) in defined {
        let family = Family::of_table(&name);
        let def = stored::query_def(def);
        // a name that has become another table's
        if all.iter().all(|table| table.name != def.name) {
            all.push(Table::new(Cow::Owned(def), Rows::Stored(name), &[family], &[BlockKind::Tables]));
        }
    }
    all
}

/// The tables that every tape has, for lists and documents.
pub fn names() -> Vec<Table> {
    tables(None)
}

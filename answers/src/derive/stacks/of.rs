//! The kinds of events of a call graph.

use std::sync::Arc;

use systape_format::families::{LOOK_STAY, RECORDED};
use systape_format::model::{Family, StackOf};
use systape_format::reader::Tape;
use systape_format::table::{ColumnDef, TableDef, Type};

use super::weight::Metric;

/// The events of a call graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// CPU samples.
    Cpu,
    /// Syscalls, by their caller.
    Syscall,
    /// Time off the CPU, by where the thread left it.
    OffCpu,
    /// Block I/Os, by who queued them.
    Block,
    /// Signals, by their sender.
    Signal,
    /// Wake-ups, by the waker.
    Wakeup,
    /// Rows of the table of that name, which has a stack column.
    Table(Arc<str>),
    /// Events of a table whose rows have a duration, `dur`.
    Timed(Arc<str>),
}

impl Of {
    /// The kind as typed: one of these names, or a table's, which the tape must have.
    ///
    /// # Errors
    /// Never; required by clap.
    pub fn parse(text: &str) -> Result<Self, String> {
        let built_in = Self::ALL.into_iter().find(|of| of.name() == text);
        Ok(built_in.unwrap_or_else(|| Self::Timed(text.into())))
    }

    /// Whether it names `table`: by its name, by that of the family that records into it, or by its event's.
    pub fn names(&self, table: &TableDef) -> bool {
        let (Self::Table(name) | Self::Timed(name)) = self else { return false };
        let family = RECORDED.iter().find(|known| known.def.name == table.name);
        **name == *table.name
            || table.name.rsplit(':').next() == Some(name)
            || family.is_some_and(|known| known.family.name() == &**name || known.alias() == **name)
    }

    /// All kinds except tables, the default first.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Syscall, Self::OffCpu, Self::Block, Self::Signal, Self::Wakeup];

    /// Name of the event as typed.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Syscall => "syscall",
            Self::OffCpu => "offcpu",
            Self::Block => "block",
            Self::Signal => "signal",
            Self::Wakeup => "wakeup",
            Self::Table(name) | Self::Timed(name) => name,
        }
    }

    /// Words for its events, in the plural.
    pub fn words(&self) -> &str {
        match self {
            Self::Cpu => "CPU samples",
            Self::Syscall => "syscalls",
            Self::OffCpu => "switches off the CPU",
            Self::Block => "block I/Os",
            Self::Signal => "signals",
            Self::Wakeup => "wake-ups",
            Self::Table(name) | Self::Timed(name) => name,
        }
    }

    /// The events with its stacks.
    pub fn events(&self) -> StackOf {
        match self {
            Self::Cpu => StackOf::Sample,
            Self::Syscall => StackOf::Syscall,
            Self::OffCpu => StackOf::Switch,
            Self::Block => StackOf::Block,
            Self::Signal => StackOf::Signal,
            Self::Wakeup => StackOf::Wakeup,
            Self::Table(_) | Self::Timed(_) => StackOf::Row,
        }
    }

    /// The default metric of percentages.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Cpu | Self::OffCpu => Metric::Time,
            of if of.is_of_looks() => Metric::Time,
            Self::Syscall | Self::Block | Self::Signal | Self::Wakeup | Self::Table(_) | Self::Timed(_) => {
                Metric::Count
            }
        }
    }

    /// Whether its rows are stays that looks found: their times are estimates.
    pub fn is_of_looks(&self) -> bool {
        matches!(self, Self::Timed(name) if **name == *Family::Look.name())
    }

    /// Whether its events have that metric; of a name as typed, whether they may.
    pub fn has(&self, metric: Metric) -> bool {
        match metric {
            Metric::Count => true,
            Metric::Time => !matches!(self, Self::Signal | Self::Wakeup | Self::Table(_)),
            Metric::Bytes => matches!(self, Self::Syscall | Self::Block),
        }
    }
}

/// The tables of `tape` that have stacks: those it defines, and those of its families.
pub fn tables(tape: &Tape) -> Vec<Of> {
    let known = RECORDED.iter().filter(|table| tape.session().families.contains(&table.family)).map(|table| table.def);
    let defined = tape.table_defs().values().map(|def| &**def);
    let mut found: Vec<Of> = known.chain(defined).filter(|def| def.stack_column().is_some()).map(of_table).collect();
    found.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    found.dedup();
    found
}

/// Rows of a table, by its short name.
fn of_table(def: &TableDef) -> Of {
    let name = short_name(def).into();
    if duration(def).is_some() || is_of_looks(def) { Of::Timed(name) } else { Of::Table(name) }
}

/// Which column has how long what a row is about took, never the first; None = there is none.
pub fn duration(def: &TableDef) -> Option<usize> {
    // record's own tables say dur, those of functions dur_ns
    let is_duration = |column: &ColumnDef| ["dur", "dur_ns"].contains(&&*column.name) && column.ty == Type::Duration;
    def.columns.iter().position(is_duration).filter(|at| *at > 0)
}

/// Whether rows stand for as many looks as they say, each of an interval.
pub fn is_of_looks(def: &TableDef) -> bool {
    def.name == LOOK_STAY.name
}

/// A table's name in one word: its family, if that records its events into this table only.
fn short_name(def: &TableDef) -> &str {
    let family = Family::of_table(&def.name);
    let mut of = RECORDED.iter().filter(|table| table.family == family);
    match (of.next(), of.next()) {
        (Some(only), None) if only.def.name == def.name => family.name(),
        _ => &def.name,
    }
}

impl Of {
    /// The name in [`tables`], if it names a table known to this program or `tape`; None = there is no such table.
    pub fn known(&self, tape: &Tape) -> Option<Self> {
        if !matches!(self, Self::Table(_) | Self::Timed(_)) {
            return Some(self.clone());
        }
        let defined = tape.table_defs().values().map(|def| &**def);
        let def = RECORDED.iter().map(|table| table.def).chain(defined).find(|def| self.names(def))?;
        Some(of_table(def))
    }
}

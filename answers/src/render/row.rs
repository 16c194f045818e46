//! One row of a table, filled column by column in the order of its declaration.

use systape_format::model::{Session, Task, UID_UNKNOWN};
use systape_format::table::{ColumnDef, TableDef};

use super::cell::{Cell, Known};
use crate::values::say::complain;
use systape_events::values::clock::{self, Clock};

/// Values of one row. Each has a fixed place in the table: a value that is never set is null, never another column's.
///
/// A name that is not the next column's is a fault of the program: it panics in debug builds and prints a complaint in
/// others. So is a value that missing rows can change, with neither [`Row::bound`] nor a [`Judgement`]. Such a value is
/// never printed as exact.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    table: &'a TableDef,
    cells: Vec<(Cell<'a>, Option<Known>)>,
    next: usize,
    judged: Judgement,
}

/// Effect of the answer's losses on values that missing rows can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Each value says so itself: rows of single events.
    Each,
    /// True: a loss may change the row; false: none can.
    Touched(bool),
}

impl Judgement {
    /// Whether a value is exact that says `own` of itself.
    fn of(self, own: Option<Known>) -> Option<Known> {
        match self {
            Self::Each => own,
            Self::Touched(short) => Some(own.unwrap_or_default().max(Known::short_if(short))),
        }
    }

    /// Whether `cell` of `column` is exact that says `own` of itself; of what nobody judged it is not known.
    fn known(self, column: &ColumnDef, cell: &Cell<'_>, own: Option<Known>) -> Known {
        match (cell.is_null(), column.short.suffix()) {
            (true, _) => Known::Unknown,
            (false, None) => Known::Exact,
            (false, Some(_)) => self.of(own).unwrap_or(Known::Short),
        }
    }
}

impl<'a> Row<'a> {
    /// An empty row of `table`.
    pub fn new(table: &'a TableDef) -> Self {
        Self { table, cells: vec![(Cell::Null, None); table.columns.len()], next: 0, judged: Judgement::Each }
    }

    /// Makes a row of `table`; `short`: a loss may change the row, so each of its values that missing rows can change is a bound.
    pub fn short_if(short: bool, table: &'a TableDef) -> Self {
        Self { judged: Judgement::Touched(short), ..Self::new(table) }
    }

    /// The row with the losses of the answer; values that say it themselves keep it.
    pub fn judged(mut self, by: Judgement) -> Self {
        self.judged = match (self.judged, by) {
            (Judgement::Touched(one), Judgement::Touched(other)) => Judgement::Touched(one || other),
            (Judgement::Each, by) => by,
            (own, Judgement::Each) => own,
        };
        self
    }

    /// Table of the row.
    pub fn table(&self) -> &'a TableDef {
        self.table
    }

    /// Sets the next column, which must be `name` (`owner_pid` in an object).
    pub fn set(&mut self, name: &str, value: impl Into<Cell<'a>>) -> &mut Self {
        self.put(None, name, value.into(), None)
    }

    /// Sets a value that is a bound, in its column's way, if `short`.
    pub fn bound(&mut self, name: &str, value: impl Into<Cell<'a>>, short: bool) -> &mut Self {
        self.put(None, name, value.into(), Some(Known::short_if(short)))
    }

    /// Sets the next column, which must be `name` of the object `group`.
    pub fn part(&mut self, group: &str, name: &str, value: impl Into<Cell<'a>>) -> &mut Self {
        self.put(Some(group), name, value.into(), None)
    }

    /// Sets all columns of the object `group`: it is null.
    pub fn absent(&mut self, group: &str) -> &mut Self {
        let columns = self.table.columns.iter().skip(self.next).take_while(|column| column.group == group).count();
        if columns == 0 {
            self.fault(group);
        }
        for (cell, _) in self.cells.iter_mut().skip(self.next).take(columns) {
            *cell = Cell::Absent;
        }
        self.next += columns;
        self
    }

    /// Sets `name`, the real time at `ts`, and `time_uncertain_ns`; null without a clock.
    pub fn time(&mut self, name: &str, ts: Option<u64>, times: &ShownTimes<'_>) -> &mut Self {
        let real = ts.and_then(|ts| times.clock.real(ts));
        self.set(name, real.map(clock::rfc3339));
        self.set("time_uncertain_ns", real.and_then(clock::Real::uncertain))
    }

    /// Sets the columns of a task: `pid tid upid utid comm uid`, in the object `group` if that is not empty; null
    /// without one.
    pub fn task(&mut self, group: &str, task: Option<&'a Task>) -> &mut Self {
        let Some(task) = task else {
            if !group.is_empty() {
                return self.absent(group);
            }
            return TaskColumn::ALL.iter().fold(self, |row, column| row.set(column.name(), Cell::Null));
        };
        for column in TaskColumn::ALL {
            self.part(group, column.name(), column.cell(Some(task)));
        }
        self
    }

    /// The values in the order of the columns, and whether each is exact.
    pub fn cells(&self) -> impl Iterator<Item = (&'a ColumnDef, &Cell<'a>, Known)> {
        let judged = self.judged;
        let cells = self.table.columns.iter().zip(&self.cells);
        cells.map(move |(column, (cell, own))| (column, cell, judged.known(column, cell, *own)))
    }

    /// Values of the row, which need nothing else to live.
    pub fn into_cells(self) -> impl Iterator<Item = (Cell<'static>, Known)> {
        let (judged, columns) = (self.judged, self.table.columns.iter());
        columns.zip(self.cells).map(move |(column, (cell, own))| {
            let known = judged.known(column, &cell, own);
            (cell.into_owned(), known)
        })
    }

    /// The value of the column with that full name (`owner_pid` in an object), and whether it is exact; None: there is none.
    pub fn value(&self, name: &str) -> Option<(&Cell<'a>, Known)> {
        self.cells().find(|(column, ..)| is(column, name)).map(|(_, cell, known)| (cell, known))
    }

    /// Whether every column was set. Complains if not, and about values that can be bounds without a judgement.
    pub fn is_whole(&self) -> bool {
        if let Some(column) = self.table.columns.get(self.next) {
            self.fault(&format!("{} (it was not set)", column.full_name()));
        }
        let unsaid = |(column, (cell, known)): (&ColumnDef, &(Cell<'_>, Option<Known>))| {
            !cell.is_null() && column.short.suffix().is_some() && self.judged.of(*known).is_none()
        };
        if let Some(at) = self.table.columns.iter().zip(&self.cells).position(unsaid) {
            self.fault(&format!("{} (whether it is exact was not said)", self.table.columns[at].full_name()));
        }
        self.next == self.table.columns.len()
    }

    /// Sets the next column, which must be `name` of the object `group`, or have the full name `name`.
    fn put(&mut self, group: Option<&str>, name: &str, value: Cell<'a>, known: Option<Known>) -> &mut Self {
        let is = |column: &ColumnDef| match group {
            None => is(column, name),
            Some(group) => column.group == group && column.name == name,
        };
        let at = match self.table.columns.get(self.next).is_some_and(is) {
            true => Some(self.next),
            false => {
                self.fault(name);
                self.table.columns.iter().position(is)
            }
        };
        if let Some(at) = at {
            if !value.fits(self.table.columns[at].ty) {
                self.fault(name);
            }
            self.cells[at] = (value, known);
            self.next = at + 1;
        }
        self
    }

    #[cold]
    fn fault(&self, name: &str) {
        let text = format!("internal error: column {name} of table {} is out of place", self.table.name);
        debug_assert!(false, "{text}");
        complain(&text);
    }
}

/// Whether `name` is the full name of `column`.
fn is(column: &ColumnDef, name: &str) -> bool {
    match &*column.group {
        "" => column.name == name,
        group => name.strip_prefix(group).and_then(|rest| rest.strip_prefix('_')) == Some(&*column.name),
    }
}

/// A column of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskColumn {
    /// Number of the process.
    Pid,
    /// Number of the thread.
    Tid,
    /// The process, unique in the tape; null: not known.
    Upid,
    /// The thread, unique in the tape; null: not known.
    Utid,
    /// Name of the thread.
    Comm,
    /// Real user; null: not known.
    Uid,
}

impl TaskColumn {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [Self::Pid, Self::Tid, Self::Upid, Self::Utid, Self::Comm, Self::Uid];

    /// Name of the column, in an object or outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Upid => "upid",
            Self::Utid => "utid",
            Self::Comm => "comm",
            Self::Uid => "uid",
        }
    }

    /// Value of the column; without a task that of an object that is null.
    pub fn cell<'a>(self, task: Option<&'a Task>) -> Cell<'a> {
        let Some(task) = task else { return Cell::Absent };
        match self {
            Self::Pid => task.pid.into(),
            Self::Tid => task.tid.into(),
            Self::Upid => some(task.upid).into(),
            Self::Utid => some(task.utid).into(),
            Self::Comm => (&task.comm).into(),
            Self::Uid => user(task.uid).into(),
        }
    }
}

/// An id; 0 = not known.
pub fn some(id: u32) -> Option<u32> {
    Some(id).filter(|id| *id != 0)
}

/// A user; None = not known.
pub fn user(uid: u32) -> Option<u32> {
    Some(uid).filter(|uid| *uid != UID_UNKNOWN)
}

/// Times of a tape as values.
#[derive(Clone, Debug)]
pub struct ShownTimes<'a> {
    /// The tape.
    pub session: &'a Session,
    /// Clock of the tape.
    pub clock: Clock,
}

impl ShownTimes<'_> {
    /// ns since the tape's start.
    pub fn since(&self, ts: u64) -> i64 {
        ts.wrapping_sub(self.session.window_open) as i64
    }

    /// Time as [`Self::since`] has it; None for 0 = not known.
    pub fn since_known(&self, ts: u64) -> Option<i64> {
        (ts != 0).then(|| self.since(ts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    systape_format::tables! {
        /// One row a file.
        FILES = "files" {
            file: Str "its path"
            owner.pid: Int "who"
            owner.tid: Int "which thread"
            opens ? AtLeast: Count "how often"
        }
    }

    #[test]
    fn values_are_where_their_columns_are() {
        let mut row = Row::short_if(true, &FILES);
        row.set("file", "/x").set("owner_pid", 7).set("owner_tid", 8).set("opens", 3);
        let cells: Vec<_> =
            row.cells().map(|(column, cell, known)| (column.full_name(), cell.clone(), known)).collect();
        assert_eq!(cells[1], ("owner_pid".into(), 7.into(), Known::Exact), "it cannot be off");
        assert_eq!(cells[3], ("opens".into(), 3.into(), Known::Short));
        assert!(row.is_whole());
        let mut row = Row::new(&FILES);
        row.set("file", Cell::Null).absent("owner").bound("opens", None::<u64>, true);
        assert!(row.is_whole());
        assert!(row.cells().all(|(_, _, known)| known == Known::Unknown), "null is neither exact nor short");
    }

    #[test]
    fn what_nobody_judged_is_not_exact() {
        let known = |row: &Row<'_>| row.cells().find(|(column, ..)| column.name == "opens").map(|(.., known)| known);
        let mut row = Row::new(&FILES);
        row.set("file", "/x").set("owner_pid", 7).set("owner_tid", 8).set("opens", 3);
        assert_eq!(known(&row), Some(Known::Short));
        assert_eq!(known(&row.clone().judged(Judgement::Touched(false))), Some(Known::Exact));
        assert_eq!(known(&row.judged(Judgement::Touched(true)).judged(Judgement::Touched(false))), Some(Known::Short));
        let mut row = Row::new(&FILES);
        row.set("file", "/x").set("owner_pid", 7).set("owner_tid", 8).bound("opens", 3, false);
        assert_eq!(known(&row), Some(Known::Exact));
        assert_eq!(known(&row.judged(Judgement::Touched(true))), Some(Known::Short));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "column opens of table files is out of place")]
    fn a_column_that_is_left_out_is_a_fault() {
        Row::new(&FILES).set("file", "/x").set("opens", 3);
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn no_fault_puts_a_value_into_another_column() {
        let mut row = Row::new(&FILES);
        row.set("opens", 3).set("nothing", 4).set("file", "/x");
        let cells: Vec<_> = row.cells().map(|(_, cell, _)| cell.clone()).collect();
        assert_eq!(cells, ["/x".into(), Cell::Null, Cell::Null, 3.into()]);
        assert!(!row.is_whole());
    }
}

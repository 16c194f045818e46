//! Rows of tables that a tape defines, as events: time, CPU, task, fields.

use systape_format::model::{Dict, Task};
use systape_format::table::{ColumnDef, Type};
use systape_format::tables::{CPU, TableRows};

use crate::catalogue::shape::Shape;
use crate::catalogue::{self, Event, EventFields};
use crate::derive::identities::{FileNames, NUMBERS};
use crate::render::cell::Cell;
use crate::render::row::ShownTimes;
use systape_events::values::devices::numbers;
use systape_events::values::words::escaped;

/// The place of the column with the name of the file whose numbers a row has.
const FILE: usize = usize::MAX;

/// A table that the tape defines, of one segment.
#[derive(Debug)]
pub struct StoredTable<'a> {
    rows: &'a TableRows,
    dict: &'a Dict,
    files: &'a FileNames,
    /// Name and fields of its events.
    pub shape: Shape,
    /// The first and the second column of tasks.
    tasks: [Option<usize>; 2],
}

/// A row of such a table.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    table: &'a StoredTable<'a>,
    row: usize,
}

impl<'a> StoredTable<'a> {
    /// `rows` of the segment of `dict`; `files`: those of the tape.
    pub fn new(rows: &'a TableRows, dict: &'a Dict, files: &'a FileNames) -> Self {
        let mut tasks = rows.def.columns.iter().enumerate().filter(|(_, column)| column.ty == Type::Task);
        let tasks = [(); 2].map(|()| tasks.next().map(|(at, _)| at));
        Self { rows, dict, files, shape: stored_shape(&rows.def.name, &rows.def.columns), tasks }
    }

    /// The row at index `row`.
    pub fn row(&'a self, row: usize) -> StoredRow<'a> {
        StoredRow { table: self, row }
    }

    /// Values of the column at index `at` of the definition.
    fn column(&self, at: usize) -> Option<&'a [u64]> {
        self.rows.columns.get(at.checked_sub(1)?).map(Vec::as_slice)
    }
}

/// The shape of events of a table with these columns.
pub fn stored_shape(name: &str, columns: &[ColumnDef]) -> Shape {
    let whose = columns.iter().position(|column| column.ty == Type::Task);
    // the line says when, whose it is and where, its stack stands below it
    let own = columns.iter().enumerate().skip(1).filter(|(at, column)| {
        Some(*at) != whose && column.name != CPU && !matches!(column.ty, Type::Stack | Type::Unread)
    });
    let file = NUMBERS.iter().all(|number| columns.iter().any(|column| column.name == *number));
    let file = file.then(|| (FILE, "file".to_owned(), Type::Str, "name of the file with these numbers"));
    let field = |(at, column): (usize, &'_ ColumnDef)| {
        let ty = match column.ty {
            Type::Time => Type::Wide,
            ty => ty,
        };
        (at, column.name.to_string(), ty)
    };
    let fields: Vec<_> = own.map(field).collect();
    let docs = |at: usize| columns.get(at).map_or("", |column| &*column.doc);
    let fields = fields.into_iter().map(|(at, name, ty)| (at, name, ty, docs(at)));
    Shape::new(name, fields.chain(file), std::iter::empty())
}

impl<'a> StoredRow<'a> {
    /// The event: the line of the task in the first column of tasks.
    pub fn event(&'a self, times: &ShownTimes<'_>) -> Event<'a> {
        let table = self.table;
        let ts = table.rows.ts.get(self.row).copied().unwrap_or(0);
        let [task, other] = table.tasks.map(|at| at.and_then(|at| self.task(at)));
        let cpu = table.rows.column(CPU).and_then(|cpus| u32::try_from(*cpus.get(self.row)?).ok());
        Event { shape: &table.shape, ts, since: times.since(ts), cpu, task, other, values: self }
    }

    fn raw(&self, at: usize) -> u64 {
        self.table.column(at).and_then(|values| values.get(self.row)).copied().unwrap_or(0)
    }

    fn task(&self, at: usize) -> Option<&'a Task> {
        self.table.dict.task_of(self.raw(at))
    }

    /// Numbers of the file, and its name; None: not known.
    fn file(&self) -> ([u64; 2], Option<&'a [u8]>) {
        let rows = self.table.rows;
        let value = |name| rows.column(name).and_then(|values| values.get(self.row)).copied().unwrap_or(0);
        let [device, inode] = NUMBERS.map(value);
        ([device, inode], self.table.files.at(device, inode, rows.ts.get(self.row).copied().unwrap_or(0)))
    }
}

impl EventFields for StoredRow<'_> {
    fn cell(&self, at: usize) -> Cell<'_> {
        let rows = self.table.rows;
        if at == FILE {
            let ([device, inode], name) = self.file();
            let (major, minor) = numbers(device as u32);
            return name.map_or_else(|| format!("{major}:{minor}:{inode}").into(), Cell::from);
        }
        let Some(column) = rows.def.columns.get(at) else { return Cell::Null };
        let raw = self.raw(at);
        match column.ty {
            ty if ty.is_number() && rows.is_unread(self.row, at) => Cell::Null,
            Type::Str => rows.string(raw).into(),
            Type::Task => self.task(at).map(|task| task.tid).into(),
            // what its kind of column promises in JSON: a number
            Type::Int | Type::Duration | Type::Count | Type::Bytes => Cell::Int(raw.cast_signed().into()),
            Type::Flag => u8::from(raw != 0).into(),
            _ => raw.into(),
        }
    }

    fn line(&self, out: &mut String) {
        for (number, field) in self.table.shape.fields.iter().enumerate() {
            out.push_str(if number > 0 { ", " } else { "" });
            out.push_str(&field.name);
            out.push_str(": ");
            let cell = self.cell(field.at);
            match (&cell, field.ty) {
                (Cell::Int(tid), Type::Task) => {
                    let comm = self.task(field.at).map(|task| escaped(&task.comm)).unwrap_or_default();
                    out.push_str(&format!("{tid} ({comm})"));
                }
                // numbers of a file are no name
                (Cell::Text(numbers), _) if field.at == FILE && self.file().1.is_none() => {
                    out.push_str(&escaped(numbers));
                }
                _ => out.push_str(&catalogue::word(&cell, field.ty)),
            }
        }
    }

    fn named(&self, out: &mut String) {
        self.line(out);
    }
}

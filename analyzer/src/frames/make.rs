//! Columns of a declaration, filled one after the other where they are wanted, and made into the columns of a query.

use std::borrow::Cow;
use std::cell::OnceCell;

use systape_format::model::Task;
use systape_format::table::{TableDef, Type};

use super::fields::{FrameField, Shows};
use super::nullable::Nullable;
use super::values::{NONE, Values};
use systape_answers::render::json::lossless;
use systape_answers::render::row::TaskColumn;
use systape_events::values::clock::{self, Clock};
use systape_events::values::columns;

/// The values of a column of the declaration.
#[derive(Debug)]
struct Column {
    /// Points in time are the 64 bits of CLOCK_MONOTONIC.
    values: Values,
    /// Whether each is a bound, if its column has that.
    short: Option<Nullable<bool>>,
}

/// What is the same in all rows of a tape.
#[derive(Debug)]
pub(crate) struct CommonValues {
    /// Name of the machine.
    pub host: Option<Vec<u8>>,
    /// Day of its beginning.
    pub date: Option<String>,
    /// The tape's id.
    pub tape: String,
    /// Clock of the tape.
    pub clock: Clock,
    /// Start of the recording, CLOCK_MONOTONIC.
    pub open: u64,
}

/// A batch of rows being made.
pub(crate) struct Maker<'a> {
    def: &'a TableDef,
    common: &'a CommonValues,
    wanted: Vec<bool>,
    rows: usize,
    columns: Vec<Option<Column>>,
}

impl<'a> Maker<'a> {
    /// Begins a batch of `rows` rows of `def`, of which `fields` are asked for.
    pub(crate) fn new<'f>(
        def: &'a TableDef,
        fields: impl Iterator<Item = &'f FrameField>,
        common: &'a CommonValues,
        rows: usize,
    ) -> Self {
        let mut wanted = vec![false; def.columns.len()];
        for field in fields {
            match field.shows {
                // any name may have such bytes
                Shows::Raw => {
                    def.columns.iter().zip(&mut wanted).for_each(|(column, wanted)| *wanted |= column.ty == Type::Str)
                }
                _ => wanted.get_mut(field.of).into_iter().for_each(|wanted| *wanted = true),
            }
        }
        let columns = def.columns.iter().map(|_| None).collect();
        Self { def, common, wanted, rows, columns }
    }

    /// Whether one of the columns `names` is wanted.
    pub(crate) fn wants(&self, names: &[&str]) -> bool {
        self.def
            .columns
            .iter()
            .zip(&self.wanted)
            .any(|(column, wanted)| *wanted && names.contains(&&*column.full_name()))
    }

    /// Whether the table has a column `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.def.columns.iter().any(|column| column.full_name() == name)
    }

    fn place(&mut self, name: &str, make: impl FnOnce() -> Column) {
        if let Some(at) = self.wanted_at(name) {
            self.columns[at] = Some(make());
        }
    }

    /// Where the column `name` is, if it is wanted.
    fn wanted_at(&self, name: &str) -> Option<usize> {
        let at = self.def.columns.iter().position(|column| column.full_name() == name);
        debug_assert!(at.is_some(), "table {} has no column {name}", self.def.name);
        at.filter(|at| self.wanted[*at])
    }

    /// Fills column `name` if it is wanted.
    pub(crate) fn put(&mut self, name: &str, make: impl FnOnce() -> Values) {
        self.place(name, || Column { values: make(), short: None });
    }

    /// Makes a column of numbers by row.
    pub(crate) fn int(&mut self, name: &str, of: impl Fn(usize) -> Option<i64>) {
        let rows = self.rows;
        self.put(name, || Values::Int((0..rows).map(of).collect()));
    }

    /// Makes a column of yes or no.
    pub(crate) fn flag(&mut self, name: &str, of: impl Fn(usize) -> Option<bool>) {
        let rows = self.rows;
        self.put(name, || Values::Flag((0..rows).map(of).collect()));
    }

    /// Makes a column of points in time, CLOCK_MONOTONIC.
    pub(crate) fn time(&mut self, name: &str, of: impl Fn(usize) -> Option<u64>) {
        let rows = self.rows;
        self.put(name, || Values::Int((0..rows).map(|row| of(row).map(u64::cast_signed)).collect()));
    }

    /// Makes a column of words, of which there are few.
    pub(crate) fn word<'w>(&mut self, name: &str, of: impl Fn(usize) -> Option<&'w str>) {
        let rows = self.rows;
        self.put(name, || Values::texts((0..rows).map(|row| of(row).map(|word| word.as_bytes().into()))));
    }

    /// Makes a column of any texts.
    pub(crate) fn text(&mut self, name: &str, of: impl Fn(usize) -> Option<Vec<u8>>) {
        let rows = self.rows;
        self.put(name, || Values::texts((0..rows).map(|row| of(row).map(Cow::Owned))));
    }

    /// Makes a column of values that may be bounds, and whether each is.
    pub(crate) fn bound(&mut self, name: &str, make: impl FnOnce() -> (Values, Nullable<bool>)) {
        self.place(name, || {
            let (values, short) = make();
            Column { values, short: Some(short) }
        });
    }

    /// Fills the columns of a task, in the object `group` if that is not empty: those that the table has of pid, tid, upid, utid,
    /// comm, exe, uid, cgroup. `tasks` are the segment's, `of` the row's.
    pub(crate) fn task<'t>(
        &mut self,
        group: &str,
        tasks: &[Task],
        cgroup: impl Fn(&Task) -> Option<&'t [u8]>,
        of: impl Fn(usize) -> Option<u32>,
    ) {
        let rows = self.rows;
        let codes = OnceCell::new();
        let codes = || -> &Vec<u32> {
            codes.get_or_init(|| {
                let known = |task: &u32| (*task as usize) < tasks.len();
                (0..rows).map(|row| of(row).filter(known).unwrap_or(NONE)).collect()
            })
        };
        let name = |name: &str| if group.is_empty() { name.to_owned() } else { format!("{group}_{name}") };
        for column in TaskColumn::ALL.into_iter().filter(|column| *column != TaskColumn::Comm) {
            let name = name(column.name());
            if self.has(&name) {
                self.put(&name, || {
                    // a task is that of many rows
                    let values: Vec<Option<i64>> = tasks.iter().map(|task| column.cell(Some(task)).int()).collect();
                    let known: Option<Vec<i64>> = values.iter().copied().collect();
                    Values::Int(match known.filter(|_| !codes().contains(&NONE)) {
                        Some(values) => Nullable::new(columns::looked_up(codes(), &values), &[]),
                        None => codes().iter().map(|task| values.get(*task as usize).copied().flatten()).collect(),
                    })
                });
            }
        }
        let mut texts = |column: &str, text: &dyn Fn(&Task) -> Option<Vec<u8>>| {
            let column = name(column);
            if self.has(&column) {
                self.put(&column, || {
                    let names: Vec<Option<Vec<u8>>> = tasks.iter().map(text).collect();
                    let known = |task: &u32| names.get(*task as usize).is_some_and(Option::is_some);
                    let codes = if names.iter().all(Option::is_some) {
                        codes().clone()
                    } else {
                        codes().iter().map(|task| if known(task) { *task } else { NONE }).collect()
                    };
                    Values::Text(codes, names.into_iter().map(Option::unwrap_or_default).collect())
                });
            }
        };
        texts("comm", &|task| Some(task.comm.clone()));
        texts("exe", &|task| Some(task.exe.clone()).filter(|exe| !exe.is_empty()));
        texts("cgroup", &|task| cgroup(task).map(<[u8]>::to_vec));
    }

    /// The columns `fields` of the query.
    pub(crate) fn fields(mut self, fields: &[&FrameField]) -> Vec<Values> {
        let needs = |field: &FrameField, at: usize| field.of == at || matches!(field.shows, Shows::Raw);
        let mut made = Vec::with_capacity(fields.len());
        for (number, field) in fields.iter().enumerate() {
            // the last that needs a column takes it
            let again = fields[number + 1..].iter().any(|later| needs(later, field.of));
            let taken = match (again, field.shows) {
                (false, Shows::Value) => self.columns.get_mut(field.of).and_then(Option::take),
                _ => None,
            };
            made.push(taken.map_or_else(|| self.field(field), |column| column.values));
        }
        made
    }

    fn field(&self, field: &FrameField) -> Values {
        let (common, rows) = (self.common, self.rows);
        let column = self.columns.get(field.of).and_then(Option::as_ref);
        let times = |of: &dyn Fn(u64) -> Option<i64>| match column {
            Some(Column { values: Values::Int(times), .. }) => {
                Values::Int(times.iter().map(|time| of(time?.cast_unsigned())).collect())
            }
            _ => Values::Int(Nullable::all_null(rows)),
        };
        let real = |ts: u64| common.clock.real(ts);
        match field.shows {
            Shows::Host => Values::constant(common.host.as_deref(), rows),
            Shows::Date => Values::constant(common.date.as_deref().map(str::as_bytes), rows),
            Shows::Tape => Values::constant(Some(common.tape.as_bytes()), rows),
            Shows::Instant => times(&|ts| real(ts).map(|real| real.first.div_euclid(1000))),
            Shows::SinceEpoch => times(&|ts| real(ts).map(|real| real.first)),
            Shows::SinceStart => match column {
                Some(Column { values: Values::Int(times), .. }) => {
                    Values::Int(times.map(|times| columns::since(times, common.open)))
                }
                _ => Values::Int(Nullable::all_null(rows)),
            },
            Shows::Uncertain => {
                times(&|ts| real(ts).and_then(clock::Real::uncertain).and_then(|ns| i64::try_from(ns).ok()))
            }
            Shows::Short => match column.and_then(|column| column.short.as_ref()) {
                Some(short) => Values::Flag(short.clone()),
                None => Values::Flag(Nullable::all_null(rows)),
            },
            Shows::Raw => self.raw(),
            Shows::Value => match column {
                Some(column) => column.values.clone(),
                None => Values::nulls(field.kind, rows),
            },
        }
    }

    /// For each row the names that are not UTF-8.
    fn raw(&self) -> Values {
        let texts = self.def.columns.iter().zip(&self.columns).filter(|(column, _)| column.ty == Type::Str);
        let mut found: Vec<Option<serde_json::Map<String, serde_json::Value>>> = vec![None; self.rows];
        for (column, values) in texts {
            let Some(Column { values: Values::Text(codes, names), .. }) = values else { continue };
            if names.iter().all(|name| std::str::from_utf8(name).is_ok()) {
                continue;
            }
            for (row, code) in codes.iter().enumerate() {
                let Some(name) = names.get(*code as usize).filter(|name| std::str::from_utf8(name).is_err()) else {
                    continue;
                };
                let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
                found[row].get_or_insert_default().insert(column.full_name(), hex.into());
            }
        }
        Values::texts(
            found.into_iter().map(|map| map.map(|map| serde_json::Value::Object(map).to_string().into_bytes().into())),
        )
    }
}

/// A text as UTF-8: each byte that is not is `\xNN`.
pub fn utf8(name: &[u8]) -> String {
    lossless(name).into_owned()
}

//! The catalogue of event kinds that the schema types: one file a kind, or a few that share their fields. It is the only place that names
//! these fields: what they are called, of which type and class they are, what they mean, how they come from the model's event, and what
//! the kernel calls them. Listing, JSON, CSV, `analyze top`, filters and SQL's tables of events are views of it.
//!
//! A name means the same everywhere: `x_pid` is a process, `x_tid` a thread. The line of text has perf's names, which may differ: there
//! `prev_pid` is a thread.

pub mod block;
pub mod process;
pub mod sample;
pub mod shape;
pub mod signal;
pub mod socket;
pub mod switch;
pub mod uring;
pub mod wakeup;

use std::fmt::{Debug, Write as _};
use std::sync::LazyLock;

use systape_format::Error;
use systape_format::header::BlockKind;
use systape_format::model::{Dict, Family, StackOf, Task};
use systape_format::reader::Segment;
use systape_format::table::{TableDef, Type};

use self::shape::{Shape, ShapeField, is_of_line};
use crate::derive::block::files::Files;
use crate::render::cell::Cell;
use crate::render::row::{Row, ShownTimes};
use systape_events::values::clock::Real;
use systape_events::values::devices::Devices;
use systape_events::values::words::escaped;

/// All of it, in the order in which a segment is read.
pub static TABLES: [&dyn EventTable; 8] = [
    &switch::EVENTS,
    &wakeup::EVENTS,
    &process::EVENTS,
    &signal::EVENTS,
    &block::EVENTS,
    &socket::EVENTS,
    &uring::EVENTS,
    &sample::EVENTS,
];

/// Every kind.
pub fn kinds() -> impl Iterator<Item = &'static CataloguedKind> {
    TABLES.iter().flat_map(|table| table.kinds())
}

/// A kind by its names.
#[derive(Debug)]
pub struct CataloguedKind {
    /// Name of the kind, `family:event`: as a rule that of the kernel's tracepoint.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// Fields of the kind.
    pub shape: Shape,
    /// The number by which events say that they are of it.
    number: u32,
    /// The columns that its line of text shows; None: a text of its own.
    line: Vec<Option<usize>>,
}

/// Events of one type of the model, for all who do not know the type.
pub trait EventTable: Debug + Sync {
    /// What the table is about.
    fn about(&self) -> &AboutEvents;
    /// The kinds.
    fn kinds(&self) -> &[CataloguedKind];
    /// Passes the events of a segment to `each`, in its order, with their row.
    ///
    /// # Errors
    /// The segment cannot be read.
    fn read(
        &'static self,
        segment: &Segment<'_>,
        at: Surroundings<'_>,
        each: &mut dyn FnMut(&Event<'_>, usize),
    ) -> Result<(), Error>;
}

/// What a table of events is about.
#[derive(Debug)]
pub struct AboutEvents {
    /// Columns of SQL's table of these events.
    pub def: &'static TableDef,
    /// Family of the tape that has the events.
    pub family: Family,
    /// The blocks of a segment with its rows.
    pub blocks: &'static [BlockKind],
    /// Which stacks its events have; None: none.
    pub stacks: Option<StackOf>,
}

/// Where an event is.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The tape, and its clock if times of day are asked for.
    pub times: &'a ShownTimes<'a>,
    /// Devices of the tape.
    pub devices: &'a Devices,
    /// The segment's tasks.
    pub dict: &'a Dict,
    /// Files of the segment's block I/Os; None: not read.
    pub files: Option<&'a Files>,
}

/// An event of the catalogue, and where it is.
#[derive(Debug)]
pub struct Observed<'a, E: 'static> {
    /// What declares its fields.
    pub of: &'static Catalogued<E>,
    /// The event.
    pub e: &'a E,
    /// Segment and tape that it is in.
    pub at: Surroundings<'a>,
}

impl<E> Clone for Observed<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Observed<'_, E> {}

impl<'a, E: Debug> Observed<'a, E> {
    /// The task with this index in the segment.
    fn task(self, index: u32) -> Option<&'a Task> {
        self.at.dict.tasks.get(index as usize)
    }

    /// The real time at `ts`; None: the tape has no clock sample.
    fn real(self, ts: u64) -> Option<Real> {
        self.at.times.clock.real(ts)
    }

    /// A time in ns since the tape's start.
    fn since(self, ts: u64) -> i64 {
        self.at.times.since(ts)
    }

    /// The kind of the event.
    fn kind(self) -> &'static CataloguedKind {
        let (kinds, number) = (&self.of.entries, (self.of.kind)(self.e));
        kinds.iter().find(|kind| kind.number == number).unwrap_or(&kinds[0])
    }

    /// The value of the column at index `at`; null: the event's kind does not have it.
    fn value(self, at: usize) -> Cell<'a> {
        match self.of.fields.get(at) {
            Some(field) if field.kinds & 1 << (self.of.kind)(self.e) != 0 => (field.get)(self),
            _ => Cell::Null,
        }
    }

    /// The event for all who do not know its type.
    pub fn event(&'a self) -> Event<'a> {
        let ((ts, cpu), [task, other]) = ((self.of.when)(self.e), (self.of.whose)(*self));
        Event { shape: &self.kind().shape, ts, since: self.since(ts), cpu, task, other, values: self }
    }

    /// A row with all columns.
    pub fn row(self) -> Row<'a> {
        let mut row = Row::new(self.of.about.def);
        for (at, column) in self.of.about.def.columns.iter().enumerate() {
            row.part(&column.group, &column.name, self.value(at));
        }
        row
    }

    /// A value in the line of text.
    fn word(self, at: usize) -> String {
        let column = &self.of.about.def.columns[at];
        match (&self.value(at), &*column.name) {
            (Cell::Flag(flag), _) => u8::from(*flag).to_string(),
            // the columns of a task stand together
            (Cell::Int(tid), "tid") => match self.value(at + 3) {
                Cell::Text(comm) => format!("{tid} ({})", escaped(&comm)),
                _ => tid.to_string(),
            },
            (cell, _) => word(cell, column.ty),
        }
    }
}

/// An event of any kind.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Name of the event, and which fields it has.
    pub shape: &'a Shape,
    /// When, ns of CLOCK_MONOTONIC.
    pub ts: u64,
    /// When, ns since the tape's start.
    pub since: i64,
    /// CPU of the event; None = not recorded.
    pub cpu: Option<u32>,
    /// The task of its line; None = no task, or not known.
    pub task: Option<&'a Task>,
    /// The other task it is about.
    pub other: Option<&'a Task>,
    /// Values of its fields.
    pub values: &'a (dyn EventFields + 'a),
}

impl<'a> Event<'a> {
    /// The field called `name`, and its value; None: it has none.
    pub fn field(&self, name: &str) -> Option<(&'a ShapeField, Cell<'a>)> {
        self.shape.field(name).map(|field| (field, self.values.cell(field.at)))
    }
}

/// The fields of an event of any kind.
pub trait EventFields {
    /// The value of the column at index `at`.
    fn cell(&self, at: usize) -> Cell<'_>;
    /// Appends what stands between the parentheses of the line of text.
    fn line(&self, out: &mut String);
    /// Appends all fields with their own names, as CSV has them.
    fn named(&self, out: &mut String);
}

/// Names and values, with commas between.
fn joined<'w>(words: impl Iterator<Item = (&'w str, String)>, out: &mut String) {
    for (at, (name, value)) in words.enumerate() {
        // writing to a String cannot fail
        let _ = write!(out, "{}{name}: {value}", if at > 0 { ", " } else { "" });
    }
}

impl<E: Debug> EventFields for Observed<'_, E> {
    fn cell(&self, at: usize) -> Cell<'_> {
        self.value(at)
    }

    fn line(&self, out: &mut String) {
        let kind = self.kind();
        let words = self.of.kinds.iter().find(|named| named.number == kind.number).map_or(&[][..], |named| named.line);
        let value = |(word, at): (&LineWord<E>, &Option<usize>)| match (word.text, at) {
            (Some(text), _) => Some((word.label, text(*self)?)),
            (None, at) => Some((word.label, self.word((*at)?))),
        };
        joined(words.iter().zip(&kind.line).filter_map(value), out);
    }

    fn named(&self, out: &mut String) {
        let value = |field: &ShapeField| word(&self.value(field.at), field.ty);
        joined(self.kind().shape.fields.iter().map(|field| (&*field.name, value(field))), out);
    }
}

/// A value in a line of text: `"/bin/ls"`, `0x7f00`, `?`.
pub(crate) fn word(cell: &Cell<'_>, ty: Type) -> String {
    match cell {
        Cell::Null | Cell::Absent => "?".to_owned(),
        Cell::Text(text) if ty == Type::Str => format!("\"{}\"", escaped(text)),
        Cell::Text(text) => escaped(text),
        _ => {
            let mut out = Vec::new();
            cell.csv(ty, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// The fields of a kind, or of a few that share them; made by [`catalogue!`].
#[derive(Debug)]
pub struct Catalogued<E: 'static> {
    about: AboutEvents,
    /// What fills the columns, one each.
    fields: &'static [CatalogueField<E>],
    kinds: &'static [NamedKind<E>],
    entries: LazyLock<Vec<CataloguedKind>>,
    read: fn(&Segment<'_>, &Dict) -> Result<Vec<E>, Error>,
    files: fn(&Segment<'_>, &Dict, &[E]) -> Result<Files, Error>,
    kind: fn(&E) -> u32,
    /// Time and CPU.
    when: fn(&E) -> (u64, Option<u32>),
    /// The task whose line it is, and the other one that it is about.
    whose: for<'a> fn(Observed<'a, E>) -> [Option<&'a Task>; 2],
}

/// What fills a column.
#[derive(Debug)]
struct CatalogueField<E: 'static> {
    /// A bit for each kind that has the field, by its number.
    kinds: u32,
    get: for<'a> fn(Observed<'a, E>) -> Cell<'a>,
}

/// A kind with its names and its line of text.
#[derive(Debug)]
struct NamedKind<E: 'static> {
    number: u32,
    name: &'static str,
    aliases: &'static [&'static str],
    line: &'static [LineWord<E>],
}

/// A name and a value in the line of text, as perf trace writes it.
#[derive(Debug)]
struct LineWord<E: 'static> {
    label: &'static str,
    /// The column that the kernel calls so; a `tid` has the name of the thread behind it.
    column: Option<&'static str>,
    /// A text of its own in place of the column's; if that is None, nothing is shown.
    text: Option<for<'a> fn(Observed<'a, E>) -> Option<String>>,
}

impl<E: Debug> EventTable for Catalogued<E> {
    fn about(&self) -> &AboutEvents {
        &self.about
    }

    fn kinds(&self) -> &[CataloguedKind] {
        &self.entries
    }

    fn read(
        &'static self,
        segment: &Segment<'_>,
        at: Surroundings<'_>,
        each: &mut dyn FnMut(&Event<'_>, usize),
    ) -> Result<(), Error> {
        let events = (self.read)(segment, at.dict)?;
        let files = (self.files)(segment, at.dict, &events)?;
        let at = Surroundings { files: Some(&files), ..at };
        for (row, e) in events.iter().enumerate() {
            each(&Observed { of: self, e, at }.event(), row);
        }
        Ok(())
    }
}

/// Declares the columns of events of one type of the model and what fills them, and then the kinds with their lines of text.
///
/// A line is that of [`systape_format::tables!`], and behind it the kinds that have the field if not all do, and its value:
/// `name: Type "sentence" of [Kind] = |o| value;`. `group: Task "sentence of the process"` is five columns, `_: Task` the same outside of
/// any object: the task whose line it is. A [`Type::Stack`] has no value here.
///
/// In a line of text `label` shows the column of that name, `label = column` another one, which the kernel calls so, and `label |o| text`
/// a text of its own.
macro_rules! catalogue {
    ($(#[doc = $doc:literal])+ pub $table:ident = $name:literal of $event:ty { $($lines:tt)* } $($rest:tt)*) => {
        catalogue!(@lines [$($doc)+] $table $name $event, [] [] $($lines)*);
        catalogue!(@events $table $name $event, $($rest)*);
    };
    (@events $table:ident $name:literal $event:ty,
        family $family:ident, blocks [$($block:ident)+], stacks $stacks:expr;
        read |$s:ident, $d:ident| $read:expr;
        $(files |$fs:ident, $fd:ident, $fe:ident| $files:expr;)?
        when |$w:ident| $when:expr;
        whose |$o:ident| $whose:expr;
        kind |$k:ident| $kind:expr;
        $($number:expr => $title:literal [$($alias:literal)*]:
            $($label:ident $(= $column:ident)? $(|$t:ident| $text:expr)?),+;)+) => {
        #[doc = concat!("Events of table `", $name, "`.")]
        pub static EVENTS: $crate::catalogue::Catalogued<$event> = $crate::catalogue::Catalogued {
            about: $crate::catalogue::AboutEvents {
                def: &$table,
                family: ::systape_format::model::Family::$family,
                blocks: &[$(::systape_format::header::BlockKind::$block),+],
                stacks: $stacks,
            },
            fields: FIELDS,
            kinds: &[$($crate::catalogue::NamedKind {
                number: $number,
                name: $title,
                aliases: &[$($alias),*],
                line: &[$(catalogue!(@word $label $(= $column)? $(|$t| $text)?)),+],
            }),+],
            entries: ::std::sync::LazyLock::new(|| EVENTS.entries()),
            read: |$s, $d| $read,
            files: catalogue!(@files $(|$fs, $fd, $fe| $files)?),
            kind: |$k| $kind,
            when: |$w| $when,
            whose: |$o| $whose,
        };
    };
    (@files) => { |_, _, _| Ok($crate::derive::block::files::Files::default()) };
    (@files |$s:ident, $d:ident, $e:ident| $files:expr) => { |$s, $d, $e| $files };
    (@word $label:ident) => { catalogue!(@word $label = $label) };
    (@word $label:ident = $column:ident) => {
        $crate::catalogue::LineWord { label: stringify!($label), column: Some(stringify!($column)), text: None }
    };
    (@word $label:ident |$o:ident| $text:expr) => {
        $crate::catalogue::LineWord { label: stringify!($label), column: None, text: Some(|$o| $text) }
    };
    (@word $label:ident = $column:ident |$o:ident| $text:expr) => {
        $crate::catalogue::LineWord {
            label: stringify!($label), column: Some(stringify!($column)), text: Some(|$o| $text),
        }
    };
    (@lines [$($doc:literal)+] $table:ident $name:literal $event:ty, [$($columns:tt)*] [$($fields:tt)*]) => {
        systape_format::tables! {
            $(#[doc = $doc])+
            pub $table = $name { $($columns)* }
        }

        const FIELDS: &[$crate::catalogue::CatalogueField<$event>] = &[$($fields)*];
    };
    (@lines $docs:tt $table:ident $name:literal $event:ty, [$($columns:tt)*] $fields:tt
        $($group:ident)? $(_)?: Task $doc:literal $(of $kinds:tt)? = |$o:ident| $get:expr; $($lines:tt)*) => {
        catalogue!(@task $docs $table $name $event, [$($columns)*
            $($group.)? pid: Int $doc
            $($group.)? tid: Int "thread"
            $($group.)? upid: Int "the process, unique in the tape; null: not known"
            $($group.)? utid: Int "the thread, unique in the tape; null: not known"
            $($group.)? comm: Str [Comm] "name of the thread"
        ] $fields [$($kinds)?] |$o| $get; $($lines)*);
    };
    (@task $docs:tt $table:ident $name:literal $event:ty, $columns:tt [$($fields:tt)*] [$($kinds:tt)?]
        |$o:ident| $get:expr; $($lines:tt)*) => {
        catalogue!(@lines $docs $table $name $event, $columns [$($fields)*
            catalogue!(@field $($kinds)?, |$o| $crate::render::row::TaskColumn::Pid.cell($get)),
            catalogue!(@field $($kinds)?, |$o| $crate::render::row::TaskColumn::Tid.cell($get)),
            catalogue!(@field $($kinds)?, |$o| $crate::render::row::TaskColumn::Upid.cell($get)),
            catalogue!(@field $($kinds)?, |$o| $crate::render::row::TaskColumn::Utid.cell($get)),
            catalogue!(@field $($kinds)?, |$o| $crate::render::row::TaskColumn::Comm.cell($get)),
        ] $($lines)*);
    };
    (@lines $docs:tt $table:ident $name:literal $event:ty, [$($columns:tt)*] [$($fields:tt)*]
        $column:ident: Stack $doc:literal; $($lines:tt)*) => {
        catalogue!(@lines $docs $table $name $event, [$($columns)* $column: Stack $doc]
            [$($fields)* catalogue!(@field, |_o| $crate::render::cell::Cell::Null),] $($lines)*);
    };
    (@lines $docs:tt $table:ident $name:literal $event:ty, [$($columns:tt)*] [$($fields:tt)*]
        $first:ident $(. $second:ident)?: $ty:ident $($key:ident)? $([$class:ident])? $doc:literal
        $(of $kinds:tt)? = |$o:ident| $get:expr; $($lines:tt)*) => {
        catalogue!(@lines $docs $table $name $event,
            [$($columns)* $first $(. $second)?: $ty $($key)? $([$class])? $doc]
            [$($fields)* catalogue!(@field $($kinds)?, |$o| $crate::render::cell::Cell::from($get)),]
            $($lines)*);
    };
    (@field, |$o:ident| $get:expr) => {
        $crate::catalogue::CatalogueField { kinds: u32::MAX, get: |$o| $get }
    };
    (@field [$($kind:path),+], |$o:ident| $get:expr) => {
        $crate::catalogue::CatalogueField { kinds: 0 $(| 1 << $kind as u32)+, get: |$o| $get }
    };
}
pub(crate) use catalogue;

impl<E> Catalogued<E> {
    /// The kinds by their names.
    fn entries(&'static self) -> Vec<CataloguedKind> {
        let of = |kind: &NamedKind<E>| {
            let columns = self.about.def.columns.iter().enumerate().zip(self.fields);
            let has = columns.filter(|(_, field)| field.kinds & 1 << kind.number != 0).map(|(column, _)| column);
            let has: Vec<_> = has.map(|(at, column)| (at, column.full_name(), column)).collect();
            let named = |column: &'static str| has.iter().find(|(_, name, _)| name == column).map(|(at, ..)| *at);
            let line: Vec<Option<usize>> = kind.line.iter().map(|word| word.column.and_then(named)).collect();
            debug_assert!(
                line.iter().zip(kind.line).all(|(at, word)| at.is_some() == word.column.is_some()),
                "{}",
                kind.name
            );
            let own = has.iter().filter(|(_, name, column)| !is_of_line(name) && column.ty != Type::Stack);
            let own = own.map(|(at, name, column)| (*at, name.clone(), column.ty, &*column.doc));
            let kernel = kind.line.iter().filter_map(|word| Some((word.label, word.column?)));
            let shape = Shape::new(kind.name, own, kernel);
            CataloguedKind { name: kind.name, aliases: kind.aliases, shape, number: kind.number, line }
        };
        self.kinds.iter().map(of).collect()
    }
}

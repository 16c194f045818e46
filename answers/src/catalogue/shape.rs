//! The fields of an event by their names: which there are, and what the kernel calls them. Of kinds of the catalogue and of tables of a tape.

use systape_format::table::Type;

use crate::render::row::TaskColumn;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeField {
    /// Name of the field: `prev_pid`.
    pub name: String,
    /// Type of its values.
    pub ty: Type,
    /// Index of its column.
    pub at: usize,
    /// What it is.
    pub doc: String,
}

/// A field that every event has beside its own: it stands in the line in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineField {
    /// When it happened, ns since the tape's start.
    Time,
    /// Where it happened.
    Cpu,
    /// A column of the task whose line it is.
    Task(TaskColumn),
}

impl LineField {
    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ts_ns" => Some(Self::Time),
            "cpu" => Some(Self::Cpu),
            _ => TaskColumn::ALL.into_iter().find(|column| column.name() == name).map(Self::Task),
        }
    }
}

/// Whether every row of JSON has this column in front of the fields of the event.
pub fn is_of_line(name: &str) -> bool {
    LineField::named(name).is_some() || matches!(name, "event" | "time" | "time_uncertain_ns")
}

/// The fields of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Name of the event, `family:event`.
    pub event: String,
    /// Fields that only events of this kind have, in the order of their columns.
    pub fields: Vec<ShapeField>,
    /// Indices of the fields in the order of their names.
    pub by_name: Vec<usize>,
    /// What the kernel calls fields, where that is another name: its name, and ours.
    pub kernel: Vec<(&'static str, &'static str)>,
}

impl Shape {
    /// The shape of `event` with these fields (index of the column, name, type, sentence), some of which the kernel calls otherwise.
    pub(crate) fn new<'d>(
        event: &str,
        fields: impl Iterator<Item = (usize, String, Type, &'d str)>,
        kernel: impl Iterator<Item = (&'static str, &'static str)>,
    ) -> Self {
        let fields: Vec<ShapeField> =
            fields.map(|(at, name, ty, doc)| ShapeField { name, ty, at, doc: doc.to_owned() }).collect();
        let mut by_name: Vec<usize> = (0..fields.len()).collect();
        by_name.sort_by_key(|at| &fields[*at].name);
        let kernel = kernel.filter(|(theirs, ours)| theirs != ours).collect();
        Self { event: event.to_owned(), fields, by_name, kernel }
    }

    /// The event's own field called `name`.
    pub fn field(&self, name: &str) -> Option<&ShapeField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field that the kernel calls `name`.
    pub fn of_kernel(&self, name: &str) -> Option<&'static str> {
        self.kernel.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
    }
}

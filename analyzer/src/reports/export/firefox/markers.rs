//! Markers: what happened in a thread at a time or from one time to another, with the fields that its schema names.

use serde_json::{Value, json};

/// What a marker is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerKind {
    /// A call.
    Call,
    /// A block I/O.
    Block,
    /// A signal, at its sender or its target.
    Signal,
    /// The recording as a whole, and what it lacks.
    Tape,
}

/// Most fields of a marker.
pub(super) const FIELDS: usize = 4;

/// Value of a field that a marker does not have, and the stack of one without.
pub(super) const NOTHING: u32 = u32::MAX;

/// A field of a schema.
#[derive(Debug)]
pub(super) struct MarkerField {
    /// Name of the field in a marker's data.
    pub key: &'static str,
    /// Name of the field for people.
    label: &'static str,
    /// The profiler's name for its form. Paths may be in a `sanitized-string`: whoever uploads a profile can leave these out.
    format: &'static str,
}

impl MarkerField {
    /// Whether its value is a number, not that of a text.
    pub(super) fn is_number(&self) -> bool {
        self.format == "bytes"
    }
}

const fn field(key: &'static str, label: &'static str, format: &'static str) -> MarkerField {
    MarkerField { key, label, format }
}

const CALL: [MarkerField; FIELDS] = [
    field("arguments", "Arguments", "sanitized-string"),
    field("result", "Result", "sanitized-string"),
    field("error", "Error", "string"),
    field("incomplete", "Incomplete", "string"),
];
const BLOCK: [MarkerField; FIELDS] = [
    field("disk", "Disk", "string"),
    field("operation", "Operation", "string"),
    field("bytes", "Bytes", "bytes"),
    field("file", "File", "sanitized-string"),
];
const SIGNAL: [MarkerField; 3] =
    [field("sender", "Sender", "string"), field("target", "Target", "string"), field("outcome", "Outcome", "string")];
const TAPE: [MarkerField; 1] = [field("what", "What", "sanitized-string")];

impl MarkerKind {
    /// Each of them.
    pub(super) const ALL: [Self; 4] = [Self::Call, Self::Block, Self::Signal, Self::Tape];

    /// Name of the schema.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call => "syscall",
            Self::Block => "block",
            Self::Signal => "signal",
            Self::Tape => "tape",
        }
    }

    /// Fields of the schema, in the order of [`MarkerRow::fields`].
    pub(super) fn fields(self) -> &'static [MarkerField] {
        match self {
            Self::Call => &CALL,
            Self::Block => &BLOCK,
            Self::Signal => &SIGNAL,
            Self::Tape => &TAPE,
        }
    }

    /// The schema: how the profiler shows these markers.
    pub(super) fn schema(self) -> Value {
        let (label, about) = match self {
            Self::Call => ("{marker.name}({marker.data.arguments}) = {marker.data.result}", "A system call"),
            Self::Block => {
                ("{marker.data.operation} {marker.data.bytes} {marker.data.disk} {marker.data.file}", "A block I/O")
            }
            Self::Signal => ("{marker.name} {marker.data.target}", "A signal that ended or stopped a process"),
            Self::Tape => ("{marker.name}: {marker.data.what}", "The recording, and what is missing"),
        };
        let mut display = vec!["marker-chart", "marker-table"];
        if self != Self::Call {
            display.push("timeline-overview");
        }
        let field = |field: &MarkerField| json!({"key": field.key, "label": field.label, "format": field.format});
        json!({
            "name": self.name(),
            "tooltipLabel": "{marker.name}",
            "tableLabel": label,
            "chartLabel": label,
            "display": display,
            "fields": self.fields().iter().map(field).collect::<Vec<_>>(),
            "description": about,
        })
    }
}

/// A marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerRow {
    /// When it began.
    pub start: u64,
    /// When it ended; None: a moment.
    pub end: Option<u64>,
    /// Number of the text of its name.
    pub name: u32,
    /// What it is of.
    pub kind: MarkerKind,
    /// Values by the kind's fields, a number or the number of a text; [`NOTHING`]: none.
    pub fields: [u32; FIELDS],
    /// Number of its stack; [`NOTHING`]: none.
    pub stack: u32,
}

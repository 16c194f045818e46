//! Categories: the colors of frames and markers.

use serde_json::{Value, json};

use super::markers::MarkerKind;

/// A category, by its place in the profile's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Category {
    /// What is in none of the others; the profiler needs one that is grey.
    Other,
    /// Code of programs.
    User,
    /// Code of the kernel.
    Kernel,
    /// Markers of calls.
    Calls,
    /// Markers of block I/Os.
    Block,
    /// Markers of signals.
    Signals,
    /// Markers of the recording, and of what it lacks.
    Tape,
}

/// Names and colors by place.
const LIST: [(&str, &str); 7] = [
    ("Other", "grey"),
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("System calls", "lightblue"),
    ("Block I/O", "green"),
    ("Signals", "red"),
    ("Tape", "magenta"),
];

impl Category {
    /// That of markers of `kind`.
    pub(super) fn of(kind: MarkerKind) -> Self {
        match kind {
            MarkerKind::Call => Self::Calls,
            MarkerKind::Block => Self::Block,
            MarkerKind::Signal => Self::Signals,
            MarkerKind::Tape => Self::Tape,
        }
    }

    /// Place of the category in the list.
    pub(super) fn place(self) -> u32 {
        self as u32
    }

    /// The list.
    pub(super) fn list() -> Vec<Value> {
        LIST.iter().map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_order_of_the_places() {
        assert_eq!(LIST.len(), Category::Tape.place() as usize + 1);
        assert_eq!(LIST[Category::Kernel.place() as usize].0, "Kernel");
        assert_eq!(LIST[Category::of(MarkerKind::Call).place() as usize].0, "System calls");
    }
}

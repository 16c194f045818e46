//! How much of a stack is shown.

/// How much of a stack is shown, and which stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Functions at most.
    pub max: usize,
    /// Events with fewer are hidden.
    pub min: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max: usize::MAX, min: 0 }
    }
}

//! Limits on printed stacks.

/// Limits on printed stacks, and on which stacks are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most functions of a stack.
    pub max: usize,
    /// Events with fewer are hidden.
    pub min: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max: usize::MAX, min: 0 }
    }
}

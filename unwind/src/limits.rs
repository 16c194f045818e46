//! How much of a file is read, and what is said when it is no use.

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub struct ModuleLimits {
    /// Most bytes of unwind information kept of one file. An index that has to be built comes on top; it is no larger than that.
    pub unwind_bytes: u64,
}

/// Why a file cannot be unwound through.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModuleError(pub String);

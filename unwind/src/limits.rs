//! Limits on reading a file, and the error of an unusable one.

/// Limits on reading a file.
#[derive(Clone, Copy, Debug)]
pub struct ModuleLimits {
    /// Most bytes of unwind information kept of one file. An index that has to be built is extra; it is no larger than
    /// that.
    pub unwind_bytes: u64,
}

/// Why a file cannot be unwound through.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModuleError(pub String);

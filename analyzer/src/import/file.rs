//! A file of a log.

use std::fs::File;
use std::path::PathBuf;

/// A file with lines.
#[derive(Debug)]
pub struct LogFile {
    /// Path of the file, for messages and to open it.
    pub path: PathBuf,
    /// The file itself, if it cannot be opened by its path: standard input.
    pub file: Option<File>,
    /// The thread that all its lines are of.
    pub tid: Option<u32>,
}

//! The child process that parses ELF files, and how it is asked.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use systape_format::model::Function;

/// A file to look names up in.
#[derive(Debug)]
pub struct File<'a> {
    /// The file, open for reading.
    pub fd: BorrowedFd<'a>,
    /// Where it was found, for messages and for `.gnu_debuglink`.
    pub path: &'a Path,
    /// Its build id; empty = none.
    pub build_id: &'a [u8],
}

/// Asks a child process for names.
#[derive(Debug)]
pub struct Resolver {}

impl Resolver {
    /// `command` starts the child: a program and arguments whose main calls [`run_child`]. `debug_dirs` are searched for separate debug
    /// files, `.build-id/xx/yyyy.debug` and `.gnu_debuglink`.
    pub fn new(_command: Vec<std::ffi::OsString>, _debug_dirs: Vec<PathBuf>) -> Self {
        Self {}
    }

    /// The functions at each of `offsets` (of the file), the innermost inlined one first; an empty list = there is no name.
    ///
    /// # Errors
    /// Why the file gives no names at all, in words.
    pub fn look_up(&mut self, _file: &File<'_>, _offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        Err("not built yet".into())
    }
}

/// The child's side: answers until its input ends.
pub fn run_child() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}

//! The child process that reads tapes: it gives up its rights before it reads a byte of one.

use std::fs::File;
use std::io::{self, BufRead as _, BufWriter, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use pyo3::prelude::*;
use systape_analyzer::frames;

use crate::answer;
use crate::question::{QuestionKind, TapeQuestion};

/// Bytes of an answer that are collected before a write: rows are more, and are written as they are.
const BUFFER: usize = 1 << 16;

/// Answers the question that stands on standard input, to standard output, and ends the process: `systape/_child.py`.
#[pyfunction]
pub(crate) fn child(py: Python<'_>) {
    let status = py.detach(answered);
    // nothing of Python runs in the sandbox: not even the end of an interpreter
    std::process::exit(status)
}

fn answered() -> i32 {
    let mut line = String::new();
    let asked = io::stdin().lock().read_line(&mut line).map_err(anyhow::Error::from);
    let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return 1 };
    let mut out = BufWriter::with_capacity(BUFFER, File::from(stdout));
    let said = match asked.and_then(|_| TapeQuestion::read(&line)) {
        Ok(TapeQuestion { kind: QuestionKind::Command(words), .. }) => {
            drop(out);
            // it confines itself when it has made its files
            let words = std::iter::once("analyze".to_owned()).chain(words).map(Into::into);
            let status = systape_analyzer::run_confined(words);
            return i32::from(status != std::process::ExitCode::SUCCESS);
        }
        Ok(question) => answer::to(&question, true, &mut out),
        Err(error) => answer::refuse(&error, &mut out),
    };
    // who asked may have heard enough
    let _ = said.and_then(|()| out.flush());
    0
}

/// Gives up all rights but to read `tapes`.
pub(crate) fn confine(tapes: &[PathBuf]) {
    frames::confine(tapes, &[]);
}

//! The process that opens files of users, with the rights for it.
//!
//! It takes nothing of them apart: it finds them, looks at what the kernel knows of them, and hands them on. A file system that
//! does not answer holds this process up, not the recorder, which ends it then.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use systape_symbols::{open_regular, run_carrier};

use crate::config::rights;
use crate::foreign::interpreter;
use crate::foreign::{Wanted, open_for_all};
use crate::{mappings, probes, stacks};

/// Runs it, until who asks has gone.
pub fn run() -> ExitCode {
    if rights::keep_for_opening().is_err() {
        return ExitCode::FAILURE;
    }
    run_carrier(open)
}

fn open(request: &[u8]) -> Result<(Vec<u8>, File), String> {
    let (first, what) = request.split_first().ok_or("nothing is asked for")?;
    let wanted =
        Wanted::ALL.into_iter().find(|wanted| *wanted as u8 == *first).ok_or("it is not known what that is")?;
    let path = Path::new(OsStr::from_bytes(what));
    let plain = |file: Option<File>| file.map(|file| (Vec::new(), file));
    match wanted {
        Wanted::Mapped => mappings::open::open_asked(what).map(|file| (Vec::new(), file)),
        Wanted::Library => probes::files::open_asked(what),
        Wanted::Program => {
            let file = open_regular(path).map_err(|error| error.to_string())?;
            plain(file).ok_or_else(|| "it is no regular file".into())
        }
        Wanted::DebugFile => plain(open_for_all(path)).ok_or_else(|| "it is not there for everybody".into()),
        Wanted::Executed => interpreter::open_asked(what),
        Wanted::PerfMap => stacks::jit_maps::open_asked(what),
    }
}

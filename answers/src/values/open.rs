//! Opens tapes, or says in one line why a file is none.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use systape_cli::held::is_held;
use systape_format::reader::Tape;

/// The tape that is read when none is named.
pub const DEFAULT_TAPE: &str = "trace.tape";

/// Opens the tape, or says in one line what `file` is instead.
///
/// # Errors
/// `file` is no tape, or does not exist.
pub fn open(file: &Path) -> Result<Tape> {
    look(file)?;
    let mut tape = Tape::open(file).with_context(|| file.display().to_string())?;
    if tape.end_mark().is_none() && File::open(file).is_ok_and(|file| is_held(&file)) {
        tape.set_being_written();
    }
    Ok(tape)
}

/// Checks that `file` may be a tape: a regular file.
///
/// # Errors
/// It is something else, or does not exist; the message says which in one line.
pub fn look(file: &Path) -> Result<()> {
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing(file)),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", file.display())),
    };
    if metadata.is_dir() {
        bail!("{} is a directory, not a tape", file.display());
    }
    if !metadata.is_file() {
        // opening a pipe would wait for its writer
        bail!(
            "{0} is not a regular file: a pipe is read by 'analyze - < {0}', else save the tape to one",
            file.display()
        );
    }
    Ok(())
}

fn missing(file: &Path) -> anyhow::Error {
    let name = file.display();
    if file == Path::new(DEFAULT_TAPE) {
        anyhow!("{name}: no such file; record one with 'record -- COMMAND', or name a tape: 'analyze FILE'")
    } else {
        anyhow!("{name}: no such file")
    }
}

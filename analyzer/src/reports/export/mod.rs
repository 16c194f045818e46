//! `analyze export`: a tape in the form of another program.

pub(crate) mod arrow;
pub(crate) mod firefox;
pub(crate) mod perfetto;
pub(crate) mod pprof;
mod proto;
pub(crate) mod strace;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;
use systape_answers::values::new_file::NewFile;

/// Refuses a form of rows: an export has its own.
fn not_text(config: &Config) -> Result<()> {
    refuse(&[(config.format != Format::Text, "--format")], "an export is a form of its own")
}

/// What -o names, without which there is no export to a file.
fn named_file<T>(named: Option<T>) -> Result<T> {
    named.context("-o FILE: name the file to write")
}

/// The file named by -o, of the tapes of `config`.
fn made(config: &Config, output: Option<PathBuf>) -> Result<Option<NewFile>> {
    let permissions = config.permissions(None)?;
    let make = |path: PathBuf| {
        NewFile::replacing(&path, permissions).with_context(|| format!("cannot write {}", path.display()))
    };
    output.map(make).transpose()
}

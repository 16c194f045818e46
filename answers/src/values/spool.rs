//! A tape from standard input. Reads of a tape need random access, so a tape from a pipe is first copied to a file:
//! unnamed, gone with the process, and of bounded size.
//!
//! The file is made while files can be made ([`Spool::open`]), and nothing is read before rights are given up
//! ([`Spool::fill`]). Of what does not begin like a tape no more than its beginning is copied.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read, Seek as _, Write};
use std::os::fd::AsFd as _;
#[cfg(unix)]
use std::os::fd::AsRawFd as _;
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt as _;

use anyhow::{Context as _, Result, bail};
use systape_format::reader::{HEAD_SEARCH, Tape};

/// The file that is standard input.
pub const STDIN: &str = "-";
/// Most bytes of a tape from a pipe; `--help` has it.
const MOST: u64 = 4 << 30;
/// Bytes per copy.
const PIECE: usize = 1 << 20;

/// What standard input has for somebody who named no tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Nothing: a terminal, a device, an empty file, or a pipe that was closed.
    Nothing,
    /// Bytes of a tape.
    Bytes,
    /// A pipe that says nothing: perhaps somebody's who means no tape.
    Silence,
}

/// Looks whether standard input has bytes, for a second at most.
pub fn offered() -> Offered {
    let input = io::stdin();
    let Ok(mut file) = input.as_fd().try_clone_to_owned().map(File::from) else { return Offered::Nothing };
    let Ok(metadata) = file.metadata() else { return Offered::Nothing };
    if metadata.is_file() {
        let rest = file.stream_position().is_ok_and(|at| at < metadata.len());
        return if rest { Offered::Bytes } else { Offered::Nothing };
    }
    of_pipe(&file, &metadata)
}

/// Waits for the first byte of `file`, if it is a pipe.
#[cfg(unix)]
fn of_pipe(file: &File, metadata: &Metadata) -> Offered {
    if !metadata.file_type().is_fifo() {
        return Offered::Nothing;
    }
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which lives as long as the call
    match unsafe { libc::poll(&raw mut polled, 1, PATIENCE_MS) } {
        1.. if polled.revents & libc::POLLIN != 0 => Offered::Bytes,
        1.. => Offered::Nothing,
        _ => Offered::Silence,
    }
}

/// Says that there is nothing: only unix has pipes that are looked at.
#[cfg(not(unix))]
fn of_pipe(_: &File, _: &Metadata) -> Offered {
    Offered::Nothing
}

/// Standard input, to be read from where it is.
///
/// # Errors
/// It is a terminal or closed.
pub fn input() -> Result<File> {
    if cfg!(target_family = "wasm") {
        bail!("there is no standard input here: name a tape");
    }
    let input = io::stdin();
    if input.is_terminal() {
        bail!("standard input is a terminal: name a tape, or pipe one: record -o - ... | analyze -");
    }
    Ok(File::from(input.as_fd().try_clone_to_owned().context("standard input")?))
}

/// How long a pipe may take to its first byte, ms.
#[cfg(unix)]
const PATIENCE_MS: libc::c_int = 1000;

/// Standard input, of which nothing was read.
#[derive(Debug)]
pub struct Spool {
    input: File,
    /// Where it is copied to; None = it is a file itself.
    copy: Option<File>,
}

impl Spool {
    /// Takes standard input, and makes the file for a copy if it is a pipe.
    ///
    /// # Errors
    /// It is a terminal or closed, or the file cannot be made.
    pub fn open() -> Result<Self> {
        let mut input = input()?;
        let is_file = input.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && input.stream_position().is_ok_and(|at| at == 0) {
            return Ok(Self { input, copy: None });
        }
        let copy = tempfile::tempfile_in(std::env::temp_dir()).with_context(cannot_keep)?;
        Ok(Self { input, copy: Some(copy) })
    }

    /// Standard input as a file: itself if it is one, else a copy of everything from the pipe.
    ///
    /// # Errors
    /// It is no tape, longer than 4 GiB, or the disk is full.
    pub fn fill(self) -> Result<File> {
        let Self { mut input, copy } = self;
        let Some(mut file) = copy else { return Ok(input) };
        keep(&mut (&mut input).take(HEAD_SEARCH), &mut file, MOST).with_context(cannot_keep)?;
        Tape::check_begin(&file).context("standard input")?;
        keep(&mut input, &mut file, MOST - HEAD_SEARCH).with_context(cannot_keep)?;
        Ok(file)
    }
}

/// Standard input of any kind as a file that can be read from its beginning: itself, or a copy of everything from the pipe.
///
/// # Errors
/// It is a terminal or closed, longer than 4 GiB, or the disk is full.
pub fn as_file() -> Result<File> {
    let mut input = input()?;
    let is_file = input.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file && input.stream_position().is_ok_and(|at| at == 0) {
        return Ok(input);
    }
    let mut copy = tempfile::tempfile_in(std::env::temp_dir()).with_context(cannot_keep)?;
    keep(&mut input, &mut copy, MOST).with_context(cannot_keep)?;
    Ok(copy)
}

fn cannot_keep() -> String {
    let dir = std::env::temp_dir();
    format!("cannot keep standard input in {} (TMPDIR names another directory)", dir.display())
}

/// Copies `input` to `file`, at most `most` bytes.
fn keep(input: &mut impl Read, file: &mut impl Write, most: u64) -> Result<()> {
    let mut piece = vec![0; PIECE];
    let mut kept = 0;
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        kept += read as u64;
        if kept > most {
            bail!(
                "it is longer than {}: save the tape (record -o FILE) and name it",
                systape_events::values::words::bytes(most)
            );
        }
        file.write_all(&piece[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Vec::new();
        keep(&mut &[7_u8; 5000][..], &mut kept, 5000).unwrap();
        assert_eq!(kept, [7; 5000]);
        kept.clear();
        let why = keep(&mut io::repeat(7), &mut kept, 3 << 20).unwrap_err().to_string();
        assert!(why.contains("longer than 3.0 MiB") && why.contains("record -o FILE"), "{why}");
        assert!(kept.len() <= 3 << 20, "{}", kept.len());
    }
}

//! Standard output: big writes, and a closed pipe that is no error.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Standard output without std's line buffer, which would look for the last newline of every write.
pub fn stdout() -> io::Result<io::BufWriter<File>> {
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(io::BufWriter::with_capacity(1 << 18, File::from(fd)))
}

/// Whether `error` is that the reader of our output went away (`| head`): no one is left to tell.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Writes one line and its newline.
pub fn line(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

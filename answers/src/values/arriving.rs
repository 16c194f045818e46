//! Bytes of a tape that is still written: from a pipe, or from a file that grows.
//!
//! A thread reads them, so that whoever waits for them also sees that it is to end. It is a few pieces ahead and no more.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use systape_cli::held::is_held;

use crate::values::interrupt;

/// Bytes of a piece.
const PIECE: usize = 256 << 10;
/// Pieces that wait.
const AHEAD: usize = 4;
/// Time between two looks at a file that did not grow, or for a signal.
const TICK: Duration = Duration::from_millis(50);
/// How long after the first signal the writer, which mostly got it too, may take to end the tape.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that arrive; at their end after a signal, too.
#[derive(Debug)]
pub struct Arriving {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
    /// The writer gets a signal from a terminal too: it is of the same pipeline.
    piped: bool,
    signalled: Option<Instant>,
    stopped: Arc<AtomicBool>,
}

impl Arriving {
    /// What `file` has and gets: a pipe's until it is closed, a file's as long as `record` holds it. The flag is set when a signal made an
    /// end of it.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn of(file: File) -> io::Result<(Self, Arc<AtomicBool>)> {
        interrupt::count();
        let grows = file.metadata()?.is_file();
        let (sender, pieces) = sync_channel(AHEAD);
        thread::Builder::new().name("reader".to_owned()).spawn(move || read(file, grows, &sender))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (piece, flag) = (Vec::new(), Arc::clone(&stopped));
        Ok((Self { pieces, piece, taken: 0, piped: !grows, signalled: None, stopped }, flag))
    }

    /// Whether a signal makes an end of it now.
    fn is_enough(&mut self) -> bool {
        let enough = match interrupt::came() {
            0 => false,
            1 if self.piped => self.signalled.get_or_insert_with(Instant::now).elapsed() > PATIENCE,
            _ => true,
        };
        if enough {
            self.stopped.store(true, Ordering::Relaxed);
        }
        enough
    }
}

impl Read for Arriving {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            if self.is_enough() {
                return Ok(0);
            }
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => (self.piece, self.taken) = (piece?, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let rest = &self.piece[self.taken..];
        let read = rest.len().min(to.len());
        to[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
        Ok(read)
    }
}

/// Sends what `file` has, as it comes.
fn read(mut file: File, grows: bool, pieces: &SyncSender<io::Result<Vec<u8>>>) {
    // looked at before the file is read to its end: what comes until it is let go is read then
    let mut held = grows && is_held(&file);
    loop {
        let mut piece = vec![0; PIECE];
        let sent = match file.read(&mut piece) {
            Ok(0) if held => {
                thread::sleep(TICK);
                held = is_held(&file);
                continue;
            }
            Ok(0) => return,
            Ok(read) => {
                piece.truncate(read);
                pieces.send(Ok(piece))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => pieces.send(Err(error)),
        };
        if sent.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_pipe_is_read_until_it_is_closed_and_a_file_as_long_as_it_is_held() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(&[7; 1000]).unwrap();
        let (mut arriving, stopped) = Arriving::of(File::from(std::os::fd::OwnedFd::from(reader))).unwrap();
        let mut first = [0; 1000];
        arriving.read_exact(&mut first).unwrap();
        assert_eq!(first, [7; 1000], "it is not waited for more");
        writer.write_all(&[8; 3]).unwrap();
        drop(writer);
        let mut rest = Vec::new();
        arriving.read_to_end(&mut rest).unwrap();
        assert_eq!((rest, stopped.load(Ordering::Relaxed)), (vec![8; 3], false));

        let path = std::env::temp_dir().join(format!("systape-arriving-{}", std::process::id()));
        let mut writer = File::create(&path).unwrap();
        systape_cli::held::hold(&writer);
        writer.write_all(b"one").unwrap();
        let (mut arriving, _) = Arriving::of(File::open(&path).unwrap()).unwrap();
        let mut three = [0; 3];
        arriving.read_exact(&mut three).unwrap();
        writer.write_all(b"two").unwrap();
        arriving.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"two");
        drop(writer);
        assert_eq!(arriving.read(&mut three).unwrap(), 0);
        std::fs::remove_file(&path).unwrap();
    }
}

//! The full recording's end of the way to the recorder that looks: standard input, a socket.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};

use super::watch::FoundWrong;

/// What it says when its programs are loaded, before the name of its tape.
pub(crate) const READY: &str = "ready ";
/// What it says when it records, before the time of the first event.
pub(crate) const SINCE: &str = "since ";
/// What it is told, before what was found wrong.
pub(crate) const GO: &str = "go ";

/// The way to the recorder that looks.
#[derive(Debug)]
pub(crate) struct Armed(UnixStream);

impl Armed {
    /// Takes standard input.
    ///
    /// # Errors
    /// When it is no socket.
    pub(crate) fn new() -> Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned().context("cannot keep the way to the recorder")?;
        let socket = UnixStream::from(input);
        socket.local_addr().context("--armed is for recordings that record --escalate starts")?;
        Ok(Self(socket))
    }

    /// Says that everything is prepared, and waits for the word; returns what was found wrong; None: nobody is there any more.
    ///
    /// # Errors
    /// When the socket fails.
    pub(crate) fn wait(&self, tape: &str) -> Result<Option<FoundWrong>> {
        if (&self.0).write_all(format!("{READY}{tape}\n").as_bytes()).is_err() {
            return Ok(None);
        }
        let mut word = String::new();
        match BufReader::new(&self.0).read_line(&mut word) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
            read => {
                read.context("cannot read the word to begin")?;
                Ok(word.strip_suffix('\n').and_then(|word| word.strip_prefix(GO)).and_then(FoundWrong::parse))
            }
        }
    }

    /// Says since when it records.
    pub(crate) fn since(&self, ts: u64) {
        // who is gone is noticed by has_ended
        (&self.0).write_all(format!("{SINCE}{ts}\n").as_bytes()).ok();
    }

    /// Whether nobody is there any more.
    pub(crate) fn has_ended(&self) -> bool {
        let mut byte = [0_u8];
        // not by O_NONBLOCK: the next full recording has the same socket
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the descriptor is open, and there is room for the byte.
        match unsafe { libc::recv(self.0.as_raw_fd(), byte.as_mut_ptr().cast(), 1, flags) } {
            0 => true,
            // who ended without reading what was said resets the connection
            n => n < 0 && !matches!(io::Error::last_os_error().kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_word_is_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let armed = Armed(ours);
        let mut found =
            FoundWrong { condition: "d>1s".into(), what: "in D for 1.10 s".into(), ..FoundWrong::default() };
        (found.who.tid, found.who.pid, found.who.start, found.value, found.ts) = (7, 6, 5, 4, 3);
        found.who.comm[..4].copy_from_slice(b"a\tb\n".map(u8::cast_signed).as_slice());
        let word = format!("{GO}{}\n", found.line());
        theirs.write_all(word.as_bytes()).unwrap();
        let heard = armed.wait("a.tape").unwrap().unwrap();
        assert_eq!((heard.condition.as_str(), heard.what.as_str()), ("d>1s", "in D for 1.10 s"));
        let who = heard.who;
        assert_eq!((who.tid, who.pid, who.start, heard.value, heard.ts), (7, 6, 5, 4, 3));
        assert_eq!(&who.comm[..5], b"a?b?\0".map(u8::cast_signed).as_slice(), "what would end a word is none of it");
        armed.since(17);
        let mut said = [0; 64];
        let n = theirs.read(&mut said).unwrap();
        assert_eq!(&said[..n], b"ready a.tape\nsince 17\n");
        assert!(!armed.has_ended());
        theirs.write_all(word.as_bytes()).unwrap();
        assert!(!armed.has_ended() && armed.wait("b.tape").unwrap().is_some(), "the next one takes its word");
        drop(theirs);
        assert!(armed.has_ended());
        assert!(armed.wait("a.tape").unwrap().is_none());
    }
}

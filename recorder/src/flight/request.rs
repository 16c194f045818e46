//! Requests of other processes, by a socket in the directory of the tapes: `record trigger` and `record status`.
//!
//! A request is a line, the answer one line of JSON. The socket is for its owner alone.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Sender, bounded};
use serde_json::{Value, json};

use super::dir::{Dir, remove_socket};
use super::status::Status;
use super::step::Reply;
use crate::clock;
use crate::self_stats::{counted, rss};
use crate::triggers::Fire;

/// The socket's name.
const SOCKET: &str = "record.sock";
/// Longest line.
const MOST_BYTES: u64 = 4096;
/// Longest name of a request.
const MOST_NAME: usize = 200;
/// How long a client may take for its line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Requests that are answered at the same time.
const MOST: usize = 16;
/// How often the end of the recording is checked, ms.
const TICK: i32 = 500;

/// What the encoder's thread is told by others.
#[derive(Debug)]
pub(crate) enum Command {
    /// A trigger fired that looks at no records.
    Fire(Fire),
    /// A tape is asked for: its name, and who waits.
    Request(Option<String>, Option<Reply>),
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Makes the socket. No other thread may be running: it changes the mask of new files for a moment.
    ///
    /// # Errors
    /// When another recorder has it, or it cannot be made.
    pub(crate) fn bind(dir: &Dir) -> Result<Self> {
        let path = dir.at(SOCKET);
        match UnixStream::connect(&path) {
            Ok(_) => bail!("--dir {}: another record uses it", dir.path().display()),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(_) => remove_socket(&path),
        }
        // SAFETY: numbers only.
        let before = unsafe { libc::umask(0o177) };
        let bound = UnixListener::bind(&path);
        // SAFETY: numbers only.
        unsafe { libc::umask(before) };
        let listener = bound.with_context(|| format!("--dir {}: cannot make {SOCKET}", dir.path().display()))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path })
    }

    /// Where it is, for as long as the directory is open.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits a while for a client.
    fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: poll is one valid pollfd.
        unsafe { libc::poll(&raw mut poll, 1, TICK) };
    }

    /// Answers in a thread until `stop`.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(self, out: Sender<Command>, status: Arc<Status>, stop: Arc<AtomicBool>) -> Result<()> {
        let work = move || {
            let now = Arc::new(AtomicUsize::new(0));
            while !stop.load(Ordering::Relaxed) {
                self.wait();
                match self.listener.accept() {
                    Ok((client, _)) if now.load(Ordering::Relaxed) < MOST => {
                        let (out, status, now) = (out.clone(), Arc::clone(&status), Arc::clone(&now));
                        now.fetch_add(1, Ordering::Relaxed);
                        let work = move || {
                            // who does not read the answer misses it
                            serve(client, &out, &status).ok();
                            now.fetch_sub(1, Ordering::Relaxed);
                        };
                        // without a thread the client sees the end of the connection
                        thread::Builder::new().name("request".into()).spawn(counted("request", work)).ok();
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        };
        thread::Builder::new()
            .name("requests".into())
            .spawn(counted("requests", work))
            .context("cannot start a thread")?;
        Ok(())
    }
}

fn serve(mut client: UnixStream, out: &Sender<Command>, status: &Status) -> Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&client).take(MOST_BYTES)).read_line(&mut line)?;
    let answer = answer(line.trim_end_matches('\n'), out, status);
    writeln!(client, "{answer}")?;
    Ok(())
}

fn answer(line: &str, out: &Sender<Command>, status: &Status) -> Value {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "status" => status.json(std::process::id(), clock::self_cpu(), rss()),
        "trigger" if rest.len() > MOST_NAME => json!({"error": format!("a name has at most {MOST_NAME} bytes")}),
        "trigger" => {
            let (reply, written) = bounded(1);
            let name = (!rest.is_empty()).then(|| rest.to_owned());
            let asked = out.send(Command::Request(name, Some(reply))).ok();
            match asked.and_then(|()| written.recv().ok()) {
                Some(Ok(tape)) => json!({"tape": tape}),
                Some(Err(why)) => json!({"error": why}),
                None => json!({"error": "the recording ended"}),
            }
        }
        _ => json!({"error": "there are trigger [NAME] and status"}),
    }
}

/// Asks the recorder of `dir`; returns its answer.
///
/// # Errors
/// When none runs there, or it does not answer.
pub(crate) fn ask(dir: &Path, line: &str) -> Result<Value> {
    let path = dir.join(SOCKET);
    let mut server = UnixStream::connect(&path).with_context(|| {
        format!("no record with --last or --rotate runs for {} ({})", dir.display(), path.display())
    })?;
    writeln!(server, "{}", line.replace('\n', " "))?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    serde_json::from_str(&answer).context("the recorder ended before it answered")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::dir::Limits;
    use crossbeam_channel::unbounded;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn requests_are_answered_and_the_socket_is_its_owners() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path(), b"h", Limits { tapes: 1, bytes: 1, free: 0.0 }).unwrap();
        let socket = temp.path().join(SOCKET);
        // one that a killed recorder left
        drop(UnixListener::bind(&socket).unwrap());
        let server = Server::bind(&dir).unwrap();
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let path = server.path().to_path_buf();
        let (out, commands) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        server.start(out, Arc::default(), Arc::clone(&stop)).unwrap();
        assert!(format!("{:#}", Server::bind(&dir).unwrap_err()).contains("another record"));
        let recorder = thread::spawn(move || {
            for n in 0..2 {
                let Ok(Command::Request(name, Some(reply))) = commands.recv() else { panic!("no request") };
                assert_eq!(name.as_deref(), [Some("deploy 7"), None][n]);
                reply.send(if n == 0 { Ok("a.tape".to_owned()) } else { Err("disk full".to_owned()) }).unwrap();
            }
        });
        assert_eq!(ask(temp.path(), "trigger deploy 7").unwrap(), json!({"tape": "a.tape"}));
        assert_eq!(ask(temp.path(), "trigger").unwrap(), json!({"error": "disk full"}));
        assert_eq!(ask(temp.path(), "status").unwrap()["pid"], std::process::id());
        assert!(ask(temp.path(), "nonsense").unwrap()["error"].is_string());
        recorder.join().unwrap();
        assert_eq!(ask(temp.path(), "trigger").unwrap(), json!({"error": "the recording ended"}));
        stop.store(true, Ordering::Relaxed);
        remove_socket(&path);
        assert!(!socket.exists());
        assert!(ask(temp.path(), "status").is_err());
    }
}

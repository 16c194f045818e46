//! Requests of other processes, by a socket in the directory of the tapes: `record trigger` and `record status`.
//!
//! A request is a line, the answer one line of JSON ([`control`]). The socket is for its owner alone, and both sides ask
//! the kernel who is at the other end. While somebody waits for a tape, blanks show that the recorder lives.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde_json::{Value, json};
use systape_abi::plain_json;
use systape_cli::control::{self, Request};

use super::dir::Dir;
use super::peer;
use super::socket::{self, BoundSocket};
use super::status::Status;
use super::step::Reply;
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::memory::rss;
use crate::triggers::Fire;

/// How long a client may take for its line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a client that waits for a tape is sent a blank, and after how long without one a client gives up.
const ALIVE: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(60);
/// Requests that are answered at the same time.
const MOST: usize = 16;
/// How often the end of the recording is checked, ms.
const TICK: i32 = 500;

/// What the encoder's thread is told by others.
#[derive(Debug)]
pub(crate) enum FlightCommand {
    /// A trigger fired that looks at no records.
    Fire(Fire),
    /// A tape is asked for: its name, and who waits.
    Request(Option<String>, Option<Reply>),
}

/// The socket.
#[derive(Debug)]
pub(crate) struct RequestServer {
    listener: UnixListener,
    bound: BoundSocket,
}

impl RequestServer {
    /// Makes the socket. No other thread may be running: see [`socket::bind`].
    ///
    /// # Errors
    /// When another recorder has it, somebody else its name, or it cannot be made.
    pub(crate) fn bind(dir: &Arc<Dir>) -> Result<Self> {
        let (listener, bound) = socket::bind(dir)?;
        Ok(Self { listener, bound })
    }

    /// Answers in a thread until `stop`. The socket is there as long as what comes back.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(
        self,
        out: Sender<FlightCommand>,
        status: Arc<Status>,
        stop: Arc<AtomicBool>,
    ) -> Result<BoundSocket> {
        let Self { listener, bound } = self;
        let work = move || {
            let now = Arc::new(AtomicUsize::new(0));
            while !stop.load(Ordering::Relaxed) {
                wait(&listener);
                match listener.accept() {
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
        Ok(bound)
    }
}

/// Waits a while for a client.
fn wait(listener: &UnixListener) {
    let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: poll is one valid pollfd.
    unsafe { libc::poll(&raw mut poll, 1, TICK) };
}

fn serve(mut client: UnixStream, out: &Sender<FlightCommand>, status: &Status) -> Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let (_, uid) = peer::of(&client)?;
    let answer = if peer::is_trusted(uid) {
        let line = control::read_request(&mut client, Instant::now() + PATIENCE)?;
        answer(&line, &mut client, out, status)?
    } else {
        json!({"error": format!("uid {uid} may not ask: only root and uid {} may", peer::own_uid())})
    };
    writeln!(client, "{}", plain_json(&answer.to_string()))?;
    Ok(())
}

fn answer(line: &[u8], client: &mut impl Write, out: &Sender<FlightCommand>, status: &Status) -> Result<Value> {
    Ok(match Request::parse(line) {
        Ok(Request::Status) => status.json(std::process::id(), clock::self_cpu(), rss()),
        Ok(Request::Trigger(name)) => {
            let (reply, written) = bounded(1);
            let asked = out.send(FlightCommand::Request(name, Some(reply)));
            match asked.ok().map(|()| patiently(&written, client)).transpose()?.flatten() {
                Some(Ok(tape)) => json!({"tape": tape}),
                Some(Err(why)) => json!({"error": why}),
                None => json!({"error": "the recording ended"}),
            }
        }
        Err(why) => json!({"error": why}),
    })
}

/// Waits for a tape for as long as `client` takes blanks. None = the recording ended.
fn patiently(
    written: &Receiver<Result<String, String>>,
    client: &mut impl Write,
) -> Result<Option<Result<String, String>>> {
    loop {
        match written.recv_timeout(ALIVE) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            // who is gone waits no longer
            Err(RecvTimeoutError::Timeout) => client.write_all(b" ")?,
        }
    }
}

/// Asks the recorder of `dir`; returns its answer.
///
/// # Errors
/// When none runs there that is believed, or it does not answer.
pub(crate) fn ask(dir: &Path, request: &Request) -> Result<Value> {
    let mut server = socket::connect(dir)?;
    server.set_read_timeout(Some(SILENCE))?;
    server.write_all(request.line().as_bytes())?;
    control::read_answer(&mut server).map_err(|why| anyhow!("{}: {why}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::dir::{Dir, Limits};
    use crate::flight::socket::SOCKET;
    use crossbeam_channel::unbounded;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn dir(path: &Path) -> Arc<Dir> {
        Arc::new(Dir::open(path, b"h", Limits { tapes: 1, bytes: 1, free: 0.0 }).unwrap())
    }

    fn asked(name: &str) -> Request {
        Request::Trigger(Some(name.to_owned()))
    }

    #[test]
    fn requests_are_answered_and_the_socket_is_its_owners() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(temp.path());
        let socket = temp.path().join(SOCKET);
        // one that a killed recorder left
        drop(UnixListener::bind(&socket).unwrap());
        let server = RequestServer::bind(&dir).unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let (out, commands) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let bound = server.start(out, Arc::default(), Arc::clone(&stop)).unwrap();
        let why = format!("{:#}", RequestServer::bind(&dir).unwrap_err());
        assert!(why.contains(&format!("another record uses it (pid {})", std::process::id())), "{why}");
        let recorder = thread::spawn(move || {
            for n in 0..2 {
                let Ok(FlightCommand::Request(name, Some(reply))) = commands.recv() else { panic!("no request") };
                assert_eq!(name.as_deref(), [Some("deploy 7"), None][n]);
                reply.send(if n == 0 { Ok("a.tape".to_owned()) } else { Err("disk full".to_owned()) }).unwrap();
            }
        });
        assert_eq!(ask(temp.path(), &asked("deploy 7")).unwrap(), json!({"tape": "a.tape"}));
        assert_eq!(ask(temp.path(), &Request::Trigger(None)).unwrap(), json!({"error": "disk full"}));
        assert_eq!(ask(temp.path(), &Request::Status).unwrap()["pid"], std::process::id());
        assert!(ask(temp.path(), &asked(&"x".repeat(201))).unwrap()["error"].is_string());
        recorder.join().unwrap();
        assert_eq!(ask(temp.path(), &asked("x")).unwrap(), json!({"error": "the recording ended"}));
        stop.store(true, Ordering::Relaxed);
        drop(bound);
        assert!(!socket.exists());
        assert!(ask(temp.path(), &Request::Status).is_err());
    }

    #[test]
    fn who_waits_is_sent_blanks() {
        let (send, written) = bounded(1);
        let mut client = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(ALIVE + ALIVE / 2);
                send.send(Ok("a.tape".to_owned())).unwrap();
            });
            assert_eq!(patiently(&written, &mut client).unwrap(), Some(Ok("a.tape".to_owned())));
        });
        assert!(!client.is_empty() && client.iter().all(|byte| *byte == b' '), "{client:?}");
        assert_eq!(patiently(&written, &mut client).unwrap(), None);
    }

    #[test]
    fn a_taken_name_is_told_and_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, socket) = (dir(temp.path()), temp.path().join(SOCKET));
        let told = |what: &str| {
            let both = [RequestServer::bind(&dir).unwrap_err(), ask(temp.path(), &Request::Status).unwrap_err()];
            for why in both.map(|error| format!("{error:#}")) {
                assert!(why.contains(what) && why.contains("somebody took its name. Remove it (rm -r "), "{why}");
            }
            assert!(socket.symlink_metadata().is_ok());
        };
        symlink("/nowhere", &socket).unwrap();
        told("a symbolic link of uid");
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "x").unwrap();
        told("a file of uid");
        fs::remove_file(&socket).unwrap();
        fs::create_dir(&socket).unwrap();
        told("a directory of uid");
        fs::remove_dir(&socket).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        if chown(&socket, Some(65534), None).is_ok() {
            told("a socket of uid 65534");
        }
    }

    #[test]
    fn a_socket_of_another_name_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, socket) = (dir(temp.path()), temp.path().join(SOCKET));
        let server = RequestServer::bind(&dir).unwrap();
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "another's").unwrap();
        drop(server);
        assert!(socket.exists());
        fs::remove_file(&socket).unwrap();
        drop(RequestServer::bind(&dir).unwrap());
        assert!(!socket.exists(), "a recorder that is refused leaves none");
    }
}

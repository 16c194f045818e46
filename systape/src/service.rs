//! A small service with a fault: four threads answer requests, each writes a line of a log behind one lock, and whoever holds that asks a
//! backend now and then, which computes for long.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// The word that makes this program the service.
pub(crate) const WORD: &str = "demo-service";
/// The word that makes it the backend.
pub(crate) const BACKEND: &str = "demo-backend";

/// Threads that answer requests, and clients.
const THREADS: usize = 4;
/// Requests of each client.
const REQUESTS: usize = 100;
/// Of so many requests one asks the backend.
const RARE: usize = 10;
/// How long the backend takes.
const SLOW: Duration = Duration::from_millis(40);
/// What a thread computes for each request.
const WORK: Duration = Duration::from_micros(500);

/// The log, and a connection to the backend: nobody writes to one while another asks the other.
struct Shared {
    log: File,
    backend: TcpStream,
    lines: usize,
}

/// Serves all requests of all clients, and ends.
///
/// # Errors
/// It cannot listen, or start its backend.
pub(crate) fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("127.0.0.1")?;
    let address = listener.local_addr()?;
    let mut backend = backend()?;
    let shared = Mutex::new(Shared { log: File::create("access.log")?, backend: backend.1, lines: 0 });
    thread::scope(|scope| -> Result<()> {
        for client in 1..=THREADS {
            named(scope, format!("client-{client}"), move || ask(TcpStream::connect(address)?))?;
            let (stream, _) = listener.accept()?;
            let shared = &shared;
            named(scope, format!("web-{client}"), move || requests(stream, shared))?;
        }
        Ok(())
    })?;
    drop(shared);
    backend.0.wait()?;
    Ok(())
}

fn named<'s>(scope: &'s Scope<'s, '_>, name: String, work: impl FnOnce() -> Result<()> + Send + 's) -> Result<()> {
    // whoever is left alone by the others ends too
    thread::Builder::new().name(name).spawn_scoped(scope, || drop(work()))?;
    Ok(())
}

/// Keeps a CPU busy.
fn compute(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A client: asks, and waits for each answer.
fn ask(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut answer = [0; 3];
    for _ in 0..REQUESTS {
        stream.write_all(b"GET")?;
        stream.read_exact(&mut answer)?;
    }
    Ok(())
}

/// A thread of the service: answers the requests of a connection.
fn requests(mut stream: TcpStream, shared: &Mutex<Shared>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 3];
    while stream.read_exact(&mut request).is_ok() {
        compute(WORK);
        log(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))?;
        stream.write_all(b"200")?;
    }
    Ok(())
}

/// Writes a line, and asks the backend now and then: that is the fault, because all others wait for the lock meanwhile.
fn log(shared: &mut Shared) -> Result<()> {
    shared.log.write_all(b"GET / 200\n")?;
    shared.lines += 1;
    if shared.lines.is_multiple_of(RARE) {
        shared.backend.write_all(b"?")?;
        shared.backend.read_exact(&mut [0])?;
    }
    Ok(())
}

/// Starts the backend, and connects to it.
fn backend() -> Result<(std::process::Child, TcpStream)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg0("backend").arg(BACKEND).stdout(Stdio::piped()).spawn().context("the backend")?;
    let mut port = [0; 2];
    child.stdout.take().context("the backend")?.read_exact(&mut port)?;
    let stream = TcpStream::connect(("127.0.0.1", u16::from_be_bytes(port)))?;
    stream.set_nodelay(true)?;
    Ok((child, stream))
}

/// The backend: computes for each question.
///
/// # Errors
/// It cannot listen.
pub(crate) fn answer() -> Result<()> {
    // SAFETY: the name is a string that ends with NUL, and prctl copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"backend".as_ptr()) };
    let listener = TcpListener::bind("127.0.0.1:0").context("127.0.0.1")?;
    let mut out = std::io::stdout();
    out.write_all(&listener.local_addr()?.port().to_be_bytes())?;
    out.flush()?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    while stream.read_exact(&mut [0]).is_ok() {
        compute(SLOW);
        stream.write_all(b"!")?;
    }
    Ok(())
}

//! `analyze open --perfetto`: serves a trace of the tape to the page of ui.perfetto.dev, once.
//!
//! That page loads what its address names (`#!/?url=`) by a request of the browser, and its Content-Security-Policy allows one port of this
//! machine, 9001 (`setupContentSecurityPolicy` in ui/src/frontend/index.ts, tools/open_trace_in_ui). It asks once, for the whole file, and
//! keeps that (`loadTraceFromUrl` in ui/src/frontend/trace_url_handler.ts). Only this origin is answered.
//!
//! The trace is made by a second process ([`made`]).

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::http::{self, head, is_same, request};
use super::made::made;
use super::{listen, send};
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::interrupt;
use systape_answers::values::output::line;
use systape_answers::values::say::{Verdict, complain};

/// The page that asks.
const ORIGIN: &str = "https://ui.perfetto.dev";
/// The port that its policy allows.
const PORT: u16 = 9001;
/// The form of a trace.
const KIND: &str = "application/octet-stream";
/// Time between two looks at whether somebody wants it to end.
const TICK: Duration = Duration::from_millis(100);

/// Serves a trace of `tape` until it was fetched; `confined`: it is made in the sandbox.
///
/// # Errors
/// The port is taken, or no trace can be made.
pub(super) fn serve(tape: &Path, confined: bool) -> Result<Verdict> {
    let listener = listen(PORT).with_context(|| {
        format!(
            "{ORIGIN} loads from port {PORT} of this machine alone, and it cannot be had (trace_processor takes it too)"
        )
    })?;
    interrupt::count();
    let trace = made(&["export", "perfetto"], tape, confined)?;
    let served = ServedTrace {
        host: listener.local_addr()?.to_string(),
        token: http::token()?,
        name: file_name(tape),
        length: trace.metadata().context("the trace")?.len(),
        trace,
    };
    let mut out = Out::stdout(Format::Text)?;
    line(&mut out, &served.link())?;
    out.end()?;
    complain(
        "serves the trace to that page alone, until it has it; the page draws it in the browser and uploads nothing. \
         A browser may ask whether the page may reach this machine. Ctrl-C ends it",
    );
    served.until_fetched(listener, || interrupt::came() > 0)
}

/// Name of the trace of `tape`, of characters that stand in an address as they are.
fn file_name(tape: &Path) -> String {
    let stem = tape.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{}.pftrace", stem.chars().map(plain).collect::<String>())
}

/// A trace that a page gets.
#[derive(Debug)]
struct ServedTrace {
    /// This host and port, as requests name them.
    host: String,
    token: String,
    name: String,
    trace: File,
    length: u64,
}

impl ServedTrace {
    /// The address for a browser.
    fn link(&self) -> String {
        format!("{ORIGIN}/#!/?url=http://{}/{}/{}", self.host, self.token, self.name)
    }

    /// Answers requests until the trace was fetched, or somebody has enough.
    fn until_fetched(self, listener: TcpListener, enough: impl Fn() -> bool) -> Result<Verdict> {
        let (tell, fetched) = mpsc::channel();
        let work = move || http::accept(&listener, move |stream| self.answer(stream, &tell));
        thread::Builder::new().name("requests".to_owned()).spawn(work).context("no thread can be made")?;
        loop {
            match fetched.recv_timeout(TICK) {
                Ok(()) => return Ok(Verdict::default()),
                Err(_) if enough() => return Ok(Verdict::default()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("no request can be had any more"),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream, fetched: &Sender<()>) -> io::Result<()> {
        let Some(request) = request(&mut stream)? else { return Ok(()) };
        let (status, length) = match self.asked(&request) {
            Ok("OPTIONS") => ("204 No Content", 0),
            Ok(_) => ("200 OK", self.length),
            Err(status) => {
                stream.write_all(head(status, "text/plain", 0, "").as_bytes())?;
                return Ok(());
            }
        };
        let more = format!(
            "Access-Control-Allow-Origin: {ORIGIN}\r\nVary: Origin\r\nAccess-Control-Allow-Methods: GET, HEAD\r\n\
             Access-Control-Allow-Private-Network: true\r\nAccept-Ranges: none\r\n"
        );
        stream.write_all(head(status, KIND, length, &more).as_bytes())?;
        if request.starts_with("GET ") {
            send(&self.trace, self.length, &mut stream)?;
            stream.flush()?;
            // without a receiver the process ends already
            let _ = fetched.send(());
        }
        Ok(())
    }

    /// The method of `request` if it is about the trace.
    ///
    /// # Errors
    /// The status that answers it.
    fn asked<'a>(&self, request: &'a str) -> Result<&'a str, &'static str> {
        let asked = http::asked(request, &self.host)?;
        if http::values(request, "origin") != [ORIGIN] {
            return Err("403 Forbidden");
        }
        if !is_same(asked.token, &self.token) || asked.rest != self.name {
            return Err("404 Not Found");
        }
        match asked.method {
            "GET" | "HEAD" | "OPTIONS" => Ok(asked.method),
            _ => Err("405 Method Not Allowed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_of_perfetto_gets_the_trace() {
        let trace = File::open(std::env::current_exe().unwrap()).unwrap();
        let (host, token) = ("127.0.0.1:9001".to_owned(), "0123abcd".to_owned());
        let served = ServedTrace { host, token, name: file_name(Path::new("/x/a b.tape")), length: 0, trace };
        let ask = |method: &str, path: &str, origin: &str| {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n{origin}\r\n");
            served.asked(&request).map(str::to_owned)
        };
        let (path, origin) = ("/0123abcd/a_b.pftrace", "oRiGiN: https://ui.perfetto.dev\r\n");
        assert_eq!(served.link(), format!("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001{path}"));
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert_eq!(ask(method, path, origin).as_deref(), Ok(method));
        }
        assert_eq!(ask("POST", path, origin), Err("405 Method Not Allowed"));
        for other in ["", "Origin: null\r\n", "Origin: https://ui.perfetto.dev.example\r\n"] {
            assert_eq!(ask("GET", path, other), Err("403 Forbidden"), "{other}");
        }
        for other in ["/", "/0123abce/a_b.pftrace", "/0123abcd/", "/0123abcd/other", "/x/0123abcd/a_b.pftrace"] {
            assert_eq!(ask("GET", other, origin), Err("404 Not Found"), "{other}");
        }
    }
}

//! Serves the viewer and one tape on 127.0.0.1, until the process ends; or a trace of the tape, once, for Perfetto's page ([`perfetto`]).
//!
//! Where no viewer is installed, the page is that of `analyze report`, which is in this program.
//!
//! Two addresses are answered: the page and the tape, both below a word that nobody can guess, so that neither other users nor pages of
//! other sites get the tape; and only requests that name exactly this host and port ([`http`]), so that no name of a foreign site that points
//! here is taken for it. The tape is not parsed: that is done by the page, or by a second process ([`made`]).

mod http;
mod made;
mod perfetto;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::http::{AskedPath, encoded, head, is_same, request};
use self::made::made;
use crate::asked::config::Config;
use crate::reports::open::Options;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::output::line;
use systape_answers::values::say::{Verdict, complain};
use systape_answers::values::spool::STDIN;

/// The variable that names the viewer.
const VARIABLE: &str = "SYSTAPE_VIEWER";
/// Most bytes of a page.
const LARGEST_PAGE: u64 = 16 << 20;
/// Bytes of a file that are sent at a time.
const PIECE: usize = 1 << 18;
/// What is said while it serves.
const SERVES: &str = "serves the tape to a browser on this machine; Ctrl-C ends it";
/// What is said where no viewer is installed.
const NO_VIEWER: &str = "the viewer is not installed, so this is the page of 'analyze report'; 'make viewer' makes the viewer, which \
                         answers every question";
/// What the page's policy says of connections, and what it says where the tape comes from one.
const POLICY: [&str; 2] = ["connect-src 'none'", "connect-src 'self'"];

/// Serves the tape of `config` to a browser; `confined`: what reads it is in the sandbox.
///
/// # Errors
/// There is no viewer, the tape cannot be read, or no port can be had.
pub(super) fn serve(config: &Config, confined: bool) -> Result<Verdict> {
    if config.file == Path::new(STDIN) {
        bail!("a browser may ask more than once: save the tape to a file");
    }
    super::answer::check_name(&config.file)?;
    if config.own::<Options>()?.perfetto {
        return perfetto::serve(&config.file, confined);
    }
    let shown = || config.file.display().to_string();
    let tape = File::open(&config.file).with_context(shown)?;
    let name = config.file.file_name().map_or_else(|| "tape".into(), |name| name.to_string_lossy());
    let length = tape.metadata().with_context(shown)?.len();
    let (page, sentence) = match viewer(std::env::var_os(VARIABLE).map(PathBuf::from), std::env::current_exe().ok())? {
        Some(page) => (page, SERVES.to_owned()),
        None => (report(&config.file, confined)?, format!("{NO_VIEWER}; {SERVES}")),
    };
    let listener = listen(0).context("cannot listen on 127.0.0.1")?;
    let host = listener.local_addr()?.to_string();
    let token = http::token()?;
    let mut out = Out::stdout(Format::Text)?;
    line(&mut out, &format!("http://{host}/{token}/"))?;
    out.end()?;
    complain(&sentence);
    let served = Served { host, token, page, tape, length, name: name.into_owned() };
    http::accept(&listener, move |stream| served.answer(stream));
    Ok(Verdict::default())
}

/// Listens on `port` of this machine alone; 0: any that is free.
fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The page of the viewer: of the file that is named, else of the first that is there beside the program `this`; None: none is installed.
fn viewer(named: Option<PathBuf>, this: Option<PathBuf>) -> Result<Option<String>> {
    let beside = |path: &str| Some(this.as_ref()?.canonicalize().ok()?.parent()?.join(path));
    // what is installed, and what 'make viewer' made
    let installed = || {
        let files = ["../share/systape/systape.html", "../viewer/systape.html"];
        files.iter().filter_map(|path| beside(path)).find(|file| file.is_file())
    };
    let Some(file) = named.filter(|file| !file.as_os_str().is_empty()).or_else(installed) else { return Ok(None) };
    let text = File::open(&file).map_err(Into::into).and_then(text_of);
    let text = text.with_context(|| format!("the viewer {} cannot be read", file.display()))?;
    if !text.contains(POLICY[0]) {
        bail!("{} is not the viewer: 'make viewer' makes target/viewer/systape.html", file.display());
    }
    Ok(Some(text.replacen(POLICY[0], POLICY[1], 1)))
}

/// The page of `analyze report` of `tape`.
fn report(tape: &Path, confined: bool) -> Result<String> {
    text_of(made(&["report"], tape, confined)?).context("the page of 'analyze report'")
}

fn text_of(page: File) -> Result<String> {
    let mut text = String::new();
    page.take(LARGEST_PAGE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_PAGE {
        bail!("it has more than {} MiB", LARGEST_PAGE >> 20);
    }
    Ok(text)
}

/// What a browser gets.
#[derive(Debug)]
struct Served {
    /// This host and port, as requests name them.
    host: String,
    token: String,
    page: String,
    tape: File,
    length: u64,
    /// Name of the tape without its directory.
    name: String,
}

/// Sends the first `length` bytes of `file`.
fn send(file: &File, length: u64, stream: &mut TcpStream) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut sent = 0;
    while sent < length {
        let wanted = (length - sent).min(PIECE as u64) as usize;
        let read = file.read_at(&mut piece[..wanted], sent)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        stream.write_all(&piece[..read])?;
        sent += read as u64;
    }
    Ok(())
}

/// What a browser asks for.
#[derive(Debug, PartialEq, Eq)]
enum BrowserAsks {
    Page,
    Tape,
    /// A status, and what it is called.
    Refused(&'static str),
}

impl Served {
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = request(&mut stream)? else { return Ok(()) };
        match self.asked(&request) {
            BrowserAsks::Page => {
                let head = head("200 OK", "text/html; charset=utf-8", self.page.len() as u64, "");
                stream.write_all(head.as_bytes())?;
                stream.write_all(self.page.as_bytes())
            }
            BrowserAsks::Tape => {
                let name = format!("X-Tape-Name: {}\r\n", encoded(&self.name));
                stream.write_all(head("200 OK", "application/octet-stream", self.length, &name).as_bytes())?;
                send(&self.tape, self.length, &mut stream)
            }
            BrowserAsks::Refused(status) => stream.write_all(head(status, "text/plain", 0, "").as_bytes()),
        }
    }

    /// What `request`, a whole head, is answered with.
    fn asked(&self, request: &str) -> BrowserAsks {
        match http::asked(request, &self.host) {
            Err(status) => BrowserAsks::Refused(status),
            Ok(asked) if asked.method != "GET" => BrowserAsks::Refused("405 Method Not Allowed"),
            Ok(asked) if !is_same(asked.token, &self.token) => BrowserAsks::Refused("404 Not Found"),
            Ok(AskedPath { rest: "", .. }) => BrowserAsks::Page,
            Ok(AskedPath { rest: "tape", .. }) => BrowserAsks::Tape,
            Ok(_) => BrowserAsks::Refused("404 Not Found"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Served {
        let tape = File::open(std::env::current_exe().unwrap()).unwrap();
        let (host, token) = ("127.0.0.1:4711".to_owned(), "0123abcd".to_owned());
        Served { host, token, page: String::new(), tape, length: 0, name: "a b.tape".to_owned() }
    }

    #[test]
    fn only_the_page_and_the_tape_are_had_and_only_by_who_knows_the_address() {
        let served = served();
        let ask = |line: &str, hosts: &[&str]| {
            let hosts: String = hosts.iter().map(|host| format!("hOST: {host}\r\n")).collect();
            served.asked(&format!("{line}\r\nAccept: */*\r\n{hosts}\r\n"))
        };
        let here = ["127.0.0.1:4711"];
        assert_eq!(ask("GET /0123abcd/ HTTP/1.1", &here), BrowserAsks::Page);
        assert_eq!(ask("GET /0123abcd/tape HTTP/1.1", &here), BrowserAsks::Tape);
        for path in
            ["/", "/0123abcd", "/0123abcc/tape", "/0123abcd/other", "/0123abcd/../tape", "//tape", "/x/0123abcd/tape"]
        {
            assert_eq!(ask(&format!("GET {path} HTTP/1.1"), &here), BrowserAsks::Refused("404 Not Found"), "{path}");
        }
        for hosts in [&[][..], &["localhost:4711"], &["127.0.0.1"], &["evil.example:4711"], &[here[0], here[0]]] {
            assert_eq!(ask("GET /0123abcd/tape HTTP/1.1", hosts), BrowserAsks::Refused("403 Forbidden"), "{hosts:?}");
        }
        assert_eq!(ask("POST /0123abcd/tape HTTP/1.1", &here), BrowserAsks::Refused("405 Method Not Allowed"));
        assert_eq!(ask("GET /0123abcd/tape", &here), BrowserAsks::Refused("400 Bad Request"));
    }

    #[test]
    fn the_viewer_is_found_or_there_is_none() {
        let dir = std::env::temp_dir().join(format!("systape-viewer-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        std::fs::create_dir_all(dir.join("share/systape")).unwrap();
        let this = dir.join("bin/analyze");
        std::fs::write(&this, "").unwrap();
        assert_eq!(viewer(None, Some(this.clone())).unwrap(), None);
        std::fs::write(dir.join("share/systape/systape.html"), "a connect-src 'none' b").unwrap();
        assert_eq!(viewer(None, Some(this.clone())).unwrap().as_deref(), Some("a connect-src 'self' b"));
        let other = viewer(Some(this), None).unwrap_err().to_string();
        assert!(other.contains("is not the viewer"), "{other}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

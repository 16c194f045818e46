//! Requests of a browser on this machine, and heads of answers: short, few at a time, read with a limit of time, and asked by exactly this
//! host and port.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::reports::info::hex;
use crate::reports::repair::random_id;

/// Most bytes of a request without its body, which none has.
const LONGEST_REQUEST: usize = 8 << 10;
/// Most connections at a time.
const CONNECTIONS: usize = 16;
/// How long a browser may take to ask, and to take a piece of the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A word that nobody can guess.
pub(super) fn token() -> Result<String> {
    Ok(hex(&random_id().context("no random address")?))
}

/// Has `answer` answer connections, each in a thread, for as long as there are any.
pub(super) fn accept(listener: &TcpListener, answer: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            // it is closed, and the browser asks again
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (answer, count) = (Arc::clone(&answer), Arc::clone(&open));
        let work = move || {
            // who hangs up has enough
            let _ = limited(&stream).and_then(|()| answer(stream));
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("browser".to_owned()).spawn(work).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn limited(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AskedPath<'a> {
    /// GET, or another method.
    pub method: &'a str,
    /// The word after the first slash of its path.
    pub token: &'a str,
    /// What follows the slash after that.
    pub rest: &'a str,
}

/// What `request`, a whole head, asks of `host`.
///
/// # Errors
/// The status that answers it: it is no request, one of another host, or one without a path of two parts.
pub(super) fn asked<'a>(request: &'a str, host: &str) -> Result<AskedPath<'a>, &'static str> {
    let first: Vec<&str> = request.split("\r\n").next().unwrap_or_default().split(' ').collect();
    let [method, path, "HTTP/1.1" | "HTTP/1.0"] = first[..] else { return Err("400 Bad Request") };
    if values(request, "host") != [host] {
        return Err("403 Forbidden");
    }
    let (token, rest) = path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
    Ok(AskedPath { method, token, rest })
}

/// The values of the header `name` of `request`.
pub(super) fn values<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let lines = request.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(named, _)| named.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

/// Whether both words are the same; how long that takes does not say where they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The head of a request; None: it ends before, or is too long.
pub(super) fn request(stream: &mut impl Read) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    while !bytes.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        if read == 0 || bytes.len() > LONGEST_REQUEST {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(bytes).ok())
}

/// The head of an answer, with `more` lines.
pub(super) fn head(status: &str, kind: &str, length: u64, more: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\nConnection: close\r\n\r\n"
    )
}

/// `text` as a value of a header: what is no letter or digit as `%XX`.
pub(super) fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded() {
        let mut endless = io::repeat(b'a');
        assert_eq!(request(&mut endless).unwrap(), None);
        assert_eq!(request(&mut &b"GET / HTTP/1.1\r\n"[..]).unwrap(), None);
        assert_eq!(request(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]).unwrap().as_deref(), Some("GET / HTTP/1.1\r\n\r\n"));
    }

    #[test]
    fn a_name_stays_in_its_header() {
        assert_eq!(encoded("a b\r\nX: ä.tape"), "a%20b%0D%0AX%3A%20%C3%A4.tape");
    }
}

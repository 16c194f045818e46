//! What `record trigger` and `record status` ask a running recorder, and its answers: one line each way, over a socket.
//!
//! Neither side believes the other's bytes: they are bounded ([`read_request`], [`read_answer`]), and what is printed of
//! an answer acts on no terminal ([`tape`], [`status`]). Who is at the other end is the caller's to know.

use std::io::{self, ErrorKind, Read};
use std::time::Instant;

use serde_json::Value;
use systape_abi::{plain, plain_json};

/// Most bytes of a request, without the end of its line.
pub const MOST_REQUEST: usize = 4096;
/// Most bytes of an answer.
pub const MOST_ANSWER: usize = 1 << 20;
/// Longest name of a tape that is asked for, in bytes.
const MOST_NAME: usize = 200;
/// Longest name of a file, in bytes.
const MOST_FILE_NAME: usize = 255;
/// Bytes of one read.
const PIECE: usize = 4096;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The numbers.
    Status,
    /// A tape, and what it is about.
    Trigger(Option<String>),
}

impl Request {
    /// The request of a line, without its end.
    ///
    /// # Errors
    /// A sentence for whoever asks.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let line = String::from_utf8_lossy(line);
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "status" => Ok(Self::Status),
            "trigger" if rest.len() > MOST_NAME => Err(format!("a name has at most {MOST_NAME} bytes")),
            "trigger" => Ok(Self::Trigger((!rest.is_empty()).then(|| rest.to_owned()))),
            _ => Err("there are trigger [NAME] and status".to_owned()),
        }
    }

    /// The line, with its end.
    pub fn line(&self) -> String {
        match self {
            Self::Status => "status\n".to_owned(),
            Self::Trigger(None) => "trigger\n".to_owned(),
            Self::Trigger(Some(name)) => format!("trigger {}\n", name.replace('\n', " ")),
        }
    }
}

/// Reads a request's line until `until`, without its end; also one that ends with the connection.
///
/// # Errors
/// It is too long, comes too slowly, or cannot be read. A reader that waits must do so for a bounded time.
pub fn read_request(from: &mut impl Read, until: Instant) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut piece = [0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(read) => piece.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(read.get(..end.unwrap_or(read.len())).unwrap_or_default());
        if line.len() > MOST_REQUEST {
            return Err(io::Error::other(format!("a request has at most {MOST_REQUEST} bytes")));
        }
        if end.is_some() || read.is_empty() {
            return Ok(line);
        }
        if Instant::now() > until {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}

/// Reads an answer to its end. A recorder that waits for a disk sends a blank now and then: what is silent for as long as
/// a read of `from` waits has died.
///
/// # Errors
/// A sentence about a recorder that does not answer, or not in this language.
pub fn read_answer(from: &mut impl Read) -> Result<Value, String> {
    let mut answer = Vec::new();
    let mut piece = [0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) if answer.is_empty() => return Err("the recorder ended before it answered".to_owned()),
            Ok(0) => break,
            Ok(read) => piece.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err("the recorder does not answer: it is stopped, or has hung".to_owned());
            }
            Err(error) => return Err(format!("the recorder's answer cannot be read: {error}")),
        };
        let read = if answer.is_empty() { read.trim_ascii_start() } else { read };
        answer.extend_from_slice(read);
        if answer.len() > MOST_ANSWER {
            return Err(format!("the answer is longer than {} KiB: it is no recorder's", MOST_ANSWER >> 10));
        }
    }
    serde_json::from_slice(&answer).map_err(|_| "the answer is no JSON: it is no recorder's".to_owned())
}

/// The file name of the tape that an answer to [`Request::Trigger`] has.
///
/// # Errors
/// Why there is none; a name that is none of a file in the directory of tapes.
pub fn tape(answer: &Value) -> Result<&str, String> {
    let Some(name) = answer["tape"].as_str() else {
        return Err(plain(answer["error"].as_str().unwrap_or("there is no tape")).into_owned());
    };
    let is_name = !name.is_empty() && name.len() <= MOST_FILE_NAME && !name.starts_with('.') && !name.contains('/');
    if is_name && plain(name) == name {
        Ok(name)
    } else {
        Err(format!("the answer names no tape, but {}", plain(name)))
    }
}

/// An answer to [`Request::Status`] as one line of JSON.
pub fn status_json(answer: &Value) -> String {
    plain_json(&answer.to_string()).into_owned()
}

/// An answer to [`Request::Status`] as lines of text.
pub fn status(answer: &Value) -> Vec<String> {
    let number = |key: &str| answer[key].as_u64().unwrap_or(0);
    let seconds = |key: &str| number(key) as f64 / 1e9;
    let asked = answer["asked_ns"].as_u64().map_or(String::new(), |ns| format!(" of the last {} s", ns as f64 / 1e9));
    let full = if answer["full"] == true { ": the ring is full" } else { "" };
    let mut lines = vec![
        format!(
            "recorder    pid {}, for {:.0} s, {:.1} s of CPU, {} MiB",
            number("pid"),
            seconds("recording_ns"),
            seconds("cpu_ns"),
            number("rss_bytes") >> 20
        ),
        format!(
            "holds       {:.1} s{asked} in {} of {} MiB{full}",
            seconds("held_ns"),
            number("used_bytes") >> 20,
            number("ring_bytes") >> 20
        ),
        format!("events      {}, {} lost", number("events"), number("lost")),
        format!(
            "tapes       {} written, {} failed{}",
            number("tapes"),
            number("failed"),
            if answer["writing"] == true { ", one is being written" } else { "" }
        ),
    ];
    let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    for trigger in list("triggers") {
        let count = |key: &str| trigger[key].as_u64().unwrap_or(0);
        let on = trigger["on"].as_str().unwrap_or_default();
        lines.push(format!("trigger     {}: {} times, {} suppressed", plain(on), count("fired"), count("suppressed")));
    }
    for written in list("last") {
        let text = |key: &str| written[key].as_str().map(|text| plain(text).into_owned());
        let result = text("tape").unwrap_or_else(|| format!("no tape: {}", text("error").unwrap_or_default()));
        let (at, what) = (text("at").unwrap_or_default(), text("what").unwrap_or_default());
        lines.push(format!("last        {at} {what}: {result}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;
    use systape_abi::is_unsafe;

    /// Gives one byte a read, and an error at the end instead of it.
    struct Drip<'a>(&'a [u8], Option<ErrorKind>);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match (self.0.split_first(), self.1) {
                (Some((first, rest)), _) => {
                    (buf[0], self.0) = (*first, rest);
                    Ok(1)
                }
                (None, Some(kind)) => Err(kind.into()),
                (None, None) => Ok(0),
            }
        }
    }

    #[test]
    fn requests_are_lines() {
        for request in [Request::Status, Request::Trigger(None), Request::Trigger(Some("deploy 7".into()))] {
            let line = request.line();
            let read = read_request(&mut Drip(line.as_bytes(), None), Instant::now() + Duration::from_secs(9)).unwrap();
            assert_eq!(Request::parse(&read), Ok(request));
        }
        assert_eq!(Request::Trigger(Some("a\nb".into())).line(), "trigger a b\n");
        assert!(Request::parse(b"").is_err() && Request::parse(b"stop").is_err());
        assert!(Request::parse(&[b"trigger ", &[b'x'; 201][..]].concat()).unwrap_err().contains("200 bytes"));
    }

    #[test]
    fn a_request_is_bounded() {
        let until = Instant::now() + Duration::from_secs(9);
        assert_eq!(read_request(&mut Drip(b"status", None), until).unwrap(), b"status");
        assert!(read_request(&mut io::repeat(b'x'), until).unwrap_err().to_string().contains("4096"));
        let slow = read_request(&mut Drip(b"status\n", None), Instant::now() - Duration::from_millis(1));
        assert_eq!(slow.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn an_answer_is_bounded() {
        assert_eq!(read_answer(&mut Drip(b"  \n {\"tape\": \"a.tape\"}\n", None)), Ok(json!({"tape": "a.tape"})));
        let why = |answer: &[u8], end| read_answer(&mut Drip(answer, end)).unwrap_err();
        assert!(why(b" ", None).contains("ended before"));
        assert!(why(b"  {", Some(ErrorKind::WouldBlock)).contains("does not answer"));
        assert!(why(b"{\"tape\"", None).contains("no JSON"));
        assert!(read_answer(&mut io::repeat(b'[')).unwrap_err().contains("1024 KiB"));
        assert!(read_answer(&mut (&b"["[..]).chain(io::repeat(b'[').take(100_000))).is_err(), "deep");
    }

    #[test]
    fn an_answer_acts_on_no_terminal() {
        let hostile = "x\u{1b}]0;owned\u{7}\u{1b}[31m\nfake\r\u{202e}\0";
        let long = "y".repeat(4096);
        for word in [hostile, &long, "../x.tape", "/x.tape", ".", ""] {
            let why = tape(&json!({"tape": word})).unwrap_err();
            assert!(!why.contains(is_unsafe), "{why:?}");
        }
        assert_eq!(tape(&json!({"tape": "web-1.tape"})), Ok("web-1.tape"));
        let why = tape(&json!({"error": hostile})).unwrap_err();
        assert!(why.starts_with("x\\x1b]0;owned") && !why.contains(is_unsafe), "{why:?}");
        let answer = json!({
            "triggers": [{"on": hostile}],
            "last": [{"at": hostile, "what": hostile, "tape": hostile}, {"what": hostile, "error": hostile}],
        });
        let lines = status(&answer);
        assert_eq!(lines.len(), 7);
        assert!(lines.iter().all(|line| !line.contains(is_unsafe)), "{lines:?}");
        let json = status_json(&answer);
        assert!(!json.contains(is_unsafe), "{json:?}");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), answer, "and is the same");
        // an answer of another shape
        assert_eq!(status(&json!([1])).len(), 4);
    }
}

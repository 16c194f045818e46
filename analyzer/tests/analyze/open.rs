//! `analyze open` as a browser asks it: the page, the tape, and nothing else; or the trace, once, by Perfetto's page alone.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Place, program};

/// A server that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Begins to serve `tape` with the viewer in `page`, and says host and token.
fn serve(page: &Path, tape: &Path) -> (Server, String, String) {
    let mut command = Command::new(program());
    command.env("SYSTAPE_VIEWER", page);
    begin(command, tape)
}

/// The same by `command`.
fn begin(mut command: Command, tape: &Path) -> (Server, String, String) {
    command.arg("open").arg(tape);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (host, token) = line.trim_end().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let token = token.strip_suffix('/').unwrap().to_owned();
    assert!(token.len() == 32 && host.starts_with("127.0.0.1:"), "{line}");
    let host = host.to_owned();
    (Server(child), host, token)
}

/// The head and the body of the answer to `request`.
fn ask(host: &str, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    (String::from_utf8(answer[..at].to_vec()).unwrap(), answer[at + 4..].to_vec())
}

#[test]
fn without_a_viewer_a_browser_gets_the_page_of_report() {
    let place = Place::new();
    // a viewer that somebody made lies beside the program that is tested
    let bare = place.path("analyze");
    fs::copy(program(), &bare).unwrap();
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/ledger-1.3.tape");
    let mut command = Command::new(&bare);
    command.env_remove("SYSTAPE_VIEWER");
    let (_server, host, token) = begin(command, &tape);
    let (head, body) = ask(&host, &format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/html"), "{head}");
    let page = place.path("page.html");
    let written = Command::new(program()).arg("report").arg(&tape).arg("-o").arg(&page).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    assert_eq!(String::from_utf8(body).unwrap(), fs::read_to_string(&page).unwrap());
}

#[test]
fn a_browser_gets_the_page_and_the_tape() {
    let place = Place::new();
    let page = place.path("viewer.html");
    fs::write(&page, "<meta content=\"default-src 'none'; connect-src 'none'\">").unwrap();
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/ledger-1.3.tape");
    let (_server, host, token) = serve(&page, &tape);
    let get = |path: &str, host_named: &str| ask(&host, &format!("GET {path} HTTP/1.1\r\nHost: {host_named}\r\n\r\n"));
    let (head, body) = get(&format!("/{token}/"), &host);
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/html"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), "<meta content=\"default-src 'none'; connect-src 'self'\">");
    let (head, body) = get(&format!("/{token}/tape"), &host);
    assert!(head.contains("X-Tape-Name: ledger-1.3.tape") && head.contains("Cache-Control: no-store"), "{head}");
    assert_eq!(body, fs::read(&tape).unwrap());
    for (path, named, status) in [
        ("/".to_owned(), host.as_str(), "404"),
        (format!("/{}/tape", "0".repeat(32)), &host, "404"),
        (format!("/{token}/../etc/passwd"), &host, "404"),
        (format!("/{token}/tape"), "example.com", "403"),
    ] {
        let (head, body) = get(&path, named);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && body.is_empty(), "{path} of {named}: {head}");
    }
    // whoever asks nothing does not keep others from asking
    let _silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(&host).unwrap()).collect();
    assert!(get(&format!("/{token}/"), &host).0.starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn what_cannot_be_opened_is_said() {
    let place = Place::new();
    let page = place.path("other.html");
    fs::write(&page, "<html>").unwrap();
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/ledger-1.3.tape");
    let said = |page: &Path, tape: &Path| {
        let output = Command::new(program()).arg("open").arg(tape).env("SYSTAPE_VIEWER", page).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&page, &tape).contains("other.html is not the viewer: 'make viewer' makes"), "{}", said(&page, &tape));
    assert!(said(&place.path("none.html"), &tape).contains("none.html cannot be read"));
    assert!(said(&page, &place.path("none.tape")).contains("none.tape: no such file"));
}

#[test]
fn perfettos_page_gets_the_trace_once() {
    let place = Place::new();
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/mix-1.5.tape");
    let mut command = Command::new(program());
    command.args(["open", "--perfetto"]).arg(&tape).env("TMPDIR", place.path(""));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut server = Server(child);
    let mut link = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut link).unwrap();
    if link.is_empty() {
        let mut said = String::new();
        server.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("loads from port 9001 of this machine alone"), "{said}");
        eprintln!("SKIPPED: another program has port 9001");
        return;
    }
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 0, "the trace has no name any more");
    let here = link.trim_end().strip_prefix("https://ui.perfetto.dev/#!/?url=http://").unwrap();
    let (host, path) = here.split_once('/').unwrap();
    assert!(host == "127.0.0.1:9001" && path.ends_with("/mix-1_5.pftrace"), "{link}");
    let origin = "Origin: https://ui.perfetto.dev\r\n";
    let get = |method: &str, path: &str, more: &str| {
        ask(host, &format!("{method} /{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"))
    };
    for (method, path, more, status) in [
        ("GET", path, "", "403 Forbidden"),
        ("GET", path, "Origin: https://example.com\r\n", "403 Forbidden"),
        ("GET", "0123/mix-1_5.pftrace", origin, "404 Not Found"),
        ("POST", path, origin, "405 Method Not Allowed"),
        ("OPTIONS", path, origin, "204 No Content"),
        ("HEAD", path, origin, "200 OK"),
    ] {
        let (head, body) = get(method, path, more);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}\r\n")) && body.is_empty(),
            "{method} {path} {more}: {head}"
        );
        assert_eq!(head.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"), status.starts_with('2'));
    }
    let (head, body) = get("GET", path, origin);
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(server.0.wait().unwrap().success(), "it ends when the page has the trace");
    let file = place.path("own.pftrace");
    let own = Command::new(program()).args(["export", "perfetto", "-o"]).args([&file, &tape]).status().unwrap();
    assert!(own.success());
    assert_eq!(body, fs::read(&file).unwrap());
}

//! `--debuginfod`: files with symbols come from a server by build id, and a hostile one costs its names alone.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::stacks::{self, PROGRAM};
use crate::common::{self, Place};

/// A server that answers each path by `answer`; what it was asked for is kept.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    // it ends with the test
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().and_then(Result::ok).unwrap_or_default();
            // its headers
            lines.map_while(Result::ok).find(String::is_empty);
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            kept.lock().unwrap().push(path.clone());
            answer(&path, &mut stream);
        }
    });
    Server { url, asked }
}

fn body(stream: &mut TcpStream, bytes: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
    // who asked may be gone
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
}

fn status(stream: &mut TcpStream, line: &str) {
    let _ = stream.write_all(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
}

/// A place with a tape of one frame, and the program that has its name; None: without gcc or curl.
fn place() -> Option<(Place, Vec<u8>, u64)> {
    let place = Place::new();
    let program = stacks::program(&place)?;
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no curl");
        return None;
    }
    stacks::one_frame(&place.path("a.tape"), program.mapping(), program.offset);
    let bytes = fs::read(place.path("files/a")).unwrap();
    Some((place, bytes, program.offset))
}

/// The folded stack, and what was told; `urls` as the variable has them.
fn folded(place: &Place, urls: &str, more: &[(&str, &str)]) -> (String, String) {
    let output = Command::new(common::program())
        .args(["callgraph", "--folded", "--debuginfod", "a.tape"])
        .current_dir(place.path("."))
        .env("DEBUGINFOD_URLS", urls)
        .env("DEBUGINFOD_CACHE_PATH", place.path("cache"))
        .env_remove("http_proxy")
        .envs(more.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into()
}

/// Files in the cache.
fn kept(place: &Place) -> Vec<String> {
    let dir = place.path("cache").join(PROGRAM);
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_fetched_once_and_kept_as_other_programs_keep_it() {
    let Some((place, bytes, _)) = place() else { return };
    let empty = serve(|_, stream| status(stream, "404 Not Found"));
    let server =
        serve(
            move |path, stream| {
                if path.ends_with("/debuginfo") { body(stream, &bytes) } else { status(stream, "404 Not Found") }
            },
        );
    let urls = format!("{} ima:enforcing {}/", empty.url, server.url);
    let (out, err) = folded(&place, &urls, &[]);
    assert!(out.contains("app;outer;inner 1") && err.is_empty(), "{out}{err}");
    let path = format!("/buildid/{PROGRAM}/debuginfo");
    assert_eq!(*server.asked.lock().unwrap(), std::slice::from_ref(&path));
    assert_eq!(*empty.asked.lock().unwrap(), [path]);
    assert_eq!(kept(&place), ["debuginfo"]);
    assert_eq!(folded(&place, &urls, &[]).0, out);
    assert_eq!(server.asked.lock().unwrap().len(), 1, "the second time it is there");
    // what a client keeps of what no server has is no file
    fs::write(place.path("cache").join(PROGRAM).join("debuginfo"), "").unwrap();
    assert_eq!(folded(&place, &urls, &[]).0, out);
}

#[test]
fn a_program_does_where_no_debug_file_is_there() {
    let Some((place, bytes, offset)) = place() else { return };
    let server =
        serve(
            move |path, stream| {
                if path.ends_with("/executable") { body(stream, &bytes) } else { status(stream, "404 Not Found") }
            },
        );
    assert!(folded(&place, &server.url, &[]).0.contains("outer"));
    assert_eq!(kept(&place), ["executable"]);
    fs::remove_dir_all(place.path("cache")).unwrap();
    let none = serve(|_, stream| status(stream, "404 Not Found"));
    let nameless = format!("app;[{offset:#x}] (/usr/bin/gone) 1\n");
    assert_eq!(folded(&place, &none.url, &[]), (nameless, String::new()));
    assert_eq!(kept(&place).len(), 0);
}

#[test]
fn a_hostile_server_costs_its_names_alone() {
    let Some((place, bytes, offset)) = place() else { return };
    let nameless = format!("app;[{offset:#x}] (/usr/bin/gone) 1\n");
    let of = |why: &str, server: &Server, more: &[(&str, &str)]| {
        let (out, err) = folded(&place, &server.url, more);
        assert_eq!(out, nameless, "{why}: {err}");
        assert!(err.contains(why) && err.lines().count() == 1, "{why}: {err}");
        assert_eq!(kept(&place).len(), 0, "{why}");
    };
    let endless = serve(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[0x7f; 1 << 16]).is_ok() {}
    });
    of("more than 1000000 bytes", &endless, &[("DEBUGINFOD_MAXSIZE", "1000000")]);
    let huge = serve(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n");
    });
    of("file size", &huge, &[]);
    let mut other = bytes.clone();
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&PROGRAM[2 * at..2 * at + 2], 16).unwrap()).collect();
    let at = other.windows(20).position(|window| window == id).unwrap();
    other[at] ^= 1;
    of("no ELF file with this build id", &serve(move |_, stream| body(stream, &other)), &[]);
    of("no ELF file with this build id", &serve(|_, stream| body(stream, b"<html>sign in</html>")), &[]);
    let local = format!("file://{}", place.path("files/a").display());
    let moved = serve(move |_, stream| status(stream, &format!("302 Found\r\nLocation: {local}")));
    of("rotocol", &moved, &[]);
    let circle = serve(|path, stream| status(stream, &format!("302 Found\r\nLocation: {path}")));
    of("redirects", &circle, &[]);
    let slow = serve(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(&[0x7f]).is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    of("too slow", &slow, &[("DEBUGINFOD_TIMEOUT", "2")]);
    let silent = serve(|_, stream| drop(stream.try_clone().map(std::mem::forget)));
    of("imed out", &silent, &[("DEBUGINFOD_MAXTIME", "2")]);
    of("500", &serve(|_, stream| status(stream, "500 Out of order")), &[]);
    let nobody = Server { url: "http://127.0.0.1:1".to_owned(), asked: Arc::default() };
    of("onnect", &nobody, &[]);
}

#[test]
fn nobody_is_asked_without_a_server_or_a_stack() {
    let Some((place, ..)) = place() else { return };
    let ask = |words: &str, urls: &str| {
        let command = Command::new(common::program())
            .args(words.split(' '))
            .current_dir(place.path("."))
            .env("DEBUGINFOD_URLS", urls)
            .env("DEBUGINFOD_CACHE_PATH", place.path("cache"))
            .output()
            .unwrap();
        (command.status.code(), String::from_utf8(command.stderr).unwrap())
    };
    let (status, err) = ask("callgraph --debuginfod a.tape", "");
    assert!(status == Some(2) && err.contains("DEBUGINFOD_URLS is empty"), "{err}");
    let (status, err) = ask("callgraph --debuginfod=file:///etc a.tape", "");
    assert!(status == Some(2) && err.contains("https:// or http://"), "{err}");
    let (status, err) = ask("--debuginfod a.tape", "http://127.0.0.1:1");
    assert!(status == Some(2) && err.contains("names functions on stacks"), "{err}");
    let server = serve(|_, stream| status_of(stream));
    assert_eq!(ask("callgraph a.tape", &server.url).0, Some(0));
    assert_eq!(server.asked.lock().unwrap().len(), 0, "only who asks for it");
    assert!(!place.path("cache").exists());
}

fn status_of(stream: &mut TcpStream) {
    status(stream, "404 Not Found");
}

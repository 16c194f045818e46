//! `names FILE OFFSET…` prints what stands at file offsets (hexadecimal); the time it took goes to standard error.
//!
//! It shows how a program uses the crate: it is its own child, told by a first argument.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use systape_symbols::{File, Resolver, run_child};

const CHILD: &str = "--symbol-reader";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CHILD) {
        return run_child();
    }
    match names(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn names(arguments: &[String]) -> Result<(), String> {
    let (path, offsets) = arguments.split_first().ok_or("usage: names FILE OFFSET...")?;
    let file = fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let parse = |offset: &String| u64::from_str_radix(offset, 16).map_err(|error| format!("{offset}: {error}"));
    let offsets = offsets.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let mut resolver = Resolver::new(vec!["/proc/self/exe".into(), CHILD.into()], Vec::new());
    let found = resolver.look_up(&File { fd: file.as_fd(), path: Path::new(path), build_id: &[] }, &offsets)?;
    eprintln!("{} offsets in {:?}", offsets.len(), start.elapsed());
    let mut out = std::io::stdout().lock();
    for (offset, functions) in offsets.iter().zip(found) {
        for f in functions {
            let (name, file) = (String::from_utf8_lossy(&f.name), String::from_utf8_lossy(&f.file));
            // A closed pipe ends it.
            writeln!(out, "{offset:x} {name} {file}:{}", f.line).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

//! The child's side: limits, then one file after the other.

mod facts;
mod limits;
mod mapped;
mod opened;
mod packed;
mod reader;
mod rules;
mod sandbox;
mod separate;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use systape_format::model::Function;

use crate::perf_map::PerfMap;
use crate::wire::{self, MessageIn, MessageOut};
pub(crate) use limits::stand_alone;
use reader::Reader;

fn check(ret: libc::c_int) -> io::Result<()> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The child's side: takes requests from its standard input, a socket, until that ends. To be called first in main.
pub fn run_child() -> ExitCode {
    if limits::confine().is_err() {
        return ExitCode::FAILURE;
    }
    // Refused inside the sandbox of `analyze`, which has to do then.
    let _ = sandbox::enter();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return ExitCode::FAILURE };
    let mut child = ReaderChild::default();
    while let Ok(Some((message, fds))) =
        crate::socket::receive(&socket, wire::LONGEST_REQUEST, &crate::socket::for_ever)
    {
        let Some(answer) = child.answer(&message, fds.into_iter().next()) else { return ExitCode::FAILURE };
        if crate::socket::send(&socket, &answer.0, &[], &crate::socket::for_ever).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Answers any bytes, for fuzzers: no request without a descriptor touches a file, and SETUP is left out, which limits the process.
#[cfg(feature = "exercise")]
pub(crate) fn exercise(message: &[u8]) {
    if message.first() != Some(&wire::SETUP) {
        // of CPU time there is no end
        let _ = ReaderChild { cpu_seconds: u32::MAX, ..ReaderChild::default() }.answer(message, None);
    }
}

#[derive(Default)]
struct ReaderChild {
    cpu_seconds: u32,
    debug_dirs: Vec<PathBuf>,
    content: Option<Content>,
    modules: rules::Modules,
}

/// Source of names.
enum Content {
    Elf(Box<Reader>),
    Map(PerfMap),
}

impl Content {
    fn names(&self, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        let map = match self {
            Self::Elf(reader) => return reader.names(offsets),
            Self::Map(map) => map,
        };
        let name = |address: &u64| match map.lookup(*address) {
            Some((name, _)) => vec![Function { name: name.to_vec(), ..Function::default() }],
            None => Vec::new(),
        };
        Ok(offsets.iter().map(name).collect())
    }
}

impl ReaderChild {
    /// None = the request is invalid.
    fn answer(&mut self, message: &[u8], fd: Option<OwnedFd>) -> Option<MessageOut> {
        let mut input = MessageIn(message);
        match input.u8()? {
            wire::SETUP => self.set_up(&mut input),
            wire::OPEN => {
                self.content = None;
                limits::more_cpu(self.cpu_seconds);
                let build_id = input.bytes(wire::LONGEST_STRING)?;
                let path = input.bytes(wire::LONGEST_STRING)?;
                Some(match Reader::open(fd?.into(), build_id, path, &self.debug_dirs) {
                    Ok(reader) => {
                        self.content = Some(Content::Elf(Box::new(reader)));
                        MessageOut::new(wire::OK)
                    }
                    Err(why) => failed(&why),
                })
            }
            wire::MAP => {
                self.content = None;
                limits::more_cpu(self.cpu_seconds);
                Some(match PerfMap::read(&File::from(fd?)) {
                    Ok(map) => {
                        self.content = Some(Content::Map(map));
                        MessageOut::new(wire::OK)
                    }
                    Err(why) => failed(&format!("its perf map cannot be read: {why}")),
                })
            }
            wire::NAMES => {
                let n = input.count(wire::MOST_OFFSETS)?;
                let offsets = (0..n).map(|_| input.u64()).collect::<Option<Vec<_>>>()?;
                Some(match self.content.as_ref()?.names(&offsets) {
                    Ok(names) => all_that_fit(&names),
                    Err(why) => failed(&why),
                })
            }
            kind @ wire::UNWIND..=wire::FORGET => self.modules.answer(kind, &mut input, fd, self.cpu_seconds),
            kind @ (wire::FUNCTION..=wire::IDENT | wire::EXECUTED) => {
                self.content = None;
                limits::more_cpu(self.cpu_seconds);
                facts::answer(kind, &mut input, fd)
            }
            wire::CLOSE => {
                self.content = None;
                limits::give_memory_back();
                Some(MessageOut::new(wire::OK))
            }
            _ => None,
        }
    }

    fn set_up(&mut self, input: &mut MessageIn<'_>) -> Option<MessageOut> {
        limits::memory(input.u64()?).ok()?;
        self.cpu_seconds = input.u32()?;
        for _ in 0..input.count(wire::MOST_OFFSETS)? {
            self.debug_dirs.push(bytes_to_path(input.bytes(wire::LONGEST_STRING)?));
        }
        let mut out = MessageOut::new(wire::OK);
        out.u32(wire::MAGIC);
        Some(out)
    }
}

fn failed(why: &str) -> MessageOut {
    let mut out = MessageOut::new(wire::FAILED);
    out.bytes(&why.as_bytes()[..why.len().min(wire::LONGEST_REASON)]);
    out
}

fn all_that_fit(names: &[Vec<Function>]) -> MessageOut {
    let mut out = MessageOut::new(wire::OK);
    out.u32(0);
    let mut fit = 0u32;
    for functions in names {
        let before = out.0.len();
        out.functions(functions);
        if out.0.len() > wire::LONGEST_ANSWER {
            out.0.truncate(before);
            break;
        }
        fit += 1;
    }
    out.0[1..5].copy_from_slice(&fit.to_ne_bytes());
    out
}

fn bytes_to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

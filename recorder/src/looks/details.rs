//! What a new stay waits for: its file, path, lock and functions of the kernel.
//!
//! Reading another task's memory takes its mmap lock, and may wait for it as long as whoever holds it does. So this is a thread of
//! its own: while it hangs, stays have no details. The name of the descriptor's file is read first, and the program that reads the
//! rest checks that the thread left no CPU before and after: then all of it is of one stay.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use systape_abi::{Abi, ArgKind, describe};
use systape_bpf::wire::{LookAsk, LookDetail, LookNote, SNAP_NO_CALL, STAY_BOUND, STAY_CONNECTED};

use super::UNKNOWN;
use crate::descriptors::sockets;
use crate::load::LookCopier;
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::priority;

/// Stays that may wait to be read.
const WAITING: usize = 1024;
/// Longest name of a file that is kept.
const LONGEST: usize = 4096;

/// What a stay waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StayDetail {
    /// Whether it was read, all of it during the stay.
    pub read: bool,
    /// Name of the file; empty = none.
    pub file: Vec<u8>,
    /// Whether the file is a TCP socket that connected itself, not one that was accepted; None: not known.
    pub connected: Option<bool>,
    /// Path argument; empty = none.
    pub path: Vec<u8>,
    /// Address of the futex.
    pub lock: Option<u64>,
    /// Thread that holds the futex; 0 = not noted there.
    pub owner: u32,
    /// Addresses of functions.
    pub stack: Vec<u8>,
}

/// The thread that reads, and what it read.
#[derive(Debug)]
pub(crate) struct Copying {
    ask: Sender<(u64, LookNote)>,
    copied: Receiver<(u64, StayDetail)>,
    cpu: Arc<AtomicU64>,
    uncopied: u64,
}

impl Copying {
    /// Starts the thread.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn start(mut copier: LookCopier) -> Result<Self> {
        let (ask, asked) = bounded::<(u64, LookNote)>(WAITING);
        let (tell, copied) = unbounded();
        let cpu = Arc::new(AtomicU64::new(0));
        let spent = Arc::clone(&cpu);
        let work = move || {
            priority::raise_own();
            let mut before = clock::thread_cpu();
            for (serial, note) in asked {
                let sent = tell.send((serial, copy(&mut copier, &note)));
                let now = clock::thread_cpu();
                spent.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
                before = now;
                if sent.is_err() {
                    return;
                }
            }
        };
        let name = "look-copy";
        thread::Builder::new().name(name.into()).spawn(counted(name, work)).context("cannot start a thread")?;
        Ok(Self { ask, copied, cpu, uncopied: 0 })
    }

    /// Has a stay read; false: there is no room.
    pub(crate) fn ask(&self, serial: u64, note: &LookNote) -> bool {
        self.ask.try_send((serial, *note)).is_ok()
    }

    /// What was read since.
    pub(crate) fn copied(&self) -> Vec<(u64, StayDetail)> {
        self.copied.try_iter().collect()
    }

    /// CPU time of the thread since the last call, ns.
    pub(crate) fn take_cpu(&self) -> u64 {
        self.cpu.swap(0, Ordering::Relaxed)
    }

    /// A stay is stored without what it waits for.
    pub(crate) fn count_uncopied(&mut self) {
        self.uncopied += 1;
    }

    /// How many were since the last call.
    pub(crate) fn take_uncopied(&mut self) -> u64 {
        std::mem::take(&mut self.uncopied)
    }
}

/// What is to be read: descriptor, address of a futex, address of a path.
fn wanted(note: &LookNote) -> (Option<i32>, Option<u64>, Option<u64>) {
    if note.nr == SNAP_NO_CALL {
        return (None, None, None);
    }
    let Some(desc) = describe(Abi::from_raw(note.abi), note.nr) else { return (None, None, None) };
    let args = || desc.args.iter().zip(note.args);
    let fd = args().find(|(arg, _)| matches!(arg.kind, ArgKind::Fd)).map(|(_, value)| value as i32);
    let futex = args().find(|(arg, _)| matches!(arg.kind, ArgKind::Futex)).map(|(_, value)| value);
    let path = args().find(|(arg, _)| matches!(arg.kind, ArgKind::Path)).map(|(_, value)| value);
    (fd.filter(|fd| *fd >= 0), futex, path.filter(|address| *address != 0))
}

/// Whether it is a poll of one descriptor: other polls are not noted.
fn polls(note: &LookNote) -> bool {
    Abi::from_raw(note.abi) == Abi::X86_64 && systape_abi::number(Abi::X86_64, "poll") == Some(note.nr)
}

/// Reads what the thread of `note` waits for.
fn copy(copier: &mut LookCopier, note: &LookNote) -> StayDetail {
    let (mut fd, futex, text) = wanted(note);
    if polls(note) {
        // the descriptor is in memory: the first word of what the first argument points to
        let ask = LookAsk { futex: note.args[0], ..ask_of(note) };
        let Some(detail) = copier.copy(&ask).filter(|detail| detail.same != 0 && detail.has_futex != 0) else {
            return StayDetail::default();
        };
        fd = i32::try_from(detail.futex[0]).ok();
    }
    let linked = |fd: i32| fs::read_link(format!("/proc/{}/fd/{fd}", note.here_tid)).ok();
    let link = fd.filter(|_| note.here_tid != 0).and_then(linked);
    let ask = LookAsk {
        fd: fd.map_or(UNKNOWN, |fd| u64::from(fd.unsigned_abs())),
        futex: futex.unwrap_or(UNKNOWN),
        text: text.unwrap_or(UNKNOWN),
        ..ask_of(note)
    };
    let Some(detail) = copier.copy(&ask) else { return StayDetail::default() };
    if detail.same == 0 {
        return StayDetail::default();
    }
    let link = link.map(|link| OsString::from(link).into_vec()).filter(|link| link.len() <= LONGEST);
    StayDetail {
        read: true,
        file: file(&detail, link),
        connected: connected(&detail),
        path: text.map(|_| path(&detail)).unwrap_or_default(),
        lock: futex,
        owner: Some(owner(&detail)).filter(|owner| is_thread(note.here_tid, *owner)).unwrap_or(0),
        stack: addresses(&detail),
    }
}

/// A question about the thread of `note` that asks for nothing.
fn ask_of(note: &LookNote) -> LookAsk {
    let (tid, start, switches) = (note.who.tid.into(), note.who.start, note.switches);
    LookAsk { tid, start, switches, fd: UNKNOWN, futex: UNKNOWN, text: UNKNOWN }
}

/// The name of the file: of a socket its ends, as the recorder's start names it.
fn file(detail: &LookDetail, link: Option<Vec<u8>>) -> Vec<u8> {
    if detail.mode & u64::from(libc::S_IFMT) == u64::from(libc::S_IFSOCK) {
        return sockets::text(&detail.socket).0;
    }
    link.unwrap_or_default()
}

/// See [`StayDetail::connected`].
fn connected(detail: &LookDetail) -> Option<bool> {
    match detail.made as u16 {
        STAY_CONNECTED => Some(true),
        STAY_BOUND => Some(false),
        _ => None,
    }
}

/// The path up to its NUL; empty: it could not be read, or is longer than what was.
fn path(detail: &LookDetail) -> Vec<u8> {
    let bytes = detail.text.get(..detail.text_bytes as usize).unwrap_or(&detail.text);
    bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// Whether `owner` may be a thread of the process of `tid`: what stands behind a lock that is not glibc's is any number. In another pid
/// namespace threads have other numbers.
fn is_thread(tid: u32, owner: u32) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    owner != 0
        && (fs::exists(format!("/proc/{tid}/task/{owner}")).unwrap_or(false)
            || namespace(&tid.to_string()) != namespace("self"))
}

/// Who holds a mutex of glibc, which has the owner 8 bytes behind the word of a contended lock.
fn owner(detail: &LookDetail) -> u32 {
    const CONTENDED: u32 = 2;
    // that of a futex with priority inheritance has the owner in the word itself
    const TID: u32 = 0x3fff_ffff;
    match (detail.has_futex, detail.futex) {
        (0, _) => 0,
        (_, [CONTENDED, _, owner, _]) if owner <= TID => owner,
        _ => 0,
    }
}

fn addresses(detail: &LookDetail) -> Vec<u8> {
    let count = (detail.stack_bytes as usize / 8).min(detail.stack.len());
    detail.stack[..count].iter().flat_map(|address| address.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, args: [u64; 6]) -> LookNote {
        let nr = systape_abi::number(Abi::X86_64, name).unwrap();
        LookNote { nr, abi: Abi::X86_64 as u8, args, ..LookNote::default() }
    }

    #[test]
    fn what_is_read_is_what_the_call_names() {
        assert_eq!(wanted(&note("read", [3, 0x1000, 9, 0, 0, 0])), (Some(3), None, None));
        assert_eq!(wanted(&note("openat", [0xffff_ff9c, 0x1000, 0, 0, 0, 0])), (None, None, Some(0x1000)));
        assert_eq!(wanted(&note("futex", [0x2000, 128, 2, 0, 0, 0])), (None, Some(0x2000), None));
        assert_eq!(wanted(&note("fsync", [u64::MAX, 0, 0, 0, 0, 0])), (None, None, None));
        assert_eq!(wanted(&LookNote { nr: SNAP_NO_CALL, ..LookNote::default() }), (None, None, None));
    }

    #[test]
    fn owners_are_threads_of_the_process() {
        let own = std::process::id();
        assert!(is_thread(own, own) && !is_thread(own, 0) && !is_thread(own, 0x3fff_fffe));
    }

    #[test]
    fn owners_are_told_of_contended_locks_only() {
        let of = |has_futex, futex| owner(&LookDetail { has_futex, futex, ..LookDetail::default() });
        assert_eq!(of(1, [2, 0, 4711, 1]), 4711);
        assert_eq!([of(0, [2, 0, 4711, 1]), of(1, [1, 0, 4711, 1]), of(1, [2, 0, u32::MAX, 1])], [0; 3]);
    }

    #[test]
    fn a_path_ends_at_its_nul() {
        let mut detail = LookDetail::default();
        detail.text[..6].copy_from_slice(b"fifo\0x");
        assert_eq!(path(&detail), b"", "not read");
        detail.text_bytes = 256;
        assert_eq!(path(&detail), b"fifo");
        detail.stack[..2].copy_from_slice(&[1, 2]);
        detail.stack_bytes = 16;
        assert_eq!(addresses(&detail).len(), 16);
        detail.stack_bytes = u32::MAX;
        assert_eq!(addresses(&detail).len(), 512, "bounded");
    }
}

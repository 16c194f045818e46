//! Stacks of threads that sleep when the recording begins: they have no event.
//!
//! Two iterators fetch them (bpf/src/c/asleep.bpf.h). The plain one takes kernel stacks and never waits. The copying
//! one also reads user stacks, which takes each process's mmap lock. It leaves locked ones out, but a lock may be taken
//! right after its check, and a page may have to come from a disk that hangs. So it runs in a thread of its own, and
//! after [`PATIENCE`] without a record the rest goes without user stacks. From the drain on, records take the way of
//! the stack ring's.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use rustc_hash::FxHashMap;
use systape_bpf::wire::{self, Stack};

use crate::kernel::iterate::open_iterator;
use crate::own::cpu_time::counted;
use crate::rings::records::Records;

/// After this time without a record the copying is given up.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the end of a recording waits for these threads.
pub(crate) const END_PATIENCE: Duration = Duration::from_millis(1500);
/// Bytes per read of an iterator.
const READ: usize = 64 << 10;
/// Batches of that size that may wait for the drain.
pub(crate) const BATCHES: usize = 8;
/// Most records of the plain walk kept for tasks that the copying may not reach, a few hundred bytes each.
const MAX_KEPT: usize = 1 << 16;

/// The links of the two iterators.
#[derive(Debug)]
pub(crate) struct Links {
    /// Kernel stacks.
    pub plain: OwnedFd,
    /// User stacks too; None: not supported by the kernel, or not requested.
    pub copying: Option<OwnedFd>,
}

/// Begins to fetch the stacks, which `out` gets in the form of the stack ring. The returned channel is disconnected
/// when all were sent.
///
/// # Errors
/// When a thread cannot be made.
pub(crate) fn start(links: Links, out: Sender<Records>) -> Result<Receiver<()>> {
    let (working, done) = bounded(0);
    let work = move || {
        // a walk that fails costs these stacks, nothing else: their threads count as without one
        fetch(links, &out).ok();
        drop(working);
    };
    thread::Builder::new().name("asleep".into()).spawn(counted("asleep", work)).context("cannot start a thread")?;
    Ok(done)
}

/// Sends the records of all sleepers.
fn fetch(links: Links, out: &Sender<Records>) -> Result<()> {
    let Some(copying) = links.copying else {
        return walk(&links.plain, |batch| out.send(batch).is_ok());
    };
    let mut kept = FxHashMap::default();
    walk(&links.plain, |batch| {
        for record in batch.iter() {
            if let (Some(key), true) = (key(record), kept.len() < MAX_KEPT) {
                kept.insert(key, record.to_vec());
            }
        }
        true
    })?;
    let (tell, told) = bounded(1);
    let copy = move || {
        let sent = walk(&copying, |batch| tell.send(Some(batch)).is_ok());
        if sent.is_ok() {
            tell.send(None).ok();
        }
    };
    thread::Builder::new().name("copy".into()).spawn(counted("copy", copy)).context("cannot start a thread")?;
    for record in supervise(&told, kept, PATIENCE, |batch| out.send(batch).is_ok()) {
        let mut batch = Records::default();
        batch.push(&late(record));
        if out.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

/// Passes the copying's records on; returns those of `kept` that it did not reach. If it reaches its end (None), the
/// tasks without a record have run meanwhile, and are no sleepers.
fn supervise(
    told: &Receiver<Option<Records>>,
    mut kept: FxHashMap<(u32, u64), Vec<u8>>,
    patience: Duration,
    mut out: impl FnMut(Records) -> bool,
) -> Vec<Vec<u8>> {
    loop {
        match told.recv_timeout(patience) {
            Ok(Some(batch)) => {
                batch.iter().filter_map(key).for_each(|key| drop(kept.remove(&key)));
                if !out(batch) {
                    return Vec::new();
                }
            }
            Ok(None) => return Vec::new(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return kept.into_values().collect(),
        }
    }
}

/// Thread and start of a record.
fn key(record: &[u8]) -> Option<(u32, u64)> {
    wire::stack(record).ok().map(|parts| (parts.stack.who.tid, parts.stack.who.start))
}

/// Marks a record of the plain walk: its user part was given up, if it has one.
fn late(mut record: Vec<u8>) -> Vec<u8> {
    let at = std::mem::offset_of!(Stack, hdr) + std::mem::offset_of!(wire::Header, flags);
    if let Some(flags) = record.get_mut(at..at + 2) {
        let old = u16::from_ne_bytes([flags[0], flags[1]]);
        if old & wire::STACK_UNREAD != 0 {
            flags.copy_from_slice(&(old | wire::STACK_LATE).to_ne_bytes());
        }
    }
    record
}

/// Runs an iterator, and passes its records as they come to `tell` until that returns false.
fn walk(link: &OwnedFd, mut tell: impl FnMut(Records) -> bool) -> Result<()> {
    let mut iterator = open_iterator(link.as_fd())?;
    let mut bytes = Vec::new();
    while read_more(&mut iterator, &mut bytes)? {
        let (batch, used) = split(&bytes)?;
        bytes.drain(..used);
        if !batch.is_empty() && !tell(batch) {
            return Ok(());
        }
    }
    Ok(())
}

/// Adds the result of one read; false = the end.
fn read_more(iterator: &mut File, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let had = bytes.len();
    bytes.resize(had + READ, 0);
    let read = loop {
        match iterator.read(&mut bytes[had..]) {
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            other => break other,
        }
    };
    bytes.truncate(had + *read.as_ref().unwrap_or(&0));
    read.map(|read| read > 0)
}

/// The whole records at the beginning of `bytes`, and their length in bytes.
fn split(bytes: &[u8]) -> Result<(Records, usize)> {
    let mut batch = Records::default();
    let mut used = 0;
    while let Some(len) = wire::stack_len(&bytes[used..]).map_err(|bad| anyhow!("{bad:?}"))? {
        batch.push(&bytes[used..used + len]);
        used += len;
    }
    Ok((batch, used))
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The record of a sleeper, with `user` bytes of copy.
    fn record(tid: u32, user: usize, flags: u16) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<Stack>() + user];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &wire::STACK_KIND.to_ne_bytes());
        put(offset_of!(wire::Header, flags), &flags.to_ne_bytes());
        put(offset_of!(Stack, who) + offset_of!(wire::Who, tid), &tid.to_ne_bytes());
        put(offset_of!(Stack, user_bytes), &(user as u32).to_ne_bytes());
        bytes
    }

    fn batch(records: &[Vec<u8>]) -> Records {
        let mut batch = Records::default();
        records.iter().for_each(|record| batch.push(record));
        batch
    }

    fn tids(records: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u32> {
        let mut tids: Vec<u32> = records.into_iter().filter_map(|r| key(r.as_ref())).map(|(tid, _)| tid).collect();
        tids.sort_unstable();
        tids
    }

    #[test]
    fn records_are_cut_where_they_end() {
        let all: Vec<u8> = [record(1, 0, 0), record(2, 100, 0), record(3, 8, 0)].concat();
        for cut in 0..=all.len() {
            let (first, used) = split(&all[..cut]).unwrap();
            let (rest, more) = split(&all[used..]).unwrap();
            assert_eq!(used + more, all.len());
            assert_eq!(tids(first.iter().chain(rest.iter())), [1, 2, 3], "cut at {cut}");
        }
        assert!(split(&vec![0xff; size_of::<Stack>()]).is_err());
    }

    #[test]
    fn whoever_the_copying_did_not_get_to_has_a_kernel_stack() {
        let kept = || (1..=3).map(|tid| ((tid, 0), record(tid, 0, wire::STACK_UNREAD))).collect::<FxHashMap<_, _>>();
        let brought = |end: Option<Option<Records>>| {
            let (tell, told) = bounded(2);
            tell.send(Some(batch(&[record(2, 64, 0)]))).unwrap();
            end.into_iter().for_each(|end| tell.send(end).unwrap());
            let mut passed = Vec::new();
            let patience = Duration::from_millis(20);
            let left = supervise(&told, kept(), patience, |batch| {
                passed.extend(tids(batch.iter()));
                true
            });
            drop(tell);
            (passed, left)
        };
        // it hangs
        let (passed, left) = brought(None);
        assert_eq!((passed, tids(&left)), (vec![2], vec![1, 3]));
        let flags = |record: Vec<u8>| wire::stack(&late(record)).unwrap().stack.hdr.flags;
        assert!(left.into_iter().all(|record| flags(record) == wire::STACK_UNREAD | wire::STACK_LATE));
        assert_eq!(flags(record(9, 0, 0)), 0, "a kernel thread lacks nothing");
        // it ended: the others have run since
        let (passed, left) = brought(Some(None));
        assert_eq!((passed, tids(&left)), (vec![2], vec![]));
    }
}

//! Sums for which there is no memory: sorted runs in a temporary file without a name, which are merged again.
//!
//! The file is made before rights are given up ([`begin`]); it needs no more than `pread` and `pwrite`. Sums come here from
//! [`crate::group::spilling`] and from `states`. What the file does not take makes the report fail ([`end`]): an answer
//! without some of its sums would be wrong.

use std::cmp::Ordering;
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::words::bytes;

/// Bytes that are written at a time.
const PIECE: usize = 256 << 10;
/// Bytes of a run that are read at a time.
const LOOK: usize = 32 << 10;
/// Most runs that are merged at a time: each has a buffer.
pub(crate) const MOST_RUNS: usize = 64;

/// The file of this process.
static STORE: OnceLock<Store> = OnceLock::new();

/// Why sums are not complete: there is no answer then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The temporary file did not take, or give back, all of them.
    #[error("sums need more than --memory, and the temporary file fails: {0} (TMPDIR names another directory)")]
    File(String),
    /// Sums that are kept in memory need more than there is.
    #[error(
        "this report keeps its sums in memory, and they take more than the {} that it has of --memory: ask for fewer (--time, -p, -e, other keys), or give it more",
        bytes(*.limit)
    )]
    Memory {
        /// Bytes that they may have.
        limit: u64,
    },
}

/// A value that can be written and read again.
pub trait Stored: Sized {
    /// Appends it to `out`.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the beginning of `from`; None: there is none.
    fn take(from: &mut &[u8]) -> Option<Self>;
    /// Bytes of it elsewhere in memory.
    fn heap(&self) -> usize;
}

/// Makes the file of this process, which has `memory` bytes: sums have three quarters of them, decoding and what else there is the rest.
pub fn begin(memory: u64) {
    STORE.get_or_init(|| Store::new(made(), usize::try_from(memory / 4 * 3).unwrap_or(usize::MAX)));
}

/// What was put into the file, in words; None: nothing.
///
/// # Errors
/// It did not take, or give back, all of it.
pub fn end() -> Result<Option<String>, SpillError> {
    let Some(Store(inner)) = STORE.get() else { return Ok(None) };
    if let Some(why) = lock(&inner.failed).clone() {
        return Err(SpillError::File(why));
    }
    let end = *lock(&inner.end);
    let limit = bytes(inner.limit as u64);
    let text =
        || format!("sums took more than {limit}, three quarters of --memory: {} in a temporary file", bytes(end));
    Ok((end > 0).then(text))
}

/// Empties the file for the next of several questions: of the one before nothing is in use any more.
pub fn again() {
    if let Some(store) = STORE.get() {
        store.empty();
    }
}

/// Sums that a report keeps in memory, all of them: there may be no more of them than there is memory for.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    bytes: usize,
    /// None: memory has no limit.
    limit: Option<usize>,
}

impl Kept {
    /// One of `share` such that have the memory of this process together.
    pub fn new(share: usize) -> Self {
        Self { bytes: 0, limit: STORE.get().map(|store| store.limit() / share.max(1)) }
    }

    /// Counts so many bytes more. False: there is no memory for them.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.limit.is_none_or(|limit| self.bytes <= limit)
    }

    /// Whether all counted so far have memory.
    ///
    /// # Errors
    /// They do not.
    pub fn check(self) -> Result<(), SpillError> {
        match self.limit.filter(|limit| self.bytes > *limit) {
            Some(limit) => Err(SpillError::Memory { limit: limit as u64 }),
            None => Ok(()),
        }
    }
}

/// A file without a name, on a disk if there is one: /tmp often is memory.
///
/// # Errors
/// No directory takes it (TMPDIR names another one).
pub fn made() -> io::Result<File> {
    let dirs = match std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => vec![PathBuf::from(dir)],
        None => ["/var/tmp", "/tmp"].map(PathBuf::from).to_vec(),
    };
    let mut made = Err(io::ErrorKind::NotFound.into());
    for dir in dirs {
        made = made.or_else(|_: io::Error| tempfile::tempfile_in(dir));
    }
    made
}

/// Reading and writing at a place, elsewhere than on unix: a file has one position there, which is taken in turn.
#[cfg(not(unix))]
trait Positioned {
    fn at<T>(&self, offset: u64, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T>;

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.at(offset, |mut file| io::Read::read_exact(&mut file, buffer))
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.at(offset, |mut file| io::Write::write_all(&mut file, buffer))
    }
}

#[cfg(not(unix))]
impl Positioned for File {
    fn at<T>(&self, offset: u64, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = lock(&TURN);
        let mut file = self;
        io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
        act(file)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file, and how much memory there is before it is used.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Or why there is none.
    file: Result<File, String>,
    limit: usize,
    /// Bytes in the file; who appends holds it.
    end: Mutex<u64>,
    /// The first error.
    failed: Mutex<Option<String>>,
}

impl Store {
    /// The one of this process; None: memory has no limit.
    pub fn of_process() -> Option<Self> {
        STORE.get().cloned()
    }

    fn new(file: io::Result<File>, limit: usize) -> Self {
        // without a file: that matters once one is needed
        let file = file.map_err(|error| error.to_string());
        Self(Arc::new(Inner { file, limit, end: Mutex::new(0), failed: Mutex::default() }))
    }

    /// Makes the file of a test.
    #[cfg(test)]
    pub(crate) fn of_test(limit: usize) -> Self {
        Self::new(tempfile::tempfile(), limit)
    }

    /// Bytes of memory.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// A run that begins now.
    pub fn writer(&self) -> RunWriter<'_> {
        let end = lock(&self.0.end);
        RunWriter { store: self, begin: *end, end, buffer: Vec::with_capacity(PIECE), record: Vec::new() }
    }

    /// Makes at most [`MOST_RUNS`] runs with the records of `runs`, which are in the order `cmp`.
    pub fn narrowed<A: Stored>(
        &self,
        mut runs: Vec<Run>,
        cmp: &impl Fn(&SpilledSum<A>, &SpilledSum<A>) -> Ordering,
    ) -> Vec<Run> {
        while runs.len() > MOST_RUNS {
            let rest = runs.split_off(MOST_RUNS);
            let merged: Vec<Run> = runs;
            let mut writer = self.writer();
            for record in MergedRuns::new(&merged, cmp) {
                writer.put(&record.key, &record.sum);
            }
            runs = rest;
            runs.push(writer.finish());
        }
        runs
    }

    fn fail(&self, why: impl std::fmt::Display) {
        // of several the first says it
        lock(&self.0.failed).get_or_insert_with(|| why.to_string());
    }

    fn empty(&self) {
        let Inner { file, end, failed, .. } = &*self.0;
        *lock(end) = 0;
        *lock(failed) = None;
        // what stays behind the end is written over: it costs nothing but disk space
        let _ = file.as_ref().map(|file| file.set_len(0));
    }
}

/// Appends a run.
pub struct RunWriter<'s> {
    store: &'s Store,
    begin: u64,
    end: std::sync::MutexGuard<'s, u64>,
    buffer: Vec<u8>,
    record: Vec<u8>,
}

impl RunWriter<'_> {
    /// Appends a record.
    pub fn put(&mut self, key: &[u8], sum: &impl Stored) {
        self.record.clear();
        sum.put(&mut self.record);
        put_number(key.len() as u128, &mut self.buffer);
        put_number(self.record.len() as u128, &mut self.buffer);
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(&self.record);
        if self.buffer.len() >= PIECE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let written = match &self.store.0.file {
            Ok(file) => file.write_all_at(&self.buffer, *self.end),
            Err(why) => Err(io::Error::other(why.clone())),
        };
        match written {
            Ok(()) => *self.end += self.buffer.len() as u64,
            Err(error) => self.store.fail(error),
        }
        self.buffer.clear();
    }

    /// The run.
    pub fn finish(mut self) -> Run {
        self.flush();
        Run { store: self.store.clone(), begin: self.begin, end: *self.end }
    }
}

/// Records one behind the other, in some order.
#[derive(Clone, Debug)]
pub struct Run {
    store: Store,
    begin: u64,
    end: u64,
}

impl Run {
    /// Records of the run.
    pub fn cursor(&self) -> Cursor {
        Cursor { run: self.clone(), at: self.begin, buffer: Vec::new(), used: 0 }
    }
}

/// A place in a run.
#[derive(Clone, Debug)]
pub struct Cursor {
    run: Run,
    /// Of the file, behind `buffer`.
    at: u64,
    buffer: Vec<u8>,
    used: usize,
}

/// A key and its sum.
#[derive(Clone, Debug)]
pub struct SpilledSum<A> {
    /// Bytes of the key.
    pub key: Vec<u8>,
    /// The sum.
    pub sum: A,
}

impl Cursor {
    /// The next record; None: there is none, or the file fails.
    #[expect(clippy::should_implement_trait, reason = "the caller says of what the records are")]
    pub fn next<A: Stored>(&mut self) -> Option<SpilledSum<A>> {
        if self.at >= self.run.end && self.used >= self.buffer.len() {
            return None;
        }
        let mut wanted = LOOK;
        loop {
            let mut rest = &self.buffer[self.used..];
            if let Some(record) = record(&mut rest) {
                self.used = self.buffer.len() - rest.len();
                return Some(record);
            }
            if self.at >= self.run.end {
                self.run.store.fail("it holds something else than was written");
                self.used = self.buffer.len();
                return None;
            }
            self.read(wanted);
            wanted *= 2;
        }
    }

    /// Reads so many bytes more.
    fn read(&mut self, wanted: usize) {
        self.buffer.drain(..self.used);
        self.used = 0;
        let more = (self.run.end - self.at).min(wanted as u64) as usize;
        let begin = self.buffer.len();
        self.buffer.resize(begin + more, 0);
        let read = match &self.run.store.0.file {
            Ok(file) => file.read_exact_at(&mut self.buffer[begin..], self.at),
            Err(why) => Err(io::Error::other(why.clone())),
        };
        self.at += more as u64;
        if let Err(error) = read {
            self.run.store.fail(error);
            (self.at, self.used) = (self.run.end, 0);
            self.buffer.clear();
        }
    }
}

/// Takes a record from the beginning of `rest`; None: it goes on behind that.
fn record<A: Stored>(rest: &mut &[u8]) -> Option<SpilledSum<A>> {
    let mut from = *rest;
    let key = usize::try_from(take_number(&mut from)?).ok()?;
    let sum = usize::try_from(take_number(&mut from)?).ok()?;
    let (key, from) = from.split_at_checked(key)?;
    let (mut sum, from) = from.split_at_checked(sum)?;
    *rest = from;
    Some(SpilledSum { key: key.to_vec(), sum: A::take(&mut sum)? })
}

/// The records of several runs in one order.
#[derive(Clone)]
pub struct MergedRuns<A, C> {
    /// The next one of each run, the first of all last.
    heads: Vec<(SpilledSum<A>, Cursor)>,
    cmp: C,
}

impl<A: Stored, C: Fn(&SpilledSum<A>, &SpilledSum<A>) -> Ordering> MergedRuns<A, C> {
    /// Merges `runs`, each of which is in the order `cmp`.
    pub fn new(runs: &[Run], cmp: C) -> Self {
        let mut merged = Self { heads: Vec::with_capacity(runs.len()), cmp };
        runs.iter().for_each(|run| merged.insert(run.cursor()));
        merged
    }

    fn insert(&mut self, mut cursor: Cursor) {
        if let Some(record) = cursor.next() {
            let at = self.heads.partition_point(|(head, _)| (self.cmp)(head, &record) == Ordering::Greater);
            self.heads.insert(at, (record, cursor));
        }
    }
}

impl<A: Stored, C: Fn(&SpilledSum<A>, &SpilledSum<A>) -> Ordering> Iterator for MergedRuns<A, C> {
    type Item = SpilledSum<A>;

    fn next(&mut self) -> Option<SpilledSum<A>> {
        let (record, cursor) = self.heads.pop()?;
        self.insert(cursor);
        Some(record)
    }
}

/// Appends a number, seven bits a byte, the lowest first.
pub fn put_number(number: u128, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes one.
pub fn take_number(from: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for shift in (0..128).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Takes one of 64 bits.
pub fn take_u64(from: &mut &[u8]) -> Option<u64> {
    take_number(from)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Bytes(Vec<u8>);

    impl Stored for Bytes {
        fn put(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.0);
        }

        fn take(from: &mut &[u8]) -> Option<Self> {
            Some(Self(std::mem::take(from).to_vec()))
        }

        fn heap(&self) -> usize {
            self.0.capacity()
        }
    }

    proptest! {
        #[test]
        fn numbers_are_what_they_were(number: u128, shift in 0_u32..128) {
            let (number, mut bytes) = (number >> shift, Vec::new());
            put_number(number, &mut bytes);
            prop_assert_eq!(take_number(&mut &*bytes), Some(number));
            prop_assert_eq!(take_number(&mut &bytes[..bytes.len() - 1]), None);
        }

        #[test]
        fn runs_are_one_in_order(keys in prop::collection::vec((any::<u16>(), 0_usize..90_000, 0_usize..150), 0..60)) {
            let store = Store::of_test(0);
            let cmp = |a: &SpilledSum<Bytes>, b: &SpilledSum<Bytes>| a.key.cmp(&b.key);
            let mut by_run: Vec<Vec<(Vec<u8>, Bytes)>> = vec![Vec::new(); 150];
            for (key, length, run) in &keys {
                by_run[*run].push((key.to_be_bytes().to_vec(), Bytes(vec![*key as u8; *length])));
            }
            let runs = by_run.iter_mut().map(|records| {
                records.sort_by(|a, b| a.0.cmp(&b.0));
                let mut writer = store.writer();
                records.iter().for_each(|(key, sum)| writer.put(key, sum));
                writer.finish()
            });
            let runs = store.narrowed(runs.collect(), &cmp);
            prop_assert!(runs.len() <= MOST_RUNS);
            let found: Vec<(Vec<u8>, usize)> = MergedRuns::new(&runs, cmp).map(|record| (record.key, record.sum.0.len())).collect();
            let mut expected: Vec<(Vec<u8>, usize)> = by_run.iter().flatten().map(|(key, sum)| (key.clone(), sum.0.len())).collect();
            expected.sort();
            let mut sorted = found.clone();
            sorted.sort();
            prop_assert_eq!(&sorted, &expected);
            prop_assert!(found.is_sorted_by_key(|(key, _)| key.clone()));
            prop_assert!(lock(&store.0.failed).is_none());
        }
    }

    #[test]
    fn a_file_that_takes_nothing_is_told() {
        let store = Store::new(Err(io::ErrorKind::StorageFull.into()), 0);
        let mut writer = store.writer();
        writer.put(b"key", &Bytes(vec![7]));
        let run = writer.finish();
        assert!(run.cursor().next::<Bytes>().is_none() && lock(&store.0.failed).is_some());
    }

    #[test]
    fn an_emptied_file_takes_the_next_question() {
        let store = Store::of_test(0);
        let run = |byte: u8| {
            let mut writer = store.writer();
            writer.put(b"key", &Bytes(vec![byte; 100]));
            writer.finish()
        };
        let length = || store.0.file.as_ref().unwrap().metadata().unwrap().len();
        let _ = run(1);
        store.fail("the disk is full");
        assert!(length() > 100);
        store.empty();
        assert_eq!((length(), lock(&store.0.failed).clone()), (0, None));
        assert_eq!(run(2).cursor().next::<Bytes>().unwrap().sum, Bytes(vec![2; 100]));
    }
}

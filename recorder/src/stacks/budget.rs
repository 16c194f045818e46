//! What all look-ups of names of a recording may take together: time, memory, and which files are not tried again.
//!
//! Programs bring the files that names are looked up in, and a file may be made to be slow. So no file has a time of its
//! own only: at the end of a recording there is one time for all, files with the most places come first, and what is left
//! is given up with the reason on the tape. The places stay there, and `analyze --debug-dir` names them later.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use systape_format::model::{Mapping, Symbol};
use systape_symbols::{Deadline, GivenUp, ResolverLimits};

/// Most memory of the process that reads the files, bytes.
const READER_BYTES: u64 = 512 << 20;
/// Most bytes of all names of a recording.
const MOST_NAME_BYTES: u64 = 256 << 20;
/// Most files that are remembered as not worth another try.
const MOST_REMEMBERED: usize = 4096;

/// The time of all look-ups, shared by the thread that makes them and those that end them.
#[derive(Clone, Debug)]
pub(crate) struct NamesTime {
    time: Duration,
    deadline: Deadline,
    /// A signal ended it.
    stopped: Arc<AtomicBool>,
    given_up: Arc<AtomicU64>,
    turns: Arc<Mutex<Turns>>,
}

/// Who waits for names.
#[derive(Debug, Default)]
struct Turns {
    /// Tapes.
    tapes: usize,
    /// The end of what is looked up for a chunk, for which nobody waits.
    chunk: Option<Deadline>,
}

impl NamesTime {
    /// `time`: of each chunk's names, and of those after the end of the recording.
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            time,
            deadline: Deadline::default(),
            stopped: Arc::default(),
            given_up: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// The recording ended: what is looked up from now on has this time together.
    pub(crate) fn recording_ended(&self) {
        self.deadline.end_in(self.time);
    }

    /// Nobody wants to wait any longer.
    pub(crate) fn stop(&self) {
        if !self.deadline.is_over() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.deadline.end_now();
    }

    /// The end of what begins now.
    pub(crate) fn begin(&self) -> Deadline {
        self.deadline.sooner(self.time)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a chunk's names, if none of a tape come first.
    pub(crate) fn begin_chunk(&self) -> Option<Deadline> {
        let mut turns = self.turns();
        if turns.tapes > 0 {
            return None;
        }
        turns.chunk = Some(self.begin());
        turns.chunk.clone()
    }

    /// A tape waits for its names: those of a chunk make way.
    pub(crate) fn tape_waits(&self) {
        let mut turns = self.turns();
        turns.tapes += 1;
        turns.chunk.take().iter().for_each(Deadline::end_now);
    }

    /// One that waited has them.
    pub(crate) fn tape_is_done(&self) {
        let mut turns = self.turns();
        turns.tapes = turns.tapes.saturating_sub(1);
    }

    /// Counts places that were given up.
    pub(crate) fn count(&self, places: usize) {
        self.given_up.fetch_add(places as u64, Ordering::Relaxed);
    }

    /// How long the names of a tape may take on a busy machine, with those of another that are looked up already.
    pub(crate) fn of_a_tape(&self) -> Duration {
        self.time.saturating_mul(2 * 3).saturating_add(Duration::from_secs(1))
    }

    /// Places without a name so far because of these limits.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Limits of a file. Its share is a third, so that one that does not answer leaves time for others.
    pub(crate) fn limits(&self) -> ResolverLimits {
        ResolverLimits { memory: READER_BYTES, time: self.time / 3, cpu: self.time }
    }

    fn words(&self, why: &GivenUp) -> String {
        match why {
            GivenUp::Over if self.stopped.load(Ordering::Relaxed) => {
                "given up: a signal ended the look-up of names".to_owned()
            }
            GivenUp::Over => format!("given up: names have {} s (--names-for)", self.time.as_secs_f64()),
            GivenUp::TooLong(time) => {
                format!("given up: no answer for {:.2} s, a third of --names-for", time.as_secs_f64())
            }
            GivenUp::Broken(why) => format!("given up: the symbol reader {why}"),
            GivenUp::Refused(why) => why.clone(),
        }
    }
}

/// Counts against the limits.
#[derive(Debug)]
pub(crate) struct StackBudget {
    /// The time.
    pub time: NamesTime,
    bytes_left: u64,
    /// Files that gave no answer, and what was said of them.
    remembered: FxHashMap<Mapping, String>,
}

impl StackBudget {
    /// All of it is left.
    pub(crate) fn new(time: NamesTime) -> Self {
        Self { time, bytes_left: MOST_NAME_BYTES, remembered: FxHashMap::default() }
    }

    /// Names are forgotten before they take too much room.
    pub(crate) fn without_bytes(&mut self) {
        self.bytes_left = u64::MAX;
    }

    /// Takes the room of these names; None = there is not enough.
    pub(crate) fn take(&mut self, symbols: &[Symbol]) -> Option<()> {
        let bytes = symbols.iter().flat_map(|symbol| &symbol.functions).map(|f| f.name.len() + f.file.len() + 16);
        if self.bytes_left == u64::MAX {
            return Some(());
        }
        let left = self.bytes_left.checked_sub(bytes.sum::<usize>() as u64);
        self.bytes_left = left.unwrap_or(0);
        left.map(drop)
    }

    /// Why a file is not tried, if it is not.
    pub(crate) fn refuses(&self, mapping: &Mapping) -> Option<String> {
        if self.bytes_left == 0 {
            return Some(format!("given up: names take {} MiB already", MOST_NAME_BYTES >> 20));
        }
        self.remembered.get(&key(mapping)).or_else(|| self.remembered.get(mapping)).cloned()
    }

    /// Says in words why `places` of a file have no name. A file that gave no answer in time is not tried again, also where it is mapped
    /// by another path; one that broke the reader only at its path: a broken copy has the build id of the sound file.
    pub(crate) fn give_up(&mut self, mapping: &Mapping, places: usize, why: &GivenUp) -> String {
        let words = self.time.words(why);
        if !matches!(why, GivenUp::Refused(_)) {
            self.count(places);
        }
        let which = match why {
            GivenUp::TooLong(_) => Some(key(mapping)),
            GivenUp::Broken(_) => Some(mapping.clone()),
            GivenUp::Over | GivenUp::Refused(_) => None,
        };
        if let Some(which) = which.filter(|_| self.remembered.len() < MOST_REMEMBERED) {
            self.remembered.insert(which, words.clone());
        }
        words
    }

    /// Why a name is missing, for the tape.
    pub(crate) fn words(&self, why: &GivenUp) -> String {
        self.time.words(why)
    }

    /// Counts places that were given up.
    pub(crate) fn count(&self, places: usize) {
        self.time.count(places);
    }
}

/// The same for all files with the same build id.
fn key(mapping: &Mapping) -> Mapping {
    let path = if mapping.build_id.is_empty() { mapping.path.clone() } else { Vec::new() };
    Mapping { path, ..mapping.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::Function;

    fn mapping(build_id: &[u8], path: &str) -> Mapping {
        Mapping { build_id: build_id.to_vec(), path: path.into(), ..Mapping::default() }
    }

    #[test]
    fn names_of_a_chunk_make_way_for_those_of_a_tape() {
        let time = NamesTime::new(Duration::from_secs(3600));
        let chunk = time.begin_chunk().unwrap();
        time.tape_waits();
        assert!(chunk.is_over() && time.begin_chunk().is_none());
        assert!(!time.begin().is_over(), "its own have all the time");
        time.tape_is_done();
        assert!(!time.begin_chunk().unwrap().is_over());
    }

    #[test]
    fn a_file_that_gave_no_answer_is_remembered() {
        let mut budget = StackBudget::new(NamesTime::new(Duration::from_secs(3)));
        let (slow, copy) = (mapping(b"id", "/a/slow"), mapping(b"id", "/b/copy"));
        assert_eq!(budget.refuses(&slow), None);
        let why = budget.give_up(&slow, 7, &GivenUp::TooLong(Duration::from_secs(1)));
        assert_eq!(why, "given up: no answer for 1.00 s, a third of --names-for");
        assert_eq!((budget.refuses(&slow), budget.refuses(&copy)), (Some(why.clone()), Some(why)));
        assert_eq!(budget.refuses(&mapping(b"other", "/a/slow")), None);
        // without an id files are told by their paths
        budget.give_up(&mapping(b"", "/a/nameless"), 2, &GivenUp::Broken("died".into()));
        assert!(budget.refuses(&mapping(b"", "/a/nameless")).is_some());
        assert_eq!(budget.refuses(&mapping(b"", "/a/another")), None);
        // a broken copy of a file keeps nobody from the sound one
        budget.give_up(&mapping(b"lib", "/tmp/lib"), 0, &GivenUp::Broken("died".into()));
        assert!(budget.refuses(&mapping(b"lib", "/tmp/lib")).is_some());
        assert_eq!(budget.refuses(&mapping(b"lib", "/usr/lib")), None);
        // neither what is damaged nor what the time did not reach is the file's fault for ever
        budget.give_up(&mapping(b"x", "/x"), 5, &GivenUp::Over);
        budget.give_up(&mapping(b"y", "/y"), 6, &GivenUp::Refused("it is no ELF file".into()));
        assert!([b"x", b"y"].iter().all(|id| budget.refuses(&mapping(*id, "/")).is_none()));
        assert_eq!(budget.time.given_up(), 7 + 2 + 5);
    }

    #[test]
    fn names_have_a_room_together() {
        let mut budget = StackBudget::new(NamesTime::new(Duration::ZERO));
        let long = Function { name: vec![b'x'; 16 << 20], ..Function::default() };
        let symbols = [Symbol { mapping: 0, offset: 0, functions: vec![long] }];
        let fit = (0..100).take_while(|_| budget.take(&symbols).is_some()).count();
        assert_eq!(fit as u64, MOST_NAME_BYTES / ((16 << 20) + 16));
        assert!(budget.refuses(&mapping(b"", "/any")).is_some_and(|why| why.contains("256 MiB already")));
    }

    #[test]
    fn who_ended_it_is_said() {
        let time = NamesTime::new(Duration::from_secs(3600));
        assert!(!time.begin().is_over());
        time.stop();
        assert!(time.begin().is_over());
        assert!(time.words(&GivenUp::Over).contains("a signal"));
        let time = NamesTime::new(Duration::ZERO);
        time.recording_ended();
        time.stop();
        assert_eq!(time.words(&GivenUp::Over), "given up: names have 0 s (--names-for)");
    }
}

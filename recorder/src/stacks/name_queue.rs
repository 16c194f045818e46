//! Places in code whose names are wanted, on their way to the thread that looks them up.
//!
//! Each is told once, but a program that makes code makes as many as it likes, and while a file is read nobody takes them.
//! So their number has a bound; of those beyond it the tape says why they have no name.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::FxHashMap;
use systape_format::model::Mapping;

use super::budget::NamesTime;
use super::jit_maps::Owner;

/// Most places that wait, of code made at run time and of everything else each: one has no room that the other needs.
pub(super) const MOST: usize = if cfg!(test) { 1 << 3 } else { 1 << 18 };

/// Time until a map that was not there is looked for again, and most processes of which that is kept.
const AGAIN: Duration = Duration::from_millis(250);
const MOST_MADE: usize = 4096;

/// Source of a place's name.
#[derive(Clone, Debug)]
pub(crate) enum NameOrigin {
    /// A file, open if possible, and its path.
    File {
        /// Its content, or why it could not be opened.
        file: Result<Arc<File>, String>,
        /// Its path.
        path: PathBuf,
    },
    /// An address in the kernel.
    Kernel(u64),
    /// Code made at run time, by this process; `here` 0 = it is not in /proc.
    Jit(Owner),
}

/// A place on a stack, sent once.
#[derive(Clone, Debug)]
pub(crate) struct SeenPlace {
    /// The code.
    pub mapping: Arc<Mapping>,
    /// Offset as returned by [`systape_format::model::Frame::lookup`].
    pub offset: u64,
    /// Source of the name.
    pub origin: NameOrigin,
}

/// What the thread is to do.
#[derive(Debug)]
pub(crate) enum NameMessage {
    /// A chunk ended: names of the places so far are looked up and written.
    ChunkEnds,
    /// Look up all names for a tape that waits; who sent it is told when they are passed on.
    Settle(Sender<()>),
    /// Code of a process that makes some was seen: its map may go with it.
    Made(Owner),
    /// The recording ended. An explicit message, because other senders may hang.
    End,
}

/// Places of one mapping without names so far.
#[derive(Debug)]
pub(super) struct Pending {
    pub origin: NameOrigin,
    /// Offset → address, for the kernel's.
    pub offsets: BTreeMap<u64, u64>,
}

impl Pending {
    fn is_jit(&self) -> bool {
        matches!(self.origin, NameOrigin::Jit(_))
    }
}

/// Places that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub places: FxHashMap<Arc<Mapping>, Pending>,
    /// Places for which there was no room.
    pub refused: FxHashMap<Arc<Mapping>, usize>,
    /// Number of `places`: others, of code made at run time.
    count: [usize; 2],
    /// Processes of which [`NameMessage::Made`] was sent, and when it may be sent again.
    made: FxHashMap<(u32, u64), Instant>,
}

impl Waiting {
    pub(super) fn add(&mut self, seen: SeenPlace) {
        let SeenPlace { mapping, offset, origin } = seen;
        let address = if let NameOrigin::Kernel(address) = origin { address } else { 0 };
        let count = &mut self.count[usize::from(matches!(origin, NameOrigin::Jit(_)))];
        if *count >= MOST {
            *self.refused.entry(mapping).or_default() += 1;
            return;
        }
        let pending = self.places.entry(mapping).or_insert_with(|| Pending { origin, offsets: BTreeMap::new() });
        *count += usize::from(pending.offsets.insert(offset, address).is_none());
    }

    /// Whether the map of a process is to be looked for: it was not, or some time ago in vain.
    fn asks_for_map(&mut self, owner: Owner, now: Instant) -> bool {
        if self.made.len() >= MOST_MADE {
            self.made.clear();
        }
        let again = self.made.entry((owner.here, owner.began)).or_insert(now);
        *again <= now && {
            *again = now + AGAIN;
            true
        }
    }

    /// Processes that made the code of places that wait.
    pub(super) fn makers(&self) -> Vec<Owner> {
        let maker = |pending: &Pending| if let NameOrigin::Jit(owner) = pending.origin { Some(owner) } else { None };
        self.places.values().filter_map(maker).collect()
    }

    /// Takes back what was not looked up.
    pub(super) fn put_back(&mut self, mapping: &Arc<Mapping>, pending: Pending) {
        let count = &mut self.count[usize::from(pending.is_jit())];
        let Pending { origin, offsets } = pending;
        let there =
            self.places.entry(Arc::clone(mapping)).or_insert_with(|| Pending { origin, offsets: BTreeMap::new() });
        for (offset, address) in offsets {
            *count += usize::from(there.offsets.insert(offset, address).is_none());
        }
    }
}

/// The thread's side of the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingPlaces(Arc<Mutex<Waiting>>);

impl WaitingPlaces {
    /// Does something with them.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Waiting) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The other side, for all that see places or want their names.
#[derive(Clone, Debug)]
pub(crate) struct NameQueue {
    places: WaitingPlaces,
    tell: Sender<NameMessage>,
    time: NamesTime,
}

impl NameQueue {
    pub(super) fn new(places: WaitingPlaces, time: NamesTime) -> (Self, Receiver<NameMessage>) {
        let (tell, told) = unbounded();
        (Self { places, tell, time }, told)
    }

    /// A place was seen, for the first time.
    pub(crate) fn see(&self, seen: SeenPlace) {
        let made = if let NameOrigin::Jit(owner) = seen.origin { Some(owner) } else { None };
        let asks = self.places.with(|waiting| {
            waiting.add(seen);
            made.filter(|owner| waiting.asks_for_map(*owner, Instant::now()))
        });
        if let Some(owner) = asks {
            self.tell.send(NameMessage::Made(owner)).ok();
        }
    }

    /// Sends [`NameMessage::ChunkEnds`].
    pub(crate) fn chunk_ends(&self) {
        // it ends before its callers only when it died
        self.tell.send(NameMessage::ChunkEnds).ok();
    }

    /// Waits until the places so far are looked up, for a bounded time. What is looked up for a chunk makes way.
    pub(crate) fn settle(&self) {
        let (done, settled) = crossbeam_channel::bounded(1);
        self.time.tape_waits();
        if self.tell.send(NameMessage::Settle(done)).is_ok() {
            // an error: that thread has ended, and everything is where it belongs
            settled.recv_timeout(self.time.of_a_tape()).ok();
        }
    }

    /// Sends [`NameMessage::End`].
    pub(crate) fn end(&self) {
        self.tell.send(NameMessage::End).ok();
    }

    /// Places without a name that will not be looked up.
    pub(crate) fn give_up(&self, places: usize) {
        self.time.count(places);
    }

    /// One for tests, and what it was told.
    #[cfg(test)]
    pub(crate) fn for_tests() -> (Self, Told) {
        let places = WaitingPlaces::default();
        let (queue, told) = Self::new(places.clone(), NamesTime::new(Duration::ZERO));
        (queue, Told { places, told })
    }
}

/// What a queue was told.
#[cfg(test)]
pub(crate) struct Told {
    places: WaitingPlaces,
    told: Receiver<NameMessage>,
}

#[cfg(test)]
impl Told {
    /// Places so far: mapping, offset and origin.
    pub(crate) fn seen(&self) -> Vec<SeenPlace> {
        let places = self.places.with(std::mem::take).places;
        let of = |(mapping, pending): (Arc<Mapping>, Pending)| {
            let Pending { origin, offsets } = pending;
            offsets
                .into_keys()
                .map(move |offset| SeenPlace { mapping: Arc::clone(&mapping), offset, origin: origin.clone() })
                .collect::<Vec<_>>()
        };
        places.into_iter().flat_map(of).collect()
    }

    /// Messages so far.
    pub(crate) fn messages(&self) -> Vec<NameMessage> {
        self.told.try_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::stacks::jit_maps::Owner;

    #[test]
    fn code_made_at_run_time_takes_no_room_of_others() {
        let (queue, told) = NameQueue::for_tests();
        let see = |name: &str, offset: u64, origin: NameOrigin| {
            queue.see(SeenPlace {
                mapping: Arc::new(Mapping { path: name.into(), ..Mapping::default() }),
                offset,
                origin,
            });
        };
        let jit = || NameOrigin::Jit(Owner { here: 1, ns_pid: 1, uid: 0, began: 0 });
        for offset in 0..2 * MOST as u64 {
            see("jit", offset, jit());
            // known already
            see("jit", 0, jit());
        }
        for offset in 0..MOST as u64 {
            see("file", offset, NameOrigin::File { file: Err("none".into()), path: PathBuf::new() });
        }
        let (places, refused) = told.places.with(|waiting| {
            let number = |name: &[u8]| {
                let of = waiting.places.iter().filter(|(mapping, _)| mapping.path == name);
                of.map(|(_, pending)| pending.offsets.len()).sum::<usize>()
            };
            let refused: usize = waiting.refused.values().sum();
            ([number(b"jit"), number(b"file")], refused)
        });
        assert_eq!(places, [MOST, MOST]);
        // the one that was known is refused, too, once there is no room
        assert_eq!(refused, MOST + MOST + 1);
        // its map is looked for once in a while, however many places there are
        assert!(matches!(told.messages().first(), Some(NameMessage::Made(owner)) if owner.here == 1));
    }
}

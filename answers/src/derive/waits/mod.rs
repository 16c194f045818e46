//! What a wait is: for a lock, for a thread, for work. Every report and rule asks here.
//!
//! [`futex`] reads the calls, [`track`] follows them in order of their ends with bounded memory and makes the [`sums`] of each futex,
//! [`hold`] measures who held it, [`threads`] finds the thread that a wait names, [`cycles`] finds threads that wait for each other. What
//! all of it amounts to is said by [`kind`]. Waits in other calls are known by [`systape_abi::rest`].

mod cycles;
mod futex;
mod hold;
mod read;
mod sums;
mod threads;
mod track;

pub use cycles::{Cycle, EndlessWait};
pub use futex::is_one as is_futex;
pub use read::{follows, known, tracked, wait};
pub use sums::Sum;
pub use systape_abi::rest::{Waits, at_rest, for_work, is_storage, of_client, takes};
pub use threads::{Named, Threads};
pub(crate) use track::other_word;
pub use track::{Event, JudgedFutex, Tracker};

/// Calls that sleep for as long as their program asks.
pub const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// Whether the call `name` is one of [`SLEEPS`].
pub fn is_sleep(name: &str) -> bool {
    SLEEPS.contains(&name)
}

/// What waits for a futex are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A lock whose owner waits, by way of other locks, for who waits for this one: it never ends.
    Deadlock,
    /// A lock.
    Lock,
    /// The last of several threads to come.
    Barrier,
    /// The end of a thread.
    Join,
    /// What another thread does: one thread waits here, others wake it.
    Condition,
    /// Not known: nobody ended the wait.
    Wait,
    /// Work, or the time to pass: several threads wait for others that never wait here, or nobody ends the wait but its time-out.
    Idle,
}

impl Kind {
    /// All of them, in the order of interest.
    pub const ALL: [Self; 7] =
        [Self::Deadlock, Self::Lock, Self::Barrier, Self::Join, Self::Condition, Self::Wait, Self::Idle];

    /// Name of the kind in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Lock => "lock",
            Self::Barrier => "barrier",
            Self::Join => "join",
            Self::Condition => "condition",
            Self::Wait => "wait",
            Self::Idle => "idle",
        }
    }

    /// Whether what is seen says so whatever is missing: more events could only add to it.
    pub fn is_certain(self) -> bool {
        matches!(self, Self::Deadlock | Self::Lock | Self::Barrier | Self::Join)
    }
}

/// What is known of the waits for one futex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// A cycle of owners goes through it.
    pub deadlock: bool,
    /// The kernel keeps its owner, or a wait names a thread of the process as its owner.
    pub owned: bool,
    /// A wait names a thread of the process that is to end.
    pub ends: bool,
    /// Every wake is for all who wait, and the value goes from round to round: a thread that woke them waited here in other rounds, or the
    /// value grows by the number of those who wait and one who never does.
    pub rounds: bool,
    /// The part of the waits' time in which a thread that had itself come back from a wait here had not yet woken the next, in thousandths.
    pub hold: u64,
    /// Whether the holder waited for work itself for most of that time.
    pub holder_rests: bool,
    /// Most wakes came at once after a time-out, and an asking again.
    pub obeyed: bool,
    /// Number of waits.
    pub waits: u64,
    /// Number of waits that never ended.
    pub never: u64,
    /// Number of waits whose time was up.
    pub timeouts: u64,
    /// Threads that waited.
    pub waiters: usize,
}

/// Held for a smaller part of the waits' time, in thousandths, it is no lock: it is 0 for pools and conditions, 350 and more for locks.
const HOLD: u64 = 100;

/// What waits are for. This is the one place that says so.
pub fn kind(of: &Evidence) -> Kind {
    match of {
        _ if of.deadlock => Kind::Deadlock,
        _ if of.owned => Kind::Lock,
        _ if of.ends => Kind::Join,
        _ if of.rounds => Kind::Barrier,
        _ if of.hold >= HOLD && !of.holder_rests => Kind::Lock,
        _ if of.hold >= HOLD => Kind::Idle,
        // an interpreter's lock whose holder never has to wait for it
        _ if of.obeyed => Kind::Lock,
        // a clock of its own
        _ if of.waits > 0 && of.timeouts == of.waits => Kind::Idle,
        _ if of.never.saturating_add(of.timeouts) >= of.waits => Kind::Wait,
        _ if of.waiters > 1 => Kind::Idle,
        _ => Kind::Condition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of glibc, musl, Rust, Go, Java, Python and libuv as they were measured.
    #[test]
    fn waits_are_what_their_evidence_says() {
        let waits = |waiters| Evidence { waits: 20, waiters, ..Evidence::default() };
        let cases = [
            ("glibc mutex with its owner", Evidence { owned: true, ..waits(4) }, Kind::Lock),
            ("a semaphore as a mutex", Evidence { hold: 600, ..waits(4) }, Kind::Lock),
            ("Rust's mutex", Evidence { hold: 350, ..waits(4) }, Kind::Lock),
            ("an interpreter's lock", Evidence { hold: 980, timeouts: 15, ..waits(3) }, Kind::Lock),
            (
                "an interpreter's lock whose holder never waits",
                Evidence { obeyed: true, timeouts: 10, ..waits(1) },
                Kind::Lock,
            ),
            ("a pool", Evidence { hold: 0, ..waits(4) }, Kind::Idle),
            ("a pool whose workers wake the next at once", Evidence { hold: 3, ..waits(4) }, Kind::Idle),
            (
                "a pool whose workers take turns to wait for work",
                Evidence { hold: 930, holder_rests: true, ..waits(4) },
                Kind::Idle,
            ),
            ("a barrier", Evidence { rounds: true, hold: 700, ..waits(4) }, Kind::Barrier),
            ("a join", Evidence { ends: true, ..waits(1) }, Kind::Join),
            ("a thread parked on its own word", waits(1), Kind::Condition),
            ("a timer", Evidence { timeouts: 20, ..waits(1) }, Kind::Idle),
            ("never woken", Evidence { waits: 1, never: 1, waiters: 1, ..Evidence::default() }, Kind::Wait),
            (
                "two threads that wait for each other",
                Evidence { deadlock: true, owned: true, ..waits(1) },
                Kind::Deadlock,
            ),
        ];
        for (what, evidence, is) in cases {
            assert_eq!(kind(&evidence), is, "{what}");
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert!(names.len() == Kind::ALL.len() && Kind::ALL.is_sorted());
    }
}

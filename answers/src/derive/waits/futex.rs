//! Calls on futexes as plain values: which wait, what they say about what they wait for, and which wake.

/// Operations of futex: include/uapi/linux/futex.h.
mod op {
    pub(super) const WAIT: u64 = 0;
    pub(super) const WAKE: u64 = 1;
    pub(super) const REQUEUE: u64 = 3;
    pub(super) const CMP_REQUEUE: u64 = 4;
    pub(super) const WAKE_OP: u64 = 5;
    pub(super) const LOCK_PI: u64 = 6;
    pub(super) const UNLOCK_PI: u64 = 7;
    pub(super) const WAIT_BITSET: u64 = 9;
    pub(super) const WAKE_BITSET: u64 = 10;
    pub(super) const WAIT_REQUEUE_PI: u64 = 11;
    pub(super) const CMP_REQUEUE_PI: u64 = 12;
    pub(super) const LOCK_PI2: u64 = 13;
    /// The others are flags.
    pub(super) const MASK: u64 = 0x7f;
    /// Only threads of one process use it.
    pub(super) const PRIVATE: u64 = 0x80;
}

/// The same of `futex_wait`: FUTEX2_PRIVATE.
const PRIVATE_2: u64 = 0x80;
/// In a word with its owner's tid: threads wait.
const WAITERS: u32 = 0x8000_0000;
/// The bits of a word that are the owner's tid.
const TID: u32 = 0x3fff_ffff;
/// What musl's plain mutexes hold in place of a tid (EBUSY).
const NO_TID: u32 = 16;
/// The value of a glibc mutex that threads wait for.
pub(super) const CONTENDED: u32 = 2;
/// Where glibc's mutex has its owner, behind the futex.
const OWNER_AT: usize = 8;

/// What a wait says about what it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// The kernel hands the lock on: FUTEX_LOCK_PI.
    pub pi: bool,
    /// The value that the futex had.
    pub val: u32,
    /// Only threads of one process use it.
    pub private: bool,
    /// Whether it has a time-out.
    pub timed: bool,
    /// Whether it is FUTEX_WAIT_BITSET.
    pub bitset: bool,
    /// Whether it waits as glibc's conditions do, which have two words side by side and use them by turns.
    pub of_two: bool,
}

/// A number of a thread that a wait names, in the pid namespace of its process: to be looked up before it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The owner of a lock.
    Owner(u32),
    /// A thread that is to end.
    Ends(u32),
}

impl Asks {
    /// The thread that the wait names: by its value, or by `memory`, the bytes at the futex when it began, as far as they are known.
    pub fn names(self, memory: Option<&[u8]>) -> Option<Names> {
        let word = |at: usize| {
            let bytes = memory?.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let tid = |word: u32| Some(word & TID).filter(|tid| !matches!(*tid, 0 | NO_TID));
        if self.pi {
            return word(0).and_then(tid).map(Names::Owner);
        }
        if self.val & WAITERS != 0 {
            return tid(self.val).map(Names::Owner);
        }
        // the kernel clears the word of a thread that ends and wakes as of a futex of several processes
        if !self.private && self.val > CONTENDED {
            return Some(Names::Ends(self.val));
        }
        // what is at + 8 in other things than mutexes is no tid: these wait in other ways
        let mutex = self.val == CONTENDED && (!self.bitset || self.timed);
        mutex.then(|| word(OWNER_AT)).flatten().filter(|tid| *tid != 0).map(Names::Owner)
    }
}

/// What a call does with a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The call waits.
    Waits(Asks),
    /// The call wakes threads, as many as it returns; `all`: every one that waits.
    Wakes {
        /// See there.
        all: bool,
    },
    /// The call unlocks one that threads wait for: the kernel gives it to one of them.
    Unlocks,
}

/// Whether the call `name` has a [`role`].
pub fn is_one(name: &str) -> bool {
    matches!(name, "futex" | "futex_time64" | "futex_wait" | "futex_wake")
}

/// The futex of the call `name`, by its address, and what the call does with it; None: something else.
pub(super) fn role(name: &str, args: &[u64; 6]) -> Option<(u64, Role)> {
    let all = |count: u64| Role::Wakes { all: count as u32 >= i32::MAX as u32 };
    let operation = args[1] & op::MASK;
    let bitset = operation == op::WAIT_BITSET;
    let waits = Asks {
        pi: matches!(operation, op::LOCK_PI | op::LOCK_PI2),
        val: args[2] as u32,
        private: args[1] & op::PRIVATE != 0,
        timed: args[3] != 0,
        bitset,
        of_two: bitset && args[2] as u32 == 0,
    };
    let role = match (name, operation) {
        ("futex_wait", _) => {
            let private = args[3] & PRIVATE_2 != 0;
            let (val, timed) = (args[1] as u32, args[4] != 0);
            Role::Waits(Asks { val, private, timed, bitset: true, ..Asks::default() })
        }
        ("futex_wake", _) => all(args[2]),
        (_, op::WAIT | op::WAIT_BITSET | op::WAIT_REQUEUE_PI | op::LOCK_PI | op::LOCK_PI2) => Role::Waits(waits),
        (_, op::WAKE | op::WAKE_BITSET) => all(args[2]),
        (_, op::WAKE_OP | op::REQUEUE | op::CMP_REQUEUE | op::CMP_REQUEUE_PI) => Role::Wakes { all: false },
        (_, op::UNLOCK_PI) => Role::Unlocks,
        _ => return None,
    };
    Some((args[0], role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(op: u64, val: u64, timeout: u64) -> Asks {
        match role("futex", &[0x1000, op, val, timeout, 0, 0]) {
            Some((0x1000, Role::Waits(asks))) => asks,
            other => panic!("{other:?}"),
        }
    }

    /// 16 bytes at a futex.
    fn memory(words: [u32; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn operations_are_known_without_their_flags() {
        let role = |name, op, count| role(name, &[0x1000, op, count, 0, 0, 0]).map(|(_, role)| role);
        assert_eq!(role("futex", 0x80, 2), Some(Role::Waits(Asks { val: 2, private: true, ..Asks::default() })));
        assert!(asks(0x189, 2, 0).bitset && asks(0x86, 0, 0).pi);
        assert!(asks(0x189, 0, 0).of_two && asks(0x89, 0, 0).of_two && !asks(0x189, 3, 0).of_two);
        assert_eq!(role("futex", 0x81, 1), Some(Role::Wakes { all: false }));
        assert_eq!(role("futex", 0x81, i32::MAX as u64), Some(Role::Wakes { all: true }));
        assert_eq!(
            (role("futex_wake", 0, 1), role("futex", 0x87, 0)),
            (Some(Role::Wakes { all: false }), Some(Role::Unlocks))
        );
        assert_eq!(role("futex", 2, 0), None);
    }

    #[test]
    fn owners_are_named_by_the_value_or_by_memory() {
        let mutex = memory([2, 0, 77, 1]);
        assert_eq!(asks(0x80, 2, 0).names(Some(&mutex)), Some(Names::Owner(77)), "a plain mutex");
        assert_eq!(asks(0x189, 2, 0x7f00).names(Some(&mutex)), Some(Names::Owner(77)), "with a time-out");
        assert_eq!(asks(0x189, 2, 0).names(Some(&mutex)), None, "a lock for writing: + 8 is something else");
        assert_eq!(asks(0x80, 2, 0).names(None), None, "its memory is not on the tape");
        assert_eq!(asks(0x80, 0, 0).names(Some(&mutex)), None, "a counter");
        assert_eq!(asks(0, 0x8000_0000 | 77, 0).names(None), Some(Names::Owner(77)), "a robust one");
        assert_eq!(
            asks(0x86, 0, 0).names(Some(&memory([0x8000_0000 | 78, 0, 5, 0]))),
            Some(Names::Owner(78)),
            "the word"
        );
        assert_eq!(asks(0x80, 0x8000_0010, 0).names(None), None, "EBUSY is no thread");
        assert_eq!(asks(0x80, 2, 0).names(Some(&mutex[..6])), None, "cut");
    }

    #[test]
    fn joins_name_the_thread_that_is_to_end() {
        assert_eq!(asks(0x109, 3485, 0).names(None), Some(Names::Ends(3485)));
        assert_eq!(asks(0x189, 3485, 0).names(None), None, "a private one is a counter");
    }
}

//! Futexes: which calls wait for one and which wake who waits, and the sums of one futex.

/// Most threads of a futex that are told apart.
const THREADS: usize = 64;

/// Operations of futex: include/uapi/linux/futex.h.
pub(super) mod op {
    pub(crate) const WAIT: u64 = 0;
    pub(crate) const WAKE: u64 = 1;
    pub(crate) const REQUEUE: u64 = 3;
    pub(crate) const CMP_REQUEUE: u64 = 4;
    pub(crate) const WAKE_OP: u64 = 5;
    pub(crate) const LOCK_PI: u64 = 6;
    pub(crate) const UNLOCK_PI: u64 = 7;
    pub(crate) const WAIT_BITSET: u64 = 9;
    pub(crate) const WAKE_BITSET: u64 = 10;
    pub(crate) const WAIT_REQUEUE_PI: u64 = 11;
    pub(crate) const CMP_REQUEUE_PI: u64 = 12;
    pub(crate) const LOCK_PI2: u64 = 13;
    /// The others are flags.
    pub(crate) const MASK: u64 = 0x7f;
}

/// What a call does with a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It waits; `lock`: for what is a lock, as it says itself.
    Waits {
        /// See there.
        lock: bool,
    },
    /// It wakes threads, as many as it returns.
    Wakes,
    /// It unlocks one that threads wait for: the kernel gives it to one of them.
    Unlocks,
}

/// Whether the call `name` has a [`role`].
pub(crate) fn is_one(name: &str) -> bool {
    matches!(name, "futex" | "futex_time64" | "futex_wait" | "futex_wake")
}

/// The futex of the call `name`, by its address, and what the call does with it; None: something else.
pub(crate) fn role(name: &str, args: &[u64; 6]) -> Option<(u64, Role)> {
    let role = match (name, args[1] & op::MASK) {
        ("futex_wait", _) => Role::Waits { lock: false },
        ("futex_wake", _) => Role::Wakes,
        // the value of a lock that others wait for, of glibc and of Go's runtime
        (_, op::WAIT) => Role::Waits { lock: args[2] as u32 == 2 },
        (_, op::WAIT_BITSET | op::WAIT_REQUEUE_PI) => Role::Waits { lock: false },
        (_, op::LOCK_PI | op::LOCK_PI2) => Role::Waits { lock: true },
        (_, op::WAKE | op::WAKE_BITSET | op::WAKE_OP) => Role::Wakes,
        (_, op::REQUEUE | op::CMP_REQUEUE | op::CMP_REQUEUE_PI) => Role::Wakes,
        (_, op::UNLOCK_PI) => Role::Unlocks,
        _ => return None,
    };
    Some((args[0], role))
}

/// Waits for one futex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Futex {
    /// How many waits.
    pub waits: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// When the first began and the last ended.
    pub span: Option<(u64, u64)>,
    /// Threads that waited, at most [`THREADS`], and those that woke others.
    pub waiters: Vec<u32>,
    /// See `waiters`.
    pub wakers: Vec<u32>,
    /// A wait said that it is for a lock.
    pub lock: bool,
    /// One was open at the end, or began before the start: times are lower bounds.
    pub open: bool,
}

impl Futex {
    /// The call of `thread`: of a wait its time, when it began and ended, and whether it was open.
    pub(crate) fn of(role: Role, thread: u32, (ns, span, open): (u64, (u64, u64), bool)) -> Self {
        match role {
            Role::Waits { lock } => {
                Self { waits: 1, ns, max: ns, span: Some(span), waiters: vec![thread], lock, open, ..Self::default() }
            }
            Role::Wakes | Role::Unlocks => Self { wakers: vec![thread], ..Self::default() },
        }
    }

    /// Adds `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        (self.waits, self.ns) = (self.waits.saturating_add(other.waits), self.ns.saturating_add(other.ns));
        self.max = self.max.max(other.max);
        self.span = match (self.span, other.span) {
            (Some((from, to)), Some((first, last))) => Some((from.min(first), to.max(last))),
            (one, other) => one.or(other),
        };
        other.waiters.iter().for_each(|thread| remember(&mut self.waiters, *thread));
        other.wakers.iter().for_each(|thread| remember(&mut self.wakers, *thread));
        self.lock |= other.lock;
        self.open |= other.open;
    }

    /// Whether it is a lock: a wait says so, or threads that waited woke others too, as who had to wait for a lock gives it on.
    pub(crate) fn is_lock(&self) -> bool {
        self.lock || self.waiters.iter().any(|thread| self.wakers.contains(thread))
    }

    /// Whether more threads waited than are told apart.
    pub(crate) fn has_more_waiters(&self) -> bool {
        self.waiters.len() >= THREADS
    }
}

fn remember(threads: &mut Vec<u32>, thread: u32) {
    if threads.len() < THREADS && !threads.contains(&thread) {
        threads.push(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_without_their_flags() {
        let role = |name, op, value| role(name, &[0x1000, op, value, 0, 0, 0]).map(|(_, role)| role);
        assert_eq!(role("futex", 0x80, 2), Some(Role::Waits { lock: true }));
        assert_eq!(role("futex", 0x189, 2), Some(Role::Waits { lock: false }));
        assert_eq!([role("futex", 0x81, 1), role("futex_wake", 99, 0)], [Some(Role::Wakes); 2]);
        assert_eq!((role("futex", 0x87, 0), role("futex", 2, 0)), (Some(Role::Unlocks), None));
    }

    #[test]
    fn a_lock_is_given_on_by_who_waited() {
        let of = |waiters: &[u32], wakers: &[u32]| Futex {
            waiters: waiters.to_vec(),
            wakers: wakers.to_vec(),
            ..Futex::default()
        };
        assert!(of(&[1, 2], &[2, 3]).is_lock());
        assert!(!of(&[1, 2], &[3]).is_lock(), "a condition is signalled by another thread");
        assert!(Futex { lock: true, ..of(&[1], &[]) }.is_lock());
    }

    #[test]
    fn sums_add_up_and_are_bounded() {
        let wait = |thread, ns, open| Futex::of(Role::Waits { lock: false }, thread, (ns, (100, 100 + ns), open));
        let mut sum = Futex::default();
        (0..100).for_each(|thread| sum.add(&wait(thread, 5, false)));
        sum.add(&Futex { span: Some((50, 60)), ..wait(7, 900, true) });
        assert_eq!((sum.waits, sum.ns, sum.max, sum.span, sum.open), (101, 1400, 900, Some((50, 105)), true));
        assert!(sum.waiters.len() == THREADS && sum.has_more_waiters());
    }
}

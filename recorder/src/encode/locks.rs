//! Waits for locks of the kernel: the beginning and the end, by the same task on the same lock, become one row.
//!
//! A record carries how many of its task's were lost so far: no pair spans a loss. What is left alone is a row of
//! `lock:unpaired`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_bpf::values::lock_kind;
use systape_bpf::wire;
use systape_format::families::{LOCK_CONTENTION, LOCK_UNPAIRED};
use systape_format::model::{Family, StackOf};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::machine::lock_names::LockNames;

/// Most waits of a task at once: interrupts wait on top of it, and a mutex has a lock of its own.
const DEEPEST: usize = 16;
/// Most tasks that wait; beyond it the waits of all are given up.
const MOST: usize = 1 << 16;

/// By which beginnings and ends are paired: the thread, and of idle tasks, whose numbers are all 0, the CPU.
type Waiter = (u32, u32);

/// Waits for locks that have begun.
#[derive(Debug)]
pub(super) struct LockPairs {
    open: FxHashMap<Waiter, Vec<wire::Lock>>,
    names: Arc<LockNames>,
    contention: Arc<TableDef>,
    unpaired: Arc<TableDef>,
}

fn waiter(l: &wire::Lock) -> Waiter {
    let tid = l.row.who.tid;
    (tid, if tid == 0 { l.row.hdr.cpu } else { 0 })
}

impl LockPairs {
    pub(super) fn new(names: Arc<LockNames>) -> Self {
        Self {
            open: FxHashMap::default(),
            names,
            contention: Arc::new(LOCK_CONTENTION.clone()),
            unpaired: Arc::new(LOCK_UNPAIRED.clone()),
        }
    }

    /// A wait began or ended.
    pub(super) fn record(&mut self, l: &wire::Lock, world: &mut World, rows: &mut Rows) {
        let ts = l.row.ts;
        let open = self.open.entry(waiter(l)).or_default();
        // of these the end is lost, or another task had the number
        let is_stale = |one: &wire::Lock| one.losses != l.losses || one.row.who.start != l.row.who.start;
        let stale: Vec<wire::Lock> = open.extract_if(.., |one| is_stale(one)).collect();
        let same = open.iter().rposition(|one| one.address == l.address);
        if l.row.hdr.flags & wire::LOCK_ENDED == 0 {
            // who waits for a mutex spins first and sleeps then: both begin, and one end follows
            let goes_on = same.is_some_and(|at| open[at].value & l.value & lock_kind::MUTEX != 0);
            let mut lost = Vec::new();
            if !goes_on {
                // the end of any other came before it begins again
                lost.extend(same.map(|at| open.remove(at)));
                lost.extend((open.len() >= DEEPEST).then(|| open.remove(0)));
                open.push(*l);
            }
            stale.iter().chain(&lost).for_each(|one| self.one_end(one, ts, world, rows));
            if self.open.len() > MOST {
                self.finish(ts, world, rows);
            }
            return;
        }
        let began = same.map(|at| open.remove(at));
        if open.is_empty() {
            self.open.remove(&waiter(l));
        }
        stale.iter().for_each(|one| self.one_end(one, ts, world, rows));
        match began {
            Some(began) => self.pair(&began, l, world, rows),
            None => self.one_end(l, ts, world, rows),
        }
    }

    /// The recording is over.
    pub(super) fn finish(&mut self, ts: u64, world: &mut World, rows: &mut Rows) {
        let mut open: Vec<wire::Lock> = std::mem::take(&mut self.open).into_values().flatten().collect();
        open.sort_unstable_by_key(|one| (one.row.ts, one.row.who.tid));
        open.iter().for_each(|one| self.one_end(one, ts, world, rows));
    }

    fn pair(&self, began: &wire::Lock, ended: &wire::Lock, world: &mut World, rows: &mut Rows) {
        let ts = ended.row.ts;
        if rows.sheds(Family::Lock, ts) {
            return;
        }
        let name = self.name(began);
        let error = (ended.value as i32).unsigned_abs();
        let fields = [
            Field::Task(rows.who(&mut world.tasks, &began.row.who)),
            Field::Number(ended.row.hdr.cpu.into()),
            Field::Number(ts.saturating_sub(began.row.ts)),
            Field::Bytes(kind(began.value)),
            Field::Number(began.address),
            name.as_deref().map_or(Field::Unknown, Field::Bytes),
            Field::Number(error.into()),
            Field::Unknown,
            Field::Unknown,
        ];
        let Ok(row) = rows.builder.push_table_row(&self.contention, ts, &fields) else {
            return rows.bad_records(1, ts, ts);
        };
        rows.stored(Family::Lock, ts);
        let expected = began.row.hdr.flags & wire::LOCK_HAS_STACK != 0;
        rows.attach_who(&mut world.tasks, (StackOf::Row, row), &began.row.who, began.row.ts, expected);
    }

    fn one_end(&self, l: &wire::Lock, ts: u64, world: &mut World, rows: &mut Rows) {
        if rows.sheds(Family::Lock, ts) {
            return;
        }
        let (name, ended) = (self.name(l), l.row.hdr.flags & wire::LOCK_ENDED != 0);
        let fields = [
            Field::Task(rows.who(&mut world.tasks, &l.row.who)),
            Field::Number(l.row.hdr.cpu.into()),
            Field::Bytes(if ended { b"end" } else { b"begin" }),
            Field::Number(ts.saturating_sub(l.row.ts)),
            if ended { Field::Unknown } else { Field::Bytes(kind(l.value)) },
            Field::Number(l.address),
            name.as_deref().map_or(Field::Unknown, Field::Bytes),
        ];
        rows.beside(&self.unpaired, ts, &fields);
    }

    fn name(&self, l: &wire::Lock) -> Option<Vec<u8>> {
        match l.row.hdr.flags & (wire::LOCK_OF_MEMORY | wire::LOCK_OF_SIGNALS) {
            0 => self.names.find(l.address),
            wire::LOCK_OF_MEMORY => Some(b"[mmap_lock]".to_vec()),
            _ => Some(b"[siglock]".to_vec()),
        }
    }
}

/// The lock's kind, by the kernel's flags.
fn kind(flags: u32) -> &'static [u8] {
    use lock_kind::{MUTEX, PERCPU, READ, RT, SPIN, WRITE};
    match (flags & (RT | PERCPU | MUTEX), flags & SPIN != 0, flags & (READ | WRITE)) {
        (MUTEX, _, _) => b"mutex",
        (0, true, 0) => b"spinlock",
        (0, true, READ) => b"rwlock:R",
        (0, true, WRITE) => b"rwlock:W",
        (0, false, READ) => b"rwsem:R",
        (0, false, WRITE) => b"rwsem:W",
        (PERCPU, _, READ) => b"percpu-rwsem:R",
        (PERCPU, _, WRITE) => b"percpu-rwsem:W",
        (RT, _, 0) => b"rtmutex",
        (RT, true, READ) => b"rwlock-rt:R",
        (RT, true, WRITE) => b"rwlock-rt:W",
        (RT, false, READ) => b"rwsem-rt:R",
        (RT, false, WRITE) => b"rwsem-rt:W",
        // a semaphore has no flag at all (kernel/locking/semaphore.c)
        (0, false, 0) => b"semaphore",
        _ => b"other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use crate::tasks::Tasks;
    use crate::tasks::targets::Targets;
    use systape_format::model::StackSettings;

    /// A record: time, thread, lock, losses so far; `value` of a beginning, None = an end.
    fn record(ts: u64, tid: u32, address: u64, losses: u32, value: Option<u32>) -> wire::Lock {
        let mut l = wire::Lock { address, losses, value: value.unwrap_or(0), ..wire::Lock::default() };
        (l.row.ts, l.row.who.tid, l.row.who.start) = (ts, tid, 1);
        l.row.hdr.flags = if value.is_none() { wire::LOCK_ENDED } else { 0 };
        l
    }

    /// Locks and durations of the pairs; locks of the rest, and whether a beginning was seen.
    type Seen = (Vec<(u64, u64)>, Vec<(u64, bool)>);

    /// Durations by lock of the pairs, and what was seen of the rest.
    fn rows(records: &[wire::Lock]) -> Seen {
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let mut world = World::new(Tasks::new(false, Targets::default()), Arc::default());
        let mut locks = LockPairs::new(Arc::default());
        records.iter().for_each(|l| locks.record(l, &mut world, &mut rows));
        locks.finish(1000, &mut world, &mut rows);
        assert!(locks.open.is_empty());
        let data = rows.builder.finish(2000);
        let (mut pairs, mut rest) = (Vec::new(), Vec::new());
        for table in data.tables() {
            let column = |name: &str| table.column(name).expect("a column").to_vec();
            if table.def.name == LOCK_CONTENTION.name {
                pairs.extend(column("lock").into_iter().zip(column("dur")));
            } else {
                let seen = column("seen").into_iter().map(|code| table.string(code) == Some(b"begin"));
                rest.extend(column("lock").into_iter().zip(seen));
            }
        }
        (pairs, rest)
    }

    const SPIN: Option<u32> = Some(lock_kind::SPIN);
    const MUTEX: Option<u32> = Some(lock_kind::MUTEX);
    const MUTEX_SPINS: Option<u32> = Some(lock_kind::MUTEX | lock_kind::SPIN);

    #[test]
    fn beginnings_meet_their_ends() {
        // nested, and of two threads on one lock
        let nested = [
            record(10, 1, 7, 0, Some(lock_kind::WRITE)),
            record(12, 2, 7, 5, Some(lock_kind::WRITE)),
            record(13, 1, 8, 0, SPIN),
            record(15, 1, 8, 0, None),
            record(20, 2, 7, 5, None),
            record(40, 1, 7, 0, None),
        ];
        assert_eq!(rows(&nested), (vec![(8, 2), (7, 8), (7, 30)], vec![]));
        // a mutex: spins, sleeps, spins, sleeps
        let begins = [MUTEX_SPINS, MUTEX, MUTEX_SPINS, MUTEX].into_iter().zip(10..);
        let mut mutex: Vec<_> = begins.map(|(value, ts)| record(ts, 1, 7, 0, value)).collect();
        mutex.push(record(50, 1, 7, 0, None));
        assert_eq!(rows(&mutex), (vec![(7, 40)], vec![]));
    }

    #[test]
    fn no_pair_spans_a_loss() {
        // the end is lost, and the same lock waited for again
        for value in [SPIN, MUTEX_SPINS] {
            let lost = [record(10, 1, 7, 0, value), record(20, 1, 7, 1, value), record(23, 1, 7, 1, None)];
            assert_eq!(rows(&lost), (vec![(7, 3)], vec![(7, true)]));
        }
        // the beginning of the second is lost as well
        assert_eq!(
            rows(&[record(10, 1, 7, 0, SPIN), record(20, 1, 7, 2, None)]),
            (vec![], vec![(7, true), (7, false)])
        );
        // the kernel ran no program at the end: nothing was counted
        let skipped = [record(10, 1, 7, 0, SPIN), record(20, 1, 7, 0, SPIN), record(22, 1, 7, 0, None)];
        assert_eq!(rows(&skipped), (vec![(7, 2)], vec![(7, true)]));
        // from before the recording, until after it
        assert_eq!(
            rows(&[record(10, 1, 7, 0, None), record(20, 1, 8, 0, SPIN)]),
            (vec![], vec![(7, false), (8, true)])
        );
    }

    #[test]
    fn idle_tasks_wait_on_their_cpus() {
        let on = |cpu, l: wire::Lock| {
            let mut l = l;
            l.row.hdr.cpu = cpu;
            l
        };
        let both = [
            on(0, record(10, 0, 7, 0, SPIN)),
            on(1, record(11, 0, 7, 0, SPIN)),
            on(0, record(13, 0, 7, 0, None)),
            on(1, record(20, 0, 7, 0, None)),
        ];
        assert_eq!(rows(&both), (vec![(7, 3), (7, 9)], vec![]));
    }

    #[test]
    fn what_waits_is_bounded() {
        let many: Vec<_> = (0..DEEPEST as u64 + 3).map(|n| record(10 + n, 1, n, 0, SPIN)).collect();
        assert_eq!(rows(&many).1.len(), DEEPEST + 3);
        let tasks: Vec<_> = (0..MOST as u32 + 10).map(|tid| record(10, tid + 1, 7, 0, SPIN)).collect();
        assert_eq!(rows(&tasks).1.len(), MOST + 10);
    }
}

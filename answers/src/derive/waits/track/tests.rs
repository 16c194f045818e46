//! Made-up programs of several threads, as plain events.

use systape_format::model::Task;

use super::*;

const MS: u64 = 1_000_000;
const MUTEX: u64 = 0x1000;
const OTHER: u64 = 0x2000;

fn call(thread: u32, doing: ThreadAct, from: u64, to: u64, ended: CallEnd) -> Event {
    Event { process: 1, thread, doing, from, to, ns: to - from, ended, began_before: false }
}

fn asks(val: u32) -> Asks {
    Asks { val, private: true, ..Asks::default() }
}

fn waits(thread: u32, address: u64, val: u32, (from, to): (u64, u64), ended: CallEnd) -> Event {
    call(thread, ThreadAct::Futex(address, Role::Waits(asks(val)), None), from * MS, to * MS, ended)
}

fn wakes(thread: u32, address: u64, at: u64, woken: u64) -> Event {
    let doing = ThreadAct::Futex(address, Role::Wakes { all: false }, None);
    call(thread, doing, at * MS, at * MS + 5_000, CallEnd::With(woken))
}

fn wakes_all(thread: u32, address: u64, at: u64, woken: u64) -> Event {
    let doing = ThreadAct::Futex(address, Role::Wakes { all: true }, None);
    call(thread, doing, at * MS, at * MS + 5_000, CallEnd::With(woken))
}

fn threads(count: u32) -> Threads {
    let mut threads = Threads::default();
    for tid in 1..=count {
        let (utid, ns_tid) = (tid, tid + 100);
        threads.add(&Task {
            utid,
            ns_tid,
            tid: tid + 5000,
            pid: 5001,
            upid: 1,
            comm: b"w".to_vec(),
            ..Task::default()
        });
    }
    threads
}

/// Judges `events` in order of their ends.
/// Address, kind, and the thread that is waited for.
type Found = (u64, Kind, Option<u32>);

fn judged(mut events: Vec<Event>) -> (Vec<Found>, Vec<Cycle>) {
    events.sort_by_key(|event| event.to);
    let mut tracker = Tracker::default();
    events.iter().for_each(|event| tracker.add(event));
    let (judged, cycles, _) = tracker.judge(&threads(9));
    (judged.iter().map(|one| (one.at.address, one.kind, one.thread)).collect(), cycles)
}

const BACK: CallEnd = CallEnd::With(0);

/// Four threads take turns: each waits 30 ms, holds 10 and gives on.
fn turns(address: u64, at: u64) -> Vec<Event> {
    (0..20_u64)
        .flat_map(|turn| {
            let (thread, from) = (1 + (turn % 4) as u32, at + turn * 10);
            [waits(thread, address, 0, (from, from + 30), BACK), wakes(thread, address, from + 40, 1)]
        })
        .collect()
}

#[test]
fn a_lock_is_what_who_waited_gives_on() {
    assert_eq!(judged(turns(MUTEX, 0)).0, [(MUTEX, Kind::Lock, None)]);
}

#[test]
fn a_pool_at_rest_is_no_lock_although_its_workers_wake_each_other() {
    let mut events = Vec::new();
    for job in 0..20_u64 {
        let (one, next) = (1 + (job % 2) as u32, 3 + (job % 2) as u32);
        let at = 100 * job;
        events.push(waits(one, MUTEX, 0, (at, at + 100), BACK));
        events.push(waits(next, MUTEX, 0, (at, at + 101), BACK));
        events.push(wakes(9, MUTEX, at + 99, 1));
        // who takes a job wakes the next at once
        events.push(wakes(one, MUTEX, at + 100, 1));
    }
    assert_eq!(judged(events).0, [(MUTEX, Kind::Idle, None)]);
}

#[test]
fn workers_that_take_turns_to_wait_for_work_rest() {
    // who has the lock waits for work with it in hand, takes it and gives the lock on
    let mut events = turns(MUTEX, 0);
    for turn in 0..20_u64 {
        let (thread, from) = (1 + (turn % 4) as u32, turn * 10 + 30);
        events.push(waits(thread, OTHER, 7, (from, from + 9), BACK));
        events.push(wakes(9, OTHER, from + 8, 1));
    }
    assert_eq!(judged(events).0, [(MUTEX, Kind::Idle, None), (OTHER, Kind::Idle, None)]);
    let mut server = turns(MUTEX, 0);
    for turn in 0..20_u64 {
        let (thread, from) = (1 + (turn % 4) as u32, turn * 10 + 30);
        server.push(call(thread, ThreadAct::Rest, from * MS, (from + 9) * MS, CallEnd::With(3)));
    }
    assert_eq!(judged(server).0, [(MUTEX, Kind::Idle, None)], "accept with a lock in hand");
    // a lock held while one waits for another lock is one
    let mut nested = turns(MUTEX, 0);
    nested.extend(turns(OTHER, 30).into_iter().filter(|event| event.to > 30 * MS));
    assert!(judged(nested).0.iter().all(|(_, kind, _)| *kind == Kind::Lock));
}

#[test]
fn a_wait_of_its_own_clock_is_no_lock() {
    let events = (0..8).flat_map(|at| {
        [waits(1, MUTEX, 7, (at * 300, at * 300 + 300), CallEnd::TimedOut), wakes(1, MUTEX, at * 300 + 300, 0)]
    });
    assert_eq!(judged(events.collect()).0, [(MUTEX, Kind::Idle, None)]);
}

#[test]
fn a_lock_that_is_asked_for_again_after_time_outs_stays_one() {
    let mut events = Vec::new();
    for turn in 0..20_u64 {
        let (thread, at) = (1 + (turn % 2) as u32, turn * 10);
        events.push(waits(thread, MUTEX, 0, (at, at + 5), CallEnd::TimedOut));
        events.push(waits(thread, MUTEX, 0, (at + 5, at + 10), BACK));
        events.push(wakes(thread, MUTEX, at + 20, 1));
    }
    assert_eq!(judged(events).0, [(MUTEX, Kind::Lock, None)]);
}

#[test]
fn both_words_of_a_condition_are_one_lock() {
    let of_two = |thread, address, from, to, ended| {
        let asks = Asks { bitset: true, of_two: true, private: true, ..Asks::default() };
        call(thread, ThreadAct::Futex(address, Role::Waits(asks), None), from * MS, to * MS, ended)
    };
    // who comes back by one word gives on by the other
    let mut events = Vec::new();
    for turn in 0..20_u64 {
        let (thread, at) = (1 + (turn % 2) as u32, turn * 10);
        let (word, other) = if turn % 2 == 0 { (MUTEX, MUTEX + 4) } else { (MUTEX + 4, MUTEX) };
        events.push(of_two(thread, word, at, at + 10, BACK));
        events.push(wakes(thread, other, at + 20, 1));
    }
    assert_eq!(judged(events).0, [(MUTEX, Kind::Lock, None), (MUTEX + 4, Kind::Lock, None)]);
}

#[test]
fn a_mutex_that_its_holder_takes_again_at_once_is_a_lock() {
    let mut events = Vec::new();
    for round in 0..20_u64 {
        let at = round * 10;
        // both are woken in vain: the holder was faster
        events.extend([2, 3].map(|thread| waits(thread, MUTEX, 2, (at, at + 10), BACK)));
        events.push(wakes(1, MUTEX, at + 10, 1));
    }
    assert_eq!(judged(events.clone()).0, [(MUTEX, Kind::Lock, None)]);
    // another value says nothing of the kind, nor does one thread that waits on its own word
    let pool = events.iter().map(|event| match event.doing {
        ThreadAct::Futex(address, Role::Waits(_), _) => {
            Event { doing: ThreadAct::Futex(address, Role::Waits(asks(0)), None), ..*event }
        }
        _ => *event,
    });
    assert_eq!(judged(pool.collect()).0, [(MUTEX, Kind::Idle, None)]);
    events.retain(|event| event.thread != 3);
    assert_eq!(judged(events).0, [(MUTEX, Kind::Condition, Some(1))]);
}

#[test]
fn the_last_to_come_at_a_barrier_is_named() {
    let mut events = Vec::new();
    for round in 0..10_u64 {
        let (at, last) = (round * 20, if round == 3 { 2 } else { 4 });
        for thread in (1..=4).filter(|thread| *thread != last) {
            events.push(waits(thread, MUTEX, round as u32, (at, at + 15), BACK));
        }
        events.push(wakes_all(last, MUTEX, at + 15, 3));
    }
    assert_eq!(judged(events).0, [(MUTEX, Kind::Barrier, Some(4))]);
}

#[test]
fn a_barrier_to_which_one_is_always_the_last_to_come_counts_who_came() {
    let rounds = |step: u32| {
        let mut events = Vec::new();
        for round in 0..10_u64 {
            let at = round * 20;
            let val = round as u32 * step;
            events.extend((1..=3).map(|thread| waits(thread, MUTEX, val, (at, at + 15), BACK)));
            events.push(wakes_all(4, MUTEX, at + 15, 3));
        }
        judged(events).0
    };
    assert_eq!(rounds(4), [(MUTEX, Kind::Barrier, Some(4))]);
    assert_eq!(rounds(1), [(MUTEX, Kind::Idle, None)], "a pool whose work is given out by a fourth");
}

#[test]
fn a_join_names_who_is_to_end_and_a_parked_thread_who_wakes_it() {
    let join = ThreadAct::Futex(
        MUTEX,
        Role::Waits(Asks { val: 103, bitset: true, ..Asks::default() }),
        Some(Names::Ends(103)),
    );
    assert_eq!(judged(vec![call(1, join, 0, 9 * MS, BACK)]).0, [(MUTEX, Kind::Join, Some(3))]);
    let events = vec![waits(1, OTHER, 0, (0, 10), BACK), wakes(2, OTHER, 10, 1)];
    assert_eq!(judged(events).0, [(OTHER, Kind::Condition, Some(2))]);
}

fn owned(thread: u32, address: u64, owner: u32, since: u64) -> Event {
    let doing = ThreadAct::Futex(address, Role::Waits(asks(2)), Some(Names::Owner(owner)));
    call(thread, doing, since * MS, 500 * MS, CallEnd::Never)
}

#[test]
fn threads_that_wait_for_each_other_for_ever_are_a_deadlock() {
    let (found, cycles) = judged(vec![owned(1, MUTEX, 102, 50), owned(2, OTHER, 101, 51), owned(3, MUTEX, 102, 60)]);
    assert_eq!(found, [(MUTEX, Kind::Deadlock, Some(2)), (OTHER, Kind::Deadlock, Some(1))]);
    let of: Vec<_> = cycles[0].iter().map(|held| (held.thread, held.address.address, held.owner)).collect();
    assert_eq!((of, cycles.len()), (vec![(1, MUTEX, 2), (2, OTHER, 1)], 1));
}

#[test]
fn owners_that_gave_it_up_or_are_not_there_make_no_deadlock() {
    let kinds = |events| {
        let (found, cycles) = judged(events);
        (found.iter().map(|one| one.1).collect::<Vec<_>>(), cycles.len())
    };
    let gave = vec![owned(1, MUTEX, 102, 50), owned(2, OTHER, 101, 90), wakes(2, MUTEX, 70, 1)];
    assert_eq!(kinds(gave), (vec![Kind::Lock, Kind::Lock], 0));
    assert_eq!(kinds(vec![owned(1, MUTEX, 102, 50)]), (vec![Kind::Lock], 0), "the owner works");
    assert_eq!(kinds(vec![owned(1, MUTEX, 999, 50)]), (vec![Kind::Wait], 0), "no thread of this process");
    // a wait that ended is not part of one
    let mut ended = owned(2, OTHER, 101, 51);
    (ended.ended, ended.to) = (BACK, 60 * MS);
    assert_eq!(kinds(vec![owned(1, MUTEX, 102, 50), ended]), (vec![Kind::Lock, Kind::Lock], 0));
}

#[test]
fn memory_is_bounded_and_the_longest_waits_stay() {
    let mut tracker = Tracker::default();
    for at in 0..SUMS as u64 + 10 {
        let long = if at == 5 { 900 } else { 1 };
        tracker.add(&waits(1, at * 8, 0, (at, at + long), BACK));
    }
    let (found, _, cut) = tracker.judge(&threads(1));
    assert!(cut && found.len() <= SUMS && found.iter().any(|one| one.at.address == 40));
}

#[test]
fn who_gives_up_when_a_time_out_asks_held_a_lock() {
    let judged = |late: u64| {
        let mut tracker = Tracker::default();
        for at in (0..200).step_by(20) {
            tracker.add(&waits(1, 0x1000, 0, (at, at + 5), CallEnd::TimedOut));
            let doing = ThreadAct::Futex(0x1000, Role::Waits(asks(0)), None);
            let from = (at + 5) * MS + 2_000;
            tracker.add(&wakes(2, 0x1000, at + 5, 1));
            tracker.add(&call(1, doing, from, from + late, CallEnd::With(0)));
        }
        let (judged, ..) = tracker.judge(&threads(2));
        (judged[0].kind, judged[0].sum.holder())
    };
    assert_eq!(judged(20_000), (Kind::Lock, Some(2)), "20 us after each time-out");
    assert_eq!(judged(3_000_000), (Kind::Condition, None), "whenever there is work");
}

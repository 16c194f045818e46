use systape_format::model::{CPU_NONE, Call};

use super::super::pattern::PatternTime;
use super::*;
use crate::derive::runs::{InCall, Waker};

/// A made-up call: the cause.
const CAUSE: Call = Call { abi: 1, nr: 7 };

fn name(call: Call) -> String {
    if call == CAUSE { "cause".into() } else { "other".into() }
}

/// Intervals of threads 0, 1, 2 ... in order of their ends: (thread, state, from, to, end, in the cause).
type Told = (Slot, State, u64, u64, End, bool);

fn threads(count: u32) -> Vec<Thread> {
    let made = (0..count).map(|at| Thread {
        task: Arc::new(Task { pid: 1, tid: at + 1, utid: at + 1, comm: b"app".to_vec(), ..Task::default() }),
        state: State::Unknown,
        since: 0,
        began_before: false,
        continued: false,
        cpu: CPU_NONE,
        doing: Doing::User,
        last_out: 0,
        last_in: 0,
        missed_out: false,
        missed_in: false,
        dead: false,
        followed: true,
    });
    made.collect()
}

/// What thread 0 saves without the cause until 1000.
fn saved(count: u32, told: &[Told], paced: &[Id]) -> Range {
    measured(count, told, paced, false)
}

fn measured(count: u32, told: &[Told], paced: &[Id], loops: bool) -> Range {
    within(count, told, paced, loops, 1000)
}

fn within(count: u32, told: &[Told], paced: &[Id], loops: bool, until: u64) -> Range {
    let time = PatternTime::In { call: "cause".into(), files: super::super::pattern::Files::Any, loops };
    let patterns = vec![vec![CausePattern { comm: Vec::new(), pid: None, parent: None, time, span: None }]];
    let threads = threads(count);
    let mut ids = Ids::default();
    (0..count as usize).for_each(|slot| _ = ids.of(&threads, slot));
    let (paced, none) = (paced.iter().copied().collect(), FxHashSet::default());
    let mut sink = Saved::new(&patterns, &name, ids, (paced, &none), (Some(0), (0, until)));
    for &(slot, state, from, to, end, cause) in told {
        let doing = match cause {
            true => Doing::Call(InCall { call: CAUSE, ..InCall::default() }),
            false => Doing::User,
        };
        let interval = Interval { state, from, to, began_before: false, continued: false, end, doing, cpu: CPU_NONE };
        sink.interval(&threads, slot, &interval);
    }
    sink.of_subject()[0]
}

const S: State = State::Sleeping(b'S');
const RUN: State = State::Running;
const WAIT: State = State::Waiting(Why::Woken);

fn by(slot: Slot) -> End {
    End::Woken(Some(Waker { slot, softirq: false }))
}

const TIMER: End = End::Woken(None);
const OUT: End = End::Out(b'S');
const IN: End = End::In(0);

fn exactly(ns: u64) -> Range {
    between(ns, ns)
}

fn between(lo: u64, hi: u64) -> Range {
    Range { lo, hi, most: hi }
}

#[test]
fn time_in_the_cause_is_saved_and_waits_for_a_cpu_in_it_perhaps() {
    let told = [
        (0, S, 0, 30, TIMER, true),
        (0, WAIT, 30, 50, IN, true),
        (0, RUN, 50, 55, OUT, true),
        (0, RUN, 55, 90, OUT, false),
        (0, S, 90, 100, TIMER, false),
    ];
    assert_eq!(saved(1, &told, &[]), between(35, 55));
}

#[test]
fn a_wait_for_another_ends_earlier_by_what_that_one_saved() {
    // 1 is in the cause for 40, then works; 0 waits for it from 20 on
    let told = [
        (1, S, 0, 40, TIMER, true),
        (0, RUN, 0, 20, OUT, false),
        (1, RUN, 40, 60, OUT, false),
        (0, S, 20, 60, by(1), false),
    ];
    assert_eq!(saved(2, &told, &[]), exactly(40));
    // it began to wait late: it can save no more than it waited
    let told = [
        (1, S, 0, 40, TIMER, true),
        (1, RUN, 40, 60, OUT, false),
        (0, RUN, 0, 50, OUT, false),
        (0, S, 50, 60, by(1), false),
    ];
    assert_eq!(saved(2, &told, &[]), exactly(10));
}

#[test]
fn of_two_that_are_waited_for_the_one_without_the_cause_stays() {
    // 0 waits for 1 (100, the cause all the time) and then for 2 (95, none)
    let told = [
        (2, S, 0, 95, TIMER, false),
        (0, S, 0, 95, by(2), false),
        (1, S, 0, 100, TIMER, true),
        (0, S, 95, 100, by(1), false),
    ];
    assert_eq!(saved(3, &told, &[]), exactly(5));
}

#[test]
fn a_timer_keeps_its_length_unless_it_ends_at_a_fixed_time() {
    let told = [(0, S, 0, 30, TIMER, true), (0, S, 30, 50, TIMER, false)];
    assert_eq!(saved(1, &told, &[]), exactly(30));
    assert_eq!(saved(1, &told, &[0]), exactly(0));
}

#[test]
fn a_new_thread_has_saved_what_its_maker_had() {
    let told = [
        (1, S, 0, 30, TIMER, true),
        (0, State::Waiting(Why::Made), 30, 31, by(1), false),
        (0, RUN, 31, 60, OUT, false),
    ];
    assert_eq!(saved(2, &told, &[]), exactly(30));
}

#[test]
fn threads_in_parallel_count_once_in_the_union() {
    let time = PatternTime::In { call: "cause".into(), files: super::super::pattern::Files::Any, loops: false };
    let patterns = vec![vec![CausePattern { comm: b"app".to_vec(), pid: Some(1), parent: None, time, span: None }]];
    let threads = threads(2);
    let none = FxHashSet::default();
    let mut sink = Saved::new(&patterns, &name, Ids::default(), (FxHashSet::default(), &none), (None, (0, 1000)));
    for (slot, from, to) in [(0, 10, 40), (1, 20, 50), (0, 100, 110)] {
        let doing = Doing::Call(InCall { call: CAUSE, ..InCall::default() });
        let interval =
            Interval { state: S, from, to, began_before: false, continued: false, end: TIMER, doing, cpu: CPU_NONE };
        sink.interval(&threads, slot, &interval);
    }
    sink.passed();
    assert_eq!((sink.unions[0].ns(), sink.spans[0]), (50, Some((10, 110))));
    assert_eq!(sink.of_subject(), [Range::default()]);
}

#[test]
fn the_last_at_a_barrier_is_no_earlier_than_the_others() {
    let futex = |start| Doing::Call(InCall { call: Call { abi: 1, nr: 202 }, file: 9, start, ..InCall::default() });
    let time = PatternTime::In { call: "cause".into(), files: super::super::pattern::Files::Any, loops: false };
    let patterns = vec![vec![CausePattern { comm: Vec::new(), pid: None, parent: None, time, span: None }]];
    let mut threads = threads(3);
    let barriers = FxHashSet::from_iter([(1, b"0x7f00".to_vec())]);
    let paced = FxHashSet::default();
    let mut sink = Saved::new(&patterns, &name, Ids::default(), (paced, &barriers), (Some(0), (0, 1000)));
    sink.file(9, b"0x7f00");
    let mut add = |threads: &[Thread], slot, state, (from, to), end, doing| {
        let interval = Interval { state, from, to, began_before: false, continued: false, end, doing, cpu: CPU_NONE };
        sink.interval(threads, slot, &interval);
    };
    let cause = Doing::Call(InCall { call: CAUSE, ..InCall::default() });
    // 0 comes last, at 40, because of the cause; 1 came at 37 and 2 at 20
    add(&threads, 0, S, (10, 40), TIMER, cause);
    threads[0].doing = futex(40);
    add(&threads, 1, S, (37, 40), by(0), futex(37));
    add(&threads, 2, S, (20, 40), by(0), futex(20));
    assert_eq!(sink.of_subject()[0], exactly(3), "without the cause it would wait for 1");
}

#[test]
fn own_code_between_calls_of_a_loop_goes_with_them() {
    let told = [
        (0, RUN, 0, 10, End::Step, false),
        (0, RUN, 10, 12, End::Step, true),
        (0, RUN, 12, 15, End::Step, false),
        (0, RUN, 15, 17, End::Step, true),
        (0, RUN, 17, 40, End::Step, false),
    ];
    assert_eq!(measured(1, &told, &[], true), exactly(7), "not what is before the first and behind the last");
    assert_eq!(measured(1, &told, &[], false), exactly(4));
}

#[test]
fn a_short_wait_at_the_end_takes_away_only_perhaps_what_was_saved() {
    let ms = 1_000_000;
    let told = [(0, S, 0, 400, TIMER, true), (1, S, 0, 410, TIMER, false), (0, S, 400, 410, by(1), false)];
    let told: Vec<Told> =
        told.map(|(slot, state, from, to, end, cause)| (slot, state, from * ms, to * ms, end, cause)).to_vec();
    let range = within(2, &told, &[], false, 1000 * ms);
    assert_eq!(range, between(0, 410 * ms));
}

/// What thread 0 saves that waits twice for any child: for 1, which holds up 2, and for 2; between the waits `gap` goes by.
fn of_two_waits(gap: u64) -> Range {
    let ms = 1_000_000;
    let time = PatternTime::In { call: "cause".into(), files: super::super::pattern::Files::Any, loops: false };
    let patterns = vec![vec![CausePattern { comm: Vec::new(), pid: None, parent: None, time, span: None }]];
    let (threads, none) = (threads(3), FxHashSet::default());
    let mut ids = Ids::default();
    (0..3).for_each(|slot| _ = ids.of(&threads, slot));
    let mut sink = Saved::new(&patterns, &name, ids, (FxHashSet::default(), &none), (Some(0), (0, 9000 * ms)));
    sink.file(9, ANY_CHILD);
    let mut add = |slot, state, (from, to), end, doing| {
        let interval = Interval { state, from, to, began_before: false, continued: false, end, doing, cpu: CPU_NONE };
        sink.interval(&threads, slot, &interval);
    };
    let wait = |start| Doing::Call(InCall { call: Call { abi: 1, nr: 61 }, file: 9, start, ..InCall::default() });
    let cause = Doing::Call(InCall { call: CAUSE, ..InCall::default() });
    add(1, S, (0, 3000 * ms), TIMER, Doing::User);
    add(2, S, (0, 3000 * ms), by(1), cause);
    add(0, S, (0, 3000 * ms), by(1), wait(0));
    let again = 3000 * ms + gap;
    add(0, RUN, (3000 * ms, again), OUT, Doing::User);
    add(2, RUN, (3000 * ms, again + 2 * ms), OUT, Doing::User);
    add(0, S, (again, again + 2 * ms), by(2), wait(again));
    add(0, RUN, (again + 2 * ms, again + 10 * ms), OUT, Doing::User);
    sink.of_subject()[0]
}

#[test]
fn a_wait_for_any_child_that_begins_again_limits_only_perhaps() {
    let ms = 1_000_000;
    assert_eq!(of_two_waits(50_000), Range { lo: 2 * ms, hi: 2 * ms, most: 3000 * ms });
    assert_eq!(of_two_waits(5 * ms), exactly(2 * ms), "it did something else after the first");
}

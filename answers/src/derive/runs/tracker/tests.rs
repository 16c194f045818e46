use proptest::prelude::*;
use systape_format::model::{Family, RecordedFamilies};

use super::*;
use crate::derive::runs::queued::{CallSpan, PartCalls};

/// What came out: (tid, interval).
#[derive(Debug, Default)]
struct Told(Vec<(u32, Interval)>);

impl IntervalSink for Told {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        self.0.push((threads[slot].task.tid, *interval));
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        after.is_none_or(|after| (&after.comm, after.cgroup_id) != (&before.comm, before.cgroup_id))
    }
}

fn task(tid: u32) -> Arc<Task> {
    Arc::new(Task { tid, pid: tid, utid: tid, upid: tid, ..Task::default() })
}

fn tracker(coverage: RunCoverage) -> Tracker<Told> {
    Tracker::new(coverage, u64::MAX, Told::default())
}

const ALL: RunCoverage =
    RunCoverage { open: 100, followed: Followed::All, every_cpu: true, cpus: 0, hides_calls: false };

fn slot(t: &mut Tracker<Told>, tid: u32) -> Slot {
    t.slot(&task(tid), Some(0)).unwrap()
}

fn asleep(t: &mut Tracker<Told>, tid: u32) -> Slot {
    let slot = slot(t, tid);
    t.begin(slot, &RunState { utid: tid, state: b'S', cpu: 0, ..RunState::default() });
    slot
}

/// (state, from, to, end) of one thread.
fn of(t: &Tracker<Told>, tid: u32) -> Vec<(&'static str, u64, u64, End)> {
    let mine = t.sink.0.iter().filter(|(who, _)| *who == tid);
    mine.map(|(_, i)| (i.state.name(), i.from, i.to, i.end)).collect()
}

fn switch(t: &mut Tracker<Told>, ts: u64, cpu: u32, prev: Option<Slot>, next: Option<Slot>, letter: u8) {
    t.switch(Change { ts, cpu, prev, next, letter, ..Change::default() });
}

/// A thread that runs on CPU 0 from 110 on.
fn running(t: &mut Tracker<Told>, tid: u32) -> Slot {
    let slot = asleep(t, tid);
    t.wakeup(105, None, slot, false);
    switch(t, 110, 0, None, Some(slot), b'R');
    slot
}

#[test]
fn a_call_that_goes_on_after_a_stop_is_the_same() {
    let mut t = tracker(ALL);
    let a = running(&mut t, 1);
    let call = |start, nr, file| InCall { start, call: Call { abi: 0, nr }, file, ..InCall::default() };
    t.enter(a, call(120, 35, 7));
    t.leave(130, a, 0);
    t.restart(a, call(140, 219, 0));
    t.leave(150, a, 0);
    // and once more
    t.restart(a, call(160, 219, 0));
    t.leave(170, a, 0);
    t.lose_calls(Lost::any(171, 172));
    t.restart(a, call(180, 219, 0));
    t.finish(190);
    let calls: Vec<(u64, u32, u32)> = t
        .sink
        .0
        .iter()
        .filter_map(|(_, i)| match i.doing {
            Doing::Call(call) => Some((i.from, call.call.nr, call.file)),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(120, 35, 7), (140, 35, 7), (160, 35, 7), (180, 219, 0)]);
}

#[test]
fn a_switch_that_no_program_saw_hides_only_what_it_says() {
    let mut t = tracker(ALL);
    let (a, b, h) = (asleep(&mut t, 1), asleep(&mut t, 2), asleep(&mut t, 3));
    t.wakeup(105, None, a, false);
    t.wakeup(105, None, h, false);
    switch(&mut t, 110, 0, None, Some(h), b'R');
    // the kernel says when it came: nothing of it is missing, and the hidden one has left
    switch(&mut t, 120, 0, None, Some(a), b'R');
    switch(&mut t, 130, 0, Some(a), Some(h), b'S');
    assert_eq!(t.unsure_until(), 130, "why and when the hidden one left is not known");
    // only the last switch of the CPU is known before it
    t.wakeup(125, None, b, false);
    t.switch(Change { ts: 150, cpu: 0, prev: Some(b), letter: b'S', came: Some(130), ..Change::default() });
    t.finish(200);
    let asleep = ("S", 100, 105, End::Woken(None));
    let ran = [asleep, ("RQ", 105, 120, End::In(0)), ("RUN", 120, 130, End::Out(b'S')), ("S", 130, 200, End::Stop)];
    assert_eq!(of(&t, 1), ran);
    let b = of(&t, 2);
    assert_eq!(b[1..], [("RQ", 130, 130, End::Lost), ("?", 130, 150, End::Out(b'S')), ("S", 150, 200, End::Stop)]);
    // of the hidden one nothing is known again until the end
    assert_eq!(t.unsure_until(), 200);
}

#[test]
fn throttled_until_the_quota_lets_it_run() {
    let mut t = tracker(ALL);
    let a = running(&mut t, 1);
    let out = Change { cpu: 0, prev: Some(a), letter: b'R', throttled: true, ..Change::default() };
    let back = Change { cpu: 0, next: Some(a), letter: b'S', ..Change::default() };
    t.switch(Change { ts: 120, ..out });
    t.switch(Change { ts: 180, unthrottled_ns: 20, ..back });
    // on another CPU it is not known since when it waits for it
    t.switch(Change { ts: 200, ..out });
    t.switch(Change { ts: 250, cpu: 1, ..back });
    // more than the whole wait is damage, or a clock that goes a little wrong
    t.switch(Change { ts: 260, cpu: 1, ..out });
    t.switch(Change { ts: 270, unthrottled_ns: 1000, ..back });
    t.switch(Change { ts: 280, ..out });
    t.finish(300);
    let expected = [
        ("RUN", 110, 120, End::Out(b'R')),
        ("throttled", 120, 160, End::Unthrottled),
        ("RQ", 160, 180, End::In(0)),
        ("RUN", 180, 200, End::Out(b'R')),
        ("throttled", 200, 250, End::In(1)),
        ("RUN", 250, 260, End::Out(b'R')),
        ("throttled", 260, 260, End::Unthrottled),
        ("RQ", 260, 270, End::In(0)),
        ("RUN", 270, 280, End::Out(b'R')),
        ("throttled", 280, 300, End::Stop),
    ];
    assert_eq!(of(&t, 1)[2..], expected);
}

#[test]
fn only_what_could_run_is_throttled() {
    let mut t = tracker(ALL);
    let a = running(&mut t, 1);
    // it falls asleep in a group that is out of CPU time, and is woken while that is so
    t.switch(Change { ts: 120, cpu: 0, prev: Some(a), letter: b'S', throttled: true, ..Change::default() });
    t.wakeup(130, None, a, false);
    t.throttled(a);
    // a second wake-up changes nothing
    t.wakeup(135, None, a, false);
    t.throttled(a);
    t.switch(Change { ts: 150, cpu: 0, next: Some(a), letter: b'S', ..Change::default() });
    // it runs: a wake-up is too early to matter
    t.wakeup(155, None, a, false);
    t.throttled(a);
    // what was not throttled has no end of it
    t.switch(Change { ts: 160, cpu: 0, prev: Some(a), letter: b'R', ..Change::default() });
    t.switch(Change { ts: 170, cpu: 0, next: Some(a), letter: b'S', unthrottled_ns: 5, ..Change::default() });
    t.finish(180);
    let states: Vec<_> = of(&t, 1)[3..].iter().map(|&(state, from, to, _)| (state, from, to)).collect();
    let expected = [("S", 120, 130), ("throttled", 130, 150), ("RUN", 150, 160), ("RQ", 160, 170), ("RUN", 170, 180)];
    assert_eq!(states, expected);
}

#[test]
fn sleeping_waiting_running() {
    let mut t = tracker(ALL);
    let a = asleep(&mut t, 1);
    t.wakeup(110, None, a, false);
    switch(&mut t, 115, 0, None, Some(a), b'R');
    switch(&mut t, 140, 0, Some(a), None, b'D');
    t.finish(200);
    let expected = [
        ("S", 100, 110, End::Woken(None)),
        ("RQ", 110, 115, End::In(0)),
        ("RUN", 115, 140, End::Out(b'D')),
        ("D", 140, 200, End::Stop),
    ];
    assert_eq!(of(&t, 1), expected);
    let open: Vec<bool> = t.sink.0.iter().map(|(_, i)| i.open()).collect();
    assert_eq!(open, [true, false, false, true]);
}

#[test]
fn a_thread_never_heard_of_stays_what_it_was() {
    let mut t = tracker(ALL);
    asleep(&mut t, 1);
    t.finish(500);
    assert_eq!(of(&t, 1), [("S", 100, 500, End::Stop)]);
}

#[test]
fn new_threads_begin_when_they_are_made() {
    let mut t = tracker(ALL);
    let a = slot(&mut t, 1);
    t.fork(120, a);
    t.wakeup(125, None, a, true);
    switch(&mut t, 130, 1, None, Some(a), b'R');
    t.exit(145, a);
    switch(&mut t, 150, 1, Some(a), None, b'X');
    t.finish(200);
    let expected = [("RQ", 120, 125, End::Woken(None)), ("RQ", 125, 130, End::In(1)), ("RUN", 130, 150, End::Died)];
    assert_eq!(of(&t, 1), expected);
}

#[test]
fn nothing_is_known_before_the_first_event_of_a_stranger() {
    let mut t = tracker(ALL);
    let a = slot(&mut t, 1);
    switch(&mut t, 130, 0, Some(a), None, b'S');
    t.finish(200);
    assert_eq!(of(&t, 1), [("?", 100, 130, End::Out(b'S')), ("S", 130, 200, End::Stop)]);
}

#[test]
fn preempted_threads_wait_and_a_wakeup_that_came_too_early_is_no_sleep() {
    let mut t = tracker(ALL);
    let a = asleep(&mut t, 1);
    t.wakeup(105, None, a, false);
    switch(&mut t, 110, 0, None, Some(a), b'R');
    switch(&mut t, 120, 0, Some(a), None, b'R');
    switch(&mut t, 130, 0, None, Some(a), b'R');
    t.wakeup(135, None, a, false);
    switch(&mut t, 140, 0, Some(a), None, b'S');
    switch(&mut t, 145, 0, None, Some(a), b'R');
    t.finish(150);
    let states: Vec<_> = of(&t, 1).into_iter().map(|(s, from, to, _)| (s, from, to)).collect();
    let expected = [
        ("S", 100, 105),
        ("RQ", 105, 110),
        ("RUN", 110, 120),
        ("RQ", 120, 130),
        ("RUN", 130, 140),
        ("RQ", 140, 145),
        ("RUN", 145, 150),
    ];
    assert_eq!(states, expected);
}

#[test]
fn calls_cut_a_state_but_do_not_end_it() {
    let mut t = tracker(ALL);
    let a = slot(&mut t, 1);
    t.begin(a, &RunState { state: b'R', on_cpu: true, cpu: 0, ..RunState::default() });
    t.enter(a, InCall { start: 120, ..InCall::default() });
    switch(&mut t, 125, 0, Some(a), None, b'S');
    t.wakeup(140, None, a, false);
    switch(&mut t, 140, 0, None, Some(a), b'R');
    t.leave(142, a, CPU_NONE);
    t.finish(150);
    let got: Vec<_> = t
        .sink
        .0
        .iter()
        .map(|(_, i)| (i.state.name(), i.from, i.to, matches!(i.doing, Doing::Call(_)), i.continued))
        .collect();
    let expected = [
        ("RUN", 100, 120, false, false),
        ("RUN", 120, 125, true, true),
        ("S", 125, 140, true, false),
        ("RQ", 140, 140, true, false),
        ("RUN", 140, 142, true, false),
        ("RUN", 142, 150, false, true),
    ];
    assert_eq!(got, expected);
}

#[test]
fn a_switch_that_does_not_fit_takes_back_what_was_believed() {
    let mut t = tracker(ALL);
    let (a, b) = (asleep(&mut t, 1), asleep(&mut t, 2));
    t.wakeup(101, None, a, false);
    switch(&mut t, 110, 0, None, Some(a), b'R');
    switch(&mut t, 130, 0, Some(b), None, b'S');
    t.finish(150);
    assert_eq!(of(&t, 1)[2..], [("?", 110, 130, End::Lost), ("?", 130, 150, End::Stop)]);
    assert_eq!(of(&t, 2), [("?", 100, 130, End::Lost), ("?", 130, 130, End::Out(b'S')), ("S", 130, 150, End::Stop)]);
}

#[test]
fn nothing_is_paired_across_a_loss() {
    let mut t = tracker(ALL);
    let (a, b, c) = (asleep(&mut t, 1), asleep(&mut t, 2), slot(&mut t, 3));
    t.begin(c, &RunState { state: b'R', on_cpu: true, cpu: 1, ..RunState::default() });
    t.wakeup(110, None, a, false);
    t.lose(Lost { first: 120, last: 130, cpu: Some(0), pid: 0 });
    // on another CPU, while CPU 0 loses
    switch(&mut t, 125, 1, Some(c), None, b'S');
    switch(&mut t, 140, 0, None, Some(a), b'R');
    t.wakeup(145, None, b, false);
    t.finish(150);
    assert_eq!(
        of(&t, 1)[1..],
        [("RQ", 110, 120, End::Lost), ("?", 120, 140, End::In(0)), ("RUN", 140, 150, End::Stop)]
    );
    assert_eq!(of(&t, 2), [("S", 100, 120, End::Lost), ("?", 120, 145, End::Woken(None)), ("RQ", 145, 150, End::Stop)]);
    assert_eq!(of(&t, 3), [("RUN", 100, 125, End::Out(b'S')), ("?", 125, 150, End::Stop)]);
}

#[test]
fn what_may_have_happened_unseen_is_kept_in_mind() {
    let mut t = tracker(ALL);
    let a = asleep(&mut t, 1);
    t.wakeup(105, None, a, false);
    switch(&mut t, 110, 0, None, Some(a), b'R');
    switch(&mut t, 115, 0, Some(a), None, b'S');
    let missed = |t: &Tracker<Told>, slot: Slot| (t.threads()[slot].missed_in, t.threads()[slot].missed_out);
    assert_eq!(missed(&t, a), (false, false));
    t.lose(Lost { first: 120, last: 130, cpu: Some(0), pid: 0 });
    assert_eq!(missed(&t, a), (true, true));
    t.wakeup(150, None, a, false);
    switch(&mut t, 160, 0, None, Some(a), b'R');
    assert_eq!(missed(&t, a), (false, true), "when it left before is not known");
    switch(&mut t, 170, 0, Some(a), None, b'S');
    assert_eq!(missed(&t, a), (false, false));
    let made = slot(&mut t, 2);
    t.fork(180, made);
    assert_eq!(missed(&t, made), (false, false), "it was not there when something was lost");
}

#[test]
fn who_begins_a_call_does_not_sleep() {
    let mut t = tracker(ALL);
    let a = asleep(&mut t, 1);
    t.enter(a, InCall { start: 120, ..InCall::default() });
    switch(&mut t, 130, 0, Some(a), None, b'S');
    t.finish(150);
    let states: Vec<_> = of(&t, 1).into_iter().map(|(s, from, to, _)| (s, from, to)).collect();
    assert_eq!(states, [("?", 100, 120), ("RUN", 120, 130), ("S", 130, 150)]);
}

#[test]
fn who_ended_in_a_loss_is_not_unknown_for_ever() {
    let mut t = tracker(ALL);
    let (a, b) = (asleep(&mut t, 1), asleep(&mut t, 2));
    t.lose(Lost { first: 110, last: 130, cpu: None, pid: 0 });
    t.exit(120, a);
    switch(&mut t, 140, 0, None, Some(b), b'R');
    t.exit(150, b);
    t.lose(Lost { first: 160, last: 170, cpu: None, pid: 0 });
    t.finish(200);
    assert_eq!(of(&t, 1)[1], ("?", 110, 120, End::Died));
    assert_eq!(of(&t, 2)[2..], [("RUN", 140, 160, End::Died)]);
}

#[test]
fn lost_calls_leave_it_open_what_a_thread_does() {
    let mut t = tracker(ALL);
    let a = asleep(&mut t, 1);
    t.lose_calls(Lost { first: 110, last: 120, cpu: None, pid: 0 });
    t.wakeup(115, None, a, false);
    switch(&mut t, 116, 0, None, Some(a), b'R');
    t.enter(a, InCall { start: 130, ..InCall::default() });
    t.leave(140, a, CPU_NONE);
    t.finish(150);
    let mut got: Vec<_> = t.sink.0.iter().map(|(_, i)| (i.from, i.to, i.doing == Doing::Unknown)).collect();
    got.retain(|(from, to, _)| !(110..=116).contains(from) || !(110..=116).contains(to));
    assert_eq!(got, [(100, 110, false), (116, 130, true), (130, 140, false), (140, 150, false)]);
}

#[test]
fn a_recording_that_hides_calls_leaves_it_open_what_was_there_before() {
    let mut t = tracker(RunCoverage { hides_calls: true, ..ALL });
    let a = asleep(&mut t, 1);
    let run = RunState { state: b'S', ..RunState::default() };
    t.seen(110, a, &run, None);
    t.enter(a, InCall { start: 130, ..InCall::default() });
    t.leave(140, a, CPU_NONE);
    // one that begins later is seen from its first instruction on
    let b = slot(&mut t, 2);
    t.fork(120, b);
    t.finish(150);
    let last = |tid| t.sink.0.iter().rfind(|(of, _)| *of == tid).map(|(_, i)| i.doing).unwrap();
    let first = t.sink.0.iter().find(|(tid, _)| *tid == 1).unwrap().1;
    assert_eq!((first.from, first.to, first.doing), (100, 130, Doing::Unknown));
    assert_eq!((last(1), last(2)), (Doing::User, Doing::User), "after a call that ended nothing is hidden");
}

#[test]
fn with_switches_of_some_cpus_only_nobody_sleeps_for_sure() {
    let mut t = tracker(RunCoverage { every_cpu: false, ..ALL });
    let a = asleep(&mut t, 1);
    switch(&mut t, 110, 0, None, Some(a), b'R');
    switch(&mut t, 120, 0, Some(a), None, b'S');
    switch(&mut t, 150, 0, None, Some(a), b'R');
    t.finish(160);
    let states: Vec<_> = of(&t, 1).into_iter().map(|(s, from, to, _)| (s, from, to)).collect();
    assert_eq!(states, [("?", 100, 110), ("RUN", 110, 120), ("?", 120, 150), ("RUN", 150, 160)]);
}

#[test]
fn tasks_beside_the_recorded_ones_are_not_followed() {
    let mut t = tracker(RunCoverage { followed: Followed::These([1].into_iter().collect()), ..ALL });
    let stranger = Arc::new(Task { tid: 7, utid: 7, ..Task::default() });
    let (a, x) = (asleep(&mut t, 1), t.slot(&stranger, Some(0)).unwrap());
    t.wakeup(105, Some(Waker { slot: x, softirq: true }), a, false);
    switch(&mut t, 110, 0, Some(x), Some(a), b'S');
    t.finish(120);
    assert!(of(&t, 7).is_empty());
    assert_eq!(of(&t, 1)[0], ("S", 100, 105, End::Woken(Some(Waker { slot: x, softirq: true }))));
}

/// An entry of a thread that says whether it is recorded.
fn entry(tid: u32, recorded: bool) -> Arc<Task> {
    let recorded = if recorded { RecordedFamilies::of(&[Family::Sched]) } else { RecordedFamilies::NOTHING };
    Arc::new(Task { recorded, ..(*task(tid)).clone() })
}

#[test]
fn a_thread_is_followed_from_when_to_when_its_entries_say_so() {
    let mut t = tracker(RunCoverage { followed: Followed::Told { everyone: false }, ..ALL });
    // known as a stranger that a target gave its CPU to
    let a = t.slot(&entry(1, false), Some(110)).unwrap();
    switch(&mut t, 110, 0, None, Some(a), b'R');
    t.slot(&entry(1, true), Some(130));
    t.runs(130, a);
    switch(&mut t, 150, 0, Some(a), None, b'S');
    t.slot(&entry(1, false), Some(170));
    t.wakeup(180, None, a, false);
    t.finish(200);
    assert_eq!(
        of(&t, 1).into_iter().filter(|(_, from, to, _)| to > from).collect::<Vec<_>>(),
        [("RUN", 130, 150, End::Out(b'S')), ("S", 150, 170, End::Stop)]
    );
    assert_eq!(t.unsure_until(), 0, "nothing was lost");
}

#[test]
fn a_checkpoint_tells_what_a_loss_took() {
    let mut t = tracker(RunCoverage { cpus: 2, ..ALL });
    let [a, b, c] = [1, 2, 3].map(|tid| asleep(&mut t, tid));
    t.lose(Lost { first: 110, last: 120, cpu: None, pid: 0 });
    t.lose_calls(Lost { first: 110, last: 120, cpu: None, pid: 0 });
    let run = |state, on_cpu, cpu| RunState { state, on_cpu, cpu, ..RunState::default() };
    t.seen(115, a, &run(b'D', false, 0), None);
    let read = InCall { start: 90, began_before: true, ..InCall::default() };
    t.seen(140, a, &run(b'D', false, 0), Some(read));
    t.seen(140, b, &run(b'R', true, 1), None);
    t.wakeup(145, None, c, false);
    t.seen(150, c, &run(b'S', false, 0), None);
    t.finish(200);
    let states = |tid| of(&t, tid).into_iter().map(|(s, from, to, _)| (s, from, to)).collect::<Vec<_>>();
    assert_eq!(states(1), [("S", 100, 110), ("?", 110, 140), ("D", 140, 200)], "not while more is lost");
    assert_eq!(states(2), [("S", 100, 110), ("?", 110, 140), ("RUN", 140, 200)]);
    // its call is known from then on; the state: events know better
    assert_eq!(states(3)[1..], [("?", 110, 145), ("RQ", 145, 150), ("RQ", 150, 200)]);
    let (_, last) = t.sink.0.iter().rfind(|(tid, _)| *tid == 1).unwrap();
    assert!(matches!(last.doing, Doing::Call(call) if call.start == 90), "{last:?}");
}

#[test]
fn no_more_threads_run_than_there_are_cpus() {
    let mut t = tracker(RunCoverage { cpus: 2, ..ALL });
    let slots: Vec<Slot> = (1..=4).map(|tid| slot(&mut t, tid)).collect();
    // found running by their calls, nobody knows where
    for (at, slot) in slots.iter().enumerate() {
        t.enter(*slot, InCall { start: 110 + at as u64 * 10, ..InCall::default() });
    }
    t.leave(160, slots[3], 1);
    t.enter(slots[0], InCall { start: 170, ..InCall::default() });
    // whoever is thought to be on the CPU where another ends a call has left it
    t.leave(180, slots[1], 1);
    t.finish(200);
    let edges: Vec<u64> = t.sink.0.iter().map(|(_, i)| i.from).collect();
    for at in edges {
        let running = t.sink.0.iter().filter(|(_, i)| i.state == State::Running && i.from <= at && at < i.to);
        assert!(running.count() <= 2, "at {at}: {:?}", t.sink.0);
    }
    assert_eq!(t.threads()[slots[1]].cpu, 1);
    assert_eq!(t.threads()[slots[3]].state, State::Unknown);
}

#[test]
fn a_loss_on_one_cpu_concerns_who_runs_nobody_knows_where() {
    let mut t = tracker(ALL);
    let a = slot(&mut t, 1);
    t.enter(a, InCall { start: 110, ..InCall::default() });
    t.lose(Lost { first: 120, last: 130, cpu: Some(0), pid: 0 });
    t.finish(200);
    assert_eq!(of(&t, 1).last().map(|(s, from, ..)| (*s, *from)), Some(("?", 120)));
}

#[test]
fn slots_of_the_dead_are_used_again() {
    let mut t = tracker(ALL);
    for tid in 1..200 {
        let a = slot(&mut t, tid);
        t.fork(u64::from(tid) * 10, a);
        t.wakeup(u64::from(tid) * 10 + 1, None, a, true);
        switch(&mut t, u64::from(tid) * 10 + 2, 0, None, Some(a), b'R');
        switch(&mut t, u64::from(tid) * 10 + 3, 0, Some(a), None, b'X');
        t.bury();
    }
    assert!(t.threads().len() < 5);
}

/// A machine of two CPUs and four threads that obeys `steps`: what really happened, and the events that tell of it.
struct Machine {
    on: [Option<usize>; 2],
    state: [&'static str; 4],
    since: [u64; 4],
    truth: Vec<(u32, &'static str, u64, u64)>,
    events: Vec<(u64, Event)>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Switch { cpu: u32, prev: Option<usize>, next: Option<usize>, letter: u8 },
    Wakeup { who: usize },
}

impl Machine {
    fn new() -> Self {
        Self { on: [None; 2], state: ["S"; 4], since: [100; 4], truth: Vec::new(), events: Vec::new() }
    }

    fn become_(&mut self, who: usize, ts: u64, state: &'static str) {
        self.truth.push((who as u32 + 1, self.state[who], self.since[who], ts));
        (self.state[who], self.since[who]) = (state, ts);
    }

    fn step(&mut self, ts: u64, cpu: usize, who: usize, sleeps: bool) {
        if self.state[who] == "S" {
            self.become_(who, ts, "RQ");
            self.events.push((ts, Event::Wakeup { who }));
            return;
        }
        let prev = self.on[cpu];
        if prev == Some(who) || self.state[who] == "RUN" {
            return;
        }
        if let Some(prev) = prev {
            self.become_(prev, ts, if sleeps { "S" } else { "RQ" });
        }
        self.become_(who, ts, "RUN");
        self.on[cpu] = Some(who);
        let letter = if sleeps { b'S' } else { b'R' };
        self.events.push((ts, Event::Switch { cpu: cpu as u32, prev, next: Some(who), letter }));
    }

    fn replay(&self, lost: Option<(u64, u64, u32)>, end: u64) -> Tracker<Told> {
        let mut t = tracker(ALL);
        let slots: Vec<Slot> = (1..=4).map(|tid| asleep(&mut t, tid)).collect();
        let mut told = false;
        for (ts, event) in &self.events {
            if let Some((first, last, cpu)) = lost {
                if *ts >= first && !std::mem::replace(&mut told, true) {
                    t.lose(Lost { first, last, cpu: Some(cpu), pid: 0 });
                }
                let here = match event {
                    Event::Switch { cpu, .. } => *cpu,
                    Event::Wakeup { who } => *who as u32 % 2,
                };
                if (first..=last).contains(ts) && here == cpu {
                    continue;
                }
            }
            match *event {
                Event::Wakeup { who } => t.wakeup(*ts, None, slots[who], false),
                Event::Switch { cpu, prev, next, letter } => {
                    switch(&mut t, *ts, cpu, prev.map(|p| slots[p]), next.map(|n| slots[n]), letter);
                }
            }
        }
        t.finish(end);
        t
    }
}

fn machine(steps: &[(u64, usize, usize, bool)]) -> (Machine, u64) {
    let (mut machine, mut ts) = (Machine::new(), 100);
    for (dt, cpu, who, sleeps) in steps {
        ts += dt;
        machine.step(ts, *cpu, *who, *sleeps);
    }
    ts += 1;
    for who in 0..4 {
        machine.become_(who, ts, "end");
    }
    (machine, ts)
}

proptest! {
    #[test]
    fn tells_what_happened(steps in prop::collection::vec((1_u64..50, 0_usize..2, 0_usize..4, any::<bool>()), 0..80)) {
        let (machine, end) = machine(&steps);
        let t = machine.replay(None, end);
        let mut got: Vec<_> = t.sink.0.iter().map(|(tid, i)| (*tid, i.state.name(), i.from, i.to)).collect();
        let mut truth = machine.truth.clone();
        got.sort_unstable();
        truth.sort_unstable();
        prop_assert_eq!(got, truth);
    }

    #[test]
    fn a_loss_makes_it_silent_never_wrong(
        steps in prop::collection::vec((1_u64..50, 0_usize..2, 0_usize..4, any::<bool>()), 0..80),
        first in 100_u64..1500, len in 0_u64..400, cpu in 0_u32..2,
    ) {
        let (machine, end) = machine(&steps);
        let t = machine.replay(Some((first, first + len, cpu)), end);
        for tid in 1..=4_u32 {
            let mine: Vec<&Interval> = t.sink.0.iter().filter(|(who, _)| *who == tid).map(|(_, i)| i).collect();
            // a lifetime without holes
            prop_assert_eq!(mine.first().map(|i| i.from), Some(100));
            prop_assert!(mine.windows(2).all(|pair| pair[0].to == pair[1].from));
            prop_assert_eq!(mine.iter().map(|i| i.len()).sum::<u64>(), end - 100);
            for interval in mine.iter().filter(|i| i.state != State::Unknown && !i.is_empty()) {
                let inside = machine.truth.iter().any(|(who, state, from, to)| {
                    *who == tid && *state == interval.state.name() && *from <= interval.from && interval.to <= *to
                });
                prop_assert!(inside, "thread {} {:?}", tid, interval);
            }
        }
    }
}

fn called(tid: u32, comm: &str) -> Arc<Task> {
    Arc::new(Task { comm: comm.into(), ..(*task(tid)).clone() })
}

/// What thread 1 does: woken at 105, it runs from 110 to 150 and falls asleep; `then` happens while it runs.
fn run(then: impl FnOnce(&mut Tracker<Told>, Slot)) -> (Vec<(&'static str, u64, u64, End)>, u64) {
    let mut t = tracker(ALL);
    let sh = t.slot(&called(1, "sh"), Some(0)).unwrap();
    t.begin(sh, &RunState { utid: 1, state: b'S', cpu: 0, ..RunState::default() });
    t.wakeup(105, None, sh, false);
    switch(&mut t, 110, 0, None, Some(sh), b'R');
    then(&mut t, sh);
    switch(&mut t, 150, 0, Some(sh), None, b'S');
    (of(&t, 1)[2..].to_vec(), t.unsure_until())
}

#[test]
fn what_a_thread_runs_counts_for_the_name_it_has() {
    let (seen, unsure) = run(|t, _| t.becomes(&called(1, "dd"), 130));
    assert_eq!(seen, [("RUN", 110, 130, End::Step), ("RUN", 130, 150, End::Out(b'S'))]);
    assert_eq!(unsure, 0);
    let (seen, _) = run(|t, _| t.becomes(&called(1, "sh"), 130));
    assert_eq!(seen, [("RUN", 110, 150, End::Out(b'S'))], "nothing that matters changed");
    // its process was moved to another cgroup
    let (seen, _) = run(|t, _| t.moves(&Task { tid: 7, cgroup_id: 5, ..(*task(1)).clone() }, 130));
    assert_eq!(seen, [("RUN", 110, 130, End::Step), ("RUN", 130, 150, End::Out(b'S'))]);
}

#[test]
fn where_a_new_name_may_be_lost_nobody_has_the_time() {
    let hears = |name: &'static str| {
        move |t: &mut Tracker<Told>, slot: Slot| {
            t.lose_life(Lost::any(120, 125));
            // a call's beginning does not say who it is
            t.enter(slot, InCall { start: 130, ..InCall::default() });
            t.slot(&called(1, name), Some(140));
        }
    };
    let other = [("RUN", 110, 120, End::Step), ("?", 120, 130, End::Step), ("?", 130, 140, End::Step)];
    let (seen, unsure) = run(hears("dd"));
    assert_eq!((&seen[..3], &seen[3..]), (&other[..], &[("RUN", 140, 150, End::Out(b'S'))][..]));
    assert_eq!(unsure, 140);
    let same = [("RUN", 110, 120, End::Step), ("?", 120, 130, End::Step), ("RUN", 130, 150, End::Out(b'S'))];
    assert_eq!(run(hears("sh")), (same.to_vec(), 130));
}

#[test]
fn a_wait_in_which_a_name_may_be_lost_is_whole_or_unknown() {
    let waits = |name: &str| {
        let mut t = tracker(ALL);
        let sh = t.slot(&called(1, "sh"), Some(0)).unwrap();
        t.begin(sh, &RunState { utid: 1, state: b'S', cpu: 0, ..RunState::default() });
        t.wakeup(105, None, sh, false);
        t.lose_life(Lost::any(107, 108));
        t.slot(&called(1, name), Some(110));
        switch(&mut t, 110, 0, None, Some(sh), b'R');
        let after = t.sink.0[1..].iter().map(|(_, i)| (i.state.name(), i.from, i.to, i.began_before));
        after.collect::<Vec<_>>()
    };
    assert_eq!(waits("sh"), [("RQ", 105, 110, false)]);
    assert_eq!(waits("dd"), [("?", 105, 110, false), ("RQ", 110, 110, true)]);
}

/// What happens to a tracker beside calls.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Switch { cpu: u32, prev: usize, next: usize, letter: u8 },
    Wakeup { waker: Option<usize>, wakee: usize },
    Renamed { who: usize },
    Exit { who: usize },
    Lost { what: u8, len: u64 },
}

/// Threads of a made-up recording, whose events may contradict each other.
#[derive(Debug)]
struct Recorded {
    coverage: RunCoverage,
    /// Time, order, event.
    beside: Vec<(u64, u8, Beside)>,
    /// Beginning and end of each thread's calls.
    calls: Vec<Vec<(u64, u64)>>,
    end: u64,
}

const THREADS: usize = 3;
/// No two things happen at the same time, but in one thread: which of them came first nobody knows.
const APART: u64 = 4;

impl Recorded {
    fn any() -> impl Strategy<Value = Self> {
        let beside = (1_u64..40, 0_u8..24, 0..THREADS, 0..THREADS, any::<bool>());
        let calls = prop::collection::vec((0_u64..25, 1_u64..40), 0..25);
        let all = (prop::collection::vec(beside, 0..40), prop::collection::vec(calls, THREADS));
        (all, any::<(bool, bool, bool)>()).prop_map(|((beside, calls), (every_cpu, counted, whole))| {
            let mut ts = 100;
            let event = |(dt, kind, who, other, flag): (u64, u8, usize, usize, bool)| {
                ts += dt;
                let cpu = u32::from(flag);
                let (order, what) = match kind {
                    0..6 => (3, Beside::Wakeup { waker: flag.then_some(other), wakee: who }),
                    6 => (2, Beside::Renamed { who }),
                    7 => (4, Beside::Exit { who }),
                    8 if !whole => (0, Beside::Lost { what: (who % 3) as u8, len: dt * 3 }),
                    9..15 => (5, Beside::Switch { cpu, prev: who, next: THREADS, letter: b'S' }),
                    15..18 => (5, Beside::Switch { cpu, prev: who, next: other, letter: b'R' }),
                    _ => (5, Beside::Switch { cpu, prev: THREADS, next: who, letter: b'R' }),
                };
                (ts * APART, order, what)
            };
            let beside = beside.into_iter().map(event).collect();
            let in_turn = |(who, calls): (usize, Vec<(u64, u64)>)| {
                let mut ts = 101;
                let mut next = |(gap, len)| {
                    let start = ts + gap;
                    ts = start + len;
                    let at = |ts| ts * APART + who as u64 + 1;
                    (at(start), at(ts))
                };
                calls.into_iter().map(&mut next).collect()
            };
            let calls = calls.into_iter().enumerate().map(in_turn).collect();
            let coverage = RunCoverage { every_cpu, cpus: if counted { 2 } else { 0 }, ..ALL };
            Self { coverage, beside, calls, end: 1200 * APART }
        })
    }

    /// The entry of a thread at `ts`.
    fn entry(&self, who: usize, ts: u64) -> Arc<Task> {
        let renamed =
            |(at, _, what): &&(u64, u8, Beside)| matches!(what, Beside::Renamed { who: of } if *of == who) && *at <= ts;
        called(who as u32 + 1, &format!("name {}", self.beside.iter().filter(renamed).count() % 2))
    }

    fn call(&self, who: usize, row: usize) -> InCall {
        let start = self.calls[who][row].0;
        InCall { call: Call { abi: 0, nr: row as u32 }, start, row: Some((0, row as u32)), ..InCall::default() }
    }

    /// The intervals of all threads, each thread's in order: its calls in queues, or passed among all events.
    fn intervals(&self, queues: bool) -> (Vec<(u32, Interval)>, u64) {
        let mut t = Tracker::new(self.coverage.clone(), self.end, Told::default());
        let entries: Vec<Arc<Task>> = (0..THREADS).map(|who| self.entry(who, 0)).collect();
        for (who, entry) in entries.iter().enumerate() {
            let slot = t.slot(entry, Some(0)).unwrap();
            let state = RunState { utid: who as u32 + 1, state: b'S', on_cpu: who == 0, ..RunState::default() };
            t.begin(slot, &state);
        }
        let mut events: Vec<(u64, u8, What)> =
            self.beside.iter().map(|(ts, order, what)| (*ts, *order, What::Beside(*what))).collect();
        let mut part = PartCalls { calls: vec![Call::default()], restarts: vec![false], ..PartCalls::default() };
        part.calls.extend((1..25).map(|nr| Call { abi: 0, nr }));
        part.restarts.resize(25, false);
        for (who, calls) in self.calls.iter().enumerate().filter(|(_, calls)| !calls.is_empty()) {
            let first = part.spans.len() as u32;
            for (row, (start, end)) in calls.iter().enumerate() {
                let span = CallSpan {
                    start: *start,
                    end: *end,
                    task: part.tasks.len() as u32,
                    call: row as u32,
                    file: 0,
                    row: row as u32,
                    cpu: CPU_NONE,
                    before: false,
                    counted: false,
                };
                match part.spans.last().filter(|_| row > 0) {
                    Some(before) if *part.tasks[before.task as usize] == *self.entry(who, *end) => {
                        part.spans.push(CallSpan { task: before.task, ..span });
                    }
                    _ => {
                        part.tasks.push(self.entry(who, *end));
                        part.spans.push(span);
                    }
                }
                if !queues {
                    events.push((*start, 6, What::Enter(who, row)));
                    events.push((*end, 0, What::Leave(who)));
                }
            }
            if queues {
                let entry = self.entry(who, calls[0].1);
                events.push((calls[0].0, 6, What::Queue(entry, first, part.spans.len() as u32)));
            }
        }
        t.part(part);
        // what is lost from a moment on is known before what happens then
        events.sort_by_key(|(ts, order, what)| (*ts, *order, !matches!(what, What::Beside(Beside::Lost { .. }))));
        for (ts, order, what) in events.iter().filter(|(ts, ..)| *ts < self.end) {
            t.comes_to((*ts, *order));
            let slot = |t: &mut Tracker<Told>, who: usize| {
                (who < THREADS).then(|| t.slot(&self.entry(who, *ts), Some(*ts))).flatten()
            };
            match what {
                What::Enter(who, row) => {
                    let known = t.slot(&self.entry(*who, *ts), None).unwrap();
                    t.enter(known, self.call(*who, *row));
                }
                What::Leave(who) => {
                    let slot = slot(&mut t, *who).unwrap();
                    t.leave(*ts, slot, CPU_NONE);
                }
                What::Queue(task, from, to) => {
                    let slot = t.slot(task, None).unwrap();
                    t.queue(slot, *from..*to);
                }
                What::Beside(Beside::Switch { cpu, prev, next, letter }) => {
                    let (prev, next) = (slot(&mut t, *prev), slot(&mut t, *next));
                    switch(&mut t, *ts, *cpu, prev, next, *letter);
                }
                What::Beside(Beside::Wakeup { waker, wakee }) => {
                    let waker = waker.and_then(|waker| slot(&mut t, waker));
                    let wakee = slot(&mut t, *wakee).unwrap();
                    t.wakeup(*ts, waker.map(|slot| Waker { slot, softirq: false }), wakee, false);
                }
                What::Beside(Beside::Renamed { who }) => {
                    t.becomes(&self.entry(*who, *ts), *ts);
                    let slot = slot(&mut t, *who).unwrap();
                    t.runs(*ts, slot);
                }
                What::Beside(Beside::Exit { who }) => {
                    let slot = slot(&mut t, *who).unwrap();
                    t.exit(*ts, slot);
                }
                What::Beside(Beside::Lost { what: 0, len }) => t.lose(Lost::any(*ts, ts + len)),
                What::Beside(Beside::Lost { what: 1, len }) => t.lose_calls(Lost::any(*ts, ts + len)),
                What::Beside(Beside::Lost { len, .. }) => t.lose_life(Lost::any(*ts, ts + len)),
            }
        }
        t.finish(self.end);
        let mut all = std::mem::take(&mut t.sink.0);
        all.retain(|(_, interval)| !interval.is_empty());
        all.sort_by_key(|(tid, _)| *tid);
        (all, t.unsure_until())
    }
}

/// One event of a [`Recorded`].
#[derive(Clone, Debug)]
enum What {
    Beside(Beside),
    Enter(usize, usize),
    Leave(usize),
    /// Entry of a thread, and its calls.
    Queue(Arc<Task>, u32, u32),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn calls_in_queues_are_as_calls_in_order(recorded in Recorded::any()) {
        prop_assert_eq!(recorded.intervals(true), recorded.intervals(false));
    }
}

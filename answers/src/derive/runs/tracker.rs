//! The state machine: events in order of time in, intervals out.
//!
//! A state is valid only as long as every event that could end it would have been recorded. Otherwise (a loss, a switch
//! that contradicts the one before on its CPU) the time since the last certain event becomes [`State::Unknown`].

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, Call, RunState, Task};

use self::queues::Queues;
use super::gaps::Active;
use super::targets::Followed;
use super::thread_key as key;
use super::{Doing, End, InCall, Interval, IntervalSink, Slot, State, Thread, Waker, Why};
use systape_events::scan::lost::Lost;

/// CPU numbers from here on are damage: they get no table.
const MAX_CPUS: u32 = 1 << 16;

/// Coverage of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCoverage {
    /// When it began.
    pub open: u64,
    /// The threads whose events are all recorded.
    pub followed: Followed,
    /// Switches of every CPU are recorded; otherwise the state of a thread off the CPU is unknown.
    pub every_cpu: bool,
    /// Number of CPUs: no more threads run at once; 0 = not known.
    pub cpus: u32,
    /// A thread that existed at the start, and is in no call then, may be in one.
    pub hides_calls: bool,
}

/// A switch, with threads as slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Time of the note.
    pub ts: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread that ran; None: the idle task.
    pub prev: Option<Slot>,
    /// The thread that runs now; None: the idle task.
    pub next: Option<Slot>,
    /// Letter of the new state of `prev`.
    pub letter: u8,
    /// `prev` is runnable, and its cgroup is out of CPU time.
    pub throttled: bool,
    /// How long before `ts` the cgroup of `next` got CPU time again, ns; 0: then, or not known, or `next` was not throttled.
    pub unthrottled_ns: u64,
    /// No program saw `prev` get the CPU: it was not before this time.
    pub came: Option<u64>,
}

/// States of all threads.
#[derive(Debug)]
pub struct Tracker<S> {
    coverage: RunCoverage,
    threads: Vec<Thread>,
    /// The tracker's own facts about each thread.
    notes: Vec<TrackerNote>,
    by_utid: FxHashMap<u64, Slot>,
    free: Vec<Slot>,
    died: Vec<Slot>,
    /// The last thread of each CPU.
    cpus: Vec<Option<Slot>>,
    /// Threads that run on an unknown CPU, and some that did.
    anywhere: Vec<Slot>,
    lost: Active,
    lost_calls: Active,
    lost_life: Active,
    now: u64,
    /// Whether scheduler events were lost so far, and calls.
    losses: bool,
    call_losses: bool,
    unsure: u64,
    queues: Queues,
    /// Receives the intervals.
    pub sink: S,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrackerNote {
    /// It had an event, so its state does not follow from the absence of events.
    heard: bool,
    /// It called exit: the next time it leaves a CPU is the last.
    exiting: bool,
    /// Its state may be unknown because of a loss.
    by_loss: bool,
    /// See [`Tracker::doubts`].
    doubt: bool,
    /// Its last call that ended, and the call's file.
    before: Option<(Call, u32)>,
    /// It gets a CPU unseen then, by the kernel's times: what it does in a call before does not contradict that it waits.
    comes: u64,
}

impl<S: IntervalSink> Tracker<S> {
    /// No event yet; calls that are queued count before `until` only.
    pub fn new(coverage: RunCoverage, until: u64, sink: S) -> Self {
        Self {
            now: coverage.open,
            coverage,
            threads: Vec::new(),
            notes: Vec::new(),
            by_utid: FxHashMap::default(),
            free: Vec::new(),
            died: Vec::new(),
            cpus: Vec::new(),
            anywhere: Vec::new(),
            lost: Active::default(),
            lost_calls: Active::default(),
            lost_life: Active::default(),
            losses: false,
            call_losses: false,
            unsure: 0,
            queues: Queues::new(until),
            sink,
        }
    }

    /// The threads; dead ones stay until [`Self::bury`].
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The latest time until which the state or call of a thread of the sink was unknown because of a loss; 0: never.
    pub fn unsure_until(&self) -> u64 {
        self.unsure
    }

    /// Time of the last event.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Whether anything was lost so far.
    pub(crate) fn lost_before(&self) -> bool {
        self.losses || self.call_losses
    }

    /// The slot of `task`, new if needed; None for the idle task. `newest`: the entry is valid from this time on.
    pub fn slot(&mut self, task: &Arc<Task>, newest: Option<u64>) -> Option<Slot> {
        if task.tid == 0 {
            return None;
        }
        let key = key(task);
        if let Some(slot) = self.by_utid.get(&key).copied() {
            if let Some(ts) = newest {
                self.is(slot, task, ts, false);
            }
            return Some(slot);
        }
        let followed = self.coverage.followed.has(task);
        let since = if self.coverage.followed.may_change() {
            newest.unwrap_or(self.now).max(self.now)
        } else {
            self.coverage.open.max(task.start_ns.min(self.now))
        };
        let thread = Thread {
            task: Arc::clone(task),
            state: State::Unknown,
            since,
            began_before: false,
            continued: false,
            cpu: CPU_NONE,
            doing: Doing::User,
            last_out: 0,
            last_in: 0,
            missed_out: self.losses,
            missed_in: self.losses,
            dead: false,
            followed,
        };
        // what would have told of it before may have been lost
        let note = TrackerNote { by_loss: self.losses, doubt: self.may_become(task), ..TrackerNote::default() };
        let slot = match self.free.pop() {
            Some(slot) => {
                (self.threads[slot], self.notes[slot]) = (thread, note);
                slot
            }
            None => {
                self.threads.push(thread);
                self.notes.push(note);
                self.threads.len() - 1
            }
        };
        self.by_utid.insert(key, slot);
        Some(slot)
    }

    /// From `ts` on all events of a thread are on the tape, or no longer are.
    fn follow(&mut self, slot: Slot, ts: u64, followed: bool) {
        if self.threads[slot].followed == followed {
            return;
        }
        let ts = self.at(ts);
        self.settle_at(slot, ts);
        if followed {
            // who it is was known from what happened beside others
            let thread = &mut self.threads[slot];
            (thread.followed, thread.since, thread.state) = (true, ts.max(thread.since), State::Unknown);
            (thread.began_before, thread.continued, thread.doing) = (false, false, Doing::Unknown);
        } else {
            self.change(slot, ts, End::Stop, State::Unknown);
            self.threads[slot].followed = false;
        }
        self.watch(slot);
    }

    /// State of a thread when the recording began.
    pub fn begin(&mut self, slot: Slot, run: &RunState) {
        let mut state = if self.coverage.every_cpu { found(run) } else { State::Unknown };
        if state == State::Running && self.occupant(run.cpu).is_some_and(|other| other != slot) {
            // one of the two was looked at later
            state = State::Unknown;
        }
        let thread = &mut self.threads[slot];
        (thread.state, thread.since, thread.cpu) = (state, self.coverage.open, run.cpu);
        (thread.began_before, thread.last_in) = (true, run.last_run);
        if self.coverage.hides_calls {
            thread.doing = Doing::Unknown;
        }
        self.notes[slot].heard = true;
        if state == State::Running {
            self.set_cpu(run.cpu, Some(slot));
        }
    }

    /// State and call of a thread at a checkpoint, used where a loss left it unknown.
    pub fn seen(&mut self, ts: u64, slot: Slot, run: &RunState, call: Option<InCall>) {
        let ts = self.at(ts);
        self.settle_at(slot, ts);
        if self.threads[slot].dead || self.notes[slot].exiting {
            return;
        }
        let state = found(run);
        let unknown = self.threads[slot].state == State::Unknown && self.coverage.every_cpu;
        if unknown && self.lost.none() && state != State::Unknown {
            if state == State::Running {
                self.run_on(slot, ts, run.cpu);
            } else {
                self.change(slot, ts, End::Lost, state);
                let thread = &mut self.threads[slot];
                (thread.began_before, thread.cpu) = (true, run.cpu);
            }
        }
        let says = call.is_some() || !self.coverage.hides_calls;
        let unknown = self.threads[slot].doing == Doing::Unknown;
        if unknown && says && !self.lost_calls.anywhere(self.threads[slot].task.pid) {
            self.step(slot, ts);
            self.threads[slot].doing =
                call.map_or(Doing::User, |call| Doing::Call(InCall { start: ts.min(call.start), ..call }));
        }
    }

    /// A thread got a CPU.
    pub fn runs(&mut self, ts: u64, slot: Slot) {
        let ts = self.at(ts);
        self.must_run(slot, ts, CPU_NONE);
    }

    /// A thread was created.
    pub fn fork(&mut self, ts: u64, child: Slot) {
        let ts = self.at(ts);
        if !std::mem::replace(&mut self.notes[child].heard, true) {
            let state = if self.blind(child) { State::Unknown } else { State::Waiting(Why::Made) };
            self.notes[child].by_loss = !self.lost.none();
            let thread = &mut self.threads[child];
            (thread.since, thread.began_before, thread.state) = (ts, false, state);
            // it is new: of what was lost before nothing was its own
            (thread.missed_out, thread.missed_in) = (!self.lost.none(), !self.lost.none());
        }
        self.watch(child);
    }

    /// A thread began to exit; it runs until it leaves its CPU for the last time. If that may not be recorded, it ends
    /// here.
    pub fn exit(&mut self, ts: u64, slot: Slot) {
        let ts = self.at(ts);
        self.notes[slot].exiting = true;
        if self.threads[slot].state == State::Unknown {
            self.die(slot, ts);
        }
    }

    /// A CPU switched from one thread to another.
    pub fn switch(&mut self, change: Change) {
        let ts = self.at(change.ts);
        let cpu = change.cpu;
        if let Some(believed) = self.cpus.get_mut(cpu as usize).and_then(Option::take)
            && Some(believed) != change.prev
            && self.runs_on(believed, cpu)
        {
            // it left this CPU unseen
            self.doubt(believed, ts);
        }
        if let Some(prev) = change.prev {
            if let Some(came) = change.came {
                self.came_unseen(prev, came, cpu);
            }
            self.left(prev, ts, cpu, (change.letter, change.throttled));
        }
        if let Some(next) = change.next {
            self.unthrottled(next, ts.saturating_sub(change.unthrottled_ns), ts);
            self.came(next, ts, cpu);
        }
        self.set_cpu(cpu, change.next);
        if !self.anywhere.is_empty() {
            self.make_room(ts, 0);
        }
    }

    fn left(&mut self, slot: Slot, ts: u64, cpu: u32, (letter, throttled): (u8, bool)) {
        self.settle_at(slot, ts);
        if self.threads[slot].state != State::Unknown && !self.runs_on(slot, cpu) {
            self.doubt(slot, ts);
        }
        (self.threads[slot].cpu, self.notes[slot].heard) = (cpu, true);
        if matches!(letter, b'X' | b'Z') {
            return self.die(slot, ts);
        }
        let state = match letter {
            _ if self.blind(slot) => State::Unknown,
            b'R' if throttled => State::Throttled,
            b'R' => State::Waiting(Why::Preempted),
            letter => State::Sleeping(letter),
        };
        self.change(slot, ts, End::Out(letter), state);
        let blind = self.coverage.every_cpu && self.blind(slot);
        let thread = &mut self.threads[slot];
        (thread.last_out, thread.missed_out) = (ts, blind);
        thread.missed_in |= blind;
    }

    /// A thread that leaves `cpu` now got it unseen, not before `at`: until then its state is what it was.
    fn came_unseen(&mut self, slot: Slot, at: u64, cpu: u32) {
        let thread = &self.threads[slot];
        if thread.dead || thread.state == State::Unknown || self.runs_on(slot, cpu) {
            return;
        }
        let at = at.clamp(thread.since, self.now);
        self.change(slot, at, End::Lost, State::Unknown);
        (self.notes[slot].by_loss, self.threads[slot].missed_in) = (true, true);
    }

    /// A thread that gets a CPU now waited for one since `at`. Only its getting it says so: until then all of the wait was throttled.
    fn unthrottled(&mut self, slot: Slot, at: u64, now: u64) {
        let thread = &self.threads[slot];
        if thread.state == State::Throttled && at < now {
            let at = at.max(thread.since);
            self.change(slot, at, End::Unthrottled, State::Waiting(Why::Unthrottled));
        }
    }

    fn came(&mut self, slot: Slot, ts: u64, cpu: u32) {
        let thread = &mut self.threads[slot];
        match thread.state {
            // it was woken before it had left, so it never slept
            State::Sleeping(_) if !thread.began_before => thread.state = State::Waiting(Why::Woken),
            State::Sleeping(_) | State::Running => self.doubt(slot, ts),
            State::Waiting(_) | State::Throttled | State::Unknown => {}
        }
        self.notes[slot].heard = true;
        let pid = self.threads[slot].task.pid;
        let state = if self.lost.on(cpu, pid) { State::Unknown } else { State::Running };
        self.change(slot, ts, End::In(cpu), state);
        let thread = &mut self.threads[slot];
        (thread.cpu, thread.last_in, thread.missed_in) = (cpu, ts, state == State::Unknown);
        thread.missed_out |= state == State::Unknown;
    }

    /// A thread was made runnable.
    pub fn wakeup(&mut self, ts: u64, waker: Option<Waker>, wakee: Slot, new: bool) {
        let ts = self.at(ts);
        // what it is in belongs to what it did
        if let Some(waker) = waker {
            self.settle_at(waker.slot, ts);
        }
        self.notes[wakee].heard = true;
        let why = match self.threads[wakee].state {
            // it had not left yet: its leaving will say that it wants to go on
            State::Running => return,
            State::Waiting(Why::Made) => Why::New,
            State::Waiting(_) | State::Throttled => return,
            State::Sleeping(_) => Why::Woken,
            State::Unknown if new => Why::New,
            State::Unknown => Why::Woken,
        };
        let state = if self.blind(wakee) { State::Unknown } else { State::Waiting(why) };
        self.change(wakee, ts, End::Woken(waker), state);
    }

    /// A thread was just made runnable in a cgroup that is out of CPU time.
    pub fn throttled(&mut self, slot: Slot) {
        let thread = &mut self.threads[slot];
        if matches!(thread.state, State::Waiting(Why::Woken | Why::New)) && thread.since == self.now {
            thread.state = State::Throttled;
        }
    }

    /// A thread gets a CPU unseen at `ts`, which may be a little late.
    pub fn comes(&mut self, slot: Slot, ts: u64) {
        self.notes[slot].comes = ts;
    }

    /// Whether what a thread does now contradicts its state.
    pub(crate) fn is_off(&self, slot: Slot) -> bool {
        matches!(self.threads[slot].state, State::Sleeping(_) | State::Waiting(_) | State::Throttled)
    }

    /// A call began by which the kernel goes on with the one before, which a signal without a handler had interrupted: it is that one.
    pub fn restart(&mut self, slot: Slot, call: InCall) {
        let before = self.notes[slot].before;
        self.enter(slot, before.map_or(call, |(before, file)| InCall { call: before, file, ..call }));
    }

    /// A call began.
    pub fn enter(&mut self, slot: Slot, call: InCall) {
        let ts = self.at(call.start);
        if !call.began_before {
            self.must_run(slot, ts, CPU_NONE);
        }
        self.step(slot, ts);
        self.threads[slot].doing = Doing::Call(call);
    }

    /// The call of a thread ended, on `cpu` ([`CPU_NONE`]: not known).
    pub fn leave(&mut self, ts: u64, slot: Slot, cpu: u32) {
        let ts = self.at(ts);
        self.must_run(slot, ts, cpu);
        self.step(slot, ts);
        let pid = self.threads[slot].task.pid;
        self.notes[slot].before = match self.threads[slot].doing {
            Doing::Call(call) => Some((call.call, call.file)),
            Doing::User | Doing::Unknown => None,
        };
        self.threads[slot].doing = if self.lost_calls.anywhere(pid) { Doing::Unknown } else { Doing::User };
    }

    /// Scheduler events are missing from here on.
    pub fn lose(&mut self, lost: Lost) {
        let ts = self.loses(lost);
        self.lost.end_before(ts);
        self.lost.begin(lost);
        self.losses = true;
        for slot in 0..self.threads.len() {
            let Thread { state, cpu, dead, ref task, .. } = self.threads[slot];
            let concerned = lost.pid == 0 || lost.pid == task.pid;
            let elsewhere = state == State::Running && cpu != CPU_NONE && lost.cpu.is_some_and(|c| c != cpu);
            if dead || !concerned || elsewhere {
                continue;
            }
            if state != State::Unknown {
                self.change(slot, ts, End::Lost, State::Unknown);
            }
            let thread = &mut self.threads[slot];
            (thread.missed_out, thread.missed_in) = (true, true);
        }
    }

    /// Calls are missing from here on.
    pub(crate) fn lose_calls(&mut self, lost: Lost) {
        let ts = self.loses(lost);
        self.lost_calls.end_before(ts);
        self.lost_calls.begin(lost);
        self.call_losses = true;
        for slot in 0..self.threads.len() {
            let thread = &self.threads[slot];
            let concerned = lost.pid == 0 || lost.pid == thread.task.pid;
            // of a call that only a checkpoint has the end may be missing
            let open = match thread.doing {
                Doing::User => true,
                Doing::Call(call) => call.row.is_none(),
                Doing::Unknown => false,
            };
            if concerned {
                self.notes[slot].before = None;
            }
            if concerned && !thread.dead && open {
                self.step(slot, ts);
                self.threads[slot].doing = Doing::Unknown;
            }
        }
    }

    /// The recording, or the selected part of it, ends.
    pub fn finish(&mut self, ts: u64) {
        self.ring((ts, 0));
        let ts = self.at(ts);
        for slot in 0..self.threads.len() {
            if !self.threads[slot].dead {
                self.settle(slot, (ts, 0));
                self.close(slot, ts, End::Stop);
                self.threads[slot].since = ts;
            }
        }
    }

    /// Something is missing from the first time of `lost` on, which is returned.
    fn loses(&mut self, lost: Lost) -> u64 {
        self.ring((lost.first, 0));
        let ts = self.at(lost.first);
        self.in_order(ts);
        ts
    }

    /// Frees the slots of threads that died before the last call of this function: a record of them may come a little
    /// late.
    pub fn bury(&mut self) {
        let dead = self.free_after_next();
        for slot in dead {
            self.by_utid.remove(&key(&self.threads[slot].task));
            self.free.push(slot);
        }
    }

    /// Frees the marked threads; those that died since are marked now.
    fn free_after_next(&mut self) -> Vec<Slot> {
        let died = std::mem::take(&mut self.died);
        let (old, new): (Vec<Slot>, Vec<Slot>) = died.into_iter().partition(|slot| self.notes[*slot].exiting);
        new.iter().for_each(|slot| self.notes[*slot].exiting = true);
        self.died = new;
        old
    }

    /// Time never runs backwards: a late event happens now.
    fn at(&mut self, ts: u64) -> u64 {
        self.now = self.now.max(ts);
        if !self.lost.none() {
            self.lost.end_before(self.now);
        }
        if !self.lost_calls.none() {
            self.lost_calls.end_before(self.now);
        }
        if !self.lost_life.none() {
            self.lost_life.end_before(self.now);
        }
        self.now
    }

    /// Whether events of a thread off the CPU may be missing.
    fn blind(&self, slot: Slot) -> bool {
        !self.coverage.every_cpu || (!self.lost.none() && self.lost.anywhere(self.threads[slot].task.pid))
    }

    fn runs_on(&self, slot: Slot, cpu: u32) -> bool {
        let thread = &self.threads[slot];
        // a thread that was found running without a word of where may be anywhere
        thread.state == State::Running && (thread.cpu == cpu || thread.cpu == CPU_NONE)
    }

    fn set_cpu(&mut self, cpu: u32, slot: Option<Slot>) {
        if cpu >= MAX_CPUS {
            return;
        }
        let at = cpu as usize;
        if at >= self.cpus.len() {
            self.cpus.resize(at + 1, None);
        }
        self.cpus[at] = slot;
    }

    /// The thread on `cpu`, as far as is known.
    fn occupant(&self, cpu: u32) -> Option<Slot> {
        let slot = self.cpus.get(cpu as usize).copied().flatten()?;
        let thread = &self.threads[slot];
        (thread.followed && !thread.dead && thread.state == State::Running && thread.cpu == cpu).then_some(slot)
    }

    /// At most as many threads run as there are CPUs. If more seem to, some of those on unknown CPUs left unseen: none
    /// of them counts as running any more. False: there is no CPU left for one more.
    fn make_room(&mut self, ts: u64, more: usize) -> bool {
        let threads = &self.threads;
        let somewhere = |slot: &Slot| {
            let thread = &threads[*slot];
            thread.followed && !thread.dead && thread.state == State::Running && thread.cpu == CPU_NONE
        };
        self.anywhere.retain(somewhere);
        if self.coverage.cpus == 0 {
            return true;
        }
        let placed = (0..self.cpus.len() as u32).filter(|cpu| self.occupant(*cpu).is_some()).count();
        let cpus = self.coverage.cpus as usize;
        if placed + self.anywhere.len() + more > cpus {
            std::mem::take(&mut self.anywhere).into_iter().for_each(|slot| self.doubt(slot, ts));
        }
        placed + more <= cpus
    }

    /// A thread of unknown state runs on `cpu` ([`CPU_NONE`]: on any).
    fn run_on(&mut self, slot: Slot, ts: u64, cpu: u32) {
        if let Some(other) = self.occupant(cpu).filter(|other| *other != slot) {
            // it left unseen
            self.doubt(other, ts);
        }
        if self.threads[slot].followed && !self.make_room(ts, 1) {
            return;
        }
        if self.threads[slot].since < ts {
            self.change(slot, ts, End::Lost, State::Running);
        }
        let thread = &mut self.threads[slot];
        (thread.state, thread.cpu, thread.began_before) = (State::Running, cpu, true);
        match cpu {
            CPU_NONE => self.anywhere.push(slot),
            cpu => self.set_cpu(cpu, Some(slot)),
        }
    }

    /// Only a thread on a CPU begins and ends calls: any other state was wrong, and an unknown state becomes running,
    /// on an unknown CPU.
    fn must_run(&mut self, slot: Slot, ts: u64, cpu: u32) {
        if self.is_off(slot) {
            if ts <= self.notes[slot].comes {
                return;
            }
            self.doubt(slot, ts);
        }
        let known = self.threads[slot].state != State::Unknown;
        if known || self.threads[slot].dead || self.notes[slot].exiting || !self.lost.none() || self.blind(slot) {
            return;
        }
        self.run_on(slot, ts, cpu);
    }

    /// The state of `slot` since its last event was wrong.
    fn doubt(&mut self, slot: Slot, ts: u64) {
        self.settle_at(slot, ts);
        let thread = &mut self.threads[slot];
        (thread.state, thread.missed_out, thread.missed_in) = (State::Unknown, true, true);
        self.notes[slot].by_loss = true;
        self.change(slot, ts, End::Lost, State::Unknown);
    }

    fn die(&mut self, slot: Slot, ts: u64) {
        if self.threads[slot].dead {
            return;
        }
        self.settle_at(slot, ts);
        self.close(slot, ts, End::Died);
        let thread = &mut self.threads[slot];
        (thread.dead, thread.since, thread.last_out) = (true, ts, ts);
        thread.state = State::Unknown;
        self.notes[slot].exiting = false;
        self.died.push(slot);
    }

    fn change(&mut self, slot: Slot, ts: u64, end: End, state: State) {
        if self.threads[slot].dead {
            return;
        }
        if state == State::Unknown && self.notes[slot].exiting {
            return self.die(slot, ts);
        }
        self.settle_at(slot, ts);
        self.close(slot, ts, end);
        self.notes[slot].by_loss = state == State::Unknown && (self.notes[slot].by_loss || !self.lost.none());
        let thread = &mut self.threads[slot];
        (thread.state, thread.since, thread.began_before, thread.continued) = (state, ts, false, false);
        self.watch(slot);
    }

    fn step(&mut self, slot: Slot, ts: u64) {
        self.settle_at(slot, ts);
        let thread = &self.threads[slot];
        if thread.dead || ts <= thread.since {
            return;
        }
        self.close(slot, ts, End::Step);
        let thread = &mut self.threads[slot];
        (thread.since, thread.began_before, thread.continued) = (ts, false, true);
    }

    fn close(&mut self, slot: Slot, ts: u64, end: End) {
        let thread = &self.threads[slot];
        if !thread.followed || thread.dead {
            return;
        }
        let TrackerNote { by_loss, doubt, .. } = self.notes[slot];
        let by_loss = doubt || (by_loss && thread.state == State::Unknown);
        let call_lost = self.call_losses && thread.doing == Doing::Unknown;
        if (by_loss || call_lost) && ts > thread.since && self.sink.concerns(thread) {
            self.unsure = self.unsure.max(ts);
        }
        let interval = Interval {
            state: if doubt { State::Unknown } else { thread.state },
            from: thread.since,
            to: ts.max(thread.since),
            began_before: thread.began_before,
            continued: thread.continued,
            end,
            doing: thread.doing,
            cpu: thread.cpu,
        };
        self.sink.interval(&self.threads, slot, &interval);
    }
}

/// The state in a checkpoint.
fn found(run: &RunState) -> State {
    match run.state {
        _ if run.on_cpu => State::Running,
        b'R' => State::Waiting(Why::Before),
        letter @ (b'S' | b'D' | b'T' | b't' | b'F' | b'I' | b'P' | b'Z' | b'X') => State::Sleeping(letter),
        _ => State::Unknown,
    }
}

mod identity;
mod queues;
#[cfg(test)]
mod tests;

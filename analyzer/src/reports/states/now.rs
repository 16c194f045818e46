//! State of a thread at one instant, and its line.

use systape_format::model::CPU_NONE;

use super::super::Context;
use systape_answers::derive::runs::keys::{self, Place, is_kernel, set_thread};
use systape_answers::derive::runs::{Doing, InCall, Slot, State, Thread};
use systape_answers::render::mark;
use systape_answers::render::row::Row;
use systape_answers::render::table::millis;

systape_format::tables! {
    /// One row a thread at the instant of `--at`, who has been off the CPU for longest first.
    pub NOW = "states_at" {
        ts_ns: Time key "the instant"
        pid: Int "process"
        tid: Int key "thread"
        upid: Int "the process, unique in the tape"
        utid: Int key "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        state: Word "letter of ps(1), `RUN` (on a CPU), `RQ` (waiting for one), `throttled` (its cgroup has used up its CPU quota) or `?`"
        cpu: Int "where it runs or ran last; null: not known"
        off_cpu_ns ? AtLeast: Duration "for how long it has been on no CPU; null: it is on one, or that is not known"
        came_on_cpu_ns: Duration "how long ago it last came on a CPU; null: not known, or events were lost since"
        syscall: Word "the call it is in, `[user]` (in none), `[kernel]` (a kernel thread) or `?`"
        args_text: Word [String] "arguments of the call as the listing prints them, cut to 60 characters; null: in no call, or not recorded"
        call_ns ? AtLeast: Duration "for how long it has been in the call; null: in none"
    }
}

/// A thread at that instant.
#[derive(Debug)]
pub(super) struct Now<'a> {
    /// Index of the thread in the tracker.
    pub(super) slot: Slot,
    pub(super) thread: &'a Thread,
    /// Time since it left its CPU, ns; None: it is on one, or not known.
    pub(super) off: Option<u64>,
    /// `off` is a lower bound.
    pub(super) off_before: bool,
    /// Time since it last got a CPU, ns; None: not known.
    pub(super) came: Option<u64>,
    place: Place,
    /// Whether its state is less certain than on a tape without missing calls.
    pub(super) unsure: bool,
    /// Call of the thread.
    pub(super) call: Option<InCall>,
    /// Time since that call began, ns.
    call_ns: u64,
}

impl<'a> Now<'a> {
    /// `longer`: see [`systape_answers::derive::runs::gaps::of_longer_calls`].
    pub(super) fn of((slot, thread): (Slot, &'a Thread), at: u64, open: u64, all_calls: bool, longer: &[u32]) -> Self {
        let known = thread.last_out > 0 && !thread.missed_out;
        let off = match thread.state {
            State::Running | State::Unknown => None,
            _ if known => Some(at.saturating_sub(thread.last_out)),
            // that it left then is not known, but that it is on none since
            _ if thread.missed_out => Some(at.saturating_sub(thread.since)),
            _ => Some(at.saturating_sub(thread.task.start_ns.max(open))),
        };
        let call = match thread.doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        // it is in no call that is on the tape
        let hidden = thread.doing == Doing::User && longer.iter().any(|pid| *pid == 0 || *pid == thread.task.pid);
        let doing = if hidden { Doing::Unknown } else { thread.doing };
        let place = keys::place(&doing, thread.state, is_kernel(&thread.task), all_calls);
        let came = (thread.last_in > 0 && !thread.missed_in).then(|| at.saturating_sub(thread.last_in));
        Self {
            slot,
            thread,
            off,
            off_before: !known && (thread.missed_out || thread.task.start_ns <= open),
            came,
            // of a call that only a checkpoint has less is known than of its row
            unsure: (hidden && place == Place::Unknown) || call.is_some_and(|call| call.row.is_none()),
            place,
            call,
            call_ns: call.map_or(0, |call| at.saturating_sub(call.start)),
        }
    }

    /// Whether it may have got a CPU or left one unseen.
    pub(super) fn missed(&self) -> bool {
        self.thread.missed_in || self.thread.missed_out
    }

    /// The CPU where it runs or ran last.
    fn cpu(&self) -> Option<u32> {
        let moved = self.thread.missed_in && self.thread.state != State::Running;
        Some(self.thread.cpu).filter(|cpu| *cpu != CPU_NONE && !moved)
    }

    pub(super) fn cells(&self, context: &Context<'_>, arguments: Option<&str>) -> Vec<String> {
        let task = &self.thread.task;
        let optional = |ns: Option<u64>, lead| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead));
        let mut comm = String::new();
        systape_abi::escape(&task.comm, &mut comm);
        let (call, time) = match &self.call {
            Some(call) => {
                let name = &context.question.book.get(call.call).long_name;
                let lead = mark::at_least(call.began_before);
                (format!("{name}({})", arguments.unwrap_or("?")), millis(self.call_ns, lead))
            }
            None => (place_name(self.place).to_owned(), "-".to_owned()),
        };
        vec![
            optional(self.off, mark::at_least(self.off_before)),
            optional(self.came, ""),
            format!("[{}]", self.thread.state.name()),
            task.pid.to_string(),
            task.tid.to_string(),
            self.cpu().map_or_else(|| "?".into(), |cpu| cpu.to_string()),
            comm,
            time,
            call,
        ]
    }

    pub(super) fn row<'r>(&'r self, context: &Context<'_>, ts: i64, arguments: Option<&'r str>) -> Row<'r> {
        let name = self.call.map(|call| context.question.book.get(call.call).long_name.clone());
        let mut row = Row::new(&NOW);
        row.set("ts_ns", ts);
        set_thread(&mut row, &self.thread.task);
        row.set("state", self.thread.state.name());
        row.set("cpu", self.cpu());
        row.bound("off_cpu_ns", self.off, self.off_before).set("came_on_cpu_ns", self.came);
        row.set("syscall", name.unwrap_or_else(|| place_name(self.place).to_owned())).set("args_text", arguments);
        let began_before = self.call.is_some_and(|call| call.began_before);
        row.bound("call_ns", self.call.map(|_| self.call_ns), began_before);
        row
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::User => "[user]",
        Place::Kernel => "[kernel]",
        Place::Any | Place::Unknown | Place::Call(_) => "?",
    }
}

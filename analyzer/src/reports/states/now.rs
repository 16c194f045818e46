//! What a thread was doing at one instant, and its line.

use serde_json::Value;
use systape_format::model::CPU_NONE;

use super::super::Context;
use crate::render::table::{Fields, millis};
use crate::runs::keys::{self, Place, is_kernel, task_fields};
use crate::runs::{Doing, InCall, Slot, State, Thread};

/// A thread at that instant.
#[derive(Debug)]
pub(super) struct Now<'a> {
    /// Its position in the tracker.
    pub(super) slot: Slot,
    pub(super) thread: &'a Thread,
    /// For how long it has been on no CPU, ns; None: it is on one, or that is not known.
    pub(super) off: Option<u64>,
    /// `off` is a lower bound.
    pub(super) off_before: bool,
    /// How long ago it last came on a CPU, ns; None: not known.
    pub(super) came: Option<u64>,
    place: Place,
    /// The call it is in.
    pub(super) call: Option<InCall>,
    /// For how long it has been in that call, ns.
    call_ns: u64,
}

impl<'a> Now<'a> {
    pub(super) fn of((slot, thread): (Slot, &'a Thread), at: u64, open: u64, all_calls: bool) -> Self {
        let known = thread.last_out > 0;
        let off = match thread.state {
            State::Running | State::Unknown => None,
            _ if known => Some(at.saturating_sub(thread.last_out)),
            _ => Some(at.saturating_sub(thread.task.start_ns.max(open))),
        };
        let call = match thread.doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        Self {
            slot,
            thread,
            off,
            off_before: !known && thread.task.start_ns <= open,
            came: (thread.last_in > 0).then(|| at.saturating_sub(thread.last_in)),
            place: keys::place(&thread.doing, thread.state, is_kernel(&thread.task), all_calls),
            call,
            call_ns: call.map_or(0, |call| at.saturating_sub(call.start)),
        }
    }

    pub(super) fn cells(&self, context: &Context<'_>, arguments: Option<&str>) -> Vec<String> {
        let task = &self.thread.task;
        let optional = |ns: Option<u64>, lead| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead));
        let mut comm = String::new();
        systape_abi::escape(&task.comm, &mut comm);
        let (call, time) = match &self.call {
            Some(call) => {
                let name = &context.question.book.get(call.call).long_name;
                let lead = if call.began_before { "≥" } else { "" };
                (format!("{name}({})", arguments.unwrap_or("?")), millis(self.call_ns, lead))
            }
            None => (place_name(self.place).to_owned(), "-".to_owned()),
        };
        vec![
            optional(self.off, if self.off_before { "≥" } else { "" }),
            optional(self.came, ""),
            format!("[{}]", self.thread.state.name()),
            task.pid.to_string(),
            task.tid.to_string(),
            if self.thread.cpu == CPU_NONE { "?".into() } else { self.thread.cpu.to_string() },
            comm,
            time,
            call,
        ]
    }

    pub(super) fn fields(&self, context: &Context<'_>, ts: i64, arguments: Option<&str>) -> Fields {
        let optional = |ns: Option<u64>| ns.map_or(Value::Null, Value::from);
        let mut fields: Fields = vec![("ts_ns", ts.into())];
        fields.extend(task_fields(Some(&self.thread.task), true));
        let name = self.call.map(|call| context.question.book.get(call.call).long_name.clone());
        let in_call = |value: Value| if self.call.is_some() { value } else { Value::Null };
        fields.extend([
            ("state", self.thread.state.name().into()),
            ("cpu", if self.thread.cpu == CPU_NONE { Value::Null } else { self.thread.cpu.into() }),
            ("off_cpu_ns", optional(self.off)),
            ("off_cpu_at_least", (self.off.is_some() && self.off_before).into()),
            ("came_on_cpu_ns", optional(self.came)),
            ("syscall", Value::from(name.unwrap_or_else(|| place_name(self.place).to_owned()))),
            ("args_text", arguments.map_or(Value::Null, |text| text.into())),
            ("call_ns", in_call(self.call_ns.into())),
            ("call_at_least", in_call(self.call.is_some_and(|call| call.began_before).into())),
        ]);
        fields
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::User => "[user]",
        Place::Kernel => "[kernel]",
        Place::Any | Place::Unknown | Place::Call(_) => "?",
    }
}

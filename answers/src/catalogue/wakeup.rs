//! Wake-ups: the line of the waker, without a task if that was an interrupt.

use systape_format::model::{StackOf, Wakeup};

use super::catalogue;
use systape_events::values::words::NET_SOFTIRQ;

catalogue! {
    /// One row for each time a thread was made runnable (sched:sched_waking, sched:sched_wakeup_new).
    pub WAKEUPS = "wakeups" of Wakeup {
        event: Word "its name: `sched:sched_waking`, or `sched:sched_wakeup_new`, a new thread's first" = |o| o.kind().name;
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        cpu: Int "where the waker ran" = |o| o.e.cpu;
        waker: Task "process of the waker; null with the next four: an interrupt" = |o| o.e.waker.and_then(|task| o.task(task));
        wakee: Task "process of the thread that was woken" = |o| o.task(o.e.wakee);
        target_cpu: Int "the CPU it ran on last; of a new thread where it is queued" = |o| o.e.target_cpu;
        via: Word "`net-softirq`: the kernel delivered a packet that the waker had just sent on this machine; null: it did not, or that is not known" = |o| via(o.e);
    }
    family Sched, blocks [Wakeups], stacks Some(StackOf::Wakeup);
    read |segment, dict| segment.wakeups(dict);
    when |e| (e.ts, Some(e.cpu));
    whose |o| [o.e.waker.and_then(|task| o.task(task)), o.task(o.e.wakee)];
    kind |e| e.new.into();
    0 => "sched:sched_waking" ["sched:sched_wakeup"]:
        comm = wakee_comm, pid = wakee_tid, target_cpu, via |o| via(o.e).map(str::to_owned);
    1 => "sched:sched_wakeup_new" []:
        comm = wakee_comm, pid = wakee_tid, target_cpu, via |o| via(o.e).map(str::to_owned);
}

fn via(e: &Wakeup) -> Option<&'static str> {
    e.softirq.then_some(NET_SOFTIRQ)
}

//! Switches of CPUs: the line of the task that ran.

use systape_format::model::{StackOf, Switch};

use super::catalogue;

catalogue! {
    /// One row for each switch of a CPU from one thread to another (sched:sched_switch).
    pub SCHED = "sched" of Switch {
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        cpu: Int key "where" = |o| o.e.cpu;
        prev: Task "process of the thread that ran until then; 0: idle" = |o| o.task(o.e.prev);
        prev_state: Word "its state from here on, as ps(1) writes it: R (it still wants to run), S, D, T, t, X, Z, P, I; F if the freezer of its cgroup holds it" = |o| letter(o.e);
        preempted: Flag "it had to make room for another" = |o| o.e.preempted;
        next: Task "process of the thread that runs from then on; 0: idle" = |o| o.task(o.e.next);
        prev_came_ns: Duration "how long before the thread got the CPU that it leaves, if no program saw that; null: it was seen" = |o| o.e.came.map(|came| came.ns);
        prev_came_ns_at_most: Flag "that is the most it can have been; null: likewise" = |o| o.e.came.map(|came| came.at_most);
    }
    family Sched, blocks [Sched], stacks Some(StackOf::Switch);
    read |segment, dict| segment.switches(dict);
    when |e| (e.ts, Some(e.cpu));
    whose |o| [o.task(o.e.prev), o.task(o.e.next)];
    kind |_e| 0;
    // perf's `R+`: preempted
    0 => "sched:sched_switch" []:
        prev_comm, prev_pid = prev_tid, prev_state |o| Some(letter(o.e) + if o.e.preempted { "+" } else { "" }), next_comm,
        next_pid = next_tid, prev_came |o| o.e.came.map(|came| {
            format!("unseen {}{} ns before", if came.at_most { "<=" } else { "" }, came.ns)
        });
}

fn letter(e: &Switch) -> String {
    char::from(e.prev_letter()).to_string()
}

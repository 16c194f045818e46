//! Switches and wake-ups.

use systape_bpf::wire;
use systape_format::model::{Family, StackOf, Switch, Wakeup};

use super::rows::Rows;
use super::world::World;
use crate::tasks::{TaskId, Tasks};

/// prev_state of a task that will never run again (include/linux/sched.h).
const TASK_DEAD: u32 = 0x80;

/// A CPU switched from one task to another.
pub(super) fn switch(s: &wire::Switch, world: &mut World, rows: &mut Rows) {
    let left = world.tasks.meet(&s.prev);
    if rows.sheds(Family::Sched, s.ts) {
        return note_end(s, left, &mut world.tasks);
    }
    let (prev, next) = (rows.task(&mut world.tasks, left), rows.who(&mut world.tasks, &s.next));
    rows.stored(Family::Sched, s.ts);
    let row = rows.builder.push_switch(Switch {
        ts: s.ts,
        cpu: s.hdr.cpu,
        prev,
        next,
        prev_state: s.prev_state,
        preempted: s.hdr.flags & wire::SWITCH_PREEMPTED != 0,
    });
    // of tasks that are not recorded none is taken; before 5.12 nor when one leaves its CPU for the last time, because
    // the programs know nothing of it any more
    let expected = world.tasks.is_target(left) && world.tasks.is_alive(left);
    rows.attach_who(&mut world.tasks, (StackOf::Switch, row), &s.prev, s.ts, expected);
    note_end(s, left, &mut world.tasks);
}

fn note_end(s: &wire::Switch, task: TaskId, tasks: &mut Tasks) {
    if s.prev_state & TASK_DEAD != 0 {
        // the exit of a task that is not recorded itself is told by this alone
        tasks.exit(task, s.ts);
    }
}

/// A task was made runnable.
pub(super) fn wakeup(w: &wire::Wakeup, world: &mut World, rows: &mut Rows) {
    if rows.sheds(Family::Sched, w.ts) {
        return;
    }
    let softirq = w.hdr.flags & wire::WAKEUP_SOFTIRQ != 0;
    // a softirq at the end of the waker's own send is the waker's doing
    let interrupt = w.hdr.flags & wire::WAKEUP_IRQ != 0 && !softirq;
    let waker = if interrupt { None } else { Some(rows.who(&mut world.tasks, &w.waker)) };
    let wakee = rows.who(&mut world.tasks, &w.wakee);
    rows.stored(Family::Sched, w.ts);
    let row = rows.builder.push_wakeup(Wakeup {
        ts: w.ts,
        cpu: w.hdr.cpu,
        waker,
        wakee,
        target_cpu: w.target_cpu,
        new: w.hdr.flags & wire::WAKEUP_NEW != 0,
        softirq,
    });
    rows.attach_who(&mut world.tasks, (StackOf::Wakeup, row), &w.waker, w.ts, !interrupt && w.waker.tid != 0);
}

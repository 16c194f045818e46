//! Switches and wake-ups.

use systape_bpf::wire;
use systape_format::model::{Came, Family, Gap, GapCause, StackOf, Switch, Wakeup};

use super::rows::Rows;
use super::world::World;
use crate::tasks::{TaskId, Tasks, Throttled};

/// prev_state of a task that will never run again (include/linux/sched.h).
const TASK_DEAD: u32 = 0x80;

/// Unit of the programs' sums of throttled time, ns.
const CLOCK_UNIT: u64 = 1024;

/// A CPU switched from one task to another.
pub(super) fn switch(s: &wire::Switch, world: &mut World, rows: &mut Rows) {
    let left = world.tasks.meet(&s.prev);
    let next_id = world.tasks.meet(&s.next);
    let throttled = s.hdr.flags & wire::SWITCH_THROTTLED != 0;
    let unthrottled_ns = world.tasks.get_mut(next_id).throttled.take().map_or(0, |since| unthrottled_ns(since, s));
    // the idle tasks are one, and none of them is throttled
    world.tasks.get_mut(left).throttled =
        (throttled && s.prev.tid != 0).then_some(Throttled { ts: s.ts, cpu: s.hdr.cpu, clock: s.prev_throttle });
    let came = came(s);
    if let Some(came) = came {
        let target = world.tasks.is_target(left).then_some(s.prev.pid);
        hidden(s, came, target).into_iter().for_each(|gap| rows.gap(gap));
    }
    if rows.sheds(Family::Sched, s.ts) {
        return note_end(s, left, &mut world.tasks);
    }
    let (prev, next) = (rows.task(&mut world.tasks, left), rows.task(&mut world.tasks, next_id));
    rows.stored(Family::Sched, s.ts);
    let row = rows.builder.push_switch(Switch {
        ts: s.ts,
        cpu: s.hdr.cpu,
        prev,
        next,
        prev_state: s.prev_state,
        preempted: s.hdr.flags & wire::SWITCH_PREEMPTED != 0,
        throttled,
        unthrottled_ns,
        came,
    });
    // of tasks that are not recorded none is taken; before 5.12 nor when one leaves its CPU for the last time, because
    // the programs know nothing of it any more
    let expected = world.tasks.is_target(left) && world.tasks.is_alive(left);
    rows.attach_who(&mut world.tasks, (StackOf::Switch, row), &s.prev, s.ts, expected);
    note_end(s, left, &mut world.tasks);
}

/// When the task before got the CPU, if no program saw it.
fn came(s: &wire::Switch) -> Option<Came> {
    let unseen = s.hdr.flags & wire::SWITCH_UNSEEN != 0;
    unseen.then(|| Came { ns: s.ts.saturating_sub(s.came), at_most: s.hdr.flags & wire::SWITCH_SINCE != 0 })
}

/// What is missing before a switch whose task before, of the process `target`, came unseen: when it came, if the kernel does not say it.
fn hidden(s: &wire::Switch, came: Came, target: Option<u32>) -> Option<Gap> {
    let pid = target.filter(|pid| came.at_most && *pid != 0)?;
    Some(Gap {
        cause: GapCause::Hidden,
        family: Family::Sched,
        cpu: s.hdr.cpu,
        count: 1,
        first: s.ts.saturating_sub(came.ns),
        last: s.ts,
        pid,
        ledger: false,
    })
}

/// How long before a switch its next task ceased to be throttled, which it was `since`; 0 = then, or it is not known: it was moved
/// to another CPU, whose sum is another one, or the kernel is older than 6.6 and keeps none.
fn unthrottled_ns(since: Throttled, s: &wire::Switch) -> u64 {
    let wait = s.ts.saturating_sub(since.ts);
    // after more than an hour the sum may have gone round
    if since.cpu != s.hdr.cpu || s.next_throttle == 0 || wait >= CLOCK_UNIT << 32 {
        return 0;
    }
    let throttled = CLOCK_UNIT * u64::from(s.next_throttle.wrapping_sub(since.clock));
    wait.saturating_sub(throttled)
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
        throttled: w.hdr.flags & wire::WAKEUP_THROTTLED != 0,
    });
    rows.attach_who(&mut world.tasks, (StackOf::Wakeup, row), &w.waker, w.ts, !interrupt && w.waker.tid != 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_came_unseen_has_a_gap_where_the_kernel_does_not_say_when() {
        let unseen = |flags, came| {
            let mut s = wire::Switch { ts: 500, came, ..Default::default() };
            (s.hdr.cpu, s.hdr.flags) = (3, flags);
            s
        };
        let of = |s: &wire::Switch, target| {
            hidden(s, came(s).unwrap(), target)
                .map(|gap| (gap.cause, gap.family, gap.cpu, gap.count, gap.pid, gap.first, gap.last))
        };
        assert_eq!(came(&unseen(0, 0)), None);
        let known = unseen(wire::SWITCH_UNSEEN, 400);
        assert_eq!(came(&known), Some(Came { ns: 100, at_most: false }));
        assert_eq!(of(&known, Some(9)), None, "the kernel says when it came");
        let since = unseen(wire::SWITCH_UNSEEN | wire::SWITCH_SINCE, 100);
        assert_eq!(came(&since), Some(Came { ns: 400, at_most: true }));
        assert_eq!(of(&since, Some(9)), Some((GapCause::Hidden, Family::Sched, 3, 1, 9, 100, 500)));
        assert_eq!(of(&since, None), None, "who came is not recorded");
    }

    /// A switch-in at `ts` on a CPU whose group has been throttled for so many units.
    fn switch(ts: u64, cpu: u32, next_throttle: u32) -> wire::Switch {
        let mut s = wire::Switch { ts, next_throttle, ..Default::default() };
        s.hdr.cpu = cpu;
        s
    }

    #[test]
    fn the_time_since_the_quota_let_a_task_run_is_its_wait_without_the_throttled_part() {
        let since = Throttled { ts: 1_000_000, cpu: 1, clock: u32::MAX - 9 };
        let after = |ts, cpu, clock| unthrottled_ns(since, &switch(ts, cpu, clock));
        assert_eq!(after(1_000_000 + 100 * CLOCK_UNIT, 1, 50), 40 * CLOCK_UNIT, "the sum has gone round");
        assert_eq!(after(1_000_000 + 60 * CLOCK_UNIT, 1, 50), 0, "it ran at once");
        assert_eq!(after(1_000_000 + 50 * CLOCK_UNIT, 1, 50), 0, "the clocks differ by a little");
        assert_eq!(after(1_000_000 + 100 * CLOCK_UNIT, 0, 50), 0, "another CPU's sum");
        assert_eq!(after(1_000_000 + 100 * CLOCK_UNIT, 1, 0), 0, "a kernel without the sum");
        assert_eq!(after(1_000_000 + (CLOCK_UNIT << 32), 1, 50), 0, "too long to tell");
    }
}

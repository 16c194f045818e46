//! Who runs where, and who made whom runnable.

use systape_bpf::wire;
use systape_format::model::{Family, StackOf, Switch, Wakeup};

use super::Encoder;
use crate::tasks::TaskId;

/// prev_state of a task that will never run again (include/linux/sched.h).
const TASK_DEAD: u32 = 0x80;

impl Encoder {
    pub(super) fn switch(&mut self, s: &wire::Switch) {
        let left = self.tasks.meet(&s.prev);
        if self.sheds(Family::Sched, s.ts) {
            return self.left(s, left);
        }
        let (prev, next) = (self.interned_task(left), self.interned_who(&s.next));
        self.stored(Family::Sched, s.ts);
        let row = self.builder.push_switch(Switch {
            ts: s.ts,
            cpu: s.hdr.cpu,
            prev,
            next,
            prev_state: s.prev_state,
            preempted: s.hdr.flags & wire::SWITCH_PREEMPTED != 0,
        });
        // of tasks that are not recorded none is taken
        let expected = self.tasks.is_target(left);
        self.attach_who(StackOf::Switch, row, &s.prev, s.ts, expected);
        self.left(s, left);
    }

    fn left(&mut self, s: &wire::Switch, task: TaskId) {
        if s.prev_state & TASK_DEAD != 0 {
            // the exit of a task that is not recorded itself is told by this alone
            self.tasks.exit(task, s.ts);
        }
    }

    pub(super) fn wakeup(&mut self, w: &wire::Wakeup) {
        if self.sheds(Family::Sched, w.ts) {
            return;
        }
        let softirq = w.hdr.flags & wire::WAKEUP_SOFTIRQ != 0;
        // a softirq at the end of the waker's own send is the waker's doing
        let interrupt = w.hdr.flags & wire::WAKEUP_IRQ != 0 && !softirq;
        let waker = if interrupt { None } else { Some(self.interned_who(&w.waker)) };
        let wakee = self.interned_who(&w.wakee);
        self.stored(Family::Sched, w.ts);
        let row = self.builder.push_wakeup(Wakeup {
            ts: w.ts,
            cpu: w.hdr.cpu,
            waker,
            wakee,
            target_cpu: w.target_cpu,
            new: w.hdr.flags & wire::WAKEUP_NEW != 0,
            softirq,
        });
        self.attach_who(StackOf::Wakeup, row, &w.waker, w.ts, !interrupt && w.waker.tid != 0);
    }
}

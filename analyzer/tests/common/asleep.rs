//! A tape with stacks that were fetched of threads asleep at the start.

use std::path::Path;

use systape_format::SegmentBuilder;
use systape_format::model::{Attached, Sleeper, StackOf, StackStatus};

use super::{OPEN, US, sched, stacks};

/// Where the fetched stacks are: `main`, with `schedule` in the kernel.
const MAIN: (u32, u64) = (0, 0x1000);
const SCHEDULE: (u32, u64) = (2, 0x30);

/// The recorder looked at 1100 µs. 300 slept all the time. 101 had slept, but in 300 to 660 µs it ran.
pub fn write(path: &Path) {
    write_and(path, |_| {});
}

/// Writes it with more in its second segment.
pub fn write_and(path: &Path, more: impl FnOnce(&mut SegmentBuilder)) {
    sched::tape_and(path, &[], |builder| {
        more(builder);
        for (tid, status) in [(300, StackStatus::Complete), (101, StackStatus::Locked)] {
            let task = builder.intern_task(&sched::task(tid));
            let row = builder.push_sleeper(Sleeper { ts: OPEN + 1_100 * US, task, state: b'S' });
            let user = if status == StackStatus::Complete { stacks::stack(builder, &[MAIN]) } else { None };
            let kernel = stacks::stack(builder, &[SCHEDULE]);
            builder.push_stack(Attached { of: StackOf::Asleep, row, user, kernel, status });
        }
    });
}

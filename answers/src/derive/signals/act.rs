//! Signals that were one act: `kill -TERM -4711`, Ctrl-C, a write to cgroup.kill, the end of a container's init.
//!
//! The kernel walks the processes within one call, so the events follow each other closely and name no process twice.

use rustc_hash::{FxHashMap, FxHashSet};

use super::record::SignalLine;
use super::via::Via;
use crate::derive::processes::track::key;

/// Longest time between two signals of one act: walking 100,000 processes takes less.
const APART: u64 = 100_000_000;

/// The common properties of the signals of one act: way, sending thread, call and its arguments.
type Key = (Via, Option<(u32, u64)>, u32, Option<u32>, [u64; 4]);

struct Open {
    number: u32,
    last: u64,
    targets: FxHashSet<u64>,
}

/// Whether one act of this kind may reach several processes.
fn fans_out(record: &SignalLine) -> bool {
    match record.via {
        Via::Kill => record.sent.group().is_some(),
        Via::CgroupKill | Via::Terminal | Via::Pdeathsig | Via::PidNamespace | Via::Sysrq => true,
        _ => false,
    }
}

/// Numbers the acts of `records`, which are in order of time, from 1.
pub fn number(records: &mut [SignalLine]) {
    let mut next = 1;
    let mut open: FxHashMap<Key, Open> = FxHashMap::default();
    for record in records {
        let mut fresh = || {
            next += 1;
            next - 1
        };
        if !fans_out(record) {
            record.act = fresh();
            continue;
        }
        let event = &record.sent.event;
        let sender = record.sent.sender.as_ref().map(|task| (task.tid, task.start_ns));
        let nr = record.sent.call.as_ref().map(|call| call.call.nr);
        let act = open.entry((record.via, sender, event.sig, nr, event.call_args)).or_insert_with(|| Open {
            number: 0,
            last: 0,
            targets: FxHashSet::default(),
        });
        let again = !act.targets.insert(key(&record.sent.target));
        if again || act.number == 0 || event.ts - act.last > APART {
            act.number = fresh();
            act.targets.clear();
            act.targets.insert(key(&record.sent.target));
        }
        act.last = event.ts;
        record.act = act.number;
    }
}

//! Switches and wake-ups as Perfetto needs them: on each CPU, who leaves is who came before.
//!
//! Where that is not so, because events are missing or only some threads were recorded, the CPU is idle in between: nobody knows who
//! ran. So a switch waits for the next one of its CPU.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use systape_format::model::{Checkpoint, Family, Switch, Task, Wakeup};

use super::super::proto::perfetto::ftrace_event::Event;
use super::super::proto::perfetto::{SchedProcessFreeFtraceEvent, SchedWakeupNewFtraceEvent, SchedWakingFtraceEvent};
use super::clocks::Boot;
use super::ftrace::{Bundles, NamedThread};
use super::text;

/// A switch that waits for the next one of its CPU.
#[derive(Clone, Debug)]
struct Waiting {
    ts: u64,
    prev: NamedThread,
    state: i64,
    next: NamedThread,
}

#[derive(Debug, Default)]
struct CpuTrack {
    waiting: Option<Waiting>,
    /// Who came with the last switch that was written; None: there was none.
    written: Option<i32>,
}

/// Follows all CPUs.
#[derive(Debug, Default)]
pub(super) struct Sched {
    cpus: BTreeMap<u32, CpuTrack>,
    /// Threads that ended and are still on a CPU.
    ending: FxHashSet<u32>,
}

/// `task` as an event names it.
pub(super) fn who(task: &Task) -> NamedThread {
    if task.tid == 0 {
        NamedThread::idle()
    } else {
        NamedThread { tid: task.tid.cast_signed(), comm: text(&task.comm) }
    }
}

/// The same, or idle if its switches were not recorded.
fn followed(task: &Task) -> NamedThread {
    if task.recorded.has(Family::Sched) == Some(false) { NamedThread::idle() } else { who(task) }
}

/// The kernel's bits of a state (4.14 and newer) from its letter.
fn bits(letter: u8, preempted: bool) -> i64 {
    match letter {
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        b'X' => 0x10,
        b'Z' => 0x20,
        b'P' => 0x40,
        b'I' => 0x80,
        _ if preempted => 0x100,
        _ => 0,
    }
}

impl Sched {
    /// Who ran on each CPU when the recording began.
    pub(super) fn begin(&mut self, checkpoint: &Checkpoint, began: u64) {
        for run in checkpoint.run.iter().filter(|run| run.on_cpu) {
            let Some(task) = checkpoint.tasks.iter().find(|task| task.utid == run.utid) else { continue };
            let next = followed(task);
            let waiting = Waiting { ts: began, prev: NamedThread::idle(), state: 0, next };
            self.cpus.entry(run.cpu).or_default().waiting = Some(waiting);
        }
    }

    /// A thread ended; it is gone when it leaves its CPU.
    pub(super) fn ends(&mut self, tid: u32) {
        self.ending.insert(tid);
    }

    /// The events of a segment, both lists in order of time.
    pub(super) fn events(
        &mut self,
        tasks: &[Task],
        (switches, wakeups): (&[Switch], &[Wakeup]),
        boot: &Boot,
        bundles: &mut Bundles,
    ) {
        let mut wakeups = wakeups.iter().peekable();
        for switch in switches {
            while let Some(wakeup) = wakeups.next_if(|wakeup| wakeup.ts < switch.ts) {
                self.wakeup(tasks, wakeup, boot, bundles);
            }
            self.switch(tasks, switch, boot, bundles);
        }
        wakeups.for_each(|wakeup| self.wakeup(tasks, wakeup, boot, bundles));
    }

    fn switch(&mut self, tasks: &[Task], switch: &Switch, boot: &Boot, bundles: &mut Bundles) {
        let (Some(prev), Some(next)) = (tasks.get(switch.prev as usize), tasks.get(switch.next as usize)) else {
            return;
        };
        let letter = switch.prev_letter();
        let gone = matches!(letter, b'X' | b'Z') && self.ending.remove(&prev.tid);
        let cpu = self.cpus.entry(switch.cpu).or_default();
        let mut now = Waiting {
            ts: switch.ts,
            prev: followed(prev),
            state: bits(letter, switch.preempted),
            next: followed(next),
        };
        if let Some(mut before) = cpu.waiting.take() {
            now.ts = now.ts.max(before.ts);
            let joined = before.next.tid == now.prev.tid;
            if !joined {
                before.next = NamedThread::idle();
            }
            cpu.write(switch.cpu, before, boot, bundles);
            if !joined && now.prev.tid != 0 {
                // since when it ran is not known, what it does from now on is
                let came = Waiting { ts: now.ts, prev: NamedThread::idle(), state: 0, next: now.prev.clone() };
                cpu.write(switch.cpu, came, boot, bundles);
            }
        }
        if now.prev.tid == 0 {
            now.state = 0;
        }
        cpu.waiting = Some(now);
        if gone {
            let event = SchedProcessFreeFtraceEvent { comm: text(&prev.comm), pid: prev.tid.cast_signed() };
            // behind the switch
            bundles.event(switch.cpu, boot.at(switch.ts) + 1, prev.tid, false, Event::SchedProcessFree(event));
        }
    }

    fn wakeup(&self, tasks: &[Task], wakeup: &Wakeup, boot: &Boot, bundles: &mut Bundles) {
        let Some(wakee) = tasks.get(wakeup.wakee as usize).map(who) else { return };
        let waker = wakeup.waker.and_then(|waker| tasks.get(waker as usize));
        let (ts, tid) = (boot.at(wakeup.ts), waker.map_or(0, |waker| waker.tid));
        let target_cpu = wakeup.target_cpu.cast_signed();
        let running = self.cpus.get(&wakeup.cpu).and_then(|cpu| cpu.waiting.as_ref()).map(|waiting| waiting.next.tid);
        if wakeup.new {
            let event = SchedWakeupNewFtraceEvent {
                comm: wakee.comm,
                pid: wakee.tid,
                success: 1,
                target_cpu,
                ..SchedWakeupNewFtraceEvent::default()
            };
            return bundles.event(wakeup.cpu, ts, tid, waker.is_none(), Event::SchedWakeupNew(event));
        }
        // columns do not say who woke: it is who runs there
        if running.is_some_and(|running| waker.is_none() || running.cast_unsigned() == tid) {
            return bundles.wake(wakeup.cpu, ts, &wakee, wakeup.target_cpu, waker.is_none());
        }
        let event = SchedWakingFtraceEvent {
            comm: wakee.comm,
            pid: wakee.tid,
            success: 1,
            target_cpu,
            ..SchedWakingFtraceEvent::default()
        };
        bundles.event(wakeup.cpu, ts, tid, waker.is_none(), Event::SchedWaking(event));
    }

    /// Writes what waits: the last switch of each CPU.
    pub(super) fn finish(&mut self, boot: &Boot, bundles: &mut Bundles) {
        for (number, cpu) in &mut self.cpus {
            if let Some(last) = cpu.waiting.take() {
                cpu.write(*number, last, boot, bundles);
            }
        }
    }
}

impl CpuTrack {
    fn write(&mut self, number: u32, switch: Waiting, boot: &Boot, bundles: &mut Bundles) {
        let ts = boot.at(switch.ts);
        match self.written {
            Some(tid) if tid == switch.prev.tid => {
                // nothing changes
                if switch.next.tid == tid {
                    return;
                }
                bundles.switch(number, ts, switch.state, &switch.next);
            }
            None if switch.prev.tid == 0 && switch.next.tid == 0 => return,
            _ => bundles.whole_switch(number, ts, &switch.prev, switch.state, &switch.next),
        }
        self.written = Some(switch.next.tid);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::super::proto::perfetto::trace_packet::Data;
    use super::super::super::proto::perfetto::{FtraceEventBundle, Trace};
    use super::super::packets::Packets;
    use super::*;

    /// What a list of (time, who leaves, who comes) on CPU 0 becomes.
    fn run(switches: &[(u64, u32, u32)]) -> FtraceEventBundle {
        let tasks: Vec<Task> = (0..4).map(|tid| Task { tid, utid: tid, ..Task::default() }).collect();
        let switch = |&(ts, prev, next): &(u64, u32, u32)| Switch {
            ts,
            cpu: 0,
            prev,
            next,
            prev_state: 1,
            preempted: false,
            ..Switch::default()
        };
        let switches: Vec<Switch> = switches.iter().map(switch).collect();
        let (mut sched, mut bundles, mut packets) = (Sched::default(), Bundles::default(), Packets::of(0, 0));
        sched.events(&tasks, (&switches, &[]), &Boot::default(), &mut bundles);
        sched.finish(&Boot::default(), &mut bundles);
        bundles.write(&mut packets);
        let trace = Trace::decode(&*packets.bytes).unwrap();
        match trace.packet.into_iter().next().and_then(|packet| packet.data) {
            Some(Data::FtraceEvents(bundle)) => bundle,
            other => panic!("{other:?}"),
        }
    }

    fn comes(bundle: &FtraceEventBundle) -> (usize, Vec<u64>, Vec<i32>) {
        let sched = bundle.compact_sched.clone().unwrap_or_default();
        (bundle.event.len(), sched.switch_timestamp, sched.switch_next_pid)
    }

    #[test]
    fn the_first_switch_of_a_cpu_has_both_sides() {
        let bundle = run(&[(10, 1, 2), (15, 2, 0), (30, 0, 1)]);
        assert_eq!(comes(&bundle), (1, vec![15, 15], vec![0, 1]));
    }

    #[test]
    fn a_cpu_is_idle_where_nobody_knows_who_ran() {
        // 1 to 2, and then 3 leaves
        let bundle = run(&[(10, 0, 1), (20, 1, 2), (40, 3, 1), (50, 1, 0)]);
        assert_eq!(comes(&bundle), (1, vec![20, 20, 0, 10], vec![0, 3, 1, 0]));
    }
}

//! Bundles of the kernel's events, as Perfetto's own recorder writes them: one for each CPU.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::proto::perfetto::ftrace_event::Event;
use super::super::proto::perfetto::ftrace_event_bundle::CompactSched;
use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{FtraceEvent, FtraceEventBundle, SchedSwitchFtraceEvent};
use super::packets::Packets;

/// Columns of switches and wake-ups: names by number, times as differences.
#[derive(Debug, Default)]
struct FtraceColumns {
    sched: CompactSched,
    names: FxHashMap<String, u32>,
    switched: u64,
    woken: u64,
}

impl FtraceColumns {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let at = self.names.len() as u32;
        self.sched.intern_table.push(name.to_owned());
        self.names.insert(name.to_owned(), at);
        at
    }
}

/// A thread as an event names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedThread {
    /// 0: none, the CPU is idle.
    pub tid: i32,
    /// Name of the thread.
    pub comm: String,
}

impl NamedThread {
    /// The idle thread of a CPU.
    pub(super) fn idle() -> Self {
        Self { tid: 0, comm: "swapper".to_owned() }
    }
}

/// Flag of an event: it happened in an interrupt (TRACE_FLAG_HARDIRQ).
const INTERRUPT: u32 = 8;

/// Bundles being made. Priorities are 0: a tape has none.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    cpus: BTreeMap<u32, (FtraceColumns, Vec<FtraceEvent>)>,
}

impl Bundles {
    /// An event of thread `tid`, or of an interrupt while it ran; of which there is no CPU or it is this one.
    pub(super) fn event(&mut self, cpu: u32, ts: u64, tid: u32, interrupt: bool, event: Event) {
        let common_flags = if interrupt { INTERRUPT } else { 0 };
        let event = FtraceEvent { timestamp: ts, pid: Some(tid), common_flags, event: Some(event) };
        self.cpus.entry(cpu).or_default().1.push(event);
    }

    /// A switch with both sides: the first of a CPU must be one, columns only have who comes.
    pub(super) fn whole_switch(&mut self, cpu: u32, ts: u64, prev: &NamedThread, state: i64, next: &NamedThread) {
        let event = SchedSwitchFtraceEvent {
            prev_comm: prev.comm.clone(),
            prev_pid: prev.tid,
            prev_state: state,
            next_comm: next.comm.clone(),
            next_pid: next.tid,
            ..SchedSwitchFtraceEvent::default()
        };
        self.event(cpu, ts, prev.tid.cast_unsigned(), false, Event::SchedSwitch(event));
    }

    /// A switch from whom the one before it brought. Those of a CPU come in order of time.
    pub(super) fn switch(&mut self, cpu: u32, ts: u64, state: i64, next: &NamedThread) {
        let columns = &mut self.cpus.entry(cpu).or_default().0;
        let name = columns.name(&next.comm);
        let sched = &mut columns.sched;
        sched.switch_timestamp.push(ts.saturating_sub(columns.switched));
        sched.switch_prev_state.push(state);
        sched.switch_next_pid.push(next.tid);
        sched.switch_next_prio.push(0);
        sched.switch_next_comm_index.push(name);
        columns.switched = columns.switched.max(ts);
    }

    /// A wake-up by who runs on the CPU, or by an interrupt.
    pub(super) fn wake(&mut self, cpu: u32, ts: u64, wakee: &NamedThread, target_cpu: u32, interrupt: bool) {
        let columns = &mut self.cpus.entry(cpu).or_default().0;
        let name = columns.name(&wakee.comm);
        let sched = &mut columns.sched;
        sched.waking_timestamp.push(ts.saturating_sub(columns.woken));
        sched.waking_pid.push(wakee.tid);
        sched.waking_target_cpu.push(target_cpu.cast_signed());
        sched.waking_prio.push(0);
        sched.waking_comm_index.push(name);
        sched.waking_common_flags.push(if interrupt { INTERRUPT } else { 0 });
        columns.woken = columns.woken.max(ts);
    }

    /// Writes them, and begins anew.
    pub(super) fn write(&mut self, packets: &mut Packets) {
        for (cpu, (columns, event)) in std::mem::take(&mut self.cpus) {
            let sched = &columns.sched;
            let some = !sched.switch_timestamp.is_empty() || !sched.waking_timestamp.is_empty();
            let compact_sched = some.then_some(columns.sched);
            let bundle = FtraceEventBundle { cpu: Some(cpu), event, lost_events: false, compact_sched };
            packets.add(0, Data::FtraceEvents(bundle));
        }
    }

    /// Says that events of `cpu` are missing.
    pub(super) fn lost(packets: &mut Packets, cpu: u32) {
        let bundle = FtraceEventBundle { cpu: Some(cpu), lost_events: true, ..FtraceEventBundle::default() };
        packets.add(0, Data::FtraceEvents(bundle));
    }
}

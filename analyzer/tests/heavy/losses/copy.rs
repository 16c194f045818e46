//! Copies a tape event by event through systape-format's own writer. Some events are left out on the way, as a recorder under pressure would:
//! gaps and the ledger say so, and the copy is sound.

use std::collections::{BTreeMap, HashMap};

use systape_format::header::BlockKind;
use systape_format::model::{
    Attached, CPU_NONE, CallState, Dict, End, Ends, FD_NONE, Family, Gap, GapCause, LedgerReason, LedgerRow, StackOf,
    SyscallRow, size_bucket,
};
use systape_format::reader::{Segment, Tape};
use systape_format::table::Type;
use systape_format::tables::{CPU, Field};
use systape_format::{Encoder, SegmentBuilder, Writer};

/// What a fate is decided by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Position of its segment.
    pub segment: usize,
    pub family: Family,
    /// When it happened; of a call when it ended.
    pub ts: u64,
    /// Where; CPU_NONE: the tape does not say.
    pub cpu: u32,
    /// Whose; 0: nobody's.
    pub pid: u32,
    /// It is a call that returned, which a ledger can count.
    pub returned: bool,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stored,
    /// It is missing, and a gap of this cause says so.
    Lost(GapCause),
    /// The same of a call that the ledger counts.
    Counted(LedgerReason),
}

/// Copies `tape`; `fate` says what becomes of each event.
pub(crate) fn copy(tape: &Tape, mut fate: impl FnMut(&Event) -> Fate) -> Vec<u8> {
    let mut writer = Writer::create(Vec::new(), tape.tape_id(), tape.session()).unwrap();
    let mut encoder = Encoder::new(3);
    let mut checkpoints = 0;
    let mut lost: BTreeMap<Family, u64> = BTreeMap::new();
    let mut close = 0;
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        while tape.checkpoint_chunk(checkpoints).is_some_and(|chunk| chunk <= segment.info().chunk) {
            let checkpoint = encoder.checkpoint(&tape.checkpoint(checkpoints).unwrap()).unwrap();
            writer.checkpoint(checkpoint).unwrap();
            checkpoints += 1;
        }
        let mut copied = Copied::new(&segment);
        copied.events(&segment, &mut |event| fate(&Event { segment: at, ..*event }));
        let gaps = copied.gaps();
        for gap in gaps.iter().filter(|gap| !gap.ledger) {
            *lost.entry(gap.family).or_default() += gap.count;
        }
        let Copied { builder, dict, .. } = copied;
        close = dict.window_end;
        let mut builder = builder;
        gaps.into_iter().for_each(|gap| builder.push_gap(gap));
        writer.segment(encoder.segment(builder.finish(dict.window_end)).unwrap()).unwrap();
    }
    for at in 0..tape.symbol_blocks() {
        writer.symbols(encoder.symbols(&tape.symbols(at).unwrap()).unwrap()).unwrap();
    }
    let end = tape.end().expect("an ended tape");
    for (family, before) in &end.lost {
        *lost.entry(*family).or_default() += before;
    }
    // a tape that is cut off is whole until its last segment ends: then it ends there
    let window_close = end.window_close.max(close);
    writer.finish(&End { lost: lost.into_iter().collect(), window_close, ..end.clone() }).unwrap()
}

/// Events that are missing together: of one cause, family, CPU and process, counted or not.
type Hole = (u8, Family, u32, u32, bool);

/// A segment that is being copied.
struct Copied {
    builder: SegmentBuilder,
    dict: Dict,
    /// By what: the cause, how many, since when, until when.
    holes: BTreeMap<Hole, (GapCause, u64, u64, u64)>,
    /// Calls for the ledger: (task, call, reason, errno, state, cpu) -> (end, duration) of each.
    counted: BTreeMap<Counted, Vec<(u64, u64)>>,
    /// Where each event that has a stack is now; None: missing.
    moved: HashMap<StackOf, Vec<Option<u32>>>,
}

type Counted = (u32, u32, u8, u16, u8, u32);

impl Copied {
    /// Tasks and calls keep their numbers.
    fn new(segment: &Segment<'_>) -> Self {
        let dict = segment.dict().unwrap();
        let mut builder = SegmentBuilder::new(dict.window_start);
        for (at, task) in dict.tasks.iter().enumerate() {
            assert_eq!(builder.intern_task(task) as usize, at);
        }
        for (at, call) in dict.calls.iter().enumerate() {
            assert_eq!(builder.intern_call(*call) as usize, at);
        }
        Self { builder, dict, holes: BTreeMap::new(), counted: BTreeMap::new(), moved: HashMap::new() }
    }

    fn pid(&self, task: Option<u32>) -> u32 {
        task.map_or(0, |task| self.dict.tasks[task as usize].pid)
    }

    /// Whether the event is stored; if not, it is noted.
    fn stays(&mut self, event: &Event, fate: Fate) -> bool {
        let (cause, ledger) = match fate {
            Fate::Stored => return true,
            Fate::Lost(cause) => (cause, false),
            Fate::Counted(LedgerReason::OverShare) => (GapCause::OverShare, true),
            Fate::Counted(_) => (GapCause::RingFull, true),
        };
        // each CPU has its ring; a share is a process's
        let cpu = if matches!(cause, GapCause::RingFull | GapCause::OverShare) { event.cpu } else { CPU_NONE };
        let pid = if cause == GapCause::OverShare { event.pid } else { 0 };
        let hole = self.holes.entry((cause as u8, event.family, cpu, pid, ledger));
        let hole = hole.or_insert((cause, 0, event.ts, event.ts));
        *hole = (cause, hole.1 + 1, hole.2.min(event.ts), hole.3.max(event.ts));
        false
    }

    fn gaps(&self) -> Vec<Gap> {
        let gap = |(hole, (cause, count, first, last)): (&Hole, &(GapCause, u64, u64, u64))| {
            let (_, family, cpu, pid, ledger) = *hole;
            Gap { cause: *cause, family, cpu, count: *count, first: *first, last: *last, pid, ledger }
        };
        self.holes.iter().map(gap).collect()
    }

    fn events(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        if segment.has(BlockKind::SyscallsCore) {
            self.calls(segment, fate);
        }
        self.of_process_life(segment, fate);
        self.of_scheduler(segment, fate);
        self.of_devices(segment, fate);
        self.of_stacks(segment, fate);
        self.of_tables(segment, fate);
        for row in segment.ledger(&self.dict).unwrap() {
            self.builder.push_ledger(row);
        }
        for gap in segment.gaps().unwrap() {
            self.builder.push_gap(gap);
        }
        self.ledger();
    }

    fn calls(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        let core = segment.core(&self.dict).unwrap();
        let time = segment.time(&self.dict, &core).unwrap();
        let (args, fds) = (segment.args(&core).unwrap(), segment.fds(&core).unwrap());
        for name in &fds.names {
            self.builder.intern_fd_name(name);
        }
        let mut moved = Vec::new();
        for row in 0..core.call.len() {
            let (end, state) = (time.start[row] + core.dur[row], core.state[row]);
            let unselected = core.unselected.get(row).copied().unwrap_or(false);
            let event = Event {
                segment: 0,
                family: Family::Syscall,
                ts: end,
                cpu: time.cpu[row],
                pid: self.pid(Some(core.task[row])),
                returned: state.returned() && state != CallState::LostEnter && !unselected,
            };
            let fate = fate(&event);
            if !self.stays(&event, fate) {
                if let Fate::Counted(reason) = fate {
                    let leader = self.leader(core.task[row]);
                    let key = (leader, core.call[row], reason as u8, core.errno[row], state as u8, event.cpu);
                    self.counted.entry(key).or_default().push((end, core.dur[row]));
                }
                moved.push(None);
                continue;
            }
            moved.push(Some(self.builder.push_syscall(SyscallRow {
                end,
                dur: core.dur[row],
                cpu: time.cpu[row],
                task: core.task[row],
                call: core.call[row],
                ret: args.ret.get(row).copied().unwrap_or(0),
                errno: core.errno[row],
                state,
                unselected,
                args: args.args.get(row).copied().unwrap_or_default(),
                unknown: args.unknown.get(row).copied().unwrap_or(0),
                fd: fds.fd.get(row).copied().unwrap_or(FD_NONE),
                fd2: fds.fd2.get(row).copied().unwrap_or(FD_NONE),
            })));
        }
        for value in segment.captured(&core).unwrap() {
            if let Some(row) = moved[value.row as usize] {
                self.builder.push_captured(row, value.arg, value.status, value.full, &value.bytes);
            }
        }
        self.moved.insert(StackOf::Syscall, moved);
    }

    /// The thread that a recorder counts the calls of a process under.
    fn leader(&self, task: u32) -> u32 {
        let pid = self.dict.tasks[task as usize].pid;
        self.dict.tasks.iter().position(|other| other.tid == pid).map_or(task, |at| at as u32)
    }

    fn of_process_life(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        for event in segment.processes(&self.dict).unwrap() {
            if self.passes(Family::Process, event.ts, CPU_NONE, Some(event.task), fate) {
                self.builder.push_process(event);
            }
        }
        let mut moved = Vec::new();
        for signal in segment.signals(&self.dict).unwrap() {
            let stays = self.passes(Family::Signal, signal.ts, CPU_NONE, Some(signal.target), fate);
            moved.push(stays.then(|| self.builder.push_signal(signal)));
        }
        self.moved.insert(StackOf::Signal, moved);
    }

    fn of_scheduler(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        let mut moved = Vec::new();
        for switch in segment.switches(&self.dict).unwrap() {
            let stays = self.passes(Family::Sched, switch.ts, switch.cpu, Some(switch.prev), fate);
            moved.push(stays.then(|| self.builder.push_switch(switch)));
        }
        self.moved.insert(StackOf::Switch, moved);
        let mut moved = Vec::new();
        for wakeup in segment.wakeups(&self.dict).unwrap() {
            let stays = self.passes(Family::Sched, wakeup.ts, wakeup.cpu, Some(wakeup.wakee), fate);
            moved.push(stays.then(|| self.builder.push_wakeup(wakeup)));
        }
        self.moved.insert(StackOf::Wakeup, moved);
    }

    fn of_devices(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        let mut moved = Vec::new();
        for io in segment.blocks(&self.dict).unwrap() {
            let stays = self.passes(Family::Block, io.complete, CPU_NONE, io.owner, fate);
            moved.push(stays.then(|| self.builder.push_block(io)));
        }
        self.moved.insert(StackOf::Block, moved);
        for net in segment.nets(&self.dict).unwrap() {
            if self.passes(Family::Net, net.ts, CPU_NONE, net.task, fate) {
                self.builder.push_net(net);
            }
        }
        for op in segment.urings(&self.dict).unwrap() {
            if self.passes(Family::IoUring, op.ts, CPU_NONE, Some(op.task), fate) {
                self.builder.push_uring(op);
            }
        }
    }

    fn of_stacks(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        let mut moved = Vec::new();
        for sample in segment.samples(&self.dict).unwrap() {
            let stays = self.passes(Family::Sample, sample.ts, sample.cpu, Some(sample.task), fate);
            moved.push(stays.then(|| self.builder.push_sample(sample)));
        }
        self.moved.insert(StackOf::Sample, moved);
        let sleepers = segment.sleepers(&self.dict).unwrap();
        let moved = sleepers.into_iter().map(|sleeper| Some(self.builder.push_sleeper(sleeper))).collect();
        self.moved.insert(StackOf::Asleep, moved);
        let times = self.times(segment);
        let stacks = segment.stacks().unwrap();
        for (at, mapping) in stacks.mappings.iter().enumerate() {
            assert_eq!(self.builder.intern_mapping(mapping) as usize, at);
        }
        for (at, frame) in stacks.frames.iter().enumerate() {
            assert_eq!(self.builder.intern_frame(*frame) as usize, at);
        }
        for (at, node) in stacks.nodes.iter().enumerate() {
            assert_eq!(self.builder.intern_node(*node) as usize, at);
        }
        for stack in stacks.attached {
            let ts = times.get(&stack.of).map_or(0, |times| times[stack.row as usize]);
            let Some(row) = self.moved[&stack.of][stack.row as usize] else { continue };
            if self.passes(Family::Stack, ts, CPU_NONE, None, fate) {
                self.builder.push_stack(Attached { row, ..stack });
            }
        }
    }

    /// When the events were that have stacks.
    fn times(&self, segment: &Segment<'_>) -> HashMap<StackOf, Vec<u64>> {
        let dict = &self.dict;
        let core = segment.core(dict).unwrap();
        let time = segment.time(dict, &core).unwrap();
        HashMap::from([
            (StackOf::Syscall, time.start.iter().zip(&core.dur).map(|(start, dur)| start + dur).collect()),
            (StackOf::Sample, segment.samples(dict).unwrap().iter().map(|e| e.ts).collect()),
            (StackOf::Switch, segment.switches(dict).unwrap().iter().map(|e| e.ts).collect()),
            (StackOf::Wakeup, segment.wakeups(dict).unwrap().iter().map(|e| e.ts).collect()),
            (StackOf::Block, segment.blocks(dict).unwrap().iter().map(|e| e.complete).collect()),
            (StackOf::Signal, segment.signals(dict).unwrap().iter().map(|e| e.ts).collect()),
            (StackOf::Asleep, segment.sleepers(dict).unwrap().iter().map(|e| e.ts).collect()),
        ])
    }

    fn of_tables(&mut self, segment: &Segment<'_>, fate: &mut dyn FnMut(&Event) -> Fate) {
        let stacks = segment.stacks().unwrap();
        for table in segment.tables(&self.dict).unwrap() {
            assert!(table.ts.is_empty() || table.columns.len() + 1 == table.def.columns.len());
            let family = Family::of_table(&table.def.name);
            let columns = || table.def.columns.iter().skip(1).zip(&table.columns);
            let whose = columns().find(|(column, _)| column.ty == Type::Task);
            let cpus = columns().find(|(column, _)| column.name == CPU);
            for (row, ts) in table.ts.iter().enumerate() {
                let task = whose.and_then(|(_, tasks)| u32::try_from(tasks[row]).unwrap().checked_sub(1));
                let cpu = cpus.map_or(CPU_NONE, |(_, cpus)| cpus[row] as u32);
                if !self.passes(family, *ts, cpu, task, fate) {
                    continue;
                }
                let unread = table.unread().map_or(0, |bits| bits[row]);
                let fields = columns().enumerate().map(|(at, (column, values))| match (column.ty, values[row]) {
                    (Type::Str | Type::Task, 0) | (Type::Unread | Type::Stack, _) => Field::Unknown,
                    (ty, _) if ty.is_number() && at < 64 && unread >> at & 1 != 0 => Field::Unknown,
                    (Type::Str, code) => Field::Bytes(table.string(code).unwrap_or_default()),
                    (Type::Task, task) => Field::Task(task as u32 - 1),
                    (_, number) => Field::Number(number),
                });
                let copied = self.builder.push_table_row(&table.def, *ts, &fields.collect::<Vec<_>>()).unwrap();
                let stack = columns().find(|(column, _)| column.ty == Type::Stack);
                if let Some(ends) = stack.and_then(|(_, codes)| stacks.of_code(codes[row]))
                    && self.passes(Family::Stack, *ts, CPU_NONE, None, fate)
                {
                    let Ends { user, kernel, status } = *ends;
                    self.builder.push_stack(Attached { of: StackOf::Row, row: copied, user, kernel, status });
                }
            }
        }
    }

    fn passes(
        &mut self,
        family: Family,
        ts: u64,
        cpu: u32,
        task: Option<u32>,
        fate: &mut dyn FnMut(&Event) -> Fate,
    ) -> bool {
        let event = Event { segment: 0, family, ts, cpu, pid: self.pid(task), returned: false };
        let fate = fate(&event);
        self.stays(&event, fate)
    }

    /// Rows of the ledger for the calls that are counted.
    fn ledger(&mut self) {
        for (key, calls) in std::mem::take(&mut self.counted) {
            let (task, call, reason, errno, state, cpu) = key;
            let (ends, durs): (Vec<u64>, Vec<u64>) = calls.into_iter().unzip();
            let mut sizes: BTreeMap<u8, u64> = BTreeMap::new();
            durs.iter().for_each(|dur| *sizes.entry(size_bucket(*dur)).or_default() += 1);
            self.builder.push_ledger(LedgerRow {
                task: Some(task),
                call,
                reason: LedgerReason::from_raw(reason).unwrap(),
                errno,
                state: CallState::from_raw(state).unwrap(),
                cpu,
                count: durs.len() as u64,
                sum: durs.iter().sum(),
                min: *durs.iter().min().unwrap(),
                max: *durs.iter().max().unwrap(),
                first: *ends.iter().min().unwrap(),
                last: *ends.iter().max().unwrap(),
                sizes: sizes.into_iter().collect(),
            });
        }
    }
}

//! Joins stacks to their events, and makes the segment's tree of frames.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Attached, Frame, Mapping, MappingKind, Node, StackOf, StackSettings, StackStatus, Task};
use systape_format::segment::SegmentBuilder;

use crate::stacks::forgot::Forgot;
use crate::stacks::jit_maps::Owner;
use crate::stacks::name_queue::NameQueue;
use crate::stacks::name_queue::{NameOrigin, SeenPlace};
use crate::stacks::taken::{Chain, Code, Key, TakenFrame, TakenStack};
use crate::tasks::{TaskId, Tasks};

/// If a stack's event did not come within this time, the event was lost.
const PATIENCE_NS: u64 = 2_000_000_000;
/// An I/O completes much later than it is queued, and a row may be that of a long wait.
const PATIENCE_IO_NS: u64 = 60_000_000_000;
/// Most stacks that wait for their events.
const MAX_WAITING: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
/// Most frames of the chains whose nodes are remembered.
const MAX_NODE_FRAMES: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };
/// Room for so many is kept whatever was needed.
const KEPT: usize = if cfg!(test) { 1 << 4 } else { 1 << 10 };
/// Most places in code made at run time whose names are looked up.
const MAX_JIT: usize = 1 << 18;

/// A stack whose event has not come yet, or a sample's.
#[derive(Debug)]
pub(super) struct Waiting {
    user: Option<Chain>,
    kernel: Option<Chain>,
    status: StackStatus,
}

impl Waiting {
    /// A waiting stack with its chains.
    pub(super) fn of(stack: &mut TakenStack) -> Self {
        Self { user: stack.user.take(), kernel: stack.kernel.take(), status: stack.status }
    }
}

/// A chain by its address in memory, and the process (upid) of its code; 0 = any.
type ChainKey = (usize, u32);

/// An event that needs a stack: its kind, row and time, and its task; `tid` is the record's, by which the stack is
/// found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub of: StackOf,
    pub row: u32,
    pub task: TaskId,
    pub tid: u32,
    pub time: u64,
}

/// The segment in which stacks are stored.
pub(super) struct StackSegment<'a> {
    pub builder: &'a mut SegmentBuilder,
    /// Number of that segment, to which interned indices belong.
    pub number: u32,
    pub tasks: &'a Tasks,
}

/// The most that was needed in this segment.
#[derive(Debug, Default)]
struct MostNeeded {
    waiting: usize,
    order: [usize; 3],
    nodes: usize,
}

/// The room to keep when at most `most` were needed of what there is room for `capacity`; None = all of it. So a burst's room is
/// not kept for ever, nor made anew each time.
fn room(most: usize, capacity: usize) -> Option<usize> {
    let room = 2 * most.max(KEPT);
    (capacity > 2 * room).then_some(room)
}

/// Stacks that wait for their events, and the codes of frames.
#[derive(Debug, Default)]
pub(super) struct WaitingStacks {
    settings: StackSettings,
    waiting: FxHashMap<Key, Waiting>,
    /// Keys in order of arrival, with its time; some have met their events already.
    order: [VecDeque<(u64, Key)>; 3],
    codes: Vec<(Code, (u32, u32))>,
    /// Innermost nodes of the chains in this segment. The chain is kept, so that its address is not reused.
    nodes: FxHashMap<ChainKey, (Chain, Option<u32>)>,
    /// Number of frames of these chains.
    node_frames: usize,
    own_pid: u32,
    /// Events of the segment without a stack so far, by row: its record may be late.
    overdue: FxHashMap<Key, (u32, TaskId)>,
    most: MostNeeded,
    /// Events without an expected stack.
    missed: u64,
    /// Places in code made at run time that were passed on: process and address.
    jit_seen: FxHashSet<(u32, u64)>,
    names: Option<NameQueue>,
    /// See [`WaitingStacks::may_forget`].
    forgot: Option<(Forgot, u64)>,
}

impl WaitingStacks {
    pub(super) fn new(settings: StackSettings, own_pid: u32) -> Self {
        Self { settings, own_pid, ..Self::default() }
    }

    /// A chunk ends: the names of its frames are looked up.
    pub(super) fn chunk_ends(&self) {
        if let Some(names) = &self.names {
            names.chunk_ends();
        }
    }

    /// Passes a place in code made at run time on, once.
    fn see_jit(&mut self, frame: &TakenFrame, task: &Task, here: u32) {
        let Some(names) = &self.names else { return };
        if let Some((forgot, seen)) = &mut self.forgot
            && (forgot.since(seen) || self.jit_seen.len() >= MAX_JIT)
        {
            self.jit_seen.clear();
        }
        let lookup = frame.lookup();
        if self.jit_seen.len() < MAX_JIT && self.jit_seen.insert((task.upid, lookup)) {
            let mapping = Mapping { kind: MappingKind::Jit, upid: task.upid, ..Mapping::default() };
            let began = task.leader_start_ns;
            let origin = NameOrigin::Jit(Owner { here, ns_pid: task.ns_pid, uid: task.uid, began });
            names.see(SeenPlace { mapping: Arc::new(mapping), offset: lookup, origin });
        }
    }

    /// Whether any stacks are recorded.
    pub(super) fn are_on(&self) -> bool {
        !self.settings.on.is_empty()
    }

    /// Keeps a stack for its event. Drops the oldest when there are too many.
    fn wait(&mut self, ts: u64, key: Key, stack: Waiting) {
        let queue = match key.of {
            StackOf::Row => 0,
            StackOf::Block => 2,
            _ => 1,
        };
        self.order[queue].push_back((ts, key));
        self.waiting.insert(key, stack);
        self.most.waiting = self.most.waiting.max(self.waiting.len());
        self.most.order[queue] = self.most.order[queue].max(self.order[queue].len());
        if self.waiting.len() > MAX_WAITING {
            self.sweep(0);
        }
        let queue = &mut self.order[queue];
        if queue.len() > 2 * MAX_WAITING {
            // behind one that waits stand many that do not
            queue.retain(|(_, key)| self.waiting.contains_key(key));
        }
    }

    /// Drops stacks that waited too long, when there are too many the oldest, of rows first, and the keys of those that
    /// met their events.
    pub(super) fn sweep(&mut self, now: u64) {
        for (queue, patience) in self.order.iter_mut().zip([PATIENCE_IO_NS, PATIENCE_NS, PATIENCE_IO_NS]) {
            while let Some((came, key)) = queue.front()
                && (self.waiting.len() > MAX_WAITING
                    || now.saturating_sub(*came) > patience
                    || !self.waiting.contains_key(key))
            {
                self.waiting.remove(key);
                queue.pop_front();
            }
        }
    }

    /// Whether such events have stacks.
    pub(super) fn takes(&self, of: StackOf) -> bool {
        self.settings.on.contains(&of)
    }

    /// Whether a process is the recorder.
    pub(super) fn is_own(&self, pid: u32) -> bool {
        pid == self.own_pid
    }

    /// `names` gets places in code made at run time.
    pub(super) fn tell_names(&mut self, names: NameQueue) {
        self.names = Some(names);
    }

    /// Places are passed on anew when their names were forgotten.
    pub(super) fn may_forget(&mut self, forgot: Forgot) {
        self.forgot = Some((forgot, 0));
    }

    /// No more places will come: `names` looks up the known ones.
    pub(super) fn end_names(&self) {
        if let Some(names) = &self.names {
            names.end();
        }
    }

    /// Events so far without an expected stack.
    pub(super) fn missed(&self) -> u64 {
        self.missed + self.overdue.len() as u64
    }

    /// Adds codes, which frames refer to by number.
    pub(super) fn add_codes(&mut self, codes: &[Code]) {
        self.codes.extend(codes.iter().map(|code| (code.clone(), (u32::MAX, 0))));
    }

    /// Adds a stack: its event is stored and waits for it, or has not come yet.
    pub(super) fn add(&mut self, ts: u64, key: Key, stack: Waiting, into: &mut StackSegment<'_>) {
        match self.overdue.remove(&key) {
            Some((row, task)) => self.push(key.of, row, task, &stack, into),
            None => self.wait(ts, key, stack),
        }
    }

    /// The event was stored: attaches its stack, if there is one. `expected`: there should be one.
    pub(super) fn attach(&mut self, event: Event, expected: bool, into: &mut StackSegment<'_>) {
        let Event { of, row, task, tid, time } = event;
        let key = Key { of, tid, time };
        match self.waiting.remove(&key) {
            Some(stack) => self.push(of, row, task, &stack, into),
            None if expected && !self.is_own(into.tasks.get(task).task.pid) => {
                // of two events at one time the first has none, if there is one
                if let Some((row, _)) = self.overdue.insert(key, (row, task)) {
                    self.lacks(of, row, into.builder);
                }
            }
            None => {}
        }
    }

    /// The segment ends: events without a stack stay without one.
    pub(super) fn give_up(&mut self, builder: &mut SegmentBuilder) {
        for (key, (row, _)) in std::mem::take(&mut self.overdue) {
            self.lacks(key.of, row, builder);
        }
        // nodes are the segment's
        self.forget_nodes();
        self.shrink();
    }

    /// Gives up room that this segment did not need.
    fn shrink(&mut self) {
        let MostNeeded { waiting, order, nodes } = std::mem::take(&mut self.most);
        if let Some(room) = room(waiting.max(self.waiting.len()), self.waiting.capacity()) {
            self.waiting.shrink_to(room);
        }
        for (queue, most) in self.order.iter_mut().zip(order) {
            if let Some(room) = room(most.max(queue.len()), queue.capacity()) {
                queue.shrink_to(room);
            }
        }
        if let Some(room) = room(nodes, self.nodes.capacity()) {
            self.nodes.shrink_to(room);
        }
    }

    /// Tasks leave before `until`: their events stay without a stack, which would be looked for by a number of another task.
    pub(super) fn part_from(&mut self, tasks: &Tasks, until: u64, builder: &mut SegmentBuilder) {
        if self.overdue.is_empty() {
            return;
        }
        let leaving: FxHashSet<TaskId> = tasks.leaving(until).collect();
        if leaving.is_empty() {
            return;
        }
        let late: Vec<_> = self.overdue.extract_if(|_, (_, task)| leaving.contains(task)).collect();
        for (key, (row, _)) in late {
            self.lacks(key.of, row, builder);
        }
    }

    fn lacks(&mut self, of: StackOf, row: u32, builder: &mut SegmentBuilder) {
        self.missed += 1;
        builder.push_stack(Attached { of, row, user: None, kernel: None, status: StackStatus::Lost });
    }

    /// Stores a stack with the row of its event.
    pub(super) fn push(&mut self, of: StackOf, row: u32, task: TaskId, stack: &Waiting, into: &mut StackSegment<'_>) {
        let user = stack.user.as_ref().and_then(|chain| self.node(chain, task, into));
        let kernel = stack.kernel.as_ref().and_then(|chain| self.node(chain, task, into));
        into.builder.push_stack(Attached { of, row, user, kernel, status: stack.status });
    }

    /// The node of the innermost frame of `chain`.
    fn node(&mut self, chain: &Chain, task: TaskId, into: &mut StackSegment<'_>) -> Option<u32> {
        let upid = if chain.of_task() { into.tasks.get(task).task.upid } else { 0 };
        let key = (chain.address(), upid);
        if let Some((_, node)) = self.nodes.get(&key) {
            return *node;
        }
        if self.node_frames >= MAX_NODE_FRAMES {
            self.forget_nodes();
        }
        let node = self.frames(chain.frames(), task, into);
        self.node_frames += chain.frames().len();
        self.nodes.insert(key, (chain.clone(), node));
        self.most.nodes = self.most.nodes.max(self.nodes.len());
        node
    }

    fn forget_nodes(&mut self) {
        self.nodes.clear();
        self.node_frames = 0;
    }

    fn frames(&mut self, frames: &[TakenFrame], task: TaskId, into: &mut StackSegment<'_>) -> Option<u32> {
        let mut parent = None;
        for frame in frames.iter().rev() {
            let mapping = self.code(frame.code, task, into);
            if matches!(self.codes.get(frame.code as usize), Some((Code::Jit, _))) {
                let entry = into.tasks.get(task);
                self.see_jit(frame, &entry.task, entry.here);
            }
            let frame = into.builder.intern_frame(Frame { mapping, offset: frame.offset, flags: frame.flags });
            parent = Some(into.builder.intern_node(Node { parent, frame }));
        }
        parent
    }

    fn code(&mut self, code: u32, task: TaskId, into: &mut StackSegment<'_>) -> u32 {
        let upid = into.tasks.get(task).task.upid;
        let own = |kind| Mapping { kind, upid, ..Mapping::default() };
        let Some((code, interned)) = self.codes.get_mut(code as usize) else {
            return into.builder.intern_mapping(&own(MappingKind::Unknown));
        };
        match code {
            Code::Shared(_) if interned.0 == into.number => interned.1,
            Code::Shared(mapping) => {
                *interned = (into.number, into.builder.intern_mapping(mapping));
                interned.1
            }
            Code::Jit => into.builder.intern_mapping(&own(MappingKind::Jit)),
            Code::Unknown => into.builder.intern_mapping(&own(MappingKind::Unknown)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use systape_abi::Selection;
    use systape_bpf::wire::{Block, Record, Switch, Wakeup, Who};
    use systape_format::model::{Family, GapCause, RecordedFamilies, StackMode};
    use systape_format::segment::SegmentData;

    use super::super::{Assembler, Piece, Settings};
    use super::*;
    use crate::ledger::LedgerWindow;
    use crate::stacks::taken::StackBatch;
    use crate::tasks::targets::Targets;

    const SECOND: u64 = 1_000_000_000;
    /// The recorder's id.
    const OWN: u32 = 4_000_000;

    /// One that stores everything.
    pub(in crate::encode) fn encoder() -> Assembler {
        recorded(false)
    }

    /// One whose targets are all tasks, or none.
    pub(in crate::encode) fn recorded(everyone: bool) -> Assembler {
        let on = StackOf::ALL.to_vec();
        let stacks = StackSettings { mode: StackMode::Dwarf, on, ..StackSettings::default() };
        let (selection, flush) = (Selection::all(), Duration::from_secs(3600));
        let recorded = RecordedFamilies::of(&[Family::Sched]);
        let targets = if everyone { Targets::everyone(recorded) } else { Targets::default() };
        let stores = crate::calls::filter::CallFilter::default();
        let (own_pid, nested) = (OWN, false);
        let tracepoints = Vec::new();
        Assembler::new(Settings {
            env: Arc::default(),
            selection,
            stores,
            window_open: 1,
            flush,
            looks: false,
            stacks,
            targets,
            triggers: Vec::new(),
            chunks_stand_alone: false,
            own_pid,
            nested,
            follows_rings: false,
            tracepoints,
            probes: Vec::new(),
            static_probes: Vec::new(),
            devices: Vec::new(),
            lock_names: Arc::default(),
        })
    }

    fn who(tid: u32) -> Who {
        // not a number that this process could have
        Who { start: u64::from(tid), tid, pid: u32::MAX - tid, ..Who::default() }
    }

    fn wakeup(encoder: &mut Assembler, tid: u32, ts: u64) {
        encoder.take(Record::Wakeup(Wakeup { ts, waker: who(tid), wakee: who(900), ..Wakeup::default() }));
    }

    fn block(encoder: &mut Assembler, tid: u32, queued: u64, complete: u64) {
        encoder.take(Record::Block(Block { queued, complete, has_origin: 1, origin: who(tid), ..Block::default() }));
    }

    fn image(name: &str) -> Code {
        Code::Shared(Arc::new(Mapping { kind: MappingKind::Elf, path: name.into(), ..Mapping::default() }))
    }

    /// A batch of stacks: kind, thread, time of the event, offsets of the frames in code number `code`.
    fn batch(codes: Vec<Code>, code: u32, stacks: &[(StackOf, u32, u64, &[u64])]) -> StackBatch {
        let of_task = codes.iter().any(|code| !matches!(code, Code::Shared(_)));
        let mut taken = StackBatch { codes, ..StackBatch::default() };
        for &(of, tid, time, offsets) in stacks {
            let frames: Vec<_> = offsets.iter().map(|offset| TakenFrame { code, offset: *offset, flags: 0 }).collect();
            let user = Some(Chain::new(&frames, of_task, &Arc::default()));
            let key = Key { of, tid, time };
            let status = Complete;
            let stack = TakenStack {
                key,
                ts: time,
                cpu: 1,
                who: who(tid),
                in_kernel: false,
                state: b'S',
                status,
                user,
                kernel: None,
            };
            taken.stacks.push(stack);
        }
        taken
    }

    fn segment(encoder: &mut Assembler) -> Box<SegmentData> {
        encoder.close_segment(u64::MAX);
        match encoder.take_pieces().pop() {
            Some(Piece::Segment(segment)) => segment,
            other => panic!("{other:?}"),
        }
    }

    /// Event, status, and of the frames path and offset.
    type Stack = (StackOf, u32, StackStatus, Vec<(String, u64)>);

    fn stacks(segment: &SegmentData) -> Vec<Stack> {
        let stacks = segment.stacks();
        let one = |a: &Attached| {
            let frames = stacks.frames_from(a.user).map(|frame| {
                let mapping = &stacks.mappings[frame.mapping as usize];
                (String::from_utf8(mapping.path.clone()).unwrap(), frame.offset)
            });
            (a.of, a.row, a.status, frames.collect())
        };
        stacks.attached.iter().map(one).collect()
    }

    fn frames(path: &str, offsets: &[u64]) -> Vec<(String, u64)> {
        offsets.iter().map(|offset| (path.to_owned(), *offset)).collect()
    }

    use StackStatus::{Complete, Lost};

    #[test]
    fn a_stack_meets_its_event() {
        let mut encoder = encoder();
        let stack = (StackOf::Wakeup, 7, 100, &[1, 2, 3][..]);
        // the same thread at another time, another thread at the same time
        let others = [(StackOf::Wakeup, 7, 101, &[8][..]), (StackOf::Wakeup, 8, 100, &[9])];
        encoder.add_stacks(batch(vec![image("a")], 0, &[others[0], stack, others[1]]));
        wakeup(&mut encoder, 7, 100);
        assert_eq!(stacks(&segment(&mut encoder)), [(StackOf::Wakeup, 0, Complete, frames("a", &[1, 2, 3]))]);
        assert_eq!(encoder.missed_stacks(), 0);
        // codes count on from batch to batch, and stay known in later segments
        encoder.add_stacks(batch(vec![image("b")], 1, &[(StackOf::Block, 7, 200, &[4])]));
        encoder.add_stacks(batch(vec![], 0, &[(StackOf::Signal, 7, 300, &[5])]));
        block(&mut encoder, 7, 200, 250);
        wakeup(&mut encoder, 8, 100);
        let expect =
            [(StackOf::Block, 0, Complete, frames("b", &[4])), (StackOf::Wakeup, 0, Complete, frames("a", &[9]))];
        assert_eq!(stacks(&segment(&mut encoder)), expect);
    }

    #[test]
    fn stacks_share_their_callers() {
        let mut encoder = encoder();
        let taken = [(StackOf::Wakeup, 7, 100, &[1, 5, 6][..]), (StackOf::Wakeup, 7, 101, &[2, 5, 6])];
        encoder.add_stacks(batch(vec![image("a")], 0, &taken));
        wakeup(&mut encoder, 7, 100);
        wakeup(&mut encoder, 7, 101);
        let segment = segment(&mut encoder);
        assert_eq!(segment.stacks().nodes.len(), 4);
        assert_eq!(segment.stacks().mappings.len(), 1);
    }

    #[test]
    fn a_chain_belongs_to_each_process_and_segment_that_has_it() {
        let mut encoder = encoder();
        // one chain of two processes and twice of one, with code that only they know of, and one with code of a file
        for (of_task, codes) in [(true, vec![Code::Jit]), (false, vec![image("a")])] {
            let frames = [TakenFrame { code: u32::from(!of_task), offset: 5, flags: 0 }];
            let chain = Chain::new(&frames, of_task, &Arc::default());
            for times in [100..103, 200..203] {
                let stacks = times.clone().zip([7, 8, 7]).map(|(time, tid)| (StackOf::Wakeup, tid, time, &[][..]));
                let mut taken = batch(vec![], 0, &stacks.collect::<Vec<_>>());
                taken.stacks.iter_mut().for_each(|stack| stack.user = Some(chain.clone()));
                taken.codes = if times.start == 100 { codes.clone() } else { vec![] };
                encoder.add_stacks(taken);
                times.zip([7, 8, 7]).for_each(|(time, tid)| wakeup(&mut encoder, tid, time));
                let segment = segment(&mut encoder);
                let stacks = segment.stacks();
                let upids = stacks.attached.iter().map(|a| {
                    let frame = stacks.frames_from(a.user).next().unwrap();
                    assert_eq!(frame.offset, 5);
                    let mapping = &stacks.mappings[frame.mapping as usize];
                    assert_eq!(mapping.kind == MappingKind::Jit, of_task);
                    mapping.upid
                });
                let upids: Vec<u32> = upids.collect();
                assert_eq!((upids[0] == upids[1], upids[0] == upids[2]), (!of_task, true));
                assert_eq!(stacks.nodes.len(), if of_task { 2 } else { 1 });
            }
        }
    }

    #[test]
    fn chains_that_were_stored_are_not_kept_for_long() {
        let mut encoder = encoder();
        let held = Arc::default();
        for time in 1..1000 {
            let mut taken = batch(vec![], 0, &[(StackOf::Wakeup, 7, time, &[])]);
            let frame = |offset| TakenFrame { code: 0, offset, flags: 0 };
            taken.stacks[0].user = Some(Chain::new(&[frame(time % 200), frame(1)], false, &held));
            taken.codes = if time == 1 { vec![image("a")] } else { vec![] };
            encoder.add_stacks(taken);
            wakeup(&mut encoder, 7, time);
            assert!(held.load(Ordering::Relaxed) <= MAX_NODE_FRAMES);
        }
        // what is forgotten meanwhile is found again in the segment
        assert_eq!(segment(&mut encoder).stacks().nodes.len(), 201);
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_missing_stack_is_marked_and_counted() {
        let mut encoder = encoder();
        wakeup(&mut encoder, 7, 100);
        block(&mut encoder, 7, 50, 110);
        // nobody's stack is taken in an interrupt, nor that of an idle CPU, nor is the recorder's own
        let irq = Wakeup { waker: who(7), ts: 120, ..Wakeup::default() };
        encoder.take(Record::Wakeup(Wakeup { hdr: wire_header(systape_bpf::wire::WAKEUP_IRQ), ..irq }));
        encoder.take(Record::Wakeup(Wakeup { waker: who(0), ts: 130, ..Wakeup::default() }));
        let own = Who { pid: OWN, ..who(9) };
        encoder.take(Record::Wakeup(Wakeup { waker: own, ts: 140, ..Wakeup::default() }));
        // who leaves a CPU may be a task that is not recorded
        encoder.take(Record::Switch(Switch { ts: 150, prev: who(7), next: who(8), ..Switch::default() }));
        let mut seen = stacks(&segment(&mut encoder));
        seen.sort();
        assert_eq!(seen, [(StackOf::Wakeup, 0, Lost, vec![]), (StackOf::Block, 0, Lost, vec![])]);
        assert_eq!(encoder.missed_stacks(), 2);
        // with all tasks recorded, only the idle ones have none
        let mut encoder = recorded(true);
        for (ts, prev) in [(100, 7), (110, 0)] {
            encoder.take(Record::Switch(Switch { ts, prev: who(prev), next: who(8), ..Switch::default() }));
        }
        assert_eq!(stacks(&segment(&mut encoder)), [(StackOf::Switch, 0, Lost, vec![])]);
        assert_eq!(encoder.missed_stacks(), 1);
    }

    fn wire_header(flags: u16) -> systape_bpf::wire::Header {
        systape_bpf::wire::Header { flags, ..Default::default() }
    }

    #[test]
    fn a_stack_that_comes_when_its_task_has_left_meets_nothing() {
        let mut encoder = encoder();
        // a segment goes on for long while there is no room for it
        encoder.flush = u64::MAX;
        wakeup(&mut encoder, 7, 100);
        wakeup(&mut encoder, 8, 100);
        let task = encoder.world.tasks.meet(&who(7));
        encoder.world.tasks.exit(task, 110);
        let until = 10_000_000_000;
        encoder.counted(LedgerWindow { until, ..LedgerWindow::default() });
        encoder.advance(until);
        let late = [(StackOf::Wakeup, 7, 100, &[0x1001][..]), (StackOf::Wakeup, 8, 100, &[0x1001])];
        encoder.add_stacks(batch(vec![Code::Jit], 0, &late));
        assert_eq!(encoder.missed_stacks(), 1);
        let statuses: Vec<_> =
            stacks(&segment(&mut encoder)).into_iter().map(|(_, row, status, _)| (row, status)).collect();
        assert_eq!(statuses, [(0, Lost), (1, Complete)]);
    }

    #[test]
    fn a_stack_that_comes_behind_its_event_still_meets_it() {
        let mut encoder = encoder();
        wakeup(&mut encoder, 7, 100);
        wakeup(&mut encoder, 7, 110);
        encoder.add_stacks(batch(vec![image("a")], 0, &[(StackOf::Wakeup, 7, 110, &[1])]));
        let expect = [(StackOf::Wakeup, 1, Complete, frames("a", &[1])), (StackOf::Wakeup, 0, Lost, vec![])];
        assert_eq!(stacks(&segment(&mut encoder)), expect);
        assert_eq!(encoder.missed_stacks(), 1);
        // not when the segment is gone
        encoder.add_stacks(batch(vec![], 0, &[(StackOf::Wakeup, 7, 100, &[2])]));
        wakeup(&mut encoder, 8, 200);
        assert_eq!(encoder.missed_stacks(), 2);
        assert_eq!(stacks(&segment(&mut encoder)), [(StackOf::Wakeup, 0, Lost, vec![])]);
        assert_eq!(encoder.missed_stacks(), 2);
        // two events at one time
        wakeup(&mut encoder, 8, 300);
        wakeup(&mut encoder, 8, 300);
        assert_eq!(segment(&mut encoder).stacks().attached.len(), 2);
        assert_eq!(encoder.missed_stacks(), 4);
    }

    #[test]
    fn the_stack_of_an_io_waits_longer_than_others() {
        let mut encoder = encoder();
        let taken = [(StackOf::Block, 7, 100, &[1][..]), (StackOf::Wakeup, 7, 100, &[2])];
        encoder.add_stacks(batch(vec![image("a")], 0, &taken));
        encoder.advance(30 * SECOND);
        assert_eq!(encoder.rows.stacks.waiting.len(), 1);
        wakeup(&mut encoder, 7, 100);
        block(&mut encoder, 7, 100, 30 * SECOND);
        let expect = [(StackOf::Block, 0, Complete, frames("a", &[1])), (StackOf::Wakeup, 0, Lost, vec![])];
        assert_eq!(stacks(&segment(&mut encoder)), expect);
        // for ever it does not wait
        encoder.add_stacks(batch(vec![], 0, &[(StackOf::Block, 7, 200, &[1])]));
        encoder.advance(100 * SECOND);
        assert!(encoder.rows.stacks.waiting.is_empty());
        assert!(encoder.rows.stacks.order.iter().all(VecDeque::is_empty));
    }

    #[test]
    fn too_many_that_wait_push_out_the_oldest() {
        let mut encoder = encoder();
        let count = MAX_WAITING as u64 + 10;
        let taken: Vec<_> = (1..=count).map(|time| (StackOf::Signal, 7, time, &[1][..])).collect();
        encoder.add_stacks(batch(vec![image("a")], 0, &taken));
        encoder.advance(2);
        assert_eq!(encoder.rows.stacks.waiting.len(), MAX_WAITING);
        let waits = |time| encoder.rows.stacks.waiting.contains_key(&Key { of: StackOf::Signal, tid: 7, time });
        assert!(!waits(10) && waits(11) && waits(count));
        assert_eq!(encoder.rows.stacks.order[1].len(), MAX_WAITING);
    }

    #[test]
    fn the_room_of_a_burst_is_not_kept() {
        let mut encoder = encoder();
        let rooms = |encoder: &Assembler| {
            let stacks = &encoder.rows.stacks;
            [stacks.waiting.capacity(), stacks.order[1].capacity(), stacks.nodes.capacity()]
        };
        let burst = |encoder: &mut Assembler, from: u64, count: u64| {
            let offsets: Vec<[u64; 1]> = (from..from + count).map(|time| [time]).collect();
            let taken: Vec<_> = offsets.iter().map(|at| (StackOf::Wakeup, 7, at[0], &at[..])).collect();
            encoder.add_stacks(batch(if from == 1 { vec![image("a")] } else { vec![] }, 0, &taken));
            (from..from + count).for_each(|time| wakeup(encoder, 7, time));
            encoder.advance(from + count);
            assert_eq!(segment(encoder).stacks().attached.len() as u64, count);
        };
        let many = MAX_WAITING as u64;
        burst(&mut encoder, 1, many);
        let full = rooms(&encoder);
        assert!(full[0] >= many as usize && full[1] >= many as usize, "{full:?}");
        // as much again finds it
        burst(&mut encoder, 1 + many, many);
        assert_eq!(rooms(&encoder), full);
        burst(&mut encoder, 1 + 2 * many, 3);
        let kept = rooms(&encoder);
        assert!(kept.iter().all(|room| *room <= 4 * KEPT), "{kept:?}");
        assert_eq!(encoder.missed_stacks(), 0);
    }

    #[test]
    fn room_is_kept_for_twice_what_was_needed() {
        assert_eq!(room(0, 4 * KEPT), None);
        assert_eq!(room(0, 4 * KEPT + 1), Some(2 * KEPT));
        assert_eq!(room(5 * KEPT, 20 * KEPT), None);
        assert_eq!(room(5 * KEPT, 40 * KEPT), Some(10 * KEPT));
    }

    #[test]
    fn those_that_met_their_events_are_forgotten() {
        let mut encoder = encoder();
        let first = (StackOf::Wakeup, 9, 1, &[1][..]);
        encoder.add_stacks(batch(vec![image("a")], 0, &[first]));
        let meet = |encoder: &mut Assembler, times: std::ops::RangeInclusive<u64>| {
            for time in times {
                encoder.add_stacks(batch(vec![], 0, &[(StackOf::Wakeup, 7, time, &[1])]));
                wakeup(encoder, 7, time);
            }
        };
        // one that waits before them keeps their order for a while, not all of it
        meet(&mut encoder, 2..=5 * MAX_WAITING as u64);
        assert_eq!(encoder.rows.stacks.waiting.len(), 1);
        assert!(encoder.rows.stacks.order[1].len() <= 2 * MAX_WAITING);
        wakeup(&mut encoder, 9, 1);
        encoder.advance(2);
        assert_eq!(encoder.rows.stacks.order[1].len(), 0);
        assert_eq!(encoder.missed_stacks(), 0);
    }

    #[test]
    fn samples_become_rows_at_the_watermark() {
        let mut encoder = encoder();
        let taken = [(StackOf::Sample, 7, 300, &[3][..]), (StackOf::Sample, 8, 100, &[1])];
        encoder.add_stacks(batch(vec![image("a")], 0, &taken));
        encoder.advance(200);
        encoder.advance(300);
        let first = segment(&mut encoder);
        let times = |segment: &SegmentData| segment.samples().iter().map(|s| (s.ts, s.cpu)).collect::<Vec<_>>();
        assert_eq!(times(&first), [(100, 1)]);
        assert_eq!(stacks(&first), [(StackOf::Sample, 0, Complete, frames("a", &[1]))]);
        encoder.advance(301);
        let second = segment(&mut encoder);
        assert_eq!(times(&second), [(300, 1)]);
        assert_eq!(stacks(&second), [(StackOf::Sample, 0, Complete, frames("a", &[3]))]);
        assert_eq!(encoder.totals().by_family(), [(Family::Sample, 2)]);
    }

    #[test]
    fn a_place_in_code_made_at_run_time_is_told_once_for_each_process() {
        let mut encoder = encoder();
        let (queue, told) = NameQueue::for_tests();
        encoder.tell_names(queue);
        let taken = [
            (StackOf::Wakeup, 7, 100, &[0x1001, 0x2001][..]),
            (StackOf::Wakeup, 7, 101, &[0x1001, 0x3001]),
            (StackOf::Wakeup, 8, 102, &[0x1001]),
        ];
        encoder.add_stacks(batch(vec![Code::Jit], 0, &taken));
        for (tid, ts) in [(7, 100), (7, 101), (8, 102)] {
            wakeup(&mut encoder, tid, ts);
        }
        let mut seen = Vec::new();
        for SeenPlace { mapping, offset, origin } in told.seen() {
            let NameOrigin::Jit(Owner { here, .. }) = origin else { panic!("{origin:?}") };
            assert_eq!(mapping.kind, MappingKind::Jit);
            assert_ne!(mapping.upid, 0);
            seen.push((u32::MAX - here, offset));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(7, 0x1000), (7, 0x2000), (7, 0x3000), (8, 0x1000)]);
        // each process has code of its own, although the addresses are the same
        assert_eq!(segment(&mut encoder).stacks().mappings.len(), 2);
    }

    #[test]
    fn mappings_that_were_missed_are_a_gap() {
        let mut encoder = encoder();
        encoder.add_stacks(StackBatch { mappings_lost: Some((100, 200)), ..StackBatch::default() });
        let segment = segment(&mut encoder);
        let [gap] = segment.gaps() else { panic!("{:?}", segment.gaps()) };
        assert_eq!((gap.cause, gap.family, gap.count), (GapCause::RingFull, Family::Stack, 0));
        assert_eq!((gap.first, gap.last), (100, 200));
    }
}

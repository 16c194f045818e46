//! Ties stacks to their events, and makes the segment's tree of frames of them.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_channel::Sender;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_bpf::wire::Who;
use systape_format::model::{
    Attached, FRAME_EXACT, Family, Frame, Mapping, MappingKind, Node, Sample, StackOf, StackSettings, StackStatus, Task,
};

use super::Encoder;
use crate::stacks::names::{Message, Origin, Seen};
use crate::stacks::taken::{Code, Key, Taken, TakenFrame, TakenStack};
use crate::tasks::TaskId;

/// A stack whose event did not come within this time belongs to one that was lost.
const PATIENCE_NS: u64 = 2_000_000_000;
/// An I/O completes much later than it is queued.
const PATIENCE_IO_NS: u64 = 60_000_000_000;
/// Stacks that may wait for their events.
const MAX_WAITING: usize = 1 << 17;
/// Places in code made at run time whose names are asked for.
const MAX_JIT: usize = 1 << 18;

/// A stack whose event is still to come, or a sample's.
#[derive(Debug)]
pub(super) struct Waiting {
    user: Vec<TakenFrame>,
    kernel: Vec<TakenFrame>,
    status: StackStatus,
}

/// Stacks that wait for their events, and the codes that frames name.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    settings: StackSettings,
    waiting: FxHashMap<Key, Waiting>,
    /// Keys in the order in which they came, with the time at which they did.
    order: [VecDeque<(u64, Key)>; 2],
    codes: Vec<(Code, (u32, u32))>,
    own_pid: u32,
    /// Events that should have a stack and have none.
    missed: u64,
    /// Places in code made at run time that were told: process and address.
    jit_seen: FxHashSet<(u32, u64)>,
    names: Option<Sender<Message>>,
}

impl Stacks {
    pub(super) fn new(settings: StackSettings) -> Self {
        Self { settings, own_pid: std::process::id(), ..Self::default() }
    }

    /// A chunk ends: its frames get their names.
    pub(super) fn chunk_ends(&self) {
        if let Some(names) = &self.names {
            names.send(Message::ChunkEnds).ok();
        }
    }

    /// Tells of a place in code made at run time, once.
    fn see_jit(&mut self, frame: &TakenFrame, task: &Task) {
        let Some(names) = &self.names else { return };
        let lookup = frame.offset - u64::from(frame.flags & FRAME_EXACT == 0).min(frame.offset);
        if self.jit_seen.len() < MAX_JIT && self.jit_seen.insert((task.upid, lookup)) {
            let mapping = Mapping { kind: MappingKind::Jit, upid: task.upid, ..Mapping::default() };
            let origin = Origin::Jit { pid: task.pid, ns_pid: task.ns_pid };
            names.send(Message::Seen(Seen { mapping: Arc::new(mapping), offset: lookup, origin })).ok();
        }
    }

    fn takes(&self, of: StackOf) -> bool {
        self.settings.on.contains(&of)
    }

    /// Forgets what waited too long.
    pub(super) fn sweep(&mut self, now: u64) {
        for (queue, patience) in self.order.iter_mut().zip([PATIENCE_NS, PATIENCE_IO_NS]) {
            while let Some((came, key)) = queue.front()
                && (self.waiting.len() > MAX_WAITING || now.saturating_sub(*came) > patience)
            {
                self.waiting.remove(key);
                queue.pop_front();
            }
        }
    }
}

impl Encoder {
    /// Names of places in code made at run time are asked of `names`.
    pub fn tell_names(&mut self, names: Sender<Message>) {
        self.stacks.names = Some(names);
    }

    /// No more places will be told: what is known is looked up.
    pub fn end_names(&self) {
        if let Some(names) = &self.stacks.names {
            names.send(Message::End).ok();
        }
    }

    /// Events so far that should have a stack and have none.
    pub fn missed_stacks(&self) -> u64 {
        self.stacks.missed
    }

    /// Takes stacks in; their events come later. Samples are events of their own.
    pub fn add_stacks(&mut self, taken: Taken) {
        self.stacks.codes.extend(taken.codes.iter().map(|code| (code.clone(), (u32::MAX, 0))));
        for stack in &taken.stacks {
            let (user, kernel) = (taken.range(stack.user), taken.range(stack.kernel));
            if stack.key.of == StackOf::Sample {
                self.samples.push((*stack, Waiting { user: user.into(), kernel: kernel.into(), status: stack.status }));
                continue;
            }
            let waiting = Waiting { user: user.into(), kernel: kernel.into(), status: stack.status };
            let queue = usize::from(stack.key.of == StackOf::Block);
            self.stacks.order[queue].push_back((stack.ts, stack.key));
            self.stacks.waiting.insert(stack.key, waiting);
        }
    }

    /// Samples before `watermark` become rows.
    pub(super) fn encode_samples(&mut self, watermark: u64) {
        let (now, later): (Vec<_>, Vec<_>) = self.samples.drain(..).partition(|(s, _)| s.ts < watermark);
        self.samples = later;
        for (sample, stack) in now {
            self.sample(&sample, &stack);
            if self.builder.is_full() {
                self.close_segment(sample.ts.saturating_add(1));
            }
        }
    }

    fn sample(&mut self, sample: &TakenStack, stack: &Waiting) {
        self.latest = self.latest.max(sample.ts);
        let id = self.tasks.meet(&sample.who);
        let task = self.interned_task(id);
        self.stored(Family::Sample, sample.ts);
        let (ts, cpu, kernel) = (sample.ts, sample.cpu, sample.in_kernel);
        let row = self.builder.push_sample(Sample { ts, cpu, task, kernel });
        self.push_stack(StackOf::Sample, row, id, stack);
    }

    /// The event `row` of kind `of` was pushed: its stack, if there is one, goes with it. `expected`: there should be one.
    pub(super) fn attach(&mut self, of: StackOf, row: u32, who: (TaskId, u32), time: u64, expected: bool) {
        if !self.stacks.takes(of) {
            return;
        }
        let key = Key { of, tid: who.1, time };
        match self.stacks.waiting.remove(&key) {
            Some(stack) => self.push_stack(of, row, who.0, &stack),
            None if expected && self.tasks.get(who.0).task.pid != self.stacks.own_pid => {
                self.stacks.missed += 1;
                self.builder.push_stack(Attached { of, row, user: None, kernel: None, status: StackStatus::Lost });
            }
            None => {}
        }
    }

    /// As [`Self::attach`] for an event of somebody who may be known by name only.
    pub(super) fn attach_who(&mut self, of: StackOf, row: u32, who: &Who, time: u64, expected: bool) {
        if self.stacks.takes(of) {
            let id = self.tasks.meet(who);
            self.attach(of, row, (id, who.tid), time, expected && who.pid != self.stacks.own_pid);
        }
    }

    fn push_stack(&mut self, of: StackOf, row: u32, task: TaskId, stack: &Waiting) {
        let user = self.nodes(&stack.user, task);
        let kernel = self.nodes(&stack.kernel, task);
        self.builder.push_stack(Attached { of, row, user, kernel, status: stack.status });
    }

    /// The node of the innermost of `frames`.
    fn nodes(&mut self, frames: &[TakenFrame], task: TaskId) -> Option<u32> {
        let mut parent = None;
        for frame in frames.iter().rev() {
            let mapping = self.interned_code(frame.code, task);
            if matches!(self.stacks.codes.get(frame.code as usize), Some((Code::Jit, _))) {
                self.stacks.see_jit(frame, &self.tasks.get(task).task);
            }
            let frame = self.builder.intern_frame(Frame { mapping, offset: frame.offset, flags: frame.flags });
            parent = Some(self.builder.intern_node(Node { parent, frame }));
        }
        parent
    }

    fn interned_code(&mut self, code: u32, task: TaskId) -> u32 {
        let upid = self.tasks.get(task).task.upid;
        let own = |kind| Mapping { kind, upid, ..Mapping::default() };
        let Some((code, interned)) = self.stacks.codes.get_mut(code as usize) else {
            return self.builder.intern_mapping(&own(MappingKind::Unknown));
        };
        match code {
            Code::Shared(_) if interned.0 == self.segment => interned.1,
            Code::Shared(mapping) => {
                *interned = (self.segment, self.builder.intern_mapping(mapping));
                interned.1
            }
            Code::Jit => self.builder.intern_mapping(&own(MappingKind::Jit)),
            Code::Unknown => self.builder.intern_mapping(&own(MappingKind::Unknown)),
        }
    }
}

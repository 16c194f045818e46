//! Copies rows of a segment into another: for a cut, and for tapes that are put together.
//!
//! A [`Picks`] decides which rows stay; here their tasks, calls, names and stacks get the numbers of the new segment.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::header::BlockKind;
use crate::model::{
    Attached, BlockIo, CPU_NONE, Core, Dict, Ends, FD_FIRST, FD_NONE, Family, Gap, GapCause, LedgerRow, Mapping,
    NetState, Node, ProcessEvent, Sample, SignalEvent, Sleeper, StackOf, Stacks, Switch, SyscallRow, Task, UringOp,
    Wakeup,
};
use crate::reader::Segment;
use crate::repair::Part;
use crate::segment::SegmentBuilder;
use crate::table::Type;
use crate::tables::{Field, TableRows};

/// Places in code that stacks have, by what they are in.
pub(crate) type Places = HashMap<Mapping, HashSet<u64>>;

/// Adds the places of `stacks`.
pub(crate) fn add_places(places: &mut Places, stacks: &Stacks) {
    for frame in &stacks.frames {
        if let Some(mapping) = stacks.mappings.get(frame.mapping as usize) {
            match places.get_mut(mapping) {
                Some(offsets) => _ = offsets.insert(frame.lookup()),
                None => _ = places.insert(mapping.clone(), HashSet::from([frame.lookup()])),
            }
        }
    }
}

/// A row of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    /// A call: its number in the core, its start and its end.
    Call(&'a Core, usize, (u64, u64)),
    /// An event of process life.
    Process(&'a ProcessEvent),
    /// A switch and its number.
    Switch(&'a Switch, u32),
    /// A wake-up and its number.
    Wakeup(&'a Wakeup, u32),
    /// A signal.
    Signal(&'a SignalEvent),
    /// A change of a socket's state.
    Net(&'a NetState),
    /// A block I/O.
    Block(&'a BlockIo),
    /// An operation of io_uring.
    Uring(&'a UringOp),
    /// A sample.
    Sample(&'a Sample),
    /// A sleeper.
    Sleeper(&'a Sleeper),
    /// Counted calls and their number.
    Ledger(&'a LedgerRow, u32),
    /// A row of a table, by its number.
    Table(&'a TableRows, usize),
    /// A loss.
    Gap(&'a Gap),
}

/// Decides which rows stay.
pub(crate) trait Picks {
    /// Whether `row` of the segment with `dict` stays.
    fn stays(&mut self, dict: &Dict, row: Row<'_>) -> bool;
    /// Whether lines of a call that stays may name any task of its segment, so that all of them stay.
    fn names(&self, start: u64) -> bool;
    /// A task as the new segment has it.
    fn task(&self, task: &Task) -> Task;
    /// Whether the idle task stands for `task` in a switch at `ts`.
    fn idles(&self, task: &Task, ts: u64) -> bool;
}

/// A segment that is read, and the one that is written.
pub(crate) struct Rows<'a, P> {
    picks: P,
    segment: Segment<'a>,
    part: &'a Part,
    to: &'a mut SegmentBuilder,
    places: &'a mut Places,
    stacks: Stacks,
    /// Old numbers of each thread's tasks, in their order.
    threads: HashMap<(u32, u32), Vec<u32>>,
    /// New numbers of tasks and nodes by old ones.
    tasks: Vec<Option<u32>>,
    nodes: Vec<Option<u32>>,
}

impl<'a, P: Picks> Rows<'a, P> {
    /// Rows of `segment`, of which `part` can be read.
    pub(crate) fn new(
        picks: P,
        segment: Segment<'a>,
        part: &'a Part,
        to: &'a mut SegmentBuilder,
        places: &'a mut Places,
    ) -> Self {
        let stacks = match &part.stacks {
            Some(stacks) => stacks.clone(),
            None if part.kept.contains(&BlockKind::Stacks) => segment.stacks().unwrap_or_default(),
            None => Stacks::default(),
        };
        let (tasks, nodes) = (vec![None; part.dict.tasks.len()], vec![None; stacks.nodes.len()]);
        let mut threads: HashMap<_, Vec<u32>> = HashMap::new();
        for (old, task) in (0..).zip(&part.dict.tasks) {
            threads.entry((task.utid, task.tid)).or_default().push(old);
        }
        Self { picks, segment, part, to, places, stacks, threads, tasks, nodes }
    }

    /// Copies all that stay.
    ///
    /// # Errors
    /// A block of `part` cannot be read.
    pub(crate) fn copy(mut self) -> Result<()> {
        for gap in self.part.gaps.iter().chain(&self.part.more) {
            if self.stays(Row::Gap(gap)) {
                self.to.push_gap(*gap);
            }
        }
        if self.has(BlockKind::SyscallsCore) {
            self.calls()?;
        }
        if self.has(BlockKind::Processes) {
            self.processes()?;
        }
        if self.has(BlockKind::Sched) {
            self.switches()?;
        }
        if self.has(BlockKind::Wakeups) {
            self.wakeups()?;
        }
        if self.has(BlockKind::Signals) {
            self.signals()?;
        }
        if self.has(BlockKind::Net) {
            self.nets()?;
        }
        self.others()?;
        if self.has(BlockKind::Ledger) {
            self.ledger()?;
        }
        if self.has(BlockKind::Tables) {
            for table in self.segment.tables(self.dict())? {
                for row in 0..table.ts.len() {
                    if self.stays(Row::Table(&table, row)) {
                        self.row(&table, row)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn stays(&mut self, row: Row<'_>) -> bool {
        self.picks.stays(&self.part.dict, row)
    }

    fn dict(&self) -> &'a Dict {
        &self.part.dict
    }

    fn has(&self, kind: BlockKind) -> bool {
        self.part.kept.contains(&kind)
    }

    fn old(&self, task: u32) -> Option<&'a Task> {
        self.part.dict.tasks.get(task as usize)
    }

    /// The new number of a task. With it come all entries of its thread, in their order: later ones are newer, whichever is used first.
    fn task(&mut self, old: u32) -> u32 {
        let Some(task) = self.old(old) else { return 0 };
        if self.tasks[old as usize].is_none() {
            let of_thread = self.threads.get(&(task.utid, task.tid)).into_iter().flatten();
            for old in of_thread.map(|old| *old as usize) {
                self.tasks[old] = Some(self.to.intern_task(&self.picks.task(&self.part.dict.tasks[old])));
            }
        }
        self.tasks[old as usize].unwrap_or_default()
    }

    /// The new number of a task that a CPU runs.
    fn runner(&mut self, old: u32, idles: bool) -> u32 {
        if !idles {
            return self.task(old);
        }
        match self.part.dict.tasks.iter().position(|task| task.tid == 0) {
            Some(idle) => self.task(idle as u32),
            None => self.to.intern_task(&Task { comm: b"swapper/0".to_vec(), ..Task::default() }),
        }
    }

    fn some_task(&mut self, old: Option<u32>) -> Option<u32> {
        old.map(|old| self.task(old))
    }

    fn calls(&mut self) -> Result<()> {
        let (dict, core) = (self.dict(), &self.part.core);
        if !self.has(BlockKind::SyscallsTime) {
            // when they were made nobody knows: they count as lost
            let (first, last, count) = (dict.window_start, dict.window_end, core.dur.len() as u64);
            let (cause, family) = (GapCause::Damaged, Family::Syscall);
            self.to.push_gap(Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false });
            return Ok(());
        }
        let time = self.segment.time(dict, core)?;
        let span = |row: usize| (time.start[row], time.start[row].saturating_add(core.dur[row]));
        let rows: Vec<usize> =
            (0..core.task.len()).filter(|row| self.stays(Row::Call(core, *row, span(*row)))).collect();
        if rows.is_empty() {
            return Ok(());
        }
        if rows.iter().any(|row| self.picks.names(time.start[*row])) {
            (0..dict.tasks.len() as u32).for_each(|task| _ = self.task(task));
        }
        let args = if self.has(BlockKind::SyscallsArgs) { self.segment.args(core)? } else { Default::default() };
        let fds = if self.has(BlockKind::SyscallsFds) { self.segment.fds(core)? } else { Default::default() };
        let values = if self.has(BlockKind::SyscallsBytes) { self.segment.captured(core)? } else { Default::default() };
        let mut values = values.iter().peekable();
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            let mut fd = |column: &[u32]| match column.get(row).copied().unwrap_or(FD_NONE) {
                named if named >= FD_FIRST => {
                    let name = fds.names.get((named - FD_FIRST) as usize);
                    name.map_or(FD_NONE, |name| self.to.intern_fd_name(name))
                }
                other => other,
            };
            let (fd, fd2) = (fd(&fds.fd), fd(&fds.fd2));
            let call = self.to.intern_call(dict.calls[core.call[row] as usize]);
            let new = SyscallRow {
                end: time.start[row].saturating_add(core.dur[row]),
                dur: core.dur[row],
                cpu: time.cpu.get(row).copied().unwrap_or(CPU_NONE),
                task: self.task(core.task[row]),
                call,
                ret: args.ret.get(row).copied().unwrap_or(0),
                errno: core.errno[row],
                state: core.state[row],
                unselected: core.unselected.get(row).copied().unwrap_or(false),
                args: args.args.get(row).copied().unwrap_or_default(),
                unknown: args.unknown.get(row).copied().unwrap_or(0),
                fd,
                fd2,
            };
            let id = self.to.push_syscall(new);
            while let Some(value) = values.next_if(|value| value.row as usize <= row) {
                if value.row as usize == row {
                    self.to.push_captured(id, value.arg, value.status, value.full, &value.bytes);
                }
            }
            ids.push((row as u32, id));
        }
        for (row, id) in ids {
            self.stack(StackOf::Syscall, row, id);
        }
        Ok(())
    }

    fn processes(&mut self) -> Result<()> {
        for mut event in self.segment.processes(self.dict())? {
            if self.stays(Row::Process(&event)) {
                (event.task, event.parent) = (self.task(event.task), self.task(event.parent));
                self.to.push_process(event);
            }
        }
        Ok(())
    }

    fn switches(&mut self) -> Result<()> {
        for (row, mut event) in self.segment.switches(self.dict())?.into_iter().enumerate() {
            let row = row as u32;
            if !self.stays(Row::Switch(&event, row)) {
                continue;
            }
            let idles = |task: u32| self.old(task).is_some_and(|task| self.picks.idles(task, event.ts));
            let (prev, next) = (idles(event.prev), idles(event.next));
            (event.prev, event.next) = (self.runner(event.prev, prev), self.runner(event.next, next));
            let id = self.to.push_switch(event);
            // it is of the one that left
            if !prev {
                self.stack(StackOf::Switch, row, id);
            }
        }
        Ok(())
    }

    fn wakeups(&mut self) -> Result<()> {
        for (row, mut event) in self.segment.wakeups(self.dict())?.into_iter().enumerate() {
            if self.stays(Row::Wakeup(&event, row as u32)) {
                (event.waker, event.wakee) = (self.some_task(event.waker), self.task(event.wakee));
                let id = self.to.push_wakeup(event);
                self.stack(StackOf::Wakeup, row as u32, id);
            }
        }
        Ok(())
    }

    fn signals(&mut self) -> Result<()> {
        for (row, mut event) in self.segment.signals(self.dict())?.into_iter().enumerate() {
            if self.stays(Row::Signal(&event)) {
                (event.sender, event.target) = (self.some_task(event.sender), self.task(event.target));
                let calls = &self.part.dict.calls;
                event.call = event.call.and_then(|call| Some(self.to.intern_call(*calls.get(call as usize)?)));
                let id = self.to.push_signal(event);
                self.stack(StackOf::Signal, row as u32, id);
            }
        }
        Ok(())
    }

    fn nets(&mut self) -> Result<()> {
        for mut event in self.segment.nets(self.dict())? {
            if self.stays(Row::Net(&event)) {
                (event.task, event.sender) = (self.some_task(event.task), self.some_task(event.sender));
                self.to.push_net(event);
            }
        }
        Ok(())
    }

    /// Block I/Os, operations of io_uring, samples, sleepers.
    fn others(&mut self) -> Result<()> {
        let dict = self.dict();
        if self.has(BlockKind::Blocks) {
            for (row, mut io) in self.segment.blocks(dict)?.into_iter().enumerate() {
                if self.stays(Row::Block(&io)) {
                    (io.owner, io.origin) = (self.some_task(io.owner), self.some_task(io.origin));
                    let id = self.to.push_block(io);
                    self.stack(StackOf::Block, row as u32, id);
                }
            }
        }
        if self.has(BlockKind::Uring) {
            for mut op in self.segment.urings(dict)? {
                if self.stays(Row::Uring(&op)) {
                    op.task = self.task(op.task);
                    self.to.push_uring(op);
                }
            }
        }
        if self.has(BlockKind::Samples) {
            for (row, mut sample) in self.segment.samples(dict)?.into_iter().enumerate() {
                if self.stays(Row::Sample(&sample)) {
                    sample.task = self.task(sample.task);
                    let id = self.to.push_sample(sample);
                    self.stack(StackOf::Sample, row as u32, id);
                }
            }
        }
        if self.has(BlockKind::Sleepers) {
            for (row, mut sleeper) in self.segment.sleepers(dict)?.into_iter().enumerate() {
                if self.stays(Row::Sleeper(&sleeper)) {
                    sleeper.task = self.task(sleeper.task);
                    let id = self.to.push_sleeper(sleeper);
                    self.stack(StackOf::Asleep, row as u32, id);
                }
            }
        }
        Ok(())
    }

    fn ledger(&mut self) -> Result<()> {
        for (row, mut counted) in self.segment.ledger(self.dict())?.into_iter().enumerate() {
            if self.stays(Row::Ledger(&counted, row as u32)) {
                counted.task = self.some_task(counted.task);
                counted.call = self.to.intern_call(self.part.dict.calls[counted.call as usize]);
                self.to.push_ledger(counted);
            }
        }
        Ok(())
    }

    fn row(&mut self, table: &TableRows, row: usize) -> Result<()> {
        let unread = table.unread().and_then(|bits| bits.get(row).copied()).unwrap_or(0);
        let mut ends: Option<Ends> = None;
        let mut values = Vec::with_capacity(table.columns.len());
        for (at, (column, codes)) in table.def.columns.iter().skip(1).zip(&table.columns).enumerate() {
            let code = codes.get(row).copied().unwrap_or(0);
            values.push(match column.ty {
                Type::Str => table.string(code).map_or(Field::Unknown, Field::Bytes),
                Type::Task => match u32::try_from(code).ok().and_then(|code| code.checked_sub(1)) {
                    Some(task) => Field::Task(self.task(task)),
                    None => Field::Unknown,
                },
                Type::Stack => {
                    ends = ends.or(self.stacks.of_code(code).copied());
                    Field::Unknown
                }
                Type::Unread => Field::Unknown,
                _ if at < 64 && unread >> at & 1 != 0 => Field::Unknown,
                _ => Field::Number(code),
            });
        }
        let id = self.to.push_table_row(&table.def, table.ts[row], &values)?;
        if let Some(ends) = ends {
            self.attach(StackOf::Row, id, ends);
        }
        Ok(())
    }

    /// Copies the stack of row `old` of its kind, which is now `new`.
    fn stack(&mut self, of: StackOf, old: u32, new: u32) {
        if let Some(ends) = self.stacks.of(of, old).map(Ends::from) {
            self.attach(of, new, ends);
        }
    }

    fn attach(&mut self, of: StackOf, row: u32, Ends { user, kernel, status }: Ends) {
        let (user, kernel) = (self.node(user), self.node(kernel));
        self.to.push_stack(Attached { of, row, user, kernel, status });
    }

    /// The new number of a node; those above it are copied first.
    fn node(&mut self, leaf: Option<u32>) -> Option<u32> {
        let mut path = Vec::new();
        let mut next = leaf;
        // a caller's number is lower, so this ends
        while let Some(node) = next.filter(|node| self.nodes.get(*node as usize).is_some_and(Option::is_none)) {
            path.push(node);
            next = self.stacks.nodes[node as usize].parent;
        }
        while let Some(old) = path.pop() {
            let Node { parent, frame } = self.stacks.nodes[old as usize];
            let Some(mut place) = self.stacks.frames.get(frame as usize).copied() else { continue };
            let Some(mapping) = self.stacks.mappings.get(place.mapping as usize) else { continue };
            match self.places.get_mut(mapping) {
                Some(offsets) => _ = offsets.insert(place.lookup()),
                None => _ = self.places.insert(mapping.clone(), HashSet::from([place.lookup()])),
            }
            place.mapping = self.to.intern_mapping(mapping);
            let frame = self.to.intern_frame(place);
            let parent = parent.and_then(|parent| self.nodes.get(parent as usize).copied().flatten());
            self.nodes[old as usize] = Some(self.to.intern_node(Node { parent, frame }));
        }
        leaf.and_then(|leaf| self.nodes.get(leaf as usize).copied().flatten())
    }
}

//! A window of time: what becomes a segment.

use systape_format::model::{ByteStatus, Call, FD_FIRST, FD_NONE, ProcessEvent, SignalEvent, SyscallRow, Task};
use systape_format::{SegmentBuilder, SegmentData};

/// A call. `task` and `call` of its row are indices into the window's tables, `fd` is [`FD_NONE`] or `FD_FIRST` + such an index.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Everything but strings.
    pub row: SyscallRow,
    /// The path in argument 1: index into the window's names.
    pub path: Option<u32>,
}

/// What happened in `[start, end)`, with tables of who and what.
#[derive(Clone, Debug, Default)]
pub struct SynthWindow {
    /// Begin, ns.
    pub start: u64,
    /// End, ns.
    pub end: u64,
    /// Who.
    pub tasks: Vec<Task>,
    /// Distinct calls.
    pub calls: Vec<Call>,
    /// Paths behind descriptors and in arguments.
    pub names: Vec<Vec<u8>>,
    /// Calls, by end.
    pub rows: Vec<Row>,
    /// Forks, execs and exits; tasks are indices into `tasks`.
    pub processes: Vec<ProcessEvent>,
    /// Signals; tasks and calls are indices into the tables.
    pub signals: Vec<SignalEvent>,
}

/// Not interned yet.
const NOT_YET: u32 = u32::MAX;

/// Ids of a table's entries in a builder, looked up once each, as the recorder does.
struct EntryIds(Vec<u32>);

impl EntryIds {
    fn new(len: usize) -> Self {
        Self(vec![NOT_YET; len])
    }

    fn get(&mut self, at: u32, intern: impl FnOnce() -> u32) -> u32 {
        let id = &mut self.0[at as usize];
        if *id == NOT_YET {
            *id = intern();
        }
        *id
    }
}

impl SynthWindow {
    /// Pushes all of it into a segment.
    pub fn fill(&self) -> SegmentData {
        let mut b = SegmentBuilder::new(self.start);
        let (mut tasks, mut names) = (EntryIds::new(self.tasks.len()), EntryIds::new(self.names.len()));
        let mut calls = EntryIds::new(self.calls.len());
        for Row { row, path } in &self.rows {
            let mut row = row.clone();
            row.task = tasks.get(row.task, || b.intern_task(&self.tasks[row.task as usize]));
            row.call = calls.get(row.call, || b.intern_call(self.calls[row.call as usize]));
            if row.fd != FD_NONE {
                let name = row.fd - FD_FIRST;
                row.fd = names.get(name, || b.intern_fd_name(&self.names[name as usize]));
            }
            let id = b.push_syscall(row);
            if let Some(path) = path {
                let path = &self.names[*path as usize];
                b.push_captured(id, 1, ByteStatus::Whole, path.len() as u64, path);
            }
        }
        for event in &self.processes {
            let task = tasks.get(event.task, || b.intern_task(&self.tasks[event.task as usize]));
            let parent = tasks.get(event.parent, || b.intern_task(&self.tasks[event.parent as usize]));
            b.push_process(ProcessEvent { task, parent, ..event.clone() });
        }
        for signal in &self.signals {
            let mut id = |task: u32| tasks.get(task, || b.intern_task(&self.tasks[task as usize]));
            let (target, sender) = (id(signal.target), signal.sender.map(&mut id));
            let call = signal.call.map(|call| calls.get(call, || b.intern_call(self.calls[call as usize])));
            b.push_signal(SignalEvent { target, sender, call, ..signal.clone() });
        }
        b.finish(self.end)
    }
}

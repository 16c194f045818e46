//! A segment with everything a printed line needs, read and resolved once.
//!
//! A group that cannot be read costs only its own contents: without arguments a call is still listed, without times it
//! is not.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::ContentIo;
use systape_format::model::{Args, CallState, Captured, Core, Dict, FD_FIRST, FD_NONE, Fds, InFlight, Task, Time};
use systape_format::reader::{PickedRows, Segment, Tape};

use crate::calls::{CallBook, CallInfo, EBADF};
use crate::loss::Hole;
use crate::values::parallel;

/// The file of an fd argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdPath<'a> {
    /// No descriptor, or one that is not open.
    None,
    /// A descriptor whose path is not known.
    Unknown,
    /// Path, or `pipe:[17]` and the like.
    Known(&'a [u8]),
}

/// A decoded segment.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// Number of the segment.
    pub number: u32,
    /// Tasks and calls.
    pub dict: Dict,
    /// Calls, tasks, durations, errors, states.
    pub core: Core,
    /// Starts and CPUs.
    pub time: Time,
    /// Return values and arguments; empty = not recorded or not readable.
    pub args: Args,
    /// Paths behind descriptors; empty = not recorded or not readable.
    pub fds: Fds,
    /// Facts about each of `dict.calls`.
    pub calls: Vec<Arc<CallInfo>>,
    captured: Vec<Captured>,
    /// Row r's captured values are `captured[first[r]..first[r + 1]]`; empty without any.
    first: Vec<u32>,
    /// tid → index of its first and last entry in `dict.tasks`.
    by_tid: FxHashMap<u32, (u32, u32)>,
}

/// The hole for an error.
#[inline]
pub fn hole(segment: &Segment<'_>, rows: u32, error: &systape_format::Error) -> Hole {
    let info = segment.info();
    Hole { segment: info.segment, rows, first: info.start_min, last: info.end_max, why: error.to_string() }
}

/// The part of a segment that decides which rows are printed.
#[derive(Debug)]
pub struct Base<'a> {
    segment: Segment<'a>,
    /// Tasks and calls.
    pub dict: Dict,
    /// Calls, tasks, durations, errors, states.
    pub core: Core,
    /// Starts and CPUs.
    pub time: Time,
}

impl<'a> Base<'a> {
    /// Reads that part of `segment`. None when it cannot be read, which is a hole of all its calls, or when no row
    /// passes `wanted` by tasks, calls, durations and errors: then nothing more is read.
    pub fn read(
        segment: Segment<'a>,
        holes: &mut Vec<Hole>,
        wanted: impl FnOnce(&Dict, &Core) -> bool,
    ) -> Option<Self> {
        let dict = segment.dict();
        Self::of(segment, dict, holes, wanted)
    }

    /// Loads a segment with its `dict`, read before.
    pub fn of(
        segment: Segment<'a>,
        dict: Result<Dict, systape_format::Error>,
        holes: &mut Vec<Hole>,
        wanted: impl FnOnce(&Dict, &Core) -> bool,
    ) -> Option<Self> {
        let read = || -> Result<Option<(Dict, Core, Time)>, systape_format::Error> {
            let dict = dict?;
            let core = segment.core(&dict)?;
            if !wanted(&dict, &core) {
                return Ok(None);
            }
            let time = segment.time(&dict, &core)?;
            Ok(Some((dict, core, time)))
        };
        match read() {
            Ok(read) => read.map(|(dict, core, time)| Self { segment, dict, core, time }),
            Err(error) => {
                holes.push(hole(&segment, segment.info().rows, &error));
                None
            }
        }
    }

    /// That part with what was read of it: without times, if these cannot be read.
    #[inline]
    pub fn with(segment: Segment<'a>, dict: Dict, core: Core, time: Time) -> Self {
        Self { segment, dict, core, time }
    }

    /// Reads the rest. What cannot be read is added to `holes`.
    #[inline]
    pub fn load(self, book: &CallBook<'_>, holes: &mut Vec<Hole>) -> Loaded {
        let picked = PickedRows::all(&self.core);
        self.load_picked(&picked, book, holes)
    }

    /// Loads a segment for a caller that asks only about these rows: of others arguments, files and captured values may be missing.
    pub fn load_rows(
        self,
        rows: impl ExactSizeIterator<Item = u32>,
        book: &CallBook<'_>,
        holes: &mut Vec<Hole>,
    ) -> Loaded {
        // of most it is cheaper to read all
        if rows.len() > self.core.call.len() / 4 {
            return self.load(book, holes);
        }
        let picked = PickedRows::only(&self.core, rows);
        self.load_picked(&picked, book, holes)
    }

    fn load_picked(self, picked: &PickedRows, book: &CallBook<'_>, holes: &mut Vec<Hole>) -> Loaded {
        let Self { segment, dict, core, time } = self;
        // of the first segment somebody waits for the first line
        let (args, (fds, captured)) = parallel::both(
            || segment.args_of(&core, picked),
            || (segment.fds_of(&core, picked), segment.captured_of(&core, Some(picked))),
        );
        let mut detail = Detail { segment: &segment, holes };
        let (args, fds, captured) = (detail.or_default(args), detail.or_default(fds), detail.or_default(captured));
        let calls: Vec<_> = dict.calls.iter().map(|call| book.get(*call)).collect();
        let by_tid = if calls.iter().any(|c| c.returns_pid) { by_tid(&dict.tasks) } else { FxHashMap::default() };
        let first = first_of_row(&captured, core.call.len());
        Loaded { number: segment.info().segment, dict, core, time, args, fds, calls, captured, first, by_tid }
    }
}

/// The calls that were open when a recording ended abnormally, as a segment of their own. A clean end writes them as
/// rows; after kill -9 only the last checkpoint has a hung call. A call that its thread ended after the checkpoint is
/// not included.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenCalls {
    /// Tasks and calls.
    pub dict: Dict,
    /// All in flight; durations up to the last time each is known to have been open.
    pub core: Core,
    /// Starts of the calls; CPUs are not known.
    pub time: Time,
    args: Args,
}

impl OpenCalls {
    /// The open calls of `tape`; None when it ended cleanly or goes on, or there are none.
    pub fn read(tape: &Tape) -> Option<Self> {
        if tape.end().is_some() || tape.is_followed() {
            return None;
        }
        let (last, checkpoint) = (0..tape.checkpoints()).rev().find_map(|at| Some((at, tape.checkpoint(at).ok()?)))?;
        let since = OpenCallFacts::read(tape, tape.checkpoint_chunk(last)?, checkpoint.ts);
        // they were still open when the last whole segment ended, if nothing of that time is missing
        let until = if since.unsure { checkpoint.ts } else { tape.complete_until().max(checkpoint.ts) };
        let mut open =
            Self { dict: Dict::default(), core: Core::default(), time: Time::default(), args: Args::default() };
        for call in checkpoint.in_flight.iter().filter(|call| !since.ended.contains(&call.utid)) {
            let Some(task) = checkpoint.tasks.iter().find(|task| task.utid == call.utid) else { continue };
            let start = if call.start == 0 { tape.session().window_open } else { call.start };
            open.core.task.push(open.dict.tasks.len() as u32);
            open.core.call.push(open.dict.calls.len() as u32);
            open.core.dur.push(until.saturating_sub(start));
            open.core.errno.push(0);
            open.core.state.push(CallState::InFlight);
            open.time.start.push(start);
            let mut args = [0; 6];
            args.iter_mut().zip(&call.args).for_each(|(to, from)| *to = *from);
            open.args.args.push(args);
            open.dict.tasks.push(task.clone());
            open.dict.calls.push(call.call);
        }
        (!open.core.call.is_empty()).then_some(open)
    }

    /// An open call of a checkpoint.
    pub fn of(task: &Task, call: &InFlight) -> Self {
        let mut args = [0; 6];
        args.iter_mut().zip(&call.args).for_each(|(to, from)| *to = *from);
        Self {
            dict: Dict { tasks: vec![task.clone()], calls: vec![call.call], ..Dict::default() },
            core: Core {
                call: vec![0],
                task: vec![0],
                dur: vec![0],
                errno: vec![0],
                state: vec![CallState::InFlight],
                ..Core::default()
            },
            time: Time { start: vec![call.start], ..Time::default() },
            args: Args { args: vec![args], ..Args::default() },
        }
    }

    /// Makes it a segment to print; the files of its descriptors are not known.
    #[inline]
    pub fn load(self, book: &CallBook<'_>) -> Loaded {
        let Self { dict, core, time, args } = self;
        Loaded { args, ..Loaded::of_columns(u32::MAX, dict, core, time, book) }
    }
}

/// Facts of the segments after a checkpoint about the calls that were open then.
#[derive(Debug, Default)]
struct OpenCallFacts {
    /// Threads (utid) with a call that ended later: the open one had returned.
    ended: FxHashSet<u32>,
    /// Something is missing: a thread that is not in `ended` may have returned too.
    unsure: bool,
}

impl OpenCallFacts {
    /// Reads the chunks from `chunk` on.
    fn read(tape: &Tape, chunk: u32, ts: u64) -> Self {
        let mut since = Self { unsure: !tape.findings().is_empty(), ..Self::default() };
        for at in (0..tape.segments().len()).filter(|at| tape.segments()[*at].chunk >= chunk) {
            since.unsure |= since.segment(&tape.segment(at), ts).is_err();
        }
        since
    }

    fn segment(&mut self, segment: &Segment<'_>, ts: u64) -> Result<(), systape_format::Error> {
        self.unsure |= segment.gaps()?.iter().any(crate::loss::leaves_out_calls);
        let dict = segment.dict()?;
        let core = segment.core(&dict)?;
        let time = segment.time(&dict, &core)?;
        for (row, task) in core.task.iter().enumerate() {
            if time.start[row].saturating_add(core.dur[row]) > ts {
                self.ended.insert(dict.tasks[*task as usize].utid);
            }
        }
        Ok(())
    }
}

/// Turns errors of groups that a line can do without into holes.
struct Detail<'a, 'b> {
    segment: &'a Segment<'a>,
    holes: &'b mut Vec<Hole>,
}

impl Detail<'_, '_> {
    fn or_default<T: Default>(&mut self, read: Result<T, systape_format::Error>) -> T {
        read.unwrap_or_else(|error| {
            self.holes.push(hole(self.segment, 0, &error));
            T::default()
        })
    }
}

fn by_tid(tasks: &[Task]) -> FxHashMap<u32, (u32, u32)> {
    let mut map = FxHashMap::default();
    for (at, task) in tasks.iter().enumerate() {
        map.entry(task.tid).and_modify(|(_, last)| *last = at as u32).or_insert((at as u32, at as u32));
    }
    map
}

fn first_of_row(captured: &[Captured], rows: usize) -> Vec<u32> {
    if captured.is_empty() {
        return Vec::new();
    }
    let mut first = vec![0; rows + 1];
    for value in captured {
        if let Some(count) = first.get_mut(value.row as usize + 1) {
            *count += 1;
        }
    }
    for row in 0..rows {
        first[row + 1] += first[row];
    }
    first
}

impl Loaded {
    /// A segment of which only these columns are read.
    #[inline]
    pub fn of_columns(number: u32, dict: Dict, core: Core, time: Time, book: &CallBook<'_>) -> Self {
        let calls = dict.calls.iter().map(|call| book.get(*call)).collect();
        let (args, fds, captured, first) = (Args::default(), Fds::default(), Vec::new(), Vec::new());
        Self { number, dict, core, time, args, fds, calls, captured, first, by_tid: FxHashMap::default() }
    }

    /// Number of calls.
    #[inline]
    pub fn rows(&self) -> usize {
        self.core.call.len()
    }

    /// The call of `row`.
    #[inline]
    pub fn call(&self, row: usize) -> &CallInfo {
        &self.calls[self.core.call[row] as usize]
    }

    /// The thread that made the call of `row`.
    #[inline]
    pub fn task(&self, row: usize) -> &Task {
        &self.dict.tasks[self.core.task[row] as usize]
    }

    /// Captured values of `row`, by argument.
    #[inline]
    pub fn captured(&self, row: usize) -> &[Captured] {
        match (self.first.get(row), self.first.get(row + 1)) {
            (Some(from), Some(to)) => self.captured.get(*from as usize..*to as usize).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// The file of the descriptor in argument `at` of `row`.
    #[inline]
    pub fn fd_path(&self, row: usize, at: usize) -> FdPath<'_> {
        match self.call(row).fd_args {
            [Some(first), _] if first == at => self.fd_of_column(row, 0),
            [_, Some(second)] if second == at => self.fd_of_column(row, 1),
            _ => FdPath::Unknown,
        }
    }

    /// The file that `row` has in the first (0) or second (1) column of descriptors: of an argument, or of an array to poll.
    pub fn fd_of_column(&self, row: usize, column: usize) -> FdPath<'_> {
        let column = if column == 0 { &self.fds.fd } else { &self.fds.fd2 };
        match column.get(row).copied() {
            Some(FD_NONE) => FdPath::None,
            Some(fd) if fd >= FD_FIRST => self.fd_name(fd - FD_FIRST).map_or(FdPath::Unknown, FdPath::Known),
            // whatever it stands for, this call found nothing there
            _ if self.core.errno.get(row) == Some(&EBADF) => FdPath::None,
            _ => FdPath::Unknown,
        }
    }

    /// The file that the call of `row` opened or removed, as the kernel named it; None: there is none, or it is not known.
    #[inline]
    pub fn opened(&self, row: usize) -> Option<&[u8]> {
        match self.fd_of_column(row, 1) {
            FdPath::Known(name) if self.call(row).io == ContentIo::Open || self.call(row).removes => Some(name),
            _ => None,
        }
    }

    /// The number, in this segment, of the file that `row` has in the first column of descriptors; None: it has none, or it is not known.
    #[inline]
    pub fn fd_number(&self, row: usize) -> Option<u32> {
        self.fds.fd.get(row)?.checked_sub(FD_FIRST)
    }

    /// The file with that number.
    #[inline]
    pub fn fd_name(&self, number: u32) -> Option<&[u8]> {
        self.fds.names.get(number as usize).map(|name| &**name)
    }

    /// The name of thread `tid`, if this segment has it: for a new child (`first`) its first name.
    #[inline]
    pub fn comm_of(&self, tid: u32, first: bool) -> Option<&[u8]> {
        let (begin, end) = self.by_tid.get(&tid)?;
        self.dict.tasks.get(if first { *begin } else { *end } as usize).map(|task| task.comm.as_slice())
    }
}

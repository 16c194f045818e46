//! The current directories that `AT_FDCWD` stands for in calls, for lines that show it as they show the file of a descriptor.
//!
//! What happened to processes is read a batch ahead of the lines, and let go behind them. A call that began before its segment gets none: it
//! may be from before all that is kept.

use std::ops::{ControlFlow, Range};

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_abi::{AT_FDCWD, ArgKind};
use systape_format::model::{CallState, FD_FIRST, FD_UNKNOWN};

use super::super::lost_calls;
use super::dirs::Dirs;
use super::feed::{self, DirectoryChanges, PathFeeder, Reader, Told, Waiting};
use super::history::History;
use crate::derive::sharers::Member;
use systape_events::load::Loaded;
use systape_events::question::Question;
use systape_events::scan::Scan;
use systape_events::scan::lost::MissingKind;
use systape_events::scan::stream::Stream;

/// Nothing is made of rows.
#[derive(Debug)]
struct NoRows;

impl Reader for NoRows {
    type Sum = ();
    type Row = ();

    fn wants(&self, _segment: usize) -> bool {
        false
    }

    fn read(&self, _segment: &Loaded, _range: Range<usize>, _waiting: &mut Vec<Waiting<()>>) {}
}

type Each = fn(Told<(), ()>) -> Result<ControlFlow<()>>;

/// Whether a selected call has a directory as an argument.
fn needed(question: &Question<'_>) -> bool {
    let filters = question.scope.filters();
    let at = |call: &systape_format::model::Call| {
        let info = question.book.get(*call);
        (!filters.selects || filters.selection.contains(info.abi, call.nr)) && info.args.iter().any(is_dir)
    };
    let infos = question.tape.segments();
    let some = |at: usize| infos[at].calls.as_ref();
    question.candidates().into_iter().any(|segment| some(segment).is_none_or(|calls| calls.iter().any(at)))
}

fn is_dir(arg: &systape_events::calls::ArgInfo) -> bool {
    matches!(arg.kind, ArgKind::DirFd)
}

/// What a [`Cwds`] reads.
pub struct Moves<'a> {
    scan: Scan<'a>,
    changes: DirectoryChanges<'a, NoRows>,
}

impl<'a> Moves<'a> {
    /// What is to be read for the calls of `question`; None: nothing, because no call needs it.
    pub fn of(question: &'a Question<'a>) -> Option<Self> {
        if needed(question) { Self::all(question) } else { None }
    }

    /// What is to be read whatever calls there are; None: where processes are cannot be known.
    pub fn all(question: &'a Question<'a>) -> Option<Self> {
        let changes = DirectoryChanges { question, reader: &NoRows };
        let known = !lost_calls::unrecorded(question.tape.session(), feed::moves);
        known.then(|| Self { scan: Scan::all(question.tape), changes })
    }
}

/// The directories of a while.
pub struct Cwds<'m, 'a> {
    stream: Stream<'m, 'a, DirectoryChanges<'a, NoRows>, PathFeeder<Each>>,
}

impl<'m, 'a> Cwds<'m, 'a> {
    /// Follows directories by what `moves` says.
    pub fn new(moves: &'m Moves<'a>) -> Self {
        let question = moves.changes.question;
        let each: Each = |_| Ok(ControlFlow::Continue(()));
        let feeder = PathFeeder::new(Dirs::noted(false), u64::MAX, each);
        let lost = lost_calls::all(question.tape, &question.book, feed::moves).into_iter();
        let lost = lost.map(|lost| (MissingKind::Calls, lost));
        Self { stream: Stream::new(&moves.scan, &moves.changes, lost, feeder) }
    }

    /// Moves on to the directories of `from` until `until`.
    pub fn advance(&mut self, from: u64, until: u64) {
        if let Some(history) = self.stream.machine.dirs.history_mut() {
            history.forget(from);
        }
        while self.stream.reached <= until && self.stream.step() {}
    }

    /// Directories of that time.
    pub fn history(&self) -> Option<&History> {
        self.stream.machine.dirs.history()
    }
}

/// Makes the directory of each of `rows` the file of its `AT_FDCWD`.
pub fn fill(history: &History, segment: &mut Loaded, rows: impl Iterator<Item = usize>) {
    let args = |info: &systape_events::calls::CallInfo| info.fd_args.map(|at| at.filter(|at| is_dir(&info.args[*at])));
    let on: Vec<[Option<usize>; 2]> = segment.calls.iter().map(|info| args(info)).collect();
    let mut numbers = FxHashMap::default();
    for row in rows.filter(|row| *row >= segment.core.carry_rows) {
        let on = on[segment.core.call[row] as usize];
        let Some(given) = segment.args.of(row) else { continue };
        let cwd = |at: usize| given[at] as i32 == AT_FDCWD;
        let on = on.map(|at| at.is_some_and(cwd));
        if on == [false; 2] || !starts(segment.core.state[row]) {
            continue;
        }
        let start = segment.time.start[row];
        let end = start.saturating_add(segment.core.dur[row]);
        let known = history.cwd(Member::of(segment.task(row)), start, end);
        let Some(path) = known.filter(|path| path.starts_with(b"/")) else { continue };
        let fds = &mut segment.fds;
        let number = *numbers.entry(path).or_insert_with(|| {
            fds.names.push(path.to_vec());
            FD_FIRST + (fds.names.len() - 1) as u32
        });
        for (column, _) in [&mut fds.fd, &mut fds.fd2].into_iter().zip(on).filter(|(_, on)| *on) {
            if column.is_empty() {
                *column = vec![FD_UNKNOWN; segment.core.call.len()];
            }
            if let Some(fd) = column.get_mut(row) {
                *fd = number;
            }
        }
    }
}

/// Whether the start of such a call is on the tape.
fn starts(state: CallState) -> bool {
    !matches!(state, CallState::BeganBefore | CallState::LostEnter | CallState::CloneChild)
}

//! What a call is on, as far as its row tells: a path, what a descriptor stood for, or a name in the current directory.

use std::borrow::Cow;

use systape_abi::{AT_FDCWD, ArgKind};
use systape_format::model::{ByteStatus, CallState};

use super::join;
use systape_events::calls::{CallInfo, EBADF};
use systape_events::empty_path::{self, EmptyPathTarget, Given};
use systape_events::load::{FdPath, Loaded};

/// `resolve` of `struct open_how`: paths do not leave the directory they begin in, also those that begin with `/`.
const RESOLVE_IN_ROOT: u64 = 0x10;
/// Where it is in that struct.
const RESOLVE: std::ops::Range<usize> = 16..24;

/// What an argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// The path, or `socket:[17]` and the like.
    Known(Cow<'a, [u8]>),
    /// A path in the current directory of the process.
    InCwd(&'a [u8]),
    /// Nothing: the call failed because the path was empty, or a null pointer.
    Nothing,
    /// Not known.
    Unknown,
}

/// Something that a call is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use<'a> {
    /// Which argument.
    pub arg: usize,
    /// What it names.
    pub name: Name<'a>,
    /// The file that was opened or removed by it, as the kernel names it: without symbolic links and `..`, from the root of its mounts. None: none
    /// was, or it is not known.
    pub opened: Option<&'a [u8]>,
    /// The path as the program gave it; None: it is a descriptor, or what was given is not on the tape.
    pub given: Option<&'a [u8]>,
    /// `given` is only its beginning.
    pub cut: bool,
}

/// What the call of `row` is on: its paths and its descriptors. A descriptor that paths are relative to is none of them.
pub fn uses<'a>(segment: &'a Loaded, row: usize) -> impl Iterator<Item = Use<'a>> {
    let info = segment.call(row);
    (0..info.args.len()).filter_map(move |at| match info.args[at].kind {
        ArgKind::Path => path(segment, row, at),
        ArgKind::Fd => {
            let name = descriptor(segment, row, at)?;
            Some(Use { arg: at, name, opened: None, given: None, cut: false })
        }
        // a handle of a file says no name
        ArgKind::DirFd if at == 0 && info.name == "open_by_handle_at" => {
            Some(Use { arg: at, name: Name::Unknown, opened: segment.opened(row), given: None, cut: false })
        }
        _ => None,
    })
}

/// Calls of which the first that they are on is what [`Loaded::fd_number`] numbers: its name need not be looked at for each of them.
#[derive(Debug)]
pub(crate) struct Numbered<'a> {
    segment: &'a Loaded,
    /// By kind of call.
    on_fd: Vec<bool>,
}

impl<'a> Numbered<'a> {
    /// Finds the calls of `segment`.
    pub(crate) fn new(segment: &'a Loaded) -> Self {
        Self { segment, on_fd: segment.calls.iter().map(|info| is_on_fd(info)).collect() }
    }

    /// The number of the file that the call of `row` is on first; None: it is on a path first, or on what is not known.
    pub(crate) fn file(&self, row: usize) -> Option<u32> {
        let on_fd = self.on_fd[self.segment.core.call[row] as usize];
        if on_fd { self.segment.fd_number(row) } else { None }
    }
}

fn is_on_fd(info: &CallInfo) -> bool {
    let first = info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Fd | ArgKind::DirFd));
    first.is_some_and(|at| matches!(info.args[at].kind, ArgKind::Fd) && info.fd_args[0] == Some(at))
}

/// What the descriptor stood for; None: it is none.
fn descriptor(segment: &Loaded, row: usize, at: usize) -> Option<Name<'_>> {
    match segment.fd_path(row, at) {
        FdPath::None => None,
        FdPath::Unknown => Some(Name::Unknown),
        FdPath::Known(name) => Some(Name::Known(name.into())),
    }
}

/// What the path in argument `at` names; None: there is none, or it is relative to a descriptor that is not open.
fn path(segment: &Loaded, row: usize, at: usize) -> Option<Use<'_>> {
    if is_nowhere(segment, row, at) {
        return None;
    }
    let value = segment.captured(row).iter().find(|value| usize::from(value.arg) == at);
    let text = value.filter(|value| value.status.has_bytes() && value.status != ByteStatus::Redacted);
    let given = text.map(|value| value.bytes.as_slice());
    let cut = text.is_some_and(|value| !value.status.is_whole());
    let args = segment.args.of(row);
    let known = segment.core.state[row] != CallState::LostEnter;
    let null = known && args.is_some_and(|args| args.get(at) == Some(&0));
    let name = match given {
        Some([]) if !cut => empty(segment, row, at, Given::Empty),
        Some(text) if !cut => named(segment, row, at, text).unwrap_or(Name::Unknown),
        None if null => match empty(segment, row, at, Given::Null) {
            // of a descriptor at least that was given
            Name::Nothing if args.is_some_and(|args| empty_path::is_cwd(segment.call(row), at, args)) => return None,
            name => name,
        },
        _ => Name::Unknown,
    };
    Some(Use { arg: at, name, opened: segment.opened(row), given, cut })
}

/// What the call is on if its path is `given`.
fn empty(segment: &Loaded, row: usize, at: usize, given: Given) -> Name<'_> {
    let ended = (segment.core.state[row], segment.core.errno[row]);
    match empty_path::on(segment.call(row), at, given, segment.args.of(row), ended) {
        EmptyPathTarget::Base => base(segment, row, at).unwrap_or(Name::Unknown),
        EmptyPathTarget::Nothing => Name::Nothing,
        EmptyPathTarget::Unknown => Name::Unknown,
    }
}

/// The file that `text` names; None = it is not known.
fn named<'a>(segment: &'a Loaded, row: usize, at: usize, text: &'a [u8]) -> Option<Name<'a>> {
    let inside = stays_inside(segment, row)?;
    let text = if inside { text.strip_prefix(b"/").unwrap_or(text) } else { text };
    if text.starts_with(b"/") {
        return Some(Name::Known(text.into()));
    }
    match base(segment, row, at)? {
        Name::Known(base) => join(&base, text).map(|path| Name::Known(path.into())),
        Name::InCwd(_) => Some(Name::InCwd(text)),
        Name::Unknown | Name::Nothing => None,
    }
}

/// Whether the call failed because the descriptor that its path is relative to is not open.
fn is_nowhere(segment: &Loaded, row: usize, at: usize) -> bool {
    let Some(dir) = empty_path::dir(segment.call(row), at).filter(|_| segment.core.errno[row] == EBADF) else {
        return false;
    };
    let value = segment.args.of(row).and_then(|args| args.get(dir));
    value.is_some_and(|fd| *fd as i32 != AT_FDCWD) && segment.fd_path(row, dir) == FdPath::None
}

/// The directory that the path in argument `at` is relative to.
fn base(segment: &Loaded, row: usize, at: usize) -> Option<Name<'_>> {
    match empty_path::dir(segment.call(row), at) {
        None => Some(Name::InCwd(b".")),
        Some(dir) => match *segment.args.of(row)?.get(dir)? as i32 {
            AT_FDCWD => Some(Name::InCwd(b".")),
            _ => descriptor(segment, row, dir),
        },
    }
}

/// Whether a path that begins with `/` begins in the directory too; None: not known.
fn stays_inside(segment: &Loaded, row: usize) -> Option<bool> {
    let Some(how) = segment.call(row).args.iter().position(|arg| matches!(arg.kind, ArgKind::OpenHow { .. })) else {
        return Some(false);
    };
    let value = segment.captured(row).iter().find(|value| usize::from(value.arg) == how && value.status.has_bytes())?;
    let resolve = value.bytes.get(RESOLVE)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*resolve) & RESOLVE_IN_ROOT != 0)
}

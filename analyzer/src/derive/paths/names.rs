//! What a call is on, as far as its row tells: a path, what a descriptor stood for, or a name in the current directory.

use std::borrow::Cow;

use systape_abi::{AT_FDCWD, ArgKind};
use systape_format::model::{ByteStatus, CallState};

use super::join;
use crate::table::call_files::EBADF;
use crate::table::load::{FdPath, Loaded};

/// `resolve` of `struct open_how`: paths do not leave the directory they begin in, also those that begin with `/`.
const RESOLVE_IN_ROOT: u64 = 0x10;
/// Where it is in that struct.
const RESOLVE: std::ops::Range<usize> = 16..24;

/// What an argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// The path, or `socket:[17]` and the like.
    Known(Cow<'a, [u8]>),
    /// A path in the current directory of the process.
    InCwd(&'a [u8]),
    /// Not known.
    Unknown,
}

/// Something that a call is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use<'a> {
    /// Which argument.
    pub arg: usize,
    /// What it names.
    pub name: Name<'a>,
    /// The path as the program gave it; None: it is a descriptor, or what was given is not on the tape.
    pub given: Option<&'a [u8]>,
    /// `given` is only its beginning.
    pub cut: bool,
}

/// What the call of `row` is on: its paths and its descriptors. A descriptor that paths are relative to is none of them.
pub(crate) fn uses<'a>(segment: &'a Loaded, row: usize) -> impl Iterator<Item = Use<'a>> {
    let info = segment.call(row);
    (0..info.args.len()).filter_map(move |at| match info.args[at].kind {
        ArgKind::Path => path(segment, row, at),
        ArgKind::Fd => {
            let name = descriptor(segment, row, at)?;
            Some(Use { arg: at, name, given: None, cut: false })
        }
        // a handle of a file says no name
        ArgKind::DirFd if at == 0 && info.name == "open_by_handle_at" => {
            Some(Use { arg: at, name: Name::Unknown, given: None, cut: false })
        }
        _ => None,
    })
}

/// What the descriptor stood for; None: it is none.
fn descriptor(segment: &Loaded, row: usize, at: usize) -> Option<Name<'_>> {
    match segment.fd_path(row, at) {
        FdPath::None => None,
        FdPath::Unknown => Some(Name::Unknown),
        FdPath::Known(name) => Some(Name::Known(name.into())),
    }
}

/// What the path in argument `at` names; None: it is a null pointer, or relative to a descriptor that is not open.
fn path(segment: &Loaded, row: usize, at: usize) -> Option<Use<'_>> {
    if is_nowhere(segment, row, at) {
        return None;
    }
    let value = segment.captured(row).iter().find(|value| usize::from(value.arg) == at);
    let text = value.filter(|value| value.status.has_bytes() && value.status != ByteStatus::Redacted);
    let given = text.map(|value| value.bytes.as_slice());
    let cut = text.is_some_and(|value| !value.status.is_whole());
    let whole = given.filter(|_| !cut);
    let name = whole.and_then(|text| named(segment, row, at, text)).unwrap_or(Name::Unknown);
    let known = segment.core.state[row] != CallState::LostEnter;
    let null = known && segment.args.args.get(row).is_some_and(|args| args.get(at) == Some(&0));
    if !null || given.is_some() {
        return Some(Use { arg: at, name, given, cut });
    }
    // utimensat(fd, NULL) is on the descriptor, statx(AT_FDCWD, NULL) on the directory, if it does not fail for that
    dir(segment, row, at)?;
    let name = base(segment, row, at).unwrap_or(Name::Unknown);
    let absent = matches!(name, Name::InCwd(_)) && segment.core.errno[row] != 0;
    (!absent).then_some(Use { arg: at, name, given, cut })
}

/// The file that `text` names; None = it is not known.
fn named<'a>(segment: &'a Loaded, row: usize, at: usize, text: &'a [u8]) -> Option<Name<'a>> {
    if text.is_empty() {
        // AT_EMPTY_PATH: the directory itself; without it the call fails
        return if segment.core.errno[row] == 0 { base(segment, row, at) } else { None };
    }
    let inside = stays_inside(segment, row)?;
    let text = if inside { text.strip_prefix(b"/").unwrap_or(text) } else { text };
    if text.starts_with(b"/") {
        return Some(Name::Known(text.into()));
    }
    match base(segment, row, at)? {
        Name::Known(base) => join(&base, text).map(|path| Name::Known(path.into())),
        Name::InCwd(_) => Some(Name::InCwd(text)),
        Name::Unknown => None,
    }
}

/// Whether the call failed because the descriptor that its path is relative to is not open.
fn is_nowhere(segment: &Loaded, row: usize, at: usize) -> bool {
    let Some(dir) = dir(segment, row, at).filter(|_| segment.core.errno[row] == EBADF) else { return false };
    let value = segment.args.args.get(row).and_then(|args| args.get(dir));
    value.is_some_and(|fd| *fd as i32 != AT_FDCWD) && segment.fd_path(row, dir) == FdPath::None
}

/// The argument with the descriptor that the path in argument `at` is relative to; None: there is none.
fn dir(segment: &Loaded, row: usize, at: usize) -> Option<usize> {
    let args = &segment.call(row).args;
    (0..at).rev().find(|at| matches!(args[*at].kind, ArgKind::DirFd))
}

/// The directory that the path in argument `at` is relative to.
fn base(segment: &Loaded, row: usize, at: usize) -> Option<Name<'_>> {
    match dir(segment, row, at) {
        None => Some(Name::InCwd(b".")),
        Some(dir) => match *segment.args.args.get(row)?.get(dir)? as i32 {
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

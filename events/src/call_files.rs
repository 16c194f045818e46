//! Files of calls: the path argument as the program named it, else the file of the first descriptor.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::ArgKind;
use systape_format::model::{CallState, Core, FD_FIRST, FD_NONE};
use systape_format::reader::Segment;

use crate::calls::{CallInfo, EBADF};
use crate::empty_path::{self, EmptyPathTarget, Given};
use crate::load::{FdPath, Loaded};

/// The number of a call without a file.
pub const NO_FILE: u32 = 0;
/// The number of an unknown file. Numbers from [`FD_FIRST`] on are indices of names.
pub const UNKNOWN_FILE: u32 = 1;

/// The file of each row: its path argument, else the file of its first descriptor; of an empty path what that stands for. Known ones
/// are added to `names`. If a block cannot be read they stay unknown, and the tape's misses list it.
pub fn of_rows(segment: &Segment<'_>, core: &Core, infos: &[Arc<CallInfo>], names: &mut Vec<Vec<u8>>) -> Vec<u32> {
    let mut fds = segment.fds(core).unwrap_or_default();
    let captured = segment.captured(core).unwrap_or_default();
    *names = std::mem::take(&mut fds.names);
    let paths: Vec<Option<usize>> = infos.iter().map(|info| path_argument(info)).collect();
    let mut of_row: Vec<u32> = (0..core.call.len())
        .map(|row| {
            let call = core.call[row] as usize;
            match paths[call] {
                Some(_) => NOT_SEEN,
                None if unseen(&infos[call]) == NO_FILE => NO_FILE,
                None => of_descriptor(fds.fd.get(row), core.errno.get(row)),
            }
        })
        .collect();
    let mut numbers = PathNumbers { names, numbers: FxHashMap::default() };
    let mut empty = Vec::new();
    for value in captured {
        let row = value.row as usize;
        let Some(path) = core.call.get(row).map(|call| paths[*call as usize]) else { continue };
        if path != Some(usize::from(value.arg)) {
            continue;
        }
        of_row[row] = if !value.status.has_bytes() {
            UNKNOWN_FILE
        } else if !value.bytes.is_empty() {
            numbers.of(value.bytes)
        } else {
            if value.status.is_whole() {
                empty.push((row, Given::Empty));
            }
            UNKNOWN_FILE
        };
    }
    // of a null pointer nothing is captured
    let unseen = of_row.iter_mut().enumerate().filter(|(_, file)| **file == NOT_SEEN);
    empty.extend(unseen.map(|(row, file)| {
        *file = UNKNOWN_FILE;
        (row, Given::Null)
    }));
    if empty.is_empty() {
        return of_row;
    }
    let args = segment.args(core).unwrap_or_default();
    for (row, given) in empty {
        let info = &infos[core.call[row] as usize];
        let (Some(path), args) = (paths[core.call[row] as usize], args.of(row)) else { continue };
        // without the enter it is not known either
        let null = core.state[row] != CallState::LostEnter && args.is_some_and(|args| args[path] == 0);
        if given == Given::Null && !null {
            continue;
        }
        of_row[row] = match empty_path::on(info, path, given, args, (core.state[row], core.errno[row])) {
            EmptyPathTarget::Nothing => NO_FILE,
            EmptyPathTarget::Unknown => UNKNOWN_FILE,
            EmptyPathTarget::Base if args.is_some_and(|args| empty_path::is_cwd(info, path, args)) => {
                numbers.of(HERE.to_vec())
            }
            EmptyPathTarget::Base => {
                let dir = empty_path::dir(info, path);
                let fd = if info.fd_args[0] == dir { fds.fd.get(row) } else { fds.fd2.get(row) };
                of_descriptor(fd, core.errno.get(row))
            }
        };
    }
    of_row
}

/// The file of one row, as [`of_rows`] has it.
pub fn of_row(segment: &Loaded, row: usize) -> FdPath<'_> {
    let info = segment.call(row);
    let Some(path) = path_argument(info) else {
        return if unseen(info) == NO_FILE { FdPath::None } else { segment.fd_of_column(row, 0) };
    };
    let state = segment.core.state[row];
    let args = segment.args.of(row);
    let given = match segment.captured(row).iter().find(|value| usize::from(value.arg) == path) {
        Some(value) if !value.status.has_bytes() => return FdPath::Unknown,
        Some(value) if !value.bytes.is_empty() => return FdPath::Known(&value.bytes),
        Some(value) if value.status.is_whole() => Given::Empty,
        None if state != CallState::LostEnter && args.is_some_and(|args| args[path] == 0) => Given::Null,
        _ => return FdPath::Unknown,
    };
    match empty_path::on(info, path, given, args, (state, segment.core.errno[row])) {
        EmptyPathTarget::Nothing => FdPath::None,
        EmptyPathTarget::Unknown => FdPath::Unknown,
        EmptyPathTarget::Base if args.is_some_and(|args| empty_path::is_cwd(info, path, args)) => FdPath::Known(HERE),
        EmptyPathTarget::Base => empty_path::dir(info, path).map_or(FdPath::Unknown, |dir| segment.fd_path(row, dir)),
    }
}

/// The current directory.
const HERE: &[u8] = b".";

/// The number of a call whose path was not captured.
const NOT_SEEN: u32 = u32::MAX;

/// The file that the tape has for a descriptor, at which the call failed with `errno`.
fn of_descriptor(fd: Option<&u32>, errno: Option<&u16>) -> u32 {
    match fd {
        Some(fd) if *fd == FD_NONE => NO_FILE,
        Some(fd) if *fd >= FD_FIRST => *fd,
        // the descriptor is not open
        _ if errno == Some(&EBADF) => NO_FILE,
        _ => UNKNOWN_FILE,
    }
}

/// Numbers of the paths of a segment.
struct PathNumbers<'a> {
    names: &'a mut Vec<Vec<u8>>,
    numbers: FxHashMap<Vec<u8>, u32>,
}

impl PathNumbers<'_> {
    fn of(&mut self, path: Vec<u8>) -> u32 {
        *self.numbers.entry(path).or_insert_with_key(|bytes| {
            self.names.push(bytes.clone());
            (self.names.len() - 1) as u32 + FD_FIRST
        })
    }
}

/// The file of a call whose arguments cannot be read.
#[inline]
pub fn unseen(info: &CallInfo) -> u32 {
    if path_argument(info).is_some() || info.fd_args[0].is_some() { UNKNOWN_FILE } else { NO_FILE }
}

fn path_argument(info: &CallInfo) -> Option<usize> {
    info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path))
}

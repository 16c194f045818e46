//! Files of calls: the path argument as the program named it, else the file of the first descriptor.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::ArgKind;
use systape_format::model::{Core, FD_FIRST, FD_NONE};
use systape_format::reader::Segment;

use crate::table::calls::CallInfo;

/// The number of a call without a file.
pub(crate) const NO_FILE: u32 = 0;
/// The number of an unknown file. Numbers from [`FD_FIRST`] on are indices of names.
pub(crate) const UNKNOWN_FILE: u32 = 1;

/// The error of a call on a descriptor that is not open, or not for what was asked: it is on no file.
pub(crate) const EBADF: u16 = 9;

/// The file of each row: its path argument, else the file of its first descriptor. Known ones are added to `names`. If
/// a block cannot be read they stay unknown, and the tape's misses list it.
pub(crate) fn of_rows(
    segment: &Segment<'_>,
    core: &Core,
    infos: &[Arc<CallInfo>],
    names: &mut Vec<Vec<u8>>,
) -> Vec<u32> {
    let fds = segment.fds(core).unwrap_or_default();
    let captured = segment.captured(core).unwrap_or_default();
    let mut of_row: Vec<u32> = (0..core.call.len())
        .map(|row| {
            let info = &infos[core.call[row] as usize];
            match fds.fd.get(row) {
                _ if unseen(info) == NO_FILE || path_argument(info).is_some() => unseen(info),
                Some(fd) if *fd == FD_NONE => NO_FILE,
                Some(fd) if *fd >= FD_FIRST => *fd,
                // the descriptor is not open
                _ if core.errno.get(row) == Some(&EBADF) => NO_FILE,
                _ => UNKNOWN_FILE,
            }
        })
        .collect();
    *names = fds.names;
    let mut numbers: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
    for value in captured {
        let row = value.row as usize;
        let Some(info) = core.call.get(row).map(|call| &infos[*call as usize]) else { continue };
        if path_argument(info) != Some(usize::from(value.arg)) || !value.status.has_bytes() {
            continue;
        }
        of_row[row] = *numbers.entry(value.bytes).or_insert_with_key(|bytes| {
            names.push(bytes.clone());
            (names.len() - 1) as u32 + FD_FIRST
        });
    }
    of_row
}

/// The file of a call whose arguments cannot be read.
pub(crate) fn unseen(info: &CallInfo) -> u32 {
    if path_argument(info).is_some() || info.fd_args[0].is_some() { UNKNOWN_FILE } else { NO_FILE }
}

fn path_argument(info: &CallInfo) -> Option<usize> {
    info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path))
}

//! Which calls are on the files that `-P` asks for.
//!
//! A call is on them through a path that it names or a descriptor, also one that its paths are relative to. Most rows are decided as they
//! come; those with a path in the current directory wait for it.

use std::ops::{ControlFlow, Range};

use anyhow::Result;
use systape_abi::ArgKind;
use systape_format::model::CallState;

use super::feed::{Reader, Told, Waiting, feed};
use super::join;
use super::names::{Name, uses};
use crate::table::calls::CallInfo;
use crate::table::filter::Filters;
use crate::table::load::{FdPath, Loaded};
use crate::table::picked::{self, Is, Picked};
use crate::table::question::Question;

/// What stands for a path that was taken out of the tape.
const REDACTED: &[u8] = b"<redacted";

/// Whether a call has an argument that may name a file.
pub(crate) fn may_be_on(info: &CallInfo) -> bool {
    info.args.iter().any(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Fd | ArgKind::DirFd))
}

/// Finds the calls that pass `-P`, if that was asked: from then on the question is about them alone. Those of which it is not known are
/// not among them, and are told of as missing.
///
/// # Errors
/// None of its own.
pub(crate) fn pick(question: &mut Question<'_>) -> Result<()> {
    let filters = question.scope.filters();
    if filters.paths.is_empty() {
        return Ok(());
    }
    let (mut picked, mut unknown) = (Picked::default(), 0_u64);
    let calls = Calls { question, filters };
    let coverage = feed(question, &calls, |told| {
        match told {
            Told::Sum(Found { segment, rows, unknown: more }) => {
                picked.add(segment, rows);
                unknown += more;
            }
            Told::Row(Relative { segment, row, names }, cwd) => {
                let one = |name: &Vec<u8>| match cwd.as_ref().and_then(|cwd| join(cwd, name)) {
                    Some(path) => known(filters, &path),
                    None => picked::may_name(&filters.paths, name),
                };
                match names.iter().map(one).max() {
                    Some(Is::One) => picked.add(segment, [row]),
                    Some(Is::Maybe) => unknown += 1,
                    Some(Is::Not) | None => {}
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    coverage.tell(&mut question.loss);
    picked.settle(question.loss.holes.iter().map(|hole| hole.segment));
    question.loss.unplaced = unknown;
    question.scope.pick(picked);
    Ok(())
}

/// Whether a path that is known is one of those asked for.
fn known(filters: &Filters, path: &[u8]) -> Is {
    match picked::names(&filters.paths, path) {
        true => Is::One,
        false if path.starts_with(REDACTED) => Is::Maybe,
        false => Is::Not,
    }
}

struct Calls<'a, 't> {
    question: &'a Question<'t>,
    filters: &'a Filters,
}

/// What was found in a segment.
#[derive(Debug, Default)]
struct Found {
    segment: u32,
    rows: Vec<u32>,
    /// Calls of which it is not known whether they pass.
    unknown: u64,
}

/// A call on something in the current directory.
#[derive(Debug)]
struct Relative {
    segment: u32,
    row: u32,
    names: Vec<Vec<u8>>,
}

impl Reader for Calls<'_, '_> {
    type Sum = Found;
    type Row = Relative;

    fn wants(&self, segment: usize) -> bool {
        self.question.scope.may_match(&self.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Relative>>) -> Found {
        let filter = self.question.scope.segment(&segment.dict, segment.number);
        let on: Vec<bool> = segment.calls.iter().map(|info| may_be_on(info)).collect();
        let mut found = Found { segment: segment.number, ..Found::default() };
        for row in range {
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            if !passes || !on[segment.core.call[row] as usize] {
                continue;
            }
            let mut names = Vec::new();
            match self.row(segment, row, &mut names) {
                Is::One => found.rows.push(row as u32),
                // whatever the directory, it is not known of what else it is on
                Is::Maybe => found.unknown += u64::from(segment.core.state[row] != CallState::CloneChild),
                Is::Not if names.is_empty() => {}
                Is::Not => {
                    waiting.push(Waiting { row, what: Relative { segment: segment.number, row: row as u32, names } })
                }
            }
        }
        found
    }
}

impl Calls<'_, '_> {
    /// Whether the call of `row` is on a file that is asked for, as far as its row tells; `names` get those in the current directory.
    fn row(&self, segment: &Loaded, row: usize, names: &mut Vec<Vec<u8>>) -> Is {
        let mut is = Is::Not;
        for on in uses(segment, row) {
            is = is.max(match on.name {
                Name::Known(path) => known(self.filters, &path),
                Name::Unknown => Is::Maybe,
                Name::InCwd(name) => {
                    names.push(name.to_vec());
                    picked_if_sure(&self.filters.paths, name)
                }
            });
        }
        // a descriptor of a directory that paths are relative to
        let args = segment.call(row).args.iter().enumerate();
        for (at, _) in args.filter(|(_, arg)| matches!(arg.kind, ArgKind::DirFd)) {
            let value = segment.args.args.get(row).and_then(|args| args.get(at));
            is = is.max(match segment.fd_path(row, at) {
                FdPath::None => Is::Not,
                FdPath::Unknown if value.is_some_and(|fd| *fd as i32 == systape_abi::AT_FDCWD) => Is::Not,
                FdPath::Unknown => Is::Maybe,
                FdPath::Known(path) => known(self.filters, path),
            });
        }
        is
    }
}

/// What is sure whatever the directory is; else the name waits for it.
fn picked_if_sure(patterns: &[String], name: &[u8]) -> Is {
    if picked::may_name(patterns, name) == Is::One { Is::One } else { Is::Not }
}

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
    if !filters.by_path() {
        return Ok(());
    }
    let all_but = filters.paths.is_empty();
    let (mut picked, mut unknown) = (Picked::default(), 0_u64);
    picked.all_but = all_but;
    let calls = Calls { question, filters };
    let coverage = feed(question, &calls, |told| {
        match told {
            Told::Sum(Found { segment, rows, unknown: more }) => {
                picked.add(segment, rows);
                unknown += more;
            }
            Told::Row(Relative { segment, row, mut on, names }, cwd) => {
                for name in &names {
                    on.add(match cwd.as_ref().and_then(|cwd| join(cwd, name)) {
                        Some(path) => On::known(filters, &path),
                        None => On::of(filters, |patterns| picked::may_name(patterns, name)),
                    });
                }
                let passes = on.passes(filters);
                unknown += u64::from(passes == Is::Maybe);
                if (passes == Is::One) != all_but {
                    picked.add(segment, [row]);
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

/// Whether something done on `file` passes `-P`; None: what file is not known.
pub(crate) fn named(filters: &Filters, file: Option<&[u8]>) -> Is {
    file.map_or(On::UNKNOWN, |file| On::known(filters, file)).passes(filters)
}

/// Whether a call is on a file asked for, and on one that is left out.
#[derive(Clone, Copy, Debug)]
struct On {
    asked: Is,
    left_out: Is,
}

impl On {
    const NOTHING: Self = Self { asked: Is::Not, left_out: Is::Not };
    const UNKNOWN: Self = Self { asked: Is::Maybe, left_out: Is::Maybe };

    /// What `one` says of the patterns asked for, and of those left out.
    fn of(filters: &Filters, one: impl Fn(&[String]) -> Is) -> Self {
        Self { asked: one(&filters.paths), left_out: one(&filters.not_paths) }
    }

    /// Of a path that is known.
    fn known(filters: &Filters, path: &[u8]) -> Self {
        Self::of(filters, |patterns| match picked::names(patterns, path) {
            true => Is::One,
            false if path.starts_with(REDACTED) => Is::Maybe,
            false => Is::Not,
        })
    }

    /// It is on something else too.
    fn add(&mut self, other: Self) {
        (self.asked, self.left_out) = (self.asked.max(other.asked), self.left_out.max(other.left_out));
    }

    /// Whether it passes; one that is on nothing passes if only files to leave out are named.
    fn passes(self, filters: &Filters) -> Is {
        let asked = if filters.paths.is_empty() { Is::One } else { self.asked };
        let left = if filters.not_paths.is_empty() { Is::Not } else { self.left_out };
        match (asked, left) {
            (Is::Not, _) | (_, Is::One) => Is::Not,
            (Is::One, Is::Not) => Is::One,
            _ => Is::Maybe,
        }
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
    /// What it is on elsewhere.
    on: On,
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
            let on = self.row(segment, row, &mut names);
            // whatever the directory is
            let sure = match on.passes(self.filters) {
                Is::One => self.filters.not_paths.is_empty(),
                _ => on.left_out == Is::One && !self.filters.not_paths.is_empty(),
            };
            if !names.is_empty() && !sure {
                waiting.push(Waiting { row, what: Relative { segment: segment.number, row: row as u32, on, names } });
                continue;
            }
            let passes = on.passes(self.filters);
            let counts = passes == Is::Maybe && segment.core.state[row] != CallState::CloneChild;
            found.unknown += u64::from(counts);
            if (passes == Is::One) != self.filters.paths.is_empty() {
                found.rows.push(row as u32);
            }
        }
        found
    }
}

impl Calls<'_, '_> {
    /// Whether the call of `row` is on a file that is asked for, as far as its row tells; `names` get those in the current directory.
    fn row(&self, segment: &Loaded, row: usize, names: &mut Vec<Vec<u8>>) -> On {
        let mut is = On::NOTHING;
        for on in uses(segment, row) {
            is.add(on.opened.map_or(On::NOTHING, |file| On::known(self.filters, file)));
            is.add(match on.name {
                Name::Known(path) => On::known(self.filters, &path),
                Name::Unknown => On::UNKNOWN,
                Name::Nothing => On::NOTHING,
                Name::InCwd(name) => {
                    names.push(name.to_vec());
                    On::of(self.filters, |patterns| picked_if_sure(patterns, name))
                }
            });
        }
        // a descriptor of a directory that paths are relative to
        let args = segment.call(row).args.iter().enumerate();
        for (at, _) in args.filter(|(_, arg)| matches!(arg.kind, ArgKind::DirFd)) {
            let value = segment.args.args.get(row).and_then(|args| args.get(at));
            is.add(match segment.fd_path(row, at) {
                FdPath::None => On::NOTHING,
                FdPath::Unknown if value.is_some_and(|fd| *fd as i32 == systape_abi::AT_FDCWD) => On::NOTHING,
                FdPath::Unknown => On::UNKNOWN,
                FdPath::Known(path) => On::known(self.filters, path),
            });
        }
        is
    }
}

/// What is sure whatever the directory is; else the name waits for it.
fn picked_if_sure(patterns: &[String], name: &[u8]) -> Is {
    if picked::may_name(patterns, name) == Is::One { Is::One } else { Is::Not }
}

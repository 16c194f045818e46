//! Which calls are on the files that `-P` asks for.
//!
//! A call is on them through a path that it names or a descriptor, also one that its paths are relative to. Most rows are decided as they
//! come; those with a path in the current directory wait for it. So do calls that remove, rename and link: they are also on what their
//! files were called before, and on all other names of the same file.

use std::ops::{ControlFlow, Range};

use anyhow::Result;
use systape_abi::ArgKind;
use systape_format::model::CallState;

use super::aliases::{Aliases, Change};
use super::feed::{Reader, Told, Waiting, feed};
use super::join;
use super::names::{Name, Use, uses};
use crate::derive::identities::Identities;
use systape_events::calls::CallInfo;
use systape_events::filter::Filters;
use systape_events::load::{FdPath, Loaded};
use systape_events::picked::{self, Is, Picked};
use systape_events::question::Question;

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
pub fn pick(question: &mut Question<'_>) -> Result<()> {
    let filters = question.scope.filters();
    if !filters.by_path() {
        return Ok(());
    }
    let all_but = filters.paths.is_empty();
    let (mut picked, mut unknown) = (Picked::default(), 0_u64);
    picked.all_but = all_but;
    let calls = Calls { question, filters };
    let (identities, damaged) = Identities::read(question.tape, |path| {
        let on = OnFile::known(filters, path);
        on.asked == Is::One || on.left_out == Is::One || ends_alike(&filters.paths, path)
    });
    let mut aliases = Aliases::default();
    let mut perhaps = 0_u64;
    let coverage = feed(question, &calls, |told| {
        match told {
            Told::Sum(Found { segment, rows, unknown: more }) => {
                picked.add(segment, rows);
                unknown += more;
            }
            Told::Row(RelativePath { segment, row, mut on, names, renames }, cwd) => {
                for name in &names {
                    on.add(match cwd.as_ref().and_then(|cwd| join(cwd, name)) {
                        Some(path) => OnFile::known(filters, &path),
                        None => OnFile::of(filters, |patterns| picked::may_name(patterns, name)),
                    });
                }
                if let Some(renames) = renames {
                    let files = renames.whole(cwd.as_deref());
                    let is_sure = on.passes(filters) == Is::One && filters.not_paths.is_empty();
                    for file in files.iter().flatten().filter(|_| renames.wanted && !is_sure) {
                        on.add(called(filters, file, renames.end, &aliases, &identities));
                    }
                    let seen = |file: &Option<Vec<u8>>| {
                        file.as_ref().is_some_and(|file| identities.at(file, renames.end).is_some())
                    };
                    let unsure = renames.files.iter().zip(&files);
                    let unsure = unsure.filter(|(file, whole)| !file.is_kernels && !seen(whole));
                    let may_be = |file: &Named| ends_alike(&filters.paths, &file.path);
                    let may_be = unsure.filter(|(file, _)| may_be(file)).count() > 0;
                    perhaps += u64::from(renames.wanted && may_be && on.passes(filters) == Is::Not);
                    if let (true, [Some(first), rest @ ..]) = (renames.done, &files[..]) {
                        let second = rest.first().and_then(Option::as_deref);
                        let kept = aliases.changed(renames.change, first, second, |path| may_lead(filters, path));
                        perhaps += u64::from(!kept);
                    }
                    if !renames.wanted {
                        return Ok(ControlFlow::Continue(()));
                    }
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
    damaged.tell(&mut question.loss);
    picked.settle(question.loss.holes.iter().map(|hole| hole.segment));
    question.loss.unplaced = unknown;
    question.loss.aliases = perhaps;
    question.scope.pick(picked);
    Ok(())
}

/// Whether something done on `file` passes `-P`; None: what file is not known.
pub fn named(filters: &Filters, file: Option<&[u8]>) -> Is {
    file.map_or(OnFile::UNKNOWN, |file| OnFile::known(filters, file)).passes(filters)
}

/// Whether a call is on a file asked for, and on one that is left out.
#[derive(Clone, Copy, Debug)]
struct OnFile {
    asked: Is,
    left_out: Is,
}

impl OnFile {
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

/// What a file that is called `path` at `ts` is or was called besides.
fn called(filters: &Filters, path: &[u8], ts: u64, aliases: &Aliases, identities: &Identities) -> OnFile {
    let mut on = OnFile::NOTHING;
    let mut other = |name: &[u8]| on.add(OnFile::known(filters, name));
    aliases.before(path, &mut other);
    identities.at(path, ts).into_iter().for_each(|file| identities.names(file).for_each(&mut other));
    on
}

/// Whether something at `path`, or below it, may be called as `-P` asks.
fn may_lead(filters: &Filters, path: &[u8]) -> bool {
    let on = OnFile::known(filters, path);
    let all = || filters.paths.iter().chain(&filters.not_paths).map(|pattern| pattern.as_bytes());
    on.asked != Is::Not || on.left_out != Is::Not || all().any(|pattern| is_above(pattern, path))
}

/// Whether `path` may be a directory above what `pattern` names.
fn is_above(pattern: &[u8], path: &[u8]) -> bool {
    let literal = pattern.split(|byte| b"*?[".contains(byte)).next().unwrap_or_default();
    if pattern.starts_with(b"/") {
        let dir = [path, b"/"].concat();
        return literal.starts_with(&dir) || (literal.len() < pattern.len() && dir.starts_with(literal));
    }
    // of one that names the last parts of a path, those before the last
    let parts = (1..pattern.len()).filter(|at| pattern[*at] == b'/').map(|at| &pattern[..at]);
    let last = |part: &[u8]| part.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let globs = pattern.contains(&b'/') && pattern.contains(&b'*');
    globs || parts.into_iter().any(|part| last(part) == last(path))
}

/// Whether `path` has the last name of one that `patterns` name: it is the same file if its directory is the same by another name.
fn ends_alike(patterns: &[String], path: &[u8]) -> bool {
    fn last(path: &[u8]) -> &[u8] {
        path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }
    let name = last(path);
    !name.is_empty() && patterns.iter().any(|pattern| last(pattern.as_bytes()) == name)
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
struct RelativePath {
    segment: u32,
    row: u32,
    /// What it is on elsewhere.
    on: OnFile,
    names: Vec<Vec<u8>>,
    renames: Option<Renames>,
}

/// What a call does to names of files.
#[derive(Debug)]
struct Renames {
    change: Change,
    /// It did not fail.
    done: bool,
    /// It passes the other filters.
    wanted: bool,
    /// When it ended.
    end: u64,
    files: Vec<Named>,
}

/// A name of a file in such a call.
#[derive(Debug)]
struct Named {
    /// Perhaps in the current directory; empty: not known.
    path: Vec<u8>,
    /// The kernel's: without symbolic links.
    is_kernels: bool,
}

impl Renames {
    /// What the call of `row` does; None: nothing.
    fn of(segment: &Loaded, row: usize, wanted: bool) -> Option<Self> {
        let change = Change::of(segment, row)?;
        let named = |on: Use<'_>| match (on.opened, on.name) {
            (Some(kernels), _) => Named { path: kernels.to_vec(), is_kernels: true },
            (None, Name::Known(path)) => Named { path: path.into_owned(), is_kernels: false },
            (None, Name::InCwd(path)) => Named { path: path.to_vec(), is_kernels: false },
            (None, Name::Unknown | Name::Nothing) => Named { path: Vec::new(), is_kernels: false },
        };
        let end = segment.time.start[row].saturating_add(segment.core.dur[row]);
        let files = uses(segment, row).map(named).collect();
        Some(Self { change, done: Change::is_done(segment, row), wanted, end, files })
    }

    /// The whole paths; None: not known.
    fn whole(&self, cwd: Option<&[u8]>) -> Vec<Option<Vec<u8>>> {
        let whole = |file: &Named| match &file.path[..] {
            [] => None,
            [b'/', ..] => Some(file.path.clone()),
            path => cwd.and_then(|cwd| join(cwd, path)),
        };
        self.files.iter().map(whole).collect()
    }
}

impl Reader for Calls<'_, '_> {
    type Sum = Found;
    type Row = RelativePath;

    fn wants(&self, segment: usize) -> bool {
        self.question.scope.may_match(&self.question.tape.segments()[segment])
    }

    fn needs(&self, call: &CallInfo) -> bool {
        Change::of_name(&call.name).is_some()
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<RelativePath>>) -> Found {
        let filter = self.question.scope.segment(&segment.dict, segment.number);
        let on: Vec<bool> = segment.calls.iter().map(|info| may_be_on(info)).collect();
        let renames: Vec<bool> = segment.calls.iter().map(|info| self.needs(info)).collect();
        let mut found = Found { segment: segment.number, ..Found::default() };
        for row in range {
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            let call = segment.core.call[row] as usize;
            if !on[call] || !(passes || renames[call]) {
                continue;
            }
            let mut names = Vec::new();
            let on = self.row(segment, row, &mut names);
            if let Some(renames) = renames[call].then(|| Renames::of(segment, row, passes)).flatten() {
                let what = RelativePath { segment: segment.number, row: row as u32, on, names, renames: Some(renames) };
                waiting.push(Waiting { row, what });
                continue;
            }
            // whatever the directory is
            let sure = match on.passes(self.filters) {
                Is::One => self.filters.not_paths.is_empty(),
                _ => on.left_out == Is::One && !self.filters.not_paths.is_empty(),
            };
            if !names.is_empty() && !sure {
                let what = RelativePath { segment: segment.number, row: row as u32, on, names, renames: None };
                waiting.push(Waiting { row, what });
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
    fn row(&self, segment: &Loaded, row: usize, names: &mut Vec<Vec<u8>>) -> OnFile {
        let mut is = OnFile::NOTHING;
        for on in uses(segment, row) {
            is.add(on.opened.map_or(OnFile::NOTHING, |file| OnFile::known(self.filters, file)));
            is.add(match on.name {
                Name::Known(path) => OnFile::known(self.filters, &path),
                Name::Unknown => OnFile::UNKNOWN,
                Name::Nothing => OnFile::NOTHING,
                Name::InCwd(name) => {
                    names.push(name.to_vec());
                    OnFile::of(self.filters, |patterns| picked_if_sure(patterns, name))
                }
            });
        }
        // a descriptor of a directory that paths are relative to
        let args = segment.call(row).args.iter().enumerate();
        for (at, _) in args.filter(|(_, arg)| matches!(arg.kind, ArgKind::DirFd)) {
            let value = segment.args.of(row).and_then(|args| args.get(at));
            is.add(match segment.fd_path(row, at) {
                FdPath::None => OnFile::NOTHING,
                FdPath::Unknown if value.is_some_and(|fd| *fd as i32 == systape_abi::AT_FDCWD) => OnFile::NOTHING,
                FdPath::Unknown => OnFile::UNKNOWN,
                FdPath::Known(path) => OnFile::known(self.filters, path),
            });
        }
        is
    }
}

/// What is sure whatever the directory is; else the name waits for it.
fn picked_if_sure(patterns: &[String], name: &[u8]) -> Is {
    if picked::may_name(patterns, name) == Is::One { Is::One } else { Is::Not }
}

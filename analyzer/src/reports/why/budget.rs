//! What the subject's time went to: every nanosecond of it once, by what its threads did and then by the state they were in.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::reports::traced::Found;
use crate::reports::traced::cause::Cause;
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::runs::keys::{Place, Words};
use systape_events::call_files::NO_FILE;
use systape_events::values::num::grouped;
use systape_events::values::words::{escaped, span};

/// Threads of one name in one call on one file, or in their own code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    comm: Vec<u8>,
    place: Place,
    file: u32,
}

/// A state, and the name of the other thread that it is about: who had the CPU, who woke it and is not recorded.
type InState = (Cause, Vec<u8>);

/// Functions by name of threads: those in which samples of their own code were most often, each with its share: `hot_loop 95%`.
pub(super) type Hottest = FxHashMap<Vec<u8>, Vec<String>>;

/// A line of the first level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Name of the threads.
    pub comm: Vec<u8>,
    /// The call that they were in: `[user]`, `[kernel]`, `?` as in `states`.
    pub call: String,
    /// Words for it: `its own code`, `fsync of /data/wal`.
    pub doing: String,
    /// File of the line; None: none, or not known.
    pub file: Option<Vec<u8>>,
    /// Time of the line, ns.
    pub ns: u64,
    /// The lines of the second level, most first: a state, the other thread's name, time in ns. Together they are `ns`.
    pub states: Vec<(Cause, Vec<u8>, u64)>,
    /// Where it was on a CPU, of own code: `hot_loop 95%`, `page faults ~60%`; empty: not known.
    pub functions: Vec<String>,
}

/// The budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    /// Lines of the budget, most first. Together they are the subject's time.
    pub lines: Vec<Line>,
    /// The subject's time, ns.
    pub total: u64,
}

impl Budget {
    /// Makes the budget of the parts of a critical path.
    pub(super) fn of(found: &[Found], threads: &[Logged], words: &Words<'_>) -> Self {
        let name = |id: Id, ts: u64| {
            let task = threads.get(id as usize).and_then(|thread| thread.task_at(ts));
            task.map_or_else(Vec::new, |task| task.comm.clone())
        };
        let mut sums = Sums::default();
        for found in found {
            let part = &found.part;
            let comm = name(part.thread, part.from);
            let other = found.other().map_or_else(Vec::new, |id| name(id, part.from));
            for (place, file, ns) in doings(found) {
                let of = sums.entry(Key { comm: comm.clone(), place, file }).or_default();
                *of.entry((found.cause, other.clone())).or_default() += ns;
            }
        }
        let (sums, together) = joined(sums, words);
        let mut lines: Vec<Line> = sums
            .into_iter()
            .map(|(key, states)| {
                let mut states: Vec<(Cause, Vec<u8>, u64)> =
                    states.into_iter().map(|((cause, other), ns)| (cause, other, ns)).collect();
                states.sort_by(|a, b| (Reverse(a.2), a.0, &a.1).cmp(&(Reverse(b.2), b.0, &b.1)));
                let ns = states.iter().fold(0, |sum, (.., ns)| sum + ns);
                let (file, doing) = match together.get(&key) {
                    Some(together) => together.words(key.place, words),
                    None => {
                        let file = words.names.name(key.file).map(<[u8]>::to_vec);
                        let doing = doing(key.place, file.as_deref(), words);
                        (file, doing)
                    }
                };
                let call = words.place(key.place);
                Line { call, doing, file, comm: key.comm, ns, states, functions: Vec::new() }
            })
            .collect();
        lines.sort_by(|a, b| (Reverse(a.ns), &a.comm, &a.doing).cmp(&(Reverse(b.ns), &b.comm, &b.doing)));
        let total = lines.iter().fold(0, |sum, line| sum + line.ns);
        Self { lines, total }
    }

    /// Says where own code was on a CPU.
    pub(super) fn name(&mut self, hottest: &Hottest) {
        for line in self.lines.iter_mut().filter(|line| line.call == USER) {
            line.functions = hottest.get(&line.comm).cloned().unwrap_or_default();
        }
    }

    /// Says that `part` of `whole` of the time on a CPU of these threads' own code is that of page faults.
    pub(super) fn faults(&mut self, comm: &[u8], part: u64, whole: u64) {
        for line in self.lines.iter_mut().filter(|line| line.call == USER && line.comm == comm) {
            let percent = 100.0 * part as f64 / whole.max(1) as f64;
            line.functions.push(format!("page faults ~{percent:.0}%"));
        }
    }
}

/// Own code as [`Words::place`] calls it.
const USER: &str = "[user]";

/// A part of the whole that is worth a line of its own: a fiftieth.
const WORTH: u64 = 50;
/// Fewer files stay apart.
const FILES: usize = 3;

/// Of the time of what is joined, in percent, that a directory must hold to be named instead of the one above it.
const MOST: u64 = 90;

/// Files of one directory that are joined, at any depth.
#[derive(Debug, Default, PartialEq, Eq)]
struct JoinedFiles {
    files: usize,
    /// Empty: the root directory.
    dir: Vec<u8>,
}

impl JoinedFiles {
    /// The deepest directory that holds most of the time of `files`, and how many of these are in it.
    fn of(files: &[(&[u8], u64)]) -> Self {
        let total = files.iter().map(|(_, ns)| ns).sum::<u64>();
        let mut dir: Vec<u8> = Vec::new();
        let inside = |dir: &[u8], path: &[u8]| path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"));
        loop {
            let mut below: FxHashMap<&[u8], u64> = FxHashMap::default();
            for (path, ns) in files.iter().filter(|(path, _)| inside(&dir, path)) {
                let rest = &path[dir.len() + 1..];
                if let Some(end) = rest.iter().position(|byte| *byte == b'/') {
                    *below.entry(&path[..dir.len() + 1 + end]).or_default() += ns;
                }
            }
            let deeper =
                below.into_iter().find(|(_, ns)| *ns > 0 && *ns >= total / 100 * MOST).map(|(path, _)| path.to_vec());
            match deeper {
                Some(deeper) => dir = deeper,
                None => break,
            }
        }
        Self { files: files.iter().filter(|(path, _)| inside(&dir, path)).count(), dir }
    }

    fn holds(&self, path: &[u8]) -> bool {
        path.strip_prefix(&self.dir[..]).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// `/etc/*`, and `read of 1,200 files in /etc`.
    fn words(&self, place: Place, words: &Words<'_>) -> (Option<Vec<u8>>, String) {
        let dir = &self.dir;
        let within = if dir.is_empty() { "/".to_owned() } else { escaped(dir) };
        let doing = format!("{} of {} files in {within}", doing(place, None, words), grouped(self.files as u64));
        (Some([&dir[..], b"/*"].concat()), doing)
    }
}

type Sums = FxHashMap<Key, FxHashMap<InState, u64>>;

/// Makes one of the calls of one kind on several files, none of which is worth a line of its own; with what is joined.
fn joined(sums: Sums, words: &Words<'_>) -> (Sums, FxHashMap<Key, JoinedFiles>) {
    let ns = |states: &FxHashMap<InState, u64>| states.values().sum::<u64>();
    let total = sums.values().map(ns).sum::<u64>();
    let path = |key: &Key| words.names.name(key.file).filter(|name| name.starts_with(b"/"));
    let small = |key: &Key, states: &FxHashMap<InState, u64>| path(key).is_some() && ns(states) < total / WORTH;
    let mut files: FxHashMap<Key, Vec<(&[u8], u64)>> = FxHashMap::default();
    for (key, states) in sums.iter().filter(|(key, states)| small(key, states)) {
        let all = Key { file: SEVERAL, ..key.clone() };
        files.entry(all).or_default().push((path(key).unwrap_or_default(), ns(states)));
    }
    let together = files.into_iter().map(|(all, files)| (all, JoinedFiles::of(&files)));
    let together: FxHashMap<Key, JoinedFiles> = together.filter(|(_, together)| together.files >= FILES).collect();
    let mut joined = Sums::default();
    for (key, states) in sums {
        let all = Key { file: SEVERAL, ..key.clone() };
        let holds = |together: &JoinedFiles| path(&key).is_some_and(|path| together.holds(path));
        let key = if small(&key, &states) && together.get(&all).is_some_and(holds) { all } else { key };
        let of = joined.entry(key).or_default();
        states.into_iter().for_each(|(state, ns)| *of.entry(state).or_default() += ns);
    }
    (joined, together)
}

/// The file's number of several that are joined.
const SEVERAL: u32 = u32::MAX - 1;

/// `fsync of /data/wal`.
fn doing(place: Place, file: Option<&[u8]>, words: &Words<'_>) -> String {
    let what = match place {
        Place::User => "its own code".to_owned(),
        Place::Kernel => "work of the kernel".to_owned(),
        Place::Unknown | Place::Any => "not known in what".to_owned(),
        Place::Call(_) => words.place(place),
    };
    file.map_or(what.clone(), |file| format!("{what} of {}", escaped(file)))
}

/// What a part's thread did in it: together the part's time. A sleep is in one call, that of most of it.
fn doings(found: &Found) -> Vec<(Place, u32, u64)> {
    let whole = found.ns();
    if !matches!(found.cause, Cause::Cpu | Cause::Runqueue | Cause::Throttled) {
        let most = found.spent.most();
        return vec![(most.map_or(Place::Unknown, |of| of.place), most.map_or(NO_FILE, |of| of.file), whole)];
    }
    let mut doings: Vec<(Place, u32, u64)> = found.spent.calls.iter().map(|of| (of.place, of.file, of.ns)).collect();
    let known = doings.iter().fold(0, |sum, (.., ns)| sum + ns);
    if known < whole {
        doings.push((Place::Unknown, NO_FILE, whole - known));
    }
    doings
}

impl Line {
    /// `db: fsync of /data/wal: 1.53 s waiting for a CPU (make had it), 80.1 ms for a disk`.
    pub(super) fn text(&self) -> String {
        self.sentence("")
    }

    /// Text with the functions: `db: its own code: 1.53 s on a CPU (in parse 80%)`.
    pub(super) fn text_with_functions(&self) -> String {
        let functions = self.functions.join(", ");
        self.sentence(&if functions.is_empty() { functions } else { format!(" (in {functions})") })
    }

    fn sentence(&self, functions: &str) -> String {
        format!("{}: {}: {}", escaped(&self.comm), self.doing, self.states(functions))
    }

    /// `1.53 s waiting for a CPU (make ran), 80.1 ms for a disk`: states of less than a twentieth are left out, but for the first.
    fn states(&self, functions: &str) -> String {
        let worth = self.states.iter().enumerate().filter(|(at, (.., ns))| *at == 0 || *ns >= self.ns / 20);
        let texts = worth.take(4).map(|(_, (cause, other, ns))| {
            let functions = if *cause == Cause::Cpu { functions } else { "" };
            format!("{} {}{functions}", span(*ns), state(*cause, other))
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// A state in words.
pub(super) fn state(cause: Cause, other: &[u8]) -> String {
    let text = match cause {
        Cause::Cpu => "on a CPU",
        Cause::Runqueue => "waiting for a CPU",
        Cause::Throttled => "throttled, its CPU quota used up",
        Cause::Sleep => "asleep on purpose",
        Cause::Timeout => "until its time-out",
        Cause::Disk => "for a disk",
        Cause::Network => "for a packet",
        Cause::Interrupt => "for a timer or device",
        Cause::Blocked => "still waiting at the end",
        Cause::Stopped => "stopped",
        Cause::Dead => "ended, not yet collected by its parent",
        Cause::NotRecorded => "for a thread that is not recorded",
        Cause::TooDeep => "for a thread that is not followed",
        Cause::Held => "what it wrote was held back",
        Cause::Unknown => "not known",
    };
    match (cause, other) {
        (_, b"") => text.to_owned(),
        (Cause::Runqueue, other) => format!("{text} ({} had it)", escaped(other)),
        (_, other) => format!("{text} ({})", escaped(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_directory_that_holds_most_of_their_time() {
        let of = |files: &[(&str, u64)]| {
            let files: Vec<(&[u8], u64)> = files.iter().map(|(path, ns)| (path.as_bytes(), *ns)).collect();
            let JoinedFiles { files, dir } = JoinedFiles::of(&files);
            (files, String::from_utf8(dir).unwrap())
        };
        assert_eq!(of(&[("/etc/a", 400), ("/etc/b/c", 300), ("/etc/b/d", 300)]), (3, "/etc".to_owned()));
        assert_eq!(of(&[("/etc/b/c", 500), ("/etc/b/d", 450), ("/etc/bc", 50)]), (2, "/etc/b".to_owned()));
        assert_eq!(of(&[("/etc/b/c", 500), ("/usr/b/c", 400), ("/x", 100)]), (3, String::new()));
        assert_eq!(of(&[("/x", 0), ("/y/z", 0)]), (2, String::new()));
    }
}

//! The time of the path by cause, most first.

use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::Answer;
use crate::reports::traced::Found;
use crate::reports::traced::cause::{Cause, asleep};
use systape_answers::derive::critical::doing::In;
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::runs::keys::Place;
use systape_answers::derive::runs::names::Names;
use systape_answers::render::rank::more;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis, share};
use systape_events::call_files::NO_FILE;
use systape_events::values::order::InOrder as _;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row for each cause of threads of one name.
    pub PATH_SUMS = "path_sums" {
        total_ns ? OfKnown: Duration "time of the path"
        share ? OfKnown: Real "part of the path, 0 to 1"
        parts ? OfKnown: Count "parts of the path that have it"
        threads ? OfKnown: Count "threads in which the path was"
        comm: Str key [Comm] "their name"
        cause: Word key "as of `path`"
        syscall: Word key "the call; `[user]`, `[kernel]`, `?` as in `states`"
        file: Str key [Path] "what the call is on; empty: on none, or on a CPU; null: not known"
        other_comm: Str key [Comm] "name of the thread that had the CPU meanwhile, or that woke it and is not followed; null: nobody, or not known"
        io_limit: Str key [Path] "as of `path`"
    }
}

/// Characters of a bar.
const BAR: usize = 20;

/// A cause of threads of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    comm: u32,
    cause: Cause,
    place: Place,
    file: u32,
    /// 0: none.
    other: u32,
    /// 0: none.
    limit: u32,
}

/// Time of one.
#[derive(Clone, Debug, Default)]
struct Sum {
    ns: u64,
    parts: u64,
    threads: Vec<u32>,
}

/// All of them, most first.
#[derive(Debug)]
pub(super) struct Sums {
    sums: Vec<(Key, Sum)>,
    /// Of comms and limits.
    names: Names,
}

impl Sums {
    pub(super) fn of(found: &[Found], threads: &[Logged]) -> Self {
        let mut names = Names::default();
        let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
        for found in found {
            let part = &found.part;
            let limit = found.limit.as_ref().map_or(0, |limit| names.number(limit.as_bytes()));
            let mut comm = |id: u32| {
                let task = threads.get(id as usize).and_then(|thread| thread.task_at(part.from));
                task.map_or(0, |task| names.number(&task.comm))
            };
            let key = Key {
                comm: comm(part.thread),
                cause: found.cause,
                place: Place::Any,
                file: NO_FILE,
                other: found.other().map_or(0, comm),
                limit,
            };
            let mut add = |key: Key, ns: u64| {
                let sum = sums.entry(key).or_default();
                (sum.ns, sum.parts) = (sum.ns + ns, sum.parts + 1);
                // the threads of a part come one after the other
                if let Err(at) = sum.threads.binary_search(&part.thread) {
                    sum.threads.insert(at, part.thread);
                }
            };
            match found.cause {
                Cause::Cpu => {
                    let known = found.spent.calls.iter().fold(0, |sum, of| sum + of.ns);
                    let mut places: Vec<(Place, u64)> = Vec::new();
                    for of in &found.spent.calls {
                        match places.iter_mut().find(|(place, _)| *place == of.place) {
                            Some((_, ns)) => *ns += of.ns,
                            None => places.push((of.place, of.ns)),
                        }
                    }
                    places.push((Place::Unknown, found.ns().saturating_sub(known)));
                    let places = places.into_iter().filter(|(_, ns)| *ns > 0);
                    places.for_each(|(place, ns)| add(Key { place, ..key }, ns));
                }
                Cause::Runqueue => add(key, found.ns()),
                _ => {
                    let most = found.spent.most();
                    let place = most.map_or(Place::Unknown, |most| most.place);
                    add(Key { place, file: most.map_or(NO_FILE, |most| most.file), ..key }, found.ns());
                }
            }
        }
        let mut sums: Vec<(Key, Sum)> = sums.into_iter().collect();
        sums.order_by_key(|(key, sum)| (Reverse(sum.ns), *key));
        Self { sums, names }
    }

    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn rows<'r>(&'r self, answer: &'r Answer<'r>, limit: usize) -> impl Iterator<Item = Row<'r>> {
        let total = answer.total();
        self.sums.iter().take(limit).map(move |(key, sum)| {
            let mut row = Row::new(&PATH_SUMS);
            row.set("total_ns", sum.ns).set("share", sum.ns as f64 / total.max(1) as f64);
            row.set("parts", sum.parts).set("threads", sum.threads.len());
            row.set("comm", self.names.name(key.comm)).set("cause", key.cause.word());
            row.set("syscall", answer.words.place(key.place));
            let file = if key.file == NO_FILE { Some(&b""[..]) } else { answer.words.names.name(key.file) };
            row.set("file", file).set("other_comm", self.names.name(key.other));
            row.set("io_limit", self.names.name(key.limit));
            row
        })
    }

    pub(super) fn print(&self, answer: &Answer<'_>, limit: usize, out: &mut impl Write) -> io::Result<()> {
        let total = answer.total();
        let mut table = Table::default().number("ms").number("share").whole("");
        table = table.number("times").word("who").prose("what").leaving(&["", "times", "share"]);
        for (key, sum) in self.sums.iter().take(limit) {
            let stars = (BAR as f64 * sum.ns as f64 / total.max(1) as f64).round() as usize;
            table.row(vec![
                millis(sum.ns, ""),
                share(sum.ns, total),
                format!("{:<BAR$}", "#".repeat(stars.min(BAR))),
                sum.parts.to_string(),
                self.who(answer, key, sum),
                self.what(answer, key),
            ]);
        }
        table.print(out)?;
        more(self.sums.len(), limit).iter().try_for_each(|text| systape_answers::values::output::line(out, text))
    }

    /// `app[12]`, `cc1 (12 threads)`.
    fn who(&self, answer: &Answer<'_>, key: &Key, sum: &Sum) -> String {
        let name = self.names.name(key.comm).map_or_else(|| "?".to_owned(), escaped);
        match sum.threads[..] {
            [id] => {
                let task = answer.threads[id as usize].tasks.last();
                task.map_or(name.clone(), |task| format!("{name}[{}]", task.tid))
            }
            _ => format!("{name} ({} threads)", sum.threads.len()),
        }
    }

    fn what(&self, answer: &Answer<'_>, key: &Key) -> String {
        let other = self.names.name(key.other).map(escaped);
        match key.cause {
            Cause::Cpu => match key.place {
                Place::User => "on a CPU, in its own code".to_owned(),
                Place::Kernel => "on a CPU, in the kernel".to_owned(),
                Place::Unknown | Place::Any => "on a CPU (in what is unknown)".to_owned(),
                place => format!("on a CPU, in {}", answer.words.place(place)),
            },
            Cause::Runqueue => match other {
                Some(other) => format!("waits for a CPU, which {other} had"),
                None => "waits for a CPU (who had it was not recorded)".to_owned(),
            },
            cause => {
                let call = answer.call(Some(&In { place: key.place, file: key.file, ns: 0, call: None }));
                let limit = self.names.name(key.limit).map(String::from_utf8_lossy);
                asleep((cause, limit.as_deref()), &call, &other.unwrap_or_else(|| "?".to_owned()))
            }
        }
    }
}

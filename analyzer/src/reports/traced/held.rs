//! What held back the block I/Os that waits for a disk were for: I/O limits of cgroups.

use rustc_hash::FxHashMap;
use systape_format::families::CGROUP_LIMIT;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::Found;
use super::cause::Cause;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::runs::names::Names;
use systape_answers::derive::why::limits::Limits;
use systape_events::families::in_session;
use systape_events::scan::Scan;

/// Waits of a process for a disk, in calls on one file.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    ns: u64,
    from: u64,
    to: u64,
}

/// The limit that each of `found` was held back by, in the words of `why`; None: none is known, as for all where a part of the tape cannot be
/// read. `names`: those of files.
pub(crate) fn back(tape: &Tape, found: &[Found], (threads, names): (&[Logged], &Names)) -> Vec<Option<String>> {
    let none = || vec![None; found.len()];
    let key = |found: &Found| {
        let thread = threads.get(found.part.thread as usize)?;
        let of = thread.task_at(found.part.from).filter(|_| found.cause == Cause::Disk)?;
        Some((of.pid, found.spent.most().map_or(0, |most| most.file)))
    };
    let mut waits: FxHashMap<(u32, u32), Waits> = FxHashMap::default();
    for (key, found) in found.iter().filter_map(|found| Some((key(found)?, found))) {
        let waits = waits.entry(key).or_insert(Waits { from: u64::MAX, ..Waits::default() });
        let part = &found.part;
        (waits.ns, waits.from, waits.to) = (waits.ns + found.ns(), waits.from.min(part.from), waits.to.max(part.to));
    }
    let limited = tape.table_defs().values().any(|def| def.name == CGROUP_LIMIT.name);
    if waits.is_empty() || !limited || !in_session(tape.session(), Family::Block) {
        return none();
    }
    let (from, to) = waits.values().fold((u64::MAX, 0), |(from, to), waits| (waits.from.min(from), waits.to.max(to)));
    let mut limits = Limits::new(tape.session(), false);
    let read = Scan::all(tape).walk(
        "block I/Os and tables",
        |segment, dict| Ok((segment.blocks(dict)?, segment.tables(dict)?)),
        |_, dict, (ios, tables)| {
            let files = Files::new(&tables, dict);
            let ios = ios.iter().filter(|io| (from..=to).contains(&io.complete));
            ios.for_each(|io| limits.io(&Io::new(io, dict).with(&files)));
            tables.iter().for_each(|table| limits.add(table, dict));
            limits.tasks(dict, tape.session());
        },
    );
    if !read.unread().is_empty() {
        return none();
    }
    let limit = |((pid, file), waits): (&(u32, u32), &Waits)| {
        limits.io_limit(&[*pid], names.name(*file).unwrap_or_default(), waits.ns)
    };
    let limits: FxHashMap<(u32, u32), Option<String>> = waits.iter().map(|of| (*of.0, limit(of))).collect();
    found.iter().map(|found| limits.get(&key(found)?)?.clone()).collect()
}

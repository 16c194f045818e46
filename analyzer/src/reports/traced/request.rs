//! The block I/Os that waits for a disk were for.

use systape_format::model::{Family, Task};
use systape_format::reader::Tape;

use super::Found;
use super::cause::Cause;
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::flags::Op;
use systape_answers::derive::block::io::Io as Event;
use systape_answers::derive::critical::disk::{Sleep, Waits};
use systape_answers::derive::critical::log::Logged;
use systape_events::families::in_session;
use systape_events::loss::loses;
use systape_events::scan::lost;
use systape_events::values::words::{escaped, span};

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct TracedIo {
    /// Name of the disk.
    pub disk: String,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Size in bytes; 0: of a flush.
    pub bytes: u32,
    /// `read`, `write`, `flush` and so on.
    pub op: String,
    /// ns the device took; None: not known.
    pub latency: Option<u64>,
    /// Who caused it, if that is another thread; None: this one, or not known.
    pub owner: Option<Task>,
}

impl TracedIo {
    /// `read of 4096 bytes at sector 2048 of sda, 1.2 ms at the device, by jbd2/sda1[17]`.
    pub(crate) fn text(&self) -> String {
        let took = self.latency.map(|ns| format!(", {} at the device", span(ns))).unwrap_or_default();
        let by = self.owner.as_ref().map(|task| format!(", by {}[{}]", escaped(&task.comm), task.pid));
        let by = by.unwrap_or_default();
        let what = match self.bytes {
            0 => self.op.to_owned(),
            bytes => format!("{} of {bytes} bytes at sector {}", self.op, self.sector),
        };
        format!("{what} of {}{took}{by}", self.disk)
    }
}

/// The I/O of each of `found` that waits for a disk; None for all if some are missing from the tape, because another may be taken for it.
pub(crate) fn of(tape: &Tape, found: &[Found], threads: &[Logged]) -> Vec<Option<TracedIo>> {
    let none = || vec![None; found.len()];
    let waits: Vec<usize> = (0..found.len()).filter(|at| found[*at].cause == Cause::Disk).collect();
    let missing = || lost::any(tape, |gap| loses(gap, &[Family::Block]));
    if waits.is_empty() || !in_session(tape.session(), Family::Block) || missing() {
        return none();
    }
    let utid =
        |thread: u32| threads.get(thread as usize).and_then(|thread| thread.tasks.last()).map_or(0, |task| task.utid);
    let sleep = |at: &usize| {
        let part = &found[*at].part;
        Sleep { utid: utid(part.thread), from: part.from, to: part.to }
    };
    let sleeps: Vec<Sleep> = waits.iter().map(sleep).collect();
    let (from, to) = sleeps.iter().fold((u64::MAX, 0), |(from, to), sleep| (from.min(sleep.from), to.max(sleep.to)));
    let devices = devices(tape);
    let mut near = Waits::new(&sleeps);
    for at in (0..tape.segments().len()).filter(|at| tape.segments()[*at].touches(from, to)) {
        let segment = tape.segment(at);
        let read = segment.dict().and_then(|dict| Ok((segment.blocks(&dict)?, dict)));
        let Ok((ios, dict)) = read else { return none() };
        let Ok(files) = Files::read(&segment, &dict, &ios) else { return none() };
        for event in ios.iter().map(|io| Event::new(io, &dict).with(&files)) {
            let of = [event.owner, event.origin].map(|task| task.map(|task| task.utid));
            near.ended(event.io, of, || TracedIo {
                disk: devices.name(event.io.dev),
                sector: event.io.sector,
                bytes: event.io.bytes,
                op: Op::of_io(event.io).name(),
                latency: event.latency(),
                owner: event.owner.cloned(),
            });
        }
    }
    let mut all = none();
    for ((at, io), sleep) in waits.into_iter().zip(near.found()).zip(&sleeps) {
        // its own needs no name
        all[at] = io.map(|io| TracedIo { owner: io.owner.filter(|task| task.utid != sleep.utid), ..io });
    }
    all
}

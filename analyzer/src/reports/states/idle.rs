//! Threads that slept all the time in a call that waits for work: idle daemons. Text has one line for all of them.

use systape_format::model::Extent;

use crate::asked::config::Config;
use crate::derive::runs::{Doing, End, Interval, State};
use crate::derive::waits::{self, Waits};
use crate::reports::Context;

/// Time of one row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    /// ns.
    pub(super) ns: u64,
    /// The part of it from threads that slept all the time.
    idle_ns: u64,
    /// Number of these threads.
    idle: u64,
    /// Some of them read.
    reads: bool,
}

impl Sum {
    pub(super) fn add(&mut self, ns: u64, waits: Option<Waits>, continued: bool) {
        self.ns = self.ns.saturating_add(ns);
        if let Some(waits) = waits {
            self.idle_ns = self.idle_ns.saturating_add(ns);
            self.idle += u64::from(!continued);
            self.reads |= waits == Waits::Reads;
        }
    }

    /// Number of its threads, if all of them slept all the time; `file`: the file of the calls.
    pub(super) fn idle(&self, file: Option<&[u8]>) -> Option<u64> {
        let waits = !self.reads || file.is_some_and(|file| file.starts_with(b"pipe:"));
        (self.idle > 0 && self.idle_ns == self.ns && waits).then_some(self.idle)
    }
}

/// Whether such threads are one line: only for the whole machine. With a filter they are listed.
pub(super) fn folds(context: &Context<'_>, config: &Config) -> bool {
    let session = context.question.tape.session();
    let everyone = session.extent == Extent::Everyone || crate::table::question::everyone(context.question.tape);
    everyone && config.format.rows().is_none() && !context.question.scope.by_task() && !config.filters.selects
}

/// The call of a thread that slept in `interval` for the whole selected time: since `from` or before, until `to`.
pub(super) fn waits(context: &Context<'_>, interval: &Interval, (from, to): (u64, u64)) -> Option<Waits> {
    let Doing::Call(call) = interval.doing else { return None };
    let whole = (interval.from <= from || interval.continued)
        && (interval.to >= to || matches!(interval.end, End::Stop | End::Step));
    if interval.state != State::Sleeping(b'S') || !whole {
        return None;
    }
    let info = context.question.book.get(call.call);
    waits::for_work(&info.name)
}

/// The line of text for all of them.
pub(super) fn line(rows: usize, threads: u64) -> String {
    let s = if threads == 1 { "" } else { "s" };
    let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    format!(
        "idle: {threads} thread{s} slept all the time in poll, accept, nanosleep, futex or on a pipe ({rows}; --top 0 lists them)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_idle_when_all_of_it_is() {
        let mut sum = Sum::default();
        assert_eq!(sum.idle(None), None);
        sum.add(70, Some(Waits::Call), false);
        // the same thread, after a checkpoint
        sum.add(30, Some(Waits::Call), true);
        sum.add(100, Some(Waits::Call), false);
        assert_eq!((sum.ns, sum.idle(None)), (200, Some(2)));
        sum.add(1, None, false);
        assert_eq!(sum.idle(None), None, "one of its threads did something");
        let mut reads = Sum::default();
        reads.add(5, Some(Waits::Reads), false);
        assert_eq!(
            [reads.idle(Some(b"pipe:[7]")), reads.idle(Some(b"/dev/sda")), reads.idle(None)],
            [Some(1), None, None]
        );
    }
}

//! What threads did over time, as characters: the states and calls of `analyze states`, by thread and column of the screen.

use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::{Call, Family, Task};
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::reports::{Context, scheduling};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::task_text;
use systape_answers::derive::runs::{Doing, Interval, IntervalSink, Slot, State, Thread, feed};
use systape_events::filter::Scope;

/// Most threads that are kept.
const MOST: usize = 1024;
/// Most sentences about losses.
const LOSSES: usize = 2;

/// What a column shows, the letter of each; what filled most of the column is shown.
pub(super) const KINDS: [(char, &str); 8] = [
    ('#', "on a CPU"),
    ('+', "waits for a CPU"),
    ('%', "throttled"),
    ('D', "uninterruptible sleep"),
    ('-', "asleep in a call"),
    ('.', "asleep, in no known call"),
    ('T', "stopped or frozen"),
    ('?', "not known"),
];

/// Threads, the busiest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes {
    /// The time that is shown, ns since the start of the tape.
    pub span: (i64, i64),
    pub lanes: Vec<ThreadLane>,
    /// How many threads there were beside those.
    pub more: usize,
    /// What is missing.
    pub lost: Vec<String>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadLane {
    pub name: String,
    /// A letter of [`KINDS`] a column; a space: it was not there.
    pub letters: String,
    /// The call that lasted longest in each column; empty: none.
    pub calls: Vec<String>,
}

/// The lanes of the time that `config` is about.
///
/// # Errors
/// Scheduling was not recorded.
pub(super) fn lanes(config: &Config, tape: &Tape, columns: usize) -> Result<Lanes> {
    scheduling::require(tape)?;
    let mut context = Context::about(config, tape, &[Family::Sched, Family::Process, Family::Syscall])?;
    let question = &context.question;
    let open = tape.session().window_open;
    let from = question.scope.from.max(open);
    let to = question.scope.to.min(tape.complete_until()).max(from + 1);
    let width = (to - from).div_ceil(columns.max(1) as u64).max(1);
    let drawn = DrawnLanes {
        scope: &question.scope,
        from,
        to,
        width,
        columns,
        threads: Vec::new(),
        places: FxHashMap::default(),
    };
    let fed = feed::feed(question, Needs { calls: true, ..Needs::default() }, to, drawn);
    let DrawnLanes { mut threads, places, .. } = fed.tracker.sink;
    let more = places.len() - threads.len();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.ran));
    let name =
        |call: Option<(Call, u64)>| call.map_or_else(String::new, |(call, _)| question.book.get(call).name.clone());
    let lanes = threads.into_iter().map(|thread| ThreadLane {
        name: task_text(&thread.task),
        letters: thread.cells.iter().map(LaneCell::letter).collect(),
        calls: thread.cells.iter().map(|cell| name(cell.call)).collect(),
    });
    let lanes = lanes.collect();
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    let since = |ts: u64| i64::try_from(i128::from(ts) - i128::from(open)).unwrap_or(i64::MAX);
    let lost = context.question.loss.lines(tape.session(), LOSSES);
    Ok(Lanes { span: (since(from), since(to)), lanes, more, lost })
}

/// Sums of one thread and column.
#[derive(Clone, Copy, Default)]
struct LaneCell {
    /// ns by the kinds of [`KINDS`].
    ns: [f32; KINDS.len()],
    call: Option<(Call, u64)>,
}

impl LaneCell {
    fn letter(&self) -> char {
        let most = self.ns.iter().zip(KINDS).max_by(|(a, _), (b, _)| a.total_cmp(b));
        most.filter(|(ns, _)| **ns > 0.0).map_or(' ', |(_, (letter, _))| letter)
    }
}

struct DrawnThread {
    /// The thread, with its newest name.
    task: Arc<Task>,
    /// ns on a CPU.
    ran: u64,
    cells: Vec<LaneCell>,
}

struct DrawnLanes<'a> {
    scope: &'a Scope<'a>,
    from: u64,
    to: u64,
    width: u64,
    columns: usize,
    threads: Vec<DrawnThread>,
    /// Place of each thread; None: there are [`MOST`] others.
    places: FxHashMap<(Slot, u32), Option<usize>>,
}

/// The kind of a state, as an index of [`KINDS`].
fn kind(state: State, doing: Doing) -> usize {
    match (state, doing) {
        (State::Running, _) => 0,
        (State::Waiting(_), _) => 1,
        (State::Throttled, _) => 2,
        (State::Sleeping(b'D'), _) => 3,
        (State::Sleeping(b'S' | b'I'), Doing::Call(_)) => 4,
        (State::Sleeping(b'S' | b'I'), _) => 5,
        (State::Sleeping(_), _) => 6,
        (State::Unknown, _) => 7,
    }
}

impl IntervalSink for DrawnLanes<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let (from, to) = (interval.from.max(self.from), interval.to.min(self.to));
        let task = &threads[slot].task;
        if to <= from || !self.scope.task(task) {
            return;
        }
        let (kept, all) = (self.threads.len(), &mut self.threads);
        let columns = self.columns;
        let place = self.places.entry((slot, task.utid)).or_insert_with(|| {
            let cells = vec![LaneCell::default(); columns];
            (kept < MOST).then(|| all.push(DrawnThread { task: Arc::clone(task), ran: 0, cells })).map(|()| kept)
        });
        let Some(at) = *place else { return };
        let thread = &mut self.threads[at];
        if !Arc::ptr_eq(&thread.task, task) {
            thread.task = Arc::clone(task);
        }
        let kind = kind(interval.state, interval.doing);
        if kind == 0 {
            thread.ran += to - from;
        }
        let mut begin = from - self.from;
        let end = to - self.from;
        while begin < end {
            let column = begin / self.width;
            let until = ((column + 1) * self.width).min(end);
            if let Some(cell) = thread.cells.get_mut(column as usize) {
                cell.ns[kind] += (until - begin) as f32;
                if let Doing::Call(call) = interval.doing
                    && cell.call.is_none_or(|(_, ns)| ns < until - begin)
                {
                    cell.call = Some((call.call, until - begin));
                }
            }
            begin = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_letter_of_what_filled_most_of_it() {
        let mut cell = LaneCell::default();
        assert_eq!(cell.letter(), ' ');
        cell.ns[0] = 3.0;
        cell.ns[7] = 5.0;
        assert_eq!(cell.letter(), '?');
        cell.ns[0] = 6.0;
        assert_eq!(cell.letter(), '#');
    }
}

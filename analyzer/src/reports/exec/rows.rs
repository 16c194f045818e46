//! Attempts to start a program: successful ones are events of process life, failed ones are calls.

use std::sync::Arc;

use systape_abi::Abi;
use systape_format::model::{Captured, Task};
use systape_format::reader::Segment;

use super::Context;
use systape_answers::derive::processes::interpreters::Asked;
use systape_answers::derive::processes::{Command, Ending, Image, Process, Processes, read};
use systape_events::filter::failed;
use systape_events::load::{Base, Loaded};
use systape_events::scan::{Coverage, Scan};
use systape_events::values::order::InOrder as _;

/// Outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reports) enum After {
    /// The process ended.
    End(Ending),
    /// The process executed another program at this time.
    Exec(u64),
    /// No recorded event.
    Open,
    /// The process has just begun, and the rest will come.
    Begun,
    /// The next recorded event may not be the next one: events of process life are missing between.
    Lost,
}

/// An attempt to start a program.
#[derive(Clone, Debug)]
pub(in crate::reports) struct Row {
    /// Time of the success, or start of the failed call.
    pub ts: u64,
    /// The process: after a success as the new program, after a failure as the old one.
    pub task: Task,
    /// pid of the process that forked it; 0 = not known.
    pub ppid: u32,
    /// 0, or the errno.
    pub errno: u16,
    /// Path of the program; empty = not known.
    pub path: Vec<u8>,
    /// Arguments of the program; empty = not known.
    pub command: Arc<Command>,
    /// What came after it.
    pub after: After,
    /// End of the call that failed; 0 = it succeeded.
    pub failed_at: u64,
    /// What the file asked for, if it was read after the failure.
    pub asked: Option<Asked>,
}

/// The passing attempts, by time; those that failed with `failures` only. Unreadable parts are added to the context's losses.
pub(super) fn collect(context: &mut Context<'_>, processes: &Processes, failures: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if !context.config.filters.failure {
        rows = successes(context, processes);
    }
    if failures {
        rows.extend(failed_ones(context, processes));
    }
    rows.order_by_key(|row| (row.ts, row.task.pid, row.task.tid));
    rows
}

/// The passing attempts that failed.
pub(super) fn failed_ones(context: &mut Context<'_>, processes: &Processes) -> Vec<Row> {
    let (failed, coverage) = Scan::calls(&context.question).fold(Vec::new, |rows, segment, coverage| {
        add_failures(context, processes, segment, rows, coverage);
    });
    coverage.tell(&mut context.question.loss);
    failed.into_iter().flatten().collect()
}

fn successes(context: &Context<'_>, processes: &Processes) -> Vec<Row> {
    let scope = &context.question.scope;
    let gaps = read::gaps(context.question.tape);
    let mut rows = Vec::new();
    for process in &processes.all {
        for (at, image) in process.images.iter().enumerate() {
            if !image.exec || image.since < scope.from || image.since >= scope.to || !scope.task(&image.task) {
                continue;
            }
            let after = match (process.images.get(at + 1), process.end()) {
                (Some(next), _) => After::Exec(next.since),
                (None, Some(end)) => After::End(end),
                (None, None) => After::Open,
            };
            let until = match after {
                After::End(end) => Some(end.ts),
                After::Exec(ts) => Some(ts),
                After::Open | After::Lost | After::Begun => None,
            };
            // an exec of the same process may be among what is missing
            let lost = until.is_some_and(|until| read::lost_between(&gaps, image.task.pid, image.since, until));
            rows.push(Row::of(process, image, if lost { After::Lost } else { after }));
        }
    }
    rows
}

impl Row {
    /// When it came to be known: at the end of a program that has ended, else at its start.
    pub(super) fn moment(&self) -> u64 {
        if let After::End(end) = self.after { end.ts } else { self.ts }
    }

    /// A program that `process` began.
    pub(super) fn of(process: &Process, image: &Image, after: After) -> Self {
        Self {
            ts: image.since,
            task: image.task.clone(),
            ppid: process.ppid,
            errno: 0,
            path: image.path.clone(),
            command: Arc::clone(&image.command),
            after,
            failed_at: 0,
            asked: None,
        }
    }
}

/// Indices of path and arguments of the call `name`.
fn arguments(name: &str) -> Option<(u8, u8)> {
    match name {
        "execve" => Some((0, 1)),
        "execveat" => Some((1, 2)),
        _ => None,
    }
}

fn add_failures(
    context: &Context<'_>,
    processes: &Processes,
    from: &Segment<'_>,
    rows: &mut Vec<Row>,
    coverage: &mut Coverage,
) {
    let mut holes = Vec::new();
    let mut picked = Vec::new();
    let execs = |abi, nr| arguments(systape_abi::name(Abi::from_raw(abi), nr).unwrap_or("")).is_some();
    // the index tells of most segments that they have none
    let info = from.info();
    if info.failures == 0 || info.calls.as_ref().is_some_and(|calls| !calls.iter().any(|c| execs(c.abi, c.nr))) {
        return;
    }
    let base = Base::read(*from, &mut holes, |dict, core| {
        let calls: Vec<bool> = dict.calls.iter().map(|call| execs(call.abi, call.nr)).collect();
        let tasks: Vec<bool> = dict.tasks.iter().map(|task| context.question.scope.task(task)).collect();
        let wanted = |row: &usize| {
            calls[core.call[*row] as usize]
                && tasks[core.task[*row] as usize]
                && failed(core.state[*row], core.errno[*row])
        };
        picked = (0..core.call.len()).filter(wanted).collect();
        !picked.is_empty()
    });
    if let Some(segment) = base.map(|base| base.load(&context.question.book, &mut holes)) {
        let scope = &context.question.scope;
        let inside = |row: &usize| (scope.from..scope.to).contains(&segment.time.start[*row]);
        rows.extend(picked.into_iter().filter(inside).map(|row| failure(&segment, processes, row)));
    }
    coverage.holes(holes);
}

fn failure(segment: &Loaded, processes: &Processes, row: usize) -> Row {
    let task = segment.task(row);
    let (path, argv) = arguments(&segment.call(row).name).unwrap_or((0, 1));
    let captured = |arg: u8| segment.captured(row).iter().find(|c| c.arg == arg && c.status.has_bytes());
    let bytes = |value: Option<&Captured>| value.map(|value| value.bytes.clone()).unwrap_or_default();
    let words = captured(argv);
    Row {
        ts: segment.time.start[row],
        task: task.clone(),
        ppid: processes.get(task).map_or(task.ppid, |process| process.ppid),
        errno: segment.core.errno[row],
        path: bytes(captured(path)),
        command: Arc::new(Command { argv: bytes(words), whole: words.is_some_and(|words| words.status.is_whole()) }),
        after: After::Open,
        failed_at: segment.time.start[row].saturating_add(segment.core.dur[row]),
        asked: None,
    }
}

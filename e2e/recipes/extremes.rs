//! `analyze extremes`: the longest calls of each cgroup.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use systape_format::model::{Family, Task};
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use systape_answers::lines::row::duration;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::scan::Scan;
use systape_events::values::words::{escaped, named};

systape_format::tables! {
    /// One row for each of the longest calls of a cgroup.
    pub EXTREMES = "extremes" {
        cgroup: Str key [Path] "path of the cgroup; null: not known"
        ts_ns: Time key "when the call began"
        dur_ns ? AtLeast: Duration "how long it took"
        pid: Int "process"
        tid: Int key "thread"
        comm: Str [Comm] "name of the thread"
        syscall: Word key "name of the call"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "extremes",
    about: "The longest calls of each cgroup",
    options: &[TASKS, &["time"]],
    own: Own::of::<Options>(),
    examples: [("analyze extremes", "of all cgroups"), ("analyze extremes --each 3", "three of each")],
    tables: &[Rows::of("extremes", &[All(&EXTREMES)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// So many calls of each cgroup
    #[arg(long, value_name = "N", default_value_t = 10)]
    each: usize,
}

/// Length, whether it was longer, thread, begin, name.
type Slow = (u64, bool, Task, u64, String);

fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let (own, session): (Options, _) = (config.own()?, tape.session());
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let mut all: BTreeMap<u64, Vec<Slow>> = BTreeMap::new();
    let coverage = Scan::passing(
        &context.question,
        |loaded, rows| {
            let call = |row| {
                let (ns, more) = duration(loaded, row).known()?;
                Some((ns, more, loaded.task(row).clone(), loaded.time.start[row], loaded.call(row).name.clone()))
            };
            rows.filter_map(call).collect::<Vec<Slow>>()
        },
        |calls| {
            for call in calls {
                let of = all.entry(call.2.cgroup_id).or_default();
                of.insert(of.partition_point(|other| other.0 >= call.0), call);
                of.truncate(own.each);
            }
        },
    );
    coverage.tell(&mut context.question.loss);
    let mut rows: Vec<Slow> = all.into_values().flatten().collect();
    rows.sort_by_key(|(ns, _, _, ts, _)| (Reverse(*ns), *ts));
    let cgroup = |task: &Task| session.cgroup_path(task.cgroup_id).map(<[u8]>::to_vec);
    let headings = Table::default().number("ms").word("thread").word("call").word("cgroup");
    let ranking = TopRows { table: &EXTREMES, judged: context.judged(), headings, all: rows.len(), limit: usize::MAX };
    let row = |(ns, more, task, ts, call): &Slow| {
        let mut row = Row::new(&EXTREMES);
        row.set("cgroup", cgroup(task)).set("ts_ns", ts.wrapping_sub(session.window_open).cast_signed());
        row.bound("dur_ns", *ns, *more).set("pid", task.pid).set("tid", task.tid);
        row.set("comm", task.comm.clone()).set("syscall", call.clone());
        row
    };
    let path = |task: &Task| cgroup(task).map_or_else(|| "?".to_owned(), |path| escaped(&path));
    let cells = |(ns, more, task, _, call): &Slow| {
        vec![millis(*ns, mark::at_least(*more)), named(&task.comm), call.clone(), path(task)]
    };
    out.ranking(ranking, rows.iter(), row, cells)?;
    losses::end_of_sums(&context, out)
}

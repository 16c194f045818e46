//! The tree of processes with their lives, and the critical path of the recorded command.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answers::{Asker, Row};
use super::figure::list;
use super::longest::Longest;
use super::pool::Pool;
use super::slicing::pieces;
use super::text::{cut, visible};
use systape_answers::derive::summary::plan::Slices;
use systape_events::values::order::InOrder as _;

/// Most processes.
const PROCESSES: usize = 4000;
/// Most parts of a path.
const PARTS: usize = 4000;
/// Most characters of a command line.
const COMMAND: usize = 120;

/// The tree, as `analyze exec --tree` has it.
pub(super) fn processes(asker: &Asker<'_>) -> Value {
    let answer = asker.rows("exec --tree", PROCESSES);
    let rows = &answer.rows;
    let mut pool = Pool::default();
    let column = |of: &dyn Fn(&Row) -> Value| rows.iter().map(of).collect::<Value>();
    let comm: Vec<u32> = rows.iter().map(|row| pool.number(&row.word("comm").unwrap_or_default())).collect();
    let command: Vec<u32> = rows.iter().map(|row| pool.number(&command(row))).collect();
    json!({
        "none": answer.none,
        "more": answer.more,
        "command": answer.command,
        "told": answer.told.iter().map(|text| visible(text)).collect::<Vec<_>>(),
        "texts": pool.texts(),
        "depth": column(&|row| json!(row.ns("depth").unwrap_or(0))),
        "pid": column(&|row| json!(row.ns("pid"))),
        "comm": comm,
        "line": command,
        "from": column(&|row| row.json("ts_ns")),
        "to": column(&|row| row.json("end_ns")),
        "ns": column(&|row| json!(row.ns("dur_ns"))),
        "least": column(&|row| json!(!row.bound("dur_ns").is_empty())),
        "code": column(&|row| row.json("exit_code")),
        "signal": column(&|row| row.json("exit_signal")),
    })
}

/// The command line of its last program; empty: not known.
fn command(row: &Row) -> String {
    let last = row.nested("programs").as_array().and_then(|programs| programs.last());
    let args = last.and_then(|program| program.get("args")).map(list);
    cut(&args.unwrap_or_default(), COMMAND)
}

/// The critical path of the command, as `analyze path` has it; null: no command was recorded, or no scheduling.
pub(super) fn path(asker: &Asker<'_>, target: &str, slices: Slices) -> Value {
    if !["command ", "system-wide during "].iter().any(|lead| target.starts_with(lead)) {
        return Value::Null;
    }
    let mut sums = CauseTimes { slices, ..CauseTimes::default() };
    let mut longest = Longest::new(PARTS);
    let (command, told, none) = asker.each("path", &mut |row| {
        sums.add(&row);
        longest.push(row.ns("dur_ns").unwrap_or(0), row);
    });
    if none.is_some() || sums.all.is_empty() {
        return Value::Null;
    }
    let all = longest.count();
    let rows = longest.rows();
    let mut pool = Pool::default();
    let mut texts =
        |of: &dyn Fn(&Row) -> String| -> Vec<u32> { rows.iter().map(|row| pool.number(&visible(&of(row)))).collect() };
    let text = |row: &Row, name: &str| row.word(name).unwrap_or_default();
    let who = texts(&|row| format!("{} {}", text(row, "comm"), text(row, "tid")));
    let cause = texts(&|row| text(row, "cause"));
    let what = texts(&|row| format!("{} {}", text(row, "syscall"), text(row, "file")).trim().to_owned());
    let column = |name: &str| rows.iter().map(|row| row.json(name)).collect::<Value>();
    json!({
        "command": command,
        "told": told.iter().map(|text| visible(text)).collect::<Vec<_>>(),
        "more": all - rows.len() as u64,
        "causes": sums.json(),
        "texts": pool.texts(),
        "at": column("ts_ns"),
        "ns": column("dur_ns"),
        "short": rows.iter().map(|row| !row.bound("dur_ns").is_empty()).collect::<Value>(),
        "who": who,
        "cause": cause,
        "what": what,
    })
}

/// Time of a path by cause and slice of time.
#[derive(Default)]
struct CauseTimes {
    slices: Slices,
    /// When the recording began is time 0.
    all: BTreeMap<String, CauseTime>,
}

/// Time of a path that one cause has.
#[derive(Default)]
struct CauseTime {
    ns: u64,
    slices: BTreeMap<u64, u64>,
    short: bool,
}

impl CauseTimes {
    fn add(&mut self, row: &Row) {
        let (Some(from), Some(ns)) = (row.json("ts_ns").as_i64(), row.ns("dur_ns")) else { return };
        let cause = self.all.entry(row.word("cause").unwrap_or_default()).or_default();
        cause.ns = cause.ns.saturating_add(ns);
        cause.short |= !row.bound("dur_ns").is_empty();
        // slices count from their own start
        let from = u64::try_from(from.saturating_sub(self.slices.from.cast_signed())).unwrap_or(0);
        for (slice, ns) in pieces((from, from.saturating_add(ns)), self.slices.width) {
            *cause.slices.entry(slice).or_default() += ns;
        }
    }

    fn json(self) -> Value {
        let cause = |(name, cause): (String, CauseTime)| {
            let (at, ns): (Vec<u64>, Vec<u64>) = cause.slices.into_iter().unzip();
            json!({"name": visible(&name), "all": cause.ns, "short": cause.short, "at": at, "ns": ns})
        };
        let mut causes: Vec<Value> = self.all.into_iter().map(cause).collect();
        causes.order_by_key(|cause| Reverse(cause["all"].as_u64()));
        causes.into()
    }
}

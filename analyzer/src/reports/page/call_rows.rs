//! Single calls: the slowest, and the first that failed, as the listing has them.

use std::sync::Arc;

use serde_json::{Value, json};
use systape_abi::Abi;
use systape_format::model::Call;

use super::answers::{Asker, Row, ns, text_of, word};
use super::longest::Longest;
use super::pool::Pool;
use super::text::cut;
use crate::derive::runs::rest::rests;
use crate::reports::idle;
use crate::table::calls::{CallBook, CallInfo};
use crate::values::order::InOrder as _;

/// Calls of each kind.
const MOST: usize = 1000;
/// Most characters of the arguments of one.
const ARGUMENTS: usize = 160;

/// Columns of calls, in order of time.
#[derive(Default)]
struct Columns {
    pool: Pool,
    rows: Vec<Single>,
}

struct Single {
    at: i64,
    ns: Option<u64>,
    least: bool,
    pid: u64,
    tid: u64,
    comm: u32,
    name: u32,
    args: u32,
    ret: u32,
}

/// The slowest calls, given how many there are by least duration, and the first that failed; `folds`: idle waits are counted alone.
pub(super) fn calls(asker: &Asker<'_>, book: &CallBook<'_>, durations: &[(u64, u64)], folds: bool) -> Value {
    let words = match least(durations) {
        0 => String::new(),
        least => format!("--duration {}ns", least - 1),
    };
    json!({
        "slow": slowest(asker, book, &words, folds),
        "failed": failed(asker, book),
    })
}

/// A duration that few more than [`MOST`] calls reach.
fn least(durations: &[(u64, u64)]) -> u64 {
    let mut calls = 0_u64;
    for (least, more) in durations.iter().rev() {
        calls = calls.saturating_add(*more);
        if calls >= MOST as u64 {
            return *least;
        }
    }
    0
}

fn is_call(row: &Row) -> bool {
    row.contains_key("syscall")
}

fn slowest(asker: &Asker<'_>, book: &CallBook<'_>, words: &str, folds: bool) -> Value {
    let mut longest = Longest::new(MOST);
    let mut idle = 0_u64;
    let (command, mut told, none) = asker.each(words, &mut |row| {
        if let Some(dur) = ns(&row, "dur_ns").filter(|_| is_call(&row)) {
            match folds && is_idle(&row, book) {
                true => idle += 1,
                false => longest.push(dur, row),
            }
        }
    });
    if idle > 0 {
        told.push(format!("without {idle} idle waits: {}", idle::WORDS));
    }
    let rows = longest.rows();
    columns(&rows, book, "The slowest calls", (&command, &told, none))
}

fn failed(asker: &Asker<'_>, book: &CallBook<'_>) -> Value {
    let answer = asker.rows(&format!("--failure --max-events {MOST}"), MOST);
    let rows: Vec<Row> = answer.rows.into_iter().filter(is_call).collect();
    columns(&rows, book, "The first calls that failed", (&answer.command, &answer.told, answer.none))
}

fn columns(
    rows: &[Row],
    book: &CallBook<'_>,
    title: &str,
    (command, told, none): (&str, &[String], Option<String>),
) -> Value {
    let mut all = Columns::default();
    for row in rows {
        let call = call(row, book, &mut all.pool);
        all.rows.push(call);
    }
    let Columns { pool, rows } = all;
    let column = |of: &dyn Fn(&Single) -> Value| rows.iter().map(of).collect::<Value>();
    json!({
        "title": title,
        "command": cut(command, ARGUMENTS),
        "told": told.iter().map(|text| cut(text, ARGUMENTS)).collect::<Vec<_>>(),
        "none": none,
        "texts": pool.texts(),
        "at": column(&|call| call.at.into()),
        "ns": column(&|call| call.ns.into()),
        "least": column(&|call| call.least.into()),
        "pid": column(&|call| call.pid.into()),
        "tid": column(&|call| call.tid.into()),
        "comm": column(&|call| call.comm.into()),
        "name": column(&|call| call.name.into()),
        "args": column(&|call| call.args.into()),
        "ret": column(&|call| call.ret.into()),
    })
}

fn call(row: &Row, book: &CallBook<'_>, pool: &mut Pool) -> Single {
    let text = |name: &str| word(row, name).unwrap_or_else(|| "?".to_owned());
    let args = row.get("args").and_then(Value::as_object);
    let args = args.map(|args| arguments(args, &order(row, book))).unwrap_or_default();
    Single {
        at: row.get("ts_ns").and_then(Value::as_i64).unwrap_or(0),
        ns: ns(row, "dur_ns"),
        least: row.get("dur_ns_at_least").and_then(Value::as_bool) == Some(true),
        pid: ns(row, "pid").unwrap_or(0),
        tid: ns(row, "tid").unwrap_or(0),
        comm: pool.number(&text("comm")),
        name: pool.number(&text("syscall")),
        args: pool.number(&cut(&args, ARGUMENTS)),
        ret: pool.number(&result(row)),
    }
}

/// `ENOENT`, `17`, `in-flight`.
fn result(row: &Row) -> String {
    let first = ["errno", "incomplete", "ret"].into_iter().find_map(|name| word(row, name));
    first.unwrap_or_else(|| "–".to_owned())
}

/// Whether it waits for work.
fn is_idle(row: &Row, book: &CallBook<'_>) -> bool {
    let fd = row.get("args").and_then(Value::as_object).and_then(|args| args.get("fd")?.get("path").and_then(text_of));
    info(row, book).is_some_and(|info| rests(&info, fd.as_deref().map(str::as_bytes)))
}

/// The names of its arguments as the call has them; empty: not known.
fn order(row: &Row, book: &CallBook<'_>) -> Vec<String> {
    info(row, book).map(|call| call.args.iter().map(|arg| arg.name.clone()).collect()).unwrap_or_default()
}

/// Facts about its call.
fn info(row: &Row, book: &CallBook<'_>) -> Option<Arc<CallInfo>> {
    let abi = word(row, "abi");
    let abi = (0..=u8::MAX).map(Abi::from_raw).find(|known| Some(known.as_str()) == abi.as_deref());
    let nr = abi.zip(word(row, "syscall")).and_then(|(abi, name)| systape_abi::number(abi, &name));
    abi.zip(nr).map(|(abi, nr)| book.get(Call { abi: abi as u8, nr }))
}

/// `fd: 3</tmp/x>, count: 4096`; those that `order` does not name come last.
fn arguments(args: &Row, order: &[String]) -> String {
    let mut sorted: Vec<(&String, &Value)> = args.iter().collect();
    sorted.order_by_key(|(name, _)| order.iter().position(|known| known == *name).unwrap_or(usize::MAX));
    sorted.into_iter().map(|(name, value)| format!("{name}: {}", brief(value))).collect::<Vec<_>>().join(", ")
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(brief).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let fd = object.get("fd").and_then(Value::as_i64);
            match (fd, object.get("path").and_then(text_of), object.get("text").and_then(text_of)) {
                (Some(fd), Some(path), _) => format!("{fd}<{path}>"),
                (_, _, Some(text)) => text,
                (Some(fd), None, None) => fd.to_string(),
                (None, _, None) => object.values().rev().map(brief).collect::<Vec<_>>().join(" → "),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_for_a_thousand() {
        assert_eq!(least(&[(10, 5), (100, 999), (1000, 2)]), 100);
        assert_eq!(least(&[(10, 5), (100, 999), (1000, 2000)]), 1000);
        assert_eq!((least(&[(10, 5)]), least(&[])), (0, 0));
    }

    #[test]
    fn arguments_are_short() {
        let args = json!({"a": {"fd": 3, "path": "/x"}, "b": {"value": 1, "text": "O_RDONLY"}, "c": "7",
            "d": ["a", "b"], "e": null, "f": {"before": "x", "after": "y"}, "g": {"fd": 4, "path": null}});
        let text = "c: 7, a: 3</x>, b: O_RDONLY, d: [a, b], e: null, f: x → y, g: 4";
        assert_eq!(arguments(args.as_object().unwrap(), &["c".to_owned(), "a".to_owned()]), text);
    }
}

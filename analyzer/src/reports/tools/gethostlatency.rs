//! `analyze gethostlatency`: the calls of getaddrinfo and gethostbyname that `record --probe dns` keeps, in gethostlatency's columns.

use anyhow::{Result, bail};
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, CPUS, Rows, TASKS, View};
use crate::asked::options::stacks::Below;
use crate::reports::calls::answer_in;
use crate::reports::listing::Lines;
use systape_answers::lines::tables::{EVENTS, LOSSES};
use systape_answers::render::columns::{Column, Layout, Line, millis};
use systape_answers::render::out::Out;
use systape_answers::render::stamp;
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "gethostlatency",
    about: "Names that were looked up (record --probe dns), in the columns of bcc's gethostlatency",
    events: &["dns:getaddrinfo", "dns:gethostbyname*", "!dns:*.unpaired"],
    options: &[TASKS, CPUS, &["time", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze gethostlatency --clock wall", "with the time of day"),
        ("analyze gethostlatency --comm=curl", "of programs named curl"),
    ],
    tables: &[Rows::of("gethostlatency", &[All(&EVENTS)]), Rows::json("gethostlatency", &[All(&LOSSES)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

const TIME: stamp::Column = stamp::Column { name: "TIME", width: 9, places: 3, right: false };

static LAYOUT: Layout = Layout {
    time: Some(("ts_ns", TIME)),
    always_timed: true,
    columns: &[
        Column::left("PID", 7, |line| line.word("pid")),
        Column::left("COMM", 16, |line| line.word("comm")),
        Column::right("LATms", 10, latency),
        Column::left("HOST", 0, host).shortens(),
    ],
    ..Layout::PLAIN
};

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    if !tape.table_defs().values().any(|def| def.name.starts_with("dns:")) {
        bail!(
            "no names that are looked up were recorded: record --probe dns; 'analyze net --udp' has the answers of name servers that were recorded"
        );
    }
    answer_in(config, tape, &Lines::Events(&LAYOUT), Below::default(), out)
}

fn latency(line: &Line<'_>) -> String {
    let ns = line.member("args", "dur_ns").and_then(|ns| ns.as_u64());
    ns.map_or_else(|| "-".to_owned(), |ns| millis(ns.into()))
}

/// What was looked up; bytes that are no text are in JSON as in [`systape_answers::render::json::bytes`].
fn host(line: &Line<'_>) -> String {
    match line.member("args", "host") {
        Some(serde_json::Value::String(host)) => escaped(host.as_bytes()),
        // it is escaped there
        Some(value) => value.get("text").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned(),
        None => "?".to_owned(),
    }
}

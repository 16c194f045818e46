//! `analyze tcplife`: the TCP connections of `analyze net` that have ended, in tcplife's columns.

use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Rows, TASKS, View};
use crate::reports::net::{answer_in, line::NET};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::columns::{Column, Layout, Line, kilobytes, millis};
use systape_answers::render::stamp;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "tcplife",
    about: "TCP connections that ended, in the columns of bcc's tcplife; those still open are in JSON, in CSV, and in 'analyze net'",
    options: &[TASKS, &["time", "duration", "failure", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze tcplife --clock wall", "with the time of day"),
        ("analyze tcplife --wide --comm=curl", "columns that have room for IPv6"),
    ],
    tables: &[Rows::of("tcplife", &[All(&NET)]), Rows::json("tcplife", &[All(&LOSSES)])],
    run: AnswerFn::Prints(|config, tape, out| answer_in(config, tape, if config.wide { &WIDE } else { &NARROW }, out)),
    ..View::PLAIN
};

const TIME: stamp::Column = stamp::Column { name: "TIME", width: 9, places: 6, right: false };

const LAYOUT: Layout = Layout { time: Some(("ts_ns", TIME)), omits: is_no_life, ..Layout::PLAIN };

static NARROW: Layout = Layout {
    columns: &[
        Column::left("PID", 5, pid).leaves(2),
        Column::left("COMM", 10, comm).shortens(),
        Column::left("LADDR", 15, |line| line.word("laddr")).leaves(3),
        Column::left("LPORT", 5, |line| line.word("lport")).leaves(1),
        Column::left("RADDR", 15, |line| line.word("raddr")),
        Column::left("RPORT", 5, |line| line.word("rport")),
        Column::right("TX_KB", 5, sent),
        Column::right("RX_KB", 5, received),
        MS,
    ],
    ..LAYOUT
};

static WIDE: Layout = Layout {
    columns: &[
        Column::left("PID", 5, pid),
        Column::left("COMM", 16, comm),
        Column::left("IP", 2, version),
        Column::left("LADDR", 26, |line| line.word("laddr")),
        Column::left("LPORT", 5, |line| line.word("lport")),
        Column::left("RADDR", 26, |line| line.word("raddr")),
        Column::left("RPORT", 5, |line| line.word("rport")),
        Column::right("TX_KB", 6, sent),
        Column::right("RX_KB", 6, received),
        MS,
    ],
    ..LAYOUT
};

const MS: Column = Column::left("MS", 0, |line| line.counted("dur_ns", millis));

/// The tool sees connections only when they end.
fn is_no_life(line: &Line<'_>) -> bool {
    let listens = line.text("direction").is_some_and(|direction| direction == "listen");
    let is_tcp = line.text("protocol").is_some_and(|protocol| protocol == "TCP");
    listens || !is_tcp || line.number("ts_ns").is_none()
}

fn pid(line: &Line<'_>) -> String {
    line.word("owner_pid")
}

fn comm(line: &Line<'_>) -> String {
    line.word("owner_comm")
}

fn sent(line: &Line<'_>) -> String {
    line.counted("sent_bytes", kilobytes)
}

fn received(line: &Line<'_>) -> String {
    line.counted("received_bytes", kilobytes)
}

fn version(line: &Line<'_>) -> String {
    let is_v6 = line.text("laddr").is_some_and(|address| address.contains(':'));
    (if is_v6 { "6" } else { "4" }).to_owned()
}

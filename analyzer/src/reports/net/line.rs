//! A connection, or a change of a socket's state, as a line.

use systape_abi::tcp;
use systape_format::model::{NetState, Task};

use systape_answers::derive::net::connection::{
    Connection, ConnectionBounds, ConnectionOutcome, ConnectionTotals, Direction, Lasted,
};
use systape_answers::derive::net::words::{address, endpoint, protocol_name};
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::mark;
use systape_answers::render::paint;
use systape_answers::render::row::{Row, ShownTimes};
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::{millis, millis_if};
use systape_events::values::words::{VIA_SOFTIRQ, bytes, escaped};

systape_format::tables! {
    /// One row a connection, in order of their ends, those that stayed open last.
    pub NET = "net" {
        ts_ns: Time "when it was closed; null: it was open at the end"
        time: Word "the same as RFC 3339, UTC; null also: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        start_ns: Time "its first change; null: not seen"
        established_ns: Time "when it became ESTABLISHED; null: never, or not seen"
        dur_ns ? AtLeast: Duration "how long it lasted; null: not known"
        protocol: Word key "`TCP DCCP SCTP`, or a number"
        direction: Word "`connect accept listen`; null: its beginning was not seen"
        outcome: Word "`open closed closed-by-peer reset failed ended`; null: not known whether it is open"
        state: Word "of an open one: `ESTABLISHED`, …; null: it is closed, or not known"
        laddr: Word [Address] "address of this end; null: not known"
        lport: Int [Address] "its port; null: not known"
        raddr: Word [Address] "address of the other end; null: none (listening), or not known"
        rport: Int [Address] "its port; null: likewise"
        socket: Wide key "number of the socket in the tape"
        owner.pid: Int "who connected, began to listen or accepted it: process; `owner` null: not known"
        owner.tid: Int "thread"
        owner.upid: Int "the process, unique in the tape"
        owner.utid: Int "the thread, unique in the tape"
        owner.comm: Str [Comm] "name of the thread"
        owner.uid: Int "real user; null: not known"
        sent_bytes ? AtLeast: Wide "data that this end sent in the recording, each byte once, confirmed or not; null: not known"
        received_bytes ? AtLeast: Wide "data that it received; null: not known"
        retransmits ? AtLeast: Count "segments that it sent again; null: not known"
        inode: Wide "number of its socket, as in `socket:[17]`; null: not known"
        tcp.bytes_sent: Wide "what the kernel had counted since the connection began, when it was closed or the recording ended, as `ss -i` prints it: data sent, with what was sent again; `tcp` null: not known"
        tcp.bytes_retrans: Wide "of these, data sent again"
        tcp.bytes_acked: Wide "what the other end has confirmed; SYN and FIN count as one each"
        tcp.bytes_received: Wide "data received; the other end's FIN counts as one"
        tcp.segs_out: Count "segments sent"
        tcp.segs_in: Count "segments received"
        tcp.data_segs_out: Count "of those sent, the ones with data"
        tcp.data_segs_in: Count "of those received, the ones with data"
        tcp.retrans: Count "segments sent again"
        tcp.rtt_ns: Duration "smoothed round-trip time; null: none was measured"
        tcp.rttvar_ns: Duration "how much it varies; null: likewise"
        tcp.min_rtt_ns: Duration "the shortest of late; null: none was measured"
        tcp.cwnd: Count "congestion window, segments"
        tcp.mss: Count "data in a full segment, bytes"
    }
}

/// Column of times.
const TIME: Column = Column { name: "time", width: 11, places: 6, right: false };

/// The columns of connections behind the time.
const FIELDS: [TextColumn; 11] = [
    TextColumn::left("comm", 15).shortens_to(8),
    TextColumn::left("pid", 7).leaves(8),
    TextColumn::left("proto", 5).leaves(1),
    TextColumn::left("role", 7).leaves(3),
    TextColumn::left("local address", 21).shortens_to(21).leaves(5),
    TextColumn::left("remote address", 21).shortens_to(21),
    TextColumn::left("state                 ms", 24),
    TextColumn::right("sent", 12).leaves(6),
    TextColumn::right("received", 12).leaves(7),
    TextColumn::right("rtt ms", 9).leaves(4),
    TextColumn::right("resent", 6).leaves(2),
];

/// The columns of changes behind the time.
const CHANGES: [TextColumn; 7] = [
    TextColumn::left("comm", 15).shortens_to(8),
    TextColumn::left("pid", 7).leaves(5),
    TextColumn::left("socket", 6).leaves(1),
    TextColumn::left("proto", 5).leaves(2),
    TextColumn::left("local address", 21).shortens_to(21).leaves(3),
    TextColumn::left("remote address", 21).shortens_to(21).leaves(4),
    TextColumn::left("old state -> new state", 24),
];

/// Names of the columns of connections.
pub(crate) fn header(stamps: &Stamps) -> Vec<u8> {
    format!("{}\n", TextColumns::timed(stamps.heading(TIME), FIELDS).head()).into_bytes()
}

/// Names of the columns of changes.
pub(crate) fn changes_header(stamps: &Stamps) -> Vec<u8> {
    format!("{}\n", TextColumns::timed(stamps.heading(TIME), CHANGES).head()).into_bytes()
}

/// The state, which may be an error, and how long it lasted: the room that a short state leaves is that of a long time.
fn lasted(state: String, ms: &str, failed: bool) -> String {
    let ms = paint::number(ms, 24_usize.saturating_sub(state.chars().count()).max(ms.len() + 1));
    format!("{}{ms}", if failed { paint::error(state) } else { state })
}

/// What a connection did: bytes, round-trip time, retransmits; `-` = not known, or not of that kind.
fn done(c: &Connection) -> [String; 4] {
    let none = || "-".to_owned();
    let rtt = c.counts.map(|counts| counts.srtt).filter(|ns| *ns != 0);
    let Some(ConnectionTotals { sent, received, retrans, at_least }) = c.moved() else {
        return [none(), none(), millis_if(rtt), none()];
    };
    let mark = mark::at_least(at_least);
    let size = |count: u64| format!("{mark}{}", bytes(count));
    [size(sent), size(received), millis_if(rtt), format!("{mark}{retrans}")]
}

fn who(task: Option<&Task>) -> (String, String) {
    task.map_or_else(|| ("?".to_owned(), "?".to_owned()), |task| (escaped(&task.comm), task.pid.to_string()))
}

/// Appends the line of a connection.
pub(crate) fn text(out: &mut Vec<u8>, c: &Connection, window: ConnectionBounds, stamps: &Stamps) {
    let (comm, pid) = who(c.task.as_ref());
    let state = match c.outcome {
        _ if c.may_have_ended(window) => "?".to_owned(),
        ConnectionOutcome::Open(state) => tcp::state_name(state),
        outcome => outcome.name().to_owned(),
    };
    let ms = match c.lasted(window) {
        Lasted::Exact(ns) => millis_if(Some(ns)),
        Lasted::AtLeast(ns) => millis(ns, mark::AT_LEAST),
        Lasted::Unknown => "-".to_owned(),
    };
    let failed = matches!(c.outcome, ConnectionOutcome::Failed | ConnectionOutcome::Reset);
    let time = c.end.map_or_else(|| stamps.word(TIME, "-"), |end| stamps.text(TIME, end));
    let [sent, received, rtt, retransmits] = done(c);
    let line = TextColumns::timed(time, FIELDS).line(&[
        comm,
        pid,
        protocol_name(c.protocol),
        c.direction.name().to_owned(),
        endpoint(&c.laddr, c.lport),
        if c.direction == Direction::Listen { "-".to_owned() } else { endpoint(&c.raddr, c.rport) },
        lasted(state, &ms, failed),
        sent,
        received,
        rtt,
        retransmits,
    ]);
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// All columns of a connection.
pub(crate) fn row<'a>(c: &'a Connection, window: ConnectionBounds, times: &ShownTimes<'_>) -> Row<'a> {
    let (ns, short) = match c.lasted(window) {
        Lasted::Exact(ns) => (Some(ns), false),
        Lasted::AtLeast(ns) => (Some(ns), true),
        Lasted::Unknown => (None, false),
    };
    let listens = c.direction == Direction::Listen;
    let since = |ts: u64| times.since(ts);
    let mut row = Row::new(&NET);
    row.set("ts_ns", c.end.map(since)).time("time", c.end, times);
    row.set("start_ns", c.start.map(since)).set("established_ns", c.established.map(since));
    row.bound("dur_ns", ns, short).set("protocol", protocol_name(c.protocol));
    row.set("direction", Some(c.direction.name()).filter(|_| c.direction != Direction::Unknown));
    let outcome = Some(c.outcome).filter(|_| !c.may_have_ended(window));
    row.set("outcome", outcome.map(ConnectionOutcome::name));
    row.set(
        "state",
        if let Some(ConnectionOutcome::Open(state)) = outcome { Some(tcp::state_name(state)) } else { None },
    );
    row.set("laddr", address(&c.laddr)).set("lport", known(c.lport));
    row.set("raddr", address(&c.raddr).filter(|_| !listens)).set("rport", known(c.rport).filter(|_| !listens));
    row.set("socket", c.socket).task("owner", c.task.as_ref());
    let (moved, at_least) = (c.moved(), c.moved().is_some_and(|moved| moved.at_least));
    row.bound("sent_bytes", moved.map(|moved| moved.sent), at_least);
    row.bound("received_bytes", moved.map(|moved| moved.received), at_least);
    row.bound("retransmits", moved.map(|moved| moved.retrans), at_least);
    row.set("inode", Some(c.inode).filter(|inode| *inode != 0));
    let Some(counts) = c.counts else {
        row.absent("tcp");
        return row;
    };
    let measured = |ns: u64| Some(ns).filter(|_| counts.srtt != 0);
    row.set("tcp_bytes_sent", counts.bytes_sent).set("tcp_bytes_retrans", counts.bytes_retrans);
    row.set("tcp_bytes_acked", counts.bytes_acked).set("tcp_bytes_received", counts.bytes_received);
    row.set("tcp_segs_out", counts.segs_out).set("tcp_segs_in", counts.segs_in);
    row.set("tcp_data_segs_out", counts.data_segs_out).set("tcp_data_segs_in", counts.data_segs_in);
    row.set("tcp_retrans", counts.retrans).set("tcp_rtt_ns", measured(counts.srtt));
    row.set("tcp_rttvar_ns", measured(counts.rttvar));
    row.set("tcp_min_rtt_ns", Some(counts.min_rtt).filter(|ns| *ns != 0));
    row.set("tcp_cwnd", counts.cwnd).set("tcp_mss", counts.mss);
    row
}

/// A port; 0 is none: not known, redacted, or not chosen yet.
fn known(port: u16) -> Option<u16> {
    Some(port).filter(|port| *port != 0)
}

/// Appends the line of a change; `task`: the task that ran, or the sender of the packet.
pub(crate) fn change(out: &mut Vec<u8>, e: &NetState, task: Option<&Task>, stamps: &Stamps) {
    let (comm, pid) = who(task);
    let via = if e.sender.is_some() { VIA_SOFTIRQ } else { "" };
    let line = TextColumns::timed(stamps.text(TIME, e.ts), CHANGES).line(&[
        comm,
        pid,
        e.socket.to_string(),
        protocol_name(e.protocol),
        endpoint(&e.saddr, e.sport),
        endpoint(&e.daddr, e.dport),
        format!("{} -> {}{via}", tcp::state_name(e.old_state), tcp::state_name(e.new_state)),
    ]);
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

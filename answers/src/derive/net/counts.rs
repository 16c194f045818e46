//! What the kernel counted of connections, and who named their sockets: rows of the tables `socket:tcp` and `socket:name`.

use std::net::SocketAddr;

use systape_abi::tcp;
use systape_format::Error;
use systape_format::families::{SOCKET_NAME, SOCKET_TCP};
use systape_format::model::{Dict, Task};
use systape_format::reader::Segment;
use systape_format::redact::PLACEHOLDER;
use systape_format::tables::TableRows;

/// Counts of one connection since it began, as the kernel has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Data sent, with what was sent again.
    pub bytes_sent: u64,
    /// Data sent again.
    pub bytes_retrans: u64,
    /// Confirmed, with SYN and FIN of this end.
    pub bytes_acked: u64,
    /// Received, with the other end's FIN.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u64,
    /// Segments received.
    pub segs_in: u64,
    /// Sent ones with data.
    pub data_segs_out: u64,
    /// Received ones with data.
    pub data_segs_in: u64,
    /// Segments sent again.
    pub retrans: u64,
    /// Smoothed round-trip time, ns; 0 = not measured.
    pub srtt: u64,
    /// Variation of the round-trip time, ns.
    pub rttvar: u64,
    /// The shortest of late, ns; 0 = not measured.
    pub min_rtt: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Data in a full segment, bytes.
    pub mss: u64,
    /// The other end's FIN came.
    pub fin: bool,
}

impl TcpCounts {
    /// Bytes that programs gave to the kernel and that were sent at least once.
    pub fn sent(&self) -> u64 {
        self.bytes_sent.saturating_sub(self.bytes_retrans)
    }

    /// Bytes that came for programs.
    pub fn received(&self) -> u64 {
        self.bytes_received.saturating_sub(u64::from(self.fin))
    }
}

/// When a connection was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The recording began.
    Start,
    /// The connection ended.
    Stop,
    /// The connection was closed.
    Close,
}

/// A row of `socket:tcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpRow {
    /// When it was read, ns.
    pub ts: u64,
    /// Why then.
    pub at: At,
    /// Number of the socket in changes of state.
    pub socket: u64,
    /// Inode of the socket; 0 = not known.
    pub inode: u64,
    /// Who had it open.
    pub task: Option<Task>,
    /// TCP state; None = one that this version does not know.
    pub state: Option<u8>,
    /// Address and port of this end and of the other one.
    pub ends: [(Vec<u8>, u16); 2],
    /// What it had done.
    pub counts: TcpCounts,
}

/// A row of `socket:name` with a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Time since when, ns.
    pub ts: u64,
    /// Number of the socket.
    pub socket: u64,
    /// Inode of the socket.
    pub inode: u64,
    /// Whose call named it.
    pub task: Option<Task>,
}

/// Both kinds of rows of a segment, each in order of time.
///
/// # Errors
/// A block of the segment cannot be read.
pub fn read(segment: &Segment<'_>, dict: &Dict) -> Result<(Vec<TcpRow>, Vec<Named>), Error> {
    let (mut counted, mut named) = (Vec::new(), Vec::new());
    for table in segment.tables(dict)? {
        let rows = 0..table.ts.len();
        if table.def.name == SOCKET_TCP.name {
            counted.extend(rows.filter_map(|row| counts(&Row { table: &table, row, dict })));
        } else if table.def.name == SOCKET_NAME.name {
            named.extend(rows.filter_map(|row| name(&Row { table: &table, row, dict })));
        }
    }
    Ok((counted, named))
}

/// One row, by names of columns: another version's table may lack some.
struct Row<'a> {
    table: &'a TableRows,
    row: usize,
    dict: &'a Dict,
}

impl Row<'_> {
    fn number(&self, column: &str) -> Option<u64> {
        self.table.column(column)?.get(self.row).copied()
    }

    fn bytes(&self, column: &str) -> Option<&[u8]> {
        self.table.string(self.number(column)?)
    }

    fn task(&self) -> Option<Task> {
        self.dict.task_of(self.number("task")?).cloned()
    }

    fn ts(&self) -> Option<u64> {
        self.table.ts.get(self.row).copied()
    }
}

fn counts(row: &Row<'_>) -> Option<TcpRow> {
    let at = match row.bytes("at")? {
        b"start" => At::Start,
        b"stop" => At::Stop,
        b"close" => At::Close,
        _ => return None,
    };
    let state = row.bytes("state").and_then(tcp::state);
    Some(TcpRow {
        ts: row.ts()?,
        at,
        socket: row.number("socket")?,
        inode: row.number("inode")?,
        task: row.task(),
        state,
        ends: ["local", "remote"].map(|column| end(row.bytes(column).unwrap_or_default())),
        counts: TcpCounts {
            bytes_sent: row.number("bytes_sent")?,
            bytes_retrans: row.number("bytes_retrans")?,
            bytes_acked: row.number("bytes_acked")?,
            bytes_received: row.number("bytes_received")?,
            segs_out: row.number("segs_out")?,
            segs_in: row.number("segs_in")?,
            data_segs_out: row.number("data_segs_out")?,
            data_segs_in: row.number("data_segs_in")?,
            retrans: row.number("retrans")?,
            srtt: row.number("srtt")?,
            rttvar: row.number("rttvar")?,
            min_rtt: row.number("min_rtt")?,
            cwnd: row.number("cwnd")?,
            mss: row.number("mss")?,
            fin: row.number("fin")? != 0,
        },
    })
}

fn name(row: &Row<'_>) -> Option<Named> {
    let socket = row.number("socket").filter(|number| *number != 0)?;
    Some(Named { ts: row.ts()?, socket, inode: row.number("inode")?, task: row.task() })
}

/// Address and port of `10.0.0.1:80` or `[::1]:80`; without bytes and 0 if it is none.
fn end(text: &[u8]) -> (Vec<u8>, u16) {
    if text == PLACEHOLDER {
        return (PLACEHOLDER.to_vec(), 0);
    }
    match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(SocketAddr::V4(end)) => (end.ip().octets().to_vec(), end.port()),
        Some(SocketAddr::V6(end)) => (end.ip().octets().to_vec(), end.port()),
        None => (Vec::new(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_those_of_names() {
        assert_eq!(end(b"10.0.0.1:80"), (vec![10, 0, 0, 1], 80));
        let (six, port) = end(b"[::ffff:10.0.0.1]:443");
        assert_eq!((&six[10..], port), (&[0xff, 0xff, 10, 0, 0, 1][..], 443));
        assert_eq!((end(b""), end(b"<redacted>").0), ((Vec::new(), 0), PLACEHOLDER.to_vec()));
    }

    #[test]
    fn payload_is_what_programs_moved() {
        let counts =
            TcpCounts { bytes_sent: 1_300, bytes_retrans: 300, bytes_received: 51, fin: true, ..TcpCounts::default() };
        assert_eq!((counts.sent(), counts.received()), (1_000, 50));
    }
}

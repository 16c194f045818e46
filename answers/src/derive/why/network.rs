//! Segments of TCP connections that were sent again: rows of the table `socket:retransmit`.

use std::collections::BTreeMap;

use systape_format::families::SOCKET_RETRANSMIT;
use systape_format::tables::TableRows;

use super::cpu::wider;

/// Most peers that are told apart.
const PEERS: usize = 1 << 14;

/// Segments sent again to one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// How many.
    pub segments: u64,
    /// The first and the last.
    pub span: Option<(u64, u64)>,
}

/// Repeats by the address of the other end.
pub type Peers = BTreeMap<Vec<u8>, Again>;

/// Adds the rows of `table` between `from` and `to`, if it is that table.
pub fn add(peers: &mut Peers, table: &TableRows, (from, to): (u64, u64)) {
    if table.def.name != SOCKET_RETRANSMIT.name {
        return;
    }
    let Some(remote) = table.column("remote") else { return };
    for (ts, remote) in table.ts.iter().zip(remote).filter(|(ts, _)| **ts >= from && **ts < to) {
        let Some(remote) = table.string(*remote) else { continue };
        if peers.len() >= PEERS && !peers.contains_key(remote) {
            continue;
        }
        let again = peers.entry(remote.to_vec()).or_default();
        again.segments += 1;
        again.span = wider(again.span, *ts, *ts);
    }
}

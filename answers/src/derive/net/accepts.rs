//! Which task accepted a connection: calls of accept with the address of the other side.
//!
//! An incoming connection has no task until a program accepts it. accept returns the address of the other side if the
//! caller asks for it; the socket with that other side is the one it returned.

use systape_abi::descriptors::is_accept;
use systape_abi::uapi::{AF_INET, AF_INET6};
use systape_format::Error;
use systape_format::model::{CallState, Dict, Task};
use systape_format::reader::Segment;

use systape_events::calls::CallBook;
use systape_events::values::order::InOrder as _;

/// Address and port of the other side: 4 or 16 bytes, an IPv4 address always as 4.
pub type Remote = (Vec<u8>, u16);

/// A call of accept that returned a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Time of its return.
    pub ts: u64,
    /// The other side of the connection.
    pub remote: Remote,
    /// The caller.
    pub task: Task,
}

/// `address` in the form of [`Remote`]: IPv4 in IPv6 as IPv4.
pub fn plain(address: &[u8]) -> Vec<u8> {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    address.strip_prefix(&MAPPED).filter(|rest| rest.len() == 4).unwrap_or(address).to_vec()
}

/// The address in a struct sockaddr_in or sockaddr_in6.
fn remote(sockaddr: &[u8]) -> Option<Remote> {
    let family = u16::from_le_bytes(sockaddr.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(sockaddr.get(2..4)?.try_into().ok()?);
    let address = match family {
        AF_INET => sockaddr.get(4..8)?,
        AF_INET6 => sockaddr.get(8..24)?,
        _ => return None,
    };
    Some((plain(address), port))
}

/// The calls of accept of a segment that returned a connection and its address, in order of return.
///
/// # Errors
/// A block of the segment cannot be read.
pub fn read(segment: &Segment<'_>, dict: &Dict, book: &CallBook<'_>) -> Result<Vec<Accepted>, Error> {
    let accepts: Vec<bool> = dict.calls.iter().map(|call| is_accept(&book.get(*call).name)).collect();
    if !accepts.contains(&true) {
        return Ok(Vec::new());
    }
    let core = segment.core(dict)?;
    let time = segment.time(dict, &core)?;
    let mut found = Vec::new();
    for value in segment.captured(&core)?.iter().filter(|value| value.arg == 1 && value.status.is_whole()) {
        let row = value.row as usize;
        let (Some(call), Some(task)) = (core.call.get(row), core.task.get(row)) else { continue };
        let returned = matches!(core.state[row], CallState::Complete | CallState::BeganBefore) && core.errno[row] == 0;
        if let (true, true, Some(remote)) = (accepts[*call as usize], returned, remote(&value.bytes)) {
            let ts = time.start[row].saturating_add(core.dur[row]);
            found.push(Accepted { ts, remote, task: dict.tasks[*task as usize].clone() });
        }
    }
    found.order_by_key(|accepted| accepted.ts);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(remote(&[2, 0, 0x1f, 0x90, 10, 0, 0, 7, 0, 0]), Some((vec![10, 0, 0, 7], 8080)));
        let mut six = vec![10, 0, 0, 80, 0, 0, 0, 0];
        six.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7]);
        assert_eq!(remote(&six), Some((vec![10, 0, 0, 7], 80)));
        assert_eq!((remote(&six[..20]), remote(&[1, 0, b'/', b'x'])), (None, None));
        assert_eq!(plain(&[0; 16]).len(), 16);
    }
}

//! States of TCP sockets (include/net/tcp_states.h).

pub const ESTABLISHED: u8 = 1;
pub const SYN_SENT: u8 = 2;
pub const SYN_RECV: u8 = 3;
pub const FIN_WAIT1: u8 = 4;
pub const FIN_WAIT2: u8 = 5;
pub const TIME_WAIT: u8 = 6;
pub const CLOSE: u8 = 7;
pub const CLOSE_WAIT: u8 = 8;
pub const LAST_ACK: u8 = 9;
pub const LISTEN: u8 = 10;
pub const CLOSING: u8 = 11;
pub const NEW_SYN_RECV: u8 = 12;

/// Names by number; 0 is none.
const STATES: [&str; 14] = [
    "",
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "NEW_SYN_RECV",
    "BOUND_INACTIVE",
];

/// Name of a state, or its number.
pub fn state_name(state: u8) -> String {
    match STATES.get(usize::from(state)) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => state.to_string(),
    }
}

/// The state with this name; None = there is none.
pub fn state(name: &[u8]) -> Option<u8> {
    let at = STATES.iter().position(|known| !known.is_empty() && known.as_bytes() == name)?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!((state_name(CLOSE), state_name(0), state_name(99)), ("CLOSE".into(), "0".into(), "99".into()));
        assert_eq!((state(b"CLOSE"), state(b""), state(b"99")), (Some(CLOSE), None, None));
    }
}

//! Names and addresses of sockets.

use std::net::{Ipv4Addr, Ipv6Addr};

use systape_format::redact::PLACEHOLDER;

/// TCP states (include/net/tcp_states.h).
pub mod state {
    #![expect(missing_docs, reason = "the kernel's names")]
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
}

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

/// Name of an IPPROTO_, or its number.
pub fn protocol_name(protocol: u16) -> String {
    match protocol {
        6 => "TCP".to_owned(),
        33 => "DCCP".to_owned(),
        132 => "SCTP".to_owned(),
        262 => "MPTCP".to_owned(),
        other => other.to_string(),
    }
}

/// An address of 4 or 16 bytes as text, or the word that stands for one that was taken out; None for anything else.
pub fn address(bytes: &[u8]) -> Option<String> {
    if bytes == PLACEHOLDER {
        return Some(String::from_utf8_lossy(PLACEHOLDER).into_owned());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).to_string())
}

/// `10.0.0.1:80`, `[::1]:80`, `?:80`; `10.0.0.1:?` where the port is not known or there is none yet.
pub fn endpoint(bytes: &[u8], port: u16) -> String {
    let port = if port == 0 { "?".to_owned() } else { port.to_string() };
    match address(bytes) {
        // its port went too
        Some(text) if bytes == PLACEHOLDER => text,
        Some(text) if text.contains(':') => format!("[{text}]:{port}"),
        Some(text) => format!("{text}:{port}"),
        None => format!("?:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!((state_name(7), state_name(0), state_name(99)), ("CLOSE".into(), "0".into(), "99".into()));
        assert_eq!(endpoint(&[127, 0, 0, 1], 80), "127.0.0.1:80");
        assert_eq!(endpoint(&[0; 16], 1), "[::]:1");
        assert_eq!(endpoint(&[], 5), "?:5");
        assert_eq!(endpoint(&[127, 0, 0, 1], 0), "127.0.0.1:?");
        assert_eq!(endpoint(PLACEHOLDER, 0), "<redacted>");
    }
}

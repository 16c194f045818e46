//! Names and addresses of sockets.

use std::net::{Ipv4Addr, Ipv6Addr};

use systape_format::redact::PLACEHOLDER;

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

/// An address of 4 or 16 bytes as text, or the word for a redacted one; None for anything else.
pub fn address(bytes: &[u8]) -> Option<String> {
    if bytes == PLACEHOLDER {
        return Some(String::from_utf8_lossy(PLACEHOLDER).into_owned());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).to_string())
}

/// `10.0.0.1:80`, `[::1]:80`, `?:80`; `10.0.0.1:?` if the port is unknown or not chosen yet.
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
        assert_eq!(endpoint(&[127, 0, 0, 1], 80), "127.0.0.1:80");
        assert_eq!(endpoint(&[0; 16], 1), "[::]:1");
        assert_eq!(endpoint(&[], 5), "?:5");
        assert_eq!(endpoint(&[127, 0, 0, 1], 0), "127.0.0.1:?");
        assert_eq!(endpoint(PLACEHOLDER, 0), "<redacted>");
    }
}

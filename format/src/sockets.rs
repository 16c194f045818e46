//! Names of sockets, as descriptors have them: a protocol's word and what is known of its ends in brackets. Behind addresses of another
//! network namespace than that of process 1, where it was recorded, its number follows: `TCP:[10.0.0.1:80]@4026532280`. So sockets with
//! equal addresses have different names.

/// The words they begin with; `socket` for a protocol without one of its own.
const WORDS: [&[u8]; 14] = [
    b"socket",
    b"TCP",
    b"TCPv6",
    b"UDP",
    b"UDPv6",
    b"UDPLITE",
    b"UDPLITEv6",
    b"RAW",
    b"RAWv6",
    b"PING",
    b"PINGv6",
    b"UNIX",
    b"UNIX-STREAM",
    b"NETLINK",
];

/// Splits the name of a socket into its word and what the brackets have; None: a descriptor of something else.
///
/// ```
/// # use systape_format::sockets::split;
/// assert_eq!(split(b"TCP:[10.0.0.1:80]"), Some((&b"TCP"[..], &b"10.0.0.1:80"[..])));
/// assert_eq!(split(b"TCP:[10.0.0.1:80]@4026532280"), split(b"TCP:[10.0.0.1:80]"));
/// assert_eq!(split(b"/tmp/TCP:[10.0.0.1:80]"), None);
/// ```
pub fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, _) = apart(name);
    let colon = name.iter().position(|&byte| byte == b':')?;
    let (word, inside) = (&name[..colon], name[colon..].strip_prefix(b":[")?.strip_suffix(b"]")?);
    WORDS.contains(&word).then_some((word, inside))
}

/// The number of the network namespace in the name of a socket, that of `net:[4026532280]` in /proc/PID/ns; None: it is that of process 1,
/// the name has no addresses, or the recorder did not note it.
///
/// ```
/// # use systape_format::sockets::namespace;
/// assert_eq!(namespace(b"TCP:[10.0.0.1:80]@4026532280"), Some(4026532280));
/// assert_eq!((namespace(b"TCP:[10.0.0.1:80]"), namespace(b"/a@7")), (None, None));
/// ```
pub fn namespace(name: &[u8]) -> Option<u32> {
    split(name).and_then(|_| apart(name).1)
}

/// What a name has behind its addresses for their network namespace: `@4026532280`; nothing for that of process 1.
///
/// ```
/// # use systape_format::sockets::{namespace, namespace_suffix};
/// let name = format!("TCP:[10.0.0.1:80]{}", namespace_suffix(Some(4026532280)));
/// assert_eq!((namespace(name.as_bytes()), namespace_suffix(None)), (Some(4026532280), String::new()));
/// ```
pub fn namespace_suffix(namespace: Option<u32>) -> String {
    namespace.map_or_else(String::new, |number| format!("@{number}"))
}

/// The name without the number of the namespace, and that number.
fn apart(name: &[u8]) -> (&[u8], Option<u32>) {
    let at = name.iter().rposition(|byte| *byte == b'@').filter(|at| name[..*at].ends_with(b"]"));
    let number = at.and_then(|at| std::str::from_utf8(&name[at + 1..]).ok()?.parse().ok().map(|number| (at, number)));
    number.map_or((name, None), |(at, number)| (&name[..at], Some(number)))
}

/// The port of an end of TCP or UDP; None: it has none.
///
/// ```
/// # use systape_format::sockets::port;
/// assert_eq!((port(b"10.0.0.1:80"), port(b"[::1]:443"), port(b"17")), (Some(80), Some(443), None));
/// ```
pub fn port(end: &[u8]) -> Option<u16> {
    let colon = end.iter().rposition(|byte| *byte == b':')?;
    std::str::from_utf8(&end[colon + 1..]).ok()?.parse().ok()
}

/// The address of such an end, without its port.
///
/// ```
/// # use systape_format::sockets::address;
/// assert_eq!((address(b"10.0.0.1:80"), address(b"[::1]:443")), (&b"10.0.0.1"[..], &b"[::1]"[..]));
/// ```
pub fn address(end: &[u8]) -> &[u8] {
    end.iter().rposition(|byte| *byte == b':').map_or(end, |colon| &end[..colon])
}

/// The two ends in what [`split`] finds between the brackets: the socket's own, and the other one if it has one. The path of a UNIX
/// socket, in quotes behind them, is left out.
///
/// ```
/// # use systape_format::sockets::ends;
/// assert_eq!(ends(b"1.1.1.1:1->2.2.2.2:2"), (&b"1.1.1.1:1"[..], Some(&b"2.2.2.2:2"[..])));
/// assert_eq!(ends(b"17,\"/run/a->b\""), (&b"17"[..], None));
/// ```
pub fn ends(inside: &[u8]) -> (&[u8], Option<&[u8]>) {
    let ends = inside.split(|byte| *byte == b',').next().unwrap_or_default();
    match ends.windows(2).position(|two| two == b"->") {
        Some(at) => (&ends[..at], Some(&ends[at + 2..])),
        None => (ends, None),
    }
}

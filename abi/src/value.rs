//! Texts of single values: bytes, socket addresses, modes, devices.
//!
//! Input is whatever a traced program passed, so it may be short, absurd or hostile; every function accepts any bytes, and what they
//! write is safe to show on a terminal.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::flags::{FAMILY, open_flags};
use crate::uapi::{AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX, AF_VSOCK};
use crate::{Abi, FlagStyle};

/// A socket address of any family, given as the bytes of its `struct sockaddr`: `{AF_INET, 127.0.0.1:80}`, `{AF_INET6, [::1]:80}`
/// (with `%scope` if there is one), `{AF_UNIX, /run/x.sock}`, `{AF_UNIX, @name}` for an abstract and `{AF_UNIX}` for no name,
/// `{AF_NETLINK, pid 0, groups 0}`, hex bytes for other families. `?` stands for a part that is missing.
pub fn sockaddr_text(bytes: &[u8]) -> String {
    let Some((family, rest)) = bytes.split_first_chunk::<2>() else {
        return "{?}".to_owned();
    };
    // numbers in the header of a sockaddr are of the host that recorded, and all our ABIs are little-endian
    let family = u16::from_le_bytes(*family);
    let detail = match family {
        AF_UNIX => unix_name(rest),
        AF_INET => Some(inet(rest).unwrap_or_else(unknown)),
        AF_INET6 => Some(inet6(rest).unwrap_or_else(unknown)),
        AF_NETLINK => Some(netlink(rest).unwrap_or_else(unknown)),
        AF_PACKET => Some(packet(rest).unwrap_or_else(unknown)),
        AF_VSOCK => Some(vsock(rest).unwrap_or_else(unknown)),
        _ => hex(rest),
    };
    let name = FAMILY.name(u64::from(family)).map_or_else(|| format!("AF_{family}"), str::to_owned);
    match detail {
        Some(detail) => format!("{{{name}, {detail}}}"),
        None => format!("{{{name}}}"),
    }
}

fn unknown() -> String {
    "?".to_owned()
}

/// `sun_path`: ended by null or the length; a null first byte says the name is abstract and the rest, nulls included, is it.
fn unix_name(rest: &[u8]) -> Option<String> {
    let mut out = String::new();
    match rest.split_first() {
        None => return None,
        Some((0, name)) => {
            // an all-zero buffer is what "no name" looks like when the caller passed the length of the whole structure
            if name.iter().all(|&b| b == 0) {
                return None;
            }
            out.push('@');
            escape(name, &mut out);
        }
        Some(_) => escape(rest.split(|&b| b == 0).next().unwrap_or(rest), &mut out),
    }
    Some(out)
}

/// `sin_port` big-endian, `sin_addr`.
fn inet(rest: &[u8]) -> Option<String> {
    let port = u16::from_be_bytes(*take(rest, 0)?);
    Some(format!("{}:{port}", Ipv4Addr::from(*take::<4>(rest, 2)?)))
}

/// `sin6_port` big-endian, `sin6_flowinfo`, `sin6_addr`, `sin6_scope_id`; the last was added later and may be absent.
fn inet6(rest: &[u8]) -> Option<String> {
    let port = u16::from_be_bytes(*take(rest, 0)?);
    let address = Ipv6Addr::from(*take::<16>(rest, 6)?);
    Some(match take(rest, 22).map(|b| u32::from_le_bytes(*b)) {
        Some(scope) if scope != 0 => format!("[{address}%{scope}]:{port}"),
        _ => format!("[{address}]:{port}"),
    })
}

/// `nl_pad`, `nl_pid`, `nl_groups` (include/uapi/linux/netlink.h).
fn netlink(rest: &[u8]) -> Option<String> {
    let pid = u32::from_le_bytes(*take(rest, 2)?);
    let groups = u32::from_le_bytes(*take(rest, 6)?);
    Some(if groups == 0 { format!("pid {pid}, groups 0") } else { format!("pid {pid}, groups {groups:#x}") })
}

/// `sll_protocol` big-endian, `sll_ifindex` (include/uapi/linux/if_packet.h).
fn packet(rest: &[u8]) -> Option<String> {
    let protocol = u16::from_be_bytes(*take(rest, 0)?);
    let index = i32::from_le_bytes(*take(rest, 2)?);
    Some(format!("protocol {protocol:#06x}, ifindex {index}"))
}

/// `svm_reserved1`, `svm_port`, `svm_cid` (include/uapi/linux/vm_sockets.h).
fn vsock(rest: &[u8]) -> Option<String> {
    let port = u32::from_le_bytes(*take(rest, 2)?);
    let cid = u32::from_le_bytes(*take(rest, 6)?);
    Some(format!("cid {cid}, port {port}"))
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// `0x0102…`: at most 14 bytes, the size of a `struct sockaddr` without its family; `None` when there are none.
fn hex(bytes: &[u8]) -> Option<String> {
    const SHOWN: usize = 14;
    if bytes.is_empty() {
        return None;
    }
    let mut out = String::from("0x");
    for byte in &bytes[..bytes.len().min(SHOWN)] {
        let _ = write!(out, "{byte:02x}");
    }
    if bytes.len() > SHOWN {
        out.push('…');
    }
    Some(out)
}

/// Appends `bytes` as the inside of a C string literal that is safe on a terminal and can be read back unambiguously: printable
/// UTF-8 stays, `\n \t \r \\ \"` are written so, other control bytes and invalid UTF-8 as `\xNN` per byte. So are the invisible
/// characters that change how their neighbours look (bidirectional marks, zero-width and other format characters).
///
/// ```
/// let mut out = String::new();
/// systape_abi::escape(b"a\x1b[31m\n\xff\"", &mut out);
/// assert_eq!(out, r#"a\x1b[31m\n\xff\""#);
/// ```
pub fn escape(bytes: &[u8], out: &mut String) {
    out.reserve(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                _ if is_unsafe(c) => hex_bytes(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
                _ => out.push(c),
            }
        }
        hex_bytes(chunk.invalid(), out);
    }
}

pub(crate) fn hex_bytes(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// Whether a terminal or a browser acts on `c` or hides it: general categories Cc, Cf, Zl, Zp and Co of Unicode 16, the fillers and variation
/// selectors that are drawn as nothing, and noncharacters.
pub fn is_unsafe(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(u32::from(c),
        0x80..=0x9f | 0xad | 0x34f | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x115f..=0x1160 | 0x17b4..=0x17b5
        | 0x180b..=0x180f | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xe000..=0xf8ff | 0xfdd0..=0xfdef
        | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3
        | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff | 0xf0000..=0x10_ffff)
        || u32::from(c) & 0xfffe == 0xfffe
}

/// File permissions in octal with a leading zero: `0644`, `0` for none, file type bits included if set (`0100644`).
pub fn mode_text(mode: u32) -> String {
    if mode == 0 { "0".to_owned() } else { format!("0{mode:o}") }
}

/// A device as `major:minor`, from the 32 bits the kernel passes to and from programs (`new_encode_dev`, include/linux/kdev_t.h)
/// or the 64 bits of glibc's `dev_t`, which agree where both are defined.
pub fn dev_text(dev: u64) -> String {
    let major = (dev >> 8 & 0xfff) | (dev >> 32 & 0xffff_f000);
    let minor = (dev & 0xff) | (dev >> 12 & 0xffff_ff00);
    format!("{major}:{minor}")
}

/// `RESOLVE_` bits of `struct open_how` (include/uapi/linux/openat2.h).
const RESOLVE: [(u64, &str); 6] = [
    (0x01, "RESOLVE_NO_XDEV"),
    (0x02, "RESOLVE_NO_MAGICLINKS"),
    (0x04, "RESOLVE_NO_SYMLINKS"),
    (0x08, "RESOLVE_BENEATH"),
    (0x10, "RESOLVE_IN_ROOT"),
    (0x20, "RESOLVE_CACHED"),
];

/// The `struct open_how` of an `openat2`: `{flags: O_RDONLY|O_CLOEXEC, mode: 0644, resolve: RESOLVE_BENEATH}`, zero mode and
/// resolve left out; `{?}` when fewer than the 24 bytes of its first version were read.
pub fn open_how_text(abi: Abi, bytes: &[u8], style: FlagStyle) -> String {
    let field = |at| take::<8>(bytes, at).map(|b| u64::from_le_bytes(*b));
    let (Some(flags), Some(mode), Some(resolve)) = (field(0), field(8), field(16)) else {
        return "{?}".to_owned();
    };
    let mut out = String::from("{flags: ");
    open_flags(abi).write_text(flags, style, &mut out);
    if mode != 0 {
        let _ = write!(out, ", mode: 0{mode:o}");
    }
    if resolve != 0 {
        let mut names: Vec<String> =
            RESOLVE.iter().filter(|(bit, _)| resolve & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
        let rest = RESOLVE.iter().fold(resolve, |rest, (bit, _)| rest & !bit);
        if rest != 0 {
            names.push(format!("{rest:#x}"));
        }
        let _ = write!(out, ", resolve: {}", names.join("|"));
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut out = String::new();
        escape(bytes, &mut out);
        out
    }

    #[test]
    fn inet_addresses() {
        assert_eq!(sockaddr_text(b"\x02\0\0\x50\x7f\0\0\x01\0\0\0\0\0\0\0\0"), "{AF_INET, 127.0.0.1:80}");
        let mut v6 = vec![10, 0, 0x01, 0xbb, 0, 0, 0, 0];
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(sockaddr_text(&v6), "{AF_INET6, [::1]:443}");
        v6.extend([3, 0, 0, 0]);
        assert_eq!(sockaddr_text(&v6), "{AF_INET6, [::1%3]:443}");
    }

    #[test]
    fn unix_addresses() {
        assert_eq!(sockaddr_text(b"\x01\0/run/x.sock\0junk"), "{AF_UNIX, /run/x.sock}");
        assert_eq!(sockaddr_text(b"\x01\0\0name"), "{AF_UNIX, @name}");
        assert_eq!(sockaddr_text(b"\x01\0\0a\0b"), r"{AF_UNIX, @a\x00b}");
        assert_eq!(sockaddr_text(b"\x01\0"), "{AF_UNIX}");
        assert_eq!(sockaddr_text(b"\x01\0\0\0\0"), "{AF_UNIX}");
        assert_eq!(sockaddr_text(b"\x01\0/a\x1b]0;x\x07"), r"{AF_UNIX, /a\x1b]0;x\x07}");
    }

    #[test]
    fn other_families() {
        assert_eq!(sockaddr_text(&[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "{AF_NETLINK, pid 0, groups 0}");
        assert_eq!(sockaddr_text(&[16, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0]), "{AF_NETLINK, pid 7, groups 0x3}");
        assert_eq!(sockaddr_text(&[40, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]), "{AF_VSOCK, cid 2, port 4}");
        assert_eq!(sockaddr_text(&[200, 0, 1, 2]), "{AF_200, 0x0102}");
        assert_eq!(sockaddr_text(&[0, 0]), "{AF_UNSPEC}");
    }

    #[test]
    fn short_input_is_partial() {
        assert_eq!(sockaddr_text(b""), "{?}");
        assert_eq!(sockaddr_text(b"\x02"), "{?}");
        assert_eq!(sockaddr_text(b"\x02\0\0\x50\x7f"), "{AF_INET, ?}");
        assert_eq!(sockaddr_text(b"\x0a\0\0\x50\x7f"), "{AF_INET6, ?}");
        assert_eq!(sockaddr_text(b"\x10\0\0"), "{AF_NETLINK, ?}");
    }

    #[test]
    fn escapes_what_a_terminal_would_act_on() {
        assert_eq!(escaped("naïve 日本 ok".as_bytes()), "naïve 日本 ok");
        assert_eq!(escaped(b"\n\t\r\\\""), r#"\n\t\r\\\""#);
        assert_eq!(escaped(b"\0\x7f"), r"\x00\x7f");
        assert_eq!(escaped("\u{202e}".as_bytes()), r"\xe2\x80\xae");
        assert_eq!(escaped("\u{9b}".as_bytes()), r"\xc2\x9b");
        assert_eq!(escaped("\u{feff}\u{e0041}".as_bytes()), r"\xef\xbb\xbf\xf3\xa0\x81\x81");
        assert_eq!(escaped(b"\xe6\x97"), r"\xe6\x97");
    }

    proptest::proptest! {
        #[test]
        fn any_address_has_a_printable_text(mut bytes: Vec<u8>, family in 0_u8..50) {
            if let Some(first) = bytes.first_mut() {
                *first = family;
            }
            let text = sockaddr_text(&bytes);
            proptest::prop_assert!(text.starts_with('{') && text.ends_with('}') && !text.chars().any(is_unsafe), "{}", text);
        }

        #[test]
        fn escaped_text_has_no_control_characters(bytes: Vec<u8>) {
            proptest::prop_assert!(!escaped(&bytes).chars().any(is_unsafe));
        }
    }

    #[test]
    fn modes_and_devices() {
        assert_eq!(mode_text(0o644), "0644");
        assert_eq!(mode_text(0), "0");
        assert_eq!(mode_text(0o100_755), "0100755");
        assert_eq!(dev_text(0x103), "1:3");
        assert_eq!(dev_text(0x1000_0805), "8:65541");
    }

    #[test]
    fn open_how() {
        let how: Vec<u8> = [0o2000000_u64, 0, 8].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(
            open_how_text(Abi::X86_64, &how, FlagStyle::FULL),
            "{flags: O_RDONLY|O_CLOEXEC, resolve: RESOLVE_BENEATH}"
        );
        assert_eq!(open_how_text(Abi::X86_64, &how[..20], FlagStyle::FULL), "{?}");
    }
}

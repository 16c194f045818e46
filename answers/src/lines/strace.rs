//! A call in strace's syntax, in the pieces that a line is made of when other threads' lines come between them.
//!
//! What a call shows when it begins and what only its end shows follows strace: values that the kernel writes come last. Strings are
//! as long as the tape has them; `...` follows one that was longer.

use std::io::Write as _;

use systape_abi::{ArgKind, FlagStyle, RetKind};
use systape_format::model::{ByteStatus, Captured};
use systape_format::redact::PLACEHOLDER;

use super::row::{self, CallOutcome, Duration};
use super::text::unread;
use super::value::{self, ValueScratch};
use systape_events::calls::CallInfo;
use systape_events::load::{FdPath, Loaded};
use systape_events::values::num;

/// The pieces of a call's line, in order, without what stands between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// `read(3, `: the name and what is known when it begins.
    pub begin: Vec<u8>,
    /// `"text", 4096`: the other arguments.
    pub rest: Vec<u8>,
    /// `4 <0.000012>`: the result, and how long it took if that is known. Empty: it has not returned.
    pub result: Vec<u8>,
}

/// The pieces of `row`; `files`: with the files of descriptors, as `strace -y`.
pub fn pieces(scratch: &mut ValueScratch, segment: &Loaded, row: usize, files: bool) -> Pieces {
    let call = segment.call(row);
    let mut pieces = Pieces::default();
    pieces.begin.extend_from_slice(call.name.as_bytes());
    pieces.begin.push(b'(');
    let mut line = Line { scratch, segment, row, files };
    match segment.args.args.get(row) {
        Some(args) => line.arguments(call, args, &mut pieces),
        None if call.args.is_empty() => {}
        // the block of arguments is absent or damaged
        None => pieces.begin.push(b'?'),
    }
    line.result(call, &mut pieces.result);
    pieces
}

struct Line<'a> {
    scratch: &'a mut ValueScratch,
    segment: &'a Loaded,
    row: usize,
    files: bool,
}

/// Whether the kernel writes it, so that it is not known before the call ends.
fn comes_late(kind: ArgKind) -> bool {
    matches!(kind, ArgKind::BufOut | ArgKind::SockaddrOut { .. } | ArgKind::FdPair | ArgKind::Out(_) | ArgKind::Left(_))
}

impl Line<'_> {
    fn arguments(&mut self, call: &CallInfo, args: &[u64; 6], pieces: &mut Pieces) {
        let shown = |at: &usize| !matches!(call.args[*at].kind, ArgKind::HighHalf) && !unread(call, *at, args);
        let mut order: Vec<usize> = (0..call.args.len()).filter(shown).collect();
        let clone = call.name == "clone";
        if clone {
            order = clone_order(call, args);
        }
        let mut late = false;
        for (place, at) in order.iter().enumerate() {
            let separator: &[u8] = if place > 0 { b", " } else { b"" };
            // it belongs to what is before it
            if late { &mut pieces.rest } else { &mut pieces.begin }.extend_from_slice(separator);
            late |= comes_late(call.args[*at].kind);
            let out = if late { &mut pieces.rest } else { &mut pieces.begin };
            if clone {
                out.extend_from_slice(clone_label(&call.args[*at].name));
            }
            self.argument(out, call, *at, args);
        }
    }

    fn argument(&mut self, out: &mut Vec<u8>, call: &CallInfo, at: usize, args: &[u64; 6]) {
        let kind = call.args[at].kind;
        let found = self.segment.captured(self.row).iter().find(|value| usize::from(value.arg) == at);
        if found.is_some_and(|found| self.captured(out, at, found)) {
            return;
        }
        if found.is_none() && value::is_empty_array(self.segment, self.row, kind) {
            return out.extend_from_slice(b"[]");
        }
        if self.segment.args.is_unknown(self.row, at) {
            return out.push(b'?');
        }
        let number = value::narrow(kind, args[at]);
        match kind {
            _ if value::flag_set(call, at, args).is_some() => {
                value::scalar(out, self.scratch, call, at, args, FlagStyle::FULL)
            }
            ArgKind::Mode => octal(out, number),
            ArgKind::Dev => device(out, number),
            ArgKind::Hex | ArgKind::Hex32 => num::hex(out, number),
            kind if number == 0 && is_pointer(kind) => out.extend_from_slice(b"NULL"),
            _ if at == 5 && call.name == "mmap" => num::hex(out, number),
            _ => value::scalar(out, self.scratch, call, at, args, FlagStyle::FULL),
        }
        if self.files
            && let FdPath::Known(path) = self.segment.fd_path(self.row, at)
        {
            file(out, path);
        }
    }

    /// Appends captured memory; false: there is none.
    fn captured(&mut self, out: &mut Vec<u8>, at: usize, found: &Captured) -> bool {
        if found.status == ByteStatus::Redacted {
            quoted(out, PLACEHOLDER, true);
            return true;
        }
        let (bytes, whole) = (&*found.bytes, found.status.is_whole());
        match self.segment.call(self.row).args[at].kind {
            _ if !found.status.has_bytes() => return false,
            ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::BufIn { .. } | ArgKind::BufOut => {
                quoted(out, bytes, whole)
            }
            ArgKind::Argv | ArgKind::Envp => words(out, bytes, whole),
            ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } => address(out, bytes),
            ArgKind::OpenHow { .. } => {
                let text = systape_abi::open_how_text(self.segment.call(self.row).abi, bytes, FlagStyle::FULL);
                out.extend_from_slice(text.replace(": ", "=").as_bytes());
            }
            _ => {
                let place = (self.row, at);
                return value::captured(out, self.scratch, self.segment, place, found, FlagStyle::FULL);
            }
        }
        true
    }

    fn result(&mut self, call: &CallInfo, out: &mut Vec<u8>) {
        let known = |out: &mut Vec<u8>, errno: u16| {
            match systape_abi::errno_name(errno) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => out.extend_from_slice(format!("ERRNO_{errno}").as_bytes()),
            }
            let _ = write!(out, " ({})", systape_abi::errno_text(errno));
        };
        match row::outcome(self.segment, self.row) {
            CallOutcome::InFlight => return,
            CallOutcome::Ret(ret) => self.returned(out, call, ret),
            CallOutcome::Errno(errno) => {
                out.extend_from_slice(b"-1 ");
                known(out, errno);
            }
            CallOutcome::Restart(errno) => {
                out.extend_from_slice(b"? ");
                known(out, errno);
            }
            CallOutcome::Killed | CallOutcome::NoReturn => return out.push(b'?'),
            CallOutcome::NotRecorded => out.push(b'?'),
        }
        if let Duration::Exact(ns) = row::duration(self.segment, self.row) {
            let us = ns / 1000 + u64::from(ns % 1000 >= 500);
            let _ = write!(out, " <{}.{:06}>", us / 1_000_000, us % 1_000_000);
        }
    }

    fn returned(&mut self, out: &mut Vec<u8>, call: &CallInfo, ret: i64) {
        match call.ret {
            RetKind::Ptr | RetKind::Hex => num::hex(out, ret as u64),
            RetKind::Timeout if ret == 0 => out.extend_from_slice(b"0 (Timeout)"),
            RetKind::Mode => octal(out, u64::from(ret as u32)),
            _ => num::signed(out, ret),
        }
        if self.files
            && let Some(path) = row::returned_path(self.segment, self.row, ret)
        {
            file(out, &path);
        }
        let after = value::after(self.scratch, self.segment, self.row);
        if !after.is_empty() {
            out.extend_from_slice(b" (");
            out.extend_from_slice(&after);
            out.push(b')');
        }
    }
}

/// The arguments of clone that its flags make the kernel read, the stack first.
fn clone_order(call: &CallInfo, args: &[u64; 6]) -> Vec<usize> {
    const SETTLS: u64 = 0x8_0000;
    const PARENT_SETTID: u64 = 0x10_0000;
    const CHILD_TID: u64 = 0x20_0000 | 0x100_0000;
    let at = |name: &str| call.args.iter().position(|arg| arg.name == name);
    let flags = at("clone_flags").map_or(0, |at| args[at]);
    let wanted = [
        ("newsp", u64::MAX),
        ("clone_flags", u64::MAX),
        ("parent_tidptr", PARENT_SETTID),
        ("tls", SETTLS),
        ("child_tidptr", CHILD_TID),
    ];
    let read = |(_, bits): &(&str, u64)| *bits == u64::MAX || flags & bits != 0;
    wanted.into_iter().filter(read).filter_map(|(name, _)| at(name)).collect()
}

/// How strace names an argument of clone.
fn clone_label(name: &str) -> &'static [u8] {
    match name {
        "newsp" => b"child_stack=",
        "clone_flags" => b"flags=",
        "parent_tidptr" => b"parent_tid=",
        "child_tidptr" => b"child_tidptr=",
        _ => b"tls=",
    }
}

/// Whether 0 is no value of it but a pointer to nothing.
fn is_pointer(kind: ArgKind) -> bool {
    matches!(
        kind,
        ArgKind::Ptr
            | ArgKind::Futex
            | ArgKind::Path
            | ArgKind::FileName
            | ArgKind::Str
            | ArgKind::BufIn { .. }
            | ArgKind::BufOut
            | ArgKind::Iovec { .. }
            | ArgKind::SockaddrIn { .. }
            | ArgKind::SockaddrOut { .. }
            | ArgKind::Msghdr
            | ArgKind::OpenHow { .. }
            | ArgKind::CloneArgs { .. }
            | ArgKind::FdPair
            | ArgKind::Argv
            | ArgKind::Envp
            | ArgKind::In(_)
            | ArgKind::Out(_)
            | ArgKind::InOut(_)
            | ArgKind::Left(_)
    )
}

/// `0644`; at least three digits.
fn octal(out: &mut Vec<u8>, mode: u64) {
    let _ = if mode == 0 { write!(out, "000") } else { write!(out, "0{mode:02o}") };
}

/// `makedev(0x8, 0x1)`.
fn device(out: &mut Vec<u8>, dev: u64) {
    let text = systape_abi::dev_text(dev);
    let mut numbers = text.split(':').map(|number| number.parse::<u64>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let _ = if (major, minor) == (0, 0) { write!(out, "0") } else { write!(out, "makedev({major:#x}, {minor:#x})") };
}

/// `</etc/passwd>`. As in strace, what would end it is written as a number.
fn file(out: &mut Vec<u8>, path: &[u8]) {
    out.push(b'<');
    escaped(out, path, |byte| matches!(byte, b'<' | b'>'));
    out.push(b'>');
}

/// `"text"`; `...` follows one that is not whole.
fn quoted(out: &mut Vec<u8>, bytes: &[u8], whole: bool) {
    out.push(b'"');
    escaped(out, bytes, |_| false);
    out.extend_from_slice(if whole { b"\"" } else { b"\"..." });
}

/// Bytes as C writes them, numbers in octal: as short as what follows allows. So are those that `also` names.
fn escaped(out: &mut Vec<u8>, bytes: &[u8], also: impl Fn(u8) -> bool) {
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x0b => out.extend_from_slice(b"\\v"),
            0x0c => out.extend_from_slice(b"\\f"),
            byte if (0x20..0x7f).contains(byte) && !also(*byte) => out.push(*byte),
            _ => {
                let digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                let _ = if digit { write!(out, "\\{byte:03o}") } else { write!(out, "\\{byte:o}") };
            }
        }
    }
}

/// `["ls", "-l"]` from NUL-separated bytes.
fn words(out: &mut Vec<u8>, bytes: &[u8], whole: bool) {
    out.push(b'[');
    let mut words = bytes.split(|byte| *byte == 0).peekable();
    let mut first = true;
    while let Some(word) = words.next() {
        if !std::mem::take(&mut first) {
            out.extend_from_slice(b", ");
        }
        quoted(out, word, whole || words.peek().is_some());
    }
    out.push(b']');
}

/// A socket's address. Of families that are not named here the bytes are shown.
fn address(out: &mut Vec<u8>, bytes: &[u8]) {
    let half = |at: usize| bytes.get(at..at + 2).and_then(<[u8]>::first_chunk::<2>).copied();
    let word = |at: usize| bytes.get(at..at + 4).and_then(<[u8]>::first_chunk::<4>).copied();
    let Some(family) = half(0).map(u16::from_ne_bytes) else { return quoted(out, bytes, true) };
    match (family, half(2).map(u16::from_be_bytes)) {
        (1, _) => {
            out.extend_from_slice(b"{sa_family=AF_UNIX");
            match bytes.get(2..) {
                Some([0, name @ ..]) if !name.is_empty() => {
                    out.extend_from_slice(b", sun_path=@");
                    quoted(out, name, true);
                }
                Some(path) if !path.is_empty() => {
                    out.extend_from_slice(b", sun_path=");
                    quoted(out, path.split(|byte| *byte == 0).next().unwrap_or_default(), true);
                }
                _ => {}
            }
            out.push(b'}');
        }
        (2, Some(port)) if bytes.len() >= 8 => {
            let ip = std::net::Ipv4Addr::from(word(4).unwrap_or_default());
            let _ = write!(out, "{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr(\"{ip}\")}}");
        }
        (10, Some(port)) if bytes.len() >= 24 => {
            let ip = bytes[8..24].first_chunk::<16>().copied().unwrap_or_default();
            let (flow, scope) = (word(4).map(u32::from_be_bytes), word(24).map(u32::from_ne_bytes));
            let _ = write!(
                out,
                "{{sa_family=AF_INET6, sin6_port=htons({port}), sin6_flowinfo=htonl({}), inet_pton(AF_INET6, \"{}\", &sin6_addr), sin6_scope_id={}}}",
                flow.unwrap_or(0),
                std::net::Ipv6Addr::from(ip),
                scope.unwrap_or(0)
            );
        }
        (16, _) if bytes.len() >= 12 => {
            let (pid, groups) = (word(4).map(u32::from_ne_bytes), word(8).map(u32::from_ne_bytes));
            let _ = write!(
                out,
                "{{sa_family=AF_NETLINK, nl_pid={}, nl_groups={:08x}}}",
                pid.unwrap_or(0).cast_signed(),
                groups.unwrap_or(0)
            );
        }
        (0, _) => {
            out.extend_from_slice(b"{sa_family=AF_UNSPEC, sa_data=");
            quoted(out, &bytes[2..], true);
            out.push(b'}');
        }
        (family, _) => {
            let _ = write!(out, "{{sa_family={family:#x}, sa_data=");
            quoted(out, &bytes[2..], true);
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_written_as_in_c() {
        let of = |bytes: &[u8]| text(|out| quoted(out, bytes, true));
        assert_eq!(of(b"\x7fELF\x02\x01\x01\x03\0"), r#""\177ELF\2\1\1\3\0""#);
        assert_eq!(of(b"\x001\x1b[\n\"\\\xff"), r#""\0001\33[\n\"\\\377""#);
        assert_eq!(text(|out| quoted(out, b"a", false)), r#""a"..."#);
        assert_eq!(text(|out| words(out, b"sh\0-c\0\0x", false)), r#"["sh", "-c", "", "x"...]"#);
        assert_eq!(text(|out| file(out, b"/a>b")), r"</a\76b>");
    }

    #[test]
    fn numbers_are_written_as_strace_does() {
        let mode = |mode| text(|out| octal(out, mode));
        assert_eq!([mode(0), mode(0o22), mode(0o644), mode(0o100_600)], ["000", "022", "0644", "0100600"]);
        assert_eq!(text(|out| device(out, 0x801)), "makedev(0x8, 0x1)");
    }

    #[test]
    fn addresses_have_the_names_of_their_fields() {
        let of = |bytes: &[u8]| text(|out| address(out, bytes));
        assert_eq!(
            of(&[2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            r#"{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}"#
        );
        assert_eq!(of(b"\x01\0/run/x\0garbage"), r#"{sa_family=AF_UNIX, sun_path="/run/x"}"#);
        assert_eq!(of(b"\x01\0\0abs"), r#"{sa_family=AF_UNIX, sun_path=@"abs"}"#);
        assert_eq!(of(b"\x01\0"), "{sa_family=AF_UNIX}");
        let mut six = vec![10, 0, 0, 53, 0, 0, 0, 0];
        six.extend([0; 15]);
        six.extend([1, 0, 0, 0, 0]);
        assert!(of(&six).contains(r#"inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}"#));
        assert_eq!(of(b"\x11\0ab"), r#"{sa_family=0x11, sa_data="ab"}"#);
        assert_eq!(of(b""), r#""""#);
    }
}

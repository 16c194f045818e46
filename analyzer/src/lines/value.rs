//! One argument of a call as text: common to the listing, CSV and the text in JSON.

use rustc_hash::FxHashMap;
use systape_abi::{Abi, ArgKind, FlagSet, FlagStyle, How};
use systape_format::model::{ByteStatus, Captured};
use systape_format::redact::PLACEHOLDER;

use crate::table::calls::CallInfo;
use crate::values::num;

/// `dfd` of the current directory.
pub(crate) const AT_FDCWD: i32 = systape_abi::AT_FDCWD;

/// Reused buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// For functions of systape-abi, which write to a String.
    pub text: String,
    /// Texts of flag values seen so far: (set, value) → text. A tape repeats a few dozen of them millions of times.
    flags: FxHashMap<(usize, u64, bool), Box<str>>,
}

/// Most distinct values kept: more are garbage passed by some program.
const FLAG_TEXTS: usize = 4096;

impl Scratch {
    /// Appends the text of `value` in `set`.
    pub(crate) fn flags(&mut self, out: &mut Vec<u8>, set: &'static FlagSet, value: u64, style: FlagStyle) {
        // a set is a static, so its address names it
        let key = (std::ptr::from_ref(set).addr(), value, style.prefix);
        if let Some(text) = self.flags.get(&key) {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        self.text.clear();
        set.write_text(value, style, &mut self.text);
        out.extend_from_slice(self.text.as_bytes());
        if self.flags.len() < FLAG_TEXTS {
            self.flags.insert(key, self.text.as_str().into());
        }
    }

    /// Appends `bytes`, escaped for a terminal.
    pub(crate) fn escaped(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        if bytes.iter().all(|b| (0x20..0x7f).contains(b) && *b != b'"' && *b != b'\\') {
            out.extend_from_slice(bytes);
            return;
        }
        self.text.clear();
        systape_abi::escape(bytes, &mut self.text);
        out.extend_from_slice(self.text.as_bytes());
    }

    /// Appends the name of a file. In that of a socket a path is quoted and escaped already.
    pub(crate) fn file(&mut self, out: &mut Vec<u8>, name: &[u8]) {
        if name.starts_with(b"UNIX") && name.iter().all(|byte| (0x20..0x7f).contains(byte)) {
            out.extend_from_slice(name);
        } else {
            self.escaped(out, name);
        }
    }

    /// Appends `"bytes"`, with `...` after it when they are not whole.
    fn quoted(&mut self, out: &mut Vec<u8>, bytes: &[u8], whole: bool) {
        out.push(b'"');
        self.escaped(out, bytes);
        out.extend_from_slice(if whole { b"\"" } else { b"\"..." });
    }
}

/// The set of named values of argument `at`, if it has one.
pub(crate) fn flag_set(call: &CallInfo, at: usize, args: &[u64; 6]) -> Option<&'static FlagSet> {
    match call.args.get(at)?.kind {
        ArgKind::Flags(set) => Some(set),
        ArgKind::ClockId => Some(systape_abi::clock_flags()),
        ArgKind::SockOpt { level_arg } => systape_abi::sockopt_flags(*args.get(usize::from(level_arg))?),
        _ => None,
    }
}

/// The bits of register `raw` the kernel reads for an argument of `kind`, sign-extended where it is signed.
pub(crate) fn narrow(kind: ArgKind, raw: u64) -> u64 {
    match kind {
        ArgKind::Int
        | ArgKind::Fd
        | ArgKind::DirFd
        | ArgKind::Pid
        | ArgKind::TimeoutMs
        | ArgKind::Signal
        | ArgKind::ClockId => i64::from(raw as u32 as i32) as u64,
        ArgKind::UInt
        | ArgKind::Mode
        | ArgKind::Dev
        | ArgKind::Uid
        | ArgKind::Gid
        | ArgKind::LowHalf
        | ArgKind::HighHalf
        | ArgKind::SockOpt { .. } => raw & 0xffff_ffff,
        ArgKind::Flags(set) if !set.wide => raw & 0xffff_ffff,
        _ => raw,
    }
}

/// Whether perf prints an argument of this kind although it is 0: for descriptors and enumerations 0 is a value.
pub(crate) fn shows_zero(kind: ArgKind) -> bool {
    match kind {
        ArgKind::Fd | ArgKind::DirFd | ArgKind::ClockId => true,
        // PROT_NONE is the point of a call that passes it
        ArgKind::Flags(set) => matches!(set.how, How::Enum) || set.prefix == "PROT_",
        _ => false,
    }
}

/// The 64-bit number with argument `at` as its low half.
pub(crate) fn joined_halves(call: &CallInfo, at: usize, args: &[u64; 6]) -> u64 {
    let is_high = |i: usize| call.args.get(i).is_some_and(|a| matches!(a.kind, ArgKind::HighHalf));
    let high = if is_high(at + 1) { at + 1 } else { at.wrapping_sub(1) };
    let high = if is_high(high) { args.get(high).copied().unwrap_or(0) } else { 0 };
    (args[at] & 0xffff_ffff) | (high & 0xffff_ffff) << 32
}

/// Appends argument `at` without captured data: numbers, flags, pointers.
pub(crate) fn scalar(
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
    call: &CallInfo,
    at: usize,
    args: &[u64; 6],
    style: FlagStyle,
) {
    let kind = call.args[at].kind;
    let value = narrow(kind, args[at]);
    if let Some(set) = flag_set(call, at, args) {
        return scratch.flags(out, set, value, style);
    }
    match kind {
        ArgKind::DirFd if value as i32 == AT_FDCWD => {
            out.extend_from_slice(if style.prefix { b"AT_FDCWD" } else { b"CWD" })
        }
        ArgKind::Int
        | ArgKind::Fd
        | ArgKind::DirFd
        | ArgKind::Pid
        | ArgKind::TimeoutMs
        | ArgKind::Long
        | ArgKind::Offset => {
            num::signed(out, value as i64);
        }
        ArgKind::UInt | ArgKind::ULong | ArgKind::Size | ArgKind::SockOpt { .. } => num::unsigned(out, value),
        ArgKind::Uid | ArgKind::Gid => num::signed(out, i64::from(value as u32 as i32)),
        ArgKind::OffsetPages => num::unsigned(out, value.wrapping_mul(4096)),
        ArgKind::LowHalf => num::signed(out, joined_halves(call, at, args) as i64),
        ArgKind::Mode => out.extend_from_slice(systape_abi::mode_text(value as u32).as_bytes()),
        ArgKind::Dev => out.extend_from_slice(systape_abi::dev_text(value).as_bytes()),
        ArgKind::Signal => {
            let name = systape_abi::signal_name(value as u32);
            let name = if style.prefix { &name } else { name.strip_prefix("SIG").unwrap_or(&name) };
            out.extend_from_slice(if value == 0 { b"0" } else { name.as_bytes() });
        }
        _ => num::hex(out, value),
    }
}

/// Why a value is incomplete.
pub(crate) fn missing(status: ByteStatus) -> Option<&'static str> {
    match status {
        ByteStatus::Whole | ByteStatus::Late => None,
        ByteStatus::Truncated | ByteStatus::LateTruncated => Some("truncated"),
        ByteStatus::NotResident => Some("not-resident"),
        ByteStatus::NoBuffer => Some("no-buffer"),
        ByteStatus::Redacted => Some("redacted"),
    }
}

/// Appends the captured data of argument `at`; false when there is none and the caller must print the pointer.
pub(crate) fn captured(
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
    abi: Abi,
    kind: ArgKind,
    value: &Captured,
    style: FlagStyle,
) -> bool {
    if value.status == ByteStatus::Redacted {
        out.extend_from_slice(PLACEHOLDER);
        return true;
    }
    if !value.status.has_bytes() {
        return false;
    }
    let (bytes, whole) = (value.bytes.as_slice(), value.status.is_whole());
    match kind {
        ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } => {
            out.extend_from_slice(systape_abi::sockaddr_text(bytes).as_bytes())
        }
        ArgKind::OpenHow { .. } => out.extend_from_slice(systape_abi::open_how_text(abi, bytes, style).as_bytes()),
        ArgKind::FdPair => return fd_pair(out, bytes),
        ArgKind::Argv | ArgKind::Envp => argv(out, scratch, bytes, whole),
        ArgKind::Timespec => return seconds(out, bytes, "nsec"),
        ArgKind::Timeval => return seconds(out, bytes, "usec"),
        _ => scratch.quoted(out, bytes, whole),
    }
    true
}

/// `["ls", "-l"]` from NUL-separated bytes.
pub(crate) fn argv(out: &mut Vec<u8>, scratch: &mut Scratch, bytes: &[u8], whole: bool) {
    out.push(b'[');
    let last = bytes.split(|b| *b == 0).count();
    for (at, word) in bytes.split(|b| *b == 0).enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        scratch.quoted(out, word, whole || at + 1 < last);
    }
    out.push(b']');
}

/// The two descriptors of pipe or socketpair.
pub(crate) fn two_fds(bytes: &[u8]) -> Option<[i32; 2]> {
    let first = bytes.first_chunk::<4>()?;
    let second = bytes.get(4..)?.first_chunk::<4>()?;
    Some([i32::from_le_bytes(*first), i32::from_le_bytes(*second)])
}

fn fd_pair(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let Some([first, second]) = two_fds(bytes) else { return false };
    out.push(b'[');
    num::signed(out, i64::from(first));
    out.extend_from_slice(b", ");
    num::signed(out, i64::from(second));
    out.push(b']');
    true
}

/// `{ .tv_sec: 1, .tv_nsec: 0 }` as perf prints it.
fn seconds(out: &mut Vec<u8>, bytes: &[u8], part: &str) -> bool {
    let (Some(whole), Some(rest)) = (bytes.first_chunk::<8>(), bytes.get(8..).and_then(|b| b.first_chunk::<8>()))
    else {
        return false;
    };
    out.extend_from_slice(b"{ .tv_sec: ");
    num::signed(out, i64::from_le_bytes(*whole));
    out.extend_from_slice(b", .tv_");
    out.extend_from_slice(part.as_bytes());
    out.extend_from_slice(b": ");
    num::signed(out, i64::from_le_bytes(*rest));
    out.extend_from_slice(b" }");
    true
}

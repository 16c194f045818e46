//! One argument of a call as text: common to the listing, CSV and the text in JSON.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use systape_abi::descriptors::pair_of;
use systape_abi::{ArgKind, FlagForm, FlagSet, FlagStyle, Struct, StructBytes};
use systape_format::model::{ByteStatus, Captured, SECOND_VALUE};
use systape_format::redact::PLACEHOLDER;

use super::row;
use systape_events::calls::{ArgInfo, CallInfo};
use systape_events::load::{FdPath, Loaded};
use systape_events::values::num;

/// `dfd` of the current directory.
pub const AT_FDCWD: i32 = systape_abi::AT_FDCWD;

/// Reused buffers of one thread.
#[derive(Debug, Default)]
pub struct ValueScratch {
    /// Buffer for functions of systape-abi, which write to a String.
    pub text: String,
    /// Texts of flag values seen so far: (set, value) → text. A tape repeats a few dozen of them millions of times.
    flags: FxHashMap<(usize, u64, bool), Box<str>>,
}

/// Most distinct values kept: more are garbage passed by some program.
const FLAG_TEXTS: usize = 4096;

impl ValueScratch {
    /// Appends the text of `value` in `set`.
    pub fn flags(&mut self, out: &mut Vec<u8>, set: &'static FlagSet, value: u64, style: FlagStyle) {
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
    pub fn escaped(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        if bytes.iter().all(|b| (0x20..0x7f).contains(b) && *b != b'"' && *b != b'\\') {
            out.extend_from_slice(bytes);
            return;
        }
        self.text.clear();
        systape_abi::escape(bytes, &mut self.text);
        out.extend_from_slice(self.text.as_bytes());
    }

    /// Appends the name of a file. In that of a socket a path is quoted and escaped already.
    pub fn file(&mut self, out: &mut Vec<u8>, name: &[u8]) {
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
pub fn flag_set(call: &CallInfo, at: usize, args: &[u64; 6]) -> Option<&'static FlagSet> {
    match call.args.get(at)?.kind {
        ArgKind::Flags(set) => Some(set),
        ArgKind::ClockId => Some(systape_abi::clock_flags()),
        ArgKind::SockOpt { level_arg } => systape_abi::sockopt_flags(*args.get(usize::from(level_arg))?),
        _ => None,
    }
}

/// The bits of register `raw` the kernel reads for an argument of `kind`, sign-extended where it is signed.
pub fn narrow(kind: ArgKind, raw: u64) -> u64 {
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
        ArgKind::Flags(set) => matches!(set.how, FlagForm::Enum) || set.prefix == "PROT_",
        _ => false,
    }
}

/// The 64-bit number with argument `at` as its low half.
#[inline]
pub(crate) fn joined_halves(call: &CallInfo, at: usize, args: &[u64; 6]) -> u64 {
    let is_high = |i: usize| call.args.get(i).is_some_and(|a| matches!(a.kind, ArgKind::HighHalf));
    let high = if is_high(at + 1) { at + 1 } else { at.wrapping_sub(1) };
    let high = if is_high(high) { args.get(high).copied().unwrap_or(0) } else { 0 };
    (args[at] & 0xffff_ffff) | (high & 0xffff_ffff) << 32
}

/// Appends argument `at` without captured data: numbers, flags, pointers.
pub fn scalar(
    out: &mut Vec<u8>,
    scratch: &mut ValueScratch,
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
pub fn missing(status: ByteStatus) -> Option<&'static str> {
    match status {
        ByteStatus::Whole | ByteStatus::Late => None,
        ByteStatus::Truncated | ByteStatus::LateTruncated => Some("truncated"),
        ByteStatus::NotResident => Some("not-resident"),
        ByteStatus::NoBuffer => Some("no-buffer"),
        ByteStatus::Redacted => Some("redacted"),
    }
}

/// Appends the captured data of argument `at` of `row`; false when there is none and the caller must print the pointer.
pub fn captured(
    out: &mut Vec<u8>,
    scratch: &mut ValueScratch,
    segment: &Loaded,
    (row, at): (usize, usize),
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
    let call = segment.call(row);
    let (bytes, whole) = (value.bytes.as_slice(), value.status.is_whole());
    match call.args[at].kind {
        ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } => {
            out.extend_from_slice(systape_abi::sockaddr_text(bytes).as_bytes())
        }
        ArgKind::OpenHow { .. } => out.extend_from_slice(systape_abi::open_how_text(call.abi, bytes, style).as_bytes()),
        ArgKind::FdPair => return fd_pair(out, bytes),
        ArgKind::Argv | ArgKind::Envp => argv(out, scratch, bytes, whole),
        kind if kind.structure().is_some() => return structure(out, scratch, segment, (row, at), value),
        _ => scratch.quoted(out, bytes, whole),
    }
    true
}

/// Appends the structure that argument `at` of `row` points to, before or after the call as `value` has it.
fn structure(
    out: &mut Vec<u8>,
    scratch: &mut ValueScratch,
    segment: &Loaded,
    (row, at): (usize, usize),
    value: &Captured,
) -> bool {
    let call = segment.call(row);
    let (Some(what), Some(args)) = (call.args[at].kind.structure(), segment.args.args.get(row)) else { return false };
    let whole = value.status.is_whole();
    let read = StructBytes { what, abi: call.abi, args, bytes: &value.bytes, whole };
    let polled = polled(segment, row);
    let mut fd = |text: &mut String, fd: i32| {
        let _ = write!(text, "{fd}");
        if let Some((_, path)) = polled.iter().flatten().find(|(of, _)| *of == fd) {
            let mut name = Vec::new();
            scratch.file(&mut name, path);
            let _ = write!(text, "<{}>", String::from_utf8_lossy(&name));
        }
    };
    let text = if value.arg & SECOND_VALUE == 0 { read.text(&mut fd) } else { read.text_after(&mut fd) };
    text.is_some_and(|text| {
        out.extend_from_slice(text.as_bytes());
        true
    })
}

/// Whether the call returned 0, so that an array as long as its result has no element.
#[inline]
pub fn is_empty_array(segment: &Loaded, row: usize, kind: ArgKind) -> bool {
    matches!(kind, ArgKind::Out(Struct::EpollEvents)) && row::outcome(segment, row) == row::CallOutcome::Ret(0)
}

/// The descriptors that `row` polls whose files the tape names.
fn polled(segment: &Loaded, row: usize) -> [Option<(i32, &[u8])>; 2] {
    let polls = |arg: &ArgInfo| matches!(arg.kind, ArgKind::InOut(Struct::PollFds));
    let Some(at) = segment.call(row).args.iter().position(polls) else { return [None; 2] };
    let Some(array) = segment.captured(row).iter().find(|value| usize::from(value.arg) == at) else { return [None; 2] };
    let mut fds = array.bytes.chunks_exact(8).map(|fd| fd.first_chunk().map_or(-1, |fd| i32::from_le_bytes(*fd)));
    [0, 1].map(|column| match (fds.next(), segment.fd_of_column(row, column)) {
        (Some(fd), FdPath::Known(path)) => Some((fd, path)),
        _ => None,
    })
}

/// What the kernel left in the structures that `row` was given, as strace writes it behind the result: `[{fd=3, revents=POLLIN}]`, or
/// `in [3], left {tv_sec=0, tv_usec=5}`. Empty: nothing is known of it.
pub fn after(scratch: &mut ValueScratch, segment: &Loaded, row: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let args = &segment.call(row).args;
    for value in segment.captured(row).iter().filter(|value| value.arg & SECOND_VALUE != 0) {
        let at = usize::from(value.arg & !SECOND_VALUE);
        let Some(arg) = args.get(at) else { continue };
        let begin = out.len();
        if begin > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(match (&*arg.name, arg.kind) {
            (_, ArgKind::InOut(Struct::PollFds)) => b"",
            ("inp", _) => b"in ",
            ("outp", _) => b"out ",
            ("exp", _) => b"except ",
            _ => b"left ",
        });
        // sets without a descriptor are left out
        if !captured(&mut out, scratch, segment, (row, at), value, FlagStyle::FULL) || out.ends_with(b" []") {
            out.truncate(begin);
        }
    }
    out
}

/// `["ls", "-l"]` from NUL-separated bytes.
pub fn argv(out: &mut Vec<u8>, scratch: &mut ValueScratch, bytes: &[u8], whole: bool) {
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

fn fd_pair(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let Some([first, second]) = pair_of(bytes) else { return false };
    out.push(b'[');
    num::signed(out, i64::from(first));
    out.extend_from_slice(b", ");
    num::signed(out, i64::from(second));
    out.push(b']');
    true
}

//! The arguments of a call as JSON.

use std::fmt::Write as _;

use systape_abi::descriptors::pair_of;
use systape_abi::{ArgKind, FlagStyle};
use systape_format::model::{BESIDE, ByteStatus, Captured, SECOND_VALUE};

use super::super::value::{self, ValueScratch};
use super::{ByteText, optional};
use crate::render::json::{lossy_string, string};
use systape_events::calls::{ArgInfo, CallInfo};
use systape_events::load::{FdPath, Loaded};
use systape_events::values::num;

/// Writes arguments of the calls of one segment.
pub struct Arguments<'a> {
    segment: &'a Loaded,
    /// `{"fd":`, `,"count":` of each argument of each call; empty: it is half of the one before.
    keys: Vec<Vec<Vec<u8>>>,
    scratch: ValueScratch,
    text: Vec<u8>,
}

impl<'a> Arguments<'a> {
    /// Prepares the arguments of `segment`.
    pub fn new(segment: &'a Loaded) -> Self {
        let keys = segment.calls.iter().map(|call| argument_keys(call)).collect();
        Self { segment, keys, scratch: ValueScratch::default(), text: Vec::new() }
    }
}

fn argument_keys(call: &CallInfo) -> Vec<Vec<u8>> {
    let mut before = '{';
    let key = |arg: &ArgInfo| {
        if matches!(arg.kind, ArgKind::HighHalf) {
            return Vec::new();
        }
        format!("{}\"{}\":", std::mem::replace(&mut before, ','), arg.name).into_bytes()
    };
    call.args.iter().map(key).collect()
}

impl Arguments<'_> {
    /// Appends the object of `row`; null: they were not recorded.
    pub fn write(&mut self, out: &mut Vec<u8>, row: usize) {
        if !self.is_recorded(row) {
            return out.extend_from_slice(b"null");
        }
        let begin = out.len();
        let code = self.segment.core.call[row] as usize;
        for at in 0..self.keys[code].len() {
            if !self.keys[code][at].is_empty() {
                out.extend_from_slice(&self.keys[code][at]);
                self.value(out, row, at);
            }
        }
        if out.len() == begin {
            out.push(b'{');
        }
        self.futex(out, row);
        out.push(b'}');
    }

    /// Appends what was at the futex that a call waits for, if it is known.
    fn futex(&self, out: &mut Vec<u8>, row: usize) {
        // what was read when the call returned is no more what it waited for
        let at_first = |value: &&Captured| matches!(value.status, ByteStatus::Whole | ByteStatus::Truncated);
        let captured = self.segment.captured(row).iter();
        let Some(value) = captured.filter(at_first).find(|value| value.arg == BESIDE) else { return };
        let words = value.bytes.chunks_exact(4).filter_map(|word| word.first_chunk::<4>());
        let words: Vec<String> = words.map(|word| u32::from_le_bytes(*word).to_string()).collect();
        let _ = write!(ByteText(out), ",\"at_uaddr\":[{}]", words.join(","));
    }

    /// Whether the arguments of `row` were recorded.
    pub fn is_recorded(&self, row: usize) -> bool {
        self.segment.args.args.get(row).is_some()
    }

    /// Passes the value of each argument of `row`, in the order of [`Self::write`]: its number and the JSON. None: they were not
    /// recorded.
    pub fn each(&mut self, row: usize, mut take: impl FnMut(usize, &[u8])) {
        let code = self.segment.core.call[row] as usize;
        let count = if self.is_recorded(row) { self.keys[code].len() } else { 0 };
        let mut one = Vec::new();
        for at in 0..count {
            if !self.keys[code][at].is_empty() {
                one.clear();
                self.value(&mut one, row, at);
                take(at, &one);
            }
        }
    }

    /// Appends the value of argument `at` of `row`, whose arguments were recorded.
    fn value(&mut self, out: &mut Vec<u8>, row: usize, at: usize) {
        let segment = self.segment;
        let call = segment.call(row);
        let args = &segment.args.args[row];
        let captured = segment.captured(row);
        let value = |arg: usize| captured.iter().find(|c| usize::from(c.arg) == arg);
        let after = value(at | usize::from(SECOND_VALUE));
        match (value(at), call.args[at].kind) {
            (before, ArgKind::InOut(_)) if before.or(after).is_some() => {
                self.before_and_after(out, row, at, (before, after), args);
            }
            (Some(value), _) => self.captured(out, row, at, value, args[at]),
            (None, kind) if value::is_empty_array(segment, row, kind) => out.extend_from_slice(b"\"[]\""),
            (None, _) => self.scalar(out, call, at, args, row),
        }
    }

    /// A value without captured bytes.
    fn scalar(&mut self, out: &mut Vec<u8>, call: &CallInfo, at: usize, args: &[u64; 6], row: usize) {
        if self.segment.args.is_unknown(row, at) {
            return out.extend_from_slice(b"null");
        }
        let kind = call.args[at].kind;
        let raw = value::narrow(kind, args[at]);
        if matches!(kind, ArgKind::Fd | ArgKind::DirFd) {
            return self.fd(out, call, at, raw as i64, row);
        }
        if raw == 0 && matches!(kind, ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::Argv | ArgKind::Envp)
        {
            return out.extend_from_slice(b"null");
        }
        let set = value::flag_set(call, at, args);
        if set.is_some() || matches!(kind, ArgKind::Mode | ArgKind::Signal | ArgKind::Dev | ArgKind::SockOpt { .. }) {
            out.extend_from_slice(b"{\"value\":");
            if set.is_some_and(|set| set.wide) {
                let _ = write!(ByteText(out), "\"{raw}\"");
            } else {
                num::unsigned(out, raw & 0xffff_ffff);
            }
            out.extend_from_slice(b",\"text\":\"");
            value::scalar(out, &mut self.scratch, call, at, args, FlagStyle::FULL);
            return out.extend_from_slice(b"\"}");
        }
        let number = matches!(
            kind,
            ArgKind::Int | ArgKind::UInt | ArgKind::Pid | ArgKind::Uid | ArgKind::Gid | ArgKind::TimeoutMs
        );
        if !number {
            out.push(b'"');
        }
        value::scalar(out, &mut self.scratch, call, at, args, FlagStyle::FULL);
        if !number {
            out.push(b'"');
        }
    }

    fn fd(&mut self, out: &mut Vec<u8>, call: &CallInfo, at: usize, fd: i64, row: usize) {
        out.extend_from_slice(b"{\"fd\":");
        num::signed(out, fd);
        out.extend_from_slice(b",\"path\":");
        let path = match self.segment.fd_path(row, at) {
            FdPath::Known(path) => Some(path),
            _ => None,
        };
        optional(out, path);
        if fd == i64::from(value::AT_FDCWD) && matches!(call.args[at].kind, ArgKind::DirFd) {
            out.extend_from_slice(b",\"text\":\"AT_FDCWD\"");
        }
        out.push(b'}');
    }

    /// A captured value: plain when it is whole and UTF-8, else an object that says what is missing.
    fn captured(&mut self, out: &mut Vec<u8>, row: usize, at: usize, value: &Captured, addr: u64) {
        let kind = self.segment.call(row).args[at].kind;
        let whole = value.status.is_whole();
        if let (ArgKind::FdPair, true, Some([a, b])) = (kind, whole, pair_of(&value.bytes)) {
            let _ = write!(ByteText(out), "[{a},{b}]");
            return;
        }
        let plain = whole && std::str::from_utf8(&value.bytes).is_ok();
        match kind {
            ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } if whole => {
                return string(out, systape_abi::sockaddr_text(&value.bytes).as_bytes());
            }
            ArgKind::Argv | ArgKind::Envp if plain => return words(out, &value.bytes),
            ArgKind::Path | ArgKind::FileName | ArgKind::Str if plain => return string(out, &value.bytes),
            ArgKind::BufIn { .. } | ArgKind::BufOut if plain => return string(out, &value.bytes),
            kind if whole && kind.structure().is_some() => {
                self.text.clear();
                value::captured(&mut self.text, &mut self.scratch, self.segment, (row, at), value, FlagStyle::FULL);
                return string(out, &self.text);
            }
            _ => {}
        }
        self.partial(out, row, at, value, addr);
    }

    /// A structure that the kernel overwrites: `{"before":…,"after":…}`, the latter null when it did not.
    fn before_and_after(
        &mut self,
        out: &mut Vec<u8>,
        row: usize,
        at: usize,
        (before, after): (Option<&Captured>, Option<&Captured>),
        args: &[u64; 6],
    ) {
        out.extend_from_slice(b"{\"before\":");
        match before {
            Some(before) => self.captured(out, row, at, before, args[at]),
            None => self.scalar(out, self.segment.call(row), at, args, row),
        }
        out.extend_from_slice(b",\"after\":");
        match after {
            Some(after) => self.captured(out, row, at, after, args[at]),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }

    fn partial(&mut self, out: &mut Vec<u8>, row: usize, at: usize, value: &Captured, addr: u64) {
        let kind = self.segment.call(row).args[at].kind;
        if value.status.has_bytes() {
            self.text.clear();
            match kind {
                ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::BufIn { .. } | ArgKind::BufOut => {
                    self.text.extend_from_slice(&value.bytes)
                }
                _ => {
                    value::captured(&mut self.text, &mut self.scratch, self.segment, (row, at), value, FlagStyle::FULL);
                }
            }
            out.extend_from_slice(b"{\"text\":");
            lossy_string(out, &self.text);
            out.extend_from_slice(b",\"hex\":\"");
            for byte in &value.bytes {
                let _ = write!(ByteText(out), "{byte:02x}");
            }
            out.push(b'"');
        } else {
            out.extend_from_slice(b"{\"text\":null,\"hex\":null");
        }
        out.extend_from_slice(b",\"len\":");
        match value.full {
            0 => out.extend_from_slice(b"null"),
            full => num::unsigned(out, full),
        }
        out.extend_from_slice(b",\"missing\":");
        optional(out, value::missing(value.status).map(str::as_bytes));
        let _ = match self.segment.args.is_unknown(row, at) {
            true => write!(ByteText(out), ",\"addr\":null}}"),
            false => write!(ByteText(out), ",\"addr\":\"{addr:#x}\"}}"),
        };
    }
}

/// `["ls","-l"]`.
fn words(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'[');
    for (at, word) in bytes.split(|b| *b == 0).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, word);
    }
    out.push(b']');
}

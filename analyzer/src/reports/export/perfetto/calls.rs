//! Calls as slices on the tracks of their threads.
//!
//! A slice has the call's arguments as the listing's JSON has them: strings, flags by name, descriptors with their files; and `ret`,
//! `errno`, `incomplete`. A call that was open when the recording ended has no end.

use systape_abi::{ArgKind, FlagStyle, RetKind};
use systape_format::model::{ByteStatus, CallState, Captured, SECOND_VALUE, Task};

use super::super::proto::perfetto::debug_annotation::Value;
use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{DebugAnnotation, TrackEvent};
use super::clocks::Boot;
use super::packets::{Interned, Packets, Sequence};
use super::slices::{BEGIN, END};
use super::tracks::Track;
use systape_answers::lines::row::{self, CallOutcome};
use systape_answers::lines::value::{self, ValueScratch};
use systape_events::calls::CallInfo;
use systape_events::load::{FdPath, Loaded};
use systape_events::values::num;

/// The calls of a segment.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Packets of their slices.
    pub bytes: Vec<u8>,
    /// The threads that made them, each once.
    pub threads: Vec<Task>,
    /// How many.
    pub count: u64,
}

/// Makes slices of `rows`, behind those of `packets`; calls of one thread are in the order of their ends.
pub(super) fn slices(segment: &Loaded, rows: impl Iterator<Item = usize>, boot: &Boot, packets: Packets) -> Calls {
    let mut writer = CallWriter {
        segment,
        packets,
        interned: Interned::default(),
        scratch: ValueScratch::default(),
        text: Vec::new(),
    };
    let mut told = vec![false; segment.dict.tasks.len()];
    let mut calls = Calls::default();
    for row in rows {
        let task = segment.core.task[row] as usize;
        if !std::mem::replace(&mut told[task], true) {
            calls.threads.push(segment.dict.tasks[task].clone());
        }
        calls.count += 1;
        writer.call(row, boot);
    }
    calls.bytes = writer.packets.bytes;
    calls
}

struct CallWriter<'a> {
    segment: &'a Loaded,
    packets: Packets,
    interned: Interned,
    scratch: ValueScratch,
    text: Vec<u8>,
}

impl CallWriter<'_> {
    fn call(&mut self, row: usize, boot: &Boot) {
        let segment = self.segment;
        let state = segment.core.state[row];
        let start = segment.time.start[row];
        // without a duration it is a moment
        let end = match state {
            CallState::InFlight => None,
            CallState::Denied | CallState::LostEnter => Some(start),
            _ => Some(start.saturating_add(segment.core.dur[row])),
        };
        let info = segment.call(row);
        let track_uuid = Track::Thread(segment.task(row).utid).uuid(self.packets.tape);
        let debug_annotations = self.arguments(info, row);
        let event = TrackEvent {
            r#type: BEGIN,
            track_uuid,
            category_iids: vec![self.interned.category("syscall")],
            name_iid: self.interned.event(&info.long_name),
            debug_annotations,
            ..TrackEvent::default()
        };
        self.event(boot.at(start), event);
        if let Some(end) = end {
            let debug_annotations = self.result(info, row);
            self.event(
                boot.at(end),
                TrackEvent { r#type: END, track_uuid, debug_annotations, ..TrackEvent::default() },
            );
        }
    }

    fn event(&mut self, ts: u64, event: TrackEvent) {
        self.packets.interned(Sequence::Calls, &mut self.interned, ts, Data::TrackEvent(event));
    }

    fn arguments(&mut self, info: &CallInfo, row: usize) -> Vec<DebugAnnotation> {
        let segment = self.segment;
        let mut all = Vec::with_capacity(info.args.len());
        let Some(args) = segment.args.args.get(row) else { return all };
        for (at, arg) in info.args.iter().enumerate() {
            if matches!(arg.kind, ArgKind::HighHalf) {
                continue;
            }
            let found = |number: usize| segment.captured(row).iter().find(|value| usize::from(value.arg) == number);
            let value = match found(at) {
                Some(value) => self.captured(row, at, value, args[at]),
                None if value::is_empty_array(segment, row, arg.kind) => self.string("[]"),
                None => match self.scalar(info, at, args, row) {
                    Some(value) => value,
                    // no string
                    None => continue,
                },
            };
            all.push(DebugAnnotation { name_iid: self.interned.name(&arg.name), value: Some(value) });
            if let Some(after) = found(at | usize::from(SECOND_VALUE)) {
                let value = self.captured(row, at, after, args[at]);
                let name_iid = self.interned.name(&format!("{} after", arg.name));
                all.push(DebugAnnotation { name_iid, value: Some(value) });
            }
        }
        all
    }

    fn string(&mut self, text: &str) -> Value {
        match self.interned.text(text) {
            Some(iid) => Value::StringValueIid(iid),
            None => Value::StringValue(text.to_owned()),
        }
    }

    /// What is in `text`.
    fn made(&mut self) -> Value {
        let text = std::mem::take(&mut self.text);
        let value = self.string(&String::from_utf8_lossy(&text));
        self.text = text;
        value
    }

    /// A value without captured memory; None: it is not known, or a null pointer to a string.
    fn scalar(&mut self, info: &CallInfo, at: usize, args: &[u64; 6], row: usize) -> Option<Value> {
        if self.segment.args.is_unknown(row, at) {
            return None;
        }
        let kind = info.args[at].kind;
        let number = value::narrow(kind, args[at]);
        self.text.clear();
        match kind {
            ArgKind::Fd | ArgKind::DirFd => {
                let FdPath::Known(path) = self.segment.fd_path(row, at) else {
                    return Some(Value::IntValue(number.cast_signed()));
                };
                num::signed(&mut self.text, number.cast_signed());
                self.text.push(b'<');
                self.scratch.file(&mut self.text, path);
                self.text.push(b'>');
            }
            ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::Argv | ArgKind::Envp if number == 0 => {
                return None;
            }
            ArgKind::Int
            | ArgKind::UInt
            | ArgKind::Pid
            | ArgKind::TimeoutMs
            | ArgKind::Long
            | ArgKind::Offset
            | ArgKind::Size
            | ArgKind::Uid
            | ArgKind::Gid
                if value::flag_set(info, at, args).is_none() =>
            {
                let id = matches!(kind, ArgKind::Uid | ArgKind::Gid);
                let wide = if id { i64::from(number as u32 as i32) } else { number.cast_signed() };
                return Some(Value::IntValue(wide));
            }
            ArgKind::ULong => return Some(Value::UintValue(number)),
            _ => value::scalar(&mut self.text, &mut self.scratch, info, at, args, FlagStyle::FULL),
        }
        Some(self.made())
    }

    /// Captured memory: a string as it is, if it is text; `...` follows what is not whole.
    fn captured(&mut self, row: usize, at: usize, found: &Captured, addr: u64) -> Value {
        self.text.clear();
        let kind = self.segment.call(row).args[at].kind;
        let string =
            matches!(kind, ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::BufIn { .. } | ArgKind::BufOut);
        match std::str::from_utf8(&found.bytes) {
            Ok(text) if string && found.status.is_whole() => return self.string(text),
            _ if string && found.status.has_bytes() && found.status != ByteStatus::Redacted => {
                self.scratch.escaped(&mut self.text, &found.bytes);
                self.text.extend_from_slice(if found.status.is_whole() { b"" } else { b"..." });
            }
            _ => {
                let place = (row, at);
                let (text, scratch) = (&mut self.text, &mut self.scratch);
                if !value::captured(text, scratch, self.segment, place, found, FlagStyle::FULL) {
                    return match self.segment.args.is_unknown(row, at) {
                        true => self.string("?"),
                        false => Value::PointerValue(addr),
                    };
                }
            }
        }
        self.made()
    }

    /// What came of it.
    fn result(&mut self, info: &CallInfo, row: usize) -> Vec<DebugAnnotation> {
        let mut all = Vec::with_capacity(2);
        match row::outcome(self.segment, row) {
            CallOutcome::Ret(ret) => {
                let value = match info.ret {
                    RetKind::Ptr | RetKind::Hex => Value::PointerValue(ret as u64),
                    _ => Value::IntValue(ret),
                };
                all.push(DebugAnnotation { name_iid: self.interned.name("ret"), value: Some(value) });
                if let Some(path) = row::returned_path(self.segment, row, ret) {
                    self.text.clear();
                    self.scratch.escaped(&mut self.text, &path);
                    let value = Some(self.made());
                    all.push(DebugAnnotation { name_iid: self.interned.name("file"), value });
                }
            }
            CallOutcome::Errno(errno) | CallOutcome::Restart(errno) => {
                let name = systape_events::values::words::errno_text(errno);
                let value = Some(self.string(&name));
                all.push(DebugAnnotation { name_iid: self.interned.name("errno"), value });
            }
            CallOutcome::InFlight | CallOutcome::Killed | CallOutcome::NoReturn | CallOutcome::NotRecorded => {}
        }
        if let Some(why) = row::incomplete(self.segment.core.state[row]) {
            let value = Some(self.string(why));
            all.push(DebugAnnotation { name_iid: self.interned.name("incomplete"), value });
        }
        all
    }
}

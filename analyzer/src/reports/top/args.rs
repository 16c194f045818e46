//! `analyze top --by args.NAME,ret`: calls by their arguments and what they returned, and sums of these.

use std::ops::ControlFlow;

use anyhow::Result;
use systape_abi::{ArgKind, FlagStyle, RetKind};
use systape_format::model::{CPU_NONE, CallState, Family, SECOND_VALUE};
use systape_format::reader::Tape;

use super::fields::{ARGS, Asked, Seen, Sums, Wanted, print};
use crate::asked::config::Config;
use crate::derive::summary::plan::Plan;
use crate::lines::row::{self, Outcome};
use crate::lines::value::{self, Scratch};
use crate::render::out::Out;
use crate::reports::Context;
use crate::table::call_files;
use crate::table::calls::CallInfo;
use crate::table::families;
use crate::table::filter::{SegmentFilter, start_known};
use crate::table::group::value::Value;
use crate::table::load::{Base, FdPath, Loaded, OpenCalls};
use crate::table::moved::Moved;
use crate::table::scan::Scan;
use crate::values::say::Verdict;
use crate::values::words::errno_text;

/// What a call returned.
const RET: &str = "ret";
/// How long it took.
const DUR: &str = "dur_ns";
/// Bytes that it moved.
const BYTES: &str = "bytes";
/// The file that it is on, as in other summaries.
const FILE: &str = "file";
/// The error that it returned.
const ERRNO: &str = "errno";

/// Whether `words` of `--by`, or the field that is added up, are about arguments.
pub(super) fn is_asked(config: &Config, value: Option<&str>) -> bool {
    config.calls && (value.is_some() || config.by.iter().any(|word| word.starts_with(ARGS) || word == RET))
}

/// Prints the answer for `config`.
pub(super) fn answer(config: &Config, tape: &Tape, asked: &Asked<'_>, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    // each row is of one call anyway
    let words: Vec<String> =
        config.by.iter().filter(|word| !["syscall", "call"].contains(&word.as_str())).cloned().collect();
    let wanted = Wanted::new(&words);
    let session = tape.session();
    let plan = Plan::by(&wanted.by).naming(session);
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let question = &context.question;
    let value = asked.value.map(|name| name.strip_prefix(ARGS).unwrap_or(name));
    let read = Read { wanted: &wanted, plan: &plan, value, since: session.window_open };
    let mut sums = Sums::of_all();
    let coverage = Scan::calls(question).parts(
        |at, segment, coverage| {
            let (mut part, mut holes) = (Sums::default(), Vec::new());
            let number = segment.info().segment;
            let base = Base::read(tape.segment(at), &mut holes, |dict, core| {
                let filter = question.scope.segment(dict, number);
                (0..core.call.len()).any(|row| filter.core(core, row))
            });
            if let Some(loaded) = base.map(|base| base.load(&question.book, &mut holes)) {
                read.calls(&mut part, &loaded, question.scope.segment(&loaded.dict, number));
            }
            coverage.holes(holes);
            part
        },
        |part| {
            sums.merge(part);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if let Some(open) = OpenCalls::read(tape) {
        let loaded = open.load(&question.book);
        read.calls(&mut sums, &loaded, question.scope.segment(&loaded.dict, u32::MAX));
    }
    coverage.tell(&mut context.question.loss);
    let asked = Asked { value, ..*asked };
    print(&context, &wanted, &asked, (sums, &plan), out)
}

/// What of a call is asked for.
struct Read<'a> {
    wanted: &'a Wanted,
    plan: &'a Plan,
    value: Option<&'a str>,
    /// When the recording began.
    since: u64,
}

/// A field of a call.
struct Field {
    key: Value,
    /// To be added up; None: it is no number, or below 0.
    number: Option<u64>,
}

impl Field {
    fn number(value: i64) -> Self {
        let number = u64::try_from(value).ok();
        let key = number.map_or_else(|| Value::Text(value.to_string().as_bytes().into()), Value::Number);
        Self { key, number }
    }

    fn text(text: &[u8]) -> Self {
        Self { key: Value::Text(text.into()), number: None }
    }

    const UNKNOWN: Self = Self { key: Value::Unknown, number: None };
}

impl Read<'_> {
    /// Adds the calls of a segment that pass.
    fn calls(&self, sums: &mut Sums, loaded: &Loaded, filter: SegmentFilter<'_>) {
        [RET, DUR, BYTES, FILE, ERRNO].into_iter().for_each(|name| sums.has_field(name));
        for call in &loaded.calls {
            call.args.iter().for_each(|arg| sums.has_field(&arg.name));
        }
        let mut scratch = Scratch::default();
        for row in 0..loaded.rows() {
            let state = loaded.core.state[row];
            if state == CallState::CloneChild || !filter.core(&loaded.core, row) || !filter.time(&loaded.time, row) {
                continue;
            }
            let start = loaded.time.start[row];
            let second = start.checked_sub(self.since).filter(|_| start_known(state, start, self.since));
            let cpu = loaded.time.cpu.get(row).copied().filter(|cpu| *cpu != CPU_NONE);
            let seen = Seen {
                name: &loaded.call(row).long_name,
                task: Some(loaded.task(row)),
                cpu,
                second: second.and_then(|ns| u32::try_from(ns / 1_000_000_000).ok()),
                place: (loaded.number, row as u32),
            };
            let keys: Vec<Value> =
                self.wanted.fields.iter().map(|name| field(loaded, row, name, &mut scratch).key).collect();
            let measured = match self.value {
                Some(name) => (field(loaded, row, name, &mut scratch).number, None),
                None => (field(loaded, row, DUR, &mut scratch).number, Some(DUR)),
            };
            sums.add(&seen, keys.into_iter(), measured, self.plan);
        }
    }
}

/// A field of the call of `row`; none if the call has no such argument.
fn field(loaded: &Loaded, row: usize, name: &str, scratch: &mut Scratch) -> Field {
    match name {
        RET => return returned(row::outcome(loaded, row), loaded.call(row)),
        DUR => {
            return match row::duration(loaded, row) {
                row::Duration::Exact(ns) => Field { key: Value::Number(ns), number: Some(ns) },
                _ => Field::UNKNOWN,
            };
        }
        BYTES => {
            let known = matches!(row::outcome(loaded, row), Outcome::Ret(_)) && loaded.call(row).io.moves_bytes();
            return match Moved::by(loaded, row) {
                Moved::Exactly(bytes) if known => Field { key: Value::Number(bytes), number: Some(bytes) },
                // what failed, or moves none, has no number of them
                Moved::Exactly(_) => Field { key: Value::None, number: None },
                Moved::AtLeast(_) => Field::UNKNOWN,
            };
        }
        FILE => {
            return match call_files::of_row(loaded, row) {
                FdPath::Known(name) => Field::text(name),
                FdPath::Unknown => Field::UNKNOWN,
                FdPath::None => Field { key: Value::None, number: None },
            };
        }
        ERRNO => {
            return match row::outcome(loaded, row) {
                Outcome::Errno(errno) => Field::text(errno_text(errno).as_bytes()),
                Outcome::InFlight | Outcome::Killed | Outcome::NoReturn => Field::UNKNOWN,
                _ => Field::text(b"0"),
            };
        }
        _ => {}
    }
    let call = loaded.call(row);
    let Some(at) = call.args.iter().position(|arg| arg.name == name) else {
        return Field { key: Value::None, number: None };
    };
    let Some(args) = loaded.args.args.get(row) else { return Field::UNKNOWN };
    let of_it = |value: &u8| usize::from(*value & !SECOND_VALUE) == at && *value & SECOND_VALUE == 0;
    if let Some(captured) = loaded.captured(row).iter().find(|captured| of_it(&captured.arg)) {
        let mut text = Vec::new();
        let is_string = matches!(call.args[at].kind, ArgKind::Path | ArgKind::Str) && captured.status.has_bytes();
        if is_string {
            return Field::text(&captured.bytes);
        }
        if value::captured(&mut text, scratch, loaded, (row, at), captured, FlagStyle::FULL) {
            return Field::text(&text);
        }
    }
    let kind = call.args[at].kind;
    let raw = value::narrow(kind, args[at]);
    match kind {
        ArgKind::Int | ArgKind::Fd | ArgKind::Pid | ArgKind::TimeoutMs | ArgKind::Long | ArgKind::Offset => {
            Field::number(raw as i64)
        }
        ArgKind::UInt | ArgKind::ULong | ArgKind::Size => Field { key: Value::Number(raw), number: Some(raw) },
        _ => {
            let mut text = Vec::new();
            value::scalar(&mut text, scratch, call, at, args, FlagStyle::FULL);
            Field::text(&text)
        }
    }
}

/// What it returned; the error by its name.
fn returned(outcome: Outcome, call: &CallInfo) -> Field {
    match outcome {
        Outcome::Ret(ret) if matches!(call.ret, RetKind::Ptr | RetKind::Hex) => {
            Field::text(format!("{ret:#x}").as_bytes())
        }
        Outcome::Ret(ret) => Field::number(ret),
        Outcome::Errno(errno) | Outcome::Restart(errno) => Field::text(format!("-{}", errno_text(errno)).as_bytes()),
        Outcome::InFlight | Outcome::Killed | Outcome::NoReturn => Field { key: Value::None, number: None },
        Outcome::NotRecorded => Field::UNKNOWN,
    }
}

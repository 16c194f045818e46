//! `analyze top --by args.NAME,ret`: calls by their arguments and what they returned, and sums of these.

use anyhow::Result;
use systape_abi::{ArgKind, FlagStyle, RetKind};
use systape_format::model::{CPU_NONE, Family, SECOND_VALUE};
use systape_format::reader::Tape;

use super::fields::{ARGS, Asked, SeenEvent, Sums, Wanted, print};
use crate::asked::config::Config;
use crate::reports::Context;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::lines::row::{self, CallOutcome};
use systape_answers::lines::value::{self, ValueScratch};
use systape_answers::render::out::Out;
use systape_answers::values::say::Verdict;
use systape_events::call_files;
use systape_events::calls::CallInfo;
use systape_events::families;
use systape_events::filter::TapeStart;
use systape_events::group::value::Value;
use systape_events::load::{FdPath, Loaded};
use systape_events::moved::Moved;
use systape_events::scan::Scan;
use systape_events::values::words::errno_text;

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
    let read = Read { wanted: &wanted, plan: &plan, value, since: TapeStart::of(session) };
    let mut sums = Sums::of_all();
    let coverage = Scan::passing(
        question,
        |loaded, rows| {
            let mut part = Sums::default();
            read.calls(&mut part, loaded, rows);
            part
        },
        |part| sums.merge(part),
    );
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
    since: TapeStart,
}

/// A field of a call.
struct CallField {
    key: Value,
    /// To be added up; None: it is no number, or below 0.
    number: Option<u64>,
}

impl CallField {
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
    fn calls(&self, sums: &mut Sums, loaded: &Loaded, rows: &mut dyn Iterator<Item = usize>) {
        [RET, DUR, BYTES, FILE, ERRNO].into_iter().for_each(|name| sums.has_field(name));
        for call in &loaded.calls {
            call.args.iter().for_each(|arg| sums.has_field(&arg.name));
        }
        let mut scratch = ValueScratch::default();
        for row in rows {
            let state = loaded.core.state[row];
            let start = loaded.time.start[row];
            let second = start.checked_sub(self.since.open).filter(|_| self.since.is_known(state, start));
            let cpu = loaded.time.cpu.get(row).copied().filter(|cpu| *cpu != CPU_NONE);
            let seen = SeenEvent {
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
fn field(loaded: &Loaded, row: usize, name: &str, scratch: &mut ValueScratch) -> CallField {
    match name {
        RET => return returned(row::outcome(loaded, row), loaded.call(row)),
        DUR => {
            return match row::duration(loaded, row) {
                row::Duration::Exact(ns) => CallField { key: Value::Number(ns), number: Some(ns) },
                _ => CallField::UNKNOWN,
            };
        }
        BYTES => {
            let known = matches!(row::outcome(loaded, row), CallOutcome::Ret(_)) && loaded.call(row).io.moves_bytes();
            return match Moved::by(loaded, row) {
                Moved::Exactly(bytes) if known => CallField { key: Value::Number(bytes), number: Some(bytes) },
                // what failed, or moves none, has no number of them
                Moved::Exactly(_) => CallField { key: Value::None, number: None },
                Moved::AtLeast(_) => CallField::UNKNOWN,
            };
        }
        FILE => {
            return match call_files::of_row(loaded, row) {
                FdPath::Known(name) => CallField::text(name),
                FdPath::Unknown => CallField::UNKNOWN,
                FdPath::None => CallField { key: Value::None, number: None },
            };
        }
        ERRNO => {
            return match row::outcome(loaded, row) {
                CallOutcome::Errno(errno) => CallField::text(errno_text(errno).as_bytes()),
                CallOutcome::InFlight | CallOutcome::Killed | CallOutcome::NoReturn => CallField::UNKNOWN,
                _ => CallField::text(b"0"),
            };
        }
        _ => {}
    }
    let call = loaded.call(row);
    let Some(at) = call.args.iter().position(|arg| arg.name == name) else {
        return CallField { key: Value::None, number: None };
    };
    let Some(args) = loaded.args.args.get(row) else { return CallField::UNKNOWN };
    let of_it = |value: &u8| usize::from(*value & !SECOND_VALUE) == at && *value & SECOND_VALUE == 0;
    if let Some(captured) = loaded.captured(row).iter().find(|captured| of_it(&captured.arg)) {
        let mut text = Vec::new();
        let is_string = matches!(call.args[at].kind, ArgKind::Path | ArgKind::Str) && captured.status.has_bytes();
        if is_string {
            return CallField::text(&captured.bytes);
        }
        if value::captured(&mut text, scratch, loaded, (row, at), captured, FlagStyle::FULL) {
            return CallField::text(&text);
        }
    }
    if loaded.args.is_unknown(row, at) {
        return CallField::UNKNOWN;
    }
    let kind = call.args[at].kind;
    let raw = value::narrow(kind, args[at]);
    match kind {
        ArgKind::Int | ArgKind::Fd | ArgKind::Pid | ArgKind::TimeoutMs | ArgKind::Long | ArgKind::Offset => {
            CallField::number(raw as i64)
        }
        ArgKind::UInt | ArgKind::ULong | ArgKind::Size => CallField { key: Value::Number(raw), number: Some(raw) },
        _ => {
            let mut text = Vec::new();
            value::scalar(&mut text, scratch, call, at, args, FlagStyle::FULL);
            CallField::text(&text)
        }
    }
}

/// What it returned; the error by its name.
fn returned(outcome: CallOutcome, call: &CallInfo) -> CallField {
    match outcome {
        CallOutcome::Ret(ret) if matches!(call.ret, RetKind::Ptr | RetKind::Hex) => {
            CallField::text(format!("{ret:#x}").as_bytes())
        }
        CallOutcome::Ret(ret) => CallField::number(ret),
        CallOutcome::Errno(errno) | CallOutcome::Restart(errno) => {
            CallField::text(format!("-{}", errno_text(errno)).as_bytes())
        }
        CallOutcome::InFlight | CallOutcome::Killed | CallOutcome::NoReturn => {
            CallField { key: Value::None, number: None }
        }
        CallOutcome::NotRecorded => CallField::UNKNOWN,
    }
}

//! The listing in perf trace's format: `%10.3f (%6.3f ms): comm/tid syscall(arg: val, ...)  = ret`.
//!
//! Columns, omitted zeros, `CWD`, `(Timeout)` and hex returns follow tools/perf/builtin-trace.c, so scripts for perf
//! trace work. Facts that perf lacks are added in its columns: `>=` for a lower bound, `?` for an unknown time.

use systape_abi::{ArgKind, FlagStyle, NO_CALL, RetKind, uapi};
use systape_format::model::{Gap, Session};

use super::row::{self, CallOutcome, Duration};
use super::value::{self, ValueScratch};
use super::{LineFormat, SegmentLines};
use crate::render::form::Format;
use crate::render::label::TapeLabel;
use crate::render::mark;
use crate::render::paint;
use crate::render::stamp::Stamps;
use crate::values::output;
use systape_events::calls::CallInfo;
use systape_events::filter::TapeStart;
use systape_events::load::{FdPath, Loaded};
use systape_events::loss::{self, Hole};
use systape_events::values::num;

/// Column of `= ret`, counted from the call's name: perf's `trace.args_alignment`.
const ALIGNMENT: usize = 70;
/// The same on a narrow terminal, at least.
const LEAST: usize = 24;
/// What a line has before and behind a call: time, duration, thread and a short result.
const BESIDE: usize = 44;

/// Form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether names of threads are left out.
    pub no_comm: bool,
    /// Whether arguments that are 0 are shown.
    pub show_zeros: bool,
    /// Form of constants.
    pub style: FlagStyle,
    /// Whether there are colors.
    pub color: bool,
}

/// perf trace's listing.
#[derive(Debug)]
pub struct PerfTraceText<'a> {
    session: &'a Session,
    look: Look,
    stamps: Stamps,
    /// What stands before each line.
    lead: Vec<u8>,
}

impl<'a> PerfTraceText<'a> {
    /// Lines of the tape of `session` behind its `label`.
    pub fn new(session: &'a Session, look: Look, stamps: Stamps, label: &TapeLabel) -> Self {
        Self { session, look, stamps, lead: label.lead(Format::Text) }
    }

    fn loss_line(&self, text: String) -> Vec<u8> {
        let text = if self.look.color { paint::error(text) } else { text };
        [&self.lead, text.as_bytes(), b"\n"].concat()
    }
}

impl LineFormat for PerfTraceText<'_> {
    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a> {
        let mut scratch = ValueScratch::default();
        let name = |task: &systape_format::model::Task| {
            let mut name = Vec::with_capacity(24);
            if !self.look.no_comm {
                scratch.escaped(&mut name, &task.comm);
                name.push(b'/');
            }
            num::unsigned(&mut name, u64::from(task.tid));
            name.push(b' ');
            name
        };
        let tasks = segment.dict.tasks.iter().map(name).collect();
        let open = segment.calls.iter().map(|call| format!("{}(", call.name).into_bytes()).collect();
        Box::new(TextLines {
            look: self.look,
            stamps: &self.stamps,
            lead: &self.lead,
            tape_start: TapeStart::of(self.session),
            segment,
            tasks,
            open,
            scratch,
            // on a terminal what was returned stands where the line has room for it
            aligned: output::room().map_or(ALIGNMENT, |room| room.saturating_sub(BESIDE).clamp(LEAST, ALIGNMENT)),
        })
    }

    fn gap(&self, gap: &Gap) -> Vec<u8> {
        self.loss_line(loss::gap_text(gap, |first, last| self.stamps.span(first, last)))
    }

    fn hole(&self, hole: &Hole) -> Vec<u8> {
        self.loss_line(loss::hole_text(hole, |first, last| self.stamps.span(first, last)))
    }
}

struct TextLines<'a> {
    look: Look,
    stamps: &'a Stamps,
    lead: &'a [u8],
    tape_start: TapeStart,
    segment: &'a Loaded,
    /// `comm/tid ` of each task.
    tasks: Vec<Vec<u8>>,
    /// `name(` of each call.
    open: Vec<Vec<u8>>,
    scratch: ValueScratch,
    /// Where the result stands behind the name of the call.
    aligned: usize,
}

impl SegmentLines for TextLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize, more: &[u8]) {
        let segment = self.segment;
        out.extend_from_slice(self.lead);
        self.time(out, row);
        self.duration(out, row);
        out.extend_from_slice(&self.tasks[segment.core.task[row] as usize]);
        let begin = out.len();
        let call = segment.core.call[row] as usize;
        out.extend_from_slice(&self.open[call]);
        arguments(out, &mut self.scratch, segment, row, self.look);
        out.push(b')');
        let width = columns(&out[begin..]);
        num::spaces(out, self.aligned.saturating_sub(width).max(1), b' ');
        out.extend_from_slice(b"= ");
        outcome(out, &mut self.scratch, segment, row, self.look.color);
        out.push(b'\n');
        out.extend_from_slice(more);
    }
}

/// Characters in `text`, which is UTF-8: perf counts bytes, but a path in another script would shift the column.
fn columns(text: &[u8]) -> usize {
    text.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

impl TextLines<'_> {
    fn time(&self, out: &mut Vec<u8>, row: usize) {
        let start = self.segment.time.start[row];
        let known = self.tape_start.is_known(self.segment.core.state[row], start);
        self.stamps.listed(out, known.then_some(start));
        out.push(b' ');
    }

    fn duration(&self, out: &mut Vec<u8>, row: usize) {
        let (ns, lead) = match row::duration(self.segment, row) {
            Duration::Exact(ns) => (ns, ""),
            Duration::AtLeast(ns) => (ns, mark::AT_LEAST),
            Duration::Unknown => return out.extend_from_slice(b"(         ): "),
        };
        out.push(b'(');
        let color = if self.look.color { paint::of_time(ns, lead.is_empty()) } else { "" };
        out.extend_from_slice(color.as_bytes());
        num::millis(out, ns, 6, lead);
        out.extend_from_slice(b" ms");
        if !color.is_empty() {
            out.extend_from_slice(output::PLAIN.as_bytes());
        }
        out.extend_from_slice(b"): ");
    }
}

/// Appends what a line shows behind `= `, without colors: `3`, `-1 ENOENT (No such file or directory)`, `? in flight`.
pub fn result(out: &mut Vec<u8>, scratch: &mut ValueScratch, segment: &Loaded, row: usize) {
    outcome(out, scratch, segment, row, false);
}

fn outcome(out: &mut Vec<u8>, scratch: &mut ValueScratch, segment: &Loaded, row: usize, color: bool) {
    match row::outcome(segment, row) {
        CallOutcome::Ret(ret) => returned(out, scratch, segment, row, ret),
        CallOutcome::Errno(errno) => {
            let (red, plain) = if color { (paint::RED, output::PLAIN) } else { ("", "") };
            out.extend_from_slice(red.as_bytes());
            out.extend_from_slice(b"-1 ");
            errno_words(out, errno);
            out.extend_from_slice(plain.as_bytes());
        }
        CallOutcome::Restart(errno) => {
            out.extend_from_slice(b"? ");
            errno_words(out, errno);
        }
        CallOutcome::InFlight => out.extend_from_slice(b"? in flight"),
        CallOutcome::Killed => out.extend_from_slice(b"? (killed)"),
        CallOutcome::NoReturn => out.push(b'?'),
        CallOutcome::NotRecorded => out.extend_from_slice(b"? (not recorded)"),
    }
    if segment.call(row).call.nr == NO_CALL {
        // what a tracer puts there comes after what is recorded
        out.extend_from_slice(b" (number -1: a tracer's, who may have answered otherwise)");
    }
}

fn returned(out: &mut Vec<u8>, scratch: &mut ValueScratch, segment: &Loaded, row: usize, ret: i64) {
    let call = segment.call(row);
    match call.ret {
        RetKind::Ptr | RetKind::Hex => num::hex(out, ret as u64),
        RetKind::Timeout if ret == 0 => out.extend_from_slice(b"0 (Timeout)"),
        RetKind::Mode => out.extend_from_slice(systape_abi::mode_text(ret as u32).as_bytes()),
        _ => num::signed(out, ret),
    }
    let after = value::after(scratch, segment, row);
    if !after.is_empty() {
        out.extend_from_slice(b" (");
        out.extend_from_slice(&after);
        out.push(b')');
    }
    if let Some(path) = row::returned_path(segment, row, ret) {
        out.push(b'<');
        scratch.escaped(out, &path);
        out.push(b'>');
    }
    if let Some(path) = row::removed_path(segment, row) {
        out.push(b'<');
        scratch.escaped(out, path);
        out.push(b'>');
    }
    if let Some(comm) = row::child_comm(segment, call, row, ret) {
        out.extend_from_slice(b" (");
        scratch.escaped(out, comm);
        out.push(b')');
    }
}

/// Flags with which an open may make a file.
const MAKES_FILE: u32 = uapi::O_CREAT | uapi::__O_TMPFILE;
/// Commands of fcntl that take no argument.
const FCNTL_WITHOUT_ARG: [u32; 7] = [
    uapi::F_GETFD,
    uapi::F_GETFL,
    uapi::F_GETOWN,
    uapi::F_GETSIG,
    uapi::F_GETLEASE,
    uapi::F_GETPIPE_SZ,
    uapi::F_GET_SEALS,
];

/// Whether a futex's operation `op` takes no argument `at`: futex(2).
fn futex_without(op: u64, at: usize) -> bool {
    // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
    let taken: &[usize] = match op & 0x7f {
        // FUTEX_WAIT, LOCK_PI, LOCK_PI2
        0 | 6 | 13 => &[3],
        // FUTEX_WAKE, UNLOCK_PI, TRYLOCK_PI
        1 | 7 | 8 => &[],
        // FUTEX_REQUEUE, WAIT_REQUEUE_PI
        3 | 11 => &[3, 4],
        // FUTEX_WAIT_BITSET
        9 => &[3, 5],
        // FUTEX_WAKE_BITSET
        10 => &[5],
        _ => return false,
    };
    at >= 3 && !taken.contains(&at)
}

/// Whether programs leave out argument `at`, so that it holds an old register value: the mode of an open that makes no file,
/// what fcntl's command and a futex's operation do not take.
pub fn unread(call: &CallInfo, at: usize, args: &[u64; 6]) -> bool {
    match (call.name.as_str(), at) {
        ("open", 2) => args[1] as u32 & MAKES_FILE == 0,
        ("openat", 3) => args[2] as u32 & MAKES_FILE == 0,
        ("futex" | "futex_time64", at) => futex_without(args[1], at),
        ("fcntl" | "fcntl64", 2) => FCNTL_WITHOUT_ARG.contains(&(args[1] as u32)),
        _ => false,
    }
}

/// Whether perf leaves out argument `at` because the kernel ignores it: also descriptor and offset of an anonymous mapping.
fn ignored(call: &CallInfo, at: usize, args: &[u64; 6]) -> bool {
    let anonymous = || call.name.starts_with("mmap") && args[3] as u32 & uapi::MAP_ANONYMOUS != 0;
    unread(call, at, args) || (at >= 4 && anonymous())
}

/// Appends `fd: 3</path>, buf: 0x7ffc, count: 79`.
pub fn arguments(out: &mut Vec<u8>, scratch: &mut ValueScratch, segment: &Loaded, row: usize, look: Look) {
    let call = segment.call(row);
    let Some(args) = segment.args.args.get(row) else {
        // the block of arguments is absent or damaged
        if !call.args.is_empty() {
            out.push(b'?');
        }
        return;
    };
    let captured = segment.captured(row);
    let mut first = true;
    for (at, arg) in call.args.iter().enumerate() {
        let unknown = segment.args.is_unknown(row, at);
        let zero = || !unknown && value::narrow(arg.kind, args[at]) == 0 && !value::shows_zero(arg.kind);
        let empty = || zero() || ignored(call, at, args);
        if matches!(arg.kind, ArgKind::HighHalf) || (!look.show_zeros && empty()) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(arg.label.as_bytes());
        let bytes = captured.iter().find(|c| usize::from(c.arg) == at);
        if bytes.is_some_and(|c| value::captured(out, scratch, segment, (row, at), c, look.style)) {
            continue;
        }
        if bytes.is_none() && value::is_empty_array(segment, row, arg.kind) {
            out.extend_from_slice(b"[]");
            continue;
        }
        if unknown {
            out.push(b'?');
            continue;
        }
        if at == 5 && call.name == "mmap" {
            // an offset, but perf prints this one in hex
            num::hex(out, args[at]);
            continue;
        }
        value::scalar(out, scratch, call, at, args, look.style);
        if let Some(why) = bytes.and_then(|bytes| value::missing(bytes.status)) {
            out.extend_from_slice(b" (");
            out.extend_from_slice(why.replace('-', " ").as_bytes());
            out.push(b')');
        }
        if let FdPath::Known(path) = segment.fd_path(row, at) {
            out.push(b'<');
            scratch.file(out, path);
            out.push(b'>');
        }
    }
}

/// `ENOENT (No such file or directory)`.
fn errno_words(out: &mut Vec<u8>, errno: u16) {
    match systape_abi::errno_name(errno) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => {
            out.extend_from_slice(b"errno ");
            num::unsigned(out, u64::from(errno));
        }
    }
    out.extend_from_slice(b" (");
    out.extend_from_slice(systape_abi::errno_text(errno).as_bytes());
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_a_futex_does_not_take_are_left_out() {
        let left_out = |op: u64| (0..6).filter(|at| futex_without(op, *at)).collect::<Vec<_>>();
        assert_eq!((left_out(128), left_out(129), left_out(9 | 128 | 256)), (vec![4, 5], vec![3, 4, 5], vec![4]));
        assert_eq!((left_out(3), left_out(4), left_out(5), left_out(99)), (vec![5], vec![], vec![], vec![]));
    }
}

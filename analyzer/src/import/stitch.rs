//! Calls and other events of lines: joins a call whose line was interrupted, and says whose a line without a thread is.

use std::collections::{HashMap, HashSet};

use super::body::{CallResult, StraceLine, StraceRemark, continued, find, parse};
use super::logs::LogLine;
use super::signals::LogSignal;

/// Most calls that are open at once, and most bytes of their arguments.
const MOST_OPEN: usize = 1 << 18;
const MOST_BYTES: usize = 256 << 20;
/// Lines of the program's own output after which a torn line is given up.
const MOST_FOREIGN: usize = 10_000;
/// The number of the only thread, while the log has not said it.
pub(super) const NOT_SAID: u32 = 0;

/// What lines say, in order.
#[derive(Debug)]
pub(super) enum LogEvent<'a> {
    /// A call.
    Call(StitchedCall<'a>),
    /// A call that is still open when the log ends, or its thread.
    Open(OpenCall),
    /// The end of a call whose beginning the log does not have.
    LostBegin {
        /// Name of the call.
        name: &'a [u8],
        /// Time of its end.
        ts: u64,
        /// What came of it.
        result: CallResult<'a>,
    },
    /// The thread ended, with the kernel's exit code.
    Ended(u32),
    /// The thread executed a program, for which it took this thread's number; that one is gone.
    TookOver(u32),
    /// The thread uses this many bits from now on.
    Bits(u8),
    /// The thread has this name.
    Named(Vec<u8>),
    /// A line that is not understood, and perhaps a call.
    NotUnderstood,
    /// A line that is not strace's.
    Foreign,
    /// The thread took a signal.
    Signal(LogSignal),
    /// A line about a signal that is not understood.
    StrangeSignal,
    /// Another line of strace's, without a call.
    Other,
}

/// A call that was put together.
#[derive(Debug)]
pub(super) struct StitchedCall<'a> {
    /// Name of the call.
    pub name: &'a [u8],
    /// What stands between its parentheses.
    pub args: &'a [u8],
    /// What came of it.
    pub result: CallResult<'a>,
    /// When it began.
    pub begin: u64,
    /// When its end was printed, if that was a line of its own.
    pub end: Option<u64>,
    /// Number of the line with its beginning.
    pub line: u64,
    /// Letters of others may stand behind its last argument.
    pub torn: bool,
}

/// A call that has no end yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenCall {
    /// Name of the call.
    pub name: Vec<u8>,
    /// Arguments so far.
    pub args: Vec<u8>,
    /// When it began.
    pub begin: u64,
    /// Number of the line with its beginning.
    pub line: u64,
    /// Letters of others may stand behind the last argument.
    pub torn: bool,
}

/// Takes lines and gives events.
#[derive(Debug, Default)]
pub(super) struct Stitcher {
    open: HashMap<u32, OpenCall>,
    bytes: usize,
    /// The line that was torn last, its thread, and lines of others since.
    torn: Option<(u32, OpenCall, usize)>,
    /// Threads of which lines came, and that have not ended.
    live: HashSet<u32>,
    /// Threads that strace said it attached to.
    attached: HashSet<u32>,
    /// The thread of lines that name none, while there are several.
    pub sole: Option<u32>,
    /// Lines named no thread.
    pub nameless: bool,
    /// Lines taken.
    pub lines: u64,
}

impl Stitcher {
    /// One for a log whose first thread is `sole`.
    pub(super) fn new(sole: Option<u32>) -> Self {
        Self { sole, ..Self::default() }
    }

    /// The thread of a line that names none: the only one there is, as strace leaves it out then.
    fn only(&mut self) -> u32 {
        self.nameless = true;
        let sole = self.sole.unwrap_or(NOT_SAID);
        match self.live.iter().next() {
            Some(one) if self.live.len() == 1 => *one,
            _ => sole,
        }
    }

    /// Takes a line; `take` gets the thread, the time and what the line says of it.
    pub(super) fn line(&mut self, line: &LogLine, dated: bool, mut take: impl FnMut(u32, u64, LogEvent<'_>)) {
        self.lines += 1;
        // without a time, in a log that has times, it is no line of its own
        if dated && !line.timed {
            return self.foreign(line, &mut take);
        }
        if let Some((tid, ..)) = self.torn.take() {
            take(tid, line.ts, LogEvent::NotUnderstood);
        }
        let tid = match line.tid {
            Some(tid) => tid,
            None => self.only(),
        };
        let Some(parsed) = parse(&line.body) else {
            return take(tid, line.ts, LogEvent::NotUnderstood);
        };
        let mut has_lines = true;
        match parsed {
            StraceLine::Whole { name, args, result } => {
                self.name(tid, line, &mut take);
                let (begin, end) = (line.ts, None);
                let call = StitchedCall { name, args, result, begin, end, line: self.lines, torn: false };
                // what was open has lost its end
                self.abandon(tid, line.ts, &mut take);
                take(tid, line.ts, LogEvent::Call(call));
            }
            StraceLine::Begun { name, args } => {
                self.name(tid, line, &mut take);
                self.abandon(tid, line.ts, &mut take);
                self.begin(tid, self.opened(name, args, line.ts, false), &mut take);
            }
            StraceLine::Torn { name, args } => {
                self.name(tid, line, &mut take);
                self.abandon(tid, line.ts, &mut take);
                let remark = find(args, b"strace: Process ");
                if let Some(StraceLine::Remark(StraceRemark::Attached(child))) =
                    remark.and_then(|at| parse(&args[at..]))
                {
                    self.attached.insert(child);
                }
                let args = remark.map_or(args, |at| &args[..at]);
                self.torn = Some((tid, self.opened(name, args, line.ts, remark.is_none()), 0));
            }
            StraceLine::Resumed { name, args, result } => {
                self.name(tid, line, &mut take);
                self.resumed(tid, line.ts, (name, args, result), &mut take);
            }
            StraceLine::Ended(code) => {
                if let Some(open) = self.taken(tid) {
                    take(tid, line.ts, LogEvent::Open(open));
                }
                take(tid, line.ts, LogEvent::Ended(code));
                self.live.remove(&tid);
                has_lines = false;
            }
            StraceLine::Superseded(by) => {
                // the call of that thread goes on under this number
                if let Some(open) = self.taken(tid) {
                    take(tid, line.ts, LogEvent::Open(open));
                }
                if let Some(open) = self.taken(by) {
                    self.bytes += open.args.len();
                    self.open.insert(tid, open);
                }
                self.live.remove(&by);
                take(tid, line.ts, LogEvent::TookOver(by));
            }
            StraceLine::Signal(text) => {
                take(tid, line.ts, LogSignal::read(text).map_or(LogEvent::StrangeSignal, LogEvent::Signal));
            }
            StraceLine::Stopped => take(tid, line.ts, LogEvent::Other),
            StraceLine::Remark(remark) => {
                has_lines = false;
                self.remark(remark, line.ts, &mut take);
            }
            StraceLine::Frame => take(tid, line.ts, LogEvent::Other),
        }
        if has_lines && self.live.len() < MOST_OPEN {
            self.live.insert(tid);
        }
    }

    /// The log is over: what is open stays so.
    pub(super) fn finish(mut self, ts: u64, mut take: impl FnMut(u32, u64, LogEvent<'_>)) {
        if let Some((tid, open, _)) = self.torn.take() {
            take(tid, ts, LogEvent::Open(open));
        }
        let mut open: Vec<(u32, OpenCall)> = self.open.drain().collect();
        open.sort_by_key(|(tid, open)| (open.begin, *tid));
        open.into_iter().for_each(|(tid, open)| take(tid, ts, LogEvent::Open(open)));
    }

    /// The only thread, which had no number, is `tid`.
    pub(super) fn is_named(&mut self, tid: u32) {
        self.sole = Some(tid);
        if self.live.remove(&NOT_SAID) {
            self.live.insert(tid);
        }
        if let Some(open) = self.open.remove(&NOT_SAID) {
            self.open.insert(tid, open);
        }
    }

    /// Whether strace said that it attached to this thread later.
    pub(super) fn was_attached(&self, tid: u32) -> bool {
        self.attached.contains(&tid)
    }

    fn opened(&self, name: &[u8], args: &[u8], begin: u64, torn: bool) -> OpenCall {
        OpenCall { name: name.to_vec(), args: args.to_vec(), begin, line: self.lines, torn }
    }

    fn begin(&mut self, tid: u32, open: OpenCall, take: &mut impl FnMut(u32, u64, LogEvent<'_>)) {
        let bytes = self.bytes.saturating_add(open.args.len());
        if self.open.len() >= MOST_OPEN || bytes > MOST_BYTES {
            return take(tid, open.begin, LogEvent::NotUnderstood);
        }
        self.bytes = bytes;
        self.open.insert(tid, open);
    }

    fn taken(&mut self, tid: u32) -> Option<OpenCall> {
        let open = self.open.remove(&tid)?;
        self.bytes -= open.args.len();
        Some(open)
    }

    /// A thread begins a call although another of its is open: the line with the end is missing.
    fn abandon(&mut self, tid: u32, ts: u64, take: &mut impl FnMut(u32, u64, LogEvent<'_>)) {
        if self.taken(tid).is_some() {
            take(tid, ts, LogEvent::NotUnderstood);
        }
    }

    fn name(&self, tid: u32, line: &LogLine, take: &mut impl FnMut(u32, u64, LogEvent<'_>)) {
        if let Some(comm) = &line.comm {
            take(tid, line.ts, LogEvent::Named(comm.clone()));
        }
    }

    fn resumed(
        &mut self,
        tid: u32,
        ts: u64,
        (name, args, result): (&[u8], &[u8], CallResult<'_>),
        take: &mut impl FnMut(u32, u64, LogEvent<'_>),
    ) {
        // the first thread had no number when it began the call
        if self.sole.is_none() && !self.open.contains_key(&tid) {
            let same = self.open.get(&NOT_SAID).is_some_and(|open| open.name == name);
            if same {
                self.is_named(tid);
            }
        }
        let Some(open) = self.taken(tid).filter(|open| open.name == name) else {
            return take(tid, ts, LogEvent::LostBegin { name, ts, result });
        };
        let mut all = open.args;
        if continues(args) {
            all.push(b' ');
        } else if !all.is_empty() && !all.ends_with(b",") && !args.is_empty() && !args.starts_with(b",") {
            all.push(b',');
        }
        all.extend_from_slice(args);
        let (begin, end) = (open.begin, Some(ts));
        let call = StitchedCall { name, args: &all, result, begin, end, line: open.line, torn: open.torn };
        take(tid, ts, LogEvent::Call(call));
    }

    /// A line without a time: the program's own output, perhaps with the rest of a call behind it.
    fn foreign(&mut self, line: &LogLine, take: &mut impl FnMut(u32, u64, LogEvent<'_>)) {
        let body = line.body.trim_ascii();
        if let Some(StraceLine::Remark(remark)) = parse(body) {
            return self.remark(remark, line.ts, take);
        }
        if matches!(parse(body), Some(StraceLine::Frame)) {
            return take(line.tid.unwrap_or(NOT_SAID), line.ts, LogEvent::Other);
        }
        if let Some((tid, open, foreign)) = self.torn.take() {
            if body.ends_with(b"<unfinished ...>") {
                return self.begin(tid, open, take);
            }
            let end = end_of_torn(body);
            if let Some((rest, result)) = end.and_then(|at| continued(&body[at..])) {
                let mut args = open.args.clone();
                args.extend_from_slice(rest);
                let OpenCall { name, begin, line: number, torn, .. } = &open;
                let (begin, end, torn) = (*begin, None, *torn || end != Some(0));
                let call = StitchedCall { name, args: &args, result, begin, end, line: *number, torn };
                return take(tid, line.ts, LogEvent::Call(call));
            }
            if foreign < MOST_FOREIGN {
                self.torn = Some((tid, open, foreign + 1));
            } else {
                take(tid, line.ts, LogEvent::NotUnderstood);
            }
            return take(tid, line.ts, LogEvent::Foreign);
        }
        // the program wrote something in front of a line of strace's
        let hidden = find(body, b") = ").is_some() || body.ends_with(b"<unfinished ...>");
        let what = if hidden { LogEvent::NotUnderstood } else { LogEvent::Foreign };
        take(line.tid.unwrap_or(NOT_SAID), line.ts, what);
    }

    fn remark(&mut self, remark: StraceRemark, ts: u64, take: &mut impl FnMut(u32, u64, LogEvent<'_>)) {
        match remark {
            StraceRemark::Attached(tid) => {
                if self.attached.len() < MOST_OPEN {
                    self.attached.insert(tid);
                }
                take(tid, ts, LogEvent::Other);
            }
            StraceRemark::Bits(tid, bits) => take(tid, ts, LogEvent::Bits(bits)),
            StraceRemark::Other => take(self.sole.unwrap_or(NOT_SAID), ts, LogEvent::Other),
        }
    }
}

/// Whether the rest of a call goes on in the middle of an argument: `{flags=...} => {parent_tid=[7]}, 88`.
fn continues(args: &[u8]) -> bool {
    args.starts_with(b"=>") || args.starts_with(b"}") || args.starts_with(b"]")
}

/// Where the end of a torn call begins in a line: the parenthesis before ` = `.
fn end_of_torn(body: &[u8]) -> Option<usize> {
    if body.starts_with(b")") {
        return Some(0);
    }
    let equals = body.windows(3).rposition(|three| three == b" = ")?;
    let before = body[..equals].trim_ascii_end();
    before.ends_with(b")").then(|| before.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::super::lead::{LineTime, split};
    use super::*;

    /// What lines say, as texts.
    fn events(text: &str, sole: Option<u32>) -> Vec<String> {
        let mut stitcher = Stitcher::new(sole);
        let mut all = Vec::new();
        let mut last = 0;
        let mut take = |tid: u32, _: u64, event: LogEvent<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push(match event {
                LogEvent::Call(call) => {
                    let torn = if call.torn { " torn" } else { "" };
                    format!("{tid} {}({}) = {:?}{torn}", text(call.name), text(call.args), call.result.ret)
                }
                LogEvent::Open(open) => format!("{tid} {}({} open", text(&open.name), text(&open.args)),
                LogEvent::LostBegin { name, .. } => format!("{tid} {} without begin", text(name)),
                other => format!("{tid} {other:?}"),
            });
        };
        for line in text.lines() {
            let (lead, rest) = split(line.as_bytes());
            let ts = match lead.time {
                Some(LineTime::Epoch(ts)) => Some(ts),
                _ => None,
            };
            last = ts.unwrap_or(last);
            let line =
                LogLine { tid: lead.tid, ts: last, timed: ts.is_some(), body: rest.to_vec(), ..LogLine::default() };
            stitcher.line(&line, true, &mut take);
        }
        stitcher.finish(last, &mut take);
        all
    }

    #[test]
    fn calls_in_two_lines_are_joined() {
        let text = "7 1796068175.1 read(3,  <unfinished ...>\n8 1796068175.2 close(4) = 0\n\
                    7 1796068175.3 <... read resumed>\"a\", 5) = 1\n7 1796068175.4 <... wait4 resumed>) = 8\n\
                    8 1796068175.5 read(0,  <unfinished ...>\n8 1796068175.6 +++ killed by SIGKILL +++\n\
                    7 1796068175.7 pause( <unfinished ...>\n";
        assert_eq!(
            events(text, None),
            [
                "8 close(4) = Some(0)",
                "7 read(3,\"a\", 5) = Some(1)",
                "7 wait4 without begin",
                "8 read(0, open",
                "8 Ended(9)",
                "7 pause( open"
            ]
        );
    }

    #[test]
    fn output_of_the_program_between_lines_is_passed_over() {
        let text = "1796068175.1 write(2, \"hello\\n\", 6hello\n) = 6 <0.1>\n1796068175.2 close(3) = 0\nsome words\n\
                    1796068175.3 write(1, \"x\", 1x) = 1\nprompt: 1796068175.4 read(0, \"y\", 1) = 1\n";
        assert_eq!(
            events(text, Some(5)),
            [
                "5 write(2, \"hello\\n\", 6hello) = Some(6) torn",
                "5 close(3) = Some(0)",
                "0 Foreign",
                "5 write(1, \"x\", 1x) = Some(1)",
                "0 NotUnderstood"
            ]
        );
    }

    #[test]
    fn a_thread_that_is_not_named_is_the_only_one() {
        let text = "1796068175.1 vfork(strace: Process 8 attached\n <unfinished ...>\n[pid 8] 1796068175.2 close(3) = 0\n\
                    [pid 7] 1796068175.3 <... vfork resumed>) = 8\n[pid 8] 1796068175.4 +++ exited with 0 +++\n\
                    1796068175.5 close(4) = 0\n";
        assert_eq!(
            events(text, None),
            ["8 close(3) = Some(0)", "7 vfork() = Some(8)", "8 Ended(0)", "7 close(4) = Some(0)"]
        );
    }

    #[test]
    fn a_thread_that_executes_takes_the_number_of_its_process() {
        let text = "8 1796068175.1 execve(\"/a\",  <unfinished ...>\n7 1796068175.2 futex(0x1,  <unfinished ...>\n\
                    7 1796068175.3 +++ superseded by execve in pid 8 +++\n7 1796068175.4 <... execve resumed>[], 0x1) = 0\n";
        assert_eq!(events(text, None), ["7 futex(0x1, open", "7 TookOver(8)", "7 execve(\"/a\",[], 0x1) = Some(0)"]);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_strange(lines: Vec<Vec<u8>>, sole: Option<u32>) {
            let mut stitcher = Stitcher::new(sole);
            for bytes in &lines {
                let (lead, rest) = split(bytes);
                let line = LogLine { tid: lead.tid, timed: lead.time.is_some(), body: rest.to_vec(), ..LogLine::default() };
                stitcher.line(&line, true, |_, _, _| {});
            }
            stitcher.finish(0, |_, _, _| {});
        }
    }
}

//! `analyze files`: what was done with each file, as sums; or calls on files one a line, as opensnoop and fileslower print them.
//!
//! What is read through a mapping of memory or by io_uring is no call and not here.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anyhow::{Result, bail};
use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::{ArgKind, FlagStyle, Io, errno_name};
use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Call, CallState, Family, LedgerReason, LedgerRow, Task};
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::calls::CallInfo;
use crate::config::Config;
use crate::config::view::Part::{All, Keys};
use crate::config::view::{CALLS, CPUS, Own, Rows, Run, TASKS, View};
use crate::filter::failed;
use crate::group::by::By;
use crate::group::open::Open;
use crate::group::value::{Key, Value};
use crate::group::{Add, Groups};
use crate::lines::row::{Duration, duration};
use crate::lines::tables::LOSSES;
use crate::lines::value::narrow;
use crate::load::Loaded;
use crate::output::{self, line};
use crate::paths::feed::{Reader, Told, Waiting, feed};
use crate::paths::join;
use crate::paths::names::{Name, Use, uses};
use crate::question::clock;
use crate::render::by;
use crate::render::cell::Cell;
use crate::render::form::Form;
use crate::render::keys::with_keys;
use crate::render::mark;
use crate::render::row::{Row, Times, some};
use crate::render::sink::{self, Sink};
use crate::render::table::{Table, millis, seconds};
use crate::say::{Verdict, complain};
use crate::scan::Scan;
use crate::stream::{Loose, Merger};
use crate::summary::labels::Labels;
use crate::summary::ledger::{Judge, Passes, threads};
use crate::summary::plan::{Plan, RowPart};
use crate::words::escaped;
use crate::{families, timespec};

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns; `file` without it. What record counted and did not store has no file
    /// and no size: it is in rows with null for `file`, and what else may hold it is at least.
    pub FILES = "files" {
        calls ? AtLeast: Count "calls on files; a call on two counts for both"
        opens ? AtLeast: Count "of these, those that open, failed ones too"
        reads ? AtLeast: Count "those that read, failed ones too"
        writes ? AtLeast: Count "those that write, failed ones too"
        errors ? AtLeast: Count "those that failed"
        read_bytes ? AtLeast: Wide "what they read"
        write_bytes ? AtLeast: Wide "what they wrote"
        total_ns ? AtLeast: Duration "time in all of them"
        max_ns ? AtLeast: Duration "the longest"
        ledger_calls ? AtLeast: Count "part of `calls` known by count only ([calls that were counted](reading-reports.md#calls-that-were-counted))"
    }
    /// One row for each call on a file that `--opens` or `--slower` lists, in the order in which they returned.
    pub FILE_CALLS = "file_calls" {
        ts_ns: Time "when it began"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        dur_ns ? AtLeast: Duration "how long it took; null: not known"
        pid: Int "process"
        tid: Int "thread"
        upid: Int "the process, unique in the tape"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        uid: Int "real user; null: not known"
        syscall: Word "its name"
        fd: Int "the new descriptor; null: it failed, it did not return, or it opens nothing"
        errno: Word "name of the error; null: none"
        errno_code: Int "its number; null: none"
        flags.value: Int "flags of the open; `flags` null: it is none, or they are not known"
        flags.text: Word "the same in words: `WRONLY|CREAT`"
        read_bytes: Wide "what it read; null: it does not read, or failed, or did not return"
        write_bytes: Wide "what it wrote; null: it does not write, or failed, or did not return"
        file: Str [Path] "full path; null: not known"
        name: Str [Path] "the path as the program gave it, if it did; null: it gave a descriptor, or it is not on the tape"
        file2: Str [Path] "of a call on two files the other one; null: there is none, or it is not known"
    }
}

/// What is asked.
pub static VIEW: View = View {
    name: "files",
    about: "What was done with each file: opens, reads, writes, bytes, errors, time; or opens and slow calls one a line",
    options: &[TASKS, CALLS, CPUS, &["time", "max_events", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze files --by comm,file -p 2214", "files and threads of a process, by time"),
        ("analyze files --opens --failure", "what could not be opened, with full paths"),
    ],
    tables: &[
        Rows::of("files", &[Keys(&by::BY), All(&FILES)]),
        Rows::of("files --opens", &[All(&FILE_CALLS)]),
        Rows::json("files --opens", &[All(&LOSSES)]),
    ],
    check,
    run: Run::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// One line an open, in the order in which they returned, as opensnoop
    #[arg(long)]
    opens: bool,

    /// One line a call on a file that took longer than this, as fileslower; a bare number is ms
    #[arg(long, value_name = "TIME")]
    slower: Option<String>,

    /// Sockets, pipes and other descriptors too that are of no file
    #[arg(long)]
    sockets: bool,

    /// Rows to print; 0: all [default: 40]
    #[arg(long = "top", value_name = "N")]
    top: Option<usize>,
}

impl Options {
    fn listed(&self) -> bool {
        self.opens || self.slower.is_some()
    }
}

/// Rows if nothing is said.
const TOP: usize = 40;

/// What cannot be asked together.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    By::parse(&config.by, &Plan::KNOWN, "'analyze files'")?;
    slower(&own)?;
    let lines = config.max_events != u64::MAX || config.look.absolute;
    match own.listed() {
        true if !config.by.is_empty() || own.top.is_some() => {
            bail!("--opens and --slower list calls: --by and --top are for sums")
        }
        false if lines => bail!("-T and --max-events are for lines: they need --opens or --slower (rows: --top N)"),
        _ => Ok(()),
    }
}

fn slower(own: &Options) -> Result<Option<u64>> {
    own.slower.as_ref().map(|text| timespec::duration(text, 1_000_000).map_err(|e| e.context("--slower"))).transpose()
}

/// Prints what `config` asks for.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let own: Options = config.own()?;
    // paths follow from where processes are
    let by_path = own.listed() || config.by.is_empty() || By::parse(&config.by, &Plan::KNOWN, "")?.contains(&By::File);
    let families = if by_path { &[Family::Syscall, Family::Process][..] } else { &[Family::Syscall] };
    let mut context = Context::about(config, tape, families)?;
    let mut out = output::stdout()?;
    let mut doubts = false;
    if own.listed() {
        list(&mut context, &own, slower(&own)?, &mut out)?;
        losses::tell_filtered(&context);
    } else {
        doubts = sums(&mut context, &own, &mut out)?;
    }
    out.flush()?;
    let lost = !context.question.loss.complete();
    if lost && (own.listed() || config.format.rows().is_some()) {
        losses::tell(&context, own.listed() && config.format.rows() != Some(Form::Csv));
    }
    Ok(Verdict { lost: lost || doubts, bad: false })
}

/// Whether what a descriptor stood for is a file, or may be one.
fn is_file(name: &Name<'_>) -> bool {
    match name {
        // redacted names are known to differ, no more
        Name::Known(name) => name.starts_with(b"/") || name.starts_with(b"<redacted"),
        Name::InCwd(_) | Name::Unknown => true,
    }
}

/// Whether a call has an argument that may name a file.
fn on_files(info: &CallInfo) -> bool {
    info.io == Io::Open || info.args.iter().any(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Fd))
}

/// Whether a call has an argument that names a file.
fn names_file(info: &CallInfo) -> bool {
    info.args.iter().any(|arg| matches!(arg.kind, ArgKind::Path))
}

/// Whether what `on` is about may be no file: a descriptor of which nothing is known.
fn may_be_none(segment: &Loaded, row: usize, on: &Use<'_>) -> bool {
    on.name == Name::Unknown && matches!(segment.call(row).args[on.arg].kind, ArgKind::Fd)
}

// ---- sums

/// Time and bytes of calls on one thing.
#[derive(Clone, Debug, Default)]
struct Work {
    calls: u64,
    opens: u64,
    reads: u64,
    writes: u64,
    errors: u64,
    read: u64,
    written: u64,
    ns: u64,
    max: u64,
    /// Part of `calls`: those that were counted and not stored.
    ledger: u64,
    /// There may be more bytes, time.
    read_short: bool,
    written_short: bool,
    ns_short: bool,
}

impl Add for Work {
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.errors, other.errors),
            (&mut self.read, other.read),
            (&mut self.written, other.written),
            (&mut self.ns, other.ns),
            (&mut self.ledger, other.ledger),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.max = self.max.max(other.max);
        self.read_short |= other.read_short;
        self.written_short |= other.written_short;
        self.ns_short |= other.ns_short;
    }
}

impl Work {
    /// What the call of `row` did through these of its arguments.
    fn of(segment: &Loaded, row: usize, args: &[usize]) -> Self {
        let (info, state, errno) = (segment.call(row), segment.core.state[row], segment.core.errno[row]);
        let mut work = Self { calls: 1, errors: failed(state, errno).into(), ..Self::default() };
        match duration(segment, row) {
            Duration::Exact(ns) => (work.ns, work.max) = (ns, ns),
            Duration::AtLeast(ns) => (work.ns, work.max, work.ns_short) = (ns, ns, true),
            Duration::Unknown => work.ns_short = !info.is_exit,
        }
        work.opens = u64::from(info.io == Io::Open);
        let moved = if errno == 0 && state.returned() {
            segment.args.ret.get(row).map(|ret| u64::try_from(*ret).unwrap_or(0))
        } else {
            Some(0)
        };
        let through = |arg: Option<usize>| arg.is_some_and(|arg| args.contains(&arg));
        if through(info.io.reads()) {
            (work.reads, work.read, work.read_short) = (1, moved.unwrap_or(0), moved.is_none());
        }
        if through(info.io.writes()) {
            (work.writes, work.written, work.written_short) = (1, moved.unwrap_or(0), moved.is_none());
        }
        work
    }

    /// What calls that were counted did.
    fn counted(info: &CallInfo, row: &LedgerRow) -> Self {
        let io = |does: bool| if does { row.count } else { 0 };
        let moves = row.errno == 0 && row.state.returned();
        // of rows without a process the error is any
        let any = row.errno == u16::MAX;
        let timed = row.state == CallState::Complete;
        Self {
            calls: row.count,
            opens: io(info.io == Io::Open),
            reads: io(info.io.reads().is_some()),
            writes: io(info.io.writes().is_some()),
            errors: io(any || failed(row.state, row.errno)),
            read_short: moves && info.io.reads().is_some(),
            written_short: moves && info.io.writes().is_some(),
            ns: row.sum,
            max: row.max,
            ledger: row.count,
            ns_short: !timed,
            ..Self::default()
        }
    }
}

/// Reads calls for sums.
struct Totals<'a> {
    context: &'a Context<'a>,
    plan: &'a Plan,
    sockets: bool,
}

/// Sums of a segment.
#[derive(Default)]
struct Sums {
    groups: Groups<Work>,
    /// Which of them may have more calls, opens, reads, writes.
    open: [Open; 4],
    /// What the tasks among the keys are called.
    labels: Labels,
    /// Calls that are in no group, because it is not known whether they are asked for.
    doubts: u64,
    /// Some of them were lost: counted and not stored.
    doubts_lost: bool,
}

impl Sums {
    fn merge(&mut self, other: Self) {
        self.groups.merge(other.groups);
        self.open.iter_mut().zip(other.open).for_each(|(open, other)| open.merge(other));
        self.labels.merge(other.labels);
        self.doubts = self.doubts.saturating_add(other.doubts);
        self.doubts_lost |= other.doubts_lost;
    }

    fn add(&mut self, key: &[Value], work: &Work) {
        self.groups.of(key).add(work);
        self.leave_open(key, work, false);
    }

    /// Calls that did `work` may be asked for.
    fn doubt(&mut self, key: &[Value], work: &Work) {
        self.doubts = self.doubts.saturating_add(work.calls);
        self.leave_open(key, work, true);
    }

    /// Calls that did `work` may be of another group than that of `key`; `missing`: they are in none.
    fn leave_open(&mut self, key: &[Value], work: &Work, missing: bool) {
        for (open, calls) in self.open.iter_mut().zip([work.calls, work.opens, work.reads, work.writes]) {
            if calls > 0 {
                open.add(key, missing);
            }
        }
    }
}

/// A call on a file in the current directory.
struct Relative {
    key: Key,
    /// Where the file stands in it.
    at: usize,
    name: Vec<u8>,
    work: Work,
}

/// What a row's key is made from: task, call; 0 for what is not asked. Files are positions in a list.
type Codes = (u32, u32, RowPart);

impl Totals<'_> {
    /// Whether calls on what may be no file are in a row: in that of the file that is not known.
    fn counts_unknown(&self) -> bool {
        self.sockets || self.plan.has(By::File)
    }

    /// Adds what was counted and not stored.
    fn ledger(&self, tape: &Tape, sums: &mut Sums) -> crate::scan::Coverage {
        let question = &self.context.question;
        let (scope, book) = (&question.scope, &question.book);
        let threads = threads(tape, scope, self.plan);
        let judge = Judge { scope, book, plan: self.plan, threads: threads.as_ref() };
        let has = (0..tape.segments().len())
            .filter(|at| tape.segment(*at).has(BlockKind::Ledger) && scope.may_count(&tape.segments()[*at]));
        let (parts, coverage) = Scan::of(tape, has.collect()).fold(Sums::default, |sums, segment, coverage| {
            let read = segment.dict().and_then(|dict| Ok((segment.ledger(&dict)?, dict)));
            let (rows, dict) = match read {
                Ok(read) => read,
                Err(error) => return coverage.hole(segment, u32::MAX, &error),
            };
            for row in rows {
                let Some(call) = dict.calls.get(row.call as usize).copied() else { continue };
                let info = book.get(call);
                // what was stored too is counted there; nobody called the child's side of a clone
                let elsewhere = row.reason == LedgerReason::Checked || row.state == CallState::CloneChild;
                if elsewhere || !scope.call(&call) || !on_files(&info) {
                    continue;
                }
                let task = row.task.and_then(|task| dict.tasks.get(task as usize));
                let key = self.plan.counted(&row, task, &info, judge.cgroup(&row, task, dict.window_end));
                // of a descriptor that may be a socket's
                let may_be_none = !self.counts_unknown() && info.io != Io::Open && !names_file(&info);
                match judge.passes(&row, task, dict.window_end) {
                    Passes::No => {}
                    Passes::Yes if !may_be_none => {
                        if let Some(task) = task {
                            let place = (segment.info().segment, row.task.unwrap_or(0));
                            sums.labels.add(&key, task, self.plan, place);
                        }
                        sums.add(&key, &Work::counted(&info, &row));
                    }
                    Passes::Yes | Passes::Maybe(_) => {
                        sums.doubt(&key, &Work::counted(&info, &row));
                        sums.doubts_lost |= row.reason.is_loss();
                    }
                }
            }
        });
        parts.into_iter().for_each(|part| sums.merge(part));
        coverage
    }
}

impl Reader for Totals<'_> {
    type Sum = Sums;
    type Row = Relative;

    fn wants(&self, segment: usize) -> bool {
        self.context.question.scope.may_match(&self.context.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Relative>>) -> Sums {
        let filter = self.context.question.scope.segment(&segment.dict);
        let calls: Vec<bool> = segment.calls.iter().map(|info| on_files(info)).collect();
        let plan = self.plan;
        let (by_file, by_call) = (plan.has(By::File), plan.has(By::Syscall));
        let by_task = [By::Pid, By::Tid, By::Comm, By::Uid, By::Cgroup].into_iter().any(|by| plan.has(by));
        let mut files: Vec<Value> = vec![Value::None, Value::Unknown];
        let mut numbers: FxHashMap<Cow<'_, [u8]>, u32> = FxHashMap::default();
        let mut sums: FxHashMap<Codes, Work> = FxHashMap::default();
        let mut open: Vec<(Codes, Work)> = Vec::new();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let codes = |row: usize, file: u32| -> Codes {
            let asked = |asked: bool, code: u32| if asked { code } else { 0 };
            let cpu = segment.time.cpu.get(row).copied().unwrap_or(CPU_NONE);
            let part = plan.part((segment.core.state[row], segment.core.errno[row]), file, cpu);
            (asked(by_task, segment.core.task[row]), asked(by_call, segment.core.call[row]), part)
        };
        let key = |(task, call, part): Codes, file: &Value| -> Key {
            let mut key = plan.key(&segment.dict.tasks[task as usize], segment.dict.calls[call as usize]);
            plan.row(&mut key, part, |_| file.clone());
            key
        };
        for row in range {
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            let call = segment.core.call[row] as usize;
            if !calls[call] || segment.core.state[row] == CallState::CloneChild || !passes {
                continue;
            }
            let mut on: Vec<Use<'_>> = uses(segment, row).filter(|on| self.sockets || is_file(&on.name)).collect();
            if on.is_empty() {
                continue;
            }
            if !by_file {
                let (sure, unsure): (Vec<Use<'_>>, Vec<Use<'_>>) =
                    on.into_iter().partition(|on| self.counts_unknown() || !may_be_none(segment, row, on));
                let args = |on: &[Use<'_>]| on.iter().map(|on| on.arg).collect::<Vec<usize>>();
                let codes = codes(row, 0);
                if sure.is_empty() {
                    open.push((codes, Work::of(segment, row, &args(&unsure))));
                    continue;
                }
                sums.entry(codes).or_default().add(&Work::of(segment, row, &args(&sure)));
                if !unsure.is_empty() {
                    open.push((codes, Work { calls: 0, opens: 0, ..Work::of(segment, row, &args(&unsure)) }));
                }
                continue;
            }
            while let Some(Use { arg, name, .. }) = on.pop() {
                // twice the same, as dup2 of a descriptor to itself, is one file
                let mut args = vec![arg];
                if matches!(name, Name::Known(_)) {
                    on.retain(|other| {
                        let same = other.name == name;
                        args.extend(same.then_some(other.arg));
                        !same
                    });
                }
                let work = Work::of(segment, row, &args);
                let file = match name {
                    Name::Unknown => 1,
                    Name::Known(path) => *numbers.entry(path).or_insert_with_key(|path| {
                        files.push(Value::Text(Arc::from(&**path)));
                        files.len() as u32 - 1
                    }),
                    Name::InCwd(name) => {
                        let at = plan.place(By::File).unwrap_or(0);
                        let key = key(codes(row, 1), &Value::Unknown);
                        let what = Relative { key, at, name: name.to_vec(), work };
                        waiting.push(Waiting { row, what });
                        seen.insert(segment.core.task[row]);
                        continue;
                    }
                };
                sums.entry(codes(row, file)).or_default().add(&work);
            }
        }
        let mut all = Sums::default();
        seen.extend(sums.keys().map(|codes| codes.0).chain(open.iter().map(|(codes, _)| codes.0)));
        for entry in seen.into_iter().filter(|_| plan.has(By::Pid)) {
            let task = &segment.dict.tasks[entry as usize];
            all.labels.add(&plan.key(task, Call::default()), task, plan, (segment.number, entry));
        }
        for (codes, work) in open {
            all.doubt(&key(codes, &Value::Unknown), &work);
        }
        for (codes, work) in sums {
            all.add(&key(codes, &files[codes.2.file as usize]), &work);
        }
        all
    }
}

/// Prints sums; gives whether calls that may be asked for were lost.
fn sums(context: &mut Context<'_>, own: &Options, out: &mut BufWriter<File>) -> Result<bool> {
    let config = context.config;
    let mut by = By::parse(&config.by, &Plan::KNOWN, "'analyze files'")?;
    if by.is_empty() {
        by.push(By::File);
    }
    let plan = Plan::by(&by);
    let totals = Totals { context, plan: &plan, sockets: own.sockets };
    let mut sums = Sums::default();
    let mut holes = feed(&context.question, &totals, |told| {
        match told {
            Told::Sum(part) => sums.merge(part),
            Told::Row(Relative { mut key, at, name, work }, cwd) => {
                if let Some(path) = cwd.and_then(|cwd| join(&cwd, &name)) {
                    key[at] = Value::Text(path.into());
                }
                sums.add(&key, &work);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let coverage = totals.ledger(context.question.tape, &mut sums);
    coverage.tell(&mut context.question.loss);
    // what is in the ledger is in the sums
    context.question.loss.gaps.retain(|gap| !gap.ledger);
    context.question.loss.holes.append(&mut holes);
    let doubts = (sums.doubts > 0).then(|| doubt_text(sums.doubts));
    let judges = sums.open.each_ref().map(|open| open.judge(None));
    let mut rows = std::mem::take(&mut sums.groups).into_sums();
    rows.sort_by(|(a, x), (b, y)| (Reverse(x.ns), Reverse(x.calls), a).cmp(&(Reverse(y.ns), Reverse(y.calls), b)));
    let limit = match own.top.unwrap_or(TOP) {
        0 => usize::MAX,
        top => top,
    };
    let names = Names { context, labels: &sums.labels, plan: &plan };
    let lost = !context.question.loss.complete();
    let short = |key: &[Value]| judges.each_ref().map(|judge| lost || judge.short(key));
    let shown = rows.iter().take(limit).map(|(key, work)| (key, work, short(key)));
    if let Some(form) = config.format.rows() {
        let declared = with_keys(by::columns(plan.keys()), &FILES);
        let rows = shown.map(|(key, work, [calls, opens, reads, writes])| {
            let mut row = Row::new(&declared);
            by::fill(&mut row, plan.keys(), |by, name| names.cell(key, by, name));
            row.bound("calls", work.calls, calls).bound("opens", work.opens, opens).bound("reads", work.reads, reads);
            row.bound("writes", work.writes, writes).bound("errors", work.errors, calls);
            row.bound("read_bytes", work.read, reads || work.read_short);
            row.bound("write_bytes", work.written, writes || work.written_short);
            row.bound("total_ns", work.ns, calls || work.ns_short).bound("max_ns", work.max, calls || work.ns_short);
            row.bound("ledger_calls", work.ledger, calls);
            row
        });
        sink::print(form, &declared, context.judged(), rows, out)?;
        doubts.iter().for_each(|text| complain(text));
        return Ok(sums.doubts_lost);
    }
    losses::head(context, "At least, because something is missing:", out)?;
    if let Some(text) = &doubts {
        line(out, &format!("{text}\n"))?;
    }
    let headings = ["total ms", "max ms", "calls", "opens", "reads", "writes", "read bytes", "written bytes", "errors"];
    let table = headings.into_iter().fold(Table::default(), Table::number);
    let mut table = names.shown().fold(table, |table, by| table.word(by.heading()));
    for (key, work, [calls, opens, reads, writes]) in shown {
        let lead = mark::at_least;
        let count = |(count, more): (u64, bool)| format!("{}{count}", lead(more));
        let time = lead(calls || work.ns_short);
        let mut cells = vec![millis(work.ns, time), millis(work.max, time)];
        cells.extend([(work.calls, calls), (work.opens, opens), (work.reads, reads), (work.writes, writes)].map(count));
        cells.push(count((work.read, reads || work.read_short)));
        cells.push(count((work.written, writes || work.written_short)));
        cells.push(count((work.errors, calls)));
        cells.extend(names.texts(key));
        table.row(cells);
    }
    table.print(out)?;
    let more = rows.len().saturating_sub(limit);
    if more > 0 {
        line(out, &format!("and {more} more (--top 0)"))?;
    }
    Ok(sums.doubts_lost)
}

fn doubt_text(calls: u64) -> String {
    let are = if calls == 1 { "call is" } else { "calls are" };
    format!(
        "AT LEAST: {calls} more {are} in no row: whether on files, or asked for, is not known (--by file,... shows most)"
    )
}

/// Words for keys.
struct Names<'a> {
    context: &'a Context<'a>,
    labels: &'a Labels,
    plan: &'a Plan,
}

impl Names<'_> {
    fn value<'k>(&self, key: &'k [Value], by: By) -> &'k Value {
        self.plan.place(by).map_or(&Value::Unknown, |at| &key[at])
    }

    fn task(&self, key: &[Value]) -> Option<&Task> {
        self.labels.get(key, self.plan)
    }

    fn cell(&self, key: &[Value], by: By, name: &str) -> Cell<'static> {
        let (value, task) = (self.value(key, by), self.task(key));
        // of a thread that is not known its process may be
        let (process, thread) = (self.value(key, By::Pid).is_known(), value.is_known());
        match (name, value) {
            ("pid", _) => task.filter(|_| process).map(|task| task.pid).into(),
            ("upid", _) => task.filter(|_| process).and_then(|task| some(task.upid)).into(),
            ("tid", _) => task.filter(|_| thread).map(|task| task.tid).into(),
            ("utid", _) => task.filter(|_| thread).and_then(|task| some(task.utid)).into(),
            ("comm", Value::Text(comm)) => comm.to_vec().into(),
            ("comm", _) => task.filter(|_| thread).map(|task| task.comm.clone()).into(),
            ("cgroup", Value::Number(id)) => {
                self.context.question.tape.session().cgroup_path(*id).map(<[u8]>::to_vec).into()
            }
            ("abi", Value::Call(call)) => self.context.question.book.get(*call).abi.as_str().into(),
            ("syscall", Value::Call(call)) => self.context.question.book.get(*call).name.clone().into(),
            ("errno", Value::None) => "0".into(),
            ("errno", Value::Number(errno)) => errno_text(*errno as u16).into(),
            (_, Value::Number(number)) => (*number).into(),
            (_, Value::Text(text)) => text.to_vec().into(),
            _ => Cell::Null,
        }
    }

    /// The keys that a line shows: a thread's process is not.
    fn shown(&self) -> impl Iterator<Item = By> {
        let thread = self.plan.has(By::Tid);
        self.plan.keys().iter().copied().filter(move |by| *by != By::Pid || !thread)
    }

    fn texts(&self, key: &[Value]) -> Vec<String> {
        let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
        let text = |by: By| match (by, self.value(key, by)) {
            (_, Value::Unknown | Value::Several) => "?".to_owned(),
            (_, Value::None) => "-".to_owned(),
            (By::Pid, _) => or(self.task(key).map(|task| task.pid.to_string())),
            (By::Tid, _) => or(self.task(key).map(|task| task.tid.to_string())),
            (By::Cgroup, Value::Number(id)) => {
                let path = self.context.question.tape.session().cgroup_path(*id);
                path.map_or_else(|| format!("cgroup {id}"), escaped)
            }
            (By::Errno, Value::Number(errno)) => errno_text(*errno as u16),
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Text(text)) => escaped(text),
            (_, Value::Call(call)) => self.context.question.book.get(*call).long_name.clone(),
            (_, Value::Task(..)) => "?".to_owned(),
        };
        self.shown().map(text).collect()
    }
}

/// `ENOENT`; its number without a name.
fn errno_text(errno: u16) -> String {
    errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned)
}

// ---- lines

/// Reads calls that are listed.
struct Lines<'a> {
    context: &'a Context<'a>,
    opens: bool,
    slower: Option<u64>,
    sockets: bool,
}

/// A path that is known, or may be when the directory is.
enum Place {
    Known(Vec<u8>),
    InCwd(Vec<u8>),
    Unknown,
}

impl Place {
    fn path(self, cwd: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Self::Known(path) => Some(path),
            Self::InCwd(name) => join(cwd?, &name),
            Self::Unknown => None,
        }
    }
}

/// A call that is listed.
struct Listed {
    start: u64,
    end: u64,
    dur: Duration,
    task: Task,
    call: String,
    fd: Option<i64>,
    errno: Option<u16>,
    flags: Option<(u64, String)>,
    read: Option<u64>,
    written: Option<u64>,
    given: Option<Vec<u8>>,
    cut: bool,
    files: [Option<Place>; 2],
}

impl Reader for Lines<'_> {
    type Sum = ();
    type Row = Box<Listed>;

    fn wants(&self, segment: usize) -> bool {
        self.context.question.scope.may_match(&self.context.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Box<Listed>>>) {
        let filter = self.context.question.scope.segment(&segment.dict);
        let wanted = |info: &CallInfo| if self.opens { info.io == Io::Open } else { on_files(info) };
        let calls: Vec<bool> = segment.calls.iter().map(|info| wanted(info)).collect();
        for row in range {
            let state = segment.core.state[row];
            let dur = duration(segment, row);
            // of what is open the time so far
            let slow = self.slower.is_none_or(|least| match dur {
                Duration::Exact(ns) => ns > least,
                Duration::AtLeast(ns) => ns >= least,
                Duration::Unknown => false,
            });
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            if !slow || !calls[segment.core.call[row] as usize] || state == CallState::CloneChild || !passes {
                continue;
            }
            let mut on = uses(segment, row).filter(|on| self.opens || self.sockets || is_file(&on.name));
            let (Some(first), second) = (on.next(), on.next()) else { continue };
            let (info, errno) = (segment.call(row), segment.core.errno[row]);
            let ret = segment.args.ret.get(row).copied().filter(|_| errno == 0 && state.returned());
            let place = |name: &Name<'_>| match name {
                Name::Known(path) => Place::Known(path.to_vec()),
                Name::InCwd(name) => Place::InCwd(name.to_vec()),
                Name::Unknown => Place::Unknown,
            };
            let bytes = |does: bool| ret.filter(|_| does).and_then(|ret| u64::try_from(ret).ok());
            let start = segment.time.start[row];
            waiting.push(Waiting {
                row,
                what: Box::new(Listed {
                    start,
                    end: start.saturating_add(segment.core.dur[row]),
                    dur,
                    task: segment.task(row).clone(),
                    call: info.long_name.clone(),
                    fd: ret.filter(|_| info.io == Io::Open),
                    errno: failed(state, errno).then_some(errno),
                    flags: if info.io == Io::Open { open_flags(segment, row) } else { None },
                    read: bytes(info.io.reads().is_some()),
                    written: bytes(info.io.writes().is_some()),
                    given: first.given.map(<[u8]>::to_vec),
                    cut: first.cut,
                    files: [Some(place(&first.name)), second.map(|second| place(&second.name))],
                }),
            });
        }
    }
}

/// The flags of the open in `row`, as the listing has them; None: not known.
fn open_flags(segment: &Loaded, row: usize) -> Option<(u64, String)> {
    let (info, args) = (segment.call(row), segment.args.args.get(row)?);
    let flags = systape_abi::open_flags(info.abi);
    let value = if info.name == "creat" {
        // O_CREAT|O_WRONLY|O_TRUNC
        0o1101
    } else {
        let at = |arg: &crate::calls::ArgInfo| matches!(arg.kind, ArgKind::Flags(_) | ArgKind::OpenHow { .. });
        let at = info.args.iter().position(at)?;
        match info.args[at].kind {
            ArgKind::OpenHow { .. } => {
                let how = segment.captured(row).iter().find(|value| usize::from(value.arg) == at)?;
                u64::from_le_bytes(*how.bytes.first_chunk::<8>()?)
            }
            kind => narrow(kind, args[at]),
        }
    };
    let mut text = String::new();
    flags.write_text(value, FlagStyle { prefix: false }, &mut text);
    Some((value, text))
}

fn list(context: &mut Context<'_>, own: &Options, slower: Option<u64>, out: &mut BufWriter<File>) -> Result<()> {
    let config = context.config;
    let question = &context.question;
    let session = question.tape.session();
    let form = config.format.rows();
    let clock = if form.is_none() { Default::default() } else { clock(question.tape) };
    let times = Times { session, clock };
    let sink = form.map(|form| Sink::new(form, &FILE_CALLS));
    let base = if config.look.absolute { 0 } else { session.window_open };
    let mut head = Vec::new();
    match &sink {
        None if own.opens => head = opened(["TIME(s)", "PID", "COMM", "FD", "ERR", "FLAGS", "PATH"]),
        None => head = slow(["TIME(s)", "COMM", "TID", "CALL", "BYTES", "LAT(ms)", "FILE"]),
        Some(sink) => sink.head(&mut head),
    }
    out.write_all(&head)?;
    let mut merger = Merger::new(out, config.max_events);
    losses::push(context, &mut merger);
    let lines = Lines { context, opens: own.opens, slower, sockets: own.sockets };
    let mut told = 0_u32;
    let holes = feed(question, &lines, |row| {
        let Told::Row(call, cwd) = row else { return Ok(ControlFlow::Continue(())) };
        let key = call.end;
        let mut bytes = Vec::new();
        match &sink {
            Some(sink) => call.row(cwd.as_deref(), &times, |row| sink.row(&mut bytes, row)),
            None => bytes = call.text(cwd.as_deref(), own.opens, base),
        }
        told = told.wrapping_add(1);
        merger.flush_below(key)?;
        merger.push(Loose { key, tie: (told, 0), line: bytes });
        Ok(if merger.left() > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    merger.finish()?;
    context.question.loss.holes.extend(holes);
    Ok(())
}

/// A line of opensnoop's.
fn opened([time, pid, comm, fd, errno, flags, path]: [&str; 7]) -> Vec<u8> {
    format!("{time:<11} {pid:<7} {comm:<15} {fd:>4} {errno:<8} {flags:<24} {path}\n").into_bytes()
}

/// A line of fileslower's.
fn slow([time, comm, tid, call, bytes, latency, file]: [&str; 7]) -> Vec<u8> {
    format!("{time:<11} {comm:<15} {tid:<7} {call:<12} {bytes:>9} {latency:>10} {file}\n").into_bytes()
}

impl Listed {
    fn text(self, cwd: Option<&[u8]>, opens: bool, base: u64) -> Vec<u8> {
        let or = |text: Option<String>, otherwise: &str| text.unwrap_or_else(|| otherwise.to_owned());
        let (time, comm) = (seconds(self.start, base), escaped(&self.task.comm));
        let error = or(self.errno.map(errno_text), "-");
        let [first, second] = self.files.map(|place| place.map(|place| place.path(cwd)));
        // of what is relative to nobody knows what, at least its name
        let given = self.given.map(|given| format!("?/{}{}", escaped(&given), if self.cut { "..." } else { "" }));
        let path = |path: Option<Vec<u8>>, given: Option<String>| match path {
            Some(path) => escaped(&path),
            None => or(given, "?"),
        };
        let mut file = path(first.flatten(), given);
        if let Some(second) = second {
            file = format!("{file} -> {}", path(second, None));
        }
        if opens {
            let fd = or(self.fd.map(|fd| fd.to_string()), "-");
            let flags = or(self.flags.map(|(_, text)| text), "?");
            return opened([&time, &self.task.pid.to_string(), &comm, &fd, &error, &flags, &file]);
        }
        let bytes = or(self.read.or(self.written).map(|bytes| bytes.to_string()), &error);
        let latency = match self.dur {
            Duration::Exact(ns) => millis(ns, ""),
            Duration::AtLeast(ns) => millis(ns, mark::AT_LEAST),
            Duration::Unknown => "?".to_owned(),
        };
        slow([&time, &comm, &self.task.tid.to_string(), &self.call, &bytes, &latency, &file])
    }

    fn row(self, cwd: Option<&[u8]>, times: &Times<'_>, print: impl FnOnce(&Row<'_>)) {
        let [first, second] = self.files.map(|place| place.and_then(|place| place.path(cwd)));
        let mut row = Row::new(&FILE_CALLS);
        row.set("ts_ns", times.since(self.start)).time("time", Some(self.start), times);
        match self.dur {
            Duration::Exact(ns) => row.bound("dur_ns", ns, false),
            Duration::AtLeast(ns) => row.bound("dur_ns", ns, true),
            Duration::Unknown => row.set("dur_ns", None::<u64>),
        };
        row.task("", Some(&self.task)).set("syscall", self.call).set("fd", self.fd);
        row.set("errno", self.errno.and_then(errno_name)).set("errno_code", self.errno);
        match self.flags {
            Some((value, text)) => row.set("flags_value", value).set("flags_text", text),
            None => row.absent("flags"),
        };
        row.set("read_bytes", self.read).set("write_bytes", self.written);
        row.set("file", first).set("name", self.given).set("file2", second);
        print(&row);
    }
}

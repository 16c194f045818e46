//! The parts of the path in order of time.

use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Task;

use super::Answer;
use crate::reports::call_texts;
use crate::reports::traced::Found;
use crate::reports::traced::cause::{self, Cause, asleep};
use systape_answers::derive::critical::walk::Kind;
use systape_answers::derive::runs::keys::{Place, set_thread};
use systape_answers::render::paint;
use systape_answers::render::rank::more;
use systape_answers::render::row::Row;
use systape_answers::render::stamp::Column;
use systape_answers::render::table::millis;
use systape_answers::values::output::{self, line};
use systape_events::values::order::InOrder as _;
use systape_events::values::words::VIA_SOFTIRQ;

systape_format::tables! {
    /// One row for each part of the path, in order of time. Together they are the time asked for.
    pub PATH = "path" {
        ts_ns: Time key "when it began"
        dur_ns ? OfKnown: Duration "how long it is"
        depth: Int "how many waits it is within; 0: the thread asked for"
        pid: Int "process"
        tid: Int key "thread that the path is in"
        upid: Int "the process, unique in the tape"
        utid: Int key "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        cause: Word key "`cpu`: on one; `runqueue`: waits for one; `throttled`: its cgroup has used up its CPU quota; `sleep`: on purpose; `timeout`: the time of its wait was up; `disk`; `network`: a sender that is not known; `interrupt`: another one, of a timer or device; `blocked`: still waiting at the end; `stopped`; `dead`: ended and not waited for; `not-recorded`: the waker is not on the tape; `too-deep`: not followed further; `unknown`"
        syscall: Word key "call with most of that time; `[user]`, `[kernel]`, `?` as in `states`"
        file: Str key [Path] "what the call is on; empty: on none; null: not known"
        syscall_ns ? OfKnown: Duration "part of `dur_ns` in that call"
        cpu: Int key "of `runqueue`: the CPU it waited for; null: not known"
        other_pid: Int key "of `runqueue` the process that had the CPU meanwhile, of `not-recorded` and `too-deep` the one that woke it; null: not known, or nobody"
        other_tid: Int key "the thread"
        other_comm: Str key [Comm] "its name"
        for_tid: Int key "thread that waited for this one; null: the thread asked for is this one"
        for_comm: Str key [Comm] "its name"
        for_syscall: Word key "call it waited in; empty: it did not exist before, this one made it"
        for_file: Str key [Path] "what that call is on; empty: on none; null: not known"
        net_softirq: Flag key "this one woke it by a packet that it sent on this machine"
        disk: Word "of `disk`: the disk of the block I/O that ended it; null: not known, or block I/O was not recorded"
        sector: Wide "its first sector, of 512 bytes"
        io_bytes: Int "its bytes; 0: of a flush"
        io_op: Word "`read`, `write`, `flush` and so on"
        io_ns: Duration "time it spent at the device; null: not known"
        io_comm: Str [Comm] "name of the thread that caused it; null: this one, or not known"
        io_limit: Str [Path] "of `disk`: the I/O limit of a cgroup that held it back, as `the I/O limit of /slow (1.9 MiB/s of writes)`; null: none, or not known"
    }
}

/// Column of times.
const TIME: Column = Column { name: "time", width: 12, places: 6, right: true };

/// The printed form.
pub(super) struct Shown<'a> {
    pub answer: &'a Answer<'a>,
    pub limit: usize,
}

impl<'a> Shown<'a> {
    /// Indices of the longest parts, in order of time.
    fn longest(&self) -> Vec<usize> {
        let found = self.answer.found;
        let mut longest: Vec<usize> = (0..found.len()).collect();
        if self.limit < found.len() {
            longest.order_by_key(|at| (std::cmp::Reverse(found[*at].ns()), *at));
            longest.truncate(self.limit);
            longest.sort_unstable();
        }
        longest
    }

    fn task(&self, found: &Found) -> Option<&'a Task> {
        self.answer.threads[found.part.thread as usize].task_at(found.part.from).map(|task| &**task)
    }

    /// Rows of JSON and CSV.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.longest().into_iter().map(|at| self.row(&self.answer.found[at]))
    }

    fn row(&self, found: &'a Found) -> Row<'a> {
        let answer = self.answer;
        let (part, most) = (&found.part, found.spent.most());
        let open = answer.words.session.window_open;
        let at = |id: u32, ts: u64| answer.threads.get(id as usize).and_then(|thread| thread.task_at(ts));
        let mut row = Row::new(&PATH);
        row.set("ts_ns", part.from.wrapping_sub(open) as i64).set("dur_ns", found.ns());
        row.set("depth", answer.path.depth(part));
        if let Some(task) = self.task(found) {
            set_thread(&mut row, task);
        }
        row.set("cause", found.cause.word());
        let place = most.map_or(Place::Unknown, |most| most.place);
        row.set("syscall", answer.words.place(place));
        row.set("file", file(answer, most.map(|most| most.file)));
        row.set("syscall_ns", most.map(|most| most.ns));
        let cpu = match part.kind {
            Kind::Waits { cpu } => Some(cpu).filter(|cpu| *cpu != systape_format::model::CPU_NONE),
            _ => None,
        };
        row.set("cpu", cpu);
        let other = found.other().and_then(|id| at(id, part.from));
        row.set("other_pid", other.map(|task| task.pid)).set("other_tid", other.map(|task| task.tid));
        row.set("other_comm", other.map(|task| &task.comm));
        let wait = part.handover.map(|at| (answer.handover(at), &answer.waits[at as usize]));
        let slept = wait.and_then(|(wait, _)| at(wait.thread, wait.from));
        row.set("for_tid", slept.map(|task| task.tid)).set("for_comm", slept.map(|task| &task.comm));
        let call = wait.map(|(wait, spent)| match spent.most() {
            _ if wait.made => String::new(),
            most => answer.words.place(most.map_or(Place::Unknown, |most| most.place)),
        });
        row.set("for_syscall", call);
        row.set("for_file", wait.and_then(|(_, spent)| file(answer, spent.most().map(|most| most.file))));
        row.set("net_softirq", wait.is_some_and(|(wait, _)| wait.softirq));
        let io = found.io.as_ref();
        row.set("disk", io.map(|io| io.disk.clone())).set("sector", io.map(|io| io.sector));
        row.set("io_bytes", io.map(|io| io.bytes)).set("io_op", io.map(|io| io.op.clone()));
        row.set("io_ns", io.and_then(|io| io.latency));
        row.set("io_comm", io.and_then(|io| io.owner.as_ref()).map(|task| &task.comm));
        row.set("io_limit", found.limit.as_deref().map(str::as_bytes));
        row
    }

    /// Prints text: who in the first column, a step to the right for each wait that it is within.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let (answer, found) = (self.answer, self.answer.found);
        let shown = self.longest();
        let stamps = answer.context.stamps();
        let waits = self.told(&shown);
        let arguments = self.arguments(&shown, &waits);
        let arguments = |of: Of| arguments.get(&of).map(String::as_str);
        line(out, &format!("{}  {:>12}  who and what", stamps.heading(TIME), "ms"))?;
        let blank = stamps.word(TIME, "");
        let mut next = 0;
        let mut told: FxHashSet<u32> = FxHashSet::default();
        for at in shown.iter().copied().chain([found.len()]) {
            self.skipped(next..at, &blank, out)?;
            next = at + 1;
            let Some(part) = found.get(at) else { break };
            for wait in self.around(part) {
                if told.insert(wait) {
                    let text = self.wait(wait, arguments(Of::Wait(wait)));
                    let depth = answer.handover(wait).depth as usize;
                    line(out, &format!("{blank}  {:>12}  {}{}{text}", "", indent(depth), output::hang()))?;
                }
            }
            let time = stamps.text(TIME, part.part.from);
            let depth = answer.path.depth(&part.part) as usize;
            let who = answer.who(part.part.thread, part.part.from);
            let what = sentence(answer, part, arguments(Of::Part(at)));
            let ns = paint::number(&millis(part.ns(), ""), 12);
            line(out, &format!("{time}  {ns}  {}{}{who} {what}", indent(depth), output::hang()))?;
        }
        more(found.len(), self.limit).iter().try_for_each(|text| line(out, text))
    }

    /// One line for parts that are not shown.
    fn skipped(&self, range: std::ops::Range<usize>, blank: &str, out: &mut impl Write) -> io::Result<()> {
        let hidden = self.answer.found.get(range).unwrap_or_default();
        if hidden.is_empty() {
            return Ok(());
        }
        let ns = hidden.iter().fold(0, |sum, found| sum + found.ns());
        let count =
            if hidden.len() == 1 { "1 shorter stretch".into() } else { format!("{} shorter stretches", hidden.len()) };
        line(out, &format!("{blank}  {}  ({count})", paint::number(&millis(ns, ""), 12)))
    }

    /// The waits around a part, the outermost first.
    fn around(&self, found: &Found) -> Vec<u32> {
        let mut waits = Vec::new();
        let mut next = found.part.handover;
        while let Some(at) = next {
            waits.push(at);
            next = self.answer.handover(at).within;
        }
        waits.reverse();
        waits
    }

    /// All waits that are told.
    fn told(&self, shown: &[usize]) -> Vec<u32> {
        let mut waits: Vec<u32> = shown.iter().flat_map(|at| self.around(&self.answer.found[*at])).collect();
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    /// `app[12] waits 20.100 ms in read pipe:[7] for cat[13], which woke it:`.
    fn wait(&self, at: u32, arguments: Option<&str>) -> String {
        let (answer, wait) = (self.answer, self.answer.handover(at));
        let by = answer.who(wait.by, wait.to.saturating_sub(1));
        if wait.made {
            let who = answer.who(wait.thread, wait.to);
            return format!("before {by} made {who}:");
        }
        let who = answer.who(wait.thread, wait.from);
        let most = answer.waits[at as usize].most();
        let call = with_arguments(answer.call(most), most.map(|most| most.place), answer, arguments);
        let via = if wait.softirq { VIA_SOFTIRQ } else { "" };
        format!("{who} waits {} ms in {call}, until {by} wakes it{via}:", millis(wait.to - wait.from, ""))
    }

    /// Arguments of the calls of what is shown.
    fn arguments(&self, shown: &[usize], waits: &[u32]) -> FxHashMap<Of, String> {
        let answer = self.answer;
        let parts = shown.iter().filter(|at| answer.found[**at].cause != Cause::Cpu).map(|at| {
            let found = &answer.found[*at];
            (Of::Part(*at), found.part.thread, found.spent.most())
        });
        let waits =
            waits.iter().map(|at| (Of::Wait(*at), answer.handover(*at).thread, answer.waits[*at as usize].most()));
        let asked: Vec<_> = parts.chain(waits).collect();
        let utid = |id: u32| answer.threads[id as usize].tasks.last().map_or(0, |task| task.utid);
        let calls: Vec<_> = asked.iter().map(|(_, id, most)| (utid(*id), most.and_then(|most| most.call))).collect();
        let texts = call_texts::of(answer.context, &calls);
        asked.into_iter().zip(texts).filter_map(|((of, ..), text)| Some((of, text?))).collect()
    }
}

/// A step to the right for each wait, as far as a terminal has room for the sentence behind them.
fn indent(depth: usize) -> String {
    const MOST: usize = 8;
    "  ".repeat(if output::room().is_some() { depth.min(MOST) } else { depth })
}

/// What arguments are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    /// A part, by its index.
    Part(usize),
    /// A wait, by its index.
    Wait(u32),
}

/// The file of a call; empty: none.
fn file(answer: &Answer<'_>, number: Option<u32>) -> Option<Vec<u8>> {
    match number? {
        systape_events::call_files::NO_FILE => Some(Vec::new()),
        number => answer.words.names.name(number).map(<[u8]>::to_vec),
    }
}

/// `futex(uaddr: 0x1, op: WAIT)` if the arguments are known, else `call`.
fn with_arguments(call: String, place: Option<Place>, answer: &Answer<'_>, arguments: Option<&str>) -> String {
    match (place, arguments) {
        (Some(place @ Place::Call(_)), Some(arguments)) => format!("{}({arguments})", answer.words.place(place)),
        _ => call,
    }
}

/// What the thread of a part did.
fn sentence(answer: &Answer<'_>, found: &Found, arguments: Option<&str>) -> String {
    let (part, most) = (&found.part, found.spent.most());
    let call = || with_arguments(answer.call(most), most.map(|most| most.place), answer, arguments);
    let who = |id: u32| answer.who(id, part.from);
    match found.cause {
        Cause::Cpu => cause::on_cpu(&found.spent, found.ns(), &answer.words),
        Cause::Runqueue => match found.behind {
            Some(id) => format!("waits for {}, which {} had", cause::cpu_text(part.kind), who(id)),
            None => format!("waits for {} (who had it was not recorded)", cause::cpu_text(part.kind)),
        },
        other => {
            let by = match part.kind {
                Kind::Unseen { by } | Kind::TooDeep { by } => who(by),
                _ => "?".to_owned(),
            };
            let io = found.io.as_ref().map(|io| format!(" [its last I/O: {}]", io.text())).unwrap_or_default();
            format!("{}{io}", asleep((other, found.limit.as_deref()), &call(), &by))
        }
    }
}

//! Single calls: the slowest, and the first that failed.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use serde_json::{Value, json};
use systape_abi::FlagStyle;
use systape_format::model::{CallState, Core, Time};
use systape_format::reader::Segment;

use super::answers::Asker;
use super::longest::Longest;
use super::pool::Pool;
use super::text::cut;
use crate::reports::{Context, idle, losses};
use systape_answers::derive::runs::rest::rests;
use systape_answers::lines::row::{self, CallOutcome, Duration};
use systape_answers::lines::text::{Look, arguments};
use systape_answers::lines::value::ValueScratch;
use systape_answers::render::json::lossless;
use systape_events::filter::{SegmentFilter, failed};
use systape_events::load::{Base, FdPath, Loaded, OpenCalls};
use systape_events::loss::{Hole, ListedLoss};
use systape_events::question::Question;
use systape_events::scan::Scan;
use systape_events::values::order::InOrder as _;

/// Calls of each kind.
const MOST: usize = 1000;
/// Most characters of the arguments of one.
const ARGUMENTS: usize = 160;
/// Arguments have full names, and those that are 0 are among them.
const LOOK: Look = Look { no_comm: false, show_zeros: true, style: FlagStyle::FULL, color: false };

/// A call that is shown.
struct Single {
    /// When it began, ns since the start of the recording.
    at: i64,
    ns: Option<u64>,
    /// It lasted longer than `ns`.
    least: bool,
    pid: u32,
    tid: u32,
    comm: String,
    name: String,
    args: String,
    ret: String,
}

/// Calls that are shown.
struct Shown {
    slow: Longest<Single>,
    /// By the complement of their starts: the earliest stay.
    failed: Longest<Single>,
    /// The longest idle wait, ns.
    idle: u64,
}

/// Rows of a segment: the slowest, longest first, and those that failed, earliest first.
type Rows = (Vec<usize>, Vec<usize>);

/// Reads them segment by segment.
struct Reader<'a> {
    question: &'a Question<'a>,
    /// Without idle waits.
    folds: bool,
    /// What others of later segments need to be among the slowest, and the first that failed.
    needed: (AtomicU64, AtomicU64),
}

/// The slowest calls and the first that failed; `folds`: without idle waits.
///
/// # Errors
/// There is no such time.
pub(super) fn calls(page: &Context<'_>, asker: &Asker<'_>, folds: bool) -> Result<Value> {
    let tape = page.question.tape;
    let mut context = Context::new(page.config, tape)?;
    let reader = Reader { question: &context.question, folds, needed: Default::default() };
    let mut all = Shown::new();
    let coverage = Scan::calls(&context.question).parts(
        |at, _, coverage| {
            let mut holes = Vec::new();
            let shown = reader.segment(tape.segment(at), &mut holes);
            coverage.holes(holes);
            shown
        },
        |part| {
            part.into_iter().for_each(|part| all.merge(part));
            reader.needed.0.store(all.slow.needed(), Relaxed);
            reader.needed.1.store(all.failed.needed(), Relaxed);
        },
    );
    if let Some(open) = OpenCalls::read(tape) {
        let loaded = open.load(&context.question.book);
        let filter = context.question.scope.segment(&loaded.dict, u32::MAX);
        let rows = reader.rows(&loaded.core, &loaded.time, &filter);
        all.merge(reader.shown(&loaded, rows));
    }
    coverage.tell(&mut context.question.loss);
    asker.doubt(!context.question.loss.complete());
    // as many as can be are shown, and what is as long as the shortest of them
    let words = all.slow.needed().checked_sub(2).map_or_else(String::new, |ns| format!("--duration {ns}ns"));
    let told: Vec<String> =
        losses::filtered(&context).into_iter().chain(losses::lines(&context, ListedLoss::All)).collect();
    let idle = (all.idle > 0 && all.idle >= all.slow.needed()).then(|| format!("without idle waits: {}", idle::WORDS));
    let of_slow: Vec<String> = told.iter().cloned().chain(idle).collect();
    let failed = format!("--failure --max-events {MOST}");
    Ok(json!({
        "slow": columns(all.slow.rows(), "The slowest calls", &asker.typed(&words, None).join(" "), &of_slow),
        "failed": columns(all.failed.rows(), "The first calls that failed", &asker.typed(&failed, None).join(" "), &told),
    }))
}

impl Shown {
    fn new() -> Self {
        Self { slow: Longest::new(MOST), failed: Longest::new(MOST), idle: 0 }
    }

    fn merge(&mut self, other: Self) {
        self.slow.merge(other.slow);
        self.failed.merge(other.failed);
        self.idle = self.idle.max(other.idle);
    }
}

impl Reader<'_> {
    /// Those of `segment`; None: it has none.
    fn segment(&self, segment: Segment<'_>, holes: &mut Vec<Hole>) -> Option<Shown> {
        let number = segment.info().segment;
        let base = Base::read(segment, holes, |dict, core| {
            let filter = self.question.scope.segment(dict, number);
            (0..core.call.len()).any(|row| {
                filter.core(core, row) && (self.is_slow(core, row) || failed(core.state[row], core.errno[row]))
            })
        })?;
        let rows = self.rows(&base.core, &base.time, &self.question.scope.segment(&base.dict, number));
        let wanted: Vec<u32> = rows.0.iter().chain(&rows.1).map(|row| *row as u32).collect();
        let loaded = base.load_rows(wanted.into_iter(), &self.question.book, holes);
        Some(self.shown(&loaded, rows))
    }

    /// Whether `row` lasted longer than those that are kept.
    fn is_slow(&self, core: &Core, row: usize) -> bool {
        let lasts = !matches!(core.state[row], CallState::CloneChild | CallState::Denied | CallState::LostEnter);
        lasts && core.dur[row] >= self.needed.0.load(Relaxed)
    }

    /// The rows that pass and may be shown.
    fn rows(&self, core: &Core, time: &Time, filter: &SegmentFilter<'_>) -> Rows {
        let (mut slow, mut early) = (Vec::new(), Vec::new());
        for row in (0..core.call.len()).filter(|row| filter.core(core, *row) && filter.time(time, *row)) {
            if self.is_slow(core, row) {
                slow.push(row);
            }
            if failed(core.state[row], core.errno[row]) && !time.start[row] >= self.needed.1.load(Relaxed) {
                early.push(row);
            }
        }
        slow.order_by_key(|row| (Reverse(core.dur[*row]), *row));
        early.order_by_key(|row| (time.start[*row], *row));
        early.truncate(MOST);
        (slow, early)
    }

    fn shown(&self, segment: &Loaded, (slow, early): Rows) -> Shown {
        let (mut shown, mut scratch) = (Shown::new(), ValueScratch::default());
        for row in slow {
            if shown.slow.count() == MOST as u64 {
                break;
            }
            let single = self.single(segment, row, &mut scratch);
            match single.ns {
                Some(ns) if self.folds && is_idle(segment, row) => shown.idle = shown.idle.max(ns),
                Some(ns) => shown.slow.push(ns, single),
                None => {}
            }
        }
        for row in early {
            shown.failed.push(!segment.time.start[row], self.single(segment, row, &mut scratch));
        }
        shown
    }

    fn single(&self, segment: &Loaded, row: usize, scratch: &mut ValueScratch) -> Single {
        let (task, mut args) = (segment.task(row), Vec::new());
        arguments(&mut args, scratch, segment, row, LOOK);
        let (ns, least) = match row::duration(segment, row) {
            Duration::Exact(ns) => (Some(ns), false),
            Duration::AtLeast(ns) => (Some(ns), true),
            Duration::Unknown => (None, false),
        };
        Single {
            at: segment.time.start[row].wrapping_sub(self.question.tape.session().window_open).cast_signed(),
            ns,
            least,
            pid: task.pid,
            tid: task.tid,
            comm: lossless(&task.comm).into_owned(),
            name: segment.call(row).name.clone(),
            args: lossless(&args).into_owned(),
            ret: result(segment, row),
        }
    }
}

/// Whether it waits for work.
fn is_idle(segment: &Loaded, row: usize) -> bool {
    let info = segment.call(row);
    let fd = info.args.iter().position(|arg| arg.name == "fd").map(|at| segment.fd_path(row, at));
    rests(info, if let Some(FdPath::Known(path)) = fd { Some(path) } else { None })
}

/// `ENOENT`, `17`, `in-flight`.
fn result(segment: &Loaded, row: usize) -> String {
    let (call, outcome) = (segment.call(row), row::outcome(segment, row));
    let errno = match outcome {
        CallOutcome::Errno(errno) | CallOutcome::Restart(errno) => systape_abi::errno_name(errno),
        _ => None,
    };
    match (errno.or_else(|| row::incomplete(segment.core.state[row])), outcome) {
        (Some(word), _) => word.to_owned(),
        (None, CallOutcome::Ret(ret)) if row::wide_ret(call) && !call.name.ends_with("seek") => format!("{ret:#x}"),
        (None, CallOutcome::Ret(ret)) => ret.to_string(),
        (None, CallOutcome::Errno(_)) => "-1".to_owned(),
        (None, _) => "–".to_owned(),
    }
}

fn columns(calls: Vec<Single>, title: &str, command: &str, told: &[String]) -> Value {
    let mut pool = Pool::default();
    let mut texts = |of: &dyn Fn(&Single) -> String| calls.iter().map(|call| pool.number(&of(call))).collect::<Value>();
    let comm = texts(&|call| call.comm.clone());
    let name = texts(&|call| call.name.clone());
    let args = texts(&|call| cut(&call.args, ARGUMENTS));
    let ret = texts(&|call| call.ret.clone());
    let column = |of: &dyn Fn(&Single) -> Value| calls.iter().map(of).collect::<Value>();
    json!({
        "title": title,
        "command": cut(command, ARGUMENTS),
        "told": told.iter().map(|text| cut(text, ARGUMENTS)).collect::<Vec<_>>(),
        "texts": pool.texts(),
        "at": column(&|call| call.at.into()),
        "ns": column(&|call| call.ns.into()),
        "least": column(&|call| call.least.into()),
        "pid": column(&|call| call.pid.into()),
        "tid": column(&|call| call.tid.into()),
        "comm": comm,
        "name": name,
        "args": args,
        "ret": ret,
    })
}

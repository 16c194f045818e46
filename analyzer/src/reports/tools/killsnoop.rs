//! `analyze killsnoop`: the calls of kill, tkill and tgkill, in killsnoop's columns.

use anyhow::{Result, anyhow};
use systape_format::model::{Call, Gap};
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, CPUS, Own, Rows, TASKS, View};
use crate::asked::options::stacks::Below;
use crate::reports::Context;
use crate::reports::calls::answer_picked;
use crate::reports::listing::Lines;
use systape_answers::lines::row::{CallOutcome, outcome};
use systape_answers::lines::tables::{CALLS, LOSSES};
use systape_answers::lines::text::PerfTraceText;
use systape_answers::lines::{LineFormat, SegmentLines};
use systape_answers::render::label::TapeLabel;
use systape_answers::render::out::Out;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::values::say::Verdict;
use systape_events::filter::TapeStart;
use systape_events::load::{Base, Loaded};
use systape_events::loss::Hole;
use systape_events::picked::Picked;
use systape_events::question::Question;
use systape_events::scan::Scan;
use systape_events::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "killsnoop",
    about: "Calls of kill, tkill and tgkill in the columns of bcc's killsnoop; what came of them: analyze kills --all",
    events: &["kill", "tkill", "tgkill"],
    options: &[TASKS, CPUS, &["time", "failure", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze killsnoop -x", "those that failed"),
        ("analyze killsnoop --signal TERM,KILL", "only these signals"),
    ],
    tables: &[Rows::of("killsnoop", &[All(&CALLS)]), Rows::json("killsnoop", &[All(&LOSSES)])],
    own: Own::of::<Options>(),
    check: |config| config.own::<Options>()?.signals().map(drop),
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Only these signals, by name or number: TERM,9,SIGUSR1
    #[arg(long, value_name = "SIGNAL,...", value_delimiter = ',')]
    signal: Vec<String>,
}

impl Options {
    /// The numbers of the selected signals; empty: all.
    fn signals(&self) -> Result<Vec<u32>> {
        let number =
            |name: &String| systape_abi::signal_number(name).ok_or_else(|| anyhow!("--signal: '{name}' is no signal"));
        self.signal.iter().map(number).collect()
    }
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let signals = config.own::<Options>()?.signals()?;
    let lines = Lines::Calls(|context| Box::new(Kills::new(context)));
    answer_picked(
        config,
        tape,
        &lines,
        Below::default(),
        |question| {
            if !signals.is_empty() {
                pick(question, &signals);
            }
        },
        out,
    )
}

/// The argument of call `name` that is the signal; None: it sends none.
fn signal_at(name: &str) -> Option<usize> {
    match name {
        "kill" | "tkill" => Some(1),
        // behind its group and thread
        "tgkill" => Some(2),
        _ => None,
    }
}

/// From now on `question` is about calls that send these signals.
fn pick(question: &mut Question<'_>, signals: &[u32]) {
    let (parts, coverage) = Scan::calls(question).fold(Vec::new, |parts, segment, coverage| {
        let mut holes = Vec::new();
        let sends = |call: &Call| signal_at(&question.book.get(*call).name).is_some();
        let base = Base::read(*segment, &mut holes, |dict, _| dict.calls.iter().any(sends));
        if let Some(segment) = base.map(|base| base.load(&question.book, &mut holes)) {
            let signal = |row: usize| {
                let at = signal_at(&segment.call(row).name)?;
                Some(*segment.args.of(row)?.get(at)? as u32)
            };
            let sent = |row: &u32| signal(*row as usize).is_some_and(|signal| signals.contains(&signal));
            let rows: Vec<u32> = (0..segment.rows() as u32).filter(sent).collect();
            parts.push((segment.number, rows));
        }
        coverage.holes(holes);
    });
    let mut picked = Picked::default();
    parts.into_iter().flatten().for_each(|(segment, rows)| picked.add(segment, rows));
    coverage.tell(&mut question.loss);
    picked.settle(question.loss.holes.iter().map(|hole| hole.segment));
    question.scope.pick(picked);
}

const TIME: Column = Column { name: "TIME", width: 9, places: 3, right: false };

/// Its lines.
struct Kills<'a> {
    /// Those of losses are the listing's.
    listing: PerfTraceText<'a>,
    stamps: Stamps,
    open: TapeStart,
}

impl<'a> Kills<'a> {
    fn new(context: &Context<'a>) -> Self {
        let session = context.question.tape.session();
        let listing = PerfTraceText::new(session, context.config.look, context.stamps(), &TapeLabel::default());
        Self { listing, stamps: context.stamps(), open: TapeStart::of(session) }
    }
}

fn columns([time, pid, comm, signal, target, result]: [&str; 6]) -> Vec<u8> {
    format!("{time} {pid:<7} {comm:<16} {signal:<4} {target:<7} {result}\n").into_bytes()
}

impl LineFormat for Kills<'_> {
    fn header(&self) -> Vec<u8> {
        columns([&self.stamps.heading(TIME), "PID", "COMM", "SIG", "TPID", "RESULT"])
    }

    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a> {
        Box::new(KillLines { form: self, segment })
    }

    fn gap(&self, gap: &Gap) -> Vec<u8> {
        self.listing.gap(gap)
    }

    fn hole(&self, hole: &Hole) -> Vec<u8> {
        self.listing.hole(hole)
    }
}

struct KillLines<'a> {
    form: &'a Kills<'a>,
    segment: &'a Loaded,
}

impl SegmentLines for KillLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize, more: &[u8]) {
        let (segment, stamps) = (self.segment, &self.form.stamps);
        let (start, task) = (segment.time.start[row], segment.task(row));
        let known = self.form.open.is_known(segment.core.state[row], start);
        let time = if known { stamps.text(TIME, start) } else { stamps.word(TIME, "?") };
        // both are ints
        let argument = |at| segment.args.of(row).map_or_else(|| "?".to_owned(), |args| (args[at] as i32).to_string());
        // of tgkill the thread, which stands behind its group
        let target = usize::from(segment.call(row).name == "tgkill");
        let result = match outcome(segment, row) {
            CallOutcome::Ret(ret) => ret.to_string(),
            CallOutcome::Errno(errno) | CallOutcome::Restart(errno) => format!("-{errno}"),
            _ => "?".to_owned(),
        };
        let (pid, comm) = (task.pid.to_string(), escaped(&task.comm));
        out.extend(columns([&time, &pid, &comm, &argument(target + 1), &argument(target), &result]));
        out.extend_from_slice(more);
    }
}

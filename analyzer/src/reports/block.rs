//! `analyze block`: I/Os in order of completion, histograms of their latencies, or sums by who caused them.

pub(super) mod line;
pub(super) mod table;

use std::io;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use systape_format::model::{BlockIo, Dict, Family};
use systape_format::reader::{Segment, Tape};

use super::timed::Timed;
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use systape_answers::catalogue::{Observed, Surroundings, block};
use systape_answers::derive::block::by;
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::block::sums::{BlockSums, HistogramOf, Sums};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render;
use systape_answers::render::columns::Layout;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Rank;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::scan::{Coverage, Scan};

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "block",
    about: "Block I/Os: one a line, histograms of latencies, or sums by who caused them",
    options: &[TASKS, &["time", "duration", "failure", "max_events", "clock", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze block --top --by cgroup", "who caused the I/O, by cgroup"),
        ("analyze block --sizes --by comm", "histograms of sizes by program, as bitesize"),
    ],
    tables: &[
        Rows::of("block", &[All(&block::BLOCK)]),
        Rows::json("block", &[All(&LOSSES)]),
        Rows::of("block --top", &[Keys(&render::by::BY), All(&table::SUMS)]),
        Rows::of("block --hist", &[Keys(&render::by::BY), All(&table::SUMS), All(&table::HISTOGRAM)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Histograms of latencies
    #[arg(long)]
    hist: bool,

    /// Of --hist: from the way into the queue on, not only the time that the device took
    #[arg(long)]
    queued: bool,

    /// Histograms of sizes
    #[arg(long)]
    sizes: bool,

    /// Sums by the task an I/O is blamed on, or by --by
    /// N rows, 0: all [default: 40 in text, all in JSON and CSV]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    top: Option<String>,
}

/// Most rows of `--top`, with this value.
fn limit(config: &Config, top: Option<&str>) -> Result<usize> {
    let Some(text) = top.filter(|text| !text.is_empty()) else {
        return Ok(config.limit(Rank::default()));
    };
    match text.parse() {
        Ok(top) => Ok(config.limit(Rank::of(top))),
        Err(_) => bail!("--top={text}: write a number of rows, such as --top=100; 0: all"),
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    limit(config, own.top.as_deref())?;
    let top = own.top.is_some();
    if own.histograms() && top {
        let hist = if own.hist { "--hist" } else { "--sizes" };
        bail!("{hist} and --top are two answers: give one of them");
    }
    if own.hist && own.sizes {
        bail!("--hist has latencies, --sizes has sizes: give one of them");
    }
    if own.queued && !own.hist {
        bail!("--queued is about latencies: it needs --hist");
    }
    if !config.by.is_empty() && !own.histograms() && !top {
        bail!("--by needs --top, --hist or --sizes");
    }
    if own.histograms() || top {
        refuse(&config.clock_options(), "sums have no time")?;
    }
    GroupKey::parse(&config.by, &by::KNOWN, "'analyze block'")?;
    Ok(())
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if !own.histograms() && own.top.is_none() {
        return answer_list(config, tape, None, out);
    }
    let mut keys = GroupKey::parse(&config.by, &by::KNOWN, "'analyze block'")?;
    if keys.is_empty() {
        keys = if own.histograms() { vec![GroupKey::Disk, GroupKey::Op] } else { vec![GroupKey::Pid] };
    }
    let (measure, limit) = (own.measure(), limit(config, own.top.as_deref())?);
    if own.histograms() {
        return answer_sums(config, tape, keys, measure, Shown::Histograms(|view, out| view.histograms(out)), out);
    }
    answer_sums(config, tape, keys, measure, Shown::Top(limit), out)
}

/// Form of sums.
pub(super) enum Shown {
    /// Rows, at most so many.
    Top(usize),
    /// Histograms, and how text prints them.
    Histograms(fn(&table::BlockInput<'_>, &mut Out) -> io::Result<()>),
}

impl Options {
    fn histograms(&self) -> bool {
        self.hist || self.sizes
    }

    fn measure(&self) -> HistogramOf {
        match (self.sizes, self.queued) {
            (true, _) => HistogramOf::Size,
            (false, true) => HistogramOf::Whole,
            (false, false) => HistogramOf::Latency,
        }
    }
}

fn begin<'a>(config: &'a Config, tape: &'a Tape) -> Result<Context<'a>> {
    families::require(tape, Family::Block, "block I/Os")?;
    Context::about(config, tape, &[Family::Block])
}

/// The whole answer, one I/O a line; text in the columns of `layout`, if that is given.
pub(super) fn answer_list(
    config: &Config,
    tape: &Tape,
    layout: Option<&'static Layout>,
    out: &mut Out,
) -> Result<Verdict> {
    let mut context = begin(config, tape)?;
    list(&mut context, layout, out)?;
    losses::end_of_list(&context, out)
}

/// Calls `each` with the passing I/Os of every segment, its tasks and its files.
fn walk(
    context: &mut Context<'_>,
    mut each: impl FnMut(Vec<Io<'_>>, (&Dict, &Files)) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (scope, shown) = (&context.question.scope, &context.config.shown);
    shown.rows(0);
    let coverage = Scan::candidates(&context.question).try_parts(
        |_, segment, coverage| read(segment, coverage),
        |found| {
            let Some((dict, ios, files)) = found else { return Ok(ControlFlow::Continue(())) };
            let ios = ios.iter().map(|io| Io::new(io, &dict).with(&files));
            let passing: Vec<_> = ios.filter(|io| io.passes(scope)).collect();
            shown.rows(passing.len());
            each(passing, (&dict, &files))
        },
    )?;
    coverage.tell(&mut context.question.loss);
    Ok(())
}

/// The I/Os of a segment, and their files; None: they cannot be read.
fn read(segment: &Segment<'_>, coverage: &mut Coverage) -> Option<(Dict, Vec<BlockIo>, Files)> {
    let ios = segment.dict().and_then(|dict| segment.blocks(&dict).map(|ios| (dict, ios)));
    let (dict, ios) = ios.map_err(|error| coverage.finding(segment, "block I/Os", &error)).ok()?;
    let files = Files::read(segment, &dict, &ios);
    let files = files.map_err(|error| coverage.finding(segment, "names of files", &error));
    Some((dict, ios, files.unwrap_or_default()))
}

fn list(context: &mut Context<'_>, layout: Option<&'static Layout>, out: &mut Out) -> Result<()> {
    let (session, devices) = (context.question.tape.session(), devices(context.question.tape));
    let (times, stamps) = (context.times(), context.stamps());
    let table = (&block::BLOCK, layout);
    let mut timed = Timed::begin(context, &context.question.loss, table, || line::header(&stamps), out)?;
    walk(context, |ios, (dict, files)| {
        let at = Surroundings { times: &times, devices: &devices, dict, files: Some(files) };
        for io in ios {
            let text = |out: &mut Vec<u8>| line::text(out, &io, session, &devices, &stamps);
            timed.event(io.io.complete, text, || Observed { of: &block::EVENTS, e: io.io, at }.row());
        }
        Ok(timed.write()?)
    })?;
    Ok(timed.end()?)
}

/// The whole answer, sums by `keys`.
pub(super) fn answer_sums(
    config: &Config,
    tape: &Tape,
    keys: Vec<GroupKey>,
    measure: HistogramOf,
    shown: Shown,
    out: &mut Out,
) -> Result<Verdict> {
    let mut context = begin(config, tape)?;
    let (session, devices) = (tape.session(), devices(tape));
    if !tape.session_is_whole() && !keys.contains(&GroupKey::Disk) {
        bail!(
            "the block that says which disks are made of others is damaged: I/Os may count twice, add them up by disk (--by disk)"
        );
    }
    let mut sums = Sums::new(keys.clone(), measure, session);
    walk(&mut context, |ios, _| {
        ios.iter().for_each(|io| sums.add(io));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut folded: BlockSums = sums.fold(&devices);
    folded.rows.truncate(config.most());
    let view = table::BlockInput {
        keys: &keys,
        folded: &folded,
        names: by::Names { session, devices: &devices, of_cgroup: &folded.of_cgroup },
        complete: context.question.loss.complete(),
        measure,
    };
    losses::head(&context, losses::AT_LEAST, out)?;
    match shown {
        Shown::Top(limit) if out.is_text() => view.top(limit, out)?,
        Shown::Histograms(text) if out.is_text() => text(&view, out)?,
        Shown::Top(limit) => view.rows(false, limit, out)?,
        Shown::Histograms(_) => view.rows(true, usize::MAX, out)?,
    }
    losses::end_of_sums(&context, out)
}

//! `analyze block`: I/Os in order of completion, histograms of their latencies, or sums by who caused them.

pub(super) mod line;
pub(super) mod table;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use systape_format::model::{BlockIo, Dict, Family};
use systape_format::reader::{Segment, Tape};

use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{Own, Rows, Run, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::derive::block::by;
use crate::derive::block::files::Files;
use crate::derive::block::io::Io;
use crate::derive::block::sums::{Folded, Sums};
use crate::lines::tables as lines;
use crate::render;
use crate::render::form::Format;
use crate::render::rank::Rank;
use crate::render::row::Times;
use crate::render::sink::Sink;
use crate::table::families;
use crate::table::group::by::By;
use crate::table::loss::Listed;
use crate::table::question::clock;
use crate::table::scan::{Coverage, Scan};
use crate::table::stream::{Merger, Part};
use crate::values::devices::Devices;
use crate::values::output;
use crate::values::say::Verdict;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "block",
    about: "Block I/Os: one a line, histograms of latencies, or sums by who caused them",
    options: &[TASKS, &["time", "duration", "failure", "max_events", "clock", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze block --top --by cgroup", "who caused the I/O, by cgroup"),
        ("analyze block --hist", "histograms of latencies by disk and operation"),
    ],
    tables: &[
        Rows::of("block", &[All(&line::BLOCK)]),
        Rows::json("block", &[All(&lines::LOSSES)]),
        Rows::of("block --top", &[Keys(&render::by::BY), All(&table::SUMS)]),
        Rows::of("block --hist", &[Keys(&render::by::BY), All(&table::SUMS), All(&table::HISTOGRAM)]),
    ],
    check,
    run: Run::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Histograms of latencies
    #[arg(long)]
    hist: bool,

    /// Sums by the task an I/O is blamed on, or by --by
    /// N rows, 0: all [default: 40 in text, all in JSON and CSV]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    top: Option<String>,
}

/// Most rows of `--top`, with this value.
fn limit(config: &Config, top: Option<&str>) -> Result<usize> {
    let Some(text) = top.filter(|text| !text.is_empty()) else {
        return Ok(Rank::default().limit(config.format, config.max_events));
    };
    match text.parse() {
        Ok(top) => Ok(Rank::of(top).limit(config.format, config.max_events)),
        Err(_) => bail!("--top={text}: write a number of rows, such as --top=100; 0: all"),
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let Options { hist, top } = config.own()?;
    limit(config, top.as_deref())?;
    let top = top.is_some();
    if hist && top {
        bail!("--hist and --top are two answers: give one of them");
    }
    if !config.by.is_empty() && !hist && !top {
        bail!("--by needs --top or --hist");
    }
    if hist || top {
        refuse(&config.clock_options(), "sums have no time")?;
    }
    By::parse(&config.by, &by::KNOWN, "'analyze block'").map(drop)
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    families::require(tape, Family::Block, "block I/Os")?;
    let mut context = Context::about(config, tape, &[Family::Block])?;
    let devices = Devices::new(tape.session());
    let mut out = output::stdout()?;
    let Options { hist, top } = config.own()?;
    let listed = if hist || top.is_some() {
        let limit = limit(config, top.as_deref())?;
        sums(&mut context, &devices, hist, limit, &mut out)?;
        false
    } else {
        list(&mut context, &devices, &mut out)?;
        true
    };
    let told = !listed && config.format == Format::Text;
    let listed = if listed { losses::pushed(config.format) } else { Listed::Nothing };
    losses::end(&context, &mut out, told, listed)
}

/// Calls `each` with the passing I/Os of every segment.
fn walk(context: &mut Context<'_>, mut each: impl FnMut(Vec<Io<'_>>) -> Result<ControlFlow<()>>) -> Result<()> {
    let (scope, shown) = (&context.question.scope, &context.config.shown);
    shown.rows(0);
    let coverage = Scan::candidates(&context.question).parts(
        |_, segment, coverage| read(segment, coverage),
        |found| {
            let Some((dict, ios, files)) = found else { return Ok(ControlFlow::Continue(())) };
            let ios = ios.iter().map(|io| Io::new(io, &dict).with(&files));
            let passing: Vec<_> = ios.filter(|io| io.passes(scope)).collect();
            shown.rows(passing.len());
            each(passing)
        },
    )?;
    coverage.tell(&mut context.question.loss);
    Ok(())
}

/// The I/Os of a segment, and their files; None: they cannot be read.
fn read(segment: &Segment<'_>, coverage: &mut Coverage) -> Option<(Dict, Vec<BlockIo>, Files)> {
    let ios = segment.dict().and_then(|dict| segment.blocks(&dict).map(|ios| (dict, ios)));
    let (dict, ios) = ios.map_err(|error| coverage.finding(segment, "block I/Os", &error)).ok()?;
    if ios.iter().all(|io| io.file == 0) {
        return Some((dict, ios, Files::default()));
    }
    let tables = segment.tables(&dict).map_err(|error| coverage.finding(segment, "names of files", &error));
    Some((dict, ios, Files::new(&tables.unwrap_or_default())))
}

fn list(context: &mut Context<'_>, devices: &Devices, out: &mut BufWriter<File>) -> Result<()> {
    let (config, session) = (context.config, context.question.tape.session());
    let clock = if config.format == Format::Text { Default::default() } else { clock(context.question.tape) };
    let times = Times { session, clock };
    let sink = config.format.rows().map(|form| Sink::new(form, &line::BLOCK));
    let stamps = context.stamps();
    let mut head = Vec::new();
    match &sink {
        None => head = line::header(&stamps),
        Some(sink) => sink.head(&mut head),
    }
    out.write_all(&head)?;
    let mut merger = Merger::new(out, config.max_events);
    losses::push(context, &context.question.loss, &mut merger);
    walk(context, |ios| {
        let mut part = Part::default();
        for io in ios {
            match &sink {
                None => line::text(&mut part.bytes, &io, session, devices, &stamps),
                Some(sink) => sink.row(&mut part.bytes, &line::row(&io, &times, devices)),
            }
            part.end_line(io.io.complete);
        }
        merger.part(&part)?;
        Ok(if merger.left() > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    merger.finish()?;
    Ok(())
}

fn sums(
    context: &mut Context<'_>,
    devices: &Devices,
    hist: bool,
    limit: usize,
    out: &mut BufWriter<File>,
) -> Result<()> {
    let config = context.config;
    let mut keys = By::parse(&config.by, &by::KNOWN, "'analyze block'")?;
    if keys.is_empty() {
        keys = if hist { vec![By::Disk, By::Op] } else { vec![By::Pid] };
    }
    if !context.question.tape.session_is_whole() && !keys.contains(&By::Disk) {
        bail!(
            "the block that says which disks are made of others is damaged: I/Os may count twice, add them up by disk (--by disk)"
        );
    }
    let mut sums = Sums::new(keys.clone(), context.question.tape.session());
    walk(context, |ios| {
        ios.iter().for_each(|io| sums.add(io));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut folded: Folded = sums.fold(devices);
    folded.rows.truncate(usize::try_from(config.max_events).unwrap_or(usize::MAX));
    let view = table::View {
        keys: &keys,
        folded: &folded,
        names: by::Names { session: context.question.tape.session(), devices, of_cgroup: &folded.of_cgroup },
        complete: context.question.loss.complete(),
    };
    match config.format.rows() {
        None => {
            losses::head(context, "At least, because something is missing:", out)?;
            if hist { view.histograms(out)? } else { view.top(limit, out)? }
        }
        Some(form) => view.rows(form, hist, limit, out)?,
    }
    Ok(())
}

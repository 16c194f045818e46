//! Sums of stacks: a call graph in perf report's layout, folded stacks, or a flame graph.

mod collect;
pub(super) mod offcpu;
pub(super) mod rows;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use systape_format::families::{OWN, RECORDED};
use systape_format::model::{Family, Session, StackMode, StackOf};
use systape_format::reader::Tape;

use super::{Context, idle, losses};
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Reads, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::idle::Idle;
use crate::asked::options::stacks::SymbolPlaces;
use systape_answers::derive::stacks::debug_files;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::flame::Picture;
use systape_answers::derive::stacks::folded;
use systape_answers::derive::stacks::graph::{Graph, StackRoot, Stacked};
use systape_answers::derive::stacks::of::{self, Of};
use systape_answers::derive::stacks::recorded;
use systape_answers::derive::stacks::text::{self, Left};
use systape_answers::derive::stacks::weight::{Metric, Weight, percent};
use systape_answers::derive::summary::ledger::options;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::open;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::loss::{ListedLoss, family_name};
use systape_events::values::num;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "callgraph",
    about: "Stacks added up: who called what, by count, time or bytes; also as a flame graph",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze callgraph --of offcpu", "where threads left the CPU, by time"),
        ("analyze callgraph --svg flame.svg", "a flame graph"),
    ],
    tables: &[Rows::of("callgraph", &[All(&rows::CALLGRAPH)])],
    check: |config| config.own::<Options>()?.check(config),
    reads,
    run: AnswerFn::Writes { make, run, tells_damage: false },
    ..View::PLAIN
};

#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Whose stacks: cpu syscall offcpu block signal wakeup, or a table that has stacks [default: the first of these the tape has]
    #[arg(long, value_parser = Of::parse, value_name = "EVENTS", help_heading = "Stacks")]
    of: Option<Of>,

    /// What percentages are of
    #[arg(long, value_enum, value_name = "METRIC", help_heading = "Stacks")]
    metric: Option<Metric>,

    /// Innermost functions first, their callers below them
    #[arg(long, help_heading = "Stacks")]
    callee: bool,

    /// Leave out what is below this share of the total [default: 0.5 in text, else 0]
    #[arg(long, value_name = "PERCENT", help_heading = "Stacks")]
    min_percent: Option<f64>,

    /// Cut stacks after N functions
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    max_depth: Option<usize>,

    /// One stack a line, functions separated by semicolons, for flame graph tools
    #[arg(long, help_heading = "Stacks")]
    folded: bool,

    /// Write a flame graph to FILE; -: to standard output
    #[arg(long, value_name = "FILE", help_heading = "Stacks")]
    svg: Option<PathBuf>,

    /// Compare with this tape (before), with --svg or --folded
    #[arg(long, value_name = "TAPE", help_heading = "Stacks")]
    diff: Option<PathBuf>,

    #[command(flatten)]
    idle: Idle,

    #[command(flatten)]
    names: SymbolPlaces,

    /// All metrics are wanted, as in JSON.
    #[arg(skip)]
    all: bool,
}

impl Options {
    /// Refuses combinations that the report cannot do.
    fn check(&self, config: &Config) -> Result<()> {
        let format = config.format;
        if self.folded || self.svg.is_some() {
            let of_trees =
                [(config.max_events != u64::MAX, "--max-events"), (self.min_percent.is_some(), "--min-percent")];
            refuse(&of_trees, "folded stacks and flame graphs have all stacks")?;
        }
        if config.is_of_many() {
            let of_one = [(self.folded, "--folded"), (self.svg.is_some(), "--svg"), (self.diff.is_some(), "--diff")];
            refuse(&of_one, "folded stacks and flame graphs are of one tape")?;
        }
        if self.svg.is_some() && format != Format::Text {
            bail!("--svg FILE writes a picture and prints nothing: leave out --format");
        }
        if self.folded && format != Format::Text {
            bail!("--folded is a form of its own: leave out --format");
        }
        if self.diff.is_some() && !self.folded && self.svg.is_none() {
            bail!("--diff compares two tapes as --folded (two columns) or as --svg FILE: give one of them");
        }
        if let (Some(of), Some(metric)) = (&self.of, self.metric)
            && !of.has(metric)
        {
            bail!("--metric {}: {} have none", metric.name(), of.words());
        }
        let least = self.least(format);
        if !(0.0..=100.0).contains(&least) {
            bail!("--min-percent {least}: a percentage is between 0 and 100");
        }
        if self.max_depth == Some(0) {
            bail!("--max-depth 0 leaves nothing");
        }
        Ok(())
    }

    /// Whether the flame graph goes to standard output.
    fn is_piped(&self) -> bool {
        self.svg.as_deref() == Some(std::path::Path::new("-"))
    }

    fn order(&self) -> StackRoot {
        if self.callee { StackRoot::Callee } else { StackRoot::Caller }
    }

    /// Whether idle waits are one stack, of `rests`: by default in what people look at.
    fn folds(&self, context: &Context<'_>, rests: bool) -> bool {
        let (config, question) = (context.config, &context.question);
        let looked_at = !self.folded && !self.all || self.idle.asked().is_some();
        rests && looked_at && idle::folds(self.idle, config, question.tape, &question.scope)
    }

    /// Least printed share, in percent: rows have no place for a note on what was left out.
    fn least(&self, format: Format) -> f64 {
        self.min_percent.unwrap_or(if format == Format::Text { 0.5 } else { 0.0 })
    }

    fn depth(&self) -> usize {
        self.max_depth.unwrap_or(usize::MAX)
    }
}

/// The second tape, and the directories with names.
fn reads(config: &Config) -> Result<Reads> {
    let own: Options = config.own()?;
    Ok(Reads { files: Vec::from_iter(own.diff), ..own.names.reads()? })
}

/// Makes the file of the flame graph.
fn make(config: &Config) -> Result<Option<NewFile>> {
    let own = config.own::<Options>()?;
    let permissions = config.permissions(own.diff.as_deref())?;
    let make = |path: &PathBuf| {
        NewFile::replacing(path, permissions).with_context(|| format!("cannot write {}", path.display()))
    };
    own.svg.as_ref().filter(|_| !own.is_piped()).map(make).transpose()
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, svg: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    answer(config, tape, &config.own()?, svg, text, out)
}

/// The whole answer on times off the CPU; text as `print` makes it.
pub(super) fn answer_offcpu(
    config: &Config,
    tape: &Tape,
    folded: bool,
    names: SymbolPlaces,
    print: fn(&Graph, &mut Out) -> Result<()>,
    out: &mut Out,
) -> Result<Verdict> {
    let own = Options { of: Some(Of::OffCpu), folded, names, idle: Idle::listed(), ..Options::default() };
    answer(
        config,
        tape,
        &own,
        None,
        |_, _, found, out| {
            losses::head(&found.context, losses::AT_LEAST, out)?;
            print(&found.graph, out)
        },
        out,
    )
}

/// The sums of a tape for another program.
pub(super) struct Sums<'a> {
    /// Weights by name, callers first.
    pub graph: &'a Graph,
    /// What the stacks are of.
    pub of: &'a Of,
    /// The total with its unit, and `at least` if it is a lower bound.
    pub total: String,
    /// Facts that the numbers do not show.
    pub notes: Vec<String>,
}

/// Answers by what `write` makes of the sums of stacks of `of`.
///
/// # Errors
/// Those of `write`, or the tape has no such stacks.
pub(super) fn answer_elsewhere(
    config: &Config,
    tape: &Tape,
    (of, metric): (Option<Of>, Option<Metric>),
    names: SymbolPlaces,
    write: impl FnOnce(&Sums<'_>) -> Result<()>,
    out: &mut Out,
) -> Result<Verdict> {
    let own = Options { of: of.clone(), metric, names, all: true, ..Options::default() };
    let found = Found::read(config, &own, tape, of, out)?;
    config.shown.rows(usize::try_from(found.total.count).unwrap_or(usize::MAX));
    let loss = &found.context.question.loss;
    let lost = if loss.complete() { Vec::new() } else { loss.lines(tape.session(), losses::LOSS_LINES) };
    let notes = lost.into_iter().chain(found.partial()).chain(footer(config, &found, Left::default())).collect();
    write(&Sums { graph: &found.graph, of: &found.of, total: found.total_text(), notes })?;
    let verdict = losses::end(&found.context, out, false, ListedLoss::Nothing)?;
    found.partial().iter().for_each(|text| out.say(text));
    Ok(verdict.doubted(found.lost))
}

fn answer(
    config: &Config,
    tape: &Tape,
    own: &Options,
    svg: Option<&mut NewFile>,
    text: impl FnOnce(&Config, &Tape, &Found<'_>, &mut Out) -> Result<()>,
    out: &mut Out,
) -> Result<Verdict> {
    let mut found = Found::read(config, own, tape, own.of.clone(), out)?;
    config.shown.rows(usize::try_from(found.total.count).unwrap_or(usize::MAX));
    let before = match &own.diff {
        Some(path) => {
            let tape = open(path)?;
            // the same question to both
            let before = Found::read(config, own, &tape, Some(found.of.clone()), out)
                .with_context(|| path.display().to_string())?;
            let lines = before.context.question.loss.lines(tape.session(), losses::LOSS_LINES);
            let lines = lines.into_iter().chain(before.partial());
            lines.for_each(|text| out.say(&format!("{}: {text}", path.display())));
            found.lost |= before.lost;
            Some(folded::fold(&before.graph, own.depth()))
        }
        None => None,
    };
    if own.is_piped() {
        out.write_all(&draw(config, tape, &found, before.clone())?)?;
    } else if let Some(file) = svg {
        // only a whole picture replaces what is there
        let picture = draw(config, tape, &found, before.clone())?;
        file.replace(&picture).with_context(|| format!("cannot write {}", file.path().display()))?;
    }
    let mut told = false;
    if own.folded {
        // flamegraph.pl and others read them
        out.unfitted();
        print_folded(&found, before, out)?;
    } else if own.svg.is_none() {
        if out.is_text() {
            text(config, tape, &found, out)?;
            told = true;
        } else {
            rows::print(config, &found, out)?;
        }
    }
    let verdict = losses::end(&found.context, out, told, ListedLoss::Nothing)?;
    found.partial().filter(|_| !told).iter().for_each(|text| out.say(text));
    Ok(verdict.doubted(found.lost))
}

/// The sums of one tape.
struct Found<'a> {
    own: &'a Options,
    of: Of,
    metric: Metric,
    /// The other kinds of events with stacks on the tape.
    others: Vec<Of>,
    stacked: Stacked,
    total: Weight,
    graph: Graph,
    context: Context<'a>,
    lost: bool,
    /// `record` stored only some of these events.
    partial: bool,
}

impl<'a> Found<'a> {
    fn read(config: &'a Config, own: &'a Options, tape: &'a Tape, of: Option<Of>, out: &mut Out) -> Result<Self> {
        let recorded = recorded::require(tape)?;
        let has = |of: &Of| recorded.contains(&of.events()) || *of == Of::OffCpu && recorded.contains(&StackOf::Asleep);
        let mut kinds: Vec<Of> = Of::ALL.into_iter().filter(has).collect();
        if recorded.contains(&StackOf::Row) {
            kinds.extend(of::tables(tape));
        }
        if let Some(name) = of.as_ref().filter(|of| of.known(tape).is_none()) {
            let known: Vec<_> = kinds.iter().map(Of::name).collect();
            bail!(BadUsage(format!(
                "--of {}: no such events; this tape has stacks of: {}",
                name.name(),
                known.join(", ")
            )));
        }
        let of = choose(&kinds, of.and_then(|of| of.known(tape)), tape.session())?;
        check(config, &of)?;
        let metric = own.metric.unwrap_or(of.metric());
        if !of.has(metric) {
            bail!(BadUsage(format!("--metric {}: {} have none", metric.name(), of.words())));
        }
        let rests = matches!(of, Of::OffCpu | Of::Syscall) && metric == Metric::Time;
        if own.idle.asked().is_some() && !rests {
            bail!(BadUsage(format!("--idle: {} by {} have no idle waits: leave it out", of.words(), metric.name())));
        }
        let mut context = Context::about(config, tape, &families_of(config, &of))?;
        let folds = own.folds(&context, rests);
        let stacked = match of {
            Of::OffCpu => offcpu::collect(&mut context, folds)?,
            _ => {
                let all = own.all || matches!(config.format, Format::Json | Format::Csv);
                collect::collect(&mut context, &of, all || metric == Metric::Bytes, folds)?
            }
        };
        let mut findings = Vec::new();
        let dirs = &own.names.debug_dirs;
        let names = debug_files::find(tape, || stacked.forest.places(), dirs, &mut findings)?;
        findings.iter().for_each(|finding| out.say(finding));
        let graph = Graph::new(&stacked, &names, own.order(), metric);
        let others = kinds.into_iter().filter(|other| *other != of).collect();
        // what a missing name stands for is in another row
        let lost = !context.question.loss.complete() || !findings.is_empty();
        let partial = of == Of::Syscall && losses::stores_some(tape);
        Ok(Self { own, of, metric, others, total: stacked.total(), stacked, graph, context, lost, partial })
    }

    /// Counted calls have no stack.
    fn partial(&self) -> Option<String> {
        let options = options(self.context.question.tape.session());
        self.partial
            .then(|| format!("record stored only some calls{options}: the others have no stack and are not in it"))
    }

    /// The total with its unit: `12.345 ms`, `4096 bytes`, `17 syscalls`.
    fn total_text(&self) -> String {
        let total = &self.total;
        let short = match self.metric {
            Metric::Count => false,
            Metric::Time => total.open + total.untimed > 0,
            Metric::Bytes => total.short > 0,
        };
        let least = if self.lost || self.partial || short { "at least " } else { "" };
        match self.metric {
            Metric::Count => format!("{least}{}", few(self.total.count, "event")),
            Metric::Bytes => format!("{least}{} bytes", self.total.bytes),
            Metric::Time => {
                let mut text = Vec::new();
                num::millis(&mut text, self.total.time, 0, "");
                format!("{least}{} ms", String::from_utf8_lossy(&text))
            }
        }
    }
}

fn choose(kinds: &[Of], asked: Option<Of>, session: &Session) -> Result<Of> {
    match (asked, kinds) {
        (None, [first, ..]) => Ok(first.clone()),
        (Some(of), kinds) if kinds.contains(&of) => Ok(of),
        (asked, kinds) => {
            let names: Vec<_> = kinds.iter().map(Of::name).collect();
            let asked = asked.as_ref().map_or("any", Of::words);
            let left_out =
                session.left_out.iter().map(|left| format!("; {}: {}", family_name(left.family), left.why()));
            bail!(
                "this tape has no stacks of {asked}; it has those of: {}{}",
                names.join(", "),
                left_out.collect::<String>()
            )
        }
    }
}

/// Refuses filters that do not apply to these events.
fn check(config: &Config, of: &Of) -> Result<()> {
    let filters = &config.filters;
    let calls = matches!(of, Of::Syscall | Of::OffCpu);
    if filters.selects && !calls {
        bail!(BadUsage(format!("-e selects calls: stacks of {} are of other events, and take no -e", of.words())));
    }
    if filters.by_path() && *of != Of::Syscall {
        bail!(BadUsage(format!("-P selects calls: stacks of {} are of other events, and take no -P", of.words())));
    }
    if filters.failure && !matches!(of, Of::Syscall | Of::Block) {
        bail!(BadUsage(format!("--failure: {} do not fail", of.words())));
    }
    if filters.longer_than.is_some() && !(calls || *of == Of::Block) {
        bail!(BadUsage(format!("--duration: {} have none", of.words())));
    }
    if filters.cpus.is_some() && matches!(of, Of::Block | Of::Signal) {
        bail!(BadUsage(format!("-C: {} are recorded without a CPU", of.words())));
    }
    Ok(())
}

/// The families whose loss could change the answer.
fn families_of(config: &Config, of: &Of) -> Vec<Family> {
    let mut families = match of {
        Of::Cpu => vec![Family::Sample],
        Of::Syscall => vec![Family::Syscall],
        Of::OffCpu if config.filters.selects => vec![Family::Sched, Family::Process, Family::Syscall],
        Of::OffCpu => vec![Family::Sched, Family::Process],
        Of::Wakeup => vec![Family::Sched],
        Of::Block => vec![Family::Block],
        Of::Signal => vec![Family::Signal],
        // losses of a family that this program does not know touch every answer
        Of::Table(_) | Of::Timed(_) => {
            RECORDED.iter().chain(OWN).filter(|table| of.names(table.def)).map(|table| table.family).collect()
        }
    };
    families.push(Family::Stack);
    families
}

fn text(config: &Config, tape: &Tape, found: &Found<'_>, out: &mut Out) -> Result<()> {
    const HEADING: &str = "Events are missing: numbers are lower bounds, and stacks may be missing:";
    losses::head(&found.context, HEADING, out)?;
    line(out, &format!("# Stacks of {} by {}, {}", found.of.words(), found.metric.name(), order(found.own)))?;
    if found.own.of.is_none() && !found.others.is_empty() {
        let others: Vec<_> = found.others.iter().map(Of::name).collect();
        line(out, &format!("# (--of {}; this tape also has: {})", found.of.name(), others.join(", ")))?;
    }
    let mode = match tape.session().stacks.mode {
        StackMode::None => "",
        StackMode::FramePointers => ", user stacks by frame pointers: callers compiled without them are missing",
        StackMode::Dwarf => ", user stacks by unwind information",
    };
    line(out, "#")?;
    line(out, &format!("# Events: {} ({}){mode}", found.total.count, found.of.words()))?;
    line(out, &format!("# Total (100%): {}", found.total_text()))?;
    if let Some(text) = found.partial() {
        line(out, &format!("# {text}"))?;
    }
    line(out, "#")?;
    let view = text::StackTextOptions {
        graph: &found.graph,
        order: found.own.order(),
        min_percent: found.own.least(config.format),
        max_depth: found.own.depth(),
        roots: config.most(),
    };
    let left = view.print(out)?;
    for text in footer(config, found, left) {
        line(out, &format!("# {text}"))?;
    }
    Ok(())
}

fn order(own: &Options) -> &'static str {
    match own.order() {
        StackRoot::Caller => "callers first",
        StackRoot::Callee => "callees first",
    }
}

/// Facts that the numbers above do not show.
fn footer(config: &Config, found: &Found<'_>, left: Left) -> Vec<String> {
    let mut lines = Vec::new();
    let total = &found.total;
    if found.of.is_of_looks() {
        let text =
            "By looks: times are estimates, whose bounds 'analyze stays' has; a stack that few looks found says little";
        lines.push(text.to_owned());
    }
    if left.light > 0 {
        let share = percent(left.weight, found.graph.total());
        let below = if config.max_events == u64::MAX {
            format!("each below {}% (--min-percent)", found.own.least(config.format))
        } else {
            format!("below {}% (--min-percent) or past --max-events", found.own.least(config.format))
        };
        lines.push(format!("Left out: {share:.2}% in {}, {below}", branches(left.light)));
    }
    if left.deep > 0 {
        lines.push(format!("Cut: {} deeper than --max-depth", branches(left.deep)));
    }
    if found.metric == Metric::Time && total.open > 0 {
        lines.push(format!("{} of them lasted longer than is known: what is known is counted", total.open));
    }
    if found.metric == Metric::Time && total.untimed > 0 {
        lines.push(format!("{} of them: how long they took is not known, so they weigh nothing", total.untimed));
    }
    if found.metric == Metric::Bytes && total.short > 0 {
        lines.push(format!("{} of them: how many bytes they moved is not known: it is at least", total.short));
    }
    let endings = found.stacked.endings();
    for (none, lead) in [(true, "No stack"), (false, "Stack ends early")] {
        let of = endings.iter().filter(|((ending, _), _)| *ending != StackEnding::Idle);
        let of = of.filter(|((ending, empty), _)| *empty == none && (none || ending.early()));
        let parts: Vec<String> =
            of.clone().map(|((ending, _), count)| format!("{} ({count})", ending.words())).collect();
        if !parts.is_empty() {
            let sum: u64 = of.map(|(_, count)| count).sum();
            let share = percent(sum, total.count);
            lines.push(format!("{lead}: {} ({share:.2}%): {}", few(sum, "event"), parts.join("; ")));
        }
    }
    lines
}

/// `1 event`, `2 events`.
fn few(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn branches(count: u64) -> String {
    format!("{count} {}", if count == 1 { "branch" } else { "branches" })
}

fn print_folded(found: &Found<'_>, before: Option<Vec<(String, u64)>>, out: &mut Out) -> Result<()> {
    let stacks = folded::fold(&found.graph, found.own.depth());
    match before {
        None => folded::print(out, &stacks)?,
        Some(before) => {
            for (stack, before, after) in folded::both(before, stacks) {
                line(out, &format!("{stack} {before} {after}"))?;
            }
        }
    }
    Ok(())
}

fn draw(config: &Config, tape: &Tape, found: &Found<'_>, before: Option<Vec<(String, u64)>>) -> Result<Vec<u8>> {
    let stacks = folded::fold(&found.graph, found.own.depth());
    let session = tape.session();
    let named = |path: &std::path::Path| systape_events::values::words::escaped(path.as_os_str().as_encoded_bytes());
    let (this, other) = (named(&config.file), found.own.diff.as_deref().map(named));
    let legend = other.as_ref().map_or_else(String::new, |other| {
        format!("; red: more in {this}, blue: less than in {other}, gone: only in {other}")
    });
    let picture = Picture {
        title: format!("{} by {}", found.of.words(), found.metric.name()),
        subtitle: Some(format!(
            "{}; {}{legend}",
            found.total_text(),
            systape_events::values::words::shell(&session.arguments)
        )),
        metric: found.metric,
        waiting: found.metric == Metric::Time && matches!(found.of, Of::OffCpu | Of::Block),
        order: found.own.order(),
        root: format!("{this}: {}", session.target),
    };
    let mut bytes = Vec::new();
    match before {
        None => picture.draw(&stacks, &mut bytes)?,
        Some(before) => {
            let gone = format!("gone: only in {}", other.unwrap_or_default());
            picture.difference(&folded::both(before, stacks), &gone, &mut bytes)?;
        }
    }
    Ok(bytes)
}

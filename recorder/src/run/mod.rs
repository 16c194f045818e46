//! One recording from start to end.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crossbeam_channel::{RecvTimeoutError, bounded};
use indicatif::{HumanBytes, HumanCount};
use systape_abi::Abi;
use systape_bpf::target_bits;
use systape_bpf::wire::Snap;
use systape_format::model::{Call, Class, End, Family, RecordedFamilies, Session, StackMode, shell_status};
use systape_format::redact::Redactor;

use crate::config::{CommandError, FoundCommand, RecordConfig, find_command};
use crate::config::{rights, session};
use crate::encode::Settings;
use crate::escalation::armed::Armed;
use crate::escalation::watch::FoundWrong;
use crate::escalation::{EscalationSettings, Escalator, launcher};
use crate::load::{Programs, Walker};
use crate::machine::{devices, limits, system};
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::forced::{CheckedLedger, Forced, Poisoned};
use crate::own::memory;
use crate::own::memory::GivesBack;
use crate::own::memory::peak_rss;
use crate::own::priority::Raised;
use crate::own::say::{quoted, say};
use crate::own::signals::SignalSet;
use crate::pipeline::progress::{Line, not_stored};
use crate::pipeline::stage::Encoded;
use crate::pipeline::{About, Output, Pipeline};
use crate::run::metrics::{MetricsSources, MetricsWriter};
use crate::run::notify::Watchdog;
use crate::run::self_stats::{RecordedTotals, SelfStats};
use crate::run::target::WaitingChild;
use crate::stacks::budget::NamesTime;
use crate::tape::output;
use crate::tasks::targets::Targets;
use crate::{flight, stacks};

mod metrics;
mod notify;
mod self_stats;
mod start;
mod target;

/// Exit status when `record` itself failed, like env(1) and timeout(1).
pub const FAILED: u8 = 125;

/// How often limits and the end of processes are checked.
const TICK: Duration = Duration::from_millis(50);
/// The same of a recording of looks, which may take no more than a hundredth of a CPU.
const RARE_TICK: Duration = Duration::from_millis(250);

/// A tape that cannot be written fails within this time; otherwise it is a stall.
const BEGIN: Duration = Duration::from_secs(1);

/// From this duration on, the time after the recording is printed.
const NOTABLE: Duration = Duration::from_millis(500);

/// After this time without a byte written at the end, a signal gives up.
const STUCK: Duration = Duration::from_secs(2);

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    CommandExited,
    TargetsGone,
    Interrupted,
    Time,
    Size,
    WriteFailed,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::CommandExited => "command exited",
            Self::TargetsGone => "recorded processes exited",
            Self::Interrupted => "interrupted",
            Self::Time => "--for reached",
            Self::Size => "--max-size reached",
            Self::WriteFailed => "writing failed",
        }
    }
}

/// Records as `config` says; returns the exit status.
///
/// # Errors
/// Any error that prevented the recording; exit status 125.
pub fn record(config: &RecordConfig) -> Result<u8> {
    let command: Option<FoundCommand> = match (!config.command.is_empty()).then(|| find_command(&config.command)) {
        Some(Err(CommandError { status, message })) => {
            say(message);
            return Ok(status);
        }
        found => found.and_then(Result::ok),
    };
    rights::check_proc()?;
    // SIGCHLD, SIGINT and SIGTERM arrive here, whenever they come from now on
    let mut signals = SignalSet::new().context("cannot catch signals")?;
    if config.stacks.mode != StackMode::None {
        memory::return_large();
    }
    limits::check_data()?;
    let files = limits::raise_files();
    let mut own = config.self_stats.then(SelfStats::begin);
    // before anything is attached: the file system may not answer for long
    let opened = match &config.output {
        Some(path) if output::is_stdout(path) => Some(output::open(path)?),
        Some(path) => Some(output::open_patiently(path, |time| signals.wait(time))?),
        None => None,
    };
    let flight = config.flight.as_ref().map(|settings| flight::open(settings, &session::hostname())).transpose()?;
    if flight.is_some() {
        signals.catch_requests().context("cannot catch signals")?;
    }
    let mut config = config.clone();
    // lower again before the command's process is made
    let raised = Raised::while_loading();
    let mut programs = Programs::load(&mut config)?;
    raised.lower();
    let config = &config;
    if let Some(settings) = &config.flight {
        settings.check(&config.selection, &config.families)?;
    }
    if let Some(own) = &mut own {
        own.watch(programs.measured()?, programs.ring_sizes());
    }
    let escalator = config.escalation.as_ref().map(|settings| escalator(settings, config)).transpose()?;
    let armed = config.armed.then(Armed::new).transpose()?;
    let (mut collected, mut begun_for) = (None, None);
    if let Some(armed) = &armed {
        // takes longer than what follows
        collected = Some(session::collect(config));
        begun_for = armed.wait(&name(config))?;
        if begun_for.is_none() {
            return Ok(launcher::NOT_ASKED);
        }
        programs.attach(config)?;
    }
    let mut child = command.map(|command| hold(config, &command, files, &programs)).transpose()?;
    child.iter().for_each(|child| programs.set_command(child.pid()));
    programs.mark()?;
    if let Some(delay) = config.delay {
        if let Some(child) = &mut child {
            child.go();
        }
        signals.wait(delay);
    }
    let about = collected.unwrap_or_else(|| session::collect(config));
    let prepared = Prepared::new(config, programs, about)?;
    armed.iter().for_each(|armed| armed.since(prepared.window_open));
    if let Some(own) = &mut own {
        own.prepared();
    }
    let started = Instant::now();
    let window_open = prepared.window_open;
    let begun = flight.map(|flight| prepared.raised.without(|| flight.begin(window_open)));
    let (flight, control) = begun.transpose()?.unzip();
    if let Some(settings) = &config.flight {
        flight::announce(settings, prepared.about.ring_bytes);
    }
    let Some((pipeline, snaps, walker)) = prepared.begin(config, opened, flight, (escalator, begun_for))? else {
        return Ok(FAILED);
    };
    let start =
        start::read(snaps, child.as_ref().map(WaitingChild::pid), &config.env, config.wanted(), move || walker.opens());
    if let Some(words) = start::words(&start.unread) {
        say(words);
    }
    pipeline.begin(start);
    if let Some(child) = &mut child {
        child.go();
    }
    Running { config, signals, started, window_open, child, own, flight: control, armed }.until_the_end(pipeline)
}

/// Starts the process that makes full recordings.
fn escalator(settings: &EscalationSettings, config: &RecordConfig) -> Result<Escalator> {
    let tape = config.output.as_deref().context("--escalate writes tapes beside that of -o")?;
    Escalator::new(settings, launcher::start(settings, tape)?, clock::monotonic())
}

/// Makes the command's process, which waits, a target.
fn hold(
    config: &RecordConfig,
    command: &FoundCommand,
    files: Option<libc::rlimit>,
    programs: &Programs,
) -> Result<WaitingChild> {
    let spare_stdout = config.output.as_deref().is_some_and(output::is_stdout);
    let child = WaitingChild::spawn(command, files, spare_stdout)?;
    if !config.all {
        // with a delay the command runs before the recording begins
        let armed = if config.delay.is_none() { target_bits::ARMED } else { 0 };
        programs.add_target(child.pid(), target_bits::PID | armed)?;
    }
    Ok(child)
}

/// A recording whose window is open.
struct Prepared {
    programs: Programs,
    raised: Raised,
    about: Session,
    stacks: Option<stacks::Workers>,
    window_open: u64,
    /// State of every task at that time.
    snaps: Vec<Snap>,
    walker: Walker,
}

impl Prepared {
    /// Gives up rights, and opens the window.
    fn new(config: &RecordConfig, mut programs: Programs, mut about: Session) -> Result<Self> {
        about.left_out = std::mem::take(&mut programs.left_out);
        about.preemptible = programs.preemptible;
        about.notes.extend(programs.notes.iter().map(|note| note.clone().into_bytes()));
        let keep = config.output.as_deref().filter(|_| config.keep_stack_bytes);
        let stacks = stacks::open(&config.stacks, keep, &mut about.notes)?;
        for note in &about.notes {
            say(String::from_utf8_lossy(note));
        }
        // no thread was made yet, and nothing of other processes was read
        let raised = Raised::new();
        let walker = programs.walker()?;
        rights::give_up(config, || walker.walk().is_ok())?;
        let names = config.symbols.then(|| NamesTime::new(config.names_for));
        let scan = |opened: stacks::OpenedStacks| opened.scan(config.marked_processes().as_deref(), names);
        let stacks = stacks.map(|opened| raised.without(|| scan(opened))).transpose()?;
        about.ring_bytes = programs.ring_bytes();
        about.registers_unknown = !programs.knows_registers();
        let (window_open, snaps) = programs.start()?;
        about.window_open = window_open;
        session::name_cgroups(&mut about);
        Ok(Self { programs, raised, about, stacks, window_open, snaps, walker })
    }

    /// Starts all stages on the tape; None = it cannot be written, and the end reports the reason.
    fn begin(
        self,
        config: &RecordConfig,
        opened: Option<output::OpenedTape>,
        flight: Option<flight::PreparedFlight>,
        (escalator, begun_for): (Option<Escalator>, Option<FoundWrong>),
    ) -> Result<Option<(Pipeline, Vec<Snap>, Walker)>> {
        let Self { programs, raised, about, stacks, window_open, snaps, walker } = self;
        let settings = Settings {
            selection: config.selection.clone(),
            stores: config.filter.clone(),
            window_open,
            flush: config.flush,
            looks: config.families.has(Family::Look),
            stacks: config.stacks.clone(),
            env: Arc::clone(&config.env),
            targets: Targets::new(config, RecordedFamilies::of(&about.families), programs.own_pid()),
            triggers: config.flight.as_ref().map(|flight| flight.triggers.clone()).unwrap_or_default(),
            chunks_stand_alone: config.flight.is_some(),
            own_pid: programs.own_pid(),
            nested: programs.is_nested(),
            follows_rings: programs.follows_rings(),
            tracepoints: config.tracepoints.clone(),
            probes: config.probes.clone(),
            static_probes: config.usdt.probes.clone(),
            devices: about.devices.iter().map(|(major, minor, _)| devices::dev((*major, *minor))).collect(),
            lock_names: programs.lock_names(config.symbols),
        };
        let redactor = config.redact.map(|level| Redactor::new(level, class));
        let tape = About { id: system::unique_id(window_open), session: about, tables: programs.tables(), redactor };
        let tape_at = opened.map(output::OpenedTape::begin).zip(config.output.as_deref());
        let output = Output { tape: tape_at, flight, escalator, begun_for, sync: config.sync, buffer: config.buffer };
        let pipeline = Pipeline::start(programs, raised, output, tape, (settings, config.wanted()), stacks)?;
        if begun(config, &pipeline) {
            return Ok(Some((pipeline, snaps, walker)));
        }
        // says why
        let failed = pipeline.finish(|encoded| end(encoded, Reason::WriteFailed, None));
        failed.map(|_| None).with_context(|| name(config))
    }
}

/// A recording that runs.
struct Running<'a> {
    config: &'a RecordConfig,
    signals: SignalSet,
    started: Instant,
    window_open: u64,
    child: Option<WaitingChild>,
    own: Option<SelfStats>,
    flight: Option<flight::FlightControl>,
    /// The way to who asked for this recording; None = a user.
    armed: Option<Armed>,
}

impl Running<'_> {
    /// Waits for the end of the recording, ends the tape, and prints the result; returns the exit status.
    fn until_the_end(mut self, pipeline: Pipeline) -> Result<u8> {
        let config = self.config;
        let mut line = Line::new(self.child.is_some());
        let metrics = config.metrics.as_ref().map(|path| self.metrics(path, &pipeline)).transpose()?;
        let reason = self.wait(&pipeline, &mut line);
        line.clear();
        notify::stopping();
        let command_exit = self.child.as_mut().and_then(WaitingChild::ended);
        let control = Arc::clone(&pipeline.control);
        let mut no_tape = false;
        let names = pipeline.names_time.clone();
        let finished = finish(config, pipeline, &self.signals, move |encoded| end(encoded, reason, command_exit));
        metrics.into_iter().for_each(MetricsWriter::finish);
        match &finished {
            Ok((encoded, bytes)) => {
                let window = Duration::from_nanos(encoded.window_close.saturating_sub(self.window_open));
                let tapes = self.flight.as_ref().map(flight::FlightControl::tapes);
                // none of those that were begun is there
                no_tape = matches!(tapes, Some((0, failed)) if failed > 0);
                last_line(config, encoded, *bytes, tapes, (window, self.started.elapsed()));
                names.iter().for_each(names_line);
                if let Some(checked) = &encoded.checked {
                    checked_lines(&config.forced, checked);
                }
                if let Some(own) = self.own {
                    own.print(recorded(config, encoded, *bytes), &control.fills);
                }
            }
            // the command is not to blame: it goes on, and its end is waited for as after --for
            Err(e) if self.child.is_some() => {
                let waiting = if command_exit.is_some() { "" } else { "; waiting for the command" };
                say(format_args!("{}: {e:#}{waiting}", name(config)));
            }
            Err(_) => {}
        }
        let status = self.child.map_or(0, |child| finish_command(config, child, &self.signals));
        match finished {
            Ok(_) if no_tape => Ok(if config.command.is_empty() { 1 } else { FAILED }),
            Ok(_) => Ok(status),
            Err(_) if !config.command.is_empty() => Ok(FAILED),
            Err(e) => Err(e.context(name(config))),
        }
    }

    /// Begins to write numbers to `path`.
    fn metrics(&self, path: &Path, pipeline: &Pipeline) -> Result<MetricsWriter> {
        let sources = MetricsSources {
            progress: Arc::clone(&pipeline.progress),
            control: Arc::clone(&pipeline.control),
            rings: pipeline.rings,
            status: self.flight.as_ref().map(flight::FlightControl::status),
        };
        MetricsWriter::start(path.to_owned(), sources)
    }

    /// Waits until the recording is over.
    fn wait(&mut self, pipeline: &Pipeline, line: &mut Line) -> Reason {
        let config = self.config;
        let mut watchdog = Watchdog::ready();
        let mut memory = GivesBack::new();
        let tick = if config.families.has(Family::Look) { RARE_TICK } else { TICK };
        loop {
            let left = config.limit_time.map(|limit| limit.saturating_sub(self.started.elapsed()));
            if self.signals.wait(left.map_or(tick, |left| left.min(tick))) {
                return Reason::Interrupted;
            }
            if self.armed.as_ref().is_some_and(Armed::has_ended) {
                return Reason::Interrupted;
            }
            if self.signals.requested() {
                self.flight.iter().for_each(flight::FlightControl::request);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Reason::Time;
            }
            if self.child.as_mut().is_some_and(|c| c.ended().is_some()) {
                return Reason::CommandExited;
            }
            if pipeline.broken() {
                return Reason::WriteFailed;
            }
            let size = pipeline.progress.bytes();
            if config.max_size.is_some_and(|max| size >= max) {
                return Reason::Size;
            }
            let live = || {
                config.pids.iter().any(|pid| system::is_process_alive(*pid))
                    || config.tids.iter().any(|tid| system::is_alive(*tid))
            };
            if self.child.is_none() && config.marks_tasks() && !live() {
                return Reason::TargetsGone;
            }
            watchdog.feed(&pipeline.control, [&pipeline.progress.flow, &pipeline.progress.kept]);
            memory.look();
            line.update(&pipeline.progress, &pipeline.control);
        }
    }
}

/// The tape, or where tapes go.
fn name(config: &RecordConfig) -> String {
    let dir = || config.flight.as_ref().map(|flight| flight.dir.as_path());
    config.output.as_deref().or_else(dir).unwrap_or(Path::new("")).display().to_string()
}

/// The class of captured memory, for redaction.
fn class(call: Call, arg: u8, bytes: &[u8]) -> Option<Class> {
    Class::named(systape_abi::captured_class(Abi::from_raw(call.abi), call.nr, arg, bytes))
}

/// Waits a while for the tape's beginning to be written; false = it cannot be. Data recorded meanwhile and afterwards
/// waits in memory.
fn begun(config: &RecordConfig, pipeline: &Pipeline) -> bool {
    pipeline.opened(BEGIN).unwrap_or_else(|| {
        let (output, room) = (name(config), HumanBytes(config.buffer));
        say(format_args!("{output}: the disk or reader accepts nothing yet; up to {room} wait in memory"));
        true
    })
}

/// Ends the tape. A signal ends the look-up of names. The output may have stalled (a pipe without a reader, a lost server): a signal during a
/// stall gives up the unwritten rest.
fn finish(
    config: &RecordConfig,
    pipeline: Pipeline,
    signals: &SignalSet,
    end: impl FnOnce(&Encoded) -> End + Send + 'static,
) -> Result<(Encoded, u64)> {
    let (flow, names) = (Arc::clone(&pipeline.progress.flow), pipeline.names_time.clone());
    let (done, finished) = bounded(1);
    // nobody waits any more: it was given up
    let work = move || drop(done.send(pipeline.finish(end)));
    let thread = thread::Builder::new()
        .name("finish".into())
        .spawn(counted("finish", work))
        .context("cannot start the finish thread")?;
    let (mut seen, mut moved, mut told) = (0, Instant::now(), false);
    loop {
        match finished.recv_timeout(TICK) {
            Ok(result) => {
                // nothing is left for it to do; its time is counted at its end
                thread.join().ok();
                return result;
            }
            Err(RecvTimeoutError::Disconnected) => {
                thread.join().ok();
                bail!("the finish thread died; what was written before is readable");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let bytes = flow.accepted.load(Ordering::Relaxed);
        if bytes != seen || !flow.waiting.load(Ordering::Relaxed) {
            (seen, moved) = (bytes, Instant::now());
        }
        let asked = signals.wait(Duration::ZERO);
        if asked {
            names.iter().for_each(NamesTime::stop);
        }
        if moved.elapsed() < STUCK {
            continue;
        }
        if asked {
            bail!(
                "the disk or reader did not accept the rest of the tape, and it was given up; what was written before is readable"
            );
        }
        if !told {
            told = true;
            say(format_args!(
                "{}: the disk or reader does not accept the rest of the tape; waiting, Ctrl-C gives up",
                name(config)
            ));
        }
    }
}

fn end(encoded: &Encoded, reason: Reason, command_exit: Option<i32>) -> End {
    End {
        clock: clock::sample(),
        window_close: encoded.window_close,
        reason: reason.text().into(),
        events: encoded.totals.by_family(),
        lost: encoded.lost.clone(),
        command_exit: command_exit.unwrap_or(-1),
        self_cpu_ns: clock::self_cpu(),
        self_peak_rss: peak_rss(),
        own_calls: encoded.own_calls,
    }
}

fn recorded(config: &RecordConfig, encoded: &Encoded, bytes: u64) -> RecordedTotals {
    let only_own_children = config.command.is_empty();
    RecordedTotals { events: encoded.totals.sum(), bytes, peak_rss: peak_rss(), only_own_children }
}

/// `12 events, 24 KiB, 2.36 s and 9.30 s to finish, 0 lost -> t.tape`: the length of the recording, and the time after
/// it (names of functions, a slow disk).
fn last_line(
    config: &RecordConfig,
    encoded: &Encoded,
    bytes: u64,
    tapes: Option<(u64, u64)>,
    (recorded, took): (Duration, Duration),
) {
    let missing: u64 = encoded.lost.iter().map(|(_, n)| n).sum();
    if config.quiet && missing == 0 {
        return;
    }
    let after = took.saturating_sub(recorded);
    let after = if after < NOTABLE { String::new() } else { format!(" and {:.2} s to finish", after.as_secs_f64()) };
    let events = encoded.totals.sum();
    let plural = if events == 1 { "" } else { "s" };
    let mut lost = not_stored(missing.saturating_sub(encoded.counted), encoded.counted);
    if missing > 0 {
        lost.push_str(" (see analyze info)");
    }
    if encoded.filtered > 0 {
        lost = format!("{} left out and counted as asked, {lost}", HumanCount(encoded.filtered));
    }
    let tapes = tapes.map_or_else(String::new, |(written, failed)| {
        let failed = if failed == 0 { String::new() } else { format!(" ({failed} failed)") };
        format!(", {written} tape{}{failed}", if written == 1 { "" } else { "s" })
    });
    say(format_args!(
        "{} event{plural}, {}, {:.2} s{after}, {lost}{tapes} -> {}",
        HumanCount(events),
        HumanBytes(bytes),
        recorded.as_secs_f64(),
        name(config)
    ));
    if let Some(output) = config.output.as_ref().filter(|_| std::io::stderr().is_terminal() && !config.quiet) {
        say(format_args!("next: analyze why {}", quoted(output)));
    }
}

/// What became of names that the time did not reach, and of processes that hang.
fn names_line(time: &NamesTime) {
    let (given_up, hang) = (time.given_up(), systape_symbols::left_behind());
    if given_up > 0 {
        say(format_args!(
            "{} place{} in code stay{} without a name (analyze info says why): --names-for TIME looks longer, analyze --debug-dir finds them later",
            HumanCount(given_up),
            if given_up == 1 { "" } else { "s" },
            if given_up == 1 { "s" } else { "" },
        ));
    }
    if hang > 0 {
        let (is, processes) = if hang == 1 { ("waits", "process") } else { ("wait", "processes") };
        say(format_args!(
            "{hang} child {processes} that read files still {is} for a file system that does not answer, and end when it does"
        ));
    }
}

/// With --force ledger-check: the expected sums; with poison: how much is in records. As JSON.
fn checked_lines(forced: &Forced, checked: &CheckedLedger) {
    if forced.ledger_check {
        let CheckedLedger { calls, sum, sizes, .. } = checked;
        say(format_args!("ledger {{\"calls\":{calls},\"sum\":{sum},\"sizes\":{sizes:?}}}"));
    }
    if forced.poison {
        let Poisoned { records, dirty } = checked.poisoned;
        say(format_args!("poison {{\"records\":{records},\"dirty\":{dirty}}}"));
    }
}

/// The recording may end before the command: then the command continues, unless --kill, and this waits for its status.
fn finish_command(config: &RecordConfig, mut child: WaitingChild, signals: &SignalSet) -> u8 {
    if child.ended().is_none() && config.kill {
        child.signal(libc::SIGTERM);
        let patience = Instant::now();
        while child.ended().is_none() && patience.elapsed() < Duration::from_secs(5) {
            signals.wait(TICK);
        }
        if child.ended().is_none() {
            child.signal(libc::SIGKILL);
        }
    }
    child.wait_end().and_then(shell_status).unwrap_or(0)
}

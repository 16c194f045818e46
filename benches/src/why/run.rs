//! Runs of one case: cause on and off, bare and recorded, by turns.

use std::fs;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Plan;
use super::answer::Answer;
use super::case::Case;
use super::pattern::RunFacts;
use super::stage::{self, ReadyCase, Stage};
use crate::process;
use crate::stats::Samples;

/// A case that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// One recorded run with the cause on.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What the run knew of its truth.
    pub facts: RunFacts,
    /// Seconds from its exec to its end.
    pub wall: f64,
    /// CPUs that were busy with anything but this run, on average.
    pub others: f64,
    /// What `analyze why` said.
    pub answer: Answer,
}

/// All runs of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// Seconds of recorded runs with the cause on.
    pub on: Samples,
    /// With the cause off.
    pub off: Samples,
    /// Seconds of runs without `record`.
    pub bare_on: Samples,
    /// With the cause off.
    pub bare_off: Samples,
    /// The tapes with the cause on.
    pub told: Vec<Told>,
}

/// The tape of a case's pair, counted from 0, in a directory.
pub(crate) fn tape(dir: &Path, case: &str, pair: usize) -> PathBuf {
    dir.join(format!("{case}.{}.tape", pair + 1))
}

/// What one run took.
struct RunCost {
    facts: RunFacts,
    wall: f64,
    others: f64,
}

/// One of the four kinds of run.
#[derive(Clone, Copy)]
struct Way {
    on: bool,
    recorded: bool,
}

impl Runs {
    /// Runs the case as often as the plan says.
    ///
    /// # Errors
    /// A run failed, or its tape cannot be read.
    pub(crate) fn of(stage: &Stage, plan: &Plan, case: &Case) -> Result<Self> {
        let ready = stage.ready(case)?;
        let ways: &[(bool, bool)] = match (case.healthy, plan.bare()) {
            (true, _) => &[(true, true)],
            (false, true) => &[(true, true), (false, true), (true, false), (false, false)],
            (false, false) => &[(true, true), (false, true)],
        };
        let mut runs = Self::default();
        for pair in 0..plan.pairs() {
            // each round begins with the next one: drift of the machine meets all of them
            for i in 0..ways.len() {
                let (on, recorded) = ways[(i + pair) % ways.len()];
                process::go_on()?;
                runs.once(stage, plan, &ready, pair, Way { on, recorded })?;
            }
        }
        Ok(runs)
    }

    fn once(&mut self, stage: &Stage, plan: &Plan, ready: &ReadyCase<'_>, pair: usize, way: Way) -> Result<()> {
        let tape = tape(&ready.dir, ready.case.name, pair);
        let took = run(stage, plan, ready, way, &tape)?;
        let walls = match (way.recorded, way.on) {
            (true, true) => &mut self.on,
            (true, false) => &mut self.off,
            (false, true) => &mut self.bare_on,
            (false, false) => &mut self.bare_off,
        };
        walls.push(took.wall);
        if !way.recorded {
            return Ok(());
        }
        if way.on {
            let (answer, text) = Answer::ask(&stage.analyze, &tape)?;
            keep(plan, &tape, &text)?;
            self.told.push(Told { facts: took.facts, wall: took.wall, others: took.others, answer });
        }
        fs::remove_file(&tape).with_context(|| tape.display().to_string())
    }
}

fn keep(plan: &Plan, tape: &Path, text: &str) -> Result<()> {
    let Some(dir) = &plan.keep else { return Ok(()) };
    let to = dir.join(tape.file_name().unwrap_or_default());
    fs::copy(tape, &to).with_context(|| to.display().to_string())?;
    fs::write(to.with_extension("jsonl"), text).with_context(|| to.display().to_string())
}

/// Runs the case once and measures it from its exec to its end.
fn run(stage: &Stage, plan: &Plan, ready: &ReadyCase<'_>, way: Way, tape: &Path) -> Result<RunCost> {
    let start = ready.dir.join("start");
    let truth = ready.dir.join("truth");
    [&start, &truth].iter().for_each(|file| drop(fs::remove_file(file)));
    let words = ready.words(&ready.case.run, way.on);
    let mut command = match way.recorded {
        true => {
            let mut record = Command::new(&stage.record);
            record.arg("-o").arg(tape).args(&ready.case.record);
            if plan.beside && !ready.case.record.iter().any(|word| word == "-a") {
                record.arg("-a");
            }
            record.arg("--").arg(stage.stamp());
            record
        }
        false => Command::new(stage.stamp()),
    };
    let errors = ready.dir.join("errors");
    let out = File::create(ready.dir.join("output"))?;
    command.env(stage::GROUP.0, stage::group());
    command.arg(&start).args(words).current_dir(&ready.dir).process_group(0);
    command.stdin(Stdio::null()).stdout(out).stderr(File::create(&errors)?);
    let before = BusyTime::now()?;
    set_nice(plan.nice);
    let neighbour = plan.beside.then(|| stage.neighbour()).transpose()?;
    let helper = ready.helper(way.on)?;
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let measured = watch(&mut child, &start);
    let status = match &measured {
        Ok(_) => ended(&mut child),
        Err(_) => Err(stopped(&mut child)),
    };
    drop((helper, neighbour));
    let others = before.until(BusyTime::now()?);
    let text = || String::from_utf8_lossy(&fs::read(&errors).unwrap_or_default()).trim().to_owned();
    let (pid, wall) = measured.with_context(text)?;
    if !status?.success() {
        bail!("{command:?} failed: {}", text());
    }
    let known = fs::read_to_string(&truth).unwrap_or_default();
    let facts = RunFacts::of(pid, &format!("group {}\n{known}", stage::group()));
    Ok(RunCost { facts, wall, others })
}

/// What is started from here on has this priority.
fn set_nice(nice: i32) {
    // SAFETY: the call touches no memory; 0 is this process.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

/// Kills what is left of a run.
fn stopped(child: &mut Child) -> anyhow::Error {
    // SAFETY: kill touches no memory; the group is the child's own, and it is not reaped yet.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
    child.wait().ok();
    anyhow::anyhow!("stopped")
}

/// The run's end: of a recorded one it comes after the command's, when the tape is written.
fn ended(child: &mut Child) -> Result<std::process::ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > PATIENCE || process::interrupted() {
            return Err(stopped(child));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The case's pid, and the seconds from its exec, which it notes in `start`, to its end.
fn watch(child: &mut Child, start: &PathBuf) -> Result<(u32, f64)> {
    let started = Instant::now();
    let (pid, began) = loop {
        if let Ok(text) = fs::read_to_string(start) {
            let mut words = text.split_whitespace();
            let (pid, began) = (words.next().context("a pid")?, words.next().context("a time")?);
            break (pid.parse::<i32>()?, began.parse::<u64>()?);
        }
        if let Some(status) = child.try_wait()? {
            bail!("ended before the case began: {status}");
        }
        if started.elapsed() > PATIENCE {
            bail!("the case did not begin");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // SAFETY: pidfd_open touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        bail!("the case ended too soon: {}", std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let prompt = Prompt::get();
    let patience = PATIENCE.as_millis() as i32;
    // SAFETY: poll reads and writes the one pollfd.
    let n = unsafe { libc::poll(&raw mut poll, 1, patience) };
    let end = monotonic();
    drop(prompt);
    match n {
        1 => Ok((pid.cast_unsigned(), end.saturating_sub(began) as f64 / 1e9)),
        0 => bail!("the case did not end in {patience} ms"),
        _ => bail!("interrupted"),
    }
}

/// As long as it lives this thread gets a CPU at once when it wakes up: the end of a case is seen when it is.
struct Prompt;

impl Prompt {
    fn get() -> Self {
        Self::set(libc::SCHED_FIFO, 1);
        Self
    }

    /// Where it is not allowed the end is seen a little late.
    fn set(policy: i32, priority: i32) {
        let param = libc::sched_param { sched_priority: priority };
        // SAFETY: the call reads `param` only; 0 is this thread.
        unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        Self::set(libc::SCHED_OTHER, 0);
    }
}

fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time` only.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// CPU time of the machine and of this program's children that were waited for, seconds.
struct BusyTime {
    at: Instant,
    all: f64,
    own: f64,
}

impl BusyTime {
    fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        // SAFETY: sysconf touches no memory.
        let tick = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let all = busy_ticks(&stat).context("/proc/stat: no line cpu")? as f64 / tick;
        Ok(Self { at: Instant::now(), all, own: process::cpu_of_children()? })
    }

    /// CPUs that others kept busy since then.
    fn until(&self, now: Self) -> f64 {
        let others = (now.all - self.all) - (now.own - self.own);
        (others / (now.at - self.at).as_secs_f64()).max(0.0)
    }
}

/// user, nice, system, irq, softirq and steal of `cpu  1 2 3 idle iowait 4 5 6`.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map(|t| t.parse().ok()).collect::<Option<_>>()?;
    Some([0, 1, 2, 5, 6, 7].iter().filter_map(|i| ticks.get(*i)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 20 300 9999 9999 4000 50000 600000 7 7\ncpu0 1"), Some(654_321));
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn a_run_is_measured_from_its_note_to_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let start = dir.path().join("start");
        let began = monotonic() - 1_000_000_000;
        let script = format!("echo $$ {began} > start.new; mv start.new start; sleep 0.2");
        let mut child = Command::new("sh").args(["-c", &script]).current_dir(&dir).spawn().expect("sh");
        let (pid, wall) = watch(&mut child, &start).expect("a run");
        assert_eq!(pid, child.id());
        assert!((1.2..60.0).contains(&wall), "{wall}");
        child.wait().expect("sh");
    }
}

//! The command line resolved on this machine: names looked up, sizes rounded, contradictions refused.

use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use systape_abi::{Selection, Structs};
use systape_format::families::MAX_ASKED_FOR;
use systape_format::model::{Family, StackOf, StackSettings};
use systape_format::redact::Level;

use crate::calls::filter::CallFilter;
use crate::calls::memory::Wanted;
use crate::escalation::{self, EscalationSettings};
use crate::flight;
use crate::kernel::families::Families;
use crate::machine::called::{self, Called};
use crate::machine::patient::Asked;
use crate::machine::system::{self, is_alive, is_process_alive, page_size};
use crate::machine::{cgroups, containers, environ, kin, limits};
use crate::options::args::Args;
use crate::options::habits;
use crate::own::forced::Forced;
use crate::probes::{Probe, Usdt};
use crate::tape::output;
use crate::tape::sync::Policy;
use crate::tracepoints::Tracepoint;
use crate::{probes, stacks, tracepoints};

pub mod rights;
pub(crate) mod session;

const MAX_RING: u64 = 1 << 30;
/// Default of --buffer with enough memory; of a flight recorder, which waits for no disk; and the least value that works.
const BUFFER: u64 = 256 << 20;
const FLIGHT_BUFFER: u64 = 32 << 20;
const LEAST_BUFFER: u64 = 1 << 20;
/// Longest life of a segment. A recording of looks has so little to store that beginnings of segments would be most of it.
const FLUSH: Duration = Duration::from_secs(1);
const LOOKS_FLUSH: Duration = Duration::from_secs(10);
const LEAST_FLUSH: Duration = Duration::from_millis(10);
/// Longest time to look up a user's name.
const USERS_PATIENCE: Duration = Duration::from_secs(5);

/// A command that was found, ready for execve.
#[derive(Clone, Debug)]
pub(crate) struct FoundCommand {
    /// File to execute.
    pub path: CString,
    /// Arguments of the program, argv.
    pub argv: Vec<CString>,
}

/// Why the command cannot be run, with the exit status env(1) would give.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// 126 found but not executable, 127 not found.
    pub status: u8,
    /// The message.
    pub message: String,
}

/// All settings of `record`, resolved.
#[derive(Clone, Debug)]
pub struct RecordConfig {
    /// Path of the tape; None = only a flight recorder's.
    pub output: Option<PathBuf>,
    /// The flight recorder.
    pub(crate) flight: Option<flight::FlightSettings>,
    /// Prints nothing at the end unless something is wrong.
    pub quiet: bool,
    /// File for the numbers of the recording.
    pub metrics: Option<PathBuf>,
    /// The whole system; a command only limits the time.
    pub all: bool,
    /// Processes to record.
    pub pids: Vec<u32>,
    /// Also those that run below them.
    pub tree: bool,
    /// Threads to record.
    pub tids: Vec<u32>,
    /// User to record.
    pub uid: Option<u32>,
    /// Comm to record.
    pub comm: Option<Vec<u8>>,
    /// cgroup directory to record.
    pub cgroup: Option<PathBuf>,
    /// Id of the cgroup that tasks have to be in.
    pub cgroup_id: Option<u64>,
    /// Whether the recorder's own threads are recorded.
    pub with_self: bool,
    /// CPUs to record; None = all.
    pub cpus: Option<Vec<u32>>,
    /// Families to record.
    pub families: Families,
    /// Stacks to take.
    pub stacks: StackSettings,
    /// Look names of functions up.
    pub symbols: bool,
    /// Most time for them, after the recording and for each chunk.
    pub names_for: Duration,
    /// Keep copied stacks beside the tape.
    pub keep_stack_bytes: bool,
    /// Calls to record.
    pub selection: Selection,
    /// Which of them are stored.
    pub filter: CallFilter,
    /// Reduced limits in the kernel, for tests.
    pub forced: Forced,
    /// The -e expressions as typed.
    pub selection_text: Vec<String>,
    /// Tracepoints to record as tables.
    pub tracepoints: Vec<Arc<Tracepoint>>,
    /// Functions of --uprobe, --probe and --kprobe.
    pub probes: Vec<Arc<Probe>>,
    /// Static probes of --usdt.
    pub usdt: Usdt,
    /// Environment variables to keep.
    pub env: Arc<environ::EnvironKeys>,
    /// Labels of the tape.
    pub labels: Vec<String>,
    /// Remarks on what -e asks for.
    notes: Vec<String>,
    /// Follow children.
    pub inherit: bool,
    /// Bytes of each bulk ring; None = by the number of CPUs.
    pub ring_bytes: Option<u32>,
    /// Bytes of memory for waiting data while the disk stalls.
    pub buffer: u64,
    /// Delay before the start.
    pub delay: Option<Duration>,
    /// Bytes kept of a string.
    pub string_limit: u32,
    /// Structures of arguments that are recorded.
    pub structs: Structs,
    /// Classes left out of the tape.
    pub redact: Option<Level>,
    /// End after.
    pub limit_time: Option<Duration>,
    /// End at this size.
    pub max_size: Option<u64>,
    /// End the command with the recording.
    pub kill: bool,
    /// When the tape is made safe against a power cut.
    pub sync: Policy,
    /// Print the cost of the recording itself.
    pub self_stats: bool,
    /// Longest life of a segment.
    pub flush: Duration,
    /// When looks are followed by full recordings; None = never.
    pub escalation: Option<EscalationSettings>,
    /// The window is opened when standard input says so.
    pub armed: bool,
    /// Command line of the command; empty = none.
    pub command: Vec<OsString>,
}

impl RecordConfig {
    /// Resolves `args`.
    ///
    /// # Errors
    /// Words that mean nothing here or do not go together, in the words of a message.
    pub fn new(args: Args) -> Result<Self> {
        if let Some(instead) =
            args.events.iter().find_map(|expression| habits::probe(expression).or_else(|| habits::event(expression)))
        {
            bail!("{instead}");
        }
        let selection = Selection::parse(&args.events).map_err(|e| anyhow::anyhow!("{e}"))?;
        if !(args.command.is_empty() || args.pid.is_empty() && args.tid.is_empty()) {
            let word = args.command[0].to_string_lossy();
            let limit = args.command.get(1).filter(|_| word == "sleep").map(|time| time.to_string_lossy());
            let limit = limit.map(|time| format!("; --for {time}s ends it after {time} s")).unwrap_or_default();
            bail!(
                "a command and -p or -t cannot be recorded together; record one of them, or the whole system with -a{limit}{}",
                habits::no_command(&word).map(|text| format!("; {text}")).unwrap_or_default()
            );
        }
        if args.all && !(args.pid.is_empty() && args.tid.is_empty()) {
            bail!("-a records the whole system: leave out -a or the other target");
        }
        for &pid in &args.pid {
            if !is_process_alive(pid) {
                bail!("-p {pid}: there is no such process");
            }
        }
        for &tid in &args.tid {
            if !is_alive(tid) {
                bail!("-t {tid}: there is no such thread");
            }
        }
        let mut events = tracepoints::find(selection.other_events())?;
        let mut files = probes::Files::default();
        if !(args.uprobe.is_empty() && args.probe.is_empty() && args.usdt.is_empty()) {
            files.read()?;
        }
        let (probes, mut notes) = probes::find(&args.uprobe, &args.probe, &args.kprobe, &mut files)?;
        events.notes.append(&mut notes);
        let ids: Vec<u32> = args.pid.iter().chain(&args.tid).copied().collect();
        let command = args.command.first().map(OsString::as_os_str);
        events.notes.append(&mut probes::unseen(&probes, command, &ids, &mut files));
        let (usdt, mut notes) = probes::find_static(&args.usdt, &mut files)?;
        events.notes.append(&mut notes);
        events.notes.append(&mut files.notes);
        let tables = events.tracepoints.len() + 2 * probes.len() + usdt.probes.len();
        if tables > MAX_ASKED_FOR {
            bail!(
                "-e, --uprobe, --probe, --kprobe, --usdt: {tables} tables of events; a tape takes {MAX_ASKED_FOR}. A function needs two"
            );
        }
        let mut families = Families::parse(&args.families)?;
        if args.sample.is_some() {
            refuse_with_looks(&args)?;
            families = Families::of_looks();
        }
        let escalation = escalation_settings(&args)?;
        let flush = if args.sample.is_some() { LOOKS_FLUSH } else { FLUSH };
        let tables = (tables > 0).then_some(Family::Tracepoint);
        events.families.iter().copied().chain(tables).for_each(|family| families.add(family));
        let stacks = stacks::options::parse(&args, &families)?;
        if args.redact.is_some() && args.keep_stack_bytes {
            bail!("--keep-stack-bytes writes stacks as they are: leave it or --redact out");
        }
        let filter = CallFilter::new(&args)?;
        let flight = flight::FlightSettings::new(&args, &selection, &families)?;
        if flight.is_some() && args.output.is_none() {
            let of_tape = [(args.max_size.is_some(), "--max-size"), (args.keep_stack_bytes, "--keep-stack-bytes")];
            if let Some((_, name)) = of_tape.into_iter().find(|(given, _)| *given) {
                bail!("{name} is about the tape of -o; see --disk and --ring");
            }
        }
        let output = args.output.or_else(|| flight.is_none().then(|| PathBuf::from("trace.tape")));
        let comm = args.comm.map(OsString::into_vec);
        if let Some(name) = &comm
            && (name.is_empty() || name.len() > 15)
        {
            bail!("--comm: the kernel keeps 1 to 15 bytes of a thread's name, this is {}", name.len());
        }
        let called = args.unit.as_deref().map(Called::Unit);
        let called = called.or(args.container.as_deref().map(Called::Container));
        let called = called.or(args.pod.as_deref().map(Called::Pod));
        let cgroup = match called {
            Some(called) => Some(called::find(&v2_mount()?, called, containers::look_up)?),
            None => args.cgroup.as_deref().map(resolve_cgroup).transpose()?,
        };
        let cgroup_id = cgroup.as_deref().map(cgroup_id).transpose()?;
        if let Some(dir) = cgroup.as_deref().filter(|dir| is_empty(dir)) {
            let name = dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.display().to_string());
            events.notes.push(format!("no process is in {name} now: what enters it is recorded"));
        }
        Ok(Self {
            filter,
            forced: Forced::parse(&args.force)?,
            stacks,
            symbols: !args.no_symbols,
            names_for: args.names_for,
            keep_stack_bytes: args.keep_stack_bytes,
            all: args.all,
            pids: args.pid,
            tree: args.tree,
            tids: args.tid,
            uid: args.uid.as_deref().map(resolve_user).transpose()?,
            comm,
            cgroup,
            cgroup_id,
            cpus: args.cpus.as_deref().map(|text| parse_cpus(text, possible_cpus())).transpose()?,
            families,
            selection,
            selection_text: args.events,
            tracepoints: events.tracepoints,
            probes,
            usdt,
            env: Arc::new(environ::EnvironKeys::parse(&args.env)?),
            labels: labels(args.label)?,
            notes: events.notes,
            inherit: !args.no_inherit,
            with_self: args.with_self,
            ring_bytes: args.ring.as_deref().map(ring_size).transpose()?,
            buffer: buffer_size(args.buffer, flight.as_ref().is_some_and(flight::FlightSettings::keeps_in_memory))?,
            delay: args.delay,
            string_limit: args.string_size,
            structs: args.structs,
            redact: args.redact,
            limit_time: args.limit_time,
            max_size: args.max_size,
            kill: args.kill,
            sync: args.sync,
            self_stats: args.self_stats,
            escalation,
            armed: args.armed,
            flush: args.flush.unwrap_or(flush).max(LEAST_FLUSH),
            command: args.command,
            output,
            flight,
            quiet: args.quiet > 0,
            metrics: args.metrics,
        })
    }

    /// What is read of the memory of calls in flight.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { selection: self.selection.clone(), string_limit: self.string_limit, structs: self.structs }
    }

    /// What of the command line may be meant differently.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = [self.selection.notes(), self.notes.clone()].concat();
        if !self.pids.is_empty() && !self.tree && self.inherit {
            notes.extend(kin::note(&self.pids, kin::descendants(&self.pids).len()));
        }
        // SAFETY: it has no arguments and cannot fail.
        let own = unsafe { libc::geteuid() };
        if let Some(uid) = self.uid.filter(|uid| *uid != own && !self.command.is_empty() && !self.all) {
            notes.push(format!(
                "-u: of the command only what runs as user {uid} is recorded; to run it as that user (strace -u): \
                 record -- setpriv --reuid {uid} COMMAND; all that the user does meanwhile (perf -u): -a"
            ));
        }
        notes
    }

    /// Removes a family and stacks of its events; samples count as a family here.
    pub(crate) fn leave_out(&mut self, family: Family) {
        self.families.leave_out(family);
        let rows = self.families.have_row_stacks();
        stacks::options::leave_out(&mut self.stacks, |of| match family {
            _ if of == StackOf::Row => !rows,
            Family::Sample => of == StackOf::Sample,
            family => stacks::options::family(of) == Some(family),
        });
    }

    /// Whether anything besides process life is recorded, which everything else depends on.
    pub(crate) fn records_more_than_life(&self) -> bool {
        self.families.list().iter().any(|family| *family != Family::Process)
            || self.stacks.on.contains(&StackOf::Sample)
    }

    /// Whether tasks are marked at the start and inherit the mark, instead of being checked at each call.
    pub(crate) fn marks_tasks(&self) -> bool {
        !self.all && (!self.pids.is_empty() || !self.tids.is_empty() || !self.command.is_empty())
    }

    /// The processes of -p and -t; None: tasks are not marked, or all are recorded.
    pub(crate) fn marked_processes(&self) -> Option<Vec<u32>> {
        let of_threads = || self.tids.iter().filter_map(|tid| system::process_of(*tid));
        self.marks_tasks().then(|| self.pids.iter().copied().chain(of_threads()).collect())
    }

    /// Whether only some tasks are recorded.
    pub(crate) fn filters_tasks(&self) -> bool {
        self.marks_tasks() || self.uid.is_some() || self.comm.is_some() || self.cgroup.is_some()
    }

    /// The target in words, for the tape and for messages.
    pub(crate) fn target_text(&self) -> String {
        let mut parts = Vec::new();
        if !self.command.is_empty() {
            let words: Vec<_> = self.command.iter().map(|w| w.to_string_lossy()).collect();
            let during = if self.all { "system-wide during" } else { "command" };
            parts.push(format!("{during} {}", words.join(" ")));
        }
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        if !self.pids.is_empty() {
            parts.push(format!("pid {}", list(&self.pids)));
        }
        if !self.tids.is_empty() {
            parts.push(format!("tid {}", list(&self.tids)));
        }
        if let Some(uid) = self.uid {
            parts.push(format!("uid {uid}"));
        }
        if let Some(comm) = &self.comm {
            parts.push(format!("comm {}", String::from_utf8_lossy(comm)));
        }
        if let Some(cgroup) = &self.cgroup {
            parts.push(format!("cgroup {}", cgroup.display()));
        }
        if parts.is_empty() { "system-wide".into() } else { parts.join(", ") }
    }
}

/// Refuses what --sample does not have: it records no events but those of process life and signals.
fn refuse_with_looks(args: &Args) -> Result<()> {
    let events = [
        (!args.events.is_empty(), "-e"),
        (!args.families.is_empty(), "--families"),
        (
            !args.uprobe.is_empty() || !args.probe.is_empty() || !args.kprobe.is_empty() || !args.usdt.is_empty(),
            "a probe",
        ),
    ];
    if let Some((_, name)) = events.into_iter().find(|(given, _)| *given) {
        bail!("--sample looks at threads instead of recording events, so it takes no {name}: leave one of them out");
    }
    if args.cpus.is_some() {
        bail!("--sample takes no -C: a thread that waits is on no CPU");
    }
    if args.frequency.is_some() {
        bail!("--sample says how often CPUs are sampled, too: leave -F out, or write --sample=HZ");
    }
    Ok(())
}

/// When looks are followed by full recordings, and the options of these.
fn escalation_settings(args: &Args) -> Result<Option<EscalationSettings>> {
    let Some((length, percent)) = args.escalate else {
        if !args.escalate_on.is_empty() {
            bail!("--escalate-on says when everything is recorded: --escalate TIME says for how long");
        }
        return Ok(None);
    };
    if args.sample.is_none() {
        bail!("--escalate goes from looks to a full recording: it needs --sample");
    }
    if !args.command.is_empty() {
        bail!("--escalate is for what runs for long: take -a, -p or another target instead of a command");
    }
    if args.last.is_some() || args.output.as_deref().is_some_and(output::is_stdout) {
        bail!("--escalate writes tapes beside that of -o, which is a file then");
    }
    let asked: Vec<&str> = args.escalate_on.iter().map(String::as_str).collect();
    let asked = if asked.is_empty() { escalation::USUAL.to_vec() } else { asked };
    let conditions = asked.into_iter().map(escalation::parse).collect::<Result<_, _>>();
    let conditions = conditions.map_err(|why| anyhow::anyhow!("--escalate-on: {why}"))?;
    let mut options: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: &dyn std::fmt::Display| options.push(format!("--{name}={value}").into());
    args.pid.iter().for_each(|pid| option("pid", pid));
    args.tid.iter().for_each(|tid| option("tid", tid));
    option("string-size", &args.string_size);
    args.redact.iter().for_each(|level| option("redact", &level.name()));
    let texts = [(&args.uid, "--uid"), (&args.unit, "--unit"), (&args.container, "--container"), (&args.pod, "--pod")];
    for (text, name) in texts {
        text.iter().for_each(|text| options.extend([name.into(), text.into()]));
    }
    args.comm.iter().for_each(|comm| options.extend(["--comm".into(), comm.clone()]));
    args.cgroup.iter().for_each(|cgroup| options.extend(["--cgroup".into(), cgroup.into()]));
    for (is, name) in [(args.all, "--all"), (args.tree, "--tree"), (args.no_inherit, "--no-inherit")] {
        options.extend(is.then(|| name.into()));
    }
    Ok(Some(EscalationSettings { length, percent, conditions, options }))
}

/// Size of a ring: a bare number is pages, as perf's -m; rounded up to a power of two.
fn ring_size(text: &str) -> Result<u32> {
    let bytes = match text.parse::<u64>() {
        Ok(pages) => pages.saturating_mul(page_size()),
        Err(_) => systape_cli::size(text).map_err(|e| anyhow::anyhow!("-m: {e}"))?,
    };
    if bytes == 0 || bytes > MAX_RING {
        bail!("-m {text}: a ring has between one page and 1 GiB");
    }
    Ok(bytes.next_power_of_two().max(page_size()) as u32)
}

/// Memory for waiting data.
fn buffer_size(asked: Option<u64>, keeps_in_memory: bool) -> Result<u64> {
    let all = || limits::memory(cgroups::v2_mount().as_deref());
    let most = if keeps_in_memory { FLIGHT_BUFFER } else { BUFFER };
    let size = asked.unwrap_or_else(|| all().map_or(most, |all| most.min(all / 4)).max(LEAST_BUFFER));
    if size < LEAST_BUFFER {
        bail!("--buffer: it takes at least {} MiB", LEAST_BUFFER >> 20);
    }
    Ok(size)
}

/// Labels as typed, a key once.
fn labels(words: Vec<String>) -> Result<Vec<String>> {
    const MOST: usize = 64;
    const MOST_BYTES: usize = 1024;
    let mut keys = HashSet::new();
    for word in &words {
        match word.split_once('=') {
            Some((key, _)) if !key.is_empty() && word.len() <= MOST_BYTES => {
                if !keys.insert(key) {
                    bail!("--label {word}: there is a label {key} already");
                }
            }
            Some((key, _)) if !key.is_empty() => bail!("--label {key}: a label takes {MOST_BYTES} bytes"),
            _ => bail!("--label {word}: write it as KEY=VALUE, such as host=web3"),
        }
    }
    if words.len() > MOST {
        bail!("--label: {} labels; a tape takes {MOST}", words.len());
    }
    Ok(words)
}

fn resolve_user(text: &str) -> Result<u32> {
    if let Ok(uid) = text.parse() {
        return Ok(uid);
    }
    // it may lie on a server that does not answer
    let users = Asked::new("users", system::users).get(Instant::now() + USERS_PATIENCE);
    users
        .context("-u: /etc/passwd cannot be read in time; give the number")?
        .into_iter()
        .find(|(_, name)| name == text.as_bytes())
        .map(|(uid, _)| uid)
        .with_context(|| format!("-u {text}: there is no such user in /etc/passwd; give the number"))
}

fn v2_mount() -> Result<PathBuf> {
    cgroups::v2_mount()
        .context("a cgroup cannot be chosen: no cgroup v2 hierarchy is mounted (mount -t cgroup2 none /sys/fs/cgroup)")
}

/// The first of `names`, which users may have made: many, and long.
fn some_of(mut names: Vec<String>) -> String {
    const MOST: usize = 20;
    const LONGEST: usize = 60;
    if names.is_empty() {
        return "there are none".into();
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST);
    let short = |name: &String| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    let shown: Vec<String> = names.iter().take(MOST).map(short).collect();
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("there are: {}{more}", shown.join(", "))
}

fn resolve_cgroup(path: &Path) -> Result<PathBuf> {
    let mount = v2_mount()?;
    let under = mount.join(path.strip_prefix("/").unwrap_or(path));
    for candidate in [path.to_path_buf(), under.clone()] {
        if candidate.join("cgroup.procs").exists() && candidate.starts_with(&mount) {
            return Ok(candidate);
        }
    }
    let siblings = fs::read_dir(under.parent().unwrap_or(&mount)).or_else(|_| fs::read_dir(&mount));
    let names = siblings.map(|dir| {
        let dirs = dir.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    });
    let known = some_of(names.unwrap_or_default());
    bail!("-G {}: no such cgroup below {}; {known}", path.display(), mount.display())
}

/// The kernel's id of a cgroup: its directory's inode number (fs/kernfs/mount.c, kernfs_ino).
fn cgroup_id(dir: &Path) -> Result<u64> {
    let meta = fs::metadata(dir).with_context(|| format!("-G: cannot look at {}", dir.display()))?;
    Ok(meta.ino())
}

/// Whether no process is in the cgroup or below it (Documentation/admin-guide/cgroup-v2.rst, cgroup.events); false: not known, as with v1.
fn is_empty(dir: &Path) -> bool {
    fs::read_to_string(dir.join("cgroup.events")).is_ok_and(|text| text.lines().any(|line| line == "populated 0"))
}

/// Number of possible CPUs, if the kernel reports it.
fn possible_cpus() -> u32 {
    libbpf_rs::num_possible_cpus().map_or(systape_bpf::MAX_CPUS, |n| n as u32)
}

fn parse_cpus(text: &str, possible: u32) -> Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let parse = |s: &str| {
            s.trim().parse::<u32>().map_err(|_| {
                anyhow::anyhow!(
                    "-C {text}: '{s}' is not a CPU number; the listing and its sums are 'analyze -S' (strace -C)"
                )
            })
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first > last || last >= possible.min(systape_bpf::MAX_CPUS) {
            bail!("-C {text}: '{part}': this machine has CPUs 0 to {}", possible - 1);
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Finds the command like execvp, so that a command that cannot run is refused before anything is attached.
pub(crate) fn find_command(words: &[OsString]) -> Result<FoundCommand, CommandError> {
    let name = &words[0];
    let fail = |status, what: &str| Err(CommandError { status, message: format!("{}: {what}", name.display()) });
    let c_string = |s: &OsStr| CString::new(s.as_bytes()).ok();
    let Some(argv) = words.iter().map(|w| c_string(w)).collect::<Option<Vec<_>>>() else {
        return fail(127, "an argument holds a NUL byte");
    };
    let mut denied = false;
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        std::env::split_paths(&path).map(|dir| dir.join(name)).collect()
    };
    for file in candidates {
        let Ok(meta) = fs::metadata(&file) else { continue };
        if meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            return match c_string(file.as_os_str()) {
                Some(path) => Ok(FoundCommand { path, argv }),
                None => fail(127, "its path holds a NUL byte"),
            };
        }
        denied = true;
    }
    let found = "found, but not an executable file";
    match habits::no_command(&name.to_string_lossy()) {
        _ if denied => fail(126, found),
        Some(text) => fail(127, &format!("command not found; {text}")),
        None => fail(127, "command not found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cgroups_are_told_in_bounds() {
        assert_eq!(some_of(Vec::new()), "there are none");
        assert_eq!(some_of(vec!["b".into(), "a".into()]), "there are: a, b");
        let long = some_of(vec!["\u{20ac}".repeat(4000)]);
        assert_eq!(long.chars().count(), "there are: ...".len() + 60);
        let many = some_of((0..5000).map(|at| format!("{at:04}")).collect());
        assert!(many.ends_with("0019, and 4980 more"), "{many}");
    }

    #[test]
    fn ring_sizes() {
        assert_eq!(ring_size("64k").unwrap(), 65536);
        assert_eq!(u64::from(ring_size("16").unwrap()), 16 * page_size());
        assert_eq!(ring_size("5M").unwrap(), 8 << 20);
        assert!(ring_size("0").is_err());
        assert!(ring_size("4G").is_err());
        assert!(ring_size("x").is_err());
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpus("0,2-4", 8).unwrap(), [0, 2, 3, 4]);
        assert!(parse_cpus("4-2", 8).is_err());
        assert!(parse_cpus("a", 8).is_err());
        assert!(parse_cpus("0-8", 8).is_err());
    }

    #[test]
    fn commands_are_found_or_say_why_not() {
        let words = |w: &str| vec![OsString::from(w)];
        assert!(find_command(&words("sh")).is_ok());
        assert_eq!(find_command(&words("no-such-command-here")).unwrap_err().status, 127);
        assert_eq!(find_command(&words("/etc/passwd")).unwrap_err().status, 126);
    }
}

//! What was typed on `record`'s command line; [`crate::config`] says what it means.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{ArgAction, ArgGroup, Parser, ValueHint};
use systape_abi::Structs;
use systape_cli::Generate;
use systape_format::redact::Level;

use crate::tape::sync::Policy;

const EXAMPLES: &str = "\
Examples:
  record -- make -j2              run a command, record it and its children
  record -p 4711 --for 10s        a running process, for ten seconds
  record -a -e file,'!close'      file syscalls of the whole machine, until Ctrl-C
  record -a --families sched,block --for 5s
  record --call-graph dwarf -F 99 -- ./program
  record -o slow.tape -G /system.slice/nginx.service --max-size 1G
  record --last 30s --dir /var/lib/systape --on kill --on 'slow:fsync>500ms'

Then: analyze [FILE]   (see analyze --help)

A tape carries paths, program arguments and host names (--redact leaves them out). It is made readable for its owner only.";

/// When one tape of a rotation ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// A tape ends after this time.
    Time(Duration),
    /// A tape ends at this size.
    Size(u64),
}

/// Records what a command, processes or the whole machine do (syscalls, scheduling, block I/O, signals, connections) into a tape.
#[derive(Parser, Debug)]
#[command(name = "record", version = systape_cli::version(), after_help = EXAMPLES, max_term_width = 100)]
#[command(group(ArgGroup::new("target").multiple(true).args(["pid", "tid", "uid", "comm", "cgroup", "unit", "container", "pod", "all"])))]
pub struct Args {
    /// Tape to write; an existing file is renamed to FILE.old [default: trace.tape; with --last or --rotate none]
    ///
    /// `-o -` is standard output: a pipe, a socket or a file. A tape has mode 0600. Directories, devices, links and tapes that another
    /// record writes are refused.
    #[arg(short, long, value_name = "FILE", value_parser = OsStringValueParser::new().try_map(parse_output), value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Record these processes: all their threads, and children from now on
    ///
    /// Several kinds of targets may be combined: an event must match all of them. A command goes with neither -p nor -t. The recording
    /// ends with the last of these processes.
    #[arg(short, long, alias = "attach", value_name = "PID", value_delimiter = ',', value_parser = parse_number)]
    pub pid: Vec<u32>,

    /// With -p: also the children that run already, and theirs
    ///
    /// Up to 4,000. Without it record says how many running children are left out: a server that forked its workers before is only its
    /// parent.
    #[arg(long, requires = "pid", conflicts_with = "no_inherit")]
    pub tree: bool,

    /// Record these threads, and children from now on
    #[arg(short, long, value_name = "TID", value_delimiter = ',', value_parser = parse_thread)]
    pub tid: Vec<u32>,

    /// Record threads whose real user is this one, by number or name
    ///
    /// -u, --comm, -G and -C are checked at every event: a thread that changes its user, name or cgroup becomes a target or ceases to
    /// be one. Reports leave out the rest of its time.
    #[arg(short, long, alias = "user", value_name = "USER")]
    pub uid: Option<String>,

    /// Record threads of this name (as ps -o comm shows it, up to 15 bytes)
    #[arg(long, value_name = "NAME", value_parser = OsStringValueParser::new().try_map(parse_comm))]
    pub comm: Option<OsString>,

    /// Record a cgroup (v2) and those below it: path under its mount point, or an absolute path
    #[arg(short = 'G', long, value_name = "CGROUP")]
    pub cgroup: Option<PathBuf>,

    /// Record a unit of systemd and those below it: nginx or nginx.service (cgroup v2)
    ///
    /// Found once, at the start, by the names of cgroups. Of several that fit the paths are printed, for -G.
    #[arg(long, value_name = "NAME", conflicts_with = "cgroup")]
    pub unit: Option<String>,

    /// Record a container, by its name (containerd, CRI-O, Podman, Docker) or the beginning of its id (cgroup v2)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cgroup", "unit"])]
    pub container: Option<String>,

    /// Record the containers of a pod: NAME, NAMESPACE/NAME or the beginning of its uid (cgroup v2)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cgroup", "unit", "container"])]
    pub pod: Option<String>,

    /// Record the whole system (the default without a target); with a command, as long as it runs
    #[arg(short, long, alias = "all-cpus")]
    pub all: bool,

    /// Only these CPUs, e.g. 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub cpus: Option<String>,

    /// What to record, by family; see [`crate::kernel::families::HELP`].
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = crate::kernel::families::HELP, long_help = crate::kernel::families::HELP)]
    pub families: Vec<String>,

    /// Syscalls to record: names, globs, groups (file network process ...), !name for all but it; and tracepoints: writeback:*, CATEGORY:NAME/FILTER/
    ///
    /// Several add up, in any order: selected is what any term selects (everything, if all begin with !) without what a ! term names. A
    /// name that libc maps to another call selects that too, with a note; =stat is exact. Calls that change descriptors, directory or
    /// user are recorded whatever -e says; analyze hides them. With tracepoints alone no calls are recorded: -e all,writeback:* does
    /// both. A FILTER has fields with == != < <= > >= &, texts in quotes with == != ~, and && || ! ( ).
    #[arg(
        short = 'e',
        long = "event",
        alias = "expr",
        alias = "trace",
        value_name = "EXPR",
        allow_hyphen_values = true
    )]
    pub events: Vec<String>,

    /// Calls of a function in a file, or in a library by name: 'libc.so.6:getaddrinfo(host=string)->int'
    /// [types: int uint long ulong hex ptr bool string void; without '->' only entries]
    ///
    /// FILE is a path, a program in PATH, or a library's name as processes have it mapped, also in containers. Up to six arguments;
    /// *TYPE reads a number where an argument points to, when the call returns. Not for Go, 32-bit files and functions chosen at run
    /// time. Linux 5.15.
    #[arg(long, value_name = "FILE:FUNCTION")]
    pub uprobe: Vec<String>,

    /// Calls of a known set of functions: dns (getaddrinfo, gethostbyname) or tls (sizes of SSL_read, SSL_write, gnutls ...)
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    pub probe: Vec<String>,

    /// Calls of a function of the kernel, by name or pattern: 'do_unlinkat(dir=int)->int', 'vfs_unlink', 'ext4_sync_*->int'
    /// [types: as --uprobe; string: in the kernel's memory, ustring: in the process's]
    ///
    /// Names are those of /proc/kallsyms; inlined functions have no place of their own. Refused are functions that record itself runs
    /// under a lock. The kernel follows the returns of ten calls at once, or two a CPU. Linux 5.15.
    #[arg(long, value_name = "FUNCTION")]
    pub kprobe: Vec<String>,

    /// Static probes (USDT) of a program or library, with globs: 'python3:python:function__*', './program:*:*', 'FILE:PROVIDER:NAME(a=int,path=string)'
    ///
    /// readelf -n FILE lists them. Up to twelve arguments are read; those in floating-point registers are unknown. Up to 512 places.
    /// Linux 5.15.
    #[arg(long, value_name = "FILE:PROVIDER:NAME")]
    pub usdt: Vec<String>,

    /// Keep these environment variables of each process, as its program was started with them: JOB_ID,USER
    ///
    /// Up to 16 names, values of up to 256 bytes, in the first 128 KiB of an environment. Others are unknown. They are keys of sums:
    /// analyze top --by env.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub env: Vec<String>,

    /// Label the tape, e.g. host=web3; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,

    /// Store only calls that take longer than this (milliseconds, or with a unit); all others are counted, so sums stay exact
    ///
    /// Counted calls are added up by process, call, user, error and CPU. A call that is open at the end is stored if it has been open
    /// for long enough. Other families are recorded as ever.
    #[arg(long, value_name = "MS", value_parser = parse_delay, help_heading = "Counting instead of storing")]
    pub duration: Option<Duration>,

    /// The same per call, e.g. read=5ms,fsync=20ms; without --duration all others are only counted
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Counting instead of storing")]
    pub slow: Vec<String>,

    /// Store only calls that fail; the others are counted
    #[arg(long, alias = "failed", alias = "failed-only", help_heading = "Counting instead of storing")]
    pub failure: bool,

    /// Store only calls that fail with one of these errors, e.g. ENOENT,EACCES; !EAGAIN,!ENOENT: with any other
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Counting instead of storing")]
    pub errno: Vec<String>,

    /// Store a call that matches any of --duration, --slow, --failure and --errno, not only one that matches all
    #[arg(long, help_heading = "Counting instead of storing")]
    pub any: bool,

    /// For tests: see systape_recorder::own::forced
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide = true)]
    pub force: Vec<String>,

    /// Stacks by frame pointers: the same as --call-graph fp
    #[arg(short = 'g', help_heading = "Stacks")]
    pub frame_pointers: bool,

    /// Stacks of user code: fp (frame pointers), or dwarf[,SIZE] (any code; copies up to SIZE of the stack) [default size: 63k]
    ///
    /// dwarf: a larger stack ends early and is marked `cut`; SIZE up to 256k; x86-64 only. fp is complete only where all code has frame
    /// pointers. Only calls selected by -e get stacks.
    #[arg(long, value_name = "MODE", help_heading = "Stacks")]
    pub call_graph: Option<String>,

    /// Take the kernel's part of stacks too
    #[arg(long, help_heading = "Stacks")]
    pub kernel_stacks: bool,

    /// Take stacks of these events: syscall switch wakeup block signal sample asleep, or all [default: all but wakeup]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Stacks")]
    pub stacks_on: Vec<String>,

    /// Take stacks only of calls that take at least this long (milliseconds, or with a unit)
    #[arg(long, value_name = "MS", value_parser = parse_delay, help_heading = "Stacks")]
    pub stacks_min: Option<Duration>,

    /// Sample each CPU HZ times a second, with stacks
    ///
    /// The event is cpu-clock, which needs no hardware counters.
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = parse_frequency, help_heading = "Stacks")]
    pub frequency: Option<u32>,

    /// Look at all threads HZ times a second instead of recording events: what each waits for, and what runs. For recordings that are
    /// always on: no system call gets slower, and record takes at most some 1 % of a CPU (analyze stays)
    ///
    /// Noted are threads in D, in calls that are not known to wait for work, and those that wait for a CPU: with call, file, lock and
    /// functions of the kernel. Looks become rarer when they would cost more than 1 % of one CPU. A look has room for 256 threads. It
    /// takes no -e, --families and probes. Linux 6.7.
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "20", value_parser = parse_looks)]
    pub sample: Option<u32>,

    /// With --sample: when something is wrong (--escalate-on), record everything for TIME, at most PERCENT of all time [default: 2%], into a
    /// tape of its own beside the one of -o (NAME.full-1.tape)
    ///
    /// The programs are loaded in advance, in a second process with rings of 4 MiB a CPU. While one full recording goes, no other
    /// begins.
    #[arg(long, value_name = "TIME[,PERCENT]", value_parser = parse_escalation)]
    pub escalate: Option<(Duration, u32)>,

    /// What is wrong: stuck>TIME (a call in flight), d>TIME, stopped>TIME, runq>TIME, throttled>N%, crowd>N (threads in one call on one
    /// file or lock), psi:cpu|memory|io>N%/TIME [default: stuck>1s d>1s stopped>1s throttled>70% crowd>50]
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub escalate_on: Vec<String>,

    /// Load everything, and begin when standard input says so: the full recordings of --escalate
    #[arg(long, hide = true)]
    pub armed: bool,

    /// Do not look up names of functions (analyze --debug-dir can do it later)
    #[arg(long, help_heading = "Stacks")]
    pub no_symbols: bool,

    /// Look names of functions up for at most this long after the recording, and a file that gives no answer for a third of it; the rest has no names (analyze --debug-dir can do it later)
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_time, help_heading = "Stacks")]
    pub names_for: Duration,

    /// For debugging: keep the copied stacks in FILE.stacks
    #[arg(long, hide = true)]
    pub keep_stack_bytes: bool,

    /// Do not follow new processes; new threads are followed
    #[arg(long)]
    pub no_inherit: bool,

    /// Record the recorder's own threads too: scheduling, samples, signals, never its calls
    #[arg(long)]
    pub with_self: bool,

    /// Size of each ring for syscalls: a bare number is pages, or with a suffix bytes (64k, 8M)
    ///
    /// Default: 16 MiB for each CPU, together at most 256 MiB. Buffers for calls without strings add a quarter, those for switches a
    /// twelfth. What finds no room is counted.
    #[arg(short = 'm', long = "mmap-pages", value_name = "SIZE")]
    pub ring: Option<String>,

    /// Memory for events that wait while the disk stalls; as it fills, fast calls are counted first [default: 256M, with --last 32M, or a
    /// quarter of the machine's or cgroup's memory]
    #[arg(long, value_name = "SIZE", value_parser = systape_cli::size)]
    pub buffer: Option<u64>,

    /// Wait this long before recording starts: milliseconds, or with a unit
    #[arg(short = 'D', long, value_name = "MS", value_parser = parse_delay)]
    pub delay: Option<Duration>,

    /// Keep at most this many bytes of each path or string
    ///
    /// A string that was cut is marked.
    #[arg(short = 's', long, alias = "string-limit", value_name = "BYTES", default_value_t = 4096, value_parser = parse_string_size)]
    pub string_size: u32,

    /// Keep structures of arguments: waits (poll, epoll, timeouts, statuses and other rare ones), all (also epoll_ctl, signal masks), none
    ///
    /// Of an array 32 elements are kept, of an fd_set 1024 descriptors. A copy costs 0.4 us a call.
    #[arg(long, value_name = "WHICH", default_value = "waits", value_parser = parse_structs)]
    pub structs: Structs,

    /// Leave out of the tape: paths; strings (paths, captured strings, command lines); all (also names of threads and users, addresses, the host)
    ///
    /// What is left out never reaches the file. Numbers, times, names of functions and build ids stay.
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub redact: Option<Level>,

    /// End the recording after this long, e.g. 30s, 5m
    ///
    /// A recording ends when its command ends, with the last of the -p and -t targets, at --for or --max-size, or at SIGINT, SIGTERM or
    /// SIGHUP. The tape is complete in each case.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub limit_time: Option<Duration>,

    /// End the recording when the tape has this size, e.g. 1G
    ///
    /// Checked 20 times a second; a tape grows by whole segments, so it ends somewhat larger.
    #[arg(long, value_name = "SIZE", value_parser = systape_cli::size)]
    pub max_size: Option<u64>,

    /// End the command too when the recording ends: SIGTERM, 5 s later SIGKILL
    ///
    /// Without it the command goes on unrecorded, and record waits for it.
    #[arg(long)]
    pub kill: bool,

    /// Write what was recorded at least this often; kill -9 costs about as much [default: 1s, with --sample 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub flush: Option<Duration>,

    /// Keep the last TIME in memory and write nothing until a trigger or a request (SIGUSR2, record trigger); -o writes everything beside it
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Flight recorder")]
    pub last: Option<Duration>,

    /// Memory for it, the stricter of both holds [default: 256M]
    ///
    /// Alone: as much as fits. A tape has up to two steps (an eighth of --last each) more.
    #[arg(long = "ring", value_name = "SIZE", value_parser = systape_cli::size, help_heading = "Flight recorder")]
    pub ring_size: Option<u64>,

    /// Directory of its tapes [default: .]
    ///
    /// A missing one is made, mode 0700. One in which others could exchange tapes is refused. Its socket record.sock answers record
    /// status and record trigger.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Flight recorder")]
    pub dir: Option<PathBuf>,

    /// Write a tape when this happens; may be given several times: kill, signal:SEGV,ABRT, oom, slow:CALLS>TIME, stuck:CALLS>TIME, errno:CALLS=ERRNO>N/s, io>TIME, io-error, runq>TIME, exec:GLOB, exit:GLOB!=0, file:PATH, psi:io>20%/2s, lost>N/s; most take :COMM (io: :DISK) behind
    ///
    /// kill: a process dies of a signal. slow: such a call took longer, also one that is only counted. stuck: such a call has not
    /// returned; waits for work do not count. runq: a runnable thread waits longer. exit: not with status 0. psi: cpu, memory or io,
    /// TIME from 500ms to 10s. CALLS is as in -e, COMM a pattern. Only recorded processes count.
    #[arg(long, value_name = "TRIGGER", help_heading = "Flight recorder")]
    pub on: Vec<String>,

    /// Go on with a tape for this long; what fires meanwhile joins it
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time, help_heading = "Flight recorder")]
    pub after: Duration,

    /// A trigger begins no second tape within this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time, help_heading = "Flight recorder")]
    pub cooldown: Duration,

    /// Keep at most this many tapes in the directory, the oldest go first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count, help_heading = "Flight recorder")]
    pub max_tapes: usize,

    /// Keep at most this much of them
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = systape_cli::size, help_heading = "Flight recorder")]
    pub disk: u64,

    /// Leave this part of the file system free
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse_percent, help_heading = "Flight recorder")]
    pub keep_free: f64,

    /// Write everything, into a new tape after each TIME or SIZE: 1h, 500M
    ///
    /// Each tape stands alone, each event is in one of them. A call in flight at the change is in both.
    #[arg(long, value_name = "TIME|SIZE", value_parser = parse_rotation, help_heading = "Flight recorder")]
    pub rotate: Option<Rotation>,

    /// Tapes of a rotation that are kept [default: 20]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Flight recorder")]
    pub keep: Option<usize>,

    /// Write the tape to the disk itself (fsync): at the end, every TIME, or no (when the kernel does)
    ///
    /// A power cut costs about TIME and --flush with TIME, else up to the whole recording.
    #[arg(long, value_name = "end|TIME|no", default_value = "end", value_parser = parse_sync)]
    pub sync: Policy,

    /// Print what the recording cost, by BPF program and thread (measuring makes programs slower)
    ///
    /// Takes CAP_SYS_ADMIN for the costs of programs.
    #[arg(long)]
    pub self_stats: bool,

    /// Keep numbers of the recording in FILE for Prometheus: events, losses by cause, rings, triggers (node_exporter reads DIR/*.prom)
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    /// Print a man page or shell completions: man, bash, zsh, fish
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    pub generate: Option<Generate>,

    /// As with strace: children are followed without it
    #[arg(short = 'f', action = ArgAction::Count, hide = true, long = "follow-forks", alias = "output-separately")]
    pub follow: u8,

    /// As with strace: descriptors' paths are recorded without it
    #[arg(short = 'y', hide = true, long = "decode-fds", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub paths: Vec<String>,

    /// Print no last line if nothing was lost
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,

    /// As with other tools: everything is said without it
    #[arg(short, long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub verbose: Vec<String>,

    /// The command to run and record: from the first word on that is no option, or behind --
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}

/// A process by its number.
fn parse_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| match text.split_whitespace().collect::<Vec<_>>().join(",") {
        // pidof has spaces between them
        several if several != text => format!("numbers are separated by commas: {several}"),
        _ => format!("'{text}' is no number; for names there is --comm NAME, and 'pgrep {text}' knows numbers"),
    })
}

/// A thread by its number.
fn parse_thread(text: &str) -> Result<u32, String> {
    const TIMES: &str = "times are always recorded ('analyze --clock wall' prints times of day)";
    parse_number(text).map_err(|why| match text.trim_start_matches('t') {
        "" => format!("{TIMES}; -t is for threads by number"),
        _ => format!("{why}; {TIMES}"),
    })
}

/// The tape; strace's `|command` and `!command` are none.
fn parse_output(word: OsString) -> Result<PathBuf, String> {
    match word.to_str().and_then(|text| text.strip_prefix(['|', '!'])) {
        Some(command) => Err(format!("a tape goes to a command through a pipe: record -o - ... | {}", command.trim())),
        None => Ok(word.into()),
    }
}

/// The name of a thread; those that analyze takes in its place stand for several.
fn parse_comm(word: OsString) -> Result<OsString, String> {
    let several = |text: &&str| text.starts_with('!') || text.contains(['*', '?', ',']);
    match word.to_str().filter(several) {
        Some(text) => {
            Err(format!("it takes one name as 'ps -o comm' shows it; record -a, then 'analyze --comm={text}'"))
        }
        None => Ok(word),
    }
}

/// Samples a second.
fn parse_frequency(text: &str) -> Result<u32, String> {
    let perf = match text {
        // perf trace -F all|min|maj
        "all" | "min" | "maj" => "; page faults are recorded with --families fault",
        _ => "",
    };
    text.parse().map_err(|_| format!("'{text}' is no number of samples a second; write 99{perf}"))
}

/// Looks a second.
fn parse_looks(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| {
        format!(
            "'{text}' is no number of looks a second, 1 to 1000; before a command write --sample --, or --sample=50"
        )
    })
}

/// How long everything is recorded, and most percent of the time.
fn parse_escalation(text: &str) -> Result<(Duration, u32), String> {
    let (time, percent) = text.split_once(',').map_or((text, None), |(time, percent)| (time, Some(percent)));
    let percent = percent.map_or(Some(2), |percent| percent.strip_suffix('%')?.parse().ok());
    let percent = percent.filter(|percent| (1..=100).contains(percent));
    let time = parse_time(time)?;
    if time < Duration::from_millis(100) {
        return Err("it records everything for 100ms at least".into());
    }
    Ok((time, percent.ok_or_else(|| format!("'{text}': write TIME, or TIME and 1% to 100%, such as 30s,2%"))?))
}

/// Bytes kept of a string.
fn parse_string_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size| (1..=4096).contains(size));
    size.ok_or_else(|| format!("'{text}' is no number from 1 to 4096 (bytes of each string); sums are 'analyze -s'"))
}

/// Which structures are kept.
fn parse_structs(text: &str) -> Result<Structs, String> {
    let names = || Structs::CHOICES.map(Structs::name).join(", ");
    Structs::CHOICES.into_iter().find(|choice| choice.name() == text).ok_or_else(|| format!("there are {}", names()))
}

/// A level of redaction.
pub(crate) fn parse_level(text: &str) -> Result<Level, String> {
    let names = || Level::ALL.map(Level::name).join(", ");
    Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| format!("there are {}", names()))
}

/// A length of time with a unit: `30s`, `1.5m`, `200ms`; a bare number is seconds.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    time_with_default(text, "s")
}

/// Parses a time as [`parse_time`] does, but a bare number is milliseconds, as perf's -D has it.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    time_with_default(text, "ms")
}

fn time_with_default(text: &str, bare: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| format!("'{text}' is not a time; write 30s, 200ms or 5m"))?;
    let scale = match if unit.is_empty() { bare } else { unit } {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("'{unit}' is not a unit of time; use us, ms, s, m, h or d")),
    };
    Duration::try_from_secs_f64(number * scale).map_err(|e| format!("'{text}': {e}"))
}

/// When to sync: `end`, `no`, or a time as in [`parse_time`].
pub(crate) fn parse_sync(text: &str) -> Result<Policy, String> {
    match text {
        "end" => Ok(Policy::End),
        "no" => Ok(Policy::No),
        // more often than segments are closed there is nothing new
        time => parse_time(time).map(|period| Policy::Every(period.max(Duration::from_millis(10)))),
    }
    .map_err(|e| format!("{e}; or end, or no"))
}

/// A number of tapes.
fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1_000_000).contains(count));
    count.ok_or_else(|| format!("'{text}' is no number of tapes from 1 on"))
}

/// A part of the whole in percent, as a fraction.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| (0.0..=99.0).contains(percent));
    number.map(|percent: f64| percent / 100.0).ok_or_else(|| format!("'{text}': write a percentage such as 5%"))
}

/// `1h`, or `1G`: a unit of time, or of size. `m` is minutes, `M` megabytes.
fn parse_rotation(text: &str) -> Result<Rotation, String> {
    let of_size = text.ends_with(['k', 'K', 'M', 'G', 'T', 'b', 'B']);
    match (of_size, parse_time(text)) {
        (false, Ok(time)) if time < Duration::from_secs(1) => Err(format!("'{text}': at least 1s")),
        (false, Ok(time)) => Ok(Rotation::Time(time)),
        (false, Err(why)) => Err(format!("{why}; or a size such as 1G")),
        (true, _) => match systape_cli::size(text)? {
            size if size < 1 << 20 => Err(format!("'{text}': at least 1M")),
            size => Ok(Rotation::Size(size)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_carry_units() {
        assert_eq!(parse_time("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_delay("200"), Ok(Duration::from_millis(200)));
        assert!(parse_time("5 fortnights").is_err());
        assert!(parse_time("").is_err());
        assert!(parse_time("1e30h").is_err());
        assert_eq!(parse_sync("no"), Ok(Policy::No));
        assert_eq!(parse_sync("2s"), Ok(Policy::Every(Duration::from_secs(2))));
        assert!(parse_sync("never").is_err_and(|e| e.contains("or end, or no")));
        assert_eq!(systape_cli::size("64k"), Ok(65536));
        assert_eq!(systape_cli::size("1GiB"), Ok(1 << 30));
        assert_eq!(systape_cli::size("17"), Ok(17));
        assert!(systape_cli::size("x").is_err());
        assert!(systape_cli::size("99999999999T").is_err());
    }

    #[test]
    fn tapes_are_counted_and_rotated() {
        assert_eq!(parse_rotation("1h"), Ok(Rotation::Time(Duration::from_secs(3600))));
        assert_eq!(parse_rotation("5m"), Ok(Rotation::Time(Duration::from_secs(300))));
        assert_eq!(parse_rotation("5M"), Ok(Rotation::Size(5 << 20)));
        assert!(["", "1k", "10ms", "x", "5MM"].into_iter().all(|text| parse_rotation(text).is_err()));
        assert_eq!((parse_percent("5%"), parse_percent("0")), (Ok(0.05), Ok(0.0)));
        assert!(parse_percent("100%").is_err() && parse_percent("NaN").is_err());
        assert_eq!(parse_count("3"), Ok(3));
        assert!(parse_count("0").is_err());
    }

    #[test]
    fn a_frequency_is_a_number() {
        assert_eq!(parse_frequency("99"), Ok(99));
        assert!(parse_frequency("all").is_err_and(|e| e.contains("--families fault")));
        assert!(parse_frequency("max").is_err_and(|e| e.contains("write 99") && !e.contains("fault")));
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}

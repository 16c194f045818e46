//! What fingers type that know strace, perf, the bcc tools or sysdig: words that mean the same here are rewritten, all others are
//! refused with what to type instead. One table for all of them; nothing of it knows a tape.

use std::ffi::OsString;

use crate::cli::views;

mod values;
mod walk;

pub(crate) use walk::settled;

/// What a word of a habit comes to.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Nothing: it is so without it.
    Always,
    /// These words.
    Type(&'static [&'static str]),
    /// This option, with the value that was given.
    Named(&'static str),
    /// The value that was given, behind all other files.
    Last,
    /// It is refused with this sentence.
    Say(&'static str),
}

/// Words of a habit.
#[derive(Debug)]
struct Habit {
    /// As typed, without a value.
    words: &'static [&'static str],
    /// The reports it is about, "" the listing; they come before an option of that name. Empty: all, where there is no such option.
    views: &'static [&'static str],
    does: Does,
}

const fn all(words: &'static [&'static str], does: Does) -> Habit {
    Habit { words, views: &[], does }
}

const fn of(views: &'static [&'static str], words: &'static [&'static str], does: Does) -> Habit {
    Habit { words, views, does }
}

use Does::{Always, Last, Named, Say, Type};

/// Calls are listed here.
const LISTS: &[&str] = &["", "with-summary"];

/// The first row that fits counts.
const HABITS: &[Habit] = &[
    // options of the tools whose columns a report has
    of(&["execsnoop"], &["-x"], Type(&["--fails"])),
    of(&["opensnoop", "statsnoop", "killsnoop", "syscount"], &["-x", "--failed", "--failures"], Type(&["--failure"])),
    of(&["opensnoop", "statsnoop", "execsnoop"], &["-n", "--name"], Named("--comm")),
    of(&["opensnoop", "statsnoop", "execsnoop", "tcplife"], &["--timestamp"], Type(&["--clock=start"])),
    of(&["biosnoop", "biolatency"], &["-Q", "--queue"], Type(&["--queued"])),
    of(&["biolatency"], &["-D"], Type(&["--disks"])),
    of(&["tcplife"], &["-w"], Type(&["--wide"])),
    of(&["syscount"], &["-L"], Type(&["--latency"])),
    of(&["syscount"], &["-P"], Type(&["--process"])),
    of(&["syscount"], &["-T"], Named("--top")),
    of(&["cpudist"], &["-P"], Type(&["--by=pid"])),
    of(&["cpudist"], &["-L"], Type(&["--by=tid"])),
    of(&["cpudist"], &["-O", "--offcpu"], Say("'analyze offcpu' has the times off the CPU")),
    of(&["killsnoop"], &["-s"], Named("--signal")),
    of(&["filetop"], &["-a"], Type(&["--all-files"])),
    of(&["filetop"], &["-s"], Named("--rank")),
    of(&["filetop"], &["-r", "--maxrows"], Named("--top")),
    of(&["filetop"], &["--noclear"], Always),
    // one word for what comes first, and one for a new file
    of(&["files", "filetop"], &["--sort"], Named("--rank")),
    of(&["locks"], &["--sort"], Named("--metric")),
    of(&["cut", "redact", "repair"], &["-o", "--output"], Last),
    of(&["offcputime"], &["-f"], Type(&["--folded"])),
    // what is always so
    of(&["export strace"], &["-f", "-ff", "-ttt", "-T", "--follow-forks", "--syscall-times"], Always),
    of(&["export strace"], &["-y", "-yy", "--decode-fds"], Type(&["--show-files"])),
    of(&["export strace"], &["-tt", "--absolute-timestamps"], Type(&["--clock=wall"])),
    of(&["callgraph"], &["-f"], Say("--folded prints one stack a line")),
    of(LISTS, &["-v", "--verbose", "--no-abbrev"], Always),
    of(&["callgraph"], &["-g", "--children"], Always),
    all(&["-f", "-ff", "--follow-forks", "--force", "--output-separately"], Always),
    of(LISTS, &["-yy", "--decode-fds"], Type(&["--show-cwd"])),
    of(LISTS, &["-y"], Type(&["-y"])),
    all(&["-y", "-yy", "-Y", "--decode-fds", "--decode-pids"], Always),
    all(&["-q", "-qq", "-qqq", "--quiet", "--silent", "--silence", "--stdio"], Always),
    all(&["--syscall-times", "--force-btf", "--inline", "--show-total-period"], Always),
    of(&["summary", "with-summary"], &["-w", "--summary-wall-clock"], Always),
    of(&["sched timehist"], &["-w", "--wakeups"], Say("wake-ups are listed by -e 'sched:sched_wakeup*'")),
    of(
        &["sched timehist"],
        &["-s", "--summary"],
        Say("--summary sums up calls; sums by task: 'analyze sched latency'"),
    ),
    of(
        &["sched timehist"],
        &["-S", "--with-summary"],
        Say("--summary sums up calls; sums by task: 'analyze sched latency'"),
    ),
    of(
        &["sched timehist"],
        &["-n", "-I", "-M", "-V", "--next", "--idle-hist", "--migrations", "--cpu-visual"],
        Say("-e 'sched:*' lists every switch, wake-up and move with all there is"),
    ),
    // other words for the same
    all(&["-c", "-cw", "-wc", "-cf", "-fc"], Type(&["--summary", "--summary-mode=total"])),
    all(&["--bpf-summary"], Type(&["--summary"])),
    all(&["-k", "-kk", "-g", "--stack-trace", "--stack-traces"], Type(&["--call-graph"])),
    all(&["-Z"], Type(&["--failure"])),
    all(&["--attach"], Named("--pid")),
    all(&["--user"], Named("--uid")),
    all(&["--comms", "--name"], Named("--comm")),
    all(&["--percent-limit"], Named("--min-percent")),
    all(&["--symfs"], Named("--debug-dir")),
    // how lines look
    all(
        &["-tt", "-ttt", "--absolute-timestamps", "--timestamps", "--timestamp"],
        Say(
            "--clock wall prints times of day (UTC), --clock mono CLOCK_MONOTONIC; --format json and csv have the date too",
        ),
    ),
    all(
        &["-r", "--relative-timestamps", "--deltatime"],
        Say(
            "times between calls are not printed; times are since the start of the recording, or by --clock wall or mono. A tape is named without an option, or with -i",
        ),
    ),
    all(&["--reltime"], Always),
    all(&["--ns"], Say("--format json and csv have times in ns")),
    all(
        &["-x", "-xx", "--strings-in-hex"],
        Say("--failure lists calls that fail (-x of bcc); strings that are no text are hex in --format json"),
    ),
    all(
        &["-X", "-N", "--const-print-style", "--arg-names", "--syscall-number"],
        Say("--show-prefix and --show-zeros say how arguments look; --format json has all of them"),
    ),
    all(&["-n"], Say("--comm=NAME chooses threads by name, --max-events N ends a listing")),
    all(&["--string-limit"], Say("strings are as long as they were recorded (record -s N)")),
    all(&["--color", "--stdio-color"], Say("colour is used on a terminal, unless NO_COLOR is set")),
    all(
        &["--fields", "-F"],
        Say(
            "--format json and csv have all fields; page faults are listed by -e 'fault:*', if record --families fault stored them",
        ),
    ),
    all(&["--json", "-j"], Type(&["--format=json"])),
    all(&["--csv"], Type(&["--format=csv"])),
    all(&["--log-file"], Say("the answer goes to standard output: analyze ... > FILE")),
    // which calls
    all(&["-z", "--successful-only"], Say("calls that succeed cannot be chosen; --failure lists those that fail")),
    all(&["--status"], Say("--failure lists calls that fail")),
    all(
        &["--errno", "--filter-errno"],
        Say("-s --errno-summary counts each errno; 'analyze -s --by errno,syscall' adds up by it"),
    ),
    all(&["--no-syscalls"], Say("other events alone are listed by -e: -e 'sched:*', -e 'fault:*'")),
    all(
        &["--pf", "--page-faults"],
        Say("page faults are listed by -e 'fault:*', if record --families fault stored them"),
    ),
    all(&["--filter"], Say("-p, -t, -u, --comm=NAME, -C, -G, --duration, --failure and --time choose calls")),
    all(
        &["--filter-pids", "--exclude-pid", "--exclude-perf"],
        Say("processes cannot be left out; -p, --comm=NAME and -u choose those to show"),
    ),
    all(&["--with-hits"], Say("'analyze info' shows what was recorded")),
    all(&["--cgroupmap", "--mntnsmap", "--cgroups"], Say("-G PATH chooses a cgroup and those below it")),
    all(&["--ppid"], Say("-p PID chooses processes; 'analyze exec --tree' shows who started what")),
    all(&["--switch-on", "--switch-off"], Say("--time FROM,TO chooses a part of the recording")),
    all(&["-L", "--syscall-limit", "--limit"], Say("--max-events N ends a listing")),
    all(&["-l", "--line", "--lines"], Say("--max-events N ends a listing")),
    // sums
    all(&["--summary-sort-by"], Named("--sort")),
    all(
        &["-U", "--summary-columns", "-O", "--summary-syscall-overhead"],
        Say("the summary has fixed columns; --format json and csv have more"),
    ),
    all(&["-w", "--summary-wall-clock"], Say("sums are of the time calls took: analyze -s")),
    all(&["--max-summary"], Say("the summary is printed whole: analyze -s | head")),
    all(
        &["--sched"],
        Say(
            "'analyze -s --cpu' splits the time of calls into on and off a CPU; 'analyze sched latency' has the run time of tasks",
        ),
    ),
    all(
        &["--hist", "-D", "--dist"],
        Say("'analyze top --hist', 'analyze runqlat' and 'analyze block --hist' print histograms"),
    ),
    // stacks
    all(
        &["-K", "--kernel-stacks", "--kernel-syscall-graph", "--user-stacks"],
        Say("--call-graph prints the parts that were recorded (record --kernel-stacks)"),
    ),
    all(
        &["--no-children", "--tui", "--gtk", "--dsos", "--percentage", "--show-nr-samples"],
        Say("'analyze callgraph --help' has the options of stacks"),
    ),
    all(&["--vmlinux", "--kallsyms", "--no-inline"], Say("names are in the tape; --debug-dir DIR finds better ones")),
    all(&["--flamegraph", "--flame-graph"], Say("'analyze callgraph --svg FILE' writes a flame graph")),
    // about the recording
    all(
        &["-a", "--all-cpus", "--system-wide"],
        Say("all that was recorded is shown; record -a records the whole machine"),
    ),
    all(
        &["-d", "--for", "--timeout", "--time-limit"],
        Say("--time FROM,TO chooses a part of the recording; --duration TIME chooses calls that took longer"),
    ),
    all(&["-m", "--milliseconds"], Say("times are in ms, --format json has ns; the ring's size is -m of record")),
    all(&["--mmap-pages", "--buffer-size"], Say("it is an option of record")),
    all(
        &[
            "-E",
            "--env",
            "-b",
            "--detach-on",
            "--interruptible",
            "--kill-on-exit",
            "--inject",
            "--fault",
            "--freq",
            "--families",
            "--no-inherit",
            "--max-size",
        ],
        Say("it is about recording: see 'record --help'"),
    ),
    all(
        &["--header", "--header-only", "--stats", "--show-info", "--dump-header"],
        Say("'analyze info' says what is in a tape"),
    ),
    all(&["--tasks", "--ps"], Say("'analyze exec --tree' shows processes")),
    all(
        &[
            "--tool_stats",
            "--map-dump",
            "--print-sample",
            "--libtraceevent_print",
            "--libtraceevent-print",
            "--proc-map-timeout",
        ],
        Say("perf alone has it"),
    ),
    all(&["-A", "-B", "-H", "-I", "-M", "-Q", "-R", "-W"], Say("'analyze --help' has the options there are")),
];

/// Columns by which strace sorts and the summary does not.
const NO_SORTS: &[&str] = &["name", "syscall", "nothing", "none", "min-time", "min_time", "shortest"];

/// Programs and words whose place is taken by a report: what to type.
const REPORTS: &systape_cli::Habits = &[
    (&["opens"], "analyze files --opens"),
    (&["execs", "exitsnoop"], "analyze exec"),
    (&["sigsnoop", "signals", "signal"], "analyze kills --all"),
    (&["oomkill", "killed", "who"], "analyze kills"),
    (&["bio", "disk", "io", "blktrace", "iosnoop"], "analyze block"),
    (&["biotop", "iotop", "topprocs_file"], "analyze block --top"),
    (&["bitesize"], "analyze block --sizes --by comm"),
    (&["topfiles_bytes", "topfiles_time", "filelife"], "analyze files"),
    (
        &["fileslower", "fsslower", "ext4slower", "xfsslower", "btrfsslower", "nfsslower", "zfsslower"],
        "analyze files --slower 10ms",
    ),
    (&["dbslower", "dbstat", "mysqld_qslower"], "analyze probes, of a tape made with record --usdt or --uprobe"),
    (&["topscalls", "topscalls_time", "stat", "stats", "count", "calls"], "analyze -s"),
    (&["funclatency", "funccount"], "analyze probes --hist"),
    (&["funcslower", "argdist"], "analyze -e 'uprobe:*'"),
    (&["errors", "errno", "topfiles_errors", "topprocs_errors"], "analyze --errno-summary"),
    (&["offwaketime"], "analyze callgraph --of offcpu"),
    (&["wakeuptime", "wakers"], "analyze offcpu --wakers PID"),
    (&["waits", "wait", "sleep", "sleeping"], "analyze offcpu"),
    (&["cpu", "threads", "thread", "cpudist"], "analyze states"),
    (&["deadlock", "deadlocks", "lockdep"], "analyze locks"),
    (&["mem", "memory", "memleak", "rss"], "analyze why --when"),
    (&["hist", "histogram", "funchist"], "analyze top --hist"),
    (&["timeline", "timechart", "view", "gui", "page", "html", "web"], "analyze report"),
    (&["perfetto", "chrome", "ftrace"], "analyze export perfetto -o FILE"),
    (&["pprof"], "analyze export pprof -o FILE"),
    (&["csv", "parquet"], "analyze export parquet -o DIR, or --format csv of any report"),
    (&["lsof", "fd", "descriptors", "openfiles"], "analyze fds"),
    (&["slow", "slowest", "slower"], "analyze why"),
    (&["profile", "flamegraph", "flame", "stacks", "stackcount", "annotate"], "analyze callgraph"),
    (&["runqlen", "runqslower", "latency", "topprocs_cpu"], "analyze sched latency"),
    (&["timehist"], "analyze sched timehist"),
    (&["tcpconnect", "tcpaccept", "tcptracer", "netstat", "ss", "topconns", "connections", "network"], "analyze net"),
    (&["tcpstates"], "analyze net --events"),
    (&["tcptop", "nettop", "iftop"], "analyze net --by comm"),
    (&["tcpretrans", "tcpdrop", "retransmits"], "analyze net"),
    (
        &["sslsniff", "ssl", "tls", "gethostlatency", "dns"],
        "analyze probes, of a tape made with record --probe tls or dns",
    ),
    (&["udplife", "udpconnect"], "analyze net --udp"),
    (&["lock", "futex", "futexes", "futexctn", "klockstat", "lockstat", "mutex"], "analyze locks"),
    (&["critical-path", "critical", "criticalpath", "blocked", "latency-breakdown", "wakeup-chain"], "analyze path"),
    (&["ps", "pstree", "tree", "processes", "tasks", "topprocs"], "analyze exec --tree"),
    (
        &["trace", "script", "show", "dump", "print", "cat", "read", "replay", "listing", "strace", "spy_users"],
        "analyze FILE",
    ),
    (&["ls", "tapes"], "analyze list DIR"),
    (&["header", "evlist", "buildid-list", "version"], "analyze info"),
    (&["verify", "fsck", "test"], "analyze check"),
    (&["archive", "inject", "cut"], "analyze repair IN OUT, analyze redact IN OUT"),
    (&["record"], "record -- COMMAND (a program of its own)"),
];

/// What to type for `word`, which is neither a report nor a file.
pub(crate) fn instead_of(word: &str) -> Option<String> {
    if let Some(text) = systape_cli::instead_of(REPORTS, word) {
        return Some(format!("type '{text}'"));
    }
    let fields = ["proc.", "evt.", "fd.", "thread.", "user.", "container.", "group.", "syscall."];
    if fields.iter().any(|field| word.starts_with(field)) {
        return Some("filters are options: --comm=NAME, -p PID, -u USER, -e CALL, --failure, --duration".to_owned());
    }
    let probes = ["tracepoint:", "kprobe:", "sched:", "block:", "syscalls:", "signal:", "raw_syscalls:"];
    probes.iter().any(|probe| word.starts_with(probe)).then(|| format!("events are named by -e: -e '{word}'"))
}

/// The name of the report that `words` choose, as far as that shows before they are read: the first of its names among them, or a
/// summary's letter.
pub(crate) fn view(words: &[OsString]) -> &'static str {
    let texts: Vec<&str> = words.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    if let Some((view, _)) = (0..texts.len()).find_map(|at| views::named(texts[at..].iter().copied())) {
        return view.name;
    }
    let short = |letter: char| {
        texts
            .iter()
            .any(|text| text.len() < 5 && text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    };
    let long = |name: &str| texts.contains(&name);
    if short('S') || long("--with-summary") {
        "with-summary"
    } else if short('s') || short('c') || long("--summary") || long("--errno-summary") || long("--summary-only") {
        "summary"
    } else {
        ""
    }
}

//! What fingers type that know strace, perf, the bcc tools or sysdig: words that mean the same here are rewritten, all others are
//! refused with what to type instead. One table for all of them; nothing of it knows a tape.

use std::ffi::OsString;

use crate::cli::views;

mod reports;
mod values;
mod walk;

pub(crate) use reports::{instead_of, meant};
pub(crate) use walk::settled;

/// What a word of a habit comes to.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Nothing: it is so without it.
    Always,
    /// Words to type instead.
    Type(&'static [&'static str]),
    /// This option, with the value that was given.
    Named(&'static str),
    /// The value that was given, behind all other files.
    Last,
    /// A sentence with which it is refused.
    Say(&'static str),
    /// A sentence with which it is refused, that of the first option among these that the report takes; "" is every report's.
    Ask(&'static [(&'static str, &'static str)]),
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

use Does::{Always, Ask, Last, Named, Say, Type};

/// Calls are listed here.
const LISTS: &[&str] = &["", "with-summary"];

/// How an answer is ended early.
const FEW: &[(&str, &str)] = &[
    ("callee", "--min-percent N leaves out what is small, --max-depth N cuts stacks"),
    ("top", "--top N prints N rows"),
    (
        "max_events",
        "--max-events N ends it after N lines; --comm=NAME chooses threads by name (-n of opensnoop), --format json has numbers of calls (-n of strace), 'analyze info' what was recorded (-l)",
    ),
    ("", "the answer is printed whole: | head -n N"),
];
/// How a part of the time is chosen.
const WHEN: &[(&str, &str)] = &[
    (
        "time",
        "--time FROM,TO chooses a part of the recording, in s since its start (--time FROM, all from there on, --time ,TO all until there; 90%, is its last tenth)",
    ),
    ("at", "--at TIME says of which instant, in s since the start of the recording"),
    ("", "'analyze cut IN OUT --time FROM,TO' copies a part of a tape"),
];
/// How long calls are chosen.
const LONG: &[(&str, &str)] = &[
    ("slower", "--slower TIME lists reads, writes and syncs that took longer"),
    ("duration", "--duration TIME chooses what took longer (10ms, 300us)"),
    ("", "'analyze --duration TIME' lists calls that took longer"),
];
/// How calls that fail are chosen.
const FAILED: &[(&str, &str)] = &[
    ("failure", "--failure chooses calls that failed; 'analyze --errno-summary' counts them by error"),
    ("fails", "--fails has those that fail"),
    ("", "'analyze --failure' lists calls that failed, 'analyze --errno-summary' counts them by error"),
];
/// How calls and events are chosen.
const CALLS: &[(&str, &str)] = &[
    ("events", "-e read,write chooses calls, -e '!read' leaves some out, -e 'sched:*' takes other events"),
    ("", "'analyze -e read,write' lists these calls, -e '!read' leaves some out"),
];
/// How threads and processes are chosen by name.
const NAMES: &[(&str, &str)] = &[
    ("comm", "--comm=NAME chooses threads by name, -p PID a process by its number"),
    ("pids", "-p PID chooses a process; 'analyze exec --comm=NAME' says its number"),
    ("", "'analyze --comm=NAME' lists calls of threads of that name"),
];
/// How a file is chosen.
const PATHS: &[(&str, &str)] = &[
    (
        "paths",
        "-P PATH chooses calls on a file, -P '/var/*' on all below a directory; a tape is named without an option",
    ),
    ("", "'analyze -P PATH' lists calls on a file, 'analyze files' has all files; a tape is named without an option"),
];

/// How other ends of connections are chosen.
const ENDS: &[(&str, &str)] = &[
    ("udp", "--by peer,port sums up by other end and port; | grep ADDRESS"),
    ("", "'analyze net --by peer,port' sums up by other end and port, 'analyze net' lists connections"),
];
/// In which order rows are.
const ORDER: &[(&str, &str)] = &[
    ("metric", "--metric says what comes first"),
    ("rank", "--rank COLUMN says what comes first"),
    ("summary_mode", "--sort calls, errors, total, avg or max says what comes first"),
    ("", "rows have an order of their own; --format csv | sort has another one"),
];
/// Into how many parts time is divided.
const PARTS: &[(&str, &str)] = &[
    ("slices", "--slices N says into how many parts the time is divided"),
    (
        "",
        "it is one answer of the whole tape: 'analyze rate --slices N' divides the time, 'analyze top --by second' sums up by it",
    ),
];
/// Operations on files and disks.
const OPERATIONS: &[(&str, &str)] = &[
    ("queued", "--top --by op sums up by operation; column T has it"),
    ("events", "-e 'read*,pread*' has reads, -e 'write*,pwrite*' writes"),
    ("", "'analyze files' has reads and writes by file, 'analyze block --top --by op' by operation"),
];
/// Fields by which no event can be chosen.
const FIELDS: &str =
    "it cannot be chosen by; --format json has all fields: 'analyze --format json | jq', or 'analyze sql'";

/// Of tools that print anew at each interval.
const ONE: &str = "it is one answer of the whole tape: --time FROM,TO chooses a part, 'analyze rate' has times";
/// Of perf report, whose name a page has.
const REPORT: &str =
    "'analyze report' writes a page for a browser; sums of stacks, as perf report has them: 'analyze callgraph'";

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
    all(&["--no-trunc", "--no-truncate", "--full"], Type(&["--wide"])),
    of(&["biolatency", "runqlat", "cpudist"], &["-T", "--timestamp"], Say(ONE)),
    of(&["biolatency"], &["-F", "--flags"], Say("'analyze block --hist --by op' has one for each operation")),
    of(
        &["biosnoop"],
        &["-d", "--disk"],
        Say("'analyze block --top --by disk' has each disk; --comm=NAME and -p PID choose rows"),
    ),
    of(&["runqlat"], &["-P", "--pids"], Type(&["--by=process"])),
    of(&["runqlat"], &["-L", "--tids"], Type(&["--by=task"])),
    of(&["runqlat"], &["--pidnss"], Say("--by container has one for each container, --by unit one for each cgroup")),
    of(&["execsnoop"], &["-l", "--line"], Say("--comm=NAME chooses by name; | grep TEXT by arguments")),
    of(&["execsnoop", "opensnoop"], &["-U", "--print-uid"], Say("--format json has users; -u USER chooses one")),
    of(
        &["opensnoop"],
        &["-f", "--flag_filter", "-F", "--full-path"],
        Say("paths are whole; 'analyze -e open' lists calls with their flags"),
    ),
    of(&["syscount"], &["-i", "--interval"], Say(ONE)),
    of(&["syscount"], &["--errno"], Say("--failure counts calls that failed, 'analyze --errno-summary' by error")),
    of(&["offcputime"], &["-d", "--delimited"], Always),
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
    of(
        &["report"],
        &[
            "--stdio",
            "--sort",
            "-s",
            "--no-children",
            "--children",
            "-g",
            "--call-graph",
            "-G",
            "--percent-limit",
            "-n",
            "--show-nr-samples",
            "--tui",
            "--gtk",
            "--dsos",
            "--comm",
            "--comms",
            "--symbol-filter",
            "-S",
            "-F",
            "--fields",
            "--header",
            "--max-stack",
            "-T",
            "--threads",
            "--percentage",
            "--hierarchy",
            "--group",
            "-D",
            "-U",
            "-H",
            "-w",
            "-M",
            "--mem-mode",
            "--stats",
            "--raw-trace",
            "--inline",
            "--cpu",
            "-C",
            "-e",
        ],
        Say(REPORT),
    ),
    of(
        &["callgraph"],
        &["-F", "--fields", "--no-demangle", "--hierarchy", "--max-stack", "-n"],
        Say("'analyze callgraph --help' has the options of stacks: --max-depth N, --min-percent N, --callee"),
    ),
    of(&["sched timehist"], &["--state"], Say("'analyze offcpu --by state' has what threads waited for")),
    of(
        &["sched timehist"],
        &["-g", "--call-graph", "--max-stack"],
        Say("'analyze -e sched:sched_switch --call-graph' lists switches with stacks"),
    ),
    of(
        &["sched latency"],
        &["-s", "--sort"],
        Say("the longest wait comes first; 'analyze sched latency --format csv | sort' has another order"),
    ),
    of(
        &["top"],
        &["--sort"],
        Say("--by KEY,... says what is added up, --metric total, calls, errors, avg, max or p99 what comes first"),
    ),
    of(&["redact"], &["--all"], Say("it is --level all")),
    of(
        &["redact"],
        &["--paths", "--strings", "--names", "--secrets", "--users", "--hosts", "--addresses"],
        Say("--level paths, strings or all says what is taken out"),
    ),
    of(
        &["redact", "cut", "repair"],
        &["--in-place", "--inplace", "--overwrite"],
        Say("a tape is not changed in place: name another file for the copy"),
    ),
    of(&["list"], &["-l", "-a", "-1", "-lh", "-la"], Always),
    of(&["biolatency", "biotop"], &["-d", "--disk"], Say("--disks prints one histogram for each disk")),
    of(&["block"], &["-d", "--disk", "--device", "--dev"], Say("--top --by disk sums up by disk")),
    of(&["filetop"], &["-d", "--directory"], Say("'analyze files -P \"/var/*\"' has files below a directory")),
    of(&["execsnoop"], &["-P", "--ppid"], Say("-p PID --tree has programs that are started below a process")),
    of(
        &["offcputime"],
        &["-m", "-M", "--min-block-time", "--max-block-time", "--min", "--max"],
        Say("'analyze offcpu --duration TIME' has waits that took longer"),
    ),
    of(
        &["offcputime", "callgraph"],
        &["-U", "--user-stacks-only"],
        Say("stacks have the parts that were recorded (record -g without --kernel-stacks: those of programs)"),
    ),
    of(&["callgraph"], &["--caller", "--callers"], Always),
    of(&["locks"], &["--contended", "--contention"], Always),
    of(&["tcplife"], &["-4", "-6", "--ipv4", "--ipv6"], Say("both are listed; | grep ADDRESS, --format csv | grep :")),
    of(
        &["tcplife"],
        &["-L", "-D", "--localport", "--remoteport"],
        Say("'analyze net --by peer,port' sums up by other end and port; | grep PORT"),
    ),
    of(&["top"], &["-H"], Type(&["--by=tid"])),
    of(&["states", "sched latency"], &["-H", "--threads"], Always),
    of(&["fds"], &["--open"], Always),
    of(&["report"], &["--open", "--browser", "--view"], Say("xdg-open FILE opens it in a browser")),
    of(&["path"], &["--exclude", "--ignore"], Named("--without")),
    of(
        &["callgraph"],
        &["--kernel", "--no-kernel", "--user"],
        Say("stacks have the parts that were recorded (record --kernel-stacks)"),
    ),
    of(&["offcputime"], &["-k", "-g"], Always),
    of(&["callgraph"], &["--inverted", "--invert", "--reverse", "--icicle", "--bottom-up"], Type(&["--callee"])),
    of(&["callgraph"], &["--fold", "--collapse", "--collapsed", "--stackcollapse"], Type(&["--folded"])),
    of(
        &["offcpu", "locks", "states"],
        &["--stacks", "--stack", "-k", "-g"],
        Say("'analyze callgraph --of offcpu' adds up the stacks with which threads left the CPU"),
    ),
    of(
        &["states", "offcpu"],
        &["--state", "--states", "--running", "--blocked", "--sleeping", "--stuck", "-D"],
        Say("--by state,comm sums up by state; | grep STATE"),
    ),
    of(&["offcpu"], &["--waker"], Named("--wakers")),
    of(
        &["kills"],
        &["--sender", "--target", "--receiver", "--killer"],
        Say("--comm=NAME has signals to and from threads of that name; | grep NAME"),
    ),
    of(&["kills"], &["--sig"], Named("--signal")),
    of(&["export perfetto", "export pprof"], &["--out", "-O"], Named("--output")),
    of(
        &["offcpu", "states", "top", "locks"],
        &["--all", "--no-idle"],
        Say("--top 0 prints all rows, --idle those of threads that wait for work"),
    ),
    of(&["top", "rate"], &["-g", "-k"], Say("'analyze callgraph' adds up stacks")),
    of(
        &["report"],
        &["-k", "--vmlinux", "--dso", "--dsos", "-t", "--tid", "--tids", "-p", "--pid"],
        Say(
            "'analyze report' writes a page for a browser; sums of stacks, as perf report has them: 'analyze callgraph'",
        ),
    ),
    of(&["sched latency"], &["--pids"], Type(&["--by=tid"])),
    of(
        &["runqlat", "cpudist"],
        &["--pidns", "--pidnss"],
        Say("--by container has one for each container, -G PATH chooses a cgroup"),
    ),
    of(
        &["offcputime"],
        &["--state"],
        Say("'analyze offcpu --by state' sums up by state; all that are off the CPU are here"),
    ),
    of(
        &["biosnoop", "biolatency"],
        &["-P", "--pattern"],
        Say("--comm=NAME and -p PID choose rows; 'analyze block --sizes' has sizes"),
    ),
    of(
        &["path"],
        &["--comm", "--name", "--comms"],
        Say("a path is one process's or thread's: -p PID or -t TID; 'analyze exec --comm=NAME' has numbers"),
    ),
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
        Say("sums by task: 'analyze sched latency'; 'analyze -s' sums up calls"),
    ),
    of(
        &["sched timehist"],
        &["-S", "--with-summary"],
        Say("sums by task: 'analyze sched latency'; 'analyze -s' sums up calls"),
    ),
    of(
        &["sched timehist"],
        &["-n", "-I", "-M", "-V", "--next", "--idle-hist", "--migrations", "--cpu-visual"],
        Say("-e 'sched:*' lists every switch, wake-up and move with all there is"),
    ),
    // other words for the same
    all(&["-c", "-cw", "-wc", "-cf", "-fc"], Type(&["--summary", "--summary-mode=total"])),
    all(&["--bpf-summary", "--trace-summary"], Type(&["--summary"])),
    all(&["--total", "--totals"], Type(&["--summary", "--summary-mode=total"])),
    all(&["--per-process"], Type(&["--summary", "--summary-mode=process"])),
    all(&["-k", "-kk", "-g", "--stack-trace", "--stack-traces"], Type(&["--call-graph"])),
    all(&["-Z"], Type(&["--failure"])),
    all(&["--attach"], Named("--pid")),
    all(&["--user"], Named("--uid")),
    all(&["--comms", "--name", "--identifier"], Named("--comm")),
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
    all(
        &[
            "--reltime",
            "--no-call-graph",
            "--no-progress",
            "--progress",
            "--batch",
            "--yes",
            "--text",
            "--plain",
            "--details",
        ],
        Always,
    ),
    all(&["--tape", "--in"], Named("--input")),
    all(&["--out", "--output-file", "--save"], Named("--output")),
    all(&["--wall", "--wallclock", "--date", "--iso", "--full-time", "--time-of-day"], Type(&["--clock=wall"])),
    all(&["--mono", "--monotonic"], Type(&["--clock=mono"])),
    all(&["--peer", "--host", "--ip", "--addr", "--address", "--remote", "--listen", "--tcp"], Ask(ENDS)),
    all(
        &["--order", "--order-by", "--sort-by", "--sortby", "--reverse", "--desc", "--asc", "--descending"],
        Ask(ORDER),
    ),
    all(&["--interval", "--bucket", "--bins", "--buckets", "--every", "--step", "--resolution"], Ask(PARTS)),
    all(&["--read", "--write", "--reads", "--writes", "--read-only"], Ask(OPERATIONS)),
    all(&["--gid", "--ret", "--retval", "--result", "--arg", "--args", "--size", "--where", "--select"], Say(FIELDS)),
    all(&["--sql", "--query"], Say("a question in SQL stands behind a word of its own: analyze sql 'SELECT ...' FILE")),
    all(&["--skip", "--offset"], Say("| tail -n +N")),
    all(&["--page"], Say("a page for a browser is 'analyze report'; analyze --color=always ... | less -R")),
    all(&["--unique", "--distinct", "--uniq"], Say("'analyze top --by KEY' has each once, with sums")),
    all(
        &["--exclude-comm", "--not-comm", "--no-pid", "--not-pid"],
        Say("--comm='!NAME' leaves threads out by name; -p PID chooses processes"),
    ),
    all(&["--symbols", "--debuginfo", "--sym-dir"], Say("names are in the tape; --debug-dir DIR finds better ones")),
    all(
        &["--demangle", "--no-demangle", "--no-symbols", "--addresses"],
        Say("names are printed as they are known; --format json has addresses"),
    ),
    all(&["--stack", "--stacks", "--backtrace", "--backtraces"], Type(&["--call-graph"])),
    all(
        &["--exclude-kernel", "--no-kernel", "--kernel"],
        Ask(&[
            (
                "comm",
                "--comm='!kworker*' leaves threads out by name; 'analyze exec --tree --all' shows those of the kernel",
            ),
            ("", "'analyze exec --tree --all' shows threads of the kernel"),
        ]),
    ),
    all(&["--group-name", "--pgid"], Say(FIELDS)),
    all(&["--ns"], Say("--format json and csv have times in ns")),
    all(
        &["-x", "-xx", "--strings-in-hex"],
        Say("--failure lists calls that fail (-x of bcc); strings that are no text are hex in --format json"),
    ),
    all(
        &["-X", "-N", "--const-print-style", "--arg-names", "--syscall-number"],
        Say("--show-prefix and --show-zeros say how arguments look; --format json has all of them"),
    ),
    all(&["--string-limit"], Say("strings are as long as they were recorded (record -s N)")),
    all(&["--colour", "--stdio-color"], Named("--color")),
    all(&["--no-color", "--no-colour", "--nocolor", "--monochrome"], Type(&["--color=never"])),
    all(&["--no-pager"], Always),
    all(&["--pager"], Say("analyze --color=always ... | less -R")),
    all(
        &[
            "--utc",
            "--gmt",
            "--local",
            "--localtime",
            "--timezone",
            "--tz",
            "--clockid",
            "--epoch",
            "--unix-time",
            "--tsc",
        ],
        Say("--clock wall prints times of day (UTC), --clock mono CLOCK_MONOTONIC, where the report has times"),
    ),
    all(
        &["--fields", "-F"],
        Say(
            "--format json and csv have all fields; page faults are listed by -e 'fault:*', if record --families fault stored them",
        ),
    ),
    all(&["--json", "-j", "--json-lines", "--jsonlines", "--ndjson"], Type(&["--format=json"])),
    all(&["--yaml", "--tsv", "--xml"], Say("--format is text, json or csv")),
    all(&["--csv"], Type(&["--format=csv"])),
    all(&["--log-file"], Say("the answer goes to standard output: analyze ... > FILE")),
    // which calls
    all(&["-z", "--successful-only"], Say("calls that succeed cannot be chosen; --failure lists those that fail")),
    all(&["--status", "--errors", "--error", "--fail", "--failures", "--failed-calls", "--only-errors"], Ask(FAILED)),
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
    all(
        &[
            "-n",
            "-L",
            "-l",
            "--syscall-limit",
            "--limit",
            "--line",
            "--lines",
            "--head",
            "--rows",
            "--num",
            "--number",
            "--count",
            "--max-rows",
            "--max-count",
            "--numevents",
            "--max",
            "--first",
        ],
        Ask(FEW),
    ),
    all(&["--tail"], Say("| tail -n N")),
    all(
        &[
            "--since", "--until", "--from", "--to", "--start", "--begin", "--end", "--stop", "--last", "--window",
            "--range",
        ],
        Ask(WHEN),
    ),
    all(
        &[
            "--slow",
            "--longer",
            "--longer-than",
            "--min-duration",
            "--min-time",
            "--min-latency",
            "--min",
            "--threshold",
            "--latency-above",
        ],
        Ask(LONG),
    ),
    all(
        &[
            "--syscall",
            "--syscalls",
            "--call",
            "--calls",
            "--function",
            "--tp",
            "--tracepoint",
            "--tracepoints",
            "--exclude",
            "--ignore",
            "--not",
            "--without",
            "--include",
            "--only",
            "--type",
        ],
        Ask(CALLS),
    ),
    all(
        &[
            "--proc",
            "--procname",
            "--process-name",
            "--command",
            "--cmd",
            "--exe",
            "--program",
            "--prog",
            "--app",
            "--task",
            "--thread-name",
        ],
        Ask(NAMES),
    ),
    all(&["--file", "--filename", "--files-from", "--dir", "--directory", "--fd"], Ask(PATHS)),
    all(&["--grep", "--match", "--regex", "--pattern", "--search"], Say("| grep TEXT")),
    all(&["--group-by", "--groupby", "--group", "--aggregate", "--key", "--keys"], Named("--by")),
    all(&["--thread"], Named("--tid")),
    all(
        &["--threads", "--per-thread"],
        Say("'analyze -s' sums up by thread; --tid TID,... chooses threads, where a report takes it"),
    ),
    all(&["--service", "--systemd"], Named("--unit")),
    all(&["--docker", "--container-id", "--container-name"], Named("--container")),
    all(
        &["--namespace", "--ns-name"],
        Say("'analyze states --by pod' has pods, 'analyze --pod NAMESPACE/*' lists theirs"),
    ),
    all(
        &["--children", "--descendants", "--with-children"],
        Say(
            "-p PID --tree takes the processes below one too; 'analyze exec --tree' shows them; record -p PID --tree records them",
        ),
    ),
    all(&["--strict", "--fail-on-lost"], Say("it is --fail-on-loss")),
    all(&["--man"], Say("man analyze, or analyze REPORT --help")),
    all(&["-?", "--usage", "--list", "-cl"], Say("reports are listed by 'analyze --help'")),
    all(&["--instruction-pointer"], Say("'analyze --call-graph' prints stacks, if record -g took them")),
    all(
        &["--seccomp-bpf", "-I", "--daemonize", "--daemonized", "--daemonised"],
        Say("it is about recording: see 'record --help'"),
    ),
    all(&["--tips", "--argv0", "--secontext", "--selinux-context"], Say("strace alone has it")),
    all(&["--always-show-pid"], Say("every line has the thread, unless --no-comm leaves it out")),
    all(&["--columns"], Say("lines are as long as they are: | cut -c1-80, or | less -S")),
    all(
        &["--trace-fds"],
        Say(
            "-P 'pipe:*' and -P /path choose calls by what a descriptor stands for; numbers of descriptors are | grep 'fd: 3'",
        ),
    ),
    all(
        &["-A", "-B", "--after-context", "--before-context", "--context"],
        Say("--time FROM,TO lists everything around a moment: 1.2,1.3 is a tenth of a second"),
    ),
    all(&["-R", "--recursive"], Say("directories of tapes are read as they are named: analyze REPORT DIR")),
    all(
        &[
            "--no-heading",
            "--null",
            "--passthru",
            "--vimgrep",
            "--pretty",
            "--line-number",
            "--long",
            "--short",
            "--brief",
            "--compact",
            "--oneline",
            "--one-line",
            "--ascii",
            "--width",
            "--no-header",
            "--no-headers",
            "--truncate",
            "--human",
            "--human-readable",
            "--raw",
            "--bytes",
            "--units",
        ],
        Say("lines fit a terminal, --wide has them whole (| less -S); --format json and csv are for programs"),
    ),
    all(&["--invert-match"], Say("-e '!read', --comm='!NAME' and -P '!PATH' leave out; | grep -v TEXT")),
    all(&["--word-regexp", "--fixed-strings", "--ignore-case"], Say("| grep TEXT")),
    all(&["--replace"], Say("'analyze redact IN OUT' takes names out of a tape; | sed 's/A/B/' changes lines")),
    all(&["--to-json"], Say("it is --format json; 'analyze export json' writes tables")),
    all(&["--to-ctf"], Say("'analyze export' has the forms there are")),
    // sums
    all(&["--summary-sort-by"], Named("--sort")),
    all(
        &["-U", "--summary-columns", "-O", "--summary-syscall-overhead"],
        Say("the summary has fixed columns; --format json and csv have more"),
    ),
    all(
        &["-w"],
        Say(
            "sums are of the time calls took: analyze -s (-w of strace); a tape is written by record -o FILE (-w of sysdig), a part of it by 'analyze cut IN OUT --time FROM,TO'",
        ),
    ),
    all(&["--summary-wall-clock"], Say("sums are of the time calls took: analyze -s")),
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
        Ask(&[
            ("call_graph", "--call-graph prints the parts that were recorded (record --kernel-stacks)"),
            ("", "stacks have the parts that were recorded (record --kernel-stacks)"),
        ]),
    ),
    all(
        &["--no-children", "--tui", "--gtk", "--dsos", "--percentage", "--show-nr-samples"],
        Say("'analyze callgraph --help' has the options of stacks"),
    ),
    all(&["--vmlinux", "--kallsyms", "--no-inline"], Say("names are in the tape; --debug-dir DIR finds better ones")),
    all(&["--flamegraph", "--flame-graph", "--flame"], Say("'analyze callgraph --svg FILE' writes a flame graph")),
    // about the recording
    all(
        &["-a", "--all-cpus", "--system-wide"],
        Say("all that was recorded is shown; record -a records the whole machine"),
    ),
    all(&["-d", "--for", "--timeout", "--time-limit"], Ask(WHEN)),
    of(
        &["biolatency", "runqlat", "cpudist", "syscount"],
        &["-m", "--milliseconds"],
        Say("times are in µs here, as without it; --format json has ns"),
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
        &["--header", "--header-only", "--stats", "--show-info", "--dump-header", "--list-events"],
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

//! Names of other programs, their subcommands, and words that somebody guesses, where the name of a report stands: what to type.

use crate::cli::views;
use systape_events::group::by::GroupKey;

/// What has quotes is a sentence; all else is a command.
const REPORTS: &systape_abi::Habits = &[
    // processes
    (&["started", "execs", "exitsnoop", "fork", "forks", "exit", "exits", "spawn", "birth", "died"], "analyze exec"),
    (
        &[
            "ps",
            "pstree",
            "tree",
            "process",
            "processes",
            "procs",
            "proc",
            "tasks",
            "task",
            "topprocs",
            "children",
            "parents",
        ],
        "analyze exec --tree",
    ),
    (&["proc_exec_time", "list_login_shells", "history", "logins", "spy_users"], "analyze exec --tree"),
    (&["threadsnoop"], "analyze -e clone,clone3"),
    (&["filegone"], "analyze -e \"unlink*,rename*\""),
    (&["dcsnoop"], "analyze -e %file --failure"),
    (&["readahead"], "analyze -e readahead,fadvise64,madvise"),
    (
        &["iobytes", "iobytes_net", "iobytes_file"],
        "'analyze files --by comm' has bytes of files, 'analyze net --by comm' of connections",
    ),
    (&["pidpersec", "exec-rate"], "analyze rate -e execve"),
    (&["users", "user", "uids"], "'analyze -s --by uid' sums up by user; -u USER chooses one"),
    (&["setuids"], "analyze -e \"set*id\""),
    // signals
    (&["sigsnoop", "signals", "signal"], "analyze kills --all"),
    (
        &[
            "oomkill",
            "oom",
            "oom-killer",
            "kill",
            "killed",
            "killer",
            "who",
            "crash",
            "crashes",
            "die",
            "abort",
            "segfault",
            "dmesg",
            "coredump",
            "death",
        ],
        "analyze kills",
    ),
    // disks
    (
        &[
            "bio",
            "disk",
            "disks",
            "io",
            "blktrace",
            "btrace",
            "iosnoop",
            "bandwidth",
            "iops",
            "disk-io",
            "storage",
            "biopattern",
            "mdflush",
            "iostat",
            "dstat",
        ],
        "analyze block",
    ),
    (&["biotop", "iotop", "topprocs_io"], "analyze block --top"),
    (&["bitesize"], "analyze block --sizes --by comm"),
    (&["biostacks", "blkstacks"], "analyze callgraph --of block"),
    (&["writeback"], "'analyze -e \"writeback:*\"', of a tape made with record -e 'writeback:*'"),
    // files
    (&["opens", "openings"], "analyze files --opens"),
    (
        &["topfiles_bytes", "topfiles_time", "topprocs_file", "filelife", "fs", "filesystem", "topfiles"],
        "analyze files",
    ),
    (
        &["fileslower", "fsslower", "ext4slower", "xfsslower", "btrfsslower", "nfsslower", "zfsslower", "f2fsslower"],
        "analyze files --slower 10ms",
    ),
    (&["ext4dist", "fsdist", "xfsdist", "btrfsdist", "nfsdist", "zfsdist"], "analyze top --hist -e read,write,fsync"),
    (&["spy_file", "fatrace", "inotifywait", "fswatch"], "analyze -P PATH"),
    (&["mountsnoop", "mounts", "mount"], "analyze -e mount,umount2"),
    (&["sync", "syncsnoop", "fsync"], "analyze -e sync,fsync,fdatasync,syncfs,msync"),
    (
        &["cachestat", "cachetop", "cache", "pagecache"],
        "'analyze -e read,pread64 --duration 1ms' lists reads that waited for a disk; hits are not recorded",
    ),
    (&["lsof", "fd", "descriptors", "openfiles", "fuser", "sofdsnoop", "handles"], "analyze fds --at 100%"),
    // calls
    (
        &[
            "topscalls",
            "topscalls_time",
            "stat",
            "stats",
            "count",
            "calls",
            "syscalls",
            "syscall",
            "vfsstat",
            "vfscount",
            "dcstat",
            "sum",
            "sums",
            "summarize",
            "summarise",
            "statistics",
            "aggregate",
        ],
        "analyze -s",
    ),
    (&["scallslower"], "analyze --duration 1ms"),
    (
        &["errors", "error", "errno", "errnos", "topfiles_errors", "err", "strerror", "topprocs_errors"],
        "analyze --errno-summary",
    ),
    (&["failures", "failed", "fail", "failure"], "analyze --failure"),
    (&["capable", "denied", "permissions"], "'analyze -s --by errno,syscall,comm' counts EPERM and EACCES"),
    (
        &["hist", "histogram", "histograms", "latencies", "funchist", "distribution", "percentiles", "percentile"],
        "analyze top --hist",
    ),
    (&["p99", "p95", "p50", "median"], "analyze top --metric p99"),
    (&["shmsnoop", "ipcs"], "analyze -e shmget,shmat,shmdt,shmctl"),
    (&["stderr", "ttysnoop", "echo_fds", "stdin", "stdout"], "analyze -e read,write"),
    (&["naptime", "sleeps"], "analyze -e clock_nanosleep,nanosleep"),
    (&["over-time", "timeseries", "sar", "persec", "throughput"], "analyze rate"),
    // functions
    (&["funclatency", "funccount"], "'analyze probes --hist', of a tape made with record --uprobe or --kprobe"),
    (
        &["funcslower", "argdist", "ksnoop", "uprobe", "kprobe", "usdt"],
        "'analyze -e \"uprobe:*\"' and -e 'kprobe:*', of a tape made with record --uprobe or --kprobe",
    ),
    (
        &[
            "ltrace",
            "probe",
            "dbslower",
            "dbstat",
            "mysqld_qslower",
            "javagc",
            "javacalls",
            "ugc",
            "uthreads",
            "uobjnew",
            "ustat",
            "gc",
            "ucalls",
            "uflow",
        ],
        "'analyze probes', of a tape made with record --usdt or --uprobe",
    ),
    (
        &["bashreadline"],
        "'analyze -e \"uprobe:*\"', of a tape made with record --uprobe '/bin/bash:readline()->string'",
    ),
    (
        &["sslsniff", "ssl", "tls", "dns", "dnssnoop", "resolve"],
        "'analyze probes', of a tape made with record --probe tls or dns",
    ),
    (
        &["http", "httplog", "httptop", "memcachelog", "sql-queries", "redis"],
        "what is inside messages is not taken apart; 'analyze -e read,write' lists them as they are",
    ),
    // why, threads, CPUs
    (
        &[
            "slow",
            "slower",
            "overview",
            "explain",
            "diagnose",
            "diagnosis",
            "problems",
            "problem",
            "findings",
            "blame",
            "bottlenecks",
            "bottleneck",
            "reason",
            "cause",
            "rootcause",
            "insights",
        ],
        "analyze why",
    ),
    (
        &["slowest", "longest", "outliers"],
        "'analyze why' has what was slow; 'analyze --duration 100ms' lists long calls",
    ),
    (
        &["mem", "memory", "rss", "heap"],
        "'analyze why --when', and 'analyze -e mmap,munmap,brk' for what was asked for",
    ),
    (&["memleak", "malloc"], "'analyze -e mmap,munmap,brk --call-graph' lists what was asked of the kernel"),
    (
        &["faults", "fault", "pagefaults", "page-faults", "swapin"],
        "'analyze -e \"fault:*\"', of a tape made with record --families fault",
    ),
    (
        &["vmscan", "swap", "drsnoop", "reclaim", "compactsnoop"],
        "'analyze -e \"vmscan:*\"', of a tape made with record -e 'vmscan:*'; delays by memory: record --families fault",
    ),
    (
        &["hardirqs", "softirqs", "irqs", "irq", "interrupts"],
        "'analyze -e \"irq:*\"', of a tape made with record -e 'irq:*'",
    ),
    (&["deadlock", "deadlocks", "deadlock_detector", "lockdep"], "analyze locks"),
    (
        &[
            "lock",
            "futex",
            "futexes",
            "futexctn",
            "klockstat",
            "lockstat",
            "mutex",
            "mutexes",
            "contention",
            "semaphores",
        ],
        "analyze locks",
    ),
    (&["critical-path", "critical", "criticalpath", "blocked", "latency-breakdown", "wakeup-chain"], "analyze path"),
    (&["blocking", "waits", "wait", "waiting", "sleep", "sleeping", "offcpu-time"], "analyze offcpu"),
    (&["wakeuptime", "wakers", "wakeups", "waker"], "analyze offcpu --wakers PID"),
    (&["offwaketime"], "analyze callgraph --of offcpu"),
    (
        &[
            "cpu",
            "utilization",
            "cpus",
            "threads",
            "thread",
            "oncpu",
            "on-cpu",
            "mpstat",
            "vmstat",
            "pidstat",
            "htop",
            "atop",
            "loads",
            "load",
            "loadavg",
            "usage-by-thread",
        ],
        "analyze states",
    ),
    (
        &["hang", "hung", "hangs", "stuck", "frozen", "gdb", "pstack", "jstack", "where", "snapshot-at"],
        "analyze states --at 100%",
    ),
    (
        &[
            "timeslices",
            "throttle",
            "throttling",
            "throttled",
            "run-queue",
            "runqlen",
            "runqslower",
            "latency",
            "topprocs_cpu",
            "cpuunclaimed",
            "scheduling",
        ],
        "analyze sched latency",
    ),
    (&["timehist"], "analyze sched timehist"),
    (&["sched map"], "analyze sched timehist"),
    (&["sched lat", "sched stats", "sched summary"], "analyze sched latency"),
    (&["sched script", "sched trace"], "analyze -e \"sched:*\""),
    (&["sched record"], "record --families sched"),
    (&["sched replay"], "perf alone has it"),
    // network
    (
        &[
            "tcpconnect",
            "tcpaccept",
            "tcptracer",
            "tcpconnlat",
            "tcprtt",
            "tcpsynbl",
            "packets",
            "retrans",
            "ip",
            "interfaces",
            "netstat",
            "ss",
            "topconns",
            "topports_server",
            "topports_client",
            "connections",
            "connection",
            "network",
            "sockets",
            "socket",
            "tcp",
            "tcpdump",
            "wireshark",
            "tshark",
            "pcap",
            "netlower",
        ],
        "analyze net",
    ),
    (&["tcpstates"], "analyze net --events"),
    (&["tcptop", "nettop", "iftop", "nethogs", "topprocs_net"], "analyze net --by comm"),
    (&["retransmissions", "tcpretrans", "retransmits"], "analyze -e socket:retransmit"),
    (&["tcpdrop"], "analyze net"),
    (&["udplife", "udpconnect", "udp"], "analyze net --udp"),
    (&["solisten", "listen"], "analyze -e listen"),
    (&["bindsnoop", "bind"], "analyze -e bind"),
    // stacks
    (&["flamegraph", "flame"], "analyze callgraph --svg FILE"),
    (
        &[
            "backtrace",
            "backtraces",
            "bt",
            "hot",
            "hotspot",
            "functions",
            "symbols",
            "fold",
            "criticalstat",
            "profile",
            "stacks",
            "stackcount",
            "annotate",
            "stack",
            "profiler",
            "hotspots",
        ],
        "analyze callgraph",
    ),
    (&["folded", "speedscope", "stackcollapse", "collapsed"], "analyze callgraph --folded"),
    (&["caller", "callee"], "stacks are turned round by 'analyze callgraph --callee'"),
    // pages and other programs' forms
    (
        &[
            "tracecompass",
            "kernelshark",
            "browse",
            "timeline",
            "timechart",
            "view",
            "viewer",
            "gui",
            "page",
            "html",
            "web",
            "chart",
            "charts",
            "graph",
            "graphs",
            "plot",
            "serve",
            "open-page",
            "spectrogram",
            "csysdig",
            "sysdig-inspect",
            "heatmap",
            "dashboard",
            "ui",
            "show-page",
        ],
        "analyze report",
    ),
    (&["perfetto", "chrome", "ftrace", "systrace", "pftrace"], "analyze export perfetto -o FILE"),
    (&["pprof"], "analyze export pprof -o FILE"),
    (&["firefox", "samply", "gecko"], "analyze export firefox -o FILE"),
    (
        &["convert", "data", "transform"],
        "'analyze export' has the forms of other programs; 'analyze --format json' prints one object a line",
    ),
    (&["csv", "parquet"], "'analyze export parquet DIR FILE'; 'analyze --format csv' prints calls"),
    (&["json", "jsonl"], "analyze --format json"),
    (&["sqlhist"], "analyze top --hist"),
    (&["bpftrace"], "no program is run: 'analyze top -e EVENT --by KEY' counts events"),
    (&["tplist"], "'analyze info' says which events a tape has; record -e takes any tracepoint: FAMILY:EVENT"),
    (&["query", "select", "SELECT", "duckdb", "sqlite"], "analyze sql \"SELECT ...\" FILE"),
    // the listing
    (
        &[
            "logs",
            "trace",
            "script",
            "show",
            "dump",
            "print",
            "cat",
            "read",
            "replay",
            "listing",
            "stream",
            "strace",
            "babeltrace",
            "babeltrace2",
            "log",
            "less",
            "tail",
            "head",
            "output",
        ],
        "analyze FILE",
    ),
    // tapes
    (&["ls", "tapes", "dir"], "analyze list DIR"),
    (
        &[
            "size",
            "du",
            "cmdline",
            "kernel",
            "host",
            "hostname",
            "machine",
            "bpflist",
            "header",
            "evlist",
            "buildid-list",
            "buildid-cache",
            "events",
            "losses",
            "lost",
            "loss",
            "metadata",
            "about",
            "uptime",
            "inspect",
        ],
        "analyze info",
    ),
    (&["columns", "fields", "describe"], "analyze tables"),
    (&["hash", "checksum", "verify", "validate", "fsck", "test", "lint"], "analyze check"),
    (&["fix", "recover", "rescue", "restore"], "analyze repair IN OUT"),
    (
        &["archive"],
        "'analyze redact IN OUT' copies a tape without names, 'analyze cut IN OUT --time FROM,TO' a part of it",
    ),
    (&["inject"], "'analyze repair IN OUT' copies what is whole of a tape"),
    (
        &["secrets", "privacy", "anonymize", "anonymise", "scrub", "sanitize", "sanitise", "mask", "hide"],
        "analyze redact IN OUT",
    ),
    (&["split", "extract", "slice", "trim", "crop"], "analyze cut IN OUT --time FROM,TO"),
    (&["concat", "join", "combine"], "analyze merge FILE FILE -o OUT"),
    (&["regression", "before", "after", "compare", "cmp", "delta", "regressions"], "analyze diff BEFORE AFTER"),
    (&["compress", "gzip", "zstd"], "a tape is always compressed"),
    (&["delete", "remove", "purge"], "a tape is a file: rm FILE"),
    (
        &["copy", "cp", "mv", "upload", "send", "share"],
        "a tape is one file; 'analyze redact IN OUT' takes secrets out of it",
    ),
    (&["changes", "trend", "trends"], "analyze why --when"),
    (
        &["find", "grep", "search", "filter"],
        "calls are chosen by options: -e CALL, -P PATH, --comm=NAME, --failure; analyze | grep TEXT",
    ),
    (
        &["time", "when", "period", "date"],
        "--time FROM,TO chooses a part of the recording, --clock wall prints times of day",
    ),
    (&["get"], "analyze FILE"),
    (&["pipes", "unix"], "analyze files --sockets"),
    (&["epoll"], "analyze -e \"epoll*\""),
    (&["io_uring", "iouring", "uring"], "analyze -e \"io_uring:*\""),
    (&["aio"], "analyze -e \"io_*\""),
    (&["rotate"], "'record --rotate TIME|SIZE' writes several tapes"),
    (&["duration"], "--duration TIME chooses what took longer"),
    (
        &["fdbytes_by", "fdcount_by", "fdtime_by"],
        "'analyze files --by comm', 'analyze net --by comm' and 'analyze top --by file' sum up",
    ),
    (&["security", "audit"], "'analyze kills', 'analyze exec' and 'analyze --failure' show who did what"),
    // what is not answered from a tape
    (
        &["live", "monitor", "follow", "watch", "realtime"],
        "a recording is read when it has ended: record -o - ... | analyze - does both",
    ),
    (&["record"], "'record -- COMMAND' records; it is a program of its own"),
    (
        &["add-context", "set-session", "track", "start", "create", "attach", "begin", "enable-event", "enable", "run"],
        "recording is a program of its own: record -a, or record -- COMMAND",
    ),
    (
        &["reset-trace", "stop", "destroy", "end", "quit", "reset"],
        "Ctrl-C ends a recording, and it is a program of its own: record",
    ),
    (&["snapshot", "trigger"], "record trigger"),
    (&["status"], "record status"),
    (
        &[
            "mem report",
            "kmem",
            "kvm",
            "c2c",
            "numamove",
            "rdmaucma",
            "netqtop",
            "virtiostat",
            "daemon",
            "numa",
            "cachemiss",
            "cache-misses",
            "check-events",
            "metadata-regenerate",
            "shellshock_detect",
            "subsecoffset",
            "undump",
            "wqlat",
            "iostat-pcie",
            "kwork",
            "slabratetop",
            "llcstat",
            "bench",
            "intel-pt",
            "ftrace-events",
        ],
        "perf and bcc alone have it; page faults: 'analyze -e \"fault:*\"'",
    ),
    // about this program
    (&["license", "version"], "analyze --version"),
    (
        &["help", "usage", "commands", "reports", "examples", "man", "manual", "docs", "config", "options", "settings"],
        "analyze --help (man analyze)",
    ),
];

/// A command is to be typed; what has quotes is a sentence.
fn said(text: &str) -> String {
    let command = ["analyze ", "record "].iter().any(|start| text.starts_with(start));
    if command { format!("type '{text}'") } else { text.to_owned() }
}

/// Programs whose reports stand behind their names.
const PROGRAMS: &[&str] = &["perf", "bcc", "sysdig", "trace-cmd", "lttng", "systape", "analyze"];

/// Endings and a beginning of files that are tools of bcc and bpftrace.
const ENDINGS: &[&str] = &["-bpfcc", "-libbpf", ".bt", ".py", "-bt"];

/// What the names of many tools begin or end with.
const KINDS: &[(&str, &str, &str)] = &[
    ("funcs", "", "'analyze probes --hist', of a tape made with record --uprobe or --kprobe"),
    ("java", "", OF_PROBES),
    ("python", "", OF_PROBES),
    ("node", "", OF_PROBES),
    ("ruby", "", OF_PROBES),
    ("php", "", OF_PROBES),
    ("perl", "", OF_PROBES),
    ("tcp", "", "analyze net"),
    ("net", "", "analyze net"),
    ("udp", "", "analyze net --udp"),
    ("runq", "", "analyze sched latency"),
    ("sched", "", "analyze sched latency"),
    ("offcpu", "", "analyze offcpu"),
    ("off-cpu", "", "analyze offcpu"),
    ("oncpu", "", "analyze states"),
    ("softirq", "", OF_IRQS),
    ("hardirq", "", OF_IRQS),
    ("spy_", "", "analyze -e read,write"),
    ("topprocs_", "", "'analyze top --by comm', and 'analyze sched latency' for run times"),
    ("fd", "_by", "'analyze files --by comm' and 'analyze files' sum up by program and file"),
    ("", "slower", "analyze files --slower 10ms"),
    ("", "readlat", "analyze top --hist -e read,write,fsync"),
    ("", "dist", "analyze top --hist -e read,write,fsync"),
];

const OF_PROBES: &str = "'analyze probes', of a tape made with record --usdt or --uprobe";
const OF_IRQS: &str = "'analyze -e \"irq:*\"', of a tape made with record -e 'irq:*'";

/// A report, a tool or a word of the table that is written a little differently: with an ending of its package, another hyphen, or as one.
fn written_otherwise(word: &str) -> Option<String> {
    let stem = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending)).or_else(|| word.strip_prefix("old-"));
    let as_one = || [stem.unwrap_or(word).replace(['-', '_'], ""), stem.unwrap_or(word).replace(['-', '_'], " ")];
    let singular = || word.strip_suffix('s').map(str::to_owned);
    let all = stem.map(str::to_owned).into_iter().chain(as_one()).chain(singular()).chain([format!("{word}s")]);
    all.filter(|other| other != word).find_map(|other| {
        let report = views::VIEWS.iter().any(|view| !view.name.is_empty() && view.name == other);
        if report {
            Some(format!("type 'analyze {other}'"))
        } else {
            systape_abi::instead_of(REPORTS, &other).map(said)
        }
    })
}

/// What to type for `word`, which the table does not have: a kind of tools, a key of sums, a call.
fn of_a_kind(word: &str) -> Option<String> {
    let kind = KINDS.iter().find(|(start, end, _)| {
        word.starts_with(start) && word.ends_with(end) && word.len() >= start.len() + end.len()
    });
    let name = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let known = |call: &&str| name(call) && systape_abi::Selection::parse(&[format!("={call}")]).is_ok();
    let call = [word, word.strip_suffix('s').unwrap_or(word)].into_iter().find(known);
    let call = || call.map(|call| format!("type 'analyze -e {call}'"));
    let key = || GroupKey::meant(word).map(|name| format!("sums by it: 'analyze top --by {name}'"));
    kind.map(|(_, _, text)| said(text)).or_else(key).or_else(call)
}

/// What to type for `word`, or for it and the `next` word, which is neither a report nor a file: also what resembles something.
pub(crate) fn meant(word: &str, next: Option<&str>) -> Option<String> {
    if let Some(text) = instead_of(word, next) {
        return Some(text);
    }
    if PROGRAMS.contains(&word) {
        let Some(next) = next else { return Some("type 'analyze --help'".to_owned()) };
        let named = views::named(std::iter::once(next)).is_some();
        let typed = if named { format!("type 'analyze {next}'") } else { meant(next, None)? };
        return Some(format!("leave it out; {typed}"));
    }
    let plain = word.len() > 1 && !word.starts_with('-') && !word.contains(['/', ' ']);
    let begun = || views::names().find(|name| word.len() > 1 && name.starts_with(word));
    let near = || views::nearest(word.as_ref()).or_else(begun).map(|name| format!("did you mean '{name}'?"));
    let other = || near().or_else(|| written_otherwise(word)).or_else(|| of_a_kind(word));
    plain.then(other).flatten()
}

/// What to type for `word`, or for it and the `next` word, which is neither a report nor a file, if the table has it.
pub(crate) fn instead_of(word: &str, next: Option<&str>) -> Option<String> {
    let two = next.map(|next| format!("{word} {next}"));
    let known = two.and_then(|two| systape_abi::instead_of(REPORTS, &two));
    if let Some(text) = known.or_else(|| systape_abi::instead_of(REPORTS, word)) {
        return Some(said(text));
    }
    let word = word.trim_start_matches(['(', ' ']).trim_start_matches("not ").trim_start_matches('(');
    for (fields, text) in FIELDS {
        if fields.iter().any(|field| word.starts_with(field)) {
            return Some((*text).to_owned());
        }
    }
    let whole = word.contains('{') && word.ends_with('}');
    let probes = ["tracepoint:", "kprobe:", "sched:", "block:", "syscalls:", "signal:", "raw_syscalls:"];
    (whole || probes.iter().any(|probe| word.starts_with(probe))).then(|| match word.contains('{') {
        true => "no program is run: -e names events, 'analyze top -e EVENT --by KEY' counts them".to_owned(),
        false => format!("events are named by -e: -e '{word}'"),
    })
}

/// Fields of filters of sysdig.
const FIELDS: &[(&[&str], &str)] = &[
    (&["fd.name", "fd.directory", "fd.filename"], "filters are options: -P PATH chooses calls on a file"),
    (&["container."], "filters are options: --container NAME, as is 'analyze -s --by container'"),
    (
        &["pid=", "tid=", "comm=", "name=", "user=", "uid=", "_PID=", "_COMM=", "_UID=", "_EXE=", "_SYSTEMD_UNIT="],
        "filters are options: -p PID, -t TID, --comm=NAME, -u USER, --unit NAME",
    ),
    (&["k8s."], "filters are options: --pod NAME, as is 'analyze -s --by pod'"),
    (
        &["proc.", "evt.", "fd.", "thread.", "user.", "group.", "syscall."],
        "filters are options: --comm=NAME, -p PID, -u USER, -e CALL, --failure, --duration",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_to_a_command_or_a_sentence() {
        let said = |word| instead_of(word, None).unwrap_or_default();
        assert_eq!(said("lock"), "type 'analyze locks'");
        assert!(said("faults").starts_with("'analyze -e \"fault:*\"', of a tape"), "{}", said("faults"));
        assert_eq!(instead_of("sched", Some("map")).as_deref(), Some("type 'analyze sched timehist'"));
        assert_eq!(instead_of("sched", None), None);
        assert!(said("k8s.pod.name=web").contains("--pod NAME"));
        assert_eq!(instead_of("frobnicate", None), None);
    }

    #[test]
    fn no_word_is_said_twice_or_is_a_report() {
        let mut all: Vec<&str> = REPORTS.iter().flat_map(|(words, _)| *words).copied().collect();
        for word in &all {
            let words = word.split(' ');
            let named = views::named(words.clone()).is_some_and(|(_, count)| count == words.count());
            assert!(!named, "{word} is a report");
        }
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}

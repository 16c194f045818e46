//! Names of other programs, their subcommands, and words that somebody guesses, where the name of a report stands: what to type.

/// What has quotes is a sentence; all else is a command.
const REPORTS: &systape_cli::Habits = &[
    // processes
    (&["execs", "exitsnoop", "fork", "forks", "exit", "exits", "spawn", "birth", "died"], "analyze exec"),
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
    (&["proc_exec_time", "list_login_shells", "spy_users"], "analyze exec --tree"),
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
            "segfault",
            "dmesg",
            "coredump",
            "death",
        ],
        "analyze kills",
    ),
    // disks
    (
        &["bio", "disk", "disks", "io", "blktrace", "btrace", "iosnoop", "biopattern", "mdflush", "iostat", "dstat"],
        "analyze block",
    ),
    (&["biotop", "iotop", "topprocs_io"], "analyze block --top"),
    (&["bitesize"], "analyze block --sizes --by comm"),
    (&["biostacks", "blkstacks"], "analyze callgraph --of block"),
    (&["writeback"], "'analyze -e \"writeback:*\"', of a tape made with record -e 'writeback:*'"),
    // files
    (&["opens", "open", "openings"], "analyze files --opens"),
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
        &["cachestat", "cachetop"],
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
    (&["errors", "error", "errno", "errnos", "topfiles_errors", "topprocs_errors"], "analyze --errno-summary"),
    (&["failures", "failed", "fail", "failure"], "analyze --failure"),
    (&["capable", "denied", "permissions"], "'analyze -s --by errno,syscall,comm' counts EPERM and EACCES"),
    (
        &["hist", "histogram", "histograms", "funchist", "distribution", "percentiles", "percentile"],
        "analyze top --hist",
    ),
    (&["p99", "p95", "p50", "median"], "analyze top --metric p99"),
    (&["shmsnoop", "ipcs"], "analyze -e shmget,shmat,shmdt,shmctl"),
    (&["ttysnoop", "echo_fds", "stdin", "stdout"], "analyze -e read,write"),
    (&["naptime", "sleeps"], "analyze -e clock_nanosleep,nanosleep"),
    (&["sar", "persec", "throughput"], "analyze rate"),
    // functions
    (&["funclatency", "funccount"], "'analyze probes --hist', of a tape made with record --uprobe or --kprobe"),
    (
        &["funcslower", "argdist", "uprobe", "kprobe", "usdt"],
        "'analyze -e \"uprobe:*\"' and -e 'kprobe:*', of a tape made with record --uprobe or --kprobe",
    ),
    (
        &["ltrace", "probe", "dbslower", "dbstat", "mysqld_qslower", "javagc", "javacalls", "ucalls", "uflow"],
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
        &["drsnoop", "reclaim", "compactsnoop"],
        "'analyze -e \"vmscan:*\"', of a tape made with record -e 'vmscan:*'; delays by memory: record --families fault",
    ),
    (
        &["hardirqs", "softirqs", "irqs", "irq", "interrupts"],
        "'analyze -e \"irq:*\"', of a tape made with record -e 'irq:*'",
    ),
    (&["deadlock", "deadlocks", "lockdep"], "analyze locks"),
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
    (&["waits", "wait", "waiting", "sleep", "sleeping", "offcpu-time"], "analyze offcpu"),
    (&["wakeuptime", "wakers", "wakeups", "waker"], "analyze offcpu --wakers PID"),
    (&["offwaketime"], "analyze callgraph --of offcpu"),
    (
        &[
            "cpu",
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
    (&["runqlen", "runqslower", "latency", "topprocs_cpu", "cpuunclaimed", "scheduling"], "analyze sched latency"),
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
    (&["tcpretrans", "tcpdrop", "retransmits"], "analyze net"),
    (&["udplife", "udpconnect", "udp"], "analyze net --udp"),
    (&["solisten", "listen"], "analyze -e listen"),
    (&["bindsnoop", "bind"], "analyze -e bind"),
    // stacks
    (
        &["profile", "flamegraph", "flame", "stacks", "stackcount", "annotate", "stack", "profiler", "hotspots"],
        "analyze callgraph",
    ),
    (&["folded", "speedscope", "stackcollapse", "collapsed"], "analyze callgraph --folded"),
    (&["caller", "callee"], "stacks are turned round by 'analyze callgraph --callee'"),
    // pages and other programs' forms
    (
        &[
            "timeline",
            "timechart",
            "view",
            "viewer",
            "gui",
            "tui",
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
    (
        &["convert", "data", "transform"],
        "'analyze export' has the forms of other programs; 'analyze --format json' prints one object a line",
    ),
    (&["csv", "parquet"], "'analyze export parquet DIR FILE'; 'analyze --format csv' prints calls"),
    (&["json", "jsonl"], "analyze --format json"),
    (&["sqlhist"], "analyze top --hist"),
    (&["tplist"], "'analyze info' says which events a tape has; record -e takes any tracepoint: FAMILY:EVENT"),
    (&["query", "select", "SELECT", "duckdb", "sqlite"], "analyze sql \"SELECT ...\" FILE"),
    // the listing
    (
        &[
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
            "header",
            "evlist",
            "buildid-list",
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
    (&["schema", "columns", "fields", "describe"], "analyze tables"),
    (&["verify", "validate", "fsck", "test", "lint"], "analyze check"),
    (&["fix", "recover", "rescue", "restore"], "analyze repair IN OUT"),
    (
        &["archive"],
        "'analyze redact IN OUT' copies a tape without names, 'analyze cut IN OUT --time FROM,TO' a part of it",
    ),
    (&["inject"], "'analyze repair IN OUT' copies what is whole of a tape"),
    (&["anonymize", "anonymise", "scrub", "sanitize", "sanitise", "mask", "hide"], "analyze redact IN OUT"),
    (&["split", "extract", "slice", "trim", "crop"], "analyze cut IN OUT --time FROM,TO"),
    (&["concat", "join", "combine"], "analyze merge FILE FILE -o OUT"),
    (&["compare", "cmp", "delta", "regressions"], "analyze diff BEFORE AFTER"),
    (&["compress", "gzip", "zstd"], "a tape is always compressed"),
    (&["delete", "remove", "purge"], "a tape is a file: rm FILE"),
    (
        &["copy", "cp", "mv", "upload", "send", "share"],
        "a tape is one file; 'analyze redact IN OUT' takes secrets out of it",
    ),
    // what is not answered from a tape
    (&["record"], "'record -- COMMAND' records; it is a program of its own"),
    (
        &["start", "create", "attach", "begin", "enable-event", "enable", "run"],
        "recording is a program of its own: record -a, or record -- COMMAND",
    ),
    (&["stop", "destroy", "end", "quit", "reset"], "Ctrl-C ends a recording, and it is a program of its own: record"),
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
    (&["version"], "analyze --version"),
    (
        &["help", "usage", "commands", "reports", "examples", "man", "manual", "docs", "config", "options", "settings"],
        "analyze --help (man analyze)",
    ),
];

/// What to type for `word`, or for it and the `next` word, which is neither a report nor a file.
pub(crate) fn instead_of(word: &str, next: Option<&str>) -> Option<String> {
    let two = next.map(|next| format!("{word} {next}"));
    let known = two.and_then(|two| systape_cli::instead_of(REPORTS, &two));
    if let Some(text) = known.or_else(|| systape_cli::instead_of(REPORTS, word)) {
        let command = ["analyze ", "record "].iter().any(|start| text.starts_with(start));
        return Some(if command { format!("type '{text}'") } else { text.to_owned() });
    }
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
            let named = crate::cli::views::named(words.clone()).is_some_and(|(_, count)| count == words.count());
            assert!(!named, "{word} is a report");
        }
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}

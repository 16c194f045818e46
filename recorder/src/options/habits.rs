//! What fingers type that know strace, perf and the bcc tools: options that are not `record`'s, with what to type instead.

use clap::CommandFactory;

use crate::options::args::Args;

/// Options, and what does here what they do there.
const HABITS: &systape_abi::Habits = &[
    (&["-c"], "--freq HZ samples by time (-c of perf); sums are made from the tape: 'analyze -s' (-c of strace)"),
    (&["-S", "--summary", "--summary-only", "--with-summary"], "sums are made from the tape: 'analyze -s'"),
    (
        &["-w", "--summary-wall-clock"],
        "sums are made from the tape, by the time calls took: 'analyze -s'; -o FILE names the tape (-w of sysdig)",
    ),
    (&["-k", "--stack-trace", "--stack-traces"], "stacks are recorded with -g, or --call-graph dwarf"),
    (
        &["-r", "--relative-timestamps", "--timestamps", "--absolute-timestamps"],
        "times are always recorded: 'analyze' prints them since the start, 'analyze --clock wall' as times of day",
    ),
    (&["-T", "--syscall-times"], "how long calls took is always recorded; analyze prints it"),
    (
        &["-z", "--successful-only", "--status"],
        "all calls are recorded; --failure stores only those that fail; a tape is always compressed",
    ),
    (&["-Z"], "it is --failure here"),
    (
        &[
            "-xx",
            "-X",
            "-N",
            "--no-abbrev",
            "--abbrev",
            "--raw",
            "--read",
            "--write",
            "--columns",
            "--strings-in-hex",
            "--const-print-style",
            "--syscall-number",
            "--arg-names",
            "--decode-pids",
            "-Y",
        ],
        "it says how lines look; see 'analyze --help'",
    ),
    (&["-i", "--instruction-pointer"], "stacks are recorded with -g; --no-inherit leaves out children (as -i of perf)"),
    (&["-x"], "failed calls alone: --failure (as -x of opensnoop); how lines look: 'analyze --help'"),
    (&["-O", "--file", "--out", "--output-file"], "the tape is named by -o FILE"),
    (
        &["--process", "--proc", "--exe", "--program", "--cmd", "--app", "--thread-name"],
        "threads by name: --comm NAME; a process: -p PID",
    ),
    (&["--command"], "the command stands behind all options: record -- ls -l"),
    (
        &["--children", "--descendants", "--follow"],
        "children from now on are followed; with -p, those that run already: --tree",
    ),
    (&["--service", "--systemd"], "it is --unit NAME here"),
    (&["--docker", "--container-id", "--container-name"], "it is --container NAME here"),
    (&["--namespace"], "--pod NAMESPACE/NAME chooses a pod; 'analyze states --by pod' has all, on a tape of -a"),
    (&["--system", "--system-wide"], "it is -a here"),
    (
        &["--events", "--syscalls", "--syscall", "--calls", "--tracepoint"],
        "calls and tracepoints: -e read,write or -e 'CATEGORY:*'; families of events: --families sched,block",
    ),
    (
        &["--slower", "--min-duration", "--threshold", "--longer-than", "--min-latency"],
        "--duration TIME stores calls that take longer, --slow read=5ms,... by call",
    ),
    (
        &["--errors", "--error", "--fail", "--failures", "--only-errors"],
        "--failure stores only calls that fail, --errno ENOENT,... those with these errors",
    ),
    (&["--trigger", "--when"], "it is --on TRIGGER here, with --last TIME"),
    (
        &["--flight-recorder", "--daemon", "--background"],
        "--last TIME keeps the past in memory until --on TRIGGER; a service or '&' runs it in the background",
    ),
    (&["--max-files", "--files"], "--keep N tapes of --rotate, --max-tapes N of --last"),
    (&["--compress", "--gzip", "--zstd", "--compression-level"], "a tape is always compressed"),
    (&["--anonymize", "--anonymise", "--scrub", "--mask"], "it is --redact paths, strings or all"),
    (&["--append", "--overwrite-file"], "an existing tape is kept as FILE.old"),
    (&["--stdout", "--pipe"], "-o - writes to standard output: record -o - ... | analyze -"),
    (&["--sudo"], "sudo record -u USER ..., or sudo record -- setpriv --reuid USER COMMAND"),
    (&["--silent"], "it is --quiet here"),
    (&["--color", "--colour", "--no-color"], "it is an option of analyze"),
    (&["--stacks", "--stack", "--backtrace", "--callgraph"], "stacks are recorded with -g, or --call-graph dwarf"),
    (&["--kernel", "--kernel-stack"], "--kernel-stacks takes the kernel's part of stacks too"),
    (&["--frequency", "--hz", "--rate"], "it is --freq HZ here"),
    (&["--cpus"], "it is --cpu LIST here"),
    (&["--buffer-size"], "--buffer SIZE is memory for what waits for the disk, -m SIZE each ring"),
    (&["--dry-run", "--check", "--test"], "'record --for 1s -o /dev/null' tries it"),
    (&["--group", "--aio", "--exclude-perf", "--buildid-all", "--no-samples", "--vmlinux", "-N"], "perf alone has it"),
    (&["--seconds", "--interval"], "it is --for TIME here; a recording has no intervals: 'analyze rate' has times"),
    (&["-l"], "functions of the kernel: --kprobe NAME (-l of trace-cmd)"),
    (&["-n"], "threads by name: --comm NAME (as -n of opensnoop); 'analyze --format json' has the numbers of calls"),
    (&["-d", "-M"], "it is --for TIME here (as -d of opensnoop, -M of sysdig)"),
    (&["-U", "--print-uid"], "users are always recorded; 'analyze -s --by uid' has them"),
    (&["-R", "--raw-samples", "-W", "--timestamp", "--sample-cpu", "--no-buffering", "-B"], "it is always so here"),
    (
        &["--overwrite", "--switch-output", "--snapshot"],
        "--last TIME keeps the last minutes in memory until something happens; --rotate TIME|SIZE writes several tapes",
    ),
    (&["-P", "--trace-path"], "all paths are recorded; 'analyze -P PATH' lists the calls on one"),
    (&["-E"], "set it in front of the command: env NAME=VALUE record ..."),
    (
        &["-b", "--detach-on", "-I", "--interruptible", "--debug", "--daemonize", "--argv0", "--seccomp-bpf", "--kvm"],
        "strace alone has it",
    ),
    (&["--kill-on-exit"], "it is --kill here; strace alone has it by this name"),
    (&["-A", "--output-append-mode"], "a tape is written anew; an existing one is kept as FILE.old"),
    (
        &["-L", "--syscall-limit", "--max-events"],
        "--max-size SIZE or --for TIME end a recording; 'analyze --max-events' ends a listing",
    ),
    (
        &["--sched", "--off-cpu", "--offcpu"],
        "switches are recorded by default; 'analyze offcpu' and 'analyze sched' have their times",
    ),
    (
        &["--errno-summary", "--summary-mode", "--summary-sort-by", "--summary-columns"],
        "it is an option of 'analyze -s'",
    ),
    (&["-O", "--summary-syscall-overhead", "--tool_stats", "--stats"], "--self-stats prints what the recording costs"),
    (&["--signal"], "signals are always recorded; 'analyze kills' shows them"),
    (
        &["--filter"],
        "it stands behind a tracepoint's name: -e 'CATEGORY:NAME/FILTER/'; calls are chosen by -e, --failure, --errno and --duration",
    ),
    (
        &["-K", "--all-kernel", "--all-user", "--user-callchains", "--kernel-callchains"],
        "--kernel-stacks takes the kernel's part of stacks too",
    ),
    (&["--switch-on", "--switch-off", "--control"], "--delay TIME begins later, --for TIME ends a recording"),
    (&["--no-comm", "--comms", "-H", "--time-limit"], "see 'record --help' for the options there are"),
    (&["--no-syscalls"], "choose what is recorded: --families sched,block,signal,net,process"),
    (&["--pf", "--page-faults"], "page faults are recorded with --families fault"),
    (&["--with-hits"], "see 'analyze info' for what was recorded"),
    (&["--filter-pids", "--exclude-pid"], "others cannot be left out while recording; 'analyze -p' chooses"),
    (&["--sort", "--by", "--top", "--stdio", "--format", "--json"], "it is an option of analyze"),
    (
        &[
            "--bpf-summary",
            "--libtraceevent",
            "--libtraceevent_print",
            "--kernel-syscall-graph",
            "--map-dump",
            "--print-sample",
            "--no-buildid",
            "--tail-synthesize",
            "--proc-map-timeout",
            "--per-thread",
            "--clockid",
            "--realtime",
        ],
        "perf alone has it",
    ),
    (&["--max-stack", "--min-stack"], "whole stacks are recorded; 'analyze' has the option"),
    (&["--inject", "--fault"], "nothing is changed in what is recorded; strace -e inject= does that"),
    (&["--count"], "--freq HZ samples by time"),
    (&["-j", "--branch-any", "--weight"], "perf alone has it"),
    (&["--switch-events"], "switches are recorded by default (--families sched)"),
    (&["--cgroups", "--cgroupmap"], "it is -G CGROUP here"),
    (&["--ppid"], "-p records children too"),
    (&["--name"], "threads by name: --comm NAME"),
    (&["--timeout", "--time", "--duration-of-trace", "--until", "--end"], "it is --for TIME here"),
    (&["--begin", "--start-delay"], "--delay TIME begins later"),
    (&["--limit", "--size", "--max-bytes"], "--max-size SIZE or --for TIME end a recording"),
    (
        &["--ring-buffer", "--memory-limit", "--mem-limit", "--buffers"],
        "--buffer SIZE is memory for what waits for the disk, -m SIZE each ring, --ring SIZE that of --last",
    ),
    (&["--past", "--window", "--history"], "it is --last TIME here"),
    (&["--split"], "it is --rotate TIME|SIZE here"),
    (
        &["--no-sched", "--no-net", "--no-block", "--only", "--sched-only", "--io", "--network", "--net", "--iowait"],
        "families are chosen: --families syscall,sched,block,net",
    ),
    (
        &["--locks", "--lock"],
        "--families lock records waits for locks of the kernel; 'analyze locks' has futexes, which are calls",
    ),
    (
        &["--memory", "--mem", "--faults"],
        "page faults are recorded with --families fault; -e mmap,munmap,brk are calls",
    ),
    (&["--dns", "--tls"], "it is --probe dns or --probe tls"),
    (
        &["--funcs", "--func", "--function"],
        "functions: --kprobe NAME of the kernel, --uprobe FILE:FUNCTION of programs",
    ),
    (&["--tp", "--tracepoints"], "tracepoints: -e 'CATEGORY:NAME'"),
    (
        &["--sampling", "--cpu-profile", "--profile", "--flamegraph"],
        "-F 99 samples each CPU, with stacks; 'analyze callgraph --svg FILE' draws them",
    ),
    (
        &["--user-stacks", "--no-stacks", "--user-only", "--kernel-only", "--exclude-kernel", "--stack-size"],
        "stacks are recorded with -g or --call-graph dwarf,SIZE, the kernel's part with --kernel-stacks",
    ),
    (
        &["--python", "--java", "--jit", "--node"],
        "names of code made at run time are read from /tmp/perf-PID.map; static probes: --usdt FILE:PROVIDER:NAME",
    ),
    (&["--strings", "--no-strings"], "-s N keeps N bytes of each string; --redact strings none"),
    (&["--privacy", "--secrets"], "it is --redact paths, strings or all"),
    (&["--tag", "--comment", "--title", "--note", "--host", "--description"], "it is --label KEY=VALUE here"),
    (
        &["--cwd", "--chdir", "--shell", "--nice"],
        "the shell does that: record -- sh -c 'cd DIR && COMMAND', record -- nice COMMAND",
    ),
    (&["--run-as", "--setuid", "--unprivileged"], "sudo record -- setpriv --reuid USER COMMAND"),
    (&["--pidfile", "--pid-file"], "-p $(cat FILE)"),
    (&["--attach-all"], "it is -a here"),
    (&["--cpu-list"], "it is --cpu LIST here"),
    (&["--slice"], "--unit NAME.slice chooses a slice"),
    (&["--image"], "--container NAME chooses a container; 'analyze states --by container' has all, on a tape of -a"),
    (
        &["--pid-namespace", "--netns", "--gid", "--exclude-comm", "--not", "--tgid"],
        "targets are -p, -t, -u, --comm, -G, --unit, --container and --pod; 'analyze' chooses among all of -a",
    ),
    (
        &["--port", "--ip", "--path", "--host-name"],
        "calls are chosen by -e, and by what they are about when the tape is read: 'analyze -P PATH', 'analyze net'",
    ),
    (&["--min"], "--duration TIME stores calls that take longer"),
    (&["--errors-only"], "--failure stores only calls that fail, --errno ENOENT,... those with these errors"),
    (&["--success"], "all calls are recorded; --failure stores only those that fail"),
    (
        &["--list", "--list-events", "--list-families", "--list-probes"],
        "--families has its names in 'record --help'; tracepoints: ls /sys/kernel/tracing/events",
    ),
    (&["--inherit", "--follow-exec"], "it is always so here; --no-inherit leaves new processes out"),
    (&["--exec"], "the command stands behind all options: record -- ls -l"),
    (&["--max-cpu", "--overhead"], "--self-stats prints what the recording costs; --duration and -e make it less"),
    (&["--fsync"], "it is --sync end|TIME|no here"),
    (&["--wait", "--exit-code", "--stop-on-exit"], "it ends with the command, and with its status"),
    (&["--level"], "a tape is always compressed"),
    (&["--encrypt", "--sign", "--upload"], "a tape is one file: record -o - ... | PROGRAM"),
];

/// Words where a command stands, that are none.
const NO_COMMANDS: &systape_abi::Habits = &[
    (
        &[
            "report", "script", "annotate", "top", "sched", "summary", "kills", "info", "stat", "show", "dump", "why",
            "view", "stats", "files", "block", "net", "locks", "analyze", "diff",
        ],
        "reports are made by 'analyze'",
    ),
    (
        &[
            "execsnoop",
            "opensnoop",
            "biosnoop",
            "biolatency",
            "tcplife",
            "syscount",
            "filetop",
            "killsnoop",
            "statsnoop",
            "runqlat",
            "cpudist",
            "offcputime",
            "gethostlatency",
        ],
        "record -a --for 10s, then 'analyze' and that word",
    ),
    (
        &[
            "profile",
            "tcpconnect",
            "tcpaccept",
            "memleak",
            "funccount",
            "funclatency",
            "stackcount",
            "biotop",
            "tcptop",
            "iotop",
            "tcpdump",
        ],
        "record -a --for 10s, then 'analyze' and that word says what to type",
    ),
    (&["cd", "export", "alias", "source"], "the shell has it: record -- sh -c 'cd DIR && COMMAND'"),
    (&["trace-cmd", "lttng", "bpftrace", "sysdig"], "leave it out: record -a, or record ls -l"),
    (&["pid"], "record -p PID"),
    (&["pause", "resume", "reload"], "a recording ends by Ctrl-C or --for TIME; --delay TIME begins later"),
    (&["check", "doctor", "setup"], "'record --for 1s -o /dev/null' tries it"),
    (&["probe"], "probes are options: --uprobe, --kprobe, --usdt, --probe"),
    (&["dwarf", "fp", "lbr"], "stacks: record --call-graph dwarf -- COMMAND (-g is by frame pointers)"),
    (&["attach"], "record -p PID"),
    (&["version"], "record --version"),
    (&["daemon", "service"], "record --last 60s --on kill --dir DIR keeps the past in memory"),
    (&["snapshot", "dump-now"], "'record trigger' asks a running flight recorder for a tape"),
    (&["enable-event", "enable"], "events are chosen by -e and --families"),
    (&["trace", "record", "strace", "perf", "run", "exec"], "leave it out: record ls -l"),
    (&["help"], "record --help"),
    (&["start", "create", "on"], "record -a, or -p PID; without a command it records until Ctrl-C or --for TIME"),
    (&["stop", "off", "end", "destroy"], "Ctrl-C ends a recording, as does kill -INT with its process id"),
    (&["list"], "'analyze list' has the tapes of a directory"),
];

/// What `word`, where the command stands and is none, may be meant to be: what to type for it.
pub(crate) fn no_command(word: &str) -> Option<String> {
    if word.parse::<u64>().is_ok() {
        return Some(format!("--for {word}s ends a recording after {word} s, -p {word} records a process"));
    }
    if let Some(name) = word.strip_prefix(['–', '—']) {
        let hyphens = if name.chars().count() > 1 { "--" } else { "-" };
        return Some(format!(
            "it begins with a dash: an option has hyphens: {hyphens}{}",
            name.trim_start_matches('-')
        ));
    }
    if word.ends_with(".tape") {
        return Some(format!("a tape is read by: analyze {word}"));
    }
    if word.contains([' ', '|', '>', ';', '&']) {
        return Some(format!("a line of the shell is recorded by: record -- sh -c '{}'", word.replace('\'', "'\\''")));
    }
    if word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }) {
        return Some(format!("a variable is set by env: record -- env {word} COMMAND"));
    }
    let fields = ["proc.", "evt.", "fd.", "thread.", "user.", "container."];
    if fields.iter().any(|field| word.starts_with(field)) {
        return Some("filters are options: --comm NAME, -p PID, -u USER, -e CALL, --failure, --duration".to_owned());
    }
    systape_abi::instead_of(NO_COMMANDS, word).map(str::to_owned)
}

/// Kinds of probes as bpftrace names them before a colon, the option that records them, and whether it is the return that is asked for.
const PROBES: &[(&[&str], &str, bool)] = &[
    (&["usdt", "U"], "--usdt", false),
    (&["uprobe", "u"], "--uprobe", false),
    (&["uretprobe", "ur"], "--uprobe", true),
    (&["kprobe", "k", "fentry", "kfunc", "f"], "--kprobe", false),
    (&["kretprobe", "kr", "fexit", "kretfunc", "fr"], "--kprobe", true),
];

/// What to type for `expression`, an event of -e that is a probe of bpftrace: None = it is none.
pub(crate) fn probe(expression: &str) -> Option<String> {
    let (kind, place) = expression.trim().split_once(':')?;
    let (_, option, returns) = PROBES.iter().find(|(kinds, _, _)| kinds.contains(&kind))?;
    let (result, why) = match returns {
        true if !place.contains("->") => ("->int", ", which records a call with its result when it returns"),
        _ => ("", ""),
    };
    Some(format!(
        "-e {kind}:{place}: functions and static probes have options of their own: {option} '{place}{result}'{why}"
    ))
}

/// Events of perf that are no calls here, and what to type.
const EVENTS: &systape_abi::Habits = &[
    (
        &["page-faults", "faults", "minor-faults", "major-faults", "fault"],
        "page faults are recorded by --families fault",
    ),
    (
        &["context-switches", "cs", "cpu-migrations", "migrations", "sched"],
        "-e 'sched:*' takes them; they are recorded by default (--families sched)",
    ),
    (&["block", "disk"], "-e 'block:*' takes disk I/O; it is recorded by default (--families block)"),
    (&["exec", "spawn"], "-e execve,execveat takes programs that are started, -e %process processes"),
    (&["io", "rw"], "-e 'read*,write*,pread*,pwrite*' takes reads and writes; I/O of disks is recorded by default"),
    (&["fs"], "-e %file takes calls with a path, -e %desc those on descriptors"),
    (
        &["help", "list"],
        "names of calls, groups (file network process ...), and tracepoints: ls /sys/kernel/tracing/events",
    ),
    (&["tcp", "sock"], "-e 'sock:*' takes connections; they are recorded by default (--families net)"),
];

/// What to type for `expression`, an event of perf. None: it is none of these.
pub(crate) fn event(expression: &str) -> Option<String> {
    let expression = expression.trim();
    let known = systape_abi::instead_of(EVENTS, expression).map(str::to_owned);
    let signal = expression.starts_with("SIG") && expression.len() > 4;
    let signal = signal.then(|| "signals are always recorded; 'analyze kills' shows them".to_owned());
    let behind = ["tracepoint:", "t:", "probe:"].iter().find_map(|kind| expression.strip_prefix(kind));
    let behind = behind.filter(|name| name.contains(':')).map(|name| format!("a tracepoint is named alone: -e {name}"));
    let parts: Vec<&str> = expression.split([' ', '|', ';']).filter(|part| !part.is_empty()).collect();
    let several = parts.len() > 1 && !expression.contains([':', '/', '{', ',']);
    let several = several.then(|| format!("calls are separated by commas: -e {}", parts.join(",")));
    let call = || systape_abi::Selection::parse(&[expression]).is_ok();
    let family = expression.split('_').next().filter(|family| ["sched", "block"].contains(family));
    let family = family.filter(|family| *family != expression && !call());
    let family = family.map(|family| format!("an event is named with its category: -e {family}:{expression}"));
    let text = known.or(signal).or(behind).or(several).or(family)?;
    Some(format!("-e {expression}: {text}"))
}

/// What is wrong with `word`, an option that is none of `record`'s: what to type instead, as far as that is known.
pub(crate) fn unknown(word: &str) -> String {
    let command = Args::command();
    let known = |letter: char| command.get_arguments().any(|arg| arg.get_short() == Some(letter));
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let instead = systape_abi::instead_of(HABITS, name);
    // several letters in one word: the first that is none
    let letters = name.strip_prefix('-').filter(|letters| instead.is_none() && !letters.starts_with('-'));
    match letters.and_then(|letters| letters.chars().find(|letter| !known(*letter))) {
        Some(letter) if name.chars().count() > 2 => unknown(&format!("-{letter}")),
        _ => systape_cli::unknown(word, &command, instead),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use systape_cli::{Stop, words};

    use super::*;
    use crate::commands::cli;
    use crate::config::{RecordConfig, find_command};

    /// What keeps a line from recording; None: nothing does.
    fn refused(line: &str) -> Option<String> {
        let line = line.replace("PID", &std::process::id().to_string());
        let args = match cli::parse(words(&line).into_iter().map(OsString::from)) {
            Ok(args) => args,
            Err(Stop::Usage(text) | Stop::Printed(text)) => return Some(text),
        };
        match RecordConfig::new(args) {
            Err(error) => Some(format!("{error:#}")),
            Ok(config) if config.command.is_empty() => None,
            Ok(config) => find_command(&config.command).err().map(|error| error.message),
        }
    }

    /// tests/lines/record.txt: `LINE => ok`, or `LINE => 2 TEXT`.
    #[test]
    fn lines_that_people_type_record_or_are_refused_with_what_to_type() {
        let all: Vec<_> = include_str!("../../tests/lines/record.txt")
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.rsplit_once(" => ").unwrap())
            .collect();
        assert!(all.len() > 250, "{}", all.len());
        let mut wrong = Vec::new();
        for (line, expected) in all {
            let (line, got) = (line.trim(), refused(line.trim()));
            match (expected.trim().strip_prefix('2'), got) {
                (None, None) => {}
                (Some(says), Some(why)) if why.contains(says.trim()) && !why.ends_with(':') => {}
                (_, got) => wrong.push(format!("{line}\n  not {expected}: {got:?}")),
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn lines_of_a_shell_have_a_hint_each() {
        let said = |word: &str| no_command(word).unwrap_or_default();
        assert_eq!(said("ls | wc -l"), "a line of the shell is recorded by: record -- sh -c 'ls | wc -l'");
        assert_eq!(said("FOO=1"), "a variable is set by env: record -- env FOO=1 COMMAND");
        assert_eq!(said("help"), "record --help");
        assert_eq!((no_command("a-b=c"), no_command("lss")), (None, None));
    }

    #[test]
    fn no_hint_is_about_an_option_there_is() {
        let command = Args::command();
        let known = |name: &str| {
            command.get_arguments().any(|arg| {
                let short = arg.get_short().is_some_and(|short| name == format!("-{short}"));
                short
                    || arg
                        .get_long_and_visible_aliases()
                        .is_some_and(|longs| longs.iter().any(|long| name == format!("--{long}")))
            })
        };
        for name in HABITS.iter().flat_map(|(names, _)| *names) {
            assert!(!known(name), "{name} is an option");
        }
    }
}

//! What fingers type that know strace, perf, the bcc tools or sysdig: words that mean the same here are rewritten, all others are
//! refused with what to type instead. One table for all of them; nothing of it knows a tape.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

use crate::views;

/// What a word of a habit comes to.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Nothing: it is so without it.
    Always,
    /// These words.
    Type(&'static [&'static str]),
    /// This option, with the value that was given.
    Named(&'static str),
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

use Does::{Always, Named, Say, Type};

/// Calls are listed here.
const LISTS: &[&str] = &["", "with-summary"];

/// The first row that fits counts.
const HABITS: &[Habit] = &[
    // what is always so
    of(&["callgraph"], &["-f"], Say("--folded prints one stack a line")),
    of(LISTS, &["-v", "--verbose", "--no-abbrev"], Always),
    of(&["callgraph"], &["-g", "--children"], Always),
    all(&["-f", "-ff", "--follow-forks", "--force", "--output-separately"], Always),
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
        &["-tt", "-ttt", "--absolute-timestamps", "--timestamps"],
        Say("times of day are in --format json and csv; -T prints CLOCK_MONOTONIC"),
    ),
    all(
        &["-r", "--relative-timestamps", "--deltatime"],
        Say(
            "times between calls are not printed; times are since the start of the recording. A tape is named without an option, or with -i",
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
    all(&["-o", "--output", "--log-file"], Say("the answer goes to standard output: analyze ... > FILE")),
    // which calls
    all(&["-z", "--successful-only"], Say("calls that succeed cannot be chosen; --failure lists those that fail")),
    all(&["--status"], Say("--failure lists calls that fail")),
    all(
        &["--errno", "--filter-errno"],
        Say("-s --errno-summary counts each errno; 'analyze -s --by errno,syscall' adds up by it"),
    ),
    all(
        &["-P", "--trace-path", "--path"],
        Say("'analyze -s --by file' adds up calls by path, 'analyze files' shows what was read and written"),
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
    all(&["--summary-sort-by"], Say("the summary has the most time first; --format csv can be sorted by any column")),
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
    all(&["--hist", "-D", "--dist"], Say("'analyze runqlat' and 'analyze block --hist' print histograms")),
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
    all(&["-m", "--mmap-pages", "--buffer-size"], Say("it is an option of record")),
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

/// Options whose value is checked here, as what is typed after them by habit is something else: ids, and the sentence.
const VALUES: &[(&str, &str)] = &[
    ("pids", "-p takes numbers of processes, such as 2214; --comm=NAME chooses by name"),
    ("tids", "-t takes numbers of threads, such as 2215; times of day are in --format json and csv (strace -t)"),
    ("wakers", "--wakers takes the number of a process, such as 2214"),
    ("cpus", "-C takes CPUs, such as 0-3,7; the listing with the summary is -S (strace -C)"),
];

/// Columns by which strace and perf sort.
const SORTS: &[&str] = &[
    "time",
    "calls",
    "count",
    "errors",
    "name",
    "nothing",
    "none",
    "total-time",
    "min-time",
    "max-time",
    "avg-time",
    "wall",
];

/// Programs and words whose place is taken by a report: what to type.
const REPORTS: &systape_cli::Habits = &[
    (&["opensnoop", "opens"], "analyze files --opens"),
    (&["execsnoop", "execs", "exitsnoop"], "analyze exec"),
    (&["killsnoop", "sigsnoop", "signals", "signal"], "analyze kills --all"),
    (&["oomkill", "killed", "who"], "analyze kills"),
    (&["biosnoop", "bio", "disk", "io", "blktrace", "iosnoop"], "analyze block"),
    (&["biotop", "iotop", "topprocs_file"], "analyze block --top"),
    (&["biolatency"], "analyze block --hist"),
    (&["filetop", "topfiles_bytes", "topfiles_time", "fileslower", "filelife"], "analyze files"),
    (&["statsnoop"], "analyze -e %stat"),
    (&["syscount", "topscalls", "topscalls_time", "funccount", "stat", "stats", "count", "top"], "analyze -s"),
    (&["errors", "errno", "topfiles_errors", "topprocs_errors"], "analyze --errno-summary"),
    (&["offcputime", "offwaketime", "wakeuptime"], "analyze callgraph --of offcpu"),
    (&["profile", "report", "flamegraph", "flame", "stacks", "stackcount", "annotate"], "analyze callgraph"),
    (&["runqlen", "runqslower", "latency", "cpudist", "topprocs_cpu"], "analyze sched latency"),
    (&["timehist"], "analyze sched timehist"),
    (
        &["tcplife", "tcpconnect", "tcpaccept", "tcptracer", "netstat", "ss", "topconns", "connections", "network"],
        "analyze net",
    ),
    (&["tcpstates"], "analyze net --events"),
    (&["ps", "pstree", "tree", "processes", "tasks", "topprocs"], "analyze exec --tree"),
    (
        &[
            "trace",
            "script",
            "list",
            "ls",
            "show",
            "dump",
            "print",
            "cat",
            "read",
            "replay",
            "listing",
            "strace",
            "spy_users",
        ],
        "analyze FILE",
    ),
    (&["header", "evlist", "buildid-list", "version"], "analyze info"),
    (&["verify", "fsck", "test"], "analyze check"),
    (&["archive", "inject", "cut"], "analyze repair IN OUT, analyze redact IN OUT"),
    (&["record"], "record -- COMMAND (a program of its own)"),
];

/// What to type for `word`, which is neither a report nor a file.
pub fn instead_of(word: &str) -> Option<String> {
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

/// How an option takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// Only behind `=`.
    Equals,
}

/// The options there are.
struct Options<'a>(&'a Command);

impl Options<'_> {
    fn takes(arg: &Arg) -> Takes {
        match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
            (false, _) => Takes::Nothing,
            (true, false) => Takes::Value,
            (true, true) => Takes::Equals,
        }
    }

    fn long(&self, name: &str) -> Option<(&str, Takes)> {
        if name == "version" {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }

    fn short(&self, letter: char) -> Option<(&str, Takes)> {
        if letter == 'V' {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| arg.get_short() == Some(letter);
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }
}

/// One word as it will be read.
#[derive(Debug)]
struct Word {
    text: OsString,
    /// It stands for itself, not for an option or its value.
    plain: bool,
    /// Plain, and behind an option that may mean it: that option.
    behind: Option<&'static str>,
}

/// Reads the words of one command line.
struct Walk<'a> {
    options: Options<'a>,
    view: &'a str,
    exists: &'a dyn Fn(&OsStr) -> bool,
    words: Vec<Word>,
}

type Rest<'a> = std::iter::Peekable<std::slice::Iter<'a, OsString>>;

impl Walk<'_> {
    fn push(&mut self, text: impl Into<OsString>) {
        self.words.push(Word { text: text.into(), plain: false, behind: None });
    }

    fn plain(&mut self, text: &OsStr, behind: Option<&'static str>) {
        self.words.push(Word { text: text.to_owned(), plain: true, behind });
    }

    /// Reads `words`, the program's name left out.
    fn run(&mut self, words: &[OsString]) -> Result<(), String> {
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            match word.to_str() {
                Some("--") => {
                    self.push("--");
                    for word in rest.by_ref() {
                        self.push(word);
                    }
                }
                Some(text) if text.starts_with("--") => self.long(text, &mut rest)?,
                Some(text) if text.len() > 1 && text.starts_with('-') => self.cluster(text, &mut rest)?,
                _ => self.plain(word, None),
            }
        }
        Ok(())
    }

    fn long(&mut self, text: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if let Some(does) = self.habit(name, true) {
            return self.apply(name, does, value, rest);
        }
        let Some((id, takes)) = self.options.long(name.trim_start_matches('-')) else {
            return match self.habit(name, false) {
                Some(does) => self.apply(name, does, value, rest),
                None => {
                    self.push(text);
                    Ok(())
                }
            };
        };
        let id = id.to_owned();
        self.push(text);
        match (takes, value) {
            (Takes::Value, Some(value)) => check(&id, value.as_ref())?,
            (Takes::Value, None) => self.value(&id, rest)?,
            (Takes::Equals, None) => self.spaced(&id, rest),
            _ => {}
        }
        Ok(())
    }

    /// The next word is the value of the option `id`.
    fn value(&mut self, id: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        if let Some(value) = rest.next() {
            check(id, value)?;
            self.push(value);
        }
        Ok(())
    }

    /// The next word may be the value of the option `id`, which is written with `=`.
    fn spaced(&mut self, id: &str, rest: &mut Rest<'_>) {
        let Some(next) = rest.peek().and_then(|next| next.to_str()).filter(|next| !next.starts_with('-')) else {
            return;
        };
        let means = match id {
            "call_graph" => ["fp", "dwarf", "lbr"].contains(&next.split(',').next().unwrap_or_default()),
            "top" => next.bytes().all(|b| b.is_ascii_digit()) && !(self.exists)(next.as_ref()),
            "cpu" => is_cpus(next) && !(self.exists)(next.as_ref()),
            "comm" => {
                self.plain(next.as_ref(), Some("comm"));
                rest.next();
                return;
            }
            _ => false,
        };
        if means && let Some(option) = self.words.last_mut() {
            option.text.push("=");
            option.text.push(next);
            rest.next();
        }
    }

    /// `-abc`: habits as a whole, then letter by letter.
    fn cluster(&mut self, text: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        let whole = self.habit(text, true).or_else(|| text.get(2..).and_then(|_| self.habit(text, false)));
        if let Some(does) = whole {
            return self.apply(text, does, None, rest);
        }
        let letters: Vec<(usize, char)> = text.char_indices().skip(1).collect();
        for (at, letter) in letters {
            let one = format!("-{letter}");
            if let Some(does) = self.habit(&one, true) {
                self.apply(&one, does, None, rest)?;
                continue;
            }
            let Some((id, takes)) = self.options.short(letter) else {
                match self.habit(&one, false) {
                    Some(does) => self.apply(&one, does, None, rest)?,
                    None => self.push(one),
                }
                continue;
            };
            let id = id.to_owned();
            if takes == Takes::Nothing {
                self.push(one);
                self.after_flag(letter, rest)?;
                continue;
            }
            let value = &text[at + letter.len_utf8()..];
            self.push(format!("{one}{value}"));
            match value.strip_prefix('=').unwrap_or(value) {
                "" => self.value(&id, rest)?,
                value => check(&id, value.as_ref())?,
            }
            break;
        }
        Ok(())
    }

    /// Words that strace and sysdig put behind what is a flag here.
    fn after_flag(&self, letter: char, rest: &mut Rest<'_>) -> Result<(), String> {
        let Some(next) = rest.peek().and_then(|next| next.to_str()) else { return Ok(()) };
        let is_file = (self.exists)(next.as_ref());
        match letter {
            's' if !is_file && next.bytes().all(|byte| byte.is_ascii_digit()) => Err(format!(
                "-s {next}: -s is the summary; strings are as long as they were recorded (record -s {next})"
            )),
            'S' if !is_file && SORTS.contains(&next) => {
                Err(format!("-S {next}: -S is the listing with the summary; -s alone has the most time first"))
            }
            _ => Ok(()),
        }
    }

    /// What `word` means by habit. `first`: before it is looked for among the options.
    fn habit(&self, word: &str, first: bool) -> Option<Does> {
        let fits = |habit: &&Habit| {
            habit.words.contains(&word) && if first { habit.views.contains(&self.view) } else { habit.views.is_empty() }
        };
        HABITS.iter().find(fits).map(|habit| habit.does)
    }

    fn apply(&mut self, word: &str, does: Does, value: Option<&str>, rest: &mut Rest<'_>) -> Result<(), String> {
        match does {
            Always => {}
            Type(words) => words.iter().for_each(|word| self.push(*word)),
            Named(option) => {
                let value = match value {
                    Some(value) => OsString::from(value),
                    None => rest.next().cloned().ok_or_else(|| format!("{word} needs a value; it is {option} here"))?,
                };
                if let Some((id, _)) = self.options.long(option.trim_start_matches('-')) {
                    check(id, &value)?;
                }
                let mut text = OsString::from(option);
                text.push("=");
                text.push(value);
                self.push(text);
            }
            Say(sentence) => return Err(systape_cli::unknown(word, self.options.0, Some(sentence))),
        }
        Ok(())
    }

    /// Positions of words that stand for themselves, and are not what an option means.
    fn plains(&self) -> Vec<usize> {
        (0..self.words.len()).filter(|at| self.words[*at].plain && self.words[*at].behind.is_none()).collect()
    }

    fn text(&self, at: usize) -> &str {
        self.words[at].text.to_str().unwrap_or_default()
    }

    /// `--comm NAME`: the word behind it is the name, unless it is the tape or the report.
    fn comms(&mut self) {
        let input = self.words.iter().any(|word| {
            !word.plain && word.text.to_str().is_some_and(|text| text.starts_with("-i") || text.starts_with("--input"))
        });
        for at in 0..self.words.len() {
            if self.words[at].behind.is_none() {
                continue;
            }
            let others = self.plains();
            let texts: Vec<&str> = others.iter().map(|at| self.text(*at)).collect();
            let named = (0..texts.len()).find_map(|at| views::named(texts[at..].iter().copied()));
            let rest = texts.len() - named.map_or(0, |(_, words)| words);
            let word = self.text(at);
            let report = named.is_none() && views::named(std::iter::once(word)).is_some();
            let tape = !input
                && rest == 0
                && (word.contains('/') || word.ends_with(".tape") || (self.exists)(&self.words[at].text));
            if report || tape {
                self.words[at].behind = None;
            } else {
                let name = std::mem::take(&mut self.words[at].text);
                let mut option = OsString::from("--comm=");
                option.push(name);
                self.words[at] = Word { text: option, plain: false, behind: None };
                // the bare one in front of it
                self.words[at - 1].text = OsString::new();
            }
        }
        self.words.retain(|word| !word.text.is_empty() || word.plain);
    }

    /// `analyze t.tape kills`: the report's name goes to the front.
    fn report_first(&mut self) {
        let plains = self.plains();
        let texts: Vec<&str> = plains.iter().map(|at| self.text(*at)).collect();
        let named = (0..texts.len()).find_map(|at| Some((at, views::named(texts[at..].iter().copied())?.1)));
        if let Some((first @ 1.., count)) = named
            && texts.first() != Some(&"help")
        {
            for (to, from) in plains[first..first + count].iter().enumerate() {
                let word = self.words.remove(*from);
                self.words.insert(to, word);
            }
        }
    }
}

/// Whether it is a list of numbers.
fn is_numbers(text: &str) -> bool {
    text.split(',').all(|number| number.trim().parse::<u32>().is_ok())
}

/// Whether it is a list of CPUs.
fn is_cpus(text: &str) -> bool {
    text.split(',')
        .all(|part| part.split('-').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())))
}

/// Refuses a value that the option `id` cannot have.
fn check(id: &str, value: &OsStr) -> Result<(), String> {
    let Some((_, sentence)) = VALUES.iter().find(|(option, _)| *option == id) else { return Ok(()) };
    let text = value.to_str().unwrap_or_default();
    let fits = if id == "cpus" { is_cpus(text) } else { is_numbers(text) };
    if fits { Ok(()) } else { Err(format!("'{}': {sentence}", crate::words::escaped(value.as_encoded_bytes()))) }
}

/// The words as `analyze` reads them; the first is the program's name. `options` are those of the report named `view`; `exists` says
/// whether there is a file of that name.
///
/// # Errors
/// One of them means something that is done in another way: how.
pub fn settled(
    words: &[OsString],
    view: &str,
    options: &Command,
    exists: &dyn Fn(&OsStr) -> bool,
) -> Result<Vec<OsString>, String> {
    let Some((program, typed)) = words.split_first() else { return Ok(Vec::new()) };
    let mut walk = Walk { options: Options(options), view, exists, words: Vec::new() };
    walk.run(typed)?;
    walk.comms();
    walk.report_first();
    Ok(std::iter::once(program.clone()).chain(walk.words.into_iter().map(|word| word.text)).collect())
}

/// The name of the report that `words` choose, as far as that shows before they are read: the first of its names among them, or a
/// summary's letter.
pub fn view(words: &[OsString]) -> &'static str {
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

//! Why an answer is empty: which filter left nothing, and what the tape has instead.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use systape_abi::Abi;
use systape_format::model::{Family, Task};
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::reports::instant::length;
use systape_answers::render::form::Format;
use systape_answers::render::table::seconds;
use systape_events::families;
use systape_events::question::Question;
use systape_events::values::timespec::Edge;
use systape_events::values::words::escaped;

/// Most names and numbers that are examined: with more of them the message does not list what is absent.
const MOST: usize = 65_536;
/// Views whose rows are of calls.
const OF_CALLS: &[&str] = &["", "summary", "with-summary", "files", "diff"];
/// Most names in a message.
const LISTED: usize = 5;

/// Tasks and names on a tape, as far as its segments and checkpoints have them.
#[derive(Debug, Default)]
struct There {
    pids: BTreeSet<u32>,
    tids: BTreeSet<u32>,
    uids: BTreeSet<u32>,
    comms: BTreeSet<Vec<u8>>,
    cgroup_ids: BTreeSet<u64>,
    calls: BTreeSet<(u8, u32)>,
    /// The longest call, ns; None: not known.
    longest: Option<u64>,
    failures: bool,
    /// Everything could be read.
    whole: bool,
}

impl There {
    fn of(tape: &Tape) -> Self {
        let mut there = Self { longest: Some(0), whole: tape.findings().is_empty(), ..Self::default() };
        let first_and_last = BTreeSet::from([0, tape.checkpoints().saturating_sub(1)]);
        for at in first_and_last.into_iter().filter(|at| *at < tape.checkpoints()) {
            match tape.checkpoint(at) {
                Ok(checkpoint) => checkpoint.tasks.iter().for_each(|task| there.task(task)),
                Err(_) => there.whole = false,
            }
        }
        for (at, info) in tape.segments().iter().enumerate() {
            match tape.segment(at).dict() {
                Ok(dict) => {
                    dict.tasks.iter().for_each(|task| there.task(task));
                    there.calls.extend(dict.calls.iter().map(|call| (call.abi, call.nr)));
                }
                Err(_) => there.whole = false,
            }
            there.longest = there.longest.filter(|_| info.max_dur != u64::MAX).map(|ns| ns.max(info.max_dur));
            there.failures |= info.failures > 0;
        }
        there
    }

    fn task(&mut self, task: &Task) {
        if self.tids.len() + self.comms.len() >= MOST {
            self.whole = false;
            return;
        }
        self.pids.insert(task.pid);
        self.tids.insert(task.tid);
        self.uids.insert(task.uid);
        self.cgroup_ids.insert(task.cgroup_id);
        if !self.comms.contains(&task.comm) {
            self.comms.insert(task.comm.clone());
        }
    }
}

/// `a, b and 3 more`.
fn some<T: ToString>(all: impl ExactSizeIterator<Item = T>) -> String {
    let more = all.len().saturating_sub(LISTED);
    let listed: Vec<String> = all.take(LISTED).map(|one| one.to_string()).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", listed.join(", "))
}

/// One filter that was given.
struct GivenFilter {
    /// As typed.
    text: String,
    /// Why no event on the tape passes it, regardless of the other filters.
    alone: Option<String>,
}

/// What a report has no row of, without any filter; all others: rows.
const ABSENT: &[(&[&str], &str)] = &[
    (&["", "summary", "with-summary", "syscount", "top", "rate"], "no call or event"),
    (&["block", "biosnoop", "biolatency"], "no I/O of a disk"),
    (&["net", "tcplife"], "no connection or socket"),
    (&["locks"], "no wait for a futex"),
    (&["files", "opensnoop", "statsnoop", "filetop"], "no call on a file"),
    (&["exec", "execsnoop"], "no start or end of a program"),
    (&["killsnoop"], "no call that sends a signal"),
    (&["kills"], "no signal"),
    (&["env"], "no variable"),
    (&["sched timehist", "sched latency", "runqlat", "cpudist"], "no run of a thread"),
    (&["offcpu", "offcputime", "states", "path"], "no time of a thread"),
    (&["probes", "gethostlatency"], "no event with a duration"),
    (&["samples", "callgraph"], "no stack"),
];

/// Why an answer is empty that nobody narrowed down; None: the report has a sentence of its own.
fn unasked(config: &Config, tape: &Tape) -> Option<String> {
    if config.view.name == "diff" || config.view.name == "kills" && config.format == Format::Text {
        return None;
    }
    let what = ABSENT.iter().find(|(views, _)| views.contains(&config.view.name)).map_or("no row", |(_, what)| *what);
    let (open, end) = (tape.session().window_open, tape.complete_until());
    let families = families::names(tape);
    let families = if families.is_empty() { String::new() } else { format!(", which holds {}", families.join(", ")) };
    Some(format!("nothing to show: {what} in the {} s of this tape{families}", seconds(end, open)))
}

/// Why no event of `tape` can pass one of the filters of `config`, in one sentence; None: some may pass each.
pub(crate) fn blamed(config: &Config, tape: &Tape) -> Option<String> {
    blame(&given(config, tape, &There::of(tape)))
}

/// The sentence about the first of `filters` that leaves nothing alone.
fn blame(filters: &[GivenFilter]) -> Option<String> {
    let why = |GivenFilter { text, alone }: &GivenFilter| Some(format!("nothing matches {text}: {}", alone.as_ref()?));
    filters.iter().find_map(why)
}

/// Why no event of `tape` passes the filters of `config`, in one sentence; without filters, what there is none of.
pub(crate) fn why(config: &Config, tape: &Tape) -> Option<String> {
    let of_calls = config.calls && OF_CALLS.contains(&config.view.name);
    if of_calls && families::recorded(tape, Family::Syscall) == Some(false) {
        // that is said already
        return None;
    }
    let there = There::of(tape);
    let given = given(config, tape, &there);
    if given.is_empty() {
        return unasked(config, tape);
    }
    if let Some(blame) = blame(&given) {
        return Some(blame);
    }
    let names: Vec<&str> = given.iter().map(|given| given.text.as_str()).collect();
    let together = if names.len() > 1 { " together" } else { "" };
    let (open, end) = (tape.session().window_open, tape.complete_until());
    let path = config.filters.paths.iter().find(|path| !path.contains(['*', '?', '[']));
    if let Some(address) = path.filter(|path| is_address(path)) {
        return Some(format!(
            "nothing in this report matches {}{together}; -P is about files and connections: -P '*{address}*' takes calls on connections with that in their name, 'analyze net --by pid,comm,peer' has all peers",
            names.join(" ")
        ));
    }
    if let (Some(path), [_]) = (path, &*names) {
        let other = match path.trim_end_matches('/') {
            kind @ ("pipe" | "socket" | "anon_inode") => format!("-P '{kind}:*' takes those"),
            path if path.contains('/') => format!("-P '{path}/*' takes what is below a directory"),
            name => format!("-P '*{name}*' takes paths with that in them"),
        };
        return Some(format!("nothing in this report matches {}; {other}", names[0]));
    }
    Some(format!(
        "nothing in this report matches {}{together}; the tape has 0 to {} s, CPUs 0-{}, threads {}",
        names.join(" "),
        seconds(end, open),
        tape.session().cpus.saturating_sub(1),
        some(there.comms.iter().map(|comm| escaped(comm)))
    ))
}

/// Whether `text` is an address, or one with a port.
fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok()
}

fn numbers(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn given(config: &Config, tape: &Tape, there: &There) -> Vec<GivenFilter> {
    let filters = &config.filters;
    let mut given = Vec::new();
    let mut add = |text: String, none: bool, why: &dyn Fn() -> String| {
        let alone = (none && there.whole).then(why);
        given.push(GivenFilter { text, alone });
    };
    if filters.time != (None, None) {
        let (open, end) = (tape.session().window_open, tape.complete_until());
        let scope = Question::new(filters, tape, &[]).ok().map(|question| (question.scope.from, question.scope.to));
        let outside = scope.is_some_and(|(from, to)| from > end || to <= open || from >= to);
        // a number that was copied from --clock mono
        let mono =
            |edge: Option<Edge>| matches!(edge, Some(Edge::Offset(ns)) if (open..=end).contains(&ns.unsigned_abs()));
        let meant =
            if mono(filters.time.0) || mono(filters.time.1) { "; CLOCK_MONOTONIC is written mono:SECONDS" } else { "" };
        let by_day = [filters.time.0, filters.time.1].iter().flatten().any(|edge| edge.needs_clock());
        add("--time".into(), outside, &|| format!("the tape is from {}{meant}", length(tape, by_day)));
    }
    if let Some(cpus) = &filters.cpus {
        let most = tape.session().cpus;
        let none = most > 0 && cpus.iter().all(|cpu| *cpu >= most);
        add(format!("-C {}", some(cpus.iter())), none, &|| format!("the recorded machine has CPUs 0-{}", most - 1));
    }
    if !filters.pids.is_empty() {
        let none = !filters.pids.iter().any(|pid| there.pids.contains(pid));
        let text = format!("-p {}", numbers(&filters.pids));
        add(text, none, &|| format!("the tape has processes {}", some(there.pids.iter())));
    }
    if !filters.tids.is_empty() {
        let none = !filters.tids.iter().any(|tid| there.tids.contains(tid));
        let text = format!("-t {}", numbers(&filters.tids));
        add(text, none, &|| format!("the tape has threads {}", some(there.tids.iter())));
    }
    if !filters.users.is_empty() {
        let uids: Vec<u32> = filters.users.iter().filter_map(|user| user.parse().ok()).collect();
        let none = uids.len() == filters.users.len() && !uids.iter().any(|uid| there.uids.contains(uid));
        let text = format!("-u {}", filters.users.join(","));
        add(text, none, &|| format!("the tape has users {}", some(there.uids.iter())));
    }
    if !filters.comms.is_empty() {
        let fits =
            |comm: &[u8]| filters.comms.iter().any(|glob| systape_events::values::glob::matches(glob.as_bytes(), comm));
        let none = !there.comms.iter().any(|comm| fits(comm));
        add(format!("--comm={}", filters.comms.join(",")), none, &|| names(filters.comms.first(), there));
    }
    if !filters.not_comms.is_empty() {
        add(format!("--comm='!{}'", filters.not_comms.join(",")), false, &String::new);
    }
    if !filters.cgroups.is_empty() {
        // without an answer it is not known which they are
        let scope = Question::new(filters, tape, &[]).map(|question| question.scope);
        let passes = |id: &u64| {
            let task = Task { cgroup_id: *id, ..Task::default() };
            scope.as_ref().map_or(true, |scope| scope.cgroup(&task))
        };
        let none = !there.cgroup_ids.iter().any(passes);
        let text = filters.cgroups.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        add(text, none, &|| "no process of the tape was in it ('analyze top --by cgroup' lists them)".to_owned());
    }
    if !filters.paths.is_empty() {
        add(format!("-P {}", filters.paths.join(" -P ")), false, &String::new);
    }
    if !filters.not_paths.is_empty() {
        add(format!("-P '!{}'", filters.not_paths.join("' -P '!")), false, &String::new);
    }
    // of other rows than calls these say nothing
    let of_calls = OF_CALLS.contains(&config.view.name) && config.calls;
    if filters.selects {
        let asked = |call: &(u8, u32)| filters.selection.contains(Abi::from_raw(call.0), call.1);
        let none = of_calls && config.events.is_empty() && !there.calls.iter().any(asked);
        let call = |call: &(u8, u32)| systape_abi::display_name(Abi::from_raw(call.0), call.1).to_string();
        add("-e".into(), none, &|| match there.calls.len() {
            0 => "the tape has no calls".to_owned(),
            _ => format!("the tape has other calls: {}", some(there.calls.iter().map(call))),
        });
    }
    if let Some(least) = filters.longer_than {
        let none = of_calls && there.longest.is_some_and(|longest| longest <= least);
        let longest = systape_events::values::words::span(there.longest.unwrap_or_default());
        add("--duration".into(), none, &|| format!("the longest call that is stored took {longest}"));
    }
    if filters.failure {
        add("--failure".into(), of_calls && !there.failures, &|| "no call that is stored failed".to_owned());
    }
    given
}

/// The present names, those similar to `asked` first.
fn names(asked: Option<&String>, there: &There) -> String {
    let known: Vec<String> = there.comms.iter().map(|comm| escaped(comm)).collect();
    let near = asked.map(|asked| systape_abi::nearest(asked, known.iter().map(String::as_str))).unwrap_or_default();
    match near.as_slice() {
        [] => format!("the tape has threads {}", some(there.comms.iter().map(|comm| escaped(comm)))),
        near => format!("no thread of the tape has that name; did you mean {}?", near.join(", ")),
    }
}

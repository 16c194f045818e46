//! Values of options that are something else by habit.

use std::ffi::OsStr;

/// Options that take numbers or a form, and the sentence for a value that is something else by habit.
const VALUES: &[(&str, &str)] = &[
    ("pids", "-p takes numbers of processes, such as 2214; --comm=NAME chooses by name"),
    ("tids", "-t takes numbers of threads, such as 2215; --clock wall prints times of day (strace -t)"),
    ("wakers", "--wakers takes the number of a process, such as 2214"),
    ("cpus", "-C takes CPUs, such as 0-3,7; the listing with the summary is -S (strace -C)"),
];

/// Whether it is a list of numbers.
fn is_numbers(text: &str) -> bool {
    text.split(',').all(|number| number.trim().parse::<u32>().is_ok())
}

/// Whether it is a list of CPUs.
pub(super) fn is_cpus(text: &str) -> bool {
    text.split(',')
        .all(|part| part.split('-').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())))
}

/// Whether it looks like the name of an error, as `ENOENT`.
fn is_error(text: &str) -> bool {
    text.len() > 3
        && text.starts_with('E')
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

const FORMS: &str = "the form is chosen by --format text, json or csv; -o names a file";
/// Forms there are.
const FORMATS: &[&str] = &["text", "json", "csv"];

/// What to type for a form that there is not.
fn of_format(text: &str) -> Option<String> {
    Some(match text {
        "strace" => "type 'analyze export strace'".to_owned(),
        "ndjson" | "jsonl" | "JSON" | "jsonlines" | "pretty" | "json-pretty" => {
            "--format json prints one object a line".to_owned()
        }
        "tsv" | "table" | "md" | "markdown" | "yaml" | "xml" | "txt" => return None,
        _ if text.contains('{') => return None,
        _ => super::instead_of(text, None)?,
    })
}

/// Whether it looks like the name of a signal, as `SIGTERM`.
fn is_signal(text: &str) -> bool {
    text.len() > 4
        && text.starts_with("SIG")
        && text[3..].bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// Events of perf and kinds of probes of bpftrace, which are named in another way here.
const EVENTS: &systape_abi::Habits = &[
    (
        &["page-faults", "faults", "minor-faults", "major-faults", "page-fault", "software"],
        "page faults are -e 'fault:*', of a tape made with record --families fault",
    ),
    (&["context-switches", "cs", "cpu-migrations", "migrations", "switches"], "switches and moves are -e 'sched:*'"),
    (&["io", "rw"], "-e 'read*,write*,pread*,pwrite*' has reads and writes, -e %desc calls on descriptors"),
    (&["fs"], "-e %file has calls with a path, -e %desc calls on descriptors"),
    (&["disk"], "-e 'block:*' has I/Os of disks"),
    (&["exec", "fork-exec", "spawn"], "-e execve,execveat has programs that are started, -e %process processes"),
    (
        &["kprobe", "kretprobe", "kfunc", "kretfunc", "fentry", "fexit", "probe"],
        "functions of the kernel are -e 'kprobe:*', of a tape made with record --kprobe",
    ),
    (&["uprobe", "uretprobe"], "functions of programs are -e 'uprobe:*', of a tape made with record --uprobe"),
    (&["usdt", "sdt"], "static probes are -e 'usdt:*', of a tape made with record --usdt"),
    (&["profile", "hardware", "interval"], "samples are 'analyze callgraph', of a tape made with record -F 99"),
    (&["regex"], "there are no regular expressions; use a glob such as 'open*'"),
];

/// What to type for an event that is named as by perf or bpftrace.
fn event(text: &str) -> Option<String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    // what is a name or all of a kind is looked for on the tape; that of bpftrace is behind a path
    let ours = ["kprobe", "uprobe", "usdt"].contains(&kind) && !rest.is_empty() && !rest.contains('/');
    let cache = ["L1-", "LLC-", "dTLB-", "iTLB-"].iter().any(|start| text.starts_with(start));
    if cache {
        return Some("counters of the CPU are not recorded; record -F 99 samples what runs".to_owned());
    }
    let bare = ["probe", "profile", "software", "hardware", "interval", "regex"].contains(&kind) && !text.contains(':');
    let kind = if kind.starts_with("sdt_") { "sdt" } else { kind };
    (!ours && !bare).then(|| systape_abi::instead_of(EVENTS, kind)).flatten().map(str::to_owned)
}

/// Families whose names are no groups of calls.
const FAMILIES: &[&str] = &["sched", "block", "fault", "task", "oom", "irq", "sock", "cgroup"];

/// The event that is named by its family alone, by its own name alone, or by both with something else than a colon between.
fn of_a_family(text: &str) -> Option<String> {
    if text.contains([':', ',', '*', '!', '=', '%']) || systape_abi::Selection::parse(&[text]).is_ok() {
        return None;
    }
    if FAMILIES.contains(&text) {
        return Some(format!("{text}:*"));
    }
    let parts = text.split_once(['.', '/']).filter(|(family, _)| FAMILIES.contains(family));
    let (family, event) = parts.or_else(|| Some((text.split('_').next()?, text)))?;
    (FAMILIES.contains(&family) && event != family).then(|| format!("{family}:{event}"))
}

/// A tracepoint behind the word for it that perf and bpftrace have, and that word.
fn tracepoint(text: &str) -> Option<(&'static str, &str)> {
    let behind = |kind: &'static str| Some((kind, text.strip_prefix(kind).filter(|name| name.contains(':'))?));
    behind("tracepoint:").or_else(|| behind("t:")).or_else(|| behind("rawtracepoint:"))
}

/// A range that is written with something else than a comma, or with words for its ends.
fn times(text: &str) -> Option<String> {
    let time = |text: &str| {
        let digits = text.trim_start_matches('-').bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        digits && text.bytes().all(|byte| byte.is_ascii_digit() || b".%smunh".contains(&byte))
    };
    for between in ["..", "-", ":", " ", ";"] {
        let ends = text.split_once(between).map(|(from, to)| (from.trim().trim_end_matches(','), to.trim()));
        if let Some((from, to)) = ends
            && time(from)
            && time(to)
            && (from.contains(['.', '%', 's']) || between == ".." || between == " ")
        {
            return Some(format!("{from},{to}"));
        }
    }
    let (from, to) = text.split_once(',').unwrap_or((text, ""));
    let none = |end: &str, words: &[&str]| words.contains(&end);
    let (starts, ends) = (none(from, &["start", "begin", "first"]), none(to, &["end", "last", "now"]));
    match (starts, ends) {
        (true, true) => Some("0,".to_owned()),
        (true, false) => Some(format!("0,{to}")),
        (false, true) => Some(format!("{from},")),
        _ if text == "last" || text == "end" => Some("90%,".to_owned()),
        _ => {
            let (start, more) = (from.parse::<f64>().ok()?, to.strip_prefix('+')?.parse::<f64>().ok()?);
            Some(format!("{from},{}", ((start + more) * 1e9).round() / 1e9))
        }
    }
}

/// What `text` is meant to be as the value of the option `id`, if that is known.
fn meant(id: &str, text: &str) -> Option<String> {
    Some(match (id, text) {
        ("format", "html") => "a page for a browser is 'analyze report'; --format is text, json or csv".to_owned(),
        ("format", "parquet") => {
            "tables are written by 'analyze export parquet DIR FILE'; --format is text, json or csv".to_owned()
        }
        ("output", "json" | "csv" | "text") => format!("the form is chosen by --format {text}; -o names a file"),
        ("output", "wide" | "yaml" | "cat" | "verbose" | "short" | "jsonl" | "xml") => FORMS.to_owned(),
        ("output", _) if text.starts_with("json") || text.starts_with("short-") => FORMS.to_owned(),
        ("output", _) if text.ends_with(".svg") => {
            format!("the answer goes to standard output; a flame graph is written by 'analyze callgraph --svg {text}'")
        }
        ("format", _) if !FORMATS.contains(&text) => match of_format(text) {
            Some(typed) => format!("{typed}; --format is text, json or csv"),
            None => return None,
        },
        ("color", "yes" | "true" | "on" | "1") => "it is --color always".to_owned(),
        ("color", "no" | "false" | "off" | "0" | "none") => "it is --color never".to_owned(),
        ("users", _) if text.ends_with(".service") || text.ends_with(".scope") => {
            format!("-u takes users; a unit of systemd is --unit {text}")
        }
        ("clock", "monotonic" | "boot" | "uptime" | "boottime") => "--clock mono prints CLOCK_MONOTONIC".to_owned(),
        (
            "clock",
            "utc" | "UTC" | "local" | "realtime" | "real" | "iso" | "date" | "time" | "day" | "epoch" | "unix" | "tai",
        ) => {
            "--clock wall prints times of day (UTC), --clock mono CLOCK_MONOTONIC".to_owned()
        }
        ("at", "end" | "last" | "now") => "--at 100% is the end of the recording".to_owned(),
        ("at", "start" | "begin") => "--at 0 is the start of the recording".to_owned(),
        ("at", "middle" | "half") => "--at 50% is the middle of the recording".to_owned(),
        ("time", "all" | "everything") => "all of the recording is shown without it".to_owned(),
        ("time", _) => match times(text) {
            Some(range) => format!("a part of the recording is --time {range}"),
            None => return None,
        },
        ("duration" | "slower" | "floor", _) if text.starts_with(['>', '<', '=', '+']) => {
            format!("a time alone is written: {}", text.trim_start_matches(['>', '<', '=', '+', ' ']))
        }
        ("pids", _) if text.contains(' ') && is_numbers(&text.split_whitespace().collect::<Vec<_>>().join(",")) => {
            format!("numbers are separated by commas: -p {}", text.split_whitespace().collect::<Vec<_>>().join(","))
        }
        ("pids", _) if text.starts_with('%') => {
            "fields of a line cannot be chosen (-p of sysdig): --format json and csv have all".to_owned()
        }
        ("pids", "c" | "container") => {
            "-p takes numbers of processes; 'analyze -s --by container' has containers (-pc of sysdig)".to_owned()
        }
        ("events", _) if is_signal(text) => {
            format!("a signal is no call: 'analyze kills --signal {text}', and -e 'signal:*' lists events of signals")
        }
        ("events", _) if text.trim().contains([' ', '|', ';', '+']) && !text.contains(['{', '/', ':', ',']) => {
            let calls: Vec<&str> = text.split([' ', '|', ';', '+']).filter(|call| !call.is_empty()).collect();
            format!("calls are separated by commas: -e {}", calls.join(","))
        }
        ("events", _) if event(text).is_some() => event(text)?,
        ("events", _) if of_a_family(text).is_some() => format!("events are named FAMILY:EVENT: -e '{}'", of_a_family(text)?),
        ("events", _) if is_error(text) => {
            "an error is no call: 'analyze --failure' lists calls that failed, 'analyze --errno-summary' counts them by error".to_owned()
        }
        ("events", _) if text.contains('{') => {
            "no program is run (bpftrace): -e names calls and events, 'analyze top -e EVENT --by KEY' counts them, record --kprobe FUNCTION records functions".to_owned()
        }
        ("events", _) if tracepoint(text).is_some() => {
            let (kind, name) = tracepoint(text)?;
            format!("a tracepoint is named without '{kind}': -e {name}")
        }
        _ => return None,
    })
}

/// Refuses a value that the option `id` cannot have.
pub(super) fn check(id: &str, value: &OsStr) -> Result<(), String> {
    let text = value.to_str().unwrap_or_default();
    let shown = || systape_events::values::words::escaped(value.as_encoded_bytes());
    if let Some(sentence) = meant(id, text) {
        return Err(format!("'{}': {sentence}", shown()));
    }
    let Some((_, sentence)) = VALUES.iter().find(|(option, _)| *option == id) else { return Ok(()) };
    let fits = if id == "cpus" { is_cpus(text) } else { is_numbers(text) };
    if fits { Ok(()) } else { Err(format!("'{}': {sentence}", shown())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_with_a_comma() {
        let range = |text| times(text).unwrap_or_default();
        assert_eq!([range("0.1-0.2"), range("0.1..0.2"), range("0.1:0.2")], ["0.1,0.2"; 3]);
        assert_eq!([range("10%-20%"), range("1 2"), range("0.1,+0.1")], ["10%,20%", "1,2", "0.1,0.2"]);
        assert_eq!([range("start,end"), range("0.1,end"), range("last")], ["0,", "0.1,", "90%,"]);
        // times of day and dates are times themselves
        for fits in ["1,2", "05:44:59,05:45:00", "05:44", "2026-11-22T05:44:59Z,", "-1,", "5", "mono:1.5,2"] {
            assert_eq!(times(fits), None, "{fits}");
        }
    }

    #[test]
    fn events_of_other_programs_are_known() {
        let said = |text| meant("events", text).unwrap_or_default();
        assert!(said("tracepoint:sched:sched_switch").ends_with("-e sched:sched_switch"));
        assert!(said("sched").contains("'sched:*'") && said("sched.sched_switch").contains("'sched:sched_switch'"));
        assert!(
            said("block_rq_issue").contains("'block:block_rq_issue'") && said("read|write").ends_with("read,write")
        );
        assert!(said("uprobe:/bin/sh:main").contains("record --uprobe") && said("cs").contains("sched:*"));
        assert!(said("kretprobe:vfs_read").contains("record --kprobe"));
        assert!(said("SIGTERM").contains("kills --signal SIGTERM") && said("read write").ends_with("-e read,write"));
        for ours in [
            "kprobe:*",
            "uprobe:hit",
            "usdt:p:n",
            "usdt:*",
            "sched:*",
            "openat",
            "signal",
            "!read",
            "read,write",
            "sched_yield",
            "sched:x/a == 1 || b/",
        ] {
            assert_eq!(meant("events", ours), None, "{ours}");
        }
    }
}

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

/// What `text` is meant to be as the value of the option `id`, if that is known.
fn meant(id: &str, text: &str) -> Option<String> {
    Some(match (id, text) {
        ("format", "html") => "a page for a browser is 'analyze report'; --format is text, json or csv".to_owned(),
        ("format", "parquet") => {
            "tables are written by 'analyze export parquet DIR FILE'; --format is text, json or csv".to_owned()
        }
        ("output", "json" | "csv" | "text") => format!("the form is chosen by --format {text}; -o names a file"),
        ("clock", "utc" | "UTC" | "local" | "realtime" | "real") => {
            "--clock wall prints times of day (UTC), --clock mono CLOCK_MONOTONIC".to_owned()
        }
        ("at", "end" | "last") => "--at 100% is the end of the recording".to_owned(),
        ("at", "start" | "begin") => "--at 0 is the start of the recording".to_owned(),
        ("time", _) if !text.contains(',') && text.split_once("%-").is_some() => {
            format!("a part of the recording is --time {}", text.replace("%-", "%,"))
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
        ("events", _) if is_error(text) => {
            "an error is no call: 'analyze --failure' lists calls that failed, 'analyze --errno-summary' counts them by error".to_owned()
        }
        ("events", _) if text.contains('{') => {
            "no program is run (bpftrace): -e names calls and events, 'analyze top -e EVENT --by KEY' counts them, record --kprobe FUNCTION records functions".to_owned()
        }
        ("events", _) if text.strip_prefix("t:").is_some_and(|event| event.contains(':')) => {
            format!("a tracepoint is named without t: -e {}", text.trim_start_matches("t:"))
        }
        _ => return None,
    })
}

/// Refuses a value that the option `id` cannot have.
pub(super) fn check(id: &str, value: &OsStr) -> Result<(), String> {
    let text = value.to_str().unwrap_or_default();
    let shown = || crate::values::words::escaped(value.as_encoded_bytes());
    if let Some(sentence) = meant(id, text) {
        return Err(format!("'{}': {sentence}", shown()));
    }
    let Some((_, sentence)) = VALUES.iter().find(|(option, _)| *option == id) else { return Ok(()) };
    let fits = if id == "cpus" { is_cpus(text) } else { is_numbers(text) };
    if fits { Ok(()) } else { Err(format!("'{}': {sentence}", shown())) }
}

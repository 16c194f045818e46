//! The day on which each log of `strace -ff -tt` begins. Times of day do not say it, but a thread begins after the call that made it.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, Result};

use super::body::{StraceLine, parse};
use super::file::LogFile;
use super::lead::{LineTime, split};
use super::lines::LogLines;

/// A day, ns.
pub(super) const DAY: u64 = 86_400_000_000_000;
/// The last day that is counted: beyond 2262 no time of day is shown.
pub(super) const LAST_DAY: u64 = i64::MAX as u64 / DAY - 1;

/// Times of day in the order of their lines, as times since the first midnight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DayCount {
    day: u64,
    last: u64,
}

impl DayCount {
    /// One whose first time is after `midnight`, ns.
    pub(super) fn new(midnight: u64) -> Self {
        Self { day: midnight, last: 0 }
    }

    /// The time `ns` after midnight, which the next line has.
    pub(super) fn next(&mut self, ns: u64) -> u64 {
        // it is the next day: times of one log go back by a fraction of a second at most
        if self.day + ns + DAY / 2 < self.last {
            self.day = (self.day + DAY).min(LAST_DAY * DAY);
        }
        self.last = self.day + ns;
        self.last
    }
}

/// What a file says of days.
#[derive(Debug, Default)]
struct FileDays {
    /// Time of its first line since its first midnight; None: no line has a time.
    first: Option<u64>,
    /// Threads of other files that its thread made, and when.
    made: Vec<(u32, u64)>,
}

/// How many days after the first each of `files` begins.
///
/// # Errors
/// A file cannot be read.
pub(super) fn first_days(files: &[LogFile]) -> Result<Vec<u64>> {
    let mut days = vec![0; files.len()];
    if files.len() < 2 {
        return Ok(days);
    }
    let places: HashMap<u32, usize> = files.iter().enumerate().filter_map(|(at, file)| Some((file.tid?, at))).collect();
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        match read(file, &places).with_context(|| file.path.display().to_string())? {
            Some(found) => all.push(found),
            // its times have days
            None => return Ok(days),
        }
    }
    let mut known: Vec<bool> = vec![true; files.len()];
    all.iter().flat_map(|found| &found.made).for_each(|(tid, _)| known[places[tid]] = false);
    let mut next: Vec<usize> = (0..files.len()).filter(|at| known[*at]).collect();
    while let Some(at) = next.pop() {
        for (tid, ns) in &all[at].made {
            let child = places[tid];
            if std::mem::replace(&mut known[child], true) {
                continue;
            }
            days[child] = day_after(days[at] * DAY + ns, all[child].first.unwrap_or(0)).min(LAST_DAY);
            next.push(child);
        }
    }
    Ok(days)
}

/// The day on which a thread's first line is, `ns` after midnight, that was made about the time `made`.
fn day_after(made: u64, ns: u64) -> u64 {
    let (day, of_day) = (made / DAY, made % DAY);
    match () {
        () if ns + DAY / 2 < of_day => day + 1,
        // the line that says it came after the thread's first
        () if of_day + DAY / 2 < ns => day.saturating_sub(1),
        () => day,
    }
}

/// What `file` says; None: its times are no times of day.
fn read(file: &LogFile, places: &HashMap<u32, usize>) -> Result<Option<FileDays>> {
    let mut found = FileDays::default();
    let mut count = DayCount::default();
    let mut lines = LogLines::new(BufReader::with_capacity(64 << 10, File::open(&file.path)?));
    let mut now = 0;
    while let Some((line, _)) = lines.next()? {
        let (lead, body) = split(line);
        match lead.time {
            Some(LineTime::Day { ns, .. }) => {
                now = count.next(ns);
                found.first.get_or_insert(now);
            }
            Some(_) => return Ok(None),
            None => {}
        }
        let of_call = body.strip_prefix(b"<... ").unwrap_or(body);
        if ![&b"clone"[..], b"fork", b"vfork"].iter().any(|name| of_call.starts_with(name)) {
            continue;
        }
        let (Some(StraceLine::Whole { name, result, .. }) | Some(StraceLine::Resumed { name, result, .. })) =
            parse(body)
        else {
            continue;
        };
        let child = result.outer.or_else(|| u32::try_from(result.ret?).ok());
        let makes = matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork");
        // a number that is used again has one file
        found.made.extend(child.filter(|tid| makes && places.contains_key(tid)).map(|tid| (tid, now)));
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        let hour = DAY / 24;
        let mut count = DayCount::new(DAY);
        assert_eq!(
            [23 * hour, 23 * hour - 5, hour, 0].map(|ns| count.next(ns)),
            [47 * hour, 47 * hour - 5, 49 * hour, 48 * hour]
        );
        assert_eq!(
            (day_after(23 * hour, 23 * hour + 1), day_after(23 * hour, hour), day_after(25 * hour, 23 * hour)),
            (0, 1, 0)
        );
    }

    #[test]
    fn a_thread_begins_on_the_day_on_which_it_was_made() {
        let place = tempfile::tempdir().unwrap();
        let log = |tid: u32, text: &str| {
            let path = place.path().join(format!("x.{tid}"));
            std::fs::write(&path, text).unwrap();
            LogFile { path, file: None, tid: Some(tid) }
        };
        let files = [
            log(
                7,
                "23:59:58.0 clone(child_stack=NULL, flags=SIGCHLD) = 8\n00:00:01.0 fork() = 9\n23:59:59.0 close(3) = 0\n",
            ),
            log(8, "23:59:59.9 close(3) = 0\n00:00:05.0 vfork() = 10\n"),
            log(9, "00:00:02.0 close(3) = 0\n"),
            log(10, "00:00:06.0 close(3) = 0\n"),
            log(11, "00:00:06.0 fork() = 12\n"),
            log(12, "00:00:07.0 fork() = 11\n"),
        ];
        assert_eq!(first_days(&files).unwrap(), [0, 0, 1, 1, 0, 0]);
        let dated = [log(7, "1796070471.5 fork() = 8\n"), log(8, "00:00:06.0 close(3) = 0\n")];
        assert_eq!(first_days(&dated).unwrap(), [0, 0]);
    }
}

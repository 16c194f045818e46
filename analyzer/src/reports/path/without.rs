//! `path --without CAUSE`: how long the subject would have taken without a cause.

use anyhow::{Result, bail};
use rustc_hash::FxHashSet;
use systape_abi::Abi;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::reports::traced::retime::{Lock, Sum, retime};
use crate::reports::traced::subject::{Subject, subject};
use crate::reports::traced::{Way, is_of_command, walked};
use crate::reports::{Context, losses, scheduling};
use systape_answers::derive::cost::judge::Cost;
use systape_answers::derive::cost::pattern::{CausePattern, Files, PatternTime};
use systape_answers::derive::critical::log::Log;
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::feed as runs;
use systape_answers::derive::runs::keys::set_thread;
use systape_answers::derive::waits::SLEEPS;
use systape_answers::derive::waits::{self, JudgedFutex, Kind};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::families::in_session;
use systape_events::question::Question;
use systape_events::values::words::span;

systape_format::tables! {
    /// One row: how much less time the thread asked for would have taken without a cause, as `why` measures it.
    pub PATH_WITHOUT = "path_without" {
        cause: Word key [Path] "as it was asked for"
        pid: Int key "process"
        tid: Int key "thread that is asked for"
        upid: Int key "the process, unique in the tape"
        utid: Int key "the thread, unique in the tape"
        comm: Str key [Comm] "its name"
        total_ns ? OfKnown: Duration "its time"
        saved_ns ? OfKnown: Duration "how much less it would have been"
        saved_hi_ns ? OfKnown: Duration "the most that it would have been less, where two ways to measure it differ; null: `saved_ns` is the figure"
        saved_is: Word key "`saved`; `rough`: parts of its time are not known; `at_most`: it has no end on the tape, so this is the time in which somebody was in the cause"
    }
}

/// The time of `cause`: `CALL[,CALL...][:FILE]`, `runqueue`, `throttled`, `stopped`, `sleep`, `comm=NAME`.
///
/// # Errors
/// There is no such cause.
pub(super) fn patterns(cause: &str) -> Result<Vec<CausePattern>> {
    let one = |time| CausePattern { comm: Vec::new(), pid: None, parent: None, time, span: None };
    let of_call =
        |call: &str, files: &Files| one(PatternTime::In { call: call.to_owned(), files: files.clone(), loops: false });
    let simple = match cause {
        "runqueue" => Some(PatternTime::Runqueue),
        "throttled" => Some(PatternTime::Throttled),
        "stopped" => Some(PatternTime::Stopped),
        _ => None,
    };
    if let Some(time) = simple {
        return Ok(vec![one(time)]);
    }
    if cause == "sleep" {
        return Ok(SLEEPS.map(|call| of_call(call, &Files::Any)).to_vec());
    }
    if let Some(comm) = cause.strip_prefix("comm=") {
        return Ok(vec![CausePattern { comm: comm.as_bytes().to_vec(), ..one(PatternTime::All) }]);
    }
    let (calls, file) = cause.split_once(':').map_or((cause, None), |(calls, file)| (calls, Some(file)));
    let files = match file.map(str::as_bytes) {
        None => Files::Any,
        Some(file) if file.starts_with(b"->") => Files::Peer(file[2..].to_vec()),
        Some(file) => match file.strip_suffix(b"/*") {
            Some(dir) => Files::Under(dir.to_vec()),
            None => Files::Named(file.to_vec()),
        },
    };
    let known = |call: &str| {
        [Abi::X86_64, Abi::I386, Abi::Aarch64].into_iter().any(|abi| systape_abi::number(abi, call).is_some())
    };
    if let Some(unknown) = calls.split(',').find(|call| !known(call)) {
        bail!(
            "--without {cause}: no call '{unknown}', and none of runqueue, throttled, stopped, sleep, comm=NAME, which stand alone"
        );
    }
    Ok(calls.split(',').map(|call| of_call(call, &files)).collect())
}

/// Prints the answer for `config`.
///
/// # Errors
/// The tape cannot be read; the output cannot be written.
pub(super) fn run(config: &Config, tape: &Tape, cause: &str, out: &mut Out) -> Result<Verdict> {
    let session = tape.session();
    let calls = in_session(session, Family::Syscall);
    let mut families = vec![Family::Sched, Family::Process];
    families.extend(calls.then_some(Family::Syscall));
    let filters = config.filters.of_time();
    let mut context = Context { config, question: Question::new(&filters, tape, &families)? };
    let (from, to) =
        (context.question.scope.from.max(session.window_open), context.question.scope.to.min(tape.complete_until()));
    let fed = runs::feed(&context.question, Needs { calls, ..Needs::default() }, to, Log::new(from));
    let log = fed.tracker.sink;
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    let asked = !config.filters.pids.is_empty() || !config.filters.tids.is_empty();
    let found = subject(config, tape, &log.threads)
        .and_then(|of| Some((of, Way::of(of, &log.threads, (from, to), is_of_command(&session.target) && !asked)?)));
    let Some((subject, way)) = found else {
        out.say("no such thread is recorded in this part of the tape");
        if !out.is_text() {
            out.rows(&PATH_WITHOUT, context.judged(), std::iter::empty::<Row<'_>>())?;
        }
        return losses::end_of_sums(&context, out);
    };
    let barriers = if calls { barriers(&mut context)? } else { FxHashSet::default() };
    let walked = walked(&mut context, &log, Some(&way), (from, to));
    let patterns = [patterns(cause)?];
    let sums = retime(&context, (&log, &barriers), (Some(&way), &walked), (&patterns, vec![Lock::No]), (from, to));
    let total = way.span.1 - way.span.0;
    let answer = Answer { cause, total, way: &way, sum: sums.first().copied(), rough: walked.rough };
    config.shown.rows(1);
    scheduling::head(&context, out)?;
    if out.is_text() {
        line(out, &answer.text(&context, &subject, &log))?;
    } else {
        out.rows(&PATH_WITHOUT, context.judged(), [answer.row(&log)])?;
    }
    losses::end_of_sums(&context, out)
}

/// Futexes that are barriers, by process and address.
fn barriers(context: &mut Context<'_>) -> Result<FxHashSet<(u32, Vec<u8>)>> {
    let (tracker, threads, coverage) = waits::tracked(&context.question)?;
    coverage.tell(&mut context.question.loss);
    let (judged, ..) = tracker.judge(&threads);
    let barriers = judged.iter().filter(|judged| judged.kind == Kind::Barrier);
    let named = |judged: &JudgedFutex| {
        let pid = threads.named(*judged.sum.waiters.first()?)?.pid;
        Some((pid, format!("{:#x}", judged.at.address).into_bytes()))
    };
    Ok(barriers.filter_map(named).collect())
}

/// All that the answer is made of.
struct Answer<'a> {
    cause: &'a str,
    total: u64,
    way: &'a Way,
    sum: Option<Sum>,
    rough: bool,
}

impl Answer<'_> {
    /// What goes away, and of what kind that figure is.
    fn saved(&self) -> (Cost, &'static str) {
        let none = Cost { ns: 0, hi: None };
        let Some(sum) = self.sum else { return (none, "saved") };
        match (self.way.ends, self.rough) {
            (false, _) => (Cost { ns: sum.union.min(self.total), hi: None }, "at_most"),
            (true, true) => (sum.cost, "rough"),
            (true, false) => (sum.cost, "saved"),
        }
    }

    fn row<'r>(&self, log: &'r Log) -> Row<'r> {
        let (saved, is) = self.saved();
        let mut row = Row::new(&PATH_WITHOUT);
        row.set("cause", self.cause.to_owned());
        if let Some(task) = log.threads[self.way.id as usize].mostly(self.way.span) {
            set_thread(&mut row, task);
        }
        row.set("total_ns", self.total).set("saved_ns", saved.ns).set("saved_hi_ns", saved.hi).set("saved_is", is);
        row
    }

    /// `The 1.97 s of sh[17] (the command that was recorded), 10:00:00.1–10:00:02.1, would have been 0.63 s without fsync: 1.34 s less`.
    fn text(&self, context: &Context<'_>, subject: &Subject, log: &Log) -> String {
        let (saved, is) = self.saved();
        let who = subject.words(&log.threads, self.way.span);
        let when = context.stamps_of_sentences().span(self.way.span.0, self.way.span.1);
        let left = |ns: u64| span(self.total.saturating_sub(ns));
        // what is missing may have been more or less
        let lost = !context.question.loss.complete();
        let (sign, most) = match is {
            _ if lost => (mark::ABOUT, mark::ABOUT),
            "at_most" => (mark::AT_MOST, mark::at_least(true)),
            "rough" => (mark::ABOUT, mark::ABOUT),
            _ => ("", ""),
        };
        let (then, less) = match (saved.hi, is) {
            (Some(hi), _) => {
                (format!("{sign}{}–{}", left(hi), left(saved.ns)), format!("{}–{}", span(saved.ns), span(hi)))
            }
            // it is an upper bound of what goes away
            (None, "at_most") => (format!("{most}{}", left(saved.ns)), span(saved.ns)),
            (None, _) => (format!("{sign}{}", left(saved.ns)), span(saved.ns)),
        };
        format!(
            "The {} of {who}, {when}, would have been {then} without {}: {sign}{less} less",
            span(self.total),
            self.cause
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_calls_files_states_and_programs() {
        let times = |cause: &str| patterns(cause).unwrap().into_iter().map(|pattern| pattern.time).collect::<Vec<_>>();
        let call = |call: &str, files| PatternTime::In { call: call.to_owned(), files, loops: false };
        assert_eq!(times("fsync"), [call("fsync", Files::Any)]);
        assert_eq!(
            times("read,pread64:/srv/*"),
            ["read", "pread64"].map(|name| call(name, Files::Under(b"/srv".to_vec())))
        );
        assert_eq!(times("recvfrom:->10.0.0.1:80"), [call("recvfrom", Files::Peer(b"10.0.0.1:80".to_vec()))]);
        assert_eq!(
            (times("runqueue"), times("throttled")),
            (vec![PatternTime::Runqueue], vec![PatternTime::Throttled])
        );
        assert_eq!(patterns("comm=make").unwrap()[0].comm, b"make");
        assert!(patterns("fsink").is_err() && patterns("").is_err());
    }
}

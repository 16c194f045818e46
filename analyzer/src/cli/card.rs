//! What somebody sees who only names a tape, on a terminal: what was recorded, what was lost, what `why` says first, and what to ask next.
//! `analyze trace TAPE`, or any option, lists the calls instead; so does a pipe.

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdout};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, View};
use crate::cli::answer::ask;
use systape_answers::render::cell::{Cell, Known};
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TakesRows};
use systape_answers::render::row::Row;
use systape_answers::render::stamp::{Stamps, TimeBase};
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::families::in_session;
use systape_events::question::{Question, clock};
use systape_events::values::words::{escaped, shell, span};

/// The word before a tape that asks for its calls.
const TRACE: &str = "trace";
/// Most findings.
const FINDINGS: usize = 3;
/// Most sentences about losses.
const LOSSES: usize = 2;

/// The card.
pub(crate) static CARD: View = View { run: AnswerFn::Prints(print), ..View::PLAIN };

/// Whether `words`, after the name of the program, ask for the card: nothing but the name of a tape, on a terminal.
pub(crate) fn is_asked(words: &[OsString]) -> bool {
    let named = words.get(1).is_none_or(|word| !word.as_bytes().starts_with(b"-"));
    words.len() <= 2 && named && stdout().is_terminal()
}

/// `words` without the one that asks for the calls.
pub(crate) fn without_trace(mut words: Vec<OsString>) -> Vec<OsString> {
    let at = 1 + usize::from(words.get(1).is_some_and(|word| word == "help"));
    if words.get(at).is_some_and(|word| word == TRACE) && !Path::new(TRACE).exists() {
        words.remove(at);
    }
    words
}

/// Findings of `why`, and what it lacks.
#[derive(Default)]
struct FirstFindings {
    findings: Vec<String>,
    more: usize,
}

impl TakesRows for FirstFindings {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let word = |name: &str| match row.value(name) {
            Some((Cell::Text(text), _)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        if word("kind") != "finding" {
            return ControlFlow::Continue(());
        }
        if self.findings.len() == FINDINGS {
            self.more += 1;
            return ControlFlow::Continue(());
        }
        let cost = match row.value("cost_ns") {
            Some((Cell::Int(ns), known)) => {
                let mark = match (word("cost_is").as_str(), known) {
                    ("at_most", Known::Exact) => mark::AT_MOST,
                    ("saved", Known::Exact) => "",
                    _ => mark::ABOUT,
                };
                format!("{mark}{}", span(u64::try_from(*ns).unwrap_or(0)))
            }
            _ => word("class"),
        };
        self.findings.push(format!("{cost:>11}  {}", word("text")));
        ControlFlow::Continue(())
    }
}

fn print(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let (session, open) = (tape.session(), tape.session().window_open);
    let question = Question::new(&config.filters, tape, &session.families)?;
    let loss = &question.loss;
    let until = tape.complete_until();
    let dated = || Stamps::new(&[TimeBase::Wall], tape).dated().at(open);
    let begun = if clock(tape).samples() > 0 { format!(" {}", dated()) } else { String::new() };
    let host = Some(&session.hostname).filter(|host| !host.is_empty());
    let host = host.map_or_else(String::new, |host| format!(" on {}", escaped(host)));
    line(out, &format!("{}{host}: {}{begun}", session.target, span(until.saturating_sub(open))))?;
    match loss.complete() {
        true => line(out, "nothing was lost")?,
        false => loss.lines(session, LOSSES).iter().try_for_each(|text| line(out, text))?,
    }
    let mut first = FirstFindings::default();
    match ask(&["why".to_owned()], tape, &mut first) {
        Ok(_) if first.findings.is_empty() => line(out, "\nNothing slow or broken was found.")?,
        Ok(_) => {
            line(out, "\nWhat was slow, and what broke:")?;
            first.findings.iter().try_for_each(|text| line(out, text))?;
            if first.more > 0 {
                line(out, &format!("             and {} more: analyze why", first.more))?;
            }
        }
        Err(why) => line(out, &format!("\n{why:#}"))?,
    }
    line(out, "\nAsk more:")?;
    let file = shell(&[config.file.as_os_str().as_bytes().to_vec()]);
    let has = |family| in_session(session, family);
    let mut all = vec![("why", "all findings, each with the command that shows it")];
    all.push(match has(Family::Sched) {
        true => ("path --sums", "where the time went, across the threads that were waited for"),
        false => ("top --by comm,file", "who spent time on which file"),
    });
    all.push(match has(Family::Signal) {
        true => ("kills", "who ended or stopped whom"),
        false => ("exec --tree", "which programs ran"),
    });
    if has(Family::Syscall) {
        all.push((TRACE, "every call"));
    }
    all.push(("report", "a page for a browser, in report.html"));
    let typed = all.iter().map(|(words, what)| (format!("analyze {words} {file}"), what));
    let width = typed.clone().map(|(typed, _)| typed.chars().count()).max().unwrap_or(0);
    for (typed, what) in typed {
        line(out, &format!("  {typed:<width$}  {what}"))?;
    }
    Ok(Verdict::default().doubted(!loss.complete()))
}

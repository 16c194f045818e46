//! What somebody sees who only names a tape, on a terminal: what was recorded, what was lost, what `why` says first, and what to ask next.
//! `analyze trace TAPE`, or any option, lists the calls instead; so does a pipe.

mod asks;

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdout};
use std::path::Path;

use anyhow::Result;
use systape_format::reader::Tape;

use self::asks::asks;
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, View};
use crate::reports::why;
use systape_answers::render::out::Out;
use systape_answers::render::stamp::{Stamps, TimeBase};
use systape_answers::values::output::{command, line};
use systape_answers::values::say::Verdict;
use systape_events::question::{Question, clock};
use systape_events::values::words::{escaped, shell, span};

/// The word before a tape that asks for its calls.
const TRACE: &str = "trace";
/// Most findings.
const FINDINGS: usize = 3;
/// Most sentences about losses of one kind: known before, and met while reading.
const LOSSES: usize = 2;

/// The card.
pub(crate) static CARD: View = View { run: AnswerFn::Prints(print), ..View::PLAIN };

/// Whether `words`, after the name of the program, ask for the card: nothing but the name of a tape, on a terminal.
pub(crate) fn is_asked(words: &[OsString]) -> bool {
    let named = words.get(1).is_none_or(|word| !word.as_encoded_bytes().starts_with(b"-"));
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

fn print(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let (session, open) = (tape.session(), tape.session().window_open);
    // first, because what cannot be read is known when it has been read
    let first = why::first(config, tape, FINDINGS);
    let question = Question::new(&config.filters, tape, &session.families)?;
    let loss = &question.loss;
    let mut lost = loss.lines(session, LOSSES);
    if let Ok(first) = &first {
        let new = first.lost.iter().filter(|text| !lost.contains(*text)).take(LOSSES).cloned();
        lost.extend(new.collect::<Vec<_>>());
    }
    let complete = loss.complete() && lost.is_empty() && tape.misses().is_empty();
    let until = tape.complete_until();
    let dated = || Stamps::new(&[TimeBase::Wall], tape).dated().at(open);
    let begun = if clock(tape).samples() > 0 { format!(" {}", dated()) } else { String::new() };
    let host = Some(&session.hostname).filter(|host| !host.is_empty());
    let host = host.map_or_else(String::new, |host| format!(" on {}", escaped(host)));
    let (target, length) = (escaped(session.target.as_bytes()), span(until.saturating_sub(open)));
    line(out, &format!("{target}{host}: {length}{begun}"))?;
    if complete {
        line(out, "nothing was lost")?;
    }
    lost.iter().try_for_each(|text| line(out, text))?;
    match &first {
        Ok(first) => {
            let head = match first.none {
                "" => "What was slow, and what broke:".to_owned(),
                // what was not recorded may have been both
                none if complete && !first.unknown.is_empty() => format!("{none} in what was recorded"),
                none => none.to_owned(),
            };
            line(out, &format!("\n{head}"))?;
            first.lines.iter().try_for_each(|text| line(out, text))?;
            if first.more > 0 {
                line(out, &format!("{:>13}  {} more: analyze why", "", first.more))?;
            }
            first.unknown.iter().take(FINDINGS).try_for_each(|text| line(out, text))?;
        }
        Err(why) => line(out, &format!("\n{why:#}"))?,
    }
    line(out, "\nAsk more:")?;
    let file = shell(&[config.file.as_os_str().as_encoded_bytes().to_vec()]);
    let all = asks(&question, first.as_ref().ok());
    let typed = all.iter().map(|(words, what)| (format!("analyze {words} {file}"), what));
    let width = typed.clone().map(|(typed, _)| typed.chars().count()).max().unwrap_or(0);
    for (typed, what) in typed {
        let fill = " ".repeat(width - typed.chars().count());
        line(out, &format!("  {}{fill}  {what}", command(&typed)))?;
    }
    Ok(Verdict::default().doubted(!complete))
}

//! `analyze list`: a line for each tape of directories and of those named, in order of their start.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use systape_format::model::Session;
use systape_format::reader::Tape;
use systape_format::redact::Redactor;

use super::TapeFacts;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Rows, View};
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::Table;
use systape_answers::values::open::open;
use systape_answers::values::say::Verdict;
use systape_events::values::clock::{Real, rfc3339};
use systape_events::values::order::InOrder as _;
use systape_events::values::words::{bytes, escaped, span};

systape_format::tables! {
    /// One row a tape, the one that began first first; those whose time of day is not known last.
    pub LIST = "list" {
        tape: Str [Path] "path of the file, as named or found"
        hostname: Str [Host] "name of the machine; null: not known"
        start_time: Word "when it began, RFC 3339, UTC; null: not known"
        duration_ns: Duration "from the start to the end of what is known; null: the start is not known"
        events ? AtLeast: Count "stored events, as `record` says at its end; rows that describe others (`block:file`, `process:usage`) are not among them"
        lost ? AtLeast: Count "events that are neither stored nor counted"
        counted_only: Count "calls that were counted instead of stored"
        file_bytes: Bytes "size of the file"
        complete: Flag "as in `info`"
        clean_end: Flag "the recording was ended, not cut off"
        findings: Count "what is damaged (`info` has the sentences)"
        target: Word [Command] "what was recorded, in words; null: not known"
        error: Word "why the file cannot be read: all else but its path is null; null: it can"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "list",
    about: "A line for each tape of a directory: host, time, events, loss, size",
    operands: Operands::Tapes,
    examples: [
        ("analyze list /var/lib/systape", "the tapes of a directory, by time"),
        ("analyze list a.tape b.tape --format json", "two tapes, an object each"),
    ],
    tables: &[Rows::of("list", &[All(&LIST)])],
    run: AnswerFn::Many(run),
    ..View::PLAIN
};

/// What the line of a tape says. It keeps nothing of the tape: of many one is open at a time.
#[derive(Debug)]
struct Line {
    path: PathBuf,
    /// What is in it, or why it cannot be read.
    is: Result<Summed, String>,
}

/// The figures of a tape.
#[derive(Debug)]
struct Summed {
    /// The session block could be read.
    whole: bool,
    hostname: Vec<u8>,
    target: String,
    start: Option<Real>,
    duration_ns: u64,
    events: u64,
    lost: u64,
    /// More may have been lost.
    lost_more: bool,
    counted_only: u64,
    file_bytes: u64,
    complete: bool,
    clean_end: bool,
    being_written: bool,
    findings: usize,
}

/// Prints a line for each of `tapes`.
fn run(_: &Config, tapes: &[PathBuf], out: &mut Out) -> Result<Verdict> {
    print(tapes.iter().map(|path| Line::of(path, None)).collect(), out)
}

/// Prints a line for each of `tapes`, which is a file and what it is called; `redactor`: what takes out facts about people and
/// machines.
///
/// # Errors
/// The lines cannot be written.
#[cfg(unix)]
pub(crate) fn list_named<'t>(
    tapes: impl Iterator<Item = (&'t Path, &'t Path)>,
    redactor: Option<&Redactor>,
    out: &mut Out,
) -> Result<Verdict> {
    let named = |(file, name): (&Path, &Path)| Line { path: name.to_owned(), ..Line::of(file, redactor) };
    print(tapes.map(named).collect(), out)
}

fn print(mut lines: Vec<Line>, out: &mut Out) -> Result<Verdict> {
    lines.order_by_key(|line| {
        let start = line.is.as_ref().ok().and_then(|is| is.start);
        (start.is_none(), start.map(|start| start.first), line.path.clone())
    });
    let headings = Table::default().whole("start").number("length").word("host").number("events").number("lost");
    // a table of nothing but question marks says less than the reasons do
    let none = out.is_text() && lines.iter().all(|line| line.is.is_err());
    let shown: &[Line] = if none { &[] } else { &lines };
    out.ranking(
        TopRows {
            table: &LIST,
            judged: Judgement::Each,
            headings: headings
                .number("size")
                .word("tape")
                .word("state")
                .word("recorded")
                .leaving(&["recorded", "size", "host", "events", "length"]),
            all: lines.len(),
            limit: usize::MAX,
        },
        shown.iter(),
        Line::row,
        Line::cells,
    )?;
    // the table has the state of those that could be read
    let told = lines.iter().filter(|line| !out.is_text() || line.is.is_err());
    told.filter_map(Line::fault).collect::<Vec<_>>().iter().for_each(|fault| out.say(fault));
    out.flush()?;
    let bad = lines.iter().any(|line| line.is.is_err());
    Ok(Verdict { lost: lines.iter().any(|line| !line.is.as_ref().is_ok_and(|is| is.complete)), bad })
}

impl Line {
    fn of(path: &Path, redactor: Option<&Redactor>) -> Self {
        let is = open(path).map(|tape| Summed::of(&tape, redactor)).map_err(|error| {
            let (text, name) = (format!("{error:#}"), path.display().to_string());
            // the line begins with the path
            text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_owned()
        });
        Self { path: path.to_owned(), is }
    }

    /// What is wrong with the file.
    fn fault(&self) -> Option<String> {
        let path = escaped(self.path.as_os_str().as_encoded_bytes());
        match &self.is {
            Ok(is) if is.findings > 0 => Some(format!("{path}: {}; 'analyze check' has them", is.state())),
            Ok(_) => None,
            Err(why) => Some(format!("{path}: {why}")),
        }
    }

    fn cells(&self) -> Vec<String> {
        let unknown = || "?".to_owned();
        let path = escaped(self.path.as_os_str().as_encoded_bytes());
        match &self.is {
            Ok(is) => vec![
                // whole seconds: a table has no room for more
                is.start.map_or_else(unknown, |start| format!("{:.19}Z", rfc3339(start))),
                if is.whole { span(is.duration_ns) } else { unknown() },
                if is.whole { escaped(&is.hostname) } else { unknown() },
                format!("{}{}", mark::at_least(is.findings > 0), is.events),
                format!("{}{}", mark::at_least(is.lost_more), is.lost),
                bytes(is.file_bytes),
                path,
                is.state(),
                if is.whole { escaped(is.target.as_bytes()) } else { unknown() },
            ],
            Err(why) => {
                let unknown = (0..6).map(|_| unknown());
                unknown.chain([path, "not read".to_owned(), escaped(why.as_bytes())]).collect()
            }
        }
    }

    fn row(&self) -> Row<'_> {
        let mut row = Row::new(&LIST);
        row.set("tape", self.path.as_os_str().as_encoded_bytes());
        let is = self.is.as_ref().ok();
        let said = is.filter(|is| is.whole);
        row.set("hostname", said.map(|is| &*is.hostname)).set("start_time", said.and_then(|is| is.start).map(rfc3339));
        row.set("duration_ns", said.map(|is| is.duration_ns));
        row.bound("events", is.map(|is| is.events), is.is_some_and(|is| is.findings > 0));
        row.bound("lost", is.map(|is| is.lost), is.is_some_and(|is| is.lost_more));
        row.set("counted_only", is.map(|is| is.counted_only)).set("file_bytes", is.map(|is| is.file_bytes));
        row.set("complete", is.map(|is| is.complete)).set("clean_end", is.map(|is| is.clean_end));
        row.set("findings", is.map(|is| is.findings as u64)).set("target", said.map(|is| &*is.target));
        row.set("error", self.is.as_ref().err().map(|why| &**why));
        row
    }
}

impl Summed {
    fn of(tape: &Tape, redactor: Option<&Redactor>) -> Self {
        let facts = TapeFacts::gather(tape);
        let (whole, mut session): (bool, Cow<'_, Session>) = (tape.session_is_whole(), Cow::Borrowed(tape.session()));
        if let Some(redactor) = redactor {
            redactor.session(session.to_mut());
        }
        let end = tape.end();
        let findings = tape.findings().len() + facts.unreadable.len();
        Self {
            whole,
            hostname: session.hostname.clone(),
            target: session.target.clone(),
            start: facts.clock.real(session.window_open).filter(|_| whole),
            duration_ns: facts.duration(),
            events: facts.stored,
            lost: facts.lost.values().fold(0, |sum, count| sum.saturating_add(*count)),
            lost_more: end.is_none() || findings > 0 || facts.lost.values().any(|count| *count == 0),
            counted_only: facts.ledger.lost(),
            file_bytes: tape.len_bytes(),
            complete: facts.complete(),
            clean_end: end.is_some(),
            being_written: tape.is_being_written(),
            findings,
        }
    }

    /// The state in a few words, as `info` says it in a line.
    fn state(&self) -> String {
        match self {
            Self { findings: 1, .. } => "damaged: 1 finding".to_owned(),
            Self { findings: 2.., .. } => format!("damaged: {} findings", self.findings),
            Self { being_written: true, .. } => "still being written".to_owned(),
            Self { clean_end: false, .. } => "cut off".to_owned(),
            Self { complete: false, .. } => "events missing".to_owned(),
            Self { counted_only: 1.., .. } => "complete in sums".to_owned(),
            Self { .. } => "complete".to_owned(),
        }
    }
}

//! `analyze assert`: whether a tape is as expected: conditions on answers, for CI. What a loss could change is not known, and neither passes nor
//! fails.

mod judge;
mod junit;
mod number;
mod parse;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use systape_format::reader::Tape;

use self::judge::{ExpectationOutcome, JudgedExpectation, judge};
use self::parse::Expectation;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Ask, Operands, Own, Reads, Rows, View};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::Table;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row for each expectation, in the order of the file.
    pub ASSERT = "assert" {
        name: Word key [Command] "name of the expectation"
        outcome: Word "`holds`, `fails`, or `not_known`: a loss could change it, or the report has no answer"
        condition: Word [Command] "what was expected"
        found: Word "what was found, with `>=` or `<=` before a bound; null: not known, or no row"
        why: Word [Path] "why it is not known; `no row`: the answer has none; null: nothing to say"
        command: Word [Command] "arguments of `analyze` whose answer was judged, as a shell takes them, without the tape"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "assert",
    about: "Whether a tape is as a file of expectations says: for CI",
    operands: Operands::TapeAndFile,
    own: Own::of::<Options>(),
    examples: [
        ("analyze assert t.tape expect.txt", "each expectation: holds, fails, or not known because of a loss"),
        ("analyze assert --junit t.tape expect.txt", "the same as JUnit's XML"),
    ],
    tables: &[Rows::of("assert", &[All(&ASSERT)])],
    check,
    reads: |config| Ok(Reads { files: config.second.iter().cloned().collect(), ..Reads::default() }),
    run: AnswerFn::Asks(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// JUnit's XML, which CI systems show
    #[arg(long)]
    junit: bool,
}

/// Most bytes of a file of expectations.
const LONGEST: u64 = 1 << 20;

fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    if own.junit && config.format != systape_answers::render::form::Format::Text {
        bail!("--junit is a format of its own: leave out --format");
    }
    Ok(())
}

/// Prints the answer for `config`.
fn run(config: &Config, _tape: &Tape, ask: Ask<'_>, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let Some(path) = &config.second else { bail!("no file of expectations is named") };
    let expectations = read(path)?;
    let judged: Vec<JudgedExpectation<'_>> = expectations.iter().map(|of| judge(of, ask)).collect::<Result<_>>()?;
    if own.junit {
        let name = escaped(config.file.as_os_str().as_encoded_bytes());
        out.write_all(junit::of(&name, &judged).as_bytes())?;
    } else if out.is_text() {
        text(&judged, out)?;
    } else {
        out.rows(&ASSERT, Judgement::Each, judged.iter().map(row))?;
    }
    let any = |outcome: &ExpectationOutcome| judged.iter().any(|judged| judged.outcome == *outcome);
    Ok(Verdict { bad: any(&ExpectationOutcome::Fails), lost: any(&ExpectationOutcome::NotKnown) })
}

fn read(path: &Path) -> Result<Vec<Expectation>> {
    let name = escaped(path.as_os_str().as_encoded_bytes());
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text).with_context(|| format!("cannot read {name}"))?;
    if read as u64 > LONGEST {
        bail!("{name} has more than a mebibyte: it is no file of expectations");
    }
    parse::expectations(&text).map_err(|why| anyhow!(BadUsage(format!("{name}: {why}"))))
}

fn row<'a>(judged: &JudgedExpectation<'_>) -> Row<'a> {
    let mut row = Row::new(&ASSERT);
    row.set("name", judged.of.name.clone()).set("outcome", judged.outcome.word());
    row.set("condition", judged.of.condition()).set("found", judged.found.clone());
    row.set("why", judged.why.clone()).set("command", judged.of.command());
    row
}

fn text(judged: &[JudgedExpectation<'_>], out: &mut Out) -> Result<()> {
    let cells = |judged: &JudgedExpectation<'_>| {
        let plain = |text: &str| escaped(text.as_bytes());
        vec![
            judged.outcome.word().replace('_', " "),
            plain(&judged.of.name),
            plain(&judged.of.condition()),
            judged.found.clone().unwrap_or_else(|| "?".to_owned()),
            judged.why.as_deref().map(plain).unwrap_or_default(),
        ]
    };
    let table = ["outcome", "name", "expected"].into_iter().fold(Table::default(), Table::word);
    table.word("found").word("").print_rows(judged.iter().map(cells), out)?;
    let count = |outcome: &ExpectationOutcome| judged.iter().filter(|judged| judged.outcome == *outcome).count();
    let (holds, fails, open) =
        (count(&ExpectationOutcome::Holds), count(&ExpectationOutcome::Fails), count(&ExpectationOutcome::NotKnown));
    out.text([format!("holds: {holds}, fails: {fails}, not known: {open}")])?;
    // the question to ask next
    let failed = judged.iter().filter(|judged| judged.outcome == ExpectationOutcome::Fails);
    out.text(failed.map(|judged| format!("  analyze {}", judged.of.command())))?;
    Ok(())
}

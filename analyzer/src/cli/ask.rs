//! Asks a view inside this program: the rows of its JSON are passed on instead of printed. So whatever is made of them has the figures
//! that the view prints.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail};
use systape_format::reader::Tape;

use crate::asked::config::view::{Answered, Run};
use crate::cli::parse;
use crate::values::output;
use crate::values::say::Verdict;
use crate::values::whose::{self, To, Told, Whose};

/// Gets the lines of an answer, and breaks off when it needs no more.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&[u8]) -> Result<ControlFlow<()>>;

/// Passes each line of the JSON of `words` (`["top", "--by", "comm"]`), of `tape`, to `each`.
///
/// # Errors
/// The view has no answer, or `each` fails.
pub(crate) fn ask(words: &[String], tape: &Tape, each: Each<'_>) -> Result<Answered> {
    let typed = words.iter().map(String::as_str).chain(["--format", "json", "-i", "-"]);
    let typed = std::iter::once("analyze").chain(typed).map(OsString::from);
    let config = parse::parse(typed).map_err(|stop| anyhow!("{stop:?}"))?.config()?;
    match config.view.run {
        Run::Prints(run) => read(each, || run(&config, tape)),
        // without its file it prints
        Run::Writes { run, .. } => read(each, || run(&config, tape, None)),
        _ => bail!("'analyze {}' answers in another way", words.join(" ")),
    }
}

fn read(each: Each<'_>, answer: impl FnOnce() -> Result<Verdict> + Send) -> Result<Answered> {
    let (reader, writer) = std::io::pipe().context("cannot read what a report answers")?;
    let told = Told::default();
    let verdict = std::thread::scope(|scope| {
        // the reader comes to the end when this has ended, whatever happens
        let whose = Whose { name: String::new(), to: To::Read(Arc::new(writer), Arc::clone(&told)) };
        let report = scope.spawn(|| whose::of(whose, answer));
        let read = lines(reader, each);
        let answered = report.join().unwrap_or_else(|_| Err(anyhow!("the report failed")));
        match (read, answered) {
            (Err(error), _) => Err(error),
            (Ok(()), Err(error)) if output::is_closed_pipe(&error) => Ok(Verdict::default()),
            (Ok(()), answered) => answered,
        }
    })?;
    let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Answered { verdict, told })
}

fn lines(from: PipeReader, each: Each<'_>) -> Result<()> {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        if each(line.trim_ascii_end())?.is_break() {
            break;
        }
        line.clear();
    }
    Ok(())
}

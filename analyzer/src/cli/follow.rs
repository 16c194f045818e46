//! An answer that goes on while its tape is written: what came last is passed to the view, part by part.

use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use systape_format::reader::Feed;

use crate::asked::config::Config;
use crate::asked::config::view::BeginAnswer;
use crate::cli::answer::no_wall_clock;
use crate::reports::losses;
use systape_answers::render::out::Out;
use systape_answers::values::arriving::Arriving;
use systape_answers::values::open::look;
use systape_answers::values::say::Verdict;
use systape_answers::values::spool::{self, STDIN};

/// The tape that `config` names, from its beginning.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open(config: &Config) -> Result<File> {
    if cfg!(target_family = "wasm") {
        bail!("--follow waits for a tape in a thread, and there is none here: leave it out");
    }
    if config.file == Path::new(STDIN) {
        return spool::input();
    }
    look(&config.file)?;
    File::open(&config.file).with_context(|| config.file.display().to_string())
}

/// Prints the answer until the tape ends, nobody reads it any more, or a signal ends it.
///
/// # Errors
/// It is no tape, it cannot be read, or there is no answer.
pub(crate) fn answer(config: &Config, begin: BeginAnswer, file: File) -> Result<Verdict> {
    let name =
        || if config.file == Path::new(STDIN) { "standard input".into() } else { config.file.display().to_string() };
    let (arriving, stopped) = Arriving::of(file).with_context(name)?;
    let mut feed = Feed::open(arriving).with_context(name)?;
    no_wall_clock(config, feed.tape())?;
    let mut follows = begin(config)?;
    let mut out = Out::stdout(config.format)?;
    let (mut verdict, mut checked) = (Verdict::default(), false);
    while feed.advance().with_context(name)? {
        let tape = feed.tape();
        // what a signal cut off is not lost
        if stopped.load(Ordering::Relaxed) && !tape.is_followed() {
            break;
        }
        // tables are defined behind the first checkpoint
        if !checked && !tape.segments().is_empty() {
            let notes = config.events.check(|| tape.table_defs().values().map(|def| &**def).collect())?;
            notes.iter().for_each(|note| out.say(note));
            checked = true;
        }
        let added = follows.add(tape, &mut out)?;
        out.flush()?;
        let (ControlFlow::Break(more) | ControlFlow::Continue(more)) = added;
        verdict = losses::damage(tape.misses(), verdict.and(more), &mut out);
        if added.is_break() {
            break;
        }
    }
    Ok(verdict)
}

//! `analyze merge A B ... -o OUT`: puts cuts of one recording together again, neighbours or such that overlap.
//!
//! OUT has every event of them once. Tapes of different recordings are refused: their numbers of threads, processes and
//! sockets mean different ones. OUT is never an existing file.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use systape_format::merge::{Refused, merge};
use systape_format::reader::Tape;
use systape_format::repair::{Holes, Repaired};

use super::check;
use super::repair::{Copied, fill, new_file, sync};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::seconds;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::open;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row: the new tape.
    pub MERGE = "merge" {
        merged: Str [Path] "the new tape"
        tapes: Count "tapes that it was made of"
        from_ns: Time "beginning of the time that it is about, since the start of the recording"
        to_ns: Time "its end, which is not in it; null: the end of the recording"
        grade: Word "`good` or `usable`"
        segments: Count "segments"
        bytes: Wide "size"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "merge",
    about: "Puts cuts of one recording together again",
    operands: Operands::Tapes,
    own: Own::of::<Options>(),
    examples: [
        ("analyze merge a.tape b.tape -o both.tape", "two cuts that follow each other as one tape"),
        ("analyze merge cuts/ -o all.tape", "all cuts of a directory"),
    ],
    tables: &[Rows::of("merge", &[All(&MERGE)])],
    check: |config| output_of(config).map(drop),
    run: AnswerFn::Exports { make, run },
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Tape to write; never an existing file
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn output_of(config: &Config) -> Result<PathBuf> {
    match config.own::<Options>()?.output {
        Some(output) => Ok(output),
        None => bail!("'analyze merge A B ... -o OUT' writes a tape: name it with -o"),
    }
}

fn make(config: &Config) -> Result<Option<NewFile>> {
    new_file(config, &output_of(config)?, &config.file).map(Some)
}

/// Fills `new` from the tapes at `paths`, checks it and reports what it has.
fn run(_: &Config, paths: &[PathBuf], new: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let Some(new) = new else { bail!("no file was made for the tape") };
    let tapes = paths.iter().map(|path| open(path)).collect::<Result<Vec<Tape>>>()?;
    let all: Vec<&Tape> = tapes.iter().collect();
    let named = |at: usize| paths.get(at).map_or_else(String::new, |path| escaped(path.as_os_str().as_encoded_bytes()));
    let written = |file: &std::fs::File| {
        let (out, merged) = merge(&all, BufWriter::new(file)).map_err(|refused| match refused {
            Refused::Tape(at, why) => anyhow!("{}: {why}", named(at)),
            failed => failed.into(),
        })?;
        sync(out)?;
        Ok(Repaired { holes: Holes::default(), segments: merged.segments, reason: String::new() })
    };
    let to = new.path().display().to_string();
    let Copied { repaired, copy, good } = fill(new, written)?;
    let (open, cut) = (copy.session().window_open, copy.session().cut);
    if out.is_text() {
        let size = format!("{} segments, {} bytes", repaired.segments, copy.len_bytes());
        line(out, &format!("{to}: {}: {size}", check::grade(good)))?;
        let about = match cut {
            Some(cut) => {
                let end = cut.to.min(copy.complete_until());
                format!("{} to {} s of the recording", seconds(cut.from, open), seconds(end, open))
            }
            None => "the whole recording".to_owned(),
        };
        line(out, &format!("It is about {about}."))?;
    } else {
        let ns = |ts: u64| ts.wrapping_sub(open) as i64;
        let mut row = Row::new(&MERGE);
        row.set("merged", to).set("tapes", paths.len()).set("from_ns", cut.map_or(0, |cut| ns(cut.from)));
        row.set("to_ns", cut.filter(|cut| cut.to < u64::MAX).map(|cut| ns(cut.to)));
        row.set("grade", check::grade(good)).set("segments", repaired.segments).set("bytes", copy.len_bytes());
        out.rows(&MERGE, Judgement::Each, [row])?;
    }
    out.flush()?;
    Ok(Verdict { lost: false, bad: !good })
}

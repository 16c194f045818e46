//! `analyze repair IN OUT`: copies the whole parts of a damaged tape into a new one that checks as good. `analyze
//! redact IN OUT` copies the same, without data about people and machines.
//!
//! Missing parts stay missing in OUT, as gap records. OUT is never an existing file, nor the target of a link.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde_json::Value;
use systape_abi::Abi;
use systape_format::model::{Call, Class};
use systape_format::reader::Tape;
use systape_format::redact::{Level, Redactor};
use systape_format::repair::{Repaired, redact, repair};

use super::check;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::values::new_file::NewFile;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;

systape_format::tables! {
    /// One row: the copy, and what it lacks.
    pub REPAIR = "repair" {
        file: Str [Path] "the damaged tape"
        repaired: Str [Path] "its copy; the columns below are of it"
        redacted_classes: Nested "classes of data that were taken out of the tape, then or before"
        grade: Word "`good` or `usable`"
        segments: Count "segments"
        bytes: Wide "size"
        holes: Nested "what the damaged tape lacks, as `check` lists it"
        more_holes: Count "how many more there are"
    }
    /// One row: the copy, and what was taken out of it.
    pub REDACT = "redact" {
        file: Str [Path] "the tape"
        redacted: Str [Path] "its copy; the columns below are of it"
        redacted_classes: Nested "classes of data that were taken out"
        grade: Word "`good` or `usable`"
        segments: Count "segments"
        bytes: Wide "size"
        holes: Nested "what the tape lacks, as `check` lists it"
        more_holes: Count "how many more there are"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "repair",
    about: "Copies what is whole of a damaged tape",
    operands: Operands::TapeAndCopy,
    examples: [
        ("analyze repair torn.tape clean.tape", "a tape that reads without complaint"),
        ("analyze repair --format json torn.tape clean.tape", "what was missing, as an object"),
    ],
    tables: &[Rows::of("repair", &[All(&REPAIR)])],
    run: AnswerFn::Writes { make: create, run, tells_damage: true },
    ..View::PLAIN
};

/// What is asked with the word `redact`.
pub(crate) static REDACT_VIEW: View = View {
    name: "redact",
    about: "Copies a tape without paths, strings and names",
    operands: Operands::TapeAndCopy,
    own: Own::of::<Options>(),
    examples: [
        ("analyze redact in.tape out.tape", "without all that tells of people and machines"),
        ("analyze redact --level paths in.tape out.tape", "without paths"),
    ],
    tables: &[Rows::of("redact", &[All(&REDACT)])],
    run: AnswerFn::Writes { make: create, run, tells_damage: true },
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// What is taken out: paths; strings (paths, captured strings, command lines); all (also names of threads and users, addresses, the host)
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    level: RedactLevel,
}

/// What is taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RedactLevel {
    /// Only paths.
    Paths,
    /// Paths, captured strings and command lines.
    Strings,
    /// All that tells of people and machines.
    #[default]
    All,
}

impl From<RedactLevel> for Level {
    fn from(level: RedactLevel) -> Self {
        match level {
            RedactLevel::Paths => Self::Paths,
            RedactLevel::Strings => Self::Strings,
            RedactLevel::All => Self::All,
        }
    }
}

/// A file that was written, and read again.
pub(super) struct Copied {
    /// What the writer says of it.
    pub repaired: Repaired,
    /// The file as a tape.
    pub copy: Tape,
    /// Whether it has an end mark, and follows all rules.
    pub good: bool,
}

/// Fills `new` by `write`, and checks it.
///
/// # Errors
/// It cannot be written, or is no tape.
pub(super) fn fill(new: &mut NewFile, write: impl FnOnce(&File) -> Result<Repaired>) -> Result<Copied> {
    let to = &new.path().to_owned();
    let (repaired, copy) = write(new.file())
        .and_then(|repaired| Ok((repaired, Tape::open(to)?)))
        .with_context(|| format!("cannot write {}", to.display()))?;
    new.keep();
    let bar = check::progress("checking", copy.len_bytes());
    let found = copy.verify(&|done| bar.set_position(done));
    bar.finish_and_clear();
    let good = found.is_empty() && copy.end_mark().is_some();
    Ok(Copied { repaired, copy, good })
}

/// Writes all that `out` holds to the disk.
pub(super) fn sync(out: BufWriter<&File>) -> Result<()> {
    Ok(out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?)
}

/// Fills `copy`, the second file of `config`, from `tape`, checks it and reports its holes.
fn run(config: &Config, tape: &Tape, copy: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let new = copy.context("no file to write to")?;
    let to = &new.path().to_owned();
    let Copied { repaired, copy, good } = fill(new, |file| write(config, tape, file))?;
    if out.is_text() {
        text(out, config, to, tape, &copy, &repaired, good)?;
    } else {
        let table = if redacts(config) { &REDACT } else { &REPAIR };
        let mut row = Row::new(table);
        row.set("file", config.file.display().to_string()).set(done(config), to.display().to_string());
        row.set("redacted_classes", Value::from(classes(&copy))).set("grade", check::grade(good));
        row.set("segments", repaired.segments).set("bytes", copy.len_bytes());
        row.set("holes", check::holes_json(tape, &repaired.holes)).set("more_holes", repaired.holes.more);
        out.rows(table, Judgement::Each, [row])?;
    }
    out.flush()?;
    Ok(Verdict { lost: repaired.holes.count() > 0, bad: !good })
}

/// Makes the second file of `config`.
///
/// # Errors
/// It exists, or its directory takes no files.
pub(super) fn create(config: &Config) -> Result<Option<NewFile>> {
    let to = config.second.as_deref().context("no file to write to")?;
    new_file(config, to, &config.file).map(Some)
}

/// A new file at `to`, beside the tape `from`.
///
/// # Errors
/// It exists, or its directory takes no files.
pub(super) fn new_file(config: &Config, to: &Path, from: &Path) -> Result<NewFile> {
    match NewFile::private(to) {
        Ok(file) => Ok(file),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            if to.canonicalize().ok().is_some_and(|to| from.canonicalize().ok() == Some(to)) {
                bail!("{}: a tape is not {} in place: name another file for the copy", to.display(), done(config));
            }
            bail!("{} exists already: 'analyze {}' never overwrites", to.display(), config.view.name)
        }
        Err(e) => Err(e).with_context(|| format!("cannot create {}", to.display())),
    }
}

/// Whether data about people is to be taken out.
fn redacts(config: &Config) -> bool {
    std::ptr::eq(config.view, &REDACT_VIEW)
}

fn done(config: &Config) -> &'static str {
    match config.view.name {
        "redact" => "redacted",
        "cut" => "cut",
        "merge" => "put together",
        _ => "repaired",
    }
}

/// The class of captured memory.
fn class(call: Call, arg: u8, bytes: &[u8]) -> Option<Class> {
    Class::named(systape_abi::captured_class(Abi::from_raw(call.abi), call.nr, arg, bytes))
}

/// What takes out the data of a level.
pub(crate) fn redactor(level: RedactLevel) -> Redactor {
    Redactor::new(level.into(), class)
}

/// Writes to `file` what `redactor` leaves of `tape`.
///
/// # Errors
/// The tape cannot be read or is of a newer version, or the file not be written.
#[cfg(unix)]
pub(crate) fn redact_to(tape: &Tape, redactor: &Redactor, file: &File) -> Result<()> {
    let (mut out, _) = redact(tape, BufWriter::new(file), random_id()?, redactor, &|_| {})?;
    Ok(out.flush()?)
}

/// The device that ids of copies come from.
pub(crate) const RANDOM: &str = "/dev/urandom";

/// A random id for a new tape.
///
/// # Errors
/// There is no device for random numbers.
pub(crate) fn random_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open(RANDOM).and_then(|mut random| random.read_exact(&mut id)).context("no random id")?;
    Ok(id)
}

fn write(config: &Config, tape: &Tape, file: &File) -> Result<Repaired> {
    let id = random_id()?;
    let level = if redacts(config) { Some(config.own::<Options>()?.level) } else { None };
    let redactor = level.map(redactor);
    let bar = check::progress(if redactor.is_some() { "redacting" } else { "repairing" }, tape.len_bytes());
    let progress = |done| bar.set_position(done);
    let (out, repaired) = match &redactor {
        Some(redactor) => redact(tape, BufWriter::new(file), id, redactor, &progress)?,
        None => repair(tape, BufWriter::new(file), id, &progress)?,
    };
    bar.finish_and_clear();
    sync(out)?;
    Ok(repaired)
}

fn classes(copy: &Tape) -> Vec<&'static str> {
    copy.session().redacted.iter().map(|class| class.name()).collect()
}

fn text(
    out: &mut Out,
    config: &Config,
    to: &Path,
    tape: &Tape,
    copy: &Tape,
    repaired: &Repaired,
    good: bool,
) -> Result<()> {
    let size = format!("{} segments, {} bytes", repaired.segments, copy.len_bytes());
    line(out, &format!("{}: {}: {size}", to.display(), check::grade(good)))?;
    if redacts(config) {
        line(out, &format!("Taken out: {}.", classes(copy).join(", ")))?;
    }
    if !good {
        line(out, "Something in it is against the rules of the format and was so before: 'analyze check' says what.")?;
    }
    if repaired.holes.count() == 0 && redacts(config) {
        return Ok(());
    }
    if repaired.holes.count() == 0 {
        line(out, &format!("Nothing is missing that {} had.", config.file.display()))?;
        return Ok(());
    }
    line(out, &format!("What {} has lost stays lost, and reports on the copy say so:", config.file.display()))?;
    check::holes_text(out, tape, &repaired.holes)
}

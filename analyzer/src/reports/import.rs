//! `analyze import strace LOG`: makes a tape of a log that strace wrote, which all reports about calls then answer from.
//!
//! What strace does not say is not known in the tape. The tape is never an existing file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde_json::Value;
use systape_abi::Abi;
use systape_format::repair::{Holes, Repaired};

use super::check;
use super::repair::{Copied, fill, new_file, random_id, sync};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use crate::import::LogFile;
use crate::import::strace::{ImportedLog, LogFacts, import, unknown_names};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::look;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_answers::values::spool;
use systape_events::values::clock;
use systape_events::values::num::counted;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row: the new tape, and what the log does not say.
    pub IMPORT = "import strace" {
        imported: Str [Path] "the new tape"
        calls: Count "calls"
        not_understood: Count "lines that were not understood: calls and signals that are lost"
        not_strace: Count "lines that are not strace's: output of the program"
        signals: Count "signals that threads took"
        unknown_calls: Nested "`{name: lines}`: calls that this version has no number for; they are among `not_understood`"
        notes: Nested "what the log does not say, in words"
        grade: Word "`good` or `usable`"
        segments: Count "segments"
        bytes: Wide "size"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "import strace",
    about: "Makes a tape of a log that strace wrote (strace -f -ttt -T -y -o LOG)",
    operands: Operands::Logs,
    own: Own::of::<Options>(),
    examples: [
        ("analyze import strace app.log", "makes app.tape, which 'analyze why app.tape' and other reports read"),
        ("analyze import strace -o app.tape app.log.*", "the logs of strace -ff, one a thread, as one tape"),
    ],
    tables: &[Rows::of("import strace", &[All(&IMPORT)])],
    check: |config| midnight(&config.own::<Options>()?).map(drop),
    run: AnswerFn::Imports { find, make, run },
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Tape to write, never an existing file; without it the log's name with the ending .tape
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Day on which the log begins, of times without one (strace -t, -tt): 2026-11-30. Times of day are taken for UTC
    #[arg(long, value_name = "DAY")]
    day: Option<String>,

    /// Process of lines that name none (strace without -f)
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    of_pid: Option<u32>,

    /// Machine that the program ran on
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    machine: LogMachine,
}

/// The machine of a log: numbers of calls and flags differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogMachine {
    /// 64-bit x86.
    #[default]
    #[value(name = "x86_64")]
    X86,
    /// 64-bit ARM.
    #[value(name = "aarch64")]
    Arm,
    /// 32-bit x86.
    #[value(name = "i686")]
    I686,
}

impl LogMachine {
    fn native(self) -> (Abi, &'static str) {
        match self {
            Self::X86 => (Abi::X86_64, "x86_64"),
            Self::Arm => (Abi::Aarch64, "aarch64"),
            Self::I686 => (Abi::I386, "i686"),
        }
    }
}

fn midnight(own: &Options) -> Result<Option<u64>> {
    let Some(day) = &own.day else { return Ok(None) };
    match clock::parse_date(day) {
        Some(midnight) => Ok(Some(midnight)),
        None => bail!("--day {day}: a day is written 2026-11-30"),
    }
}

/// Most files of one log.
const MOST: usize = 10_000;

/// The logs that are named: files of one `strace -ff` are put together.
fn find(config: &Config) -> Result<Vec<LogFile>> {
    let named: Vec<&PathBuf> = std::iter::once(&config.file).chain(&config.more).collect();
    let one = |path: &Path, tid| LogFile { path: path.to_owned(), file: None, tid };
    if let [only] = named.as_slice() {
        if only.as_path() == Path::new(spool::STDIN) {
            return Ok(vec![LogFile { path: (*only).clone(), file: Some(spool::as_file()?), tid: None }]);
        }
        if !only.exists() {
            let parts = parts_of(only)?;
            if !parts.is_empty() {
                return Ok(parts);
            }
        }
        look(only)?;
        return Ok(vec![one(only, None)]);
    }
    if named.len() > MOST {
        bail!("more than {MOST} logs: put them together first (strace-log-merge LOG > ALL)");
    }
    let stems: Vec<Option<(&Path, u32)>> = named.iter().map(|path| thread_of(path)).collect();
    let first = stems.first().copied().flatten().map(|(stem, _)| stem.to_owned());
    let mut logs = Vec::new();
    for (path, stem) in named.iter().zip(&stems) {
        look(path)?;
        match stem {
            Some((stem, tid)) if first.as_deref() == Some(*stem) => logs.push(one(path, Some(*tid))),
            _ => bail!(
                "several logs become one tape only if strace -ff wrote them (LOG.PID): import the others one by one"
            ),
        }
    }
    Ok(logs)
}

/// The name of a log without the thread at its end, and the thread: `app.log.4711`.
fn thread_of(path: &Path) -> Option<(&Path, u32)> {
    let text = path.to_str()?;
    let (stem, digits) = text.rsplit_once('.')?;
    let digit = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((Path::new(stem), digits.parse().ok().filter(|tid| digit && *tid > 0)?))
}

/// The files that `strace -ff -o PATH` wrote.
fn parts_of(path: &Path) -> Result<Vec<LogFile>> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let part = directory.join(name);
        let part = part.strip_prefix(".").map(Path::to_owned).unwrap_or(part);
        let Some((stem, tid)) = thread_of(&part) else { continue };
        if stem == path.strip_prefix(".").unwrap_or(path) && part.is_file() {
            if parts.len() == MOST {
                bail!("more than {MOST} logs: put them together first (strace-log-merge LOG > ALL)");
            }
            parts.push(LogFile { path: part.clone(), file: None, tid: Some(tid) });
        }
    }
    parts.sort_by_key(|part| part.tid);
    Ok(parts)
}

/// Makes the file for the tape.
fn make(config: &Config) -> Result<NewFile> {
    let to = match config.own::<Options>()?.output {
        Some(output) => output,
        None => default_name(&config.file),
    };
    new_file(config, &to, &config.file)
}

/// The name of a tape that is not named: that of the log, in the current directory.
fn default_name(log: &Path) -> PathBuf {
    if log == Path::new(spool::STDIN) {
        return PathBuf::from("strace.tape");
    }
    let log = thread_of(log).map_or(log, |(stem, _)| stem);
    let mut name = log.file_stem().unwrap_or_default().to_owned();
    name.push(".tape");
    PathBuf::from(name)
}

/// Fills `new` with what `logs` say, checks it and reports what is missing.
fn run(config: &Config, logs: &[LogFile], new: &mut NewFile, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let named = escaped(config.file.as_os_str().as_encoded_bytes());
    let facts = LogFacts {
        pid: own.of_pid,
        midnight: midnight(&own)?,
        native: own.machine.native(),
        version: systape_cli::version().to_owned(),
        target: format!("the log {named}"),
    };
    let (written, imported) =
        import(logs, &facts, BufWriter::new(new.file()), random_id()?).with_context(|| named.clone())?;
    sync(written)?;
    let to = new.path().display().to_string();
    let segments = imported.segments;
    let done = |_: &File| Ok(Repaired { holes: Holes::default(), segments, reason: String::new() });
    let Copied { copy, good, .. } = fill(new, done)?;
    if out.is_text() {
        text(out, &imported, &to, check::grade(good), copy.len_bytes())?;
    } else {
        let mut row = Row::new(&IMPORT);
        let unknown: serde_json::Map<String, Value> =
            imported.unknown.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect();
        row.set("imported", to).set("calls", imported.counts.calls).set("not_understood", imported.counts.lost);
        row.set("not_strace", imported.foreign).set("signals", imported.counts.signals);
        row.set("unknown_calls", Value::from(unknown)).set("notes", Value::from(imported.notes.clone()));
        row.set("grade", check::grade(good)).set("segments", imported.segments).set("bytes", copy.len_bytes());
        out.rows(&IMPORT, Judgement::Each, [row])?;
    }
    out.flush()?;
    Ok(Verdict { lost: imported.counts.lost > 0, bad: !good })
}

/// Lines about the tape, the last about what was not understood.
fn text(out: &mut Out, imported: &ImportedLog, to: &str, grade: &str, bytes: u64) -> Result<()> {
    let calls = counted(imported.counts.calls, "call");
    line(out, &format!("{to}: {grade}: {calls}, {}, {bytes} bytes", counted(imported.segments.into(), "segment")))?;
    for note in &imported.notes {
        line(out, &format!("{note}."))?;
    }
    if imported.counts.signals > 0 {
        let signals = counted(imported.counts.signals, "signal");
        line(out, &format!("{signals}, each when it was taken: when it was sent, the log does not say."))?;
    }
    if imported.foreign > 0 {
        let lines = counted(imported.foreign, "line");
        line(out, &format!("{lines} not strace's: passed over as output of the program."))?;
    }
    let unknown = unknown_names(imported);
    if !unknown.is_empty() {
        let times: u64 = imported.unknown.values().sum();
        line(out, &format!("{} of calls that have no number on this machine: {unknown}.", counted(times, "line")))?;
    }
    let lost = match imported.counts.lost {
        0 => "Every line of strace's was understood.".to_owned(),
        lost => {
            format!("{} not understood: counted as lost, so that answers are \"at least\".", counted(lost, "line"))
        }
    };
    Ok(line(out, &lost)?)
}

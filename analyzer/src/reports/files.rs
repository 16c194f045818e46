//! `analyze files`: calls on each file, as sums; or one a line, as opensnoop and fileslower print them.
//!
//! Operations of io_uring and io_submit count as calls. Reads through a memory mapping are not included.

pub(super) mod lines;
pub(super) mod sums;
pub(super) mod work;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use systape_abi::{ArgKind, ContentIo};
use systape_format::model::Family;
use systape_format::reader::Tape;

use self::lines::{List, ListedAction};
use self::sums::Asked;
use self::work::Work;
use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Rows, TASKS, View};
use systape_answers::derive::paths::names::Name;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::by;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Rank;
use systape_answers::values::say::Verdict;
use systape_events::calls::CallInfo;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::values::timespec;

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns; `file` without it. What record counted and did not store has no file
    /// and no size: it is in rows with null for `file`, and what else may hold it is at least.
    pub FILES = "files" {
        calls ? AtLeast: Count "calls on files, and operations of io_uring and io_submit; a call on two counts for both"
        opens ? AtLeast: Count "of these, those that open, failed ones too"
        reads ? AtLeast: Count "those that read, failed ones too"
        cached_reads ? AtLeast: Count "of these, those that returned bytes which were there: nothing was read from a disk meanwhile, read-ahead included, and the thread did not sleep; null: not known, as families sched and block are not both on the tape, or some of their events were missed"
        writes ? AtLeast: Count "those that write, failed ones too"
        errors ? AtLeast: Count "those that failed"
        read_bytes ? AtLeast: Wide "what they read; a look (MSG_PEEK) reads nothing"
        write_bytes ? AtLeast: Wide "what they wrote"
        total_ns ? AtLeast: Duration "time in all of them; of an operation until its program was told"
        max_ns ? AtLeast: Duration "the longest"
        mapped: Flag "true: a call mapped it into memory, not as a loader does, and what was read and written there is in no column; mappings of before the recording are not known; null: not known"
        ledger_calls ? AtLeast: Count "part of `calls` known by count only ([counted calls](../reading/losses.md#stored-counted-lost))"
        first_ns ? AtMost: Time "when the first of the calls began; of one that was counted, when it ended; null: not known"
        last_ns ? AtLeast: Time "when the last of them ended; null: not known"
    }
    /// One row for each call on a file that `--opens` or `--slower` lists, in the order in which they returned.
    pub FILE_CALLS = "file_calls" {
        ts_ns: Time key "when it began"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        dur_ns ? AtLeast: Duration "how long it took; null: not known"
        pid: Int "process"
        tid: Int key "thread"
        upid: Int "the process, unique in the tape"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        uid: Int "real user; null: not known"
        syscall: Word key "its name"
        fd: Int "the new descriptor; null: it failed, it did not return, or it opens nothing"
        errno: Word "name of the error; null: none"
        errno_code: Int "its number; null: none"
        flags.value: Int "flags of the open; `flags` null: it is none, or they are not known"
        flags.text: Word "the same in words: `WRONLY|CREAT`"
        read_bytes: Wide "what it read; null: it does not read, or failed, or did not return, or it is not known (recvmmsg)"
        write_bytes: Wide "what it wrote; null: it does not write, or failed, or did not return, or it is not known (sendmmsg)"
        file: Str [Path] "full path; of what was opened as the kernel names it, without symbolic links and `..`; null: not known, or none (the path was empty)"
        name: Str [Path] "the path as the program gave it, if it did; null: it gave a descriptor, or it is not on the tape"
        file2: Str [Path] "of a call on two files the other one; null: there is none, or it is not known"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "files",
    about: "What was done with each file: opens, reads, writes, bytes, errors, time; or opens and slow calls one a line",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events", "clock", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze files --by comm,file -p 2214", "files and threads of a process, by time"),
        ("analyze files --opens --failure", "what could not be opened, with full paths"),
    ],
    tables: &[
        Rows::of("files", &[Keys(&by::BY), All(&FILES)]),
        Rows::of("files --opens", &[All(&FILE_CALLS)]),
        Rows::json("files --opens", &[All(&LOSSES)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// One line an open, in the order in which they returned, as opensnoop
    #[arg(long)]
    opens: bool,

    /// One line a call on a file that took longer than this, as fileslower; a bare number is ms
    #[arg(long, value_name = "TIME")]
    slower: Option<String>,

    /// Sockets, pipes and other descriptors too that are of no file
    #[arg(long)]
    sockets: bool,

    /// What comes first
    #[arg(long = "rank", value_enum, value_name = "COLUMN")]
    by_most: Option<Most>,

    #[command(flatten)]
    rank: Rank,
}

/// What rows are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Most {
    /// Time in the calls
    #[default]
    Time,
    /// Calls
    Calls,
    /// Opens
    Opens,
    /// Reads
    Reads,
    /// Writes
    Writes,
    /// Bytes read and written
    Bytes,
    /// Bytes read
    Rbytes,
    /// Bytes written
    Wbytes,
    /// Calls that failed
    Errors,
}

impl Most {
    /// All calls have a row, those without any of it too; of equal ones the one with most time comes first.
    fn of(self) -> fn(&Work) -> u128 {
        const fn with(most: u64, work: &Work) -> u128 {
            ((most as u128) << 64) + work.ns as u128 + 1
        }
        match self {
            Self::Time => |work| u128::from(work.ns) + 1,
            Self::Calls => |work| with(work.calls, work),
            Self::Opens => |work| with(work.opens, work),
            Self::Reads => |work| with(work.reads, work),
            Self::Writes => |work| with(work.writes, work),
            Self::Bytes => |work| with(work.read.saturating_add(work.written), work),
            Self::Rbytes => |work| with(work.read, work),
            Self::Wbytes => |work| with(work.written, work),
            Self::Errors => |work| with(work.errors, work),
        }
    }
}

impl Options {
    fn listed(&self) -> bool {
        self.opens || self.slower.is_some()
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    keys(config)?;
    slower(&own)?;
    let lines = config.max_events != u64::MAX || config.base().is_some();
    match own.listed() {
        true if !config.by.is_empty() || own.rank.given() || own.by_most.is_some() => {
            bail!("--opens and --slower list calls: --by, --rank and --top are for sums")
        }
        false if lines => {
            bail!("--clock, -T and --max-events are for lines: they need --opens or --slower (rows: --top N)")
        }
        _ => Ok(()),
    }
}

fn slower(own: &Options) -> Result<Option<u64>> {
    own.slower.as_ref().map(|text| timespec::duration(text, 1_000_000).context("--slower")).transpose()
}

/// The keys of rows of sums.
fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let by = GroupKey::parse(&config.by, &Plan::KNOWN, "'analyze files'")?;
    Ok(if by.is_empty() { vec![GroupKey::File] } else { by })
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let by = keys(config)?;
    if own.listed() {
        families::require(tape, Family::Syscall, "syscalls")?;
        // paths follow from where processes are
        let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process])?;
        let (stamps, layout) = (context.stamps(), if own.opens { lines::OPENS } else { lines::SLOWER });
        let doing = if own.opens { ListedAction::Open } else { ListedAction::Any };
        let list = List { doing, slower: slower(&own)?, sockets: own.sockets, stamps, layout };
        return lines::answer(&mut context, &list, out);
    }
    let limit = config.limit(own.rank);
    let rank = own.by_most.unwrap_or_default().of();
    answer_sums(
        config,
        tape,
        &Asked { by: &by, sockets: own.sockets, limit, rank, without: |_| false, layout: None },
        out,
    )
}

/// The whole answer, sums.
pub(super) fn answer_sums(config: &Config, tape: &Tape, asked: &Asked<'_>, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    // paths follow from where processes are
    let by_path = asked.by.contains(&GroupKey::File);
    let families: &[Family] = match by_path {
        true => &[Family::Syscall, Family::IoUring, Family::Process],
        false => &[Family::Syscall, Family::IoUring],
    };
    let mut context = Context::about(config, tape, families)?;
    let doubts = sums::print(&mut context, asked, out)?;
    let verdict = losses::end_of_sums(&context, out)?;
    Ok(verdict.doubted(doubts))
}

/// Whether the object behind a descriptor is a file, or may be one.
fn is_file(name: &Name<'_>) -> bool {
    match name {
        // redacted names are known to differ, no more
        Name::Known(name) => name.starts_with(b"/") || name.starts_with(b"<redacted"),
        // listed with what was given
        Name::InCwd(_) | Name::Nothing | Name::Unknown => true,
    }
}

/// Whether a call has an argument that may name a file.
fn on_files(info: &CallInfo) -> bool {
    info.io == ContentIo::Open || info.args.iter().any(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Fd))
}

/// Whether a call has an argument that names a file.
fn names_file(info: &CallInfo) -> bool {
    info.args.iter().any(|arg| matches!(arg.kind, ArgKind::Path))
}

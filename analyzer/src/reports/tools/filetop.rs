//! `analyze filetop`: the reads and writes of `analyze files` by thread and file, in filetop's columns.

use anyhow::Result;
use clap::ValueEnum;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Rows, TASKS, View};
use crate::reports::files::sums::Asked;
use crate::reports::files::work::Work;
use crate::reports::files::{FILES, answer_sums};
use systape_answers::render::by::BY;
use systape_answers::render::columns::{Column, Layout, Line, kilobytes, plain};
use systape_answers::render::out::Out;
use systape_answers::render::rank::Few;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "filetop",
    about: "Reads and writes by thread and file, in the columns of bcc's filetop, with full paths",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze filetop --rank wbytes", "the most written first"),
        ("analyze filetop --all-files -p 2214", "sockets, pipes and devices of a process too"),
    ],
    tables: &[Rows::of("filetop", &[Keys(&BY), All(&FILES)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Devices, sockets, pipes and other descriptors too that are of no regular file
    #[arg(long)]
    all_files: bool,

    /// What comes first
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
    rank: FileRank,

    #[command(flatten)]
    rows: Few,
}

/// What rows are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FileRank {
    /// Reads, writes and their bytes together
    #[default]
    All,
    /// Reads
    Reads,
    /// Writes
    Writes,
    /// Bytes read
    Rbytes,
    /// Bytes written
    Wbytes,
}

impl FileRank {
    /// Of what neither reads nor writes 0.
    fn of(self) -> fn(&Work) -> u128 {
        // what has none of it comes last
        const fn with(most: u64, work: &Work) -> u128 {
            ((most as u128) << 64) + work.reads as u128 + work.writes as u128
        }
        match self {
            Self::All => |work| [work.reads, work.writes, work.read, work.written].into_iter().map(u128::from).sum(),
            Self::Reads => |work| with(work.reads, work),
            Self::Writes => |work| with(work.writes, work),
            Self::Rbytes => |work| with(work.read, work),
            Self::Wbytes => |work| with(work.written, work),
        }
    }
}

static LAYOUT: Layout = Layout {
    columns: &[
        Column::left("TID", 7, |line| line.word("tid")).leaves(2),
        Column::left("COMM", 16, |line| line.word("comm")).shortens(),
        Column::left("READS", 6, |line| line.counted("reads", plain)),
        Column::left("WRITES", 6, |line| line.counted("writes", plain)),
        Column::left("R_Kb", 7, |line| line.counted("read_bytes", kilobytes)),
        Column::left("W_Kb", 7, |line| line.counted("write_bytes", kilobytes)),
        Column::left("T", 1, kind).leaves(1),
        Column::left("FILE", 0, |line| line.word("file")).shortens(),
    ],
    ..Layout::PLAIN
};

/// R: a file, S: a socket, O: what is neither, `?`: not known.
fn kind(line: &Line<'_>) -> String {
    let Some(file) = line.text("file") else { return "?".to_owned() };
    let is_socket = file.split_once(":[").is_some_and(|(kind, _)| kind != "pipe" && kind != "anon_inode");
    (if file.starts_with('/') && !is_device(file.as_bytes()) {
        "R"
    } else if is_socket {
        "S"
    } else {
        "O"
    })
    .to_owned()
}

/// Whether a file of that path is a device: no regular file.
fn is_device(path: &[u8]) -> bool {
    path.starts_with(b"/dev/")
        && ![&b"/dev/shm/"[..], b"/dev/mqueue/", b"/dev/hugepages/"].iter().any(|dir| path.starts_with(dir))
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let limit = config.few(own.rows);
    let asked = Asked {
        by: &[GroupKey::Tid, GroupKey::File],
        sockets: own.all_files,
        limit,
        rank: own.rank.of(),
        without: if own.all_files { |_| false } else { is_device },
        layout: Some(&LAYOUT),
    };
    answer_sums(config, tape, &asked, out)
}

//! Command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::out::Form;

/// SQL over tapes, and their tables as files. `analyze sql` and `analyze export` start it.
#[derive(Debug, Parser)]
#[command(name = "analyze", bin_name = "analyze", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What is asked.
    #[command(subcommand)]
    pub(crate) asked: Asked,
}

/// What is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Asked {
    /// Answer a query about a tape; docs/guides/sql.md has the tables and what SQL is answered
    Sql(Sql),
    /// Write the tables of tapes as files (other forms than tables: analyze export --help)
    #[command(subcommand)]
    Export(Export),
}

const SQL_EXAMPLES: &str = "\
Examples:
  analyze sql 'SELECT syscall, count(*) FROM syscalls GROUP BY 1 ORDER BY 2 DESC LIMIT 10'
  analyze sql --format json 'SELECT * FROM kills' t.tape
  analyze sql --tables            every table; --schema syscalls: its columns

Exit status: 0 answered, 1 failed, 2 bad usage, 3 something was lost and --fail-on-loss was given.";

/// A query.
#[derive(Debug, clap::Args)]
#[command(after_help = SQL_EXAMPLES)]
pub(crate) struct Sql {
    /// The query: one SELECT, or WITH ... SELECT. Then the tape, if -i does not name it
    #[arg(value_name = "QUERY")]
    pub(crate) words: Vec<String>,
    /// Tape to read [default: trace.tape]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) format: Form,
    /// List the tables (of the tape, if -i names one)
    #[arg(long, conflicts_with_all = ["schema", "explain"])]
    pub(crate) tables: bool,
    /// The columns of a table: type, unit, meaning, when NULL
    #[arg(long, value_name = "TABLE", conflicts_with = "explain")]
    pub(crate) schema: Option<String>,
    /// What of the tape the query reads: columns, predicates that leave out segments, bytes
    #[arg(long)]
    pub(crate) explain: bool,
    /// Exit with 3 if lost events could change the answer
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
    /// Do not give up rights before the tape is read
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Read every segment, whatever the predicates say (for tests of that)
    #[arg(long, hide = true)]
    pub(crate) read_all: bool,
}

const EXPORT_EXAMPLES: &str = "\
Layout: DIR/TABLE/host=HOST/date=DAY/TAPE-NN.ENDING, DAY being the one on which the tape begins (UTC).
A tape that is exported again replaces its files. DIR/_systape/views.sql has views for reports.

Examples:
  analyze export parquet out *.tape
  duckdb -c \"SELECT host, count(*) FROM read_parquet('out/syscalls/**/*.parquet', hive_partitioning=true) GROUP BY 1\"";

/// Form of files.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Parquet (zstd, row groups in order of time)
    #[command(after_help = EXPORT_EXAMPLES)]
    Parquet(Files),
    /// One JSON object a line
    #[command(after_help = EXPORT_EXAMPLES)]
    Json(Files),
    /// CSV
    #[command(after_help = EXPORT_EXAMPLES)]
    Csv(Files),
}

impl Export {
    /// What is exported, in whichever form.
    pub(crate) fn files(&self) -> &Files {
        match self {
            Self::Parquet(files) | Self::Json(files) | Self::Csv(files) => files,
        }
    }
}

/// What is exported, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// Directory; it is made if it is missing
    pub(crate) dir: PathBuf,
    /// Tapes, and directories of tapes
    #[arg(required = true, value_name = "TAPE")]
    pub(crate) tapes: Vec<PathBuf>,
    /// Only these tables
    #[arg(long, value_name = "TABLE,...", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Exit with 3 when something was lost
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
    /// Do not give up rights before a tape is read
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}

//! `analyze export arrow`: a table of tapes as Arrow's IPC format. What is asked stands here; rows come from [`crate::frames`], above.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use systape_answers::values::new_file::NewFile;

use super::{made, not_text};
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CALLS, Own, TASKS, TablesAsked, View};

/// The table without `--table`.
const TABLE: &str = "syscalls";

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "export arrow",
    about: "A table of tapes in Arrow's IPC format, for polars, pandas, R and Julia (docs/guides/export.md)",
    options: &[TASKS, CALLS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze export arrow --columns pid,syscall,dur_ns -o t.arrow", "three columns of every call, as a file"),
        ("analyze export arrow --table kills t.tape | python3 read.py", "a report's rows, as a stream"),
    ],
    check: |config| {
        not_text(config)?;
        let own: Options = config.own()?;
        if own.output.is_none() && std::io::stdout().is_terminal() {
            bail!("Arrow's format is not for a terminal: name a file with -o FILE, or pipe it into a program");
        }
        Ok(())
    },
    run: AnswerFn::Tables { make: |config| made(config, config.own::<Options>()?.output), asked },
    ..View::PLAIN
};

#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Table to write; 'analyze sql --tables' and docs/guides/sql.md have their names [default: syscalls]
    #[arg(long, value_name = "TABLE", help_heading = "Tables")]
    table: Option<String>,

    /// Only these columns, in this order [default: all]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Tables")]
    columns: Vec<String>,

    /// Rows in the tape's order, which is faster [default: in order of their times]
    #[arg(long, help_heading = "Tables")]
    unordered: bool,

    /// Write to FILE, which can be read from any place; without it a stream goes to standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

fn asked(config: &Config, file: Option<NewFile>) -> Result<TablesAsked> {
    let own: Options = config.own()?;
    let table = own.table.unwrap_or_else(|| TABLE.to_owned());
    Ok(TablesAsked { table, columns: own.columns, ordered: !own.unordered, file })
}

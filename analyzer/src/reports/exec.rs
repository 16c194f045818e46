//! Programs that were started, with arguments, failures and ends; or the tree of processes.

use anyhow::{Result, bail};
use systape_format::reader::Tape;

use crate::config::Config;
use crate::run::Verdict;

/// Prints what `config` asks for.
pub fn run(_config: &Config, _tape: &Tape) -> Result<Verdict> {
    bail!("not there yet")
}

//! Options about stacks: of reports that print them below their lines, and of all that name functions.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::asked::config::view::Reads;
use systape_answers::derive::stacks::limits::Limits;
use systape_answers::values::debuginfod::DebuginfodSources;

/// Stacks below lines.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Below {
    /// Print the stack below each call and event
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = call_graph, help_heading = "Stacks")]
    call_graph: Option<String>,

    /// How much of them.
    #[command(flatten)]
    pub cut: Cut,
}

/// How much of stacks is printed below lines.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Cut {
    /// Print at most N functions of a stack; implies --call-graph
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    max_stack: Option<usize>,

    /// Only calls and events whose stacks have at least N functions; implies --call-graph
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    min_stack: Option<usize>,

    /// Where functions get their names from.
    #[command(flatten)]
    pub names: SymbolPlaces,
}

impl Below {
    /// Stacks that are always printed.
    pub(crate) fn always(cut: Cut) -> Self {
        Self { call_graph: Some(String::new()), cut }
    }

    /// Whether stacks are asked for.
    pub(crate) fn asked(&self) -> bool {
        self.call_graph.is_some() || self.cut.max_stack.is_some() || self.cut.min_stack.is_some()
    }

    /// How much of them.
    pub(crate) fn limits(&self) -> Limits {
        Limits { max: self.cut.max_stack.unwrap_or(usize::MAX), min: self.cut.min_stack.unwrap_or(0) }
    }
}

/// Where symbols are looked for that the tape lacks.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct SymbolPlaces {
    /// Look for files with better symbols in DIR, by build id; may be repeated
    #[arg(long = "debug-dir", value_name = "DIR", help_heading = "Stacks")]
    pub debug_dirs: Vec<PathBuf>,

    /// Fetch files with better symbols by build id, from the servers in DEBUGINFOD_URLS or at URL
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Stacks")]
    debuginfod: Option<String>,
}

impl SymbolPlaces {
    /// What they let a report read.
    ///
    /// # Errors
    /// No server is known.
    pub(crate) fn reads(&self) -> Result<Reads> {
        let fetch = self.debuginfod.as_deref().map(DebuginfodSources::of).transpose()?;
        let cache = fetch.iter().map(|sources| sources.cache.clone());
        Ok(Reads { search: self.debug_dirs.iter().cloned().chain(cache).collect(), fetch, ..Reads::default() })
    }

    /// Refuses them where no stack is `printed`.
    ///
    /// # Errors
    /// They would have no effect.
    pub(crate) fn check(&self, printed: bool) -> Result<()> {
        let given = [(!self.debug_dirs.is_empty(), "--debug-dir"), (self.debuginfod.is_some(), "--debuginfod")];
        if let Some((_, option)) = given.iter().find(|(given, _)| *given && !printed) {
            bail!(
                "{option} names functions on stacks: it needs 'analyze callgraph', --call-graph or 'analyze kills -v'"
            );
        }
        self.debuginfod.as_deref().map(DebuginfodSources::of).transpose().map(drop)
    }
}

/// perf trace's values of --call-graph choose how stacks are recorded: a tape has them already.
fn call_graph(text: &str) -> Result<String, String> {
    match text.split(',').next() {
        Some("" | "fp" | "dwarf" | "lbr") => Ok(text.to_owned()),
        _ => Err("there are fp, dwarf and lbr, and none changes what the tape has".to_owned()),
    }
}

//! Man page and shell completions, from the same description clap parses with.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Args, Generate};

/// Writes `what` to `out`.
pub fn generate(what: Generate, out: &mut impl Write) -> io::Result<()> {
    let mut command = Args::command();
    let shell = match what {
        Generate::Man => return clap_mangen::Man::new(command).render(out),
        Generate::CompletionsBash => Shell::Bash,
        Generate::CompletionsZsh => Shell::Zsh,
        Generate::CompletionsFish => Shell::Fish,
    };
    // through a buffer: clap_complete panics on a closed pipe
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "analyze", &mut text);
    out.write_all(&text)
}

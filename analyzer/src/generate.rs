//! Man pages and shell completions, from the same description clap parses with.

use std::io::{self, Write};

use clap_complete::Shell;

use crate::args::Generate;
use crate::cli;
use crate::config::view::View;
use crate::views::VIEWS;

/// Writes `what` to `out`; a man page is that of `view`.
pub fn generate(what: Generate, view: &View, out: &mut impl Write) -> io::Result<()> {
    let shell = match what {
        Generate::Man => {
            let title = if view.name.is_empty() {
                "analyze".to_owned()
            } else {
                format!("analyze {}", view.name).replace(' ', "-")
            };
            return clap_mangen::Man::new(cli::command(view)).title(title).render(out);
        }
        Generate::Views => {
            return VIEWS
                .iter()
                .filter(|view| !view.name.is_empty())
                .try_for_each(|view| writeln!(out, "{}", view.name));
        }
        Generate::Bash => Shell::Bash,
        Generate::Zsh => Shell::Zsh,
        Generate::Fish => Shell::Fish,
    };
    // through a buffer: clap_complete panics on a closed pipe
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::whole(), "analyze", &mut text);
    out.write_all(&text)
}

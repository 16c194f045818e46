//! Man pages and shell completions, from the description that clap parses with.

use std::io::{self, Write};

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

/// What `--generate` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// Man page.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
    /// Words that have a man page of their own, one a line; a program without reports has none.
    #[value(hide = true)]
    Views,
}

impl Generate {
    /// The shell whose completions it is; None: it is something else.
    pub fn shell(self) -> Option<Shell> {
        match self {
            Self::Bash => Some(Shell::Bash),
            Self::Zsh => Some(Shell::Zsh),
            Self::Fish => Some(Shell::Fish),
            Self::Man | Self::Views => None,
        }
    }
}

/// Completions of `command` as clap makes them.
pub fn completions(shell: Shell, mut command: Command) -> String {
    let (name, mut text) = (command.get_name().to_owned(), Vec::new());
    // into memory: clap_complete panics on a closed pipe
    clap_complete::generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes the man page `title` of `command`. What its help has behind the options are the examples; `more` is roff, sections behind
/// these.
///
/// # Errors
/// When it cannot be written.
pub fn man(command: Command, title: &str, more: &str, out: &mut impl Write) -> io::Result<()> {
    let page = Man::new(command).title(title);
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    let mut examples = Vec::new();
    page.render_extra_section(&mut examples)?;
    // lines of examples stay lines
    let examples = String::from_utf8_lossy(&examples).replace(".SH EXTRA\n", ".SH EXAMPLES\n.nf\n");
    write!(out, "{examples}.fi\n{more}")?;
    page.render_version_section(out)
}

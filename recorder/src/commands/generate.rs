//! Man page and shell completions, from the same description clap parses with.

use std::fmt::Display;
use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use systape_abi::Selection;
use systape_cli::{Generate, Shell, completions, man};

use crate::commands::ask::Asked;
use crate::kernel::families;
use crate::options::args::Args;
use crate::stacks;

/// What the man page says besides the options, as roff.
const MORE: &str = r#".SH "EXIT STATUS"
.TP
the command's
With a command; 128+N if signal N ended it.
.TP
0
Without a command: recorded until the end that was asked for.
.TP
1
Without a command: record failed.
.TP
2
The command line cannot be followed: unknown option or syscall, no such process, user or cgroup.
.TP
125
With a command: record failed.
.TP
126, 127
The command cannot be executed; was not found. Nothing was recorded.
.SH FILES
.TP
trace.tape
The tape, where \-o names no other; one that is there already becomes trace.tape.old.
.SH "SEE ALSO"
.BR analyze (1),
.BR perf\-trace (1),
.BR strace (1),
.BR setcap (8)
"#;

/// Lists whose words are separated by commas, for bash.
const LISTS: &str = r#"
# words of a list that commas separate: the part behind the last comma is completed
_record_lists() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words=
    case "$prev" in
        --families) words="@families@" ;;
        --stacks-on) words="@stacks@" ;;
        -e|--event) words="@groups@" ;;
    esac
    if [[ -z "$words" ]]; then
        _record "$@"
        return
    fi
    local before= word
    [[ "$cur" != *,* ]] || before="${cur%,*},"
    COMPREPLY=()
    for word in $(compgen -W "$words" -- "${cur##*,}"); do
        COMPREPLY+=("$before$word")
    done
    compopt -o nospace 2>/dev/null
}

complete -F _record_lists -o nosort -o bashdefault -o default record
"#;

/// Writes `what` to `out`.
///
/// # Errors
/// When it cannot be written.
pub fn generate(what: Generate, out: &mut impl Write) -> io::Result<()> {
    let Some(shell) = what.shell() else {
        return if what == Generate::Man { man(shown(), "record", &(requests() + MORE), out) } else { Ok(()) };
    };
    let mut text = completions(shell, with_words());
    if shell == Shell::Bash {
        let lists = LISTS.replace("@families@", &families::words().join(" "));
        let lists = lists.replace("@stacks@", &stacks::options::words().join(" "));
        text.push_str(&lists.replace("@groups@", &Selection::groups().join(" ")));
    }
    out.write_all(text.as_bytes())
}

/// What the man page says of requests to a recorder that runs, as roff.
fn requests() -> String {
    let escaped = |text: &dyn Display| text.to_string().replace('\\', "\\e").replace('-', "\\-");
    let mut page = ".SH REQUESTS\nTo a recorder that runs (record \\-\\-last, \\-\\-rotate).\n".to_owned();
    let asked = Asked::command();
    for request in asked.get_subcommands() {
        let about = request.get_about().map(|about| escaped(about)).unwrap_or_default();
        page.push_str(&format!(".TP\n\\fBrecord {}\\fR", request.get_name()));
        let mut more = String::new();
        for arg in request.get_arguments() {
            let value = arg.get_value_names().and_then(|names| names.first()).map(|name| escaped(name));
            let value = value.unwrap_or_else(|| escaped(&arg.get_id()));
            let word = match arg.get_long() {
                Some(long) => format!("\\fB\\-\\-{}\\fR \\fI{value}\\fR", escaped(&long)),
                None => format!("\\fI{value}\\fR"),
            };
            page.push_str(&format!(" [{word}]"));
            let help = arg.get_help().map(|help| escaped(help)).unwrap_or_default();
            more.push_str(&format!(".RS\n.TP\n{word}\n{help}\n.RE\n"));
        }
        page.push_str(&format!("\n{about}\n{more}"));
    }
    page
}

/// The command line without options that help does not show.
fn shown() -> Command {
    let whole = Args::command();
    let about = whole.get_about().cloned().unwrap_or_default();
    let more = whole.get_after_help().cloned().unwrap_or_default();
    let args = whole.get_arguments().filter(|arg| !arg.is_hide_set() || arg.get_id() == "generate").cloned();
    Command::new("record").version(env!("CARGO_PKG_VERSION")).about(about).after_help(more).args(args)
}

/// The same with the words that lists take.
fn with_words() -> Command {
    let words = |words: Vec<&'static str>| PossibleValuesParser::new(words);
    shown()
        .mut_arg("families", |arg| arg.value_parser(words(families::words())))
        .mut_arg("stacks_on", |arg| arg.value_parser(words(stacks::options::words())))
        .mut_arg("call_graph", |arg| arg.value_parser(words(vec!["fp", "dwarf"])))
        .mut_arg("redact", |arg| arg.value_parser(words(vec!["paths", "strings", "all"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(what: Generate) -> String {
        let mut out = Vec::new();
        generate(what, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn completions_know_families_and_no_hidden_options() {
        for shell in [Generate::Bash, Generate::Zsh, Generate::Fish] {
            let text = text(shell);
            for family in families::words() {
                assert!(text.contains(family), "{shell:?}: {family}");
            }
            assert!(!text.contains("force") && !text.contains("keep-stack-bytes"), "{shell:?}");
        }
        assert!(families::words().contains(&"io_uring") && families::words().contains(&"all"));
    }

    #[test]
    fn the_man_page_says_how_it_ends() {
        let text = text(Generate::Man);
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(place(".SH NAME") < place(".SH OPTIONS"));
        assert!(place(".SH OPTIONS") < place(".SH \"EXIT STATUS\""));
        assert!(place(".SH \"EXIT STATUS\"") < place(".SH \"SEE ALSO\""));
        assert!(place(".SH EXAMPLES\n.nf") < place(".fi"));
        assert!(text.contains("analyze (1)"));
        assert!(place(".SH REQUESTS") < place(".SH \"EXIT STATUS\""));
        for words in [
            "\\fBrecord trigger\\fR [\\fINAME\\fR] [\\fB\\-\\-dir\\fR \\fIDIR\\fR]",
            "\\fBrecord status\\fR",
            "\\fIFORMAT\\fR",
        ] {
            place(words);
        }
    }
}

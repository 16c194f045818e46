//! Man pages and shell completions, from the same description clap parses with.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use systape_abi::Selection;
use systape_cli::{Generate, Shell, completions};

use crate::asked::config::view::View;
use crate::cli::parse;
use crate::cli::views::VIEWS;

/// Events that are no calls.
const EVENTS: [&str; 7] = ["block:*", "fault:*", "io_uring:*", "process:*", "sched:*", "signal:*", "sock:*"];

/// What a man page says besides the options, as roff.
const STATUS: &str = r#".SH "EXIT STATUS"
.TP
0
Answered.
.TP
1
Failed.
.TP
2
The command line cannot be followed.
.TP
3
Something was lost that touches the answer, and \-\-fail\-on\-loss was given.
"#;

/// Tapes where a file may stand, for bash: clap's function offers options in their place.
const TAPES: &str = r#"
# tapes and directories besides the words that clap knows; options once there is a dash
_analyze_tapes() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" word
    case "$prev" in
        -e|--event)
            COMPREPLY=($(compgen -W "@events@" -- "$cur"))
            return
            ;;
    esac
    _analyze "$@"
    [[ "$cur" != -* ]] || return 0
    case "$prev" in
        -i|--input) COMPREPLY=() ;;
        @valued@) return 0 ;;
    esac
    local words=()
    for word in "${COMPREPLY[@]}"; do
        [[ "$word" == -* ]] || words+=("$word")
    done
    while IFS= read -r word; do
        words+=("$word")
    done < <(compgen -f -X '!*.tape' -- "$cur"; compgen -d -- "$cur")
    COMPREPLY=("${words[@]}")
    compopt -o filenames 2>/dev/null
}

complete -F _analyze_tapes -o nosort analyze
"#;

/// The same for fish: names that end so come first.
const FISH: &str = "complete -c analyze -k -a '(__fish_complete_suffix .tape)'\n";

/// Writes `what` to `out`; a man page is that of `view`.
pub(crate) fn generate(what: Generate, view: &View, out: &mut impl Write) -> io::Result<()> {
    let Some(shell) = what.shell() else {
        return match what {
            Generate::Views => named().try_for_each(|view| writeln!(out, "{}", view.name)),
            _ => systape_cli::man(parse::command(view), &title(view), &more(view), out),
        };
    };
    let families = PossibleValuesParser::new(events());
    let text = completions(shell, parse::whole().mut_arg("events", |arg| arg.value_parser(families.clone())));
    let text = match shell {
        Shell::Bash => {
            let more = TAPES.replace("@events@", &events().join(" ")).replace("@valued@", &valued().join("|"));
            format!("{text}{more}")
        }
        Shell::Zsh => text.replace(":_files' \\", ":_files -g \"*.tape(-.)\"' \\"),
        _ => format!("{text}{FISH}"),
    };
    out.write_all(text.as_bytes())
}

/// What `-e` takes besides names of calls: groups of them, and families of other events.
fn events() -> Vec<&'static str> {
    Selection::groups().iter().copied().chain(EVENTS).collect()
}

/// Options behind which a value stands that is no file.
fn valued() -> Vec<String> {
    let whole = parse::whole();
    let commands = std::iter::once(&whole).chain(whole.get_subcommands());
    let args = commands.flat_map(clap::Command::get_arguments);
    let valued = args.filter(|arg| {
        arg.get_action().takes_values()
            && !arg.is_positional()
            && !arg.is_require_equals_set()
            && arg.get_id() != "input"
    });
    let short = |arg: &clap::Arg| arg.get_short().map(|letter| format!("-{letter}"));
    let long = |arg: &clap::Arg| arg.get_long().map(|name| format!("--{name}"));
    let mut all: Vec<String> = valued.flat_map(|arg| [short(arg), long(arg)]).flatten().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Reports that a word names.
fn named() -> impl Iterator<Item = &'static &'static View> {
    VIEWS.iter().filter(|view| !view.name.is_empty())
}

/// The name of a view's page.
fn title(view: &View) -> String {
    if view.name.is_empty() { "analyze".to_owned() } else { format!("analyze {}", view.name).replace(' ', "-") }
}

/// Sections of a view's page behind its examples.
fn more(view: &View) -> String {
    let others = named().filter(|_| view.name.is_empty()).map(|other| title(other));
    let whole = (!view.name.is_empty()).then(|| "analyze".to_owned());
    let all = std::iter::once("record".to_owned()).chain(whole).chain(others);
    let all: Vec<String> = all.map(|page| format!(".BR {} (1)", page.replace('-', "\\-"))).collect();
    format!("{STATUS}.SH \"SEE ALSO\"\n{}\n", all.join(",\n"))
}

//! Man pages and shell completions, from the same description clap parses with.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use systape_abi::Selection;

use crate::args::Generate;
use crate::cli;
use crate::config::view::View;
use crate::views::VIEWS;

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
pub fn generate(what: Generate, view: &View, out: &mut impl Write) -> io::Result<()> {
    let shell = match what {
        Generate::Man => return man(view, out),
        Generate::Views => {
            return named().try_for_each(|view| writeln!(out, "{}", view.name));
        }
        Generate::Bash => Shell::Bash,
        Generate::Zsh => Shell::Zsh,
        Generate::Fish => Shell::Fish,
    };
    // through a buffer: clap_complete panics on a closed pipe
    let mut text = Vec::new();
    let families = PossibleValuesParser::new(events());
    let mut command = cli::whole().mut_arg("events", |arg| arg.value_parser(families.clone()));
    clap_complete::generate(shell, &mut command, "analyze", &mut text);
    let text = String::from_utf8_lossy(&text);
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
    let whole = cli::whole();
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

fn man(view: &View, out: &mut impl Write) -> io::Result<()> {
    let page = clap_mangen::Man::new(cli::command(view)).title(title(view));
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    // lines of examples stay lines
    let mut examples = Vec::new();
    page.render_extra_section(&mut examples)?;
    let examples = String::from_utf8_lossy(&examples).replace(".SH EXTRA\n", ".SH EXAMPLES\n.nf\n");
    out.write_all(examples.as_bytes())?;
    out.write_all(b".fi\n")?;
    out.write_all(STATUS.as_bytes())?;
    let others = named().filter(|_| view.name.is_empty()).map(|other| title(other));
    let more = (!view.name.is_empty()).then(|| "analyze".to_owned());
    let all: Vec<String> = std::iter::once("record".to_owned()).chain(more).chain(others).collect();
    let all: Vec<String> = all.iter().map(|page| format!(".BR {} (1)", page.replace('-', "\\-"))).collect();
    writeln!(out, ".SH \"SEE ALSO\"\n{}", all.join(",\n"))
}

//! Man page and completions: words behind `record` and `analyze` are those programs' own to complete.

use clap::CommandFactory as _;
use systape_cli::{Generate, man};

use crate::Args;

const SEE_ALSO: &str = "\
.SH \"SEE ALSO\"
record(1) has the options of recordings, analyze(1) the reports; each report has a page of its own: analyze-why(1), analyze-report(1).
";

/// The words of the first place, for shells that show them.
const WORDS: &str =
    "record analyze demo why path top kills exec files block net states offcpu diff report info --help --version";

/// What `--generate` prints.
pub(crate) fn page(what: Generate) -> String {
    match what {
        Generate::Man => {
            let mut out = Vec::new();
            // into memory: it can be written
            let _ = man(Args::command(), "systape", SEE_ALSO, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        Generate::Bash => format!(
            "_systape() {{
    case $COMP_CWORD,${{COMP_WORDS[1]}} in
    1,*) COMPREPLY=($(compgen -W '{WORDS}' -- \"${{COMP_WORDS[1]}}\")) ;;
    *,record | *,analyze) _command_offset 1 ;;
    *,demo) COMPREPLY=($(compgen -d -- \"${{COMP_WORDS[COMP_CWORD]}}\")) ;;
    *)
        COMP_WORDS[0]=analyze
        _command_offset 0
        ;;
    esac
}}
complete -o default -F _systape systape
"
        ),
        Generate::Zsh => format!(
            "#compdef systape
if (( CURRENT == 2 )); then
    compadd -- {WORDS}
    _files
elif [[ $words[2] == (record|analyze) ]]; then
    shift words
    (( CURRENT-- ))
    _normal
else
    words[1]=analyze
    _normal
fi
"
        ),
        Generate::Fish => format!(
            "complete -c systape -n __fish_is_first_token -a '{WORDS}'
complete -c systape -n 'not __fish_is_first_token' -a '(complete -C (string replace -r \"^\\S+ (?=record |analyze )|^\\S+ (?!record |analyze )\" \"\" (commandline -cp)))'
"
        ),
        Generate::Views => String::new(),
    }
}

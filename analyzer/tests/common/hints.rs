//! How each option is typed, and whether what a refusal suggests is itself taken.

use systape_analyzer::exercise::{Operands, VIEWS, View, parse, union};
use systape_cli::{Stop, words};

/// Options that need an argument, a value of another option, or a tape of their own to change anything: what stands on the command line
/// without and with them. Of several that are listed for one option the first that changes an answer is enough.
#[rustfmt::skip]
pub const WORDS: &[(&str, &str, &str)] = &[
    ("pids", "", "-p 999999"),
    ("tids", "", "-t 999999"),
    ("users", "", "-u 4000000"),
    ("comm", "", "--comm=no-such-name"),
    ("cgroups", "", "-G /user.slice"),
    ("cgroups", "--top", "-G /user.slice"),
    ("units", "", "--unit app"),
    ("containers", "", "--container web"),
    ("pods", "", "--pod web"),
    ("paths", "", "-P /no/such/file"),
    ("paths", "--of syscall", "-P /no/such/file"),
    ("table", "", "--table threads"),
    ("columns", "", "--columns pid"),
    ("duration", "", "--duration 1s"),
    ("events", "", "-e read"),
    ("events", "", "-e dns:*"),
    ("failure", "", "--failure"),
    ("failure", "--of syscall", "--failure"),
    ("duration", "--of syscall", "--duration 1s"),
    ("events", "--of syscall", "-e read"),
    ("cpus", "", "-C 99"),
    ("cpu", "", "--cpu=99"),
    ("cpu", "-s", "--cpu"),
    ("time", "", "--time 0.0000001,0.0000002"),
    ("max_events", "", "--max-events 1"),
    ("max_events", "--top", "--max-events 1"),
    ("max_events", "--all", "--max-events 1"),
    ("top", "--all", "--top 1"),
    ("per", "--all", "--per second"),
    ("tree", "-p 0", "--tree"),
    ("longest", "", "--longest"),
    ("idle", "", "--idle"),
    ("idle", "", "--idle=fold"),
    ("idle", "--of offcpu", "--idle"),
    ("value", "-e sched:* --value target_cpu", "--value next_tid"),
    ("value", "-e sched:*", "--value target_cpu"),
    ("value", "", "--value target_cpu"),
    ("by", "-e sched:* --value target_cpu", "--by prev_state"),
    ("metric", "-e sched:* --value target_cpu", "--metric max"),
    ("sort", "", "--sort end"),
    ("sort", "", "--sort calls"),
    ("follow", "", "--follow"),
    ("clone_child", "", "--clone-child"),
    ("absolute", "", "-T"),
    ("clock", "", "--clock wall"),
    ("clock", "--opens", "--clock wall"),
    ("no_comm", "", "--no-comm"),
    ("show_cwd", "", "--show-cwd"),
    ("show_zeros", "", "--show-zeros"),
    ("show_prefix", "", "--show-prefix"),
    ("call_graph", "", "--call-graph"),
    ("call_graph", "--at 50%", "--call-graph"),
    ("max_stack", "--call-graph", "--max-stack 1"),
    ("max_stack", "--at 100us --call-graph", "--max-stack 1"),
    ("min_stack", "--call-graph", "--min-stack 99"),
    ("max_stack", "", "--max-stack 1"),
    ("min_stack", "", "--min-stack 99"),
    ("min_stack", "--at 50% --call-graph", "--min-stack 99"),
    ("debuginfod", "", "--debuginfod=http://127.0.0.1:1"),
    ("errno_summary", "", "--errno-summary"),
    ("summary_mode", "", "--summary-mode total"),
    ("signal", "", "--signal USR2"),
    ("signal", "", "--signal KILL"),
    ("exit", "", "--exit !=0"),
    ("var", "", "--var J*"),
    ("all", "", "--all"),
    ("all", "--tree", "--all"),
    ("verbose", "", "-v"),
    ("tree", "", "--tree"),
    ("fails", "", "--fails"),
    ("hist", "", "--hist"),
    ("top", "", "--top"),
    ("changes", "", "--events"),
    ("udp", "", "--udp"),
    ("by", "--top", "--by disk"),
    ("by", "", "--by process"),
    ("by", "", "--by user"),
    ("at", "", "--at 50%"),
    ("wakers", "", "--wakers 200"),
    ("of", "", "--of offcpu"),
    ("slices", "", "--slices 7"),
    ("metric", "", "--metric count"),
    ("metric", "", "--metric max"),
    ("callee", "", "--callee"),
    ("min_percent", "", "--min-percent 60"),
    ("max_depth", "", "--max-depth 1"),
    ("folded", "", "--folded"),
    ("svg", "", "--svg out.svg"),
    ("diff", "--folded", "--diff more.tape"),
    ("opens", "", "--opens"),
    ("slower", "", "--slower 0.0001"),
    ("slower", "", "--slower 1s"),
    ("sockets", "--top 0", "--sockets"),
    ("top", "", "--top 1"),
    ("absolute", "--opens", "-T"),
    ("max_events", "--opens", "--max-events 1"),
    ("by", "", "--by comm"),
    ("level", "--level all", "--level paths"),
    ("redact", "", "--redact=paths"),
    ("perfetto", "", "--perfetto"),
    ("floor", "", "--floor 0"),
    ("when", "", "--when"),
    ("expand", "--floor 0", "--expand"),
    ("kind", "", "--kind lock"),
    ("before", "", "--before 0,300us"),
    ("after", "", "--after 0,300us"),
    ("client", "", "--client"),
    ("port", "", "--port 1"),
    ("slowest", "", "--slowest 1"),
    ("budget", "--slowest 9", "--where"),
    ("clock", "--slowest 9", "--clock wall"),
    ("absolute", "--slowest 9", "-T"),
    ("sums", "", "--sums"),
    ("without", "", "--without runqueue"),
    ("top", "--by peer", "--top 1"),
    ("sizes", "", "--sizes"),
    ("queued", "--hist", "--queued"),
    ("queued", "", "--queued"),
    ("disks", "", "--disks"),
    ("junit", "", "--junit"),
    ("latency", "", "--latency"),
    ("process", "", "--process"),
    ("all_files", "", "--all-files"),
    ("rank", "", "--rank wbytes"),
    ("by_most", "", "--rank wbytes"),
    ("families", "", "--families syscall"),
    ("show_files", "", "-y"),
    ("output", "", "-o out.svg"),
    ("of_pid", "", "--of-pid 7"),
    ("day", "", "--day 2026-11-30"),
    ("machine", "", "--machine aarch64"),
    ("unordered", "", "--unordered"),
];

/// Why a command in `text`, `'analyze …'` with words in capitals for what to put there, is refused.
pub fn refused(text: &str) -> Option<String> {
    let stands_for = |word: &str| match word {
        "TIME" => "1ms".to_owned(),
        "FROM,TO" => "0,1".to_owned(),
        "PID" | "TID" | "N" => "1".to_owned(),
        "REPORT" => "kills".to_owned(),
        "KEY" | "KEY,..." => "comm".to_owned(),
        "EVENT" => "sched:*".to_owned(),
        "DIR" => ".".to_owned(),
        "FILE" => "t.tape".to_owned(),
        "COMMAND" => "ls".to_owned(),
        _ if word.starts_with("--") && word.ends_with("=NAME") => word.replace("NAME", "sh"),
        _ => word.to_owned(),
    };
    for command in text.split("'analyze ").skip(1).filter_map(|rest| rest.split('\'').next()) {
        let command = command.split(" | ").next().unwrap_or_default().split(" > ").next().unwrap_or_default();
        let all: Vec<String> = words(command).iter().map(|word| stands_for(word)).collect();
        // the name of a report that needs more than a tape: it is said which takes an option, not what to type
        let names = |view: &&View| view.name == command && view.operands != Operands::Tape;
        if VIEWS.iter().copied().any(|view| names(&view)) {
            continue;
        }
        // another program answers, or it is an ellipsis
        if ["sql", "export", "...", "merge"].contains(&all.first().map_or("", String::as_str))
            || command.contains("...")
        {
            continue;
        }
        let asked = parse(std::iter::once("analyze".to_owned()).chain(all).map(Into::into));
        let why = match asked {
            Ok(asked) => asked.config().err().map(|error| format!("{error:#}")),
            Err(Stop::Printed(_)) => None,
            Err(Stop::Usage(why)) => Some(why),
        };
        // a file that does not exist is the reader's to name
        if let Some(why) = why.filter(|why| !why.contains("no such file") && !why.contains("no tape is named")) {
            return Some(format!("'analyze {command}': {why}"));
        }
    }
    None
}

/// An option that `err`, a refusal of `typed`, suggests and the report that was asked does not take.
pub fn not_taken(typed: &str, err: &str) -> Option<String> {
    let typed = words(typed);
    let named = |view: &&&View| {
        let name: Vec<&str> = view.name.split(' ').collect();
        !view.name.is_empty() && typed.windows(name.len()).any(|words| words == name)
    };
    let view = VIEWS.iter().filter(named).max_by_key(|view| view.name.len()).or(VIEWS.first())?;
    let union = union(view);
    // commands of their own, remarks, and the other program's options
    let mut own = String::new();
    let (mut quoted, mut depth) = (false, 0);
    for letter in err.chars() {
        match letter {
            '\'' => quoted = !quoted,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if !quoted && depth == 0 => own.push(letter),
            _ => {}
        }
    }
    // behind what is refused itself
    let refusals = ["is no option of", "is not for", "is no report"];
    let own = refusals.iter().find_map(|text| own.split_once(text))?.1;
    let own = own.split("record ").next().unwrap_or_default();
    let options = own.split([' ', ',', ';', '=']).filter(|word| word.starts_with("--"));
    let id = |name: &str| {
        let arg = union.get_arguments().find(|arg| arg.get_long() == Some(name.trim_start_matches('-')));
        arg.map(|arg| arg.get_id().to_string())
    };
    let mut wrong = options.filter(|name| id(name).is_none_or(|id| !view.takes(&id)));
    wrong.next().map(|name| format!("{name} of {}", view.title()))
}

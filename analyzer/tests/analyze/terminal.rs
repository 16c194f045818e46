//! Lines fit the terminal: no report prints one that is wider, nothing is cut without a mark, and no number is cut at all.
//!
//! testdata/terminal/NAME.cmd holds arguments, NAME.60.txt, NAME.80.txt and NAME.120.txt what a terminal of that width shows.
//! `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze terminal` writes them anew; read the diff.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::commands::{COMMANDS, MACHINES};
use crate::common::terminal::{Terminal, words};
use crate::common::{self, Place};
use systape_analyzer::exercise::VIEWS;
use unicode_width::UnicodeWidthStr as _;

/// A directory with all small tapes, by what they have.
fn place() -> Place {
    let place = Place::with_tapes();
    common::tables::write(&place.path("tables.tape"));
    common::hostile::write(&place.path("hostile.tape"));
    let tapes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for name in ["kernel-6.1-mix.tape", "stacks-1.2.tape"] {
        fs::copy(tapes.join(name), place.path(name)).unwrap();
    }
    fs::create_dir(place.path("tapes")).unwrap();
    for name in ["sample.tape", "ledger.tape"] {
        fs::copy(place.path(name), place.path("tapes").join(name)).unwrap();
    }
    place
}

/// The command lines of the goldens that are text.
fn goldens() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/analyzer");
    let commands = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let commands = commands.filter(|path| path.extension().is_some_and(|extension| extension == "cmd"));
    let mut lines: Vec<String> = commands.map(|path| fs::read_to_string(path).unwrap().trim().to_owned()).collect();
    lines.retain(|line| !line.contains("--format") && !is_data(line));
    lines.sort();
    lines
}

/// Whether other programs read the lines, which are as long as they are.
fn is_data(line: &str) -> bool {
    line.starts_with("export ")
        || line.starts_with("schema")
        || line.contains("--folded")
        || line.starts_with("offcputime")
}

/// Ways to ask for each report of the registry: those that are asked at every width, of a tape that has something of the report, and
/// others, of which some are of real calls and of hostile names.
fn reports() -> (Vec<String>, Vec<String>) {
    let (mut first, mut lines) = (Vec::new(), Vec::new());
    let tape = |report: &str| match report {
        "block" | "block --top" | "block --hist" | "net" | "net --events" | "net --by" | "biosnoop" | "biolatency" => {
            "events.tape"
        }
        "tcplife" | "killsnoop" | "gethostlatency" | "probes" => "tools.tape",
        "net --udp" => "udp.tape",
        "locks" => "locks.tape",
        "stays" | "stays --longest" => "looks.tape",
        of_looks if of_looks.ends_with(" of looks") => "looks.tape",
        "requests" | "requests --by" | "requests --client" | "requests --client --by" | "requests --slowest" => {
            "requests.tape"
        }
        "requests --slowest --where" => "served.tape",
        "across" | "across --slowest" => MACHINES[1],
        "kills" | "exec" | "exec --tree" | "execsnoop" => "life.tape",
        "fds" | "env" => "held.tape",
        "statsnoop" => "stats.tape",
        "callgraph" | "samples" | "states --at --call-graph" => "stacks.tape",
        "why" | "why --when" | "path" | "path --sums" | "path --without" | "offcpu" | "offcpu --wakers" | "states"
        | "states --at" | "sched timehist" | "sched latency" | "runqlat" | "cpudist" => "sched-lost.tape",
        _ => "sample.tape",
    };
    for (report, ways) in COMMANDS.iter().filter(|(report, _)| *report != "a file") {
        for (at, way) in ways.iter().enumerate() {
            let way = way.replace("SOUND", "more.tape").replace("ASKS", MACHINES[0]);
            let list = if at == 0 { &mut first } else { &mut lines };
            list.push(way.replace("TAPE", tape(report)));
            lines.extend(["kernel-6.1-mix.tape", "hostile.tape"].map(|tape| way.replace("TAPE", tape)));
        }
    }
    lines.extend(
        ["check sample.tape", "check hostile.tape", "list tapes", "why tapes", "-s tapes", "tapes", "exec tapes"]
            .map(str::to_owned),
    );
    [&mut first, &mut lines]
        .into_iter()
        .for_each(|list| list.retain(|line| !is_data(line) && !line.contains("--follow")));
    (first, lines)
}

/// What a terminal of `cells` shows, or with 0 a pipe.
fn ask(place: &Place, line: &str, cells: usize) -> String {
    let size = format!("@{cells}");
    let words = words(line);
    let got = place.ask_words(std::iter::once(&*size).chain(words.iter().map(String::as_str)));
    assert!(matches!(got.status, 0 | 1), "{line}: {}", got.err);
    got.out
}

/// Words of `text` that have a digit and no letter: numbers, times, addresses. Without what brackets and commas add.
fn numbers(text: &str) -> HashSet<&str> {
    let words = text.split([' ', '\n', '\t', '(', ')', ',', ';', '|', '<', '>', '{', '}', '=']);
    let words = words.map(|word| word.trim_matches(['"', ':', '.']));
    words
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()) && !word.contains(|c: char| c.is_ascii_alphabetic()))
        .collect()
}

/// What is wrong with `shown`, of a terminal of `cells`, where a pipe gets `whole`; None: nothing.
fn fault(shown: &str, whole: &str, cells: usize) -> Option<String> {
    let is_command = |line: &str| line.trim_start().starts_with("analyze ") || line.trim_start().starts_with("record ");
    let whole_lines: HashSet<&str> = whole.lines().map(str::trim).collect();
    for line in shown.lines() {
        // a command to copy is whole
        if line.width() > cells && !is_command(line) {
            return Some(format!("{} cells: {line}", line.width()));
        }
        if is_command(line)
            && !whole_lines
                .iter()
                .any(|there| there.contains(line.split("  ").find(|part| !part.is_empty()).unwrap_or("")))
        {
            return Some(format!("no command: {line}"));
        }
    }
    // each word is whole or has a mark; bars and rules have a length of their own
    let drawn = |word: &str| word.chars().all(|letter| "|-.*@#:=+%▁▂▃▄▅▆▇█".contains(letter));
    let there: HashSet<&str> = whole.split_whitespace().collect();
    let note = shown.lines().find(|line| line.contains(" left out: ") && line.ends_with("(--wide shows all)"));
    let told = note.is_some() || shown.contains("--wide");
    let foreign = |word: &&str| !there.contains(word) && !word.contains('…') && !drawn(word);
    let noted: HashSet<&str> =
        shown.lines().skip_while(|line| !line.contains(" left out: ")).flat_map(str::split_whitespace).collect();
    if let Some(word) = shown.split_whitespace().find(|word| foreign(word) && !noted.contains(word)) {
        return Some(format!("{word:?} is not what a pipe gets"));
    }
    let (all, some) = (numbers(whole), numbers(shown));
    // what has a mark may have had numbers in it, such as a path
    if let Some(number) = all.difference(&some).next().filter(|_| !told && !shown.contains('…')) {
        return Some(format!("{number} is missing"));
    }
    None
}

/// Reports whose drawings are made for the width: their words are others.
fn is_drawn(line: &str) -> bool {
    line.starts_with("rate")
        || line.contains("--hist --by")
        || line.contains("top --by second")
        || line.starts_with("info")
}

fn check(place: &Place, line: &str, widths: impl Iterator<Item = usize>) -> Vec<String> {
    let whole = ask(place, line, 0);
    let mut wrong = Vec::new();
    for cells in widths {
        let shown = ask(place, line, cells);
        // two clocks side by side need room
        let whole =
            if cells < 100 && (line.starts_with("kills") || line.starts_with("exec ")) && !line.contains("--clock") {
                ask(place, &format!("{line} --clock start"), 0)
            } else {
                whole.clone()
            };
        let fault = match is_drawn(line) {
            // the recorded command is whole, to be copied
            true => {
                let command = whole.lines().find_map(|line| line.strip_prefix("command ")).unwrap_or("").trim();
                let is_wide = |line: &&str| line.width() > cells && line.trim() != command;
                shown.lines().find(is_wide).map(str::to_owned)
            }
            false => fault(&shown, &whole, cells),
        };
        wrong.extend(fault.map(|fault| format!("{cells}: analyze {line}\n    {fault}")));
        if wrong.len() > 2 {
            break;
        }
    }
    wrong
}

#[test]
fn every_report_fits_every_width() {
    let place = place();
    let (lines, others) = reports();
    for view in VIEWS.iter().map(|view| view.name).filter(|name| !name.is_empty() && !is_data(name)) {
        let of_file = [
            "repair",
            "redact",
            "cut",
            "merge",
            "report",
            "summary",
            "with-summary",
            "assert",
            "mcp",
            "open",
            "tui",
            "import strace",
        ];
        assert!(
            of_file.contains(&view) || lines.iter().chain(&others).any(|line| line.starts_with(view)),
            "nobody asks for {view}"
        );
    }
    let mut wrong: Vec<String> = lines.iter().flat_map(|line| check(&place, line, 60..=130)).collect();
    wrong.extend(others.iter().flat_map(|line| check(&place, line, [60, 80, 100].into_iter())));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_golden_fits() {
    let place = place();
    common::life::write(&place.path("lost.tape"), &[]);
    let widths = [60, 80, 120];
    let wrong: Vec<String> = goldens().iter().flat_map(|line| check(&place, line, widths.into_iter())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn goldens_of_three_widths() {
    let place = place();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/terminal");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut wrong, mut count) = (Vec::new(), 0);
    let commands = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let commands: Vec<PathBuf> = commands.filter(|path| path.extension().is_some_and(|end| end == "cmd")).collect();
    for command in commands {
        count += 1;
        let line = fs::read_to_string(&command).unwrap();
        for cells in [60, 80, 120] {
            let (status, shown) = Terminal::of(cells).analyze(&place, &words(line.trim()));
            assert_eq!(status, 0, "{line}");
            let expected = command.with_extension(format!("{cells}.txt"));
            if update {
                fs::write(&expected, &shown).unwrap();
            } else if fs::read_to_string(&expected).unwrap_or_default() != shown {
                wrong.push(format!("{}: analyze {line}{shown}", expected.display()));
            }
        }
    }
    assert!(count >= 10 && wrong.is_empty(), "{count} commands\n{}", wrong.join("\n"));
}

/// What a real terminal shows is what the others tests ask for; wide lines, colours and characters are as they are asked for.
#[test]
fn a_terminal_is_asked_how_wide_it_is() {
    let place = place();
    let analyze = |terminal: Terminal, line: &str| terminal.analyze(&place, &words(line)).1;
    for line in ["why --floor 0 sched.tape", "kills life.tape", "-s sample.tape"] {
        let piped = place.analyze(line).out;
        for cells in [60, 80] {
            let shown = analyze(Terminal::of(cells), line);
            assert_eq!(shown, ask(&place, line, cells.into()), "{line}");
            assert_ne!(shown, piped, "{line}");
            let colored = analyze(Terminal { term: "xterm", ..Terminal::of(cells) }, line);
            let always = analyze(Terminal::of(cells), &format!("{line} --color=always"));
            let never = analyze(Terminal { term: "xterm", ..Terminal::of(cells) }, &format!("{line} --color=never"));
            assert_eq!(
                (without_colours(&colored), without_colours(&always), &never),
                (shown.clone(), shown.clone(), &shown)
            );
            assert_eq!(analyze(Terminal { term: "xterm", no_color: "1", ..Terminal::of(cells) }, line), shown);
            let ascii = analyze(Terminal { locale: "C", ..Terminal::of(cells) }, line);
            assert!(
                ascii.is_ascii() && ascii.lines().all(|line| line.len() <= cells.into() || line.contains("analyze ")),
                "{ascii}"
            );
        }
        assert_eq!(analyze(Terminal::of(60), &format!("{line} --wide")), piped, "{line}");
        assert_eq!(analyze(Terminal::of(0), line), piped, "{line}: a terminal that does not say");
    }
    // a command is dim, and whole
    let colored = analyze(Terminal { term: "xterm", ..Terminal::of(60) }, "why --floor 0 sched.tape");
    assert!(colored.contains("\x1b[2manalyze ") && colored.contains("sched.tape\x1b[m\n"), "{colored}");
}

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, colour)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = colour.split_once('m').unwrap().1;
    }
    plain + rest
}

#[test]
fn messages_are_broken_at_words() {
    let place = place();
    for line in [
        "kills sample.tape --signal TERM",
        "why nothing-of-that-name.tape",
        "top --no-such-option sample.tape",
        "trigger hostile.tape",
        "states ledger.tape",
        "kills --by comm sample.tape",
    ] {
        let terminal = Terminal { errors: true, ..Terminal::of(60) };
        let (_, shown) = terminal.analyze(&place, &words(line));
        let piped = place.analyze(line);
        let too_long = shown.lines().find(|line| line.width() > 60 && line.trim().contains(' '));
        assert_eq!(too_long, None, "{line}: {shown}");
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if piped.out.is_empty() {
            assert_eq!(flat(&shown), flat(&piped.err), "{line}");
        }
    }
}

#[test]
fn a_ranking_leaves_the_rest_of_the_screen() {
    let place = place();
    let line = "top --by tid,syscall,file kernel-6.1-mix.tape";
    let rows =
        |rows, line: &str| Terminal { rows, ..Terminal::of(100) }.analyze(&place, &words(line)).1.lines().count();
    let all = place.analyze(&format!("{line} --top 0")).out.lines().count();
    assert!(all > 30 && rows(24, line) <= 24 && rows(24, &format!("{line} --top 0")) > 24, "{all}");
    let shown = Terminal { rows: 24, ..Terminal::of(100) }.analyze(&place, &words(line)).1;
    assert!(shown.contains(" more (--top 0)\n"), "{shown}");
    assert!(rows(24, "why kernel-6.1-mix.tape") <= 24);
}

//! Colours are for terminals: the same words as elsewhere, with errors, slow calls and numbers that are not exact standing out.

use crate::common::terminal::{Terminal, words};
use crate::common::{self, Place};

/// What `analyze` prints on a terminal that does not say how wide it is.
fn on_terminal(place: &Place, line: &str, (term, no_color): (&'static str, &'static str)) -> String {
    let (status, text) = Terminal { term, no_color, ..Terminal::default() }.analyze(place, &words(line));
    assert_eq!(status, 0, "{line}");
    text
}

#[test]
fn only_colours_differ_on_a_terminal() {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), false);
    for (words, colored) in [
        ("trace sample.tape", "\x1b[31m-1 ENOENT"),
        ("-s sample.tape", "\x1b[36m>="),
        ("-s --by syscall sample.tape", "\x1b[36m>="),
        ("block events.tape", "\x1b[31mEIO"),
        ("block events.tape", "\x1b[33m  0.080"),
        ("net events.tape", "\x1b[36m"),
        ("net events.tape", "\x1b[31mfailed"),
        ("files --opens sample.tape", "\x1b[31mENOENT  "),
        ("files --slower 0 sample.tape", "\x1b[31m"),
        ("sched timehist sched-lost.tape", "\x1b[31mLOST 12 sched events"),
        ("sched timehist sched-lost.tape", "\x1b[36m"),
        ("states --top 0 sched-lost.tape", ""),
        ("-s --format json sample.tape", ""),
    ] {
        let (shown, piped) = (on_terminal(&place, words, ("xterm", "")), place.analyze(words).out);
        assert!(!piped.contains('\x1b') && shown.contains(colored), "{words}: {shown}");
        let plain =
            ["\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[m"].iter().fold(shown, |text, code| text.replace(code, ""));
        assert_eq!(plain, piped, "{words}");
        for without in [("xterm", "1"), ("dumb", "")] {
            assert_eq!(on_terminal(&place, words, without), piped, "{words}");
        }
    }
}

#[test]
fn a_tape_alone_on_a_terminal_is_a_card() {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), true);
    let shown = on_terminal(&place, "events.tape", ("dumb", ""));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() <= 24, "{shown}");
    // what was lost, and commands that are answered
    let lost = place.analyze("info events.tape");
    assert!(!shown.contains("nothing was lost") && lost.out.contains("lost"), "{shown}");
    let asked = lines.iter().skip_while(|line| **line != "Ask more:").skip(1);
    let commands: Vec<&str> =
        asked.filter_map(|line| line.trim().split("  ").next()?.strip_prefix("analyze ")).collect();
    assert!(commands.len() >= 5, "{shown}");
    for command in &commands {
        let got = place.analyze(command);
        assert_eq!(got.status, 0, "{command}: {}", got.err);
    }
    assert!(on_terminal(&place, "sample.tape", ("dumb", "")).contains("\nnothing was lost\n"));
    common::hostile::write(&place.path("hostile.tape"));
    let hostile = on_terminal(&place, "hostile.tape", ("dumb", ""));
    assert!(!hostile.split('\n').any(|line| line.contains(systape_abi::is_unsafe)), "{hostile:?}");
    // what it says of calls is said by `trace`, by any option, and in a pipe
    let listed = place.analyze("sample.tape").out;
    for words in ["trace sample.tape", "--color=never sample.tape", "-i sample.tape"] {
        assert_eq!(on_terminal(&place, words, ("dumb", "")), listed, "{words}");
    }
}

#[test]
fn a_card_asks_what_the_tape_answers() {
    let place = Place::with_sample();
    common::exchanges::write_served(&place.path("served.tape"));
    common::locks::write(&place.path("locks.tape"), &[]);
    common::life::write(&place.path("life.tape"), &[]);
    common::looks::write(&place.path("looks.tape"), &[]);
    common::stacks::write(&place.path("stacks.tape"), 1);
    const ABOUT_ONE_THING: [&str; 3] = ["requests", "locks", "kills"];
    for (tape, has) in [
        ("served.tape", &["requests"][..]),
        ("locks.tape", &["locks"]),
        ("life.tape", &["kills"]),
        ("sample.tape", &[]),
        ("looks.tape", &[]),
        ("stacks.tape", &[]),
    ] {
        let shown = on_terminal(&place, tape, ("dumb", ""));
        let asked = shown.lines().skip_while(|line| *line != "Ask more:").skip(1);
        let commands: Vec<&str> =
            asked.filter_map(|line| line.trim().split("  ").next()?.strip_prefix("analyze ")).collect();
        let of_one_thing = commands.iter().filter_map(|command| command.split(' ').next());
        let of_one_thing: Vec<&str> = of_one_thing.filter(|name| ABOUT_ONE_THING.contains(name)).collect();
        assert_eq!(of_one_thing, has, "{shown}");
        for command in &commands {
            let got = place.analyze(&command.replace('\'', ""));
            assert_eq!(got.status, 0, "{command}: {}", got.err);
            assert!(!got.err.contains("nothing to show"), "{command}: {}", got.err);
        }
    }
}

#[test]
fn a_card_says_of_losses_and_findings_what_why_says() {
    let place = Place::new();
    let sound = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/tapes/kernel-6.1-mix.tape")).unwrap();
    std::fs::write(place.path("a.tape"), &sound).unwrap();
    let tape = systape_format::Tape::open(&place.path("a.tape")).unwrap();
    assert!(on_terminal(&place, "a.tape", ("dumb", "")).contains("\nnothing was lost\n"));
    let mut shown = 0;
    for block in tape.blocks() {
        let mut bytes = sound.clone();
        bytes[block.offset as usize + systape_format::header::HEADER_LEN + block.stored_len as usize / 2] ^= 0x10;
        std::fs::write(place.path("a.tape"), &bytes).unwrap();
        let why = place.analyze("why --fail-on-loss a.tape");
        if why.status == 1 {
            continue;
        }
        let card = on_terminal(&place, "a.tape", ("dumb", ""));
        let what = (block.kind.name(), &card);
        assert_eq!(card.contains("\nnothing was lost\n"), why.status == 0, "{what:?}");
        // each finding with the same figure: a number, a class, or a bound
        let found = card.lines().skip_while(|line| *line != "What was slow, and what broke:").skip(1);
        for line in found.take_while(|line| line.starts_with(' ')).filter(|line| !line.ends_with("analyze why")) {
            shown += 1;
            assert!(why.out.contains(line.trim()), "{what:?}: {line}\n{}", why.out);
        }
        let nothing = card.contains("Nothing slow or broken was found");
        assert!(!nothing || why.status == 0, "{what:?}");
    }
    assert!(shown > 5, "{shown} findings");
}

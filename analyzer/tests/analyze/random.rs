//! Questions made by chance of a report, options and a tape: whatever is asked, an answer without a row has a word why, what a refusal suggests is
//! taken, and it is of the report that was asked.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::hints::{WORDS, not_taken, refused};
use crate::common::{self, Place};
use systape_analyzer::exercise::{Operands, VIEWS, View};

const QUESTIONS: usize = 1000;
const SEED: u64 = 0x7379_7374_6170_6531;

/// Values that people mistype, and words of nobody.
const WRONG: [&str; 12] = [
    "--top x",
    "--by nosuch",
    "--by comm,state",
    "--time 5,1",
    "-e nosuchcall",
    "-p sh",
    "--format xml",
    "--metric most",
    "--clock utc",
    "--limit 5",
    "--since 1h",
    "--max-events 0",
];

/// A generator of numbers: xorshift64*.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn place() -> (Place, Vec<String>) {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), false);
    common::life::write(&place.path("life.tape"), &[]);
    common::stacks::write(&place.path("stacks.tape"), 1);
    common::ledger::write(&place.path("ledger.tape"), &[]);
    common::tools::write(&place.path("tools.tape"), &[]);
    common::udp::write(&place.path("udp.tape"), &[]);
    common::looks::write(&place.path("looks.tape"), &[]);
    common::locks::write(&place.path("locks.tape"), &[]);
    let mut tapes: Vec<String> = ["sample", "events", "life", "stacks", "ledger", "tools", "udp", "locks", "looks"]
        .map(|name| format!("{name}.tape"))
        .into();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for name in ["kernel-6.1-mix.tape", "kernel-6.12-sh.tape", "ledger-1.3.tape", "mix-1.5.tape", "stacks-1.2.tape"] {
        std::fs::copy(recorded.join(name), place.path(name)).unwrap();
        tapes.push(name.to_owned());
    }
    (place, tapes)
}

/// Words of a question. About half of the options are the report's.
fn question(chance: &mut Chance, views: &[&View], tapes: &[String]) -> String {
    let view = *chance.of(views);
    let own: Vec<_> = WORDS.iter().filter(|(id, ..)| view.takes(id)).collect();
    let mut words = vec![if view.name == "with-summary" { "-S" } else { view.name }.to_owned()];
    for _ in 0..chance.below(4) {
        let (of_all, of_own) = (*chance.of(WORDS), if own.is_empty() { WORDS[0] } else { **chance.of(&own) });
        words.push(match chance.below(8) {
            0..5 => format!("{} {}", of_own.1, of_own.2),
            5..7 => of_all.2.to_owned(),
            _ => (*chance.of(&WRONG)).to_owned(),
        });
    }
    match chance.below(4) {
        0 => words.push("--format json".to_owned()),
        1 => words.push("--format csv".to_owned()),
        _ => {}
    }
    // a picture or a copy has a name of its own
    words.retain(|word| !["-o", "--svg"].iter().any(|option| word.contains(option)));
    words.push(chance.of(tapes).clone());
    words.join(" ")
}

/// What is wrong with an answer.
fn wrong(words: &str, got: &common::Output) -> Option<String> {
    let lines = got.out.lines().filter(|line| !line.trim().is_empty()).count();
    // a heading alone; a form for programs has not even that, or it in CSV
    let silent = got.status == 0 && lines < 2 && got.err.is_empty();
    let header = got.out.lines().next().unwrap_or_default();
    let is_row = header.starts_with('{') || header.contains(|letter: char| letter.is_ascii_digit());
    // a sentence in place of rows
    let says_why = header.starts_with("No ") || header.starts_with("None of these signals");
    // who asks for no event gets none, and who follows is told what comes
    let asked = words.contains("--max-events 0") || words.contains("--follow");
    if silent && !is_row && !says_why && !asked {
        return Some(format!("no word: {:?}", got.out));
    }
    if got.status > 3 || got.status == 2 && (got.err.lines().count() != 1 || !got.out.is_empty()) {
        return Some(format!("status {}: {}{}", got.status, got.err, got.out));
    }
    if let Some(why) = refused(&got.err) {
        return Some(format!("what it suggests is refused: {why}"));
    }
    let option = (got.status == 2).then(|| not_taken(&format!("analyze {words}"), &got.err)).flatten();
    option.map(|option| format!("it suggests {option}: {}", got.err))
}

#[test]
fn whatever_is_asked_has_an_answer_or_a_word_why_not() {
    let views: Vec<&View> = VIEWS
        .iter()
        .copied()
        .filter(|view| view.operands == Operands::Tape && !view.takes("output") && !view.makes_a_copy())
        .collect();
    let (_, tapes) = place();
    let mut chance = Chance(SEED);
    let all: Vec<String> = (0..QUESTIONS).map(|_| question(&mut chance, &views, &tapes)).collect();
    let (next, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    let found: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let ((place, _), mut found) = (place(), Vec::new());
            while let Some(words) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let got = place.ask(words);
                answered.fetch_add((got.status == 0).into(), Ordering::Relaxed);
                found.extend(wrong(words, &got).map(|what| format!("analyze {words}\n  {what}")));
            }
            found
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{} of {QUESTIONS}:\n{}", found.len(), found.join("\n"));
    let answered = answered.into_inner();
    assert!((QUESTIONS / 4..QUESTIONS * 3 / 4).contains(&answered), "{answered} were answered");
}

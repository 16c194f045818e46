//! Commands of the manual: `analyze` takes each of them, and what stands below those in blocks marked `console` is what it prints on a
//! terminal of 96 columns, of the tapes in testdata. `lines=N` behind the mark shows the first N lines.

use std::fs;

use crate::common::Place;
use crate::manual::pages::{pages, root};

/// How wide the terminal of the answers is.
const CELLS: &str = "@96";
/// Where tapes come from.
const TAPES: [&str; 3] = ["testdata/guides", "testdata/tapes", "python/tests/tapes"];

/// What needs `analyze-sql`, which is not built here.
fn is_elsewhere(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    word(1) == "sql" || (word(1) == "export" && ["parquet", "json", "csv"].contains(&word(2)))
}

#[test]
fn analyze_takes_every_command() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for page in pages().iter().filter(|page| !page.is_generated()) {
        for (place, words) in page.commands("analyze").into_iter().filter(|(_, words)| !is_elsewhere(words)) {
            looked += 1;
            // words of usage lines stand for something
            let words = words.iter().map(|word| word.trim_end_matches("...").replace("TAPE|DIR", "TAPE"));
            // what the program takes off before it reads the line
            let words = words.enumerate().filter(|(at, word)| *at != 1 || word != "trace").map(|(_, word)| word);
            let asked = systape_analyzer::exercise::parse(words.map(Into::into));
            let asked = asked.and_then(|asked| match asked.config() {
                Ok(_) => Ok(()),
                Err(error) => Err(systape_cli::Stop::Usage(format!("{error:#}"))),
            });
            if let Err(systape_cli::Stop::Usage(error)) = asked {
                wrong.push(format!("{place}: {error}"));
            }
        }
    }
    assert!(looked > 200 && wrong.is_empty(), "{looked} commands\n{}", wrong.join("\n"));
}

/// A directory with all tapes of testdata, some of them in directories of their own.
fn place() -> Place {
    let place = Place::new();
    for dir in TAPES {
        for entry in fs::read_dir(root().join(dir)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".tape") {
                fs::copy(entry.path(), place.path(&name)).unwrap();
            }
        }
    }
    fs::create_dir(place.path("tapes")).unwrap();
    for name in ["demo", "kill", "disk"] {
        fs::copy(place.path(&format!("{name}.tape")), place.path(&format!("tapes/{name}.tape"))).unwrap();
    }
    place
}

/// A block as it should be: below each command of analyze its answer.
fn answered(place: &Place, info: &str, lines: &[String]) -> Vec<String> {
    let most = info.split_once("lines=").map_or(usize::MAX, |(_, number)| number.parse().expect("a number"));
    let (mut block, mut ours) = (Vec::new(), false);
    for line in lines {
        let Some(command) = line.strip_prefix("$ ") else {
            block.extend((!ours && !line.is_empty()).then(|| line.clone()));
            continue;
        };
        block.extend((!block.is_empty()).then(String::new));
        block.push(line.clone());
        ours = command.starts_with("analyze ");
        if ours {
            let words = shlex::split(command).expect("words");
            let got = place.ask_words([CELLS].into_iter().chain(words.iter().skip(1).map(String::as_str)));
            assert!(got.status != 2, "{command}: {}", got.err);
            let text = format!("{}{}", got.err, got.out);
            let answer: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
            block.extend(answer.iter().take(most).map(|line| (*line).to_owned()));
            block.extend((answer.len() > most).then(|| "...".to_owned()));
        }
    }
    block
}

#[test]
fn answers_are_what_analyze_prints() {
    let place = place();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for page in pages() {
        let mut text: Vec<String> = page.text.lines().map(str::to_owned).collect();
        // from the end on, so that places stay right
        for block in page.code().into_iter().rev().filter(|block| block.info.starts_with("console")) {
            looked += 1;
            let is = answered(&place, &block.info, &block.lines);
            if is != block.lines {
                wrong.push(format!("{}:{}\n{}", page.name, block.line, is.join("\n")));
                text.splice(block.line..block.line + block.lines.len(), is);
            }
        }
        if update {
            fs::write(root().join(&page.name), text.join("\n") + "\n").unwrap();
        }
    }
    assert!(looked > 40, "{looked}");
    assert!(update || wrong.is_empty(), "UPDATE_GOLDEN=1 writes them\n{}", wrong.join("\n\n"));
}

//! Sentences of the manual: how long they are, how many words there are, and which wordings they do without.

use crate::manual::pages::{ManualPage, pages};
use crate::plain_words;

/// Most words of all pages together that are written by hand.
const WORDS: usize = 25_000;
/// Most words of a sentence.
const SENTENCE: usize = 35;
/// Most words of a sentence on average, of each page.
const AVERAGE: f64 = 20.0;
/// Most lines of README.md.
const README_LINES: usize = 150;

/// A stretch of text of a page: a paragraph, an item, a cell of a table, a heading.
struct TextPart {
    line: usize,
    text: String,
    is_heading: bool,
    is_cell: bool,
}

/// What is to be read of a page, without code.
fn parts(page: &ManualPage) -> Vec<TextPart> {
    let mut parts: Vec<TextPart> = Vec::new();
    let (mut fenced, mut goes_on, mut head) = (false, false, page.text.starts_with("---\n"));
    for (at, line) in page.by_hand().into_iter().enumerate() {
        // of a file that models read: what is above the text
        if head {
            head = at == 0 || line != "---";
            continue;
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            goes_on = false;
            continue;
        }
        let text = line.trim();
        if fenced || text.is_empty() || (line.starts_with("    ") && !goes_on) {
            goes_on = false;
            continue;
        }
        let part =
            |text: &str, is_heading, is_cell| TextPart { line: at + 1, text: text.to_owned(), is_heading, is_cell };
        if let Some(cells) = text.strip_prefix('|') {
            let cells = cells.trim_end_matches('|').split('|').map(str::trim);
            parts.extend(cells.filter(|cell| cell.contains(char::is_alphanumeric)).map(|cell| part(cell, false, true)));
            goes_on = false;
        } else if let Some(heading) = text.strip_prefix('#') {
            parts.push(part(heading.trim_start_matches('#').trim(), true, false));
            goes_on = false;
        } else {
            let item = text.strip_prefix("- ").or_else(|| {
                let (number, rest) = text.split_once(". ")?;
                number.chars().all(|digit| digit.is_ascii_digit()).then_some(rest)
            });
            match parts.last_mut().filter(|_| goes_on && item.is_none()) {
                Some(last) => last.text = format!("{} {text}", last.text),
                None => parts.push(part(item.unwrap_or(text), false, false)),
            }
            goes_on = true;
        }
    }
    parts
}

/// Text as it is read: of links what they are called, code as one word, no marks.
fn read(text: &str) -> String {
    let code: String = text.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "CODE" } else { part }).collect();
    let mut plain = String::new();
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.replace(['[', '*', '!'], "")
}

/// The sentences of a text: they end with a stop and a capital, a digit or code behind it.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let last = sentences.last_mut().unwrap();
        last.push_str(word);
        last.push(' ');
        let ends = word.trim_end_matches([')', '"']).ends_with(['.', '?', ':', ';']);
        let begins = |next: &&str| {
            next.starts_with(|letter: char| letter.is_uppercase() || letter.is_ascii_digit() || letter == '(')
        };
        if ends && words.get(at + 1).is_some_and(begins) {
            sentences.push(String::new());
        }
    }
    sentences
}

/// How many words stand in a text.
fn count(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn sentences_are_short() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for page in pages() {
        let mut lengths = Vec::new();
        for part in parts(&page).into_iter().filter(|part| !part.is_heading) {
            for sentence in sentences(&read(&part.text)) {
                let words = count(&sentence);
                if words > SENTENCE {
                    wrong.push(format!("{}:{}: {words} words: {sentence}", page.name, part.line));
                }
                lengths.extend((words > 0 && !part.is_cell).then_some(words));
            }
        }
        looked += lengths.len();
        let average = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
        if average > AVERAGE {
            wrong.push(format!("{}: {average:.1} words a sentence", page.name));
        }
    }
    assert!(looked > 1_000 && wrong.is_empty(), "{looked} sentences\n{}", wrong.join("\n"));
}

#[test]
fn pages_are_few_words() {
    let words = |page: &ManualPage| parts(page).iter().map(|part| count(&read(&part.text))).sum::<usize>();
    // the list of the site has the titles of other pages
    let pages: Vec<_> = pages().into_iter().filter(|page| page.name != "docs/SUMMARY.md").collect();
    let total: usize = pages.iter().map(words).sum();
    let mut each: Vec<_> = pages.iter().map(|page| (words(page), &page.name)).collect();
    each.sort_unstable_by(|a, b| b.cmp(a));
    println!("{total} words by hand in {} pages; most: {:?}", pages.len(), &each[..10]);
    assert!(total <= WORDS, "{total} words by hand, at most {WORDS}; most: {:?}", &each[..10]);
    let readme = pages.iter().find(|page| page.name == "README.md").expect("README.md");
    assert!(readme.text.lines().count() <= README_LINES, "README.md has more than {README_LINES} lines");
}

#[test]
fn wordings_that_nobody_understands_stay_out() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for page in pages() {
        for part in parts(&page) {
            looked += 1;
            if let Some((old, new)) = plain_words::in_a_page(&read(&part.text)) {
                wrong.push(format!("{}:{}: {old:?}: write {new:?}", page.name, part.line));
            }
        }
        // what programs print is shown, too, and may be of an earlier version
        for (block, line) in page.code().iter().flat_map(|block| block.lines.iter().map(move |line| (block, line))) {
            if let Some((old, new)) = plain_words::in_a_page(line) {
                wrong.push(format!("{}:{}: {line}: {old:?}: the program prints {new:?}", page.name, block.line));
            }
        }
    }
    assert!(looked > 1_000 && wrong.is_empty(), "{looked} parts\n{}", wrong.join("\n"));
}

/// Who opens a page knows at once what for.
#[test]
fn a_page_begins_with_what_a_reader_can_do() {
    // decisions and pages of the root are read for other reasons
    let other = |page: &ManualPage| {
        page.is_generated() || ["README.md", "docs/SUMMARY.md", "docs/agents/SKILL.md"].contains(&page.name.as_str())
    };
    let opens = |page: &ManualPage| parts(page).into_iter().find(|part| !part.is_heading).map(|part| part.text);
    let wrong: Vec<_> = pages()
        .into_iter()
        .filter(|page| !other(page) && !opens(page).is_some_and(|text| text.starts_with("After this page ")))
        .map(|page| page.name)
        .collect();
    assert!(wrong.is_empty(), "begin with 'After this page you can ...': {wrong:?}");
}

#[test]
fn text_is_taken_apart() {
    let read = read("See [the `a b` page](x.md#y). It *is* here: 3 of them.");
    assert_eq!(read, "See the CODE page. It is here: 3 of them.");
    assert_eq!(sentences(&read).len(), 3);
    assert_eq!(count("a - b, c | 1"), 4);
}

//! The pages of the manual as text: which there are, what of them is written by hand, and the commands that they show.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the manual.
pub(crate) struct ManualPage {
    /// Path from the root of the repository.
    pub(crate) name: String,
    /// All of it.
    pub(crate) text: String,
}

/// Code that a page shows, fenced or indented.
pub(crate) struct CodeBlock {
    /// What stands behind the fence; empty of indented code.
    pub(crate) info: String,
    /// Line of the page before it, counted from 1.
    pub(crate) line: usize,
    /// The code, without indentation.
    pub(crate) lines: Vec<String>,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// README.md and what is below docs, in order of their names.
pub(crate) fn pages() -> Vec<ManualPage> {
    let (mut names, mut dirs) = (vec!["README.md".to_owned()], vec!["docs".to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root().join(&dir)).unwrap().map(Result::unwrap) {
            let name = format!("{dir}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                dirs.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    names.sort();
    let read = |name: String| ManualPage { text: fs::read_to_string(root().join(&name)).unwrap(), name };
    names.into_iter().map(read).collect()
}

impl ManualPage {
    /// Whether a program writes all of it.
    pub(crate) fn is_generated(&self) -> bool {
        self.text.starts_with("<!-- generated")
    }

    /// Its lines, those that a program writes between two comments blank.
    pub(crate) fn by_hand(&self) -> Vec<&str> {
        let mut made = self.is_generated();
        let line = |line| {
            if str::starts_with(line, "<!--") {
                made = !(line.starts_with("<!-- end") || line.ends_with("end -->"));
                return "";
            }
            if made { "" } else { line }
        };
        self.text.lines().map(line).collect()
    }

    /// Code that is written by hand.
    pub(crate) fn code(&self) -> Vec<CodeBlock> {
        let mut blocks: Vec<CodeBlock> = Vec::new();
        let (mut fenced, mut indented, mut blank) = (false, false, true);
        for (at, line) in self.by_hand().into_iter().enumerate() {
            if let Some(info) = line.strip_prefix("```") {
                fenced = !fenced;
                if fenced {
                    blocks.push(CodeBlock { info: info.to_owned(), line: at + 1, lines: Vec::new() });
                }
            } else if fenced {
                blocks.last_mut().unwrap().lines.push(line.to_owned());
            } else if let Some(code) = line.strip_prefix("    ").filter(|_| indented || blank) {
                if !indented {
                    blocks.push(CodeBlock { info: String::new(), line: at, lines: Vec::new() });
                }
                indented = true;
                blocks.last_mut().unwrap().lines.push(code.to_owned());
            } else {
                indented = indented && line.is_empty();
            }
            blank = line.is_empty();
        }
        blocks
    }

    /// The command lines of `program` that it shows, each with its place: in code, and between backquotes where it is a whole command.
    pub(crate) fn commands(&self, program: &str) -> Vec<(String, Vec<String>)> {
        let mut found = Vec::new();
        for block in self.code() {
            let answers = block.info.starts_with("console");
            for (at, line) in block.lines.iter().enumerate() {
                let place = format!("{}:{}: {line}", self.name, block.line + at + 1);
                let Some(line) = line.strip_prefix("$ ").or((!answers).then_some(line)) else { continue };
                found.extend(of_program(&line.replace("PID", "1"), program).map(|words| (place.clone(), words)));
            }
        }
        for (at, line) in self.by_hand().into_iter().enumerate().filter(|(_, line)| !line.starts_with("    ")) {
            for span in line.split('`').skip(1).step_by(2) {
                // a name alone is a report's or an option's; words in capitals and dots stand for something
                let asks = |rest: &str| rest.contains('-') && rest.contains(' ') && !rest.contains("...");
                let whole = span.split_once(' ').is_some_and(|(name, rest)| name == program && asks(rest))
                    && !["REPORT", "NAME", "TAPE", "TIME"].iter().any(|word| span.contains(word));
                if whole {
                    let words = of_program(&span.replace("PID", "1"), program);
                    found.extend(words.map(|words| (format!("{}:{}: {span}", self.name, at + 1), words)));
                }
            }
        }
        found
    }
}

/// The words of each command in a line of a shell that begins `program`, with or without sudo or another machine in front.
fn of_program(line: &str, program: &str) -> impl Iterator<Item = Vec<String>> + use<> {
    let program = program.to_owned();
    simple_commands(line).into_iter().filter_map(move |words| {
        let first = words.iter().position(|word| *word == program)?;
        let before = words[..first].iter().map(String::as_str).collect::<Vec<_>>();
        matches!(before[..], [] | ["sudo"] | ["ssh", _] | ["ssh", _, "sudo"] | ["-"]).then(|| words[first..].to_vec())
    })
}

/// The commands of a line, as words: quotes are taken off, comments and redirections left out, nothing is expanded.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word, mut open) = (Vec::new(), Vec::new(), None::<String>, None);
    let mut skip = false;
    let end = |words: &mut Vec<String>, word: &mut Option<String>, skip: &mut bool| {
        let skipped = std::mem::take(skip) && word.is_some();
        words.extend(word.take().filter(|_| !skipped));
    };
    for letter in line.chars() {
        match (open, letter) {
            (Some(quote), _) if quote == letter => open = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                open = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => {
                if word.is_some() {
                    end(&mut words, &mut word, &mut skip);
                }
            }
            (None, '|' | ';' | '&') => {
                end(&mut words, &mut word, &mut skip);
                commands.push(std::mem::take(&mut words));
            }
            (None, '>' | '<') => {
                end(&mut words, &mut word, &mut skip);
                skip = true;
            }
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    end(&mut words, &mut word, &mut skip);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

#[test]
fn a_line_is_taken_apart_as_by_a_shell() {
    let words = |line| of_program(line, "analyze").map(|words| words.join("|")).collect::<Vec<_>>();
    assert_eq!(words("sudo analyze -P 'a b' t.tape > out  # all"), ["analyze|-P|a b|t.tape"]);
    assert_eq!(words("ssh db7 record -o - | analyze --follow -"), ["analyze|--follow|-"]);
    assert_eq!(words("analyze a && analyze b; echo analyze"), ["analyze|a", "analyze|b"]);
    assert_eq!(words("analyze kills < t.tape"), ["analyze|kills"]);
}

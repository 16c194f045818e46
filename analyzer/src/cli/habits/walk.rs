//! Reads the words of one command line, and puts in place of those of a habit what they come to.

use std::ffi::{OsStr, OsString};

use clap::{Command, ValueEnum as _};
use systape_cli::{Options, Takes};

use super::values::{check, is_cpus};
use super::{Does, HABITS, Habit, NO_SORTS};
use crate::asked::config::view::{Operands, View};
use crate::cli::beside;
use crate::cli::habits::{instead_of, meant};
use crate::cli::views::{self, VIEWS};
use systape_answers::derive::summary::column::Column;

/// One word as it will be read.
#[derive(Debug)]
struct Word {
    text: OsString,
    /// It stands for itself, not for an option or its value.
    plain: bool,
    /// Plain, and behind an option that may mean it: that option.
    behind: Option<&'static str>,
}

/// Reads the words of one command line.
struct WordWalk<'a> {
    options: Options<'a>,
    view: &'a str,
    exists: &'a dyn Fn(&OsStr) -> bool,
    words: Vec<Word>,
    /// What stands behind all others.
    last: Vec<OsString>,
}

type Rest<'a> = std::iter::Peekable<std::slice::Iter<'a, OsString>>;

impl WordWalk<'_> {
    fn push(&mut self, text: impl Into<OsString>) {
        self.words.push(Word { text: text.into(), plain: false, behind: None });
    }

    fn plain(&mut self, text: &OsStr, behind: Option<&'static str>) {
        self.words.push(Word { text: text.to_owned(), plain: true, behind });
    }

    /// Reads `words`, the program's name left out.
    fn run(&mut self, words: &[OsString]) -> Result<(), String> {
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            match word.to_str() {
                Some("--") => {
                    self.push("--");
                    for word in rest.by_ref() {
                        self.push(word);
                    }
                }
                Some(text) if text.starts_with(['–', '—']) && !(self.exists)(word) => {
                    let name = text.trim_start_matches(['–', '—', '-']);
                    let hyphens = if name.chars().count() > 1 { "--" } else { "-" };
                    return Err(format!("'{text}' begins with a dash: an option has hyphens: {hyphens}{name}"));
                }
                Some(text) if text.starts_with("--") => self.long(text, &mut rest)?,
                Some(text) if text.len() > 1 && text.starts_with('-') => self.cluster(text, &mut rest)?,
                _ => self.plain(word, None),
            }
        }
        Ok(())
    }

    fn long(&mut self, text: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if let Some(does) = self.habit(name, true) {
            return self.apply(name, does, value, rest);
        }
        let Some((id, takes)) = self.options.long(name.trim_start_matches('-')) else {
            return match self.habit(name, false) {
                Some(does) => self.apply(name, does, value, rest),
                None => match self.as_word(name.trim_start_matches('-')) {
                    Some(sentence) => Err(self.refused(name, &sentence)),
                    None => {
                        self.push(text);
                        Ok(())
                    }
                },
            };
        };
        let id = id.to_owned();
        if self.needless(&id) {
            return Ok(());
        }
        if id == "input"
            && let Some(file) = self.another_tape(value.map(OsString::from), rest)
        {
            self.last.push(file);
            return Ok(());
        }
        self.push(text);
        match (takes, value) {
            (Takes::Value, Some(value)) => self.check(&id, value.as_ref())?,
            (Takes::Value, None) => self.value(&id, rest)?,
            (Takes::Equals, None) => self.spaced(&id, rest),
            _ => {}
        }
        Ok(())
    }

    /// Refuses a value that the option `id` cannot have; a file may have any name.
    fn check(&self, id: &str, value: &OsStr) -> Result<(), String> {
        let view = self.asked();
        let file = id == "output" && (view.takes(id) || view.operands == Operands::TapeAndCopy);
        if file { Ok(()) } else { check(id, value) }
    }

    /// Whether the option `id` asks for more words than the view has: nothing is left out without it.
    fn needless(&self, id: &str) -> bool {
        id == "verbose" && !self.asked().takes(id)
    }

    /// The file of a second `-i`: several tapes are named one after the other.
    fn another_tape(&self, value: Option<OsString>, rest: &mut Rest<'_>) -> Option<OsString> {
        let begins = |word: &Word| {
            let text = word.text.to_str().unwrap_or_default();
            !word.plain && (text.starts_with("-i") || text.starts_with("--input"))
        };
        self.words.iter().any(begins).then(|| value.or_else(|| rest.next().cloned())).flatten()
    }

    /// The next word is the value of the option `id`.
    fn value(&mut self, id: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        if let Some(value) = rest.next() {
            self.check(id, value)?;
            self.push(value);
        }
        Ok(())
    }

    /// The next word may be the value of the option `id`, which is written with `=`.
    fn spaced(&mut self, id: &str, rest: &mut Rest<'_>) {
        let Some(next) = rest.peek().and_then(|next| next.to_str()).filter(|next| !next.starts_with('-')) else {
            return;
        };
        let means = match id {
            "call_graph" => ["fp", "dwarf", "lbr"].contains(&next.split(',').next().unwrap_or_default()),
            "top" => next.bytes().all(|b| b.is_ascii_digit()) && !(self.exists)(next.as_ref()),
            "cpu" => is_cpus(next) && !(self.exists)(next.as_ref()),
            "comm" => {
                self.plain(next.as_ref(), Some("comm"));
                rest.next();
                return;
            }
            _ => false,
        };
        if means && let Some(option) = self.words.last_mut() {
            option.text.push("=");
            option.text.push(next);
            rest.next();
        }
    }

    /// `-abc`: habits as a whole, then letter by letter.
    fn cluster(&mut self, text: &str, rest: &mut Rest<'_>) -> Result<(), String> {
        let whole = self.habit(text, true).or_else(|| text.get(2..).and_then(|_| self.habit(text, false)));
        if let Some(does) = whole {
            return self.apply(text, does, None, rest);
        }
        self.not_letters(&text[1..])?;
        let letters: Vec<(usize, char)> = text.char_indices().skip(1).collect();
        for (at, letter) in letters {
            if letter == '=' {
                return Err(format!("{text}: {} takes no value", &text[..at]));
            }
            let one = format!("-{letter}");
            if let Some(does) = self.habit(&one, true) {
                self.apply(&one, does, None, rest)?;
                continue;
            }
            let Some((id, takes)) = self.options.short(letter) else {
                match self.habit(&one, false) {
                    Some(does) => self.apply(&one, does, None, rest)?,
                    None => self.push(one),
                }
                continue;
            };
            let id = id.to_owned();
            if self.needless(&id) {
                continue;
            }
            if takes == Takes::Nothing {
                let behind = &text[at + letter.len_utf8()..];
                if letter == 's' && !behind.is_empty() && behind.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(strings(behind));
                }
                match self.after_flag(letter, rest)? {
                    Some(word) => self.push(word),
                    None => self.push(one),
                }
                continue;
            }
            let value = &text[at + letter.len_utf8()..];
            let file = Some(value).filter(|value| !value.is_empty()).map(OsString::from);
            if id == "input"
                && let Some(file) = self.another_tape(file, rest)
            {
                self.last.push(file);
                break;
            }
            self.push(format!("{one}{value}"));
            match value.strip_prefix('=').unwrap_or(value) {
                "" => self.value(&id, rest)?,
                value => self.check(&id, value.as_ref())?,
            }
            break;
        }
        Ok(())
    }

    /// Refuses what stands behind one hyphen and is a number, or the name of an option of several letters.
    fn not_letters(&self, text: &str) -> Result<(), String> {
        let name = text.split('=').next().unwrap_or_default();
        let long = format!("--{name}");
        if name.len() > 2 && name != "help" && (self.options.long(name).is_some() || self.habit(&long, false).is_some())
        {
            return Err(format!("-{name}: an option of several letters has two hyphens: {long}"));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let options = [("signal", "--signal"), ("top", "--top"), ("max_events", "--max-events")];
            let meant = options.iter().find(|(id, _)| self.asked().takes(id));
            let meant = meant.map_or_else(|| format!("| head -n {text}"), |(_, option)| format!("{option} {text}"));
            return Err(self.refused(&format!("-{text}"), &meant));
        }
        Ok(())
    }

    /// Words that strace and sysdig put behind what is a flag here: what both mean together.
    fn after_flag(&self, letter: char, rest: &mut Rest<'_>) -> Result<Option<String>, String> {
        let next = rest.peek().and_then(|next| next.to_str()).filter(|next| !(self.exists)(next.as_ref()));
        match (letter, next) {
            ('s', Some(next)) if next.bytes().all(|byte| byte.is_ascii_digit()) => Err(strings(next)),
            ('S', Some(next)) if NO_SORTS.contains(&next) => {
                Err(format!("-S {next}: sums are sorted by --sort calls, errors, total, avg, max or p99"))
            }
            ('S', Some(next)) if Column::from_str(next, false).is_ok() => {
                rest.next();
                Ok(Some(format!("--sort={next}")))
            }
            _ => Ok(None),
        }
    }

    /// What `word` means by habit. `first`: before it is looked for among the options.
    fn habit(&self, word: &str, first: bool) -> Option<Does> {
        let fits = |habit: &&Habit| {
            habit.words.contains(&word) && if first { habit.views.contains(&self.view) } else { habit.views.is_empty() }
        };
        HABITS.iter().find(fits).map(|habit| habit.does)
    }

    /// The view that is asked.
    fn asked(&self) -> &'static View {
        VIEWS.iter().find(|view| view.name == self.view).unwrap_or(&VIEWS[0])
    }

    /// What an option that there is not comes to as a word, unless it resembles one of the options that the view takes.
    fn as_word(&self, name: &str) -> Option<String> {
        if is_report(name) {
            return Some(format!("the name of a report is a word: 'analyze {name}'"));
        }
        let taken = self.options.0.get_arguments().filter(|arg| self.asked().takes(arg.get_id().as_str()));
        let longs: Vec<&str> = taken.filter_map(|arg| arg.get_long()).collect();
        if !systape_abi::nearest(name, longs.iter().copied()).is_empty() {
            return None;
        }
        if let Some(long) = longs.iter().find(|long| long.len() > 3 && name.starts_with(*long)) {
            return Some(format!("did you mean '--{long}'?"));
        }
        let sentence = instead_of(name, None)?;
        let same = sentence == format!("type 'analyze {}'", self.view);
        Some(if same { format!("leave it out: 'analyze {}' shows that", self.view) } else { sentence })
    }

    fn refused(&self, word: &str, sentence: &str) -> String {
        systape_cli::unknown(word, self.options.0, Some(sentence))
    }

    fn apply(&mut self, word: &str, does: Does, value: Option<&str>, rest: &mut Rest<'_>) -> Result<(), String> {
        match does {
            Does::Always => {}
            Does::Type(words) => words.iter().for_each(|word| self.push(*word)),
            Does::Named(option) => {
                let value = match value {
                    Some(value) => OsString::from(value),
                    None => rest.next().cloned().ok_or_else(|| format!("{word} needs a value; it is {option} here"))?,
                };
                if let Some((id, _)) = self.options.long(option.trim_start_matches('-')) {
                    self.check(id, &value)?;
                }
                let mut text = OsString::from(option);
                text.push("=");
                text.push(value);
                self.push(text);
            }
            Does::Last => {
                let value = value.map(OsString::from).or_else(|| rest.next().cloned());
                self.last.push(value.ok_or_else(|| format!("{word} needs the name of a file"))?);
            }
            Does::Say(sentence) => return Err(self.refused(word, sentence)),
            Does::Ask(sentences) => {
                let fits = |(id, _): &&(&str, &str)| id.is_empty() || self.asked().takes(id);
                let sentence = sentences.iter().find(fits).map_or("", |(_, sentence)| *sentence);
                return Err(self.refused(word, sentence));
            }
        }
        Ok(())
    }

    /// Positions of words that stand for themselves, and are not what an option means.
    fn plains(&self) -> Vec<usize> {
        (0..self.words.len()).filter(|at| self.words[*at].plain && self.words[*at].behind.is_none()).collect()
    }

    fn text(&self, at: usize) -> &str {
        self.words[at].text.to_str().unwrap_or_default()
    }

    /// `--comm NAME`: the word behind it is the name, unless it is the tape or the report.
    fn comms(&mut self) {
        let input = self.words.iter().any(|word| {
            !word.plain && word.text.to_str().is_some_and(|text| text.starts_with("-i") || text.starts_with("--input"))
        });
        for at in 0..self.words.len() {
            if self.words[at].behind.is_none() {
                continue;
            }
            let others = self.plains();
            let texts: Vec<&str> = others.iter().map(|at| self.text(*at)).collect();
            let named = (0..texts.len()).find_map(|at| views::named(texts[at..].iter().copied()));
            let rest = texts.len() - named.map_or(0, |(_, words)| words);
            let word = self.text(at);
            let report = named.is_none() && views::named(std::iter::once(word)).is_some();
            let tape = !input
                && rest == 0
                && (word.contains('/') || word.ends_with(".tape") || (self.exists)(&self.words[at].text));
            if report || tape {
                self.words[at].behind = None;
            } else {
                let name = std::mem::take(&mut self.words[at].text);
                let mut option = OsString::from("--comm=");
                option.push(name);
                self.words[at] = Word { text: option, plain: false, behind: None };
                // the bare one in front of it
                self.words[at - 1].text = OsString::new();
            }
        }
        self.words.retain(|word| !word.text.is_empty() || word.plain);
    }

    /// `analyze t.tape kills`: the report's name goes to the front.
    fn report_first(&mut self) {
        let plains = self.plains();
        let texts: Vec<&str> = plains.iter().map(|at| self.text(*at)).collect();
        let named = (0..texts.len()).find_map(|at| Some((at, views::named(texts[at..].iter().copied())?.1)));
        if let Some((first @ 1.., count)) = named
            && texts.first() != Some(&"help")
        {
            for (to, from) in plains[first..first + count].iter().enumerate() {
                let word = self.words.remove(*from);
                self.words.insert(to, word);
            }
        }
    }
}

/// `-s LENGTH` of strace.
fn strings(length: &str) -> String {
    format!("-s {length}: -s is the summary; strings are as long as they were recorded (record -s {length})")
}

/// Whether `name` would be a report as a word.
fn is_report(name: &str) -> bool {
    let mut beside = beside::WORDS.iter().filter_map(|(all, _)| all.split(' ').next());
    views::begins(name) || beside.any(|first| first == name)
}

/// What to type for the first words, where no report and no file is named.
fn no_report(typed: &[OsString], exists: &dyn Fn(&OsStr) -> bool) -> Option<String> {
    let absent = |word: &&OsString| !exists(word);
    let (mut words, first) = (typed, typed.first()?);
    // the tape may stand in front; a file that is called as a report is none
    if !absent(&first) && !views::begins(first) {
        words = &typed[1..];
    }
    let word = words.first().filter(absent)?.to_str()?;
    let next = words.get(1).filter(absent).and_then(|next| next.to_str());
    let known = if views::begins(word) { instead_of } else { meant };
    let typed = known(word, next).filter(|_| word != "help")?;
    let whole = next.filter(|_| known(word, None).as_ref() != Some(&typed)).map(|next| format!(" {next}"));
    Some(format!("'{word}{}' is no report: {typed}", whole.unwrap_or_default()))
}

/// The words as `analyze` reads them; the first is the program's name. `options` are those of the report named `view`; `exists` says
/// whether there is a file of that name.
///
/// # Errors
/// One of them means something that is done in another way: how.
pub(crate) fn settled(
    words: &[OsString],
    view: &str,
    options: &Command,
    exists: &dyn Fn(&OsStr) -> bool,
) -> Result<Vec<OsString>, String> {
    let Some((program, typed)) = words.split_first() else { return Ok(Vec::new()) };
    if let Some(why) = no_report(typed, exists) {
        return Err(why);
    }
    let mut walk = WordWalk { options: Options(options), view, exists, words: Vec::new(), last: Vec::new() };
    walk.run(typed)?;
    walk.comms();
    walk.report_first();
    let last = std::mem::take(&mut walk.last);
    last.iter().for_each(|word| walk.plain(word, None));
    Ok(std::iter::once(program.clone()).chain(walk.words.into_iter().map(|word| word.text)).collect())
}

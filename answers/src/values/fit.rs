//! Text in the width of a terminal: how wide it is, how a value is shortened in its middle, and how a line that is too long is broken at
//! words. It takes plain values; [`crate::values::output`] knows whether there is a terminal.
//!
//! Widths are cells of a terminal: a character of East Asian scripts takes two, a combining one none, and what switches a colour none.
//! A number is never shortened: what may be is said by who writes it, or has letters that no number has (`/`, a quote).
//!
//! Three marks, which no name from a tape can hold because [`systape_abi::plain`] escapes them, say what a line is made of: [`COMMAND`] to
//! [`COMMAND_END`] is a command to copy, which stands on a line of its own and is neither broken nor shortened; [`HANG`] is where the lines
//! below it begin that a long one is broken into.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

/// The mark before a command to copy.
pub const COMMAND: char = '\u{2}';
/// The mark behind a command.
pub const COMMAND_END: char = '\u{3}';
/// Where the continuations of a line begin.
pub const HANG: char = '\u{1}';

/// A path keeps at least so many cells of its own, as long as the line can be broken instead.
const LEAST: usize = 24;
/// The end of what is left out.
const ESCAPE: char = '\u{1b}';

/// How wide `text` is on a terminal.
pub fn cells(text: &str) -> usize {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return text.len();
    }
    let mut width = 0;
    for piece in pieces(text) {
        width += if piece == "\t" { 8 - width % 8 } else { wide(piece) };
    }
    width
}

/// The width of a piece.
fn wide(piece: &str) -> usize {
    if piece.starts_with(ESCAPE) { 0 } else { piece.chars().map(|letter| letter.width().unwrap_or(0)).sum() }
}

/// Characters, and what switches a colour as one piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let colour = || rest.starts_with("\u{1b}[").then(|| rest.find('m')).flatten();
        let end = match first {
            ESCAPE => colour().map_or(1, |at| at + 1),
            letter => letter.len_utf8(),
        };
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    })
}

/// `text` in at most `room` cells: its middle is left out, with `mark` in that place. A path keeps its last name if that fits, and a
/// task its number in brackets.
pub fn middle<'t>(text: &'t str, room: usize, mark: &str) -> Cow<'t, str> {
    if cells(text) <= room {
        return Cow::Borrowed(text);
    }
    // of a call first the pointers leave
    if let Some(text) = without_pointers(text, mark) {
        return Cow::Owned(middle(&text, room, mark).into_owned());
    }
    let all = cells(text);
    let kept = room.saturating_sub(cells(mark));
    let number = text.strip_suffix(']').and_then(|_| text.rfind('['));
    let name = number.or_else(|| text.rfind('/')).map_or(0, |at| cells(&text[at..]));
    // of a path that ends with its name at least a few letters of its beginning stay
    let least = if number.is_some() { 1 } else { 4 };
    let tail = if name > 1 && name + least <= kept { name.max(kept / 2) } else { kept / 2 };
    let (head, behind) = (kept - tail, all - tail);
    let (mut short, mut at, mut marked) = (String::with_capacity(text.len()), 0, false);
    for piece in pieces(text) {
        let width = wide(piece);
        // colours stay
        if piece.starts_with(ESCAPE) || (at + width <= head && !marked) || (marked && at >= behind) {
            short.push_str(piece);
        } else if !marked {
            short.push_str(mark);
            marked = true;
        }
        at += width;
    }
    Cow::Owned(short)
}

/// A command line in at most `room` cells: blanks before it, its program's name, and ` (fork)` behind it stay, and its end is left out. Of
/// programs in turn (`sh => dd if=/x`) the last is what the process became, and stays.
pub(crate) fn command_line<'t>(text: &'t str, room: usize, mark: &str) -> Cow<'t, str> {
    const NEXT: &str = " => ";
    const FORK: &str = " (fork)";
    // so much of the words stays before the tree moves left
    const WORDS: usize = 12;
    if cells(text) <= room {
        return Cow::Borrowed(text);
    }
    let words = text.trim_start_matches(' ');
    let blanks = (text.len() - words.len()).min(room.saturating_sub(cells(words).min(WORDS)));
    let (words, fork) = words.strip_suffix(FORK).map_or((words, ""), |words| (words, FORK));
    let (before, last) = words.rsplit_once(NEXT).map_or(("", words), |(before, last)| (before, last));
    let before = if before.is_empty() { String::new() } else { format!("{mark}{NEXT}") };
    let kept = room.saturating_sub(blanks + cells(&before) + cells(fork));
    let quoted = last.strip_prefix('"').and_then(|rest| rest.find('"')).map(|at| at + 2);
    let name = &last[..quoted.or_else(|| last.find(' ')).unwrap_or(last.len())];
    let last = match cells(last) <= kept {
        true => Cow::Borrowed(last),
        false if cells(name) + 1 + cells(mark) <= kept => {
            Cow::Owned(format!("{}{mark}", head(last, kept - cells(mark))))
        }
        // its arguments are less than its name
        false => middle(name, kept, mark),
    };
    Cow::Owned(format!("{}{before}{last}{fork}", " ".repeat(blanks)))
}

/// The beginning of `text` that takes at most `room` cells.
fn head(text: &str, room: usize) -> &str {
    let mut width = 0;
    let fits = |letter: char| {
        width += letter.width().unwrap_or(0);
        width > room
    };
    &text[..text.find(fits).unwrap_or(text.len())]
}

/// `text` of a call (`read(fd: 3</x>, buf: 0x7f34a8c01000, count: 4)`) without the pointers among its arguments, which nobody reads, with
/// `mark` for each; None: it has none.
fn without_pointers(text: &str, mark: &str) -> Option<String> {
    const DIGITS: usize = 6;
    let (name, arguments) = text.split_once('(')?;
    let pointer = |argument: &str| {
        argument.split_once(": 0x").is_some_and(|(name, digits)| {
            let digits = digits.trim_end_matches(')');
            let whole = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            whole && digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let all: Vec<&str> = arguments.split(", ").collect();
    if !all.iter().any(|argument| pointer(argument)) {
        return None;
    }
    let end = if all.last().is_some_and(|last| pointer(last)) && text.ends_with(')') { ")" } else { "" };
    let kept = all.iter().map(|argument| if pointer(argument) { mark } else { argument });
    Some(format!("{name}({}{end}", kept.collect::<Vec<_>>().join(", ")))
}

/// Whether `text` is a number, a time, or an address, or some with what stands between them.
pub(crate) fn is_number(text: &str) -> bool {
    let part = |letter: char| letter.is_ascii_hexdigit() || ".:,;[]()<>=~x-+T/Z".contains(letter);
    text.contains(|letter: char| letter.is_ascii_digit()) && text.chars().all(part)
}

/// What a line is broken between, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Any word.
    Word,
    /// A word that may lose its middle: a path, a text in quotes.
    Long,
    /// Words that belong together: a command in a sentence.
    Whole,
}

/// A word of a line, with the blanks before it.
#[derive(Clone, Debug)]
struct FitWord<'t> {
    blanks: usize,
    text: Cow<'t, str>,
    kind: Kind,
    /// It stands with the word before it: the value of an argument, what follows `=`.
    joined: bool,
}

/// How lines are made to fit.
#[derive(Clone, Copy, Debug)]
pub struct LineRoom<'m> {
    /// Cells of a line.
    pub cells: usize,
    /// Stands for what is left out; empty: nothing is.
    pub mark: &'m str,
    /// Begins what is dim, and ends it.
    pub dim: (&'m str, &'m str),
}

impl LineRoom<'_> {
    /// Appends `line`, which has no newline, as one or more lines of at most so many cells, each with its newline. Only a command to copy,
    /// and a word without a mark for what is left out, is wider if it must.
    pub fn fit(&self, line: &str, out: &mut String) {
        let Some((before, rest)) = line.split_once(COMMAND) else {
            self.words(line, out);
            return;
        };
        let (command, behind) = rest.split_once(COMMAND_END).unwrap_or((rest, ""));
        let (text, hang) = (before.trim_end_matches([' ', HANG]), beginning(before));
        let lead = " ".repeat(hang.min(self.cells / 2));
        if plain(text).trim().is_empty() {
            let lead = &before[..before.len() - before.trim_start_matches([' ', HANG]).len()];
            out.extend([&*plain(lead), command]);
            // what it is for stands beside it if there is room
            let beside = cells(&plain(lead)) + cells(command) + cells(behind) <= self.cells;
            match beside {
                true => out.extend([behind, "\n"]),
                false => {
                    out.push('\n');
                    self.behind(behind, &lead.replace(HANG, ""), out);
                }
            }
            return;
        }
        self.words(text, out);
        out.extend([&lead, self.dim.0, command, self.dim.1, "\n"]);
        self.behind(behind, &lead, out);
    }

    /// What stands behind a command.
    fn behind(&self, text: &str, lead: &str, out: &mut String) {
        let text = text.trim_matches([' ', ',', ';', ':']);
        if !text.is_empty() {
            self.fit(&format!("{lead}    {text}"), out);
        }
    }

    fn words(&self, line: &str, out: &mut String) {
        let text = plain(line);
        if cells(&text) <= self.cells {
            out.extend([&text, "\n"]);
            return;
        }
        // columns before it may take more than half, as long as there is room for a path
        let hang = beginning(line).min(self.cells.saturating_sub(LEAST).max(self.cells / 2));
        let mut words = words(&text);
        // what stands apart comes together from the end on. What is before the hang is a tree, or columns of several lines
        let kept = if line.contains(HANG) { beginning(line) } else { self.cells / 3 };
        let (mut over, mut at) = (cells(&text).saturating_sub(self.cells), cells(&text));
        for word in words.iter_mut().rev() {
            at -= cells(&word.text);
            if at > kept && word.blanks > 2 {
                let less = over.min(word.blanks - 2);
                (word.blanks, over) = (word.blanks - less, over - less);
            }
            at -= word.blanks.min(at);
        }
        self.shorten(&mut words, hang);
        let mut at = 0;
        for (place, word) in words.iter().enumerate() {
            let width = cells(&word.text);
            let joined = words[place + 1..].iter().take_while(|next| next.joined);
            let all = width + joined.map(|next| next.blanks + cells(&next.text)).sum::<usize>();
            let breaks = if word.joined { width } else { all.min(self.cells - hang) };
            if place > 0 && at + word.blanks + breaks > self.cells {
                out.push('\n');
                out.push_str(&" ".repeat(hang));
                at = hang;
            } else {
                out.push_str(&" ".repeat(word.blanks));
                at += word.blanks;
            }
            out.push_str(&word.text);
            at += width;
        }
        out.push('\n');
    }

    /// Shortens paths, the longest first, if the line fits then: one that is broken all the same has them whole. Each word is shortened until
    /// it fits alone.
    fn shorten(&self, words: &mut [FitWord<'_>], hang: usize) {
        if self.mark.is_empty() {
            return;
        }
        let all = |words: &[FitWord<'_>]| words.iter().map(|word| word.blanks + cells(&word.text)).sum::<usize>();
        let long = words.iter().filter(|word| word.kind == Kind::Long);
        let spare: usize = long.map(|word| cells(&word.text).saturating_sub(LEAST)).sum();
        let fits = all(words).saturating_sub(self.cells) <= spare;
        while let over @ 1.. = all(words).saturating_sub(self.cells) {
            let long = words.iter_mut().filter(|word| word.kind == Kind::Long && cells(&word.text) > LEAST);
            let Some(longest) = long.max_by_key(|word| cells(&word.text)).filter(|_| fits) else { break };
            let room = cells(&longest.text).saturating_sub(over).max(LEAST);
            longest.text = Cow::Owned(middle(&longest.text, room, self.mark).into_owned());
        }
        for (place, word) in words.iter_mut().enumerate() {
            let room = self.cells.saturating_sub(if place == 0 { word.blanks } else { hang });
            if word.kind != Kind::Whole && cells(&word.text) > room && !is_number(&word.text) {
                word.text = Cow::Owned(middle(&word.text, room, self.mark).into_owned());
            }
        }
    }
}

/// `text` without marks.
pub fn plain(text: &str) -> Cow<'_, str> {
    let marks = [COMMAND, COMMAND_END, HANG];
    if text.contains(marks) { Cow::Owned(text.replace(marks, "")) } else { Cow::Borrowed(text) }
}

/// Where continuations of `line` begin: at its mark, else two cells behind its own beginning.
fn beginning(line: &str) -> usize {
    match line.find(HANG) {
        Some(at) => cells(&plain(&line[..at])),
        None => line.len() - line.trim_start_matches(' ').len() + 2,
    }
}

/// The words of `text`. A command in quotes (`'analyze info'`) is one, as it is typed.
fn words(text: &str) -> Vec<FitWord<'_>> {
    let (mut words, mut rest): (Vec<FitWord<'_>>, _) = (Vec::new(), text);
    loop {
        let word = rest.trim_start_matches(' ');
        let blanks = rest.len() - word.len();
        if word.is_empty() {
            return words;
        }
        let quoted =
            ["'analyze ", "'record ", "'systape "].iter().any(|lead| word.trim_start_matches('(').starts_with(lead));
        let inside = word.find('\'').map_or(0, |at| at + 1);
        let end = if quoted { word[inside..].find('\'').map_or(0, |at| inside + at) } else { 0 };
        let end = word[end..].find(' ').map_or(word.len(), |at| end + at);
        let (word, behind) = word.split_at(end);
        let long = word.contains(['/', '"']) || word.contains("::");
        let kind = if quoted {
            Kind::Whole
        } else if long {
            Kind::Long
        } else {
            Kind::Word
        };
        let joined = blanks == 1 && words.last().is_some_and(|before| before.text == "=" || before.text.ends_with(':'));
        words.push(FitWord { blanks, text: Cow::Borrowed(word), kind, joined });
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: LineRoom<'static> = LineRoom { cells: 30, mark: "…", dim: ("", "") };

    fn fit(line: &str) -> String {
        let mut out = String::new();
        ROOM.fit(line, &mut out);
        out
    }

    #[test]
    fn widths_are_cells() {
        for (text, width) in [
            ("abc", 3),
            ("\u{1b}[31mabc\u{1b}[m", 3),
            ("日本", 4),
            ("e\u{301}", 1),
            ("\tx", 9),
            ("ab\tx", 9),
            ("\u{1b}", 0),
            ("", 0),
        ] {
            assert_eq!(cells(text), width, "{text:?}");
        }
    }

    #[test]
    fn a_path_keeps_its_beginning_and_its_name() {
        for (text, room, short) in [
            ("/srv/data/long/way/file", 23, "/srv/data/long/way/file"),
            ("/srv/data/long/way/file", 16, "/srv/dat…ay/file"),
            ("/srv/data/a-rather-long-name", 28, "/srv/data/a-rather-long-name"),
            ("/srv/data/a-rather-long-name", 26, "/srv/d…/a-rather-long-name"),
            ("/srv/data/a-rather-long-name", 12, "/srv/d…-name"),
            ("kworker/u8:3-flush[4711]", 14, "kworker…[4711]"),
            ("日本日本日本", 7, "日…本"),
            ("\u{1b}[31mabcdefgh\u{1b}[m", 5, "\u{1b}[31mab…gh\u{1b}[m"),
        ] {
            let got = middle(text, room, "…");
            assert!(cells(&got) <= room, "{text} {room}: {got}");
            assert_eq!(got, short);
        }
        assert_eq!(middle("/srv/data/long/way/file", 16, "..."), "/srv/da...y/file");
    }

    #[test]
    fn a_line_that_fits_stays() {
        assert_eq!(fit("a     b"), "a     b\n");
        assert_eq!(fit(""), "\n");
        assert_eq!(fit(&"x".repeat(30)), format!("{}\n", "x".repeat(30)));
    }

    #[test]
    fn words_are_broken_below_the_beginning() {
        assert_eq!(fit("  one two three four five six seven"), "  one two three four five six\n    seven\n");
        assert_eq!(fit("1.  \u{1}one two three four five six seven"), "1.  one two three four five\n    six seven\n");
    }

    #[test]
    fn a_path_is_shortened_before_a_line_is_broken() {
        assert_eq!(fit("read /srv/data/long/way/deep/file"), "read /srv/data/lo…ay/deep/file\n");
        assert_eq!(
            fit("rename /srv/data/long/way/deep/file to /srv/data/long/way/deep/a"),
            "rename\n  /srv/data/long/way/deep/file\n  to /srv/data/long/way/deep/a\n",
            "the line is broken all the same"
        );
        let far = fit("rename /srv/data/long/way/down/deep/file to /srv/data/long/way/deep/a");
        assert!(far.lines().all(|line| cells(line) <= 30) && far.matches('…').count() == 1, "{far}");
    }

    #[test]
    fn of_a_call_the_pointers_leave_first() {
        let call = "recvfrom(fd: 9<TCP:[10.0.0.1:80]>, ubuf: 0x7f93a8c01000, size: 4096, addr: 0x7f93a8c02000)";
        assert_eq!(middle(call, 90, "…"), call);
        let short = "recvfrom(fd: 9<TCP:[10.0.0.1:80]>, …, size: 4096, …)";
        assert_eq!(middle(call, 60, "…"), short);
        assert_eq!(middle(call, cells(short), "…"), short);
        assert!(cells(&middle(call, 40, "…")) == 40);
        assert_eq!(middle("brk(brk: 0x1000, flags: 0x10)", 20, "…"), "brk(brk: 0…gs: 0x10)", "no pointers");
    }

    #[test]
    fn a_command_line_keeps_its_program() {
        for (text, room, short) in [
            ("    dd if=/dev/zero of=/srv/big bs=1M", 24, "    dd if=/dev/zero of=…"),
            ("        pyenv exec python3 - (fork)", 30, "        pyenv exec pyt… (fork)"),
            ("sh -c ./start => python3 /srv/app/serve.py", 26, "… => python3 /srv/app/ser…"),
            ("/usr/local/bin/systape demo-service", 26, "/usr/local/bin/systape de…"),
            ("/usr/local/lib/app/bin/systape demo", 26, "/usr/local/li…/bin/systape"),
            ("\"nginx: worker process\" -g off", 28, "\"nginx: worker process\" -g …"),
        ] {
            let got = command_line(text, room, "…");
            assert!(cells(&got) <= room, "{got}");
            assert_eq!(got, short, "{text}");
        }
        let deep = format!("{}sh -c ./a", " ".repeat(40));
        let moved = format!("{}sh -c ./a", " ".repeat(21));
        assert_eq!(command_line(&deep, 30, "…"), moved, "the tree moves left before a name is cut");
    }

    #[test]
    fn a_number_is_never_cut() {
        let number = "2026-11-21T05:48:19.000000000Z";
        let got = fit(&format!("it began at {number}, and 18446744073709551615 bytes"));
        assert!(got.contains(number) && got.contains("18446744073709551615") && !got.contains('…'), "{got}");
    }

    #[test]
    fn commands_are_whole() {
        let command = "analyze states --by tid,state,syscall -p 100 a.tape";
        let line = format!("  1.  \u{1}app 100 slept   \u{2}{command}\u{3}");
        assert_eq!(fit(&line), format!("  1.  app 100 slept\n      {command}\n"));
        let alone = format!("  \u{2}{command}\u{3}   what it shows");
        assert_eq!(fit(&alone), format!("  {command}\n      what it shows\n"));
        assert_eq!(fit("  \u{2}analyze why\u{3}  shows"), "  analyze why  shows\n");
        assert_eq!(
            fit("what is not here is listed by ('analyze kills --all') and nothing else"),
            "what is not here is listed by\n  ('analyze kills --all') and\n  nothing else\n"
        );
    }

    #[test]
    fn what_may_not_be_shortened_stands_alone() {
        let mut out = String::new();
        let path = format!("/srv/{}", "x".repeat(40));
        LineRoom { mark: "", ..ROOM }.fit(&format!("cannot open {path}: gone"), &mut out);
        assert_eq!(out, format!("cannot open\n  {path}:\n  gone\n"));
    }
}

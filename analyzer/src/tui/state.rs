//! What is on the screen, and what keys do to it: plain values. What has to be asked for is a wish of the state; the answer is given to it.

use std::collections::VecDeque;

use super::ask::{CallLine, Inquiry, InquiryAnswer};
use super::keys::TermKey;
use super::lanes::Lanes;
use systape_events::values::timespec::time_word;
use systape_events::values::words::shell;

/// Lines above and below what a screen shows: its title, and the command.
pub(super) const FRAME: usize = 3;
/// Lines of the listing that are kept.
const WINDOW: usize = 512;
/// Rows of a table that are looked at: columns of `top`, by these names.
pub(super) const COLUMNS: &[&str] = &["pid", "comm", "total_ns", "calls", "errors", "avg_ns", "p99_ns"];
/// Headings of these columns.
pub(super) const HEADINGS: [&str; 7] = ["pid", "comm", "total ms", "calls", "errors", "avg ms", "p99 ms"];
/// What `top` can rank by, in the order of `s`.
const METRICS: [&str; 5] = ["total", "calls", "errors", "avg", "p99"];

/// A part of a text: a command, and what it prints.
#[derive(Clone, Debug, Default)]
pub(super) struct TextPart {
    pub words: Vec<String>,
    /// Which of the calls that it lists is shown in full; None: all that it prints is.
    call: Option<usize>,
    /// What it prints; None: that is being asked.
    pub lines: Option<Vec<String>>,
}

/// The window of the listing.
#[derive(Clone, Debug, Default)]
pub(super) struct CallsWindow {
    /// Options and filters, as typed.
    pub options: String,
    /// Where each window begins: a time, and how many lines of that time are before it. The first begins with the listing.
    pub begins: Vec<(u64, usize)>,
    /// The window that is there.
    pub at: usize,
    pub lines: Vec<CallLine>,
    pub more: bool,
    pub notes: Vec<String>,
}

/// What a screen is made of.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Text(Vec<TextPart>),
    Table { metric: usize, rows: Vec<Vec<String>>, notes: Vec<String> },
    Calls(CallsWindow),
    Lanes { from: i64, to: i64, whole: (i64, i64), cursor: usize, shown: Lanes },
}

/// One screen.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub title: String,
    pub body: Body,
    /// The first line or row that is shown.
    pub top: usize,
    /// The line or row that is chosen.
    pub chosen: usize,
    /// Columns that lines are moved to the left by.
    pub left: usize,
}

/// A line that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Search,
    Options,
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Quit,
}

/// A question that waits, and where its answer goes.
#[derive(Clone, Debug)]
pub(super) struct WaitingInquiry {
    pub number: u64,
    pub inquiry: Inquiry,
    /// Part of a text.
    part: usize,
    /// Window of the listing.
    window: usize,
}

/// The state.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    /// The tape as a shell takes it.
    pub tape: String,
    pub size: (usize, usize),
    /// The screens, the last of which is seen.
    pub pages: Vec<Page>,
    pub help: bool,
    pub prompt: Option<(TypedLine, String)>,
    pub search: String,
    /// What is said once.
    pub said: String,
    /// What waits to be asked.
    pub queue: VecDeque<WaitingInquiry>,
    /// What is being asked.
    pub asked: Option<WaitingInquiry>,
    /// What was being asked is of no use any more.
    pub dropped: bool,
    /// Times of the tape, ns since its start.
    pub span: (i64, i64),
    /// ns of CLOCK_MONOTONIC at the start.
    pub open: u64,
    next: u64,
}

/// The lines of `info` with the facts of an overview, so that findings are on the same screen.
fn brief(lines: Vec<String>) -> Vec<String> {
    const WANTED: [&str; 9] = ["tape", "state", "start", "end", "recorded", "host", "families", "events", "lost"];
    let mut wanted = false;
    let mut is_wanted = |line: &String| {
        // a line that begins with a blank goes on with the fact before it
        if !line.starts_with(' ') {
            wanted = line.split(' ').next().is_some_and(|name| WANTED.contains(&name));
        }
        wanted
    };
    lines.into_iter().filter(|line| is_wanted(line)).collect()
}

/// The command line of words, as a shell takes it.
fn line(words: &[String]) -> String {
    shell(&words.iter().map(|word| word.clone().into_bytes()).collect::<Vec<_>>())
}

/// The words of a command line.
fn words(line: &str) -> Vec<String> {
    systape_cli::words(line)
}

impl Browser {
    /// Begins with the overview.
    pub(super) fn new(tape: String, size: (usize, usize), open: u64, span: (i64, i64)) -> Self {
        let mut browser = Self {
            tape,
            size,
            pages: Vec::new(),
            help: false,
            prompt: None,
            search: String::new(),
            said: String::new(),
            queue: VecDeque::new(),
            asked: None,
            dropped: false,
            span,
            open,
            next: 0,
        };
        browser.begin(1);
        browser
    }

    /// The screen that is seen.
    pub(super) fn page(&self) -> &Page {
        &self.pages[self.pages.len() - 1]
    }

    fn page_mut(&mut self) -> &mut Page {
        let last = self.pages.len() - 1;
        &mut self.pages[last]
    }

    /// Lines that a screen has room for.
    pub(super) fn room(&self) -> usize {
        self.size.1.saturating_sub(FRAME).max(1)
    }

    /// Opens one of the four first screens.
    fn begin(&mut self, which: usize) {
        self.pages.clear();
        match which {
            1 => self.text("overview".to_owned(), &["info", "why"]),
            2 => {
                self.push("processes".to_owned(), Body::Table { metric: 0, rows: Vec::new(), notes: Vec::new() });
                self.ask_table();
            }
            3 => self.calls(String::new()),
            _ => {
                let (from, to) = self.span;
                let body = Body::Lanes { from, to, whole: self.span, cursor: 0, shown: Lanes::default() };
                self.push("lanes".to_owned(), body);
                self.ask_lanes();
            }
        }
    }

    /// Gives up what is asked.
    fn drop_asked(&mut self) {
        self.queue.clear();
        self.dropped |= self.asked.take().is_some();
    }

    fn push(&mut self, title: String, body: Body) {
        self.drop_asked();
        self.pages.push(Page { title, body, top: 0, chosen: 0, left: 0 });
    }

    fn text(&mut self, title: String, commands: &[&str]) {
        let part = |command: &&str| TextPart { words: words(command), ..TextPart::default() };
        self.push(title, Body::Text(commands.iter().map(part).collect()));
        self.ask_parts();
    }

    /// Asks for all parts of a text.
    fn ask_parts(&mut self) {
        let cells = self.size.0;
        let Body::Text(parts) = &mut self.page_mut().body else { return };
        let inquiry = |part: &mut TextPart| {
            part.lines = None;
            let words = part.words.clone();
            match part.call {
                Some(at) => Inquiry::Call { words, at, cells },
                None => Inquiry::Text { words, cells },
            }
        };
        let inquiries: Vec<Inquiry> = parts.iter_mut().map(inquiry).collect();
        for (part, inquiry) in inquiries.into_iter().enumerate() {
            self.ask(inquiry, part, 0);
        }
    }

    fn calls(&mut self, options: String) {
        let title = "calls".to_owned();
        self.push(title, Body::Calls(CallsWindow { options, begins: vec![(0, 0)], ..CallsWindow::default() }));
        self.ask_window(0);
    }

    fn ask(&mut self, inquiry: Inquiry, part: usize, window: usize) {
        self.next += 1;
        self.queue.push_back(WaitingInquiry { number: self.next, inquiry, part, window });
    }

    fn ask_table(&mut self) {
        let Body::Table { metric, .. } = self.page().body else { return };
        let words = words(&table_command(metric));
        self.ask(Inquiry::Rows { words, columns: COLUMNS }, 0, 0);
    }

    fn ask_window(&mut self, at: usize) {
        let waits = |waiting: &WaitingInquiry| matches!(waiting.inquiry, Inquiry::Calls { .. }) && waiting.window == at;
        if self.queue.iter().chain(&self.asked).any(waits) {
            return;
        }
        let open = self.open;
        let Body::Calls(window) = &self.page().body else { return };
        let Some(&(time, skip)) = window.begins.get(at) else { return };
        let most = (WINDOW + skip + 1).to_string();
        let from = (at > 0).then_some(time);
        let mut words = window.words(from, None, open);
        words.extend(["--max-events".to_owned(), most]);
        self.ask(Inquiry::Calls { words, from, skip, most: WINDOW }, 0, at);
    }

    fn ask_lanes(&mut self) {
        let Body::Lanes { from, to, .. } = self.page().body else { return };
        let columns = self.size.0.saturating_sub(NAMES).max(1);
        let words = words(&lanes_command(from, to));
        self.drop_asked();
        self.ask(Inquiry::Lanes { words, columns }, 0, 0);
    }

    /// The next question, which is being asked from now on.
    pub(super) fn next(&mut self) -> Option<WaitingInquiry> {
        if self.asked.is_some() {
            return None;
        }
        self.asked = self.queue.pop_front();
        self.asked.clone()
    }

    /// Takes the answer to the question `number`, or why there is none; one that nobody waits for is dropped.
    pub(super) fn answer(&mut self, number: u64, reply: Result<InquiryAnswer, String>) {
        let Some(asked) = self.asked.take_if(|asked| asked.number == number) else { return };
        let (room, width) = (self.room(), self.size.0);
        let reply = match reply {
            Err(why) if !matches!(self.page().body, Body::Text(_)) => {
                self.said = why;
                return;
            }
            other => other,
        };
        let page = self.page_mut();
        match (&mut page.body, reply) {
            (Body::Text(parts), reply) => {
                let Some(part) = parts.get_mut(asked.part) else { return };
                part.lines = Some(match reply {
                    Ok(InquiryAnswer::Text(lines)) if part.words == ["info"] => brief(lines),
                    Ok(InquiryAnswer::Text(lines)) => lines,
                    Ok(_) => return,
                    Err(why) => vec![why],
                });
            }
            (Body::Table { rows, notes, .. }, Ok(InquiryAnswer::Rows { rows: new, notes: said })) => {
                (*rows, *notes) = (new, said);
                page.chosen = page.chosen.min(rows.len().saturating_sub(1));
            }
            (Body::Calls(window), Ok(InquiryAnswer::Calls { lines, more, notes })) => {
                let before = window.at;
                (window.at, window.lines, window.more, window.notes) = (asked.window, lines, more, notes);
                // windows overlap by half
                let moved = WINDOW / 2;
                if asked.window > before {
                    page.chosen = page.chosen.saturating_sub(moved);
                    page.top = page.top.saturating_sub(moved);
                } else if asked.window < before {
                    page.chosen += moved;
                    page.top += moved;
                }
                page.chosen = page.chosen.min(window.lines.len().saturating_sub(1));
                page.top = page.top.min(window.lines.len().saturating_sub(1)).max(page.chosen.saturating_sub(room));
                window.note_next();
            }
            (Body::Lanes { cursor, shown, .. }, Ok(InquiryAnswer::Lanes(lanes))) => {
                *cursor = (*cursor).min(width.saturating_sub(NAMES + 1));
                *shown = lanes;
                page.chosen = page.chosen.min(shown.lanes.len().saturating_sub(1));
            }
            _ => {}
        }
        self.keep_in_sight();
    }

    /// Gives up what is being asked, and says so.
    fn give_up(&mut self) {
        let part = self.asked.as_ref().map_or(0, |asked| asked.part);
        self.drop_asked();
        self.said = "given up; r asks again".to_owned();
        if let Body::Text(parts) = &mut self.page_mut().body {
            for part in parts.iter_mut().skip(part) {
                part.lines.get_or_insert_with(|| vec!["given up; r asks again".to_owned()]);
            }
        }
    }

    /// The terminal has another size.
    pub(super) fn resize(&mut self, size: (usize, usize)) {
        if size == self.size {
            return;
        }
        let narrower = size.0 != self.size.0;
        self.size = size;
        if narrower {
            self.again();
        }
        self.keep_in_sight();
    }

    /// Asks again for what is seen.
    fn again(&mut self) {
        self.drop_asked();
        self.said.clear();
        match &self.page().body {
            Body::Text(_) => self.ask_parts(),
            Body::Table { .. } => self.ask_table(),
            Body::Calls(window) => {
                let at = window.at;
                self.ask_window(at);
            }
            Body::Lanes { .. } => self.ask_lanes(),
        }
    }

    /// The number of lines or rows of the screen.
    pub(super) fn length(&self) -> usize {
        match &self.page().body {
            Body::Text(_) => self.lines().len(),
            Body::Table { rows, .. } => rows.len(),
            Body::Calls(window) => window.lines.len(),
            Body::Lanes { shown, .. } => shown.lanes.len(),
        }
    }

    /// The lines of a text.
    pub(super) fn lines(&self) -> Vec<&str> {
        let Body::Text(parts) = &self.page().body else { return Vec::new() };
        let mut all = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                all.push("");
            }
            match &part.lines {
                Some(lines) => all.extend(lines.iter().map(String::as_str)),
                None => all.push("..."),
            }
        }
        all
    }

    /// Whether the screen has a line that is chosen.
    fn chooses(&self) -> bool {
        !matches!(self.page().body, Body::Text(_))
    }

    fn keep_in_sight(&mut self) {
        let (length, room, chooses) = (self.length(), self.rows_room(), self.chooses());
        let page = self.page_mut();
        if chooses {
            page.chosen = page.chosen.min(length.saturating_sub(1));
            page.top = page.top.min(page.chosen).max((page.chosen + 1).saturating_sub(room));
        } else {
            page.top = page.top.min(length.saturating_sub(room));
        }
    }

    /// Lines of the room that rows have.
    pub(super) fn rows_room(&self) -> usize {
        let used = match &self.page().body {
            Body::Table { notes, .. } => 1 + notes.len().min(2),
            Body::Lanes { shown, .. } => 2 + shown.lost.len(),
            Body::Calls(window) => window.notes.len().min(2),
            Body::Text(_) => 0,
        };
        self.room().saturating_sub(used).max(1)
    }

    fn move_by(&mut self, lines: isize) {
        let (length, room, chooses) = (self.length(), self.rows_room(), self.chooses());
        let page = self.page_mut();
        let moved = |at: usize| at.saturating_add_signed(lines);
        if chooses {
            page.chosen = moved(page.chosen).min(length.saturating_sub(1));
        } else {
            page.top = moved(page.top).min(length.saturating_sub(room));
        }
        self.keep_in_sight();
        if let Body::Calls(window) = &self.page().body {
            let (at, chosen) = (window.at, self.page().chosen);
            if lines > 0 && window.more && chosen + room + 1 >= length {
                self.ask_window(at + 1);
            } else if lines < 0 && at > 0 && chosen < room {
                self.ask_window(at - 1);
            }
        }
    }

    /// What `key` does.
    pub(super) fn press(&mut self, key: TermKey) -> Wish {
        if key == TermKey::Ctrl('c') {
            return Wish::Quit;
        }
        if self.prompt.is_some() {
            self.type_key(key);
            return Wish::Nothing;
        }
        if self.help {
            self.help = false;
            return if key == TermKey::Char('q') { Wish::Quit } else { Wish::Nothing };
        }
        self.said.clear();
        let room = isize::try_from(self.rows_room()).unwrap_or(1);
        let is_lanes = matches!(self.page().body, Body::Lanes { .. });
        match key {
            TermKey::Char('q') => return Wish::Quit,
            TermKey::Esc if self.asked.is_some() => self.give_up(),
            TermKey::Esc | TermKey::Backspace => self.back(),
            TermKey::F1 | TermKey::Char('?') => self.help = true,
            TermKey::Char(digit @ '1'..='4') => self.begin(digit as usize - '0' as usize),
            TermKey::Tab => self.begin(self.which() % 4 + 1),
            TermKey::BackTab => self.begin((self.which() + 2) % 4 + 1),
            TermKey::Up | TermKey::Char('k') => self.move_by(-1),
            TermKey::Down | TermKey::Char('j') => self.move_by(1),
            TermKey::PageUp | TermKey::Ctrl('b') | TermKey::Char('b') => self.move_by(-room),
            TermKey::PageDown | TermKey::Ctrl('f') | TermKey::Char(' ') => self.move_by(room),
            TermKey::Home | TermKey::Char('g') => self.first_line(),
            TermKey::End | TermKey::Char('G') => self.move_by(isize::MAX / 2),
            TermKey::Left | TermKey::Char('h') if is_lanes => self.cursor(-1),
            TermKey::Right | TermKey::Char('l') if is_lanes => self.cursor(1),
            TermKey::Left | TermKey::Char('h') => self.page_mut().left = self.page().left.saturating_sub(8),
            TermKey::Right | TermKey::Char('l') => self.page_mut().left = (self.page().left + 8).min(4096),
            TermKey::Char('+' | '=' | 'w') if is_lanes => self.zoom(1, 2),
            TermKey::Char('-') if is_lanes => self.zoom(2, 1),
            TermKey::Char('a') if is_lanes => self.pan(-1),
            TermKey::Char('d') if is_lanes => self.pan(1),
            TermKey::Char('0') if is_lanes => self.zoom(0, 0),
            TermKey::Char('s') => self.sort(),
            TermKey::Char('/') => self.prompt = Some((TypedLine::Search, String::new())),
            TermKey::Char('n') => self.find(1),
            TermKey::Char('e' | 'f') => {
                let Body::Calls(window) = &self.page().body else { return Wish::Nothing };
                self.prompt = Some((TypedLine::Options, window.options.clone()));
            }
            TermKey::Char('r') | TermKey::Ctrl('l') => self.again(),
            TermKey::Enter => self.enter(),
            _ => {}
        }
        Wish::Nothing
    }

    /// The number of the first screen.
    fn which(&self) -> usize {
        match self.pages[0].body {
            Body::Text(_) => 1,
            Body::Table { .. } => 2,
            Body::Calls(_) => 3,
            Body::Lanes { .. } => 4,
        }
    }

    fn back(&mut self) {
        if self.pages.len() > 1 {
            self.pages.pop();
            self.drop_asked();
            self.complete();
        }
    }

    /// Asks again for parts of a text that were left before they came.
    fn complete(&mut self) {
        if matches!(&self.page().body, Body::Text(parts) if parts.iter().any(|part| part.lines.is_none())) {
            self.again();
        }
    }

    fn first_line(&mut self) {
        if let Body::Calls(window) = &self.page().body
            && window.at > 0
        {
            let options = window.options.clone();
            self.pages.pop();
            self.calls(options);
            return;
        }
        self.move_by(isize::MIN / 2);
    }

    fn cursor(&mut self, by: isize) {
        let last = self.size.0.saturating_sub(NAMES + 1);
        if let Body::Lanes { cursor, .. } = &mut self.page_mut().body {
            *cursor = cursor.saturating_add_signed(by).min(last);
        }
    }

    /// Shows `part` of `of` of the time around the cursor; 0: all of it.
    fn zoom(&mut self, part: i64, of: i64) {
        let columns = i64::try_from(self.size.0.saturating_sub(NAMES).max(1)).unwrap_or(1);
        let Body::Lanes { from, to, whole, cursor, .. } = &mut self.page_mut().body else { return };
        if of == 0 {
            (*from, *to) = *whole;
        } else {
            let length = (*to - *from).max(1);
            let at = *from + length / columns * *cursor as i64;
            let wanted = (length / of * part).clamp(1000, (whole.1 - whole.0).max(1000));
            // the cursor stays where it is
            let begin = at - wanted / columns * *cursor as i64;
            *from = begin.clamp(whole.0, (whole.1 - wanted).max(whole.0));
            *to = *from + wanted;
        }
        self.ask_lanes();
    }

    /// Moves half of the time that is shown.
    fn pan(&mut self, by: i64) {
        let Body::Lanes { from, to, whole, .. } = &mut self.page_mut().body else { return };
        let length = *to - *from;
        *from = (*from + by * length / 2).clamp(whole.0, (whole.1 - length).max(whole.0));
        *to = *from + length;
        self.ask_lanes();
    }

    fn sort(&mut self) {
        let Body::Table { metric, .. } = &mut self.page_mut().body else { return };
        *metric = (*metric + 1) % METRICS.len();
        self.drop_asked();
        self.ask_table();
    }

    fn enter(&mut self) {
        let chosen = self.page().chosen;
        match &self.page().body {
            Body::Table { rows, .. } => {
                let Some(row) = rows.get(chosen) else { return };
                let pid = row[0].clone();
                let title = format!("process {pid} {}", row[1]);
                let commands = [
                    format!("top --by tid,comm -p {pid}"),
                    format!("states --by state,syscall,file -p {pid}"),
                    format!("top --by syscall -p {pid}"),
                ];
                self.text(title, &commands.each_ref().map(String::as_str));
            }
            Body::Calls(window) => {
                let Some(line) = window.lines.get(chosen) else { return };
                let at = window.before(chosen);
                let mut typed = window.words(Some(line.time), Some(line.time + 1), self.open);
                typed.extend(["--max-events".to_owned(), (at + 1).to_string()]);
                let part = TextPart { words: typed, call: Some(at), lines: None };
                self.push("one call".to_owned(), Body::Text(vec![part]));
                self.ask_parts();
            }
            Body::Lanes { shown, .. } => {
                let Some(lane) = shown.lanes.get(chosen) else { return };
                let number = lane.name.rsplit_once('[').map(|(_, number)| number.trim_end_matches(']'));
                let Some(tid) = number.and_then(|number| number.split('/').next()) else { return };
                if tid.bytes().all(|byte| byte.is_ascii_digit()) && !tid.is_empty() {
                    self.calls(format!("-t {tid}"));
                }
            }
            Body::Text(_) => self.move_by(1),
        }
    }

    fn type_key(&mut self, key: TermKey) {
        let Some((prompt, text)) = &mut self.prompt else { return };
        match key {
            TermKey::Char(letter) if text.len() < 1024 => text.push(letter),
            TermKey::Backspace => _ = text.pop(),
            TermKey::Esc => self.prompt = None,
            TermKey::Enter => {
                let (prompt, text) = (*prompt, std::mem::take(text));
                self.prompt = None;
                match prompt {
                    TypedLine::Search => {
                        if !text.is_empty() {
                            self.search = text;
                        }
                        self.find(0);
                    }
                    TypedLine::Options => {
                        self.pages.pop();
                        self.calls(text);
                    }
                }
            }
            _ => {}
        }
    }

    /// Goes to the next line with the text that is searched for, `ahead` of the present one.
    fn find(&mut self, ahead: usize) {
        let page = self.page();
        let at = if self.chooses() { page.chosen } else { page.top };
        let wanted = self.search.as_str();
        let found = match &page.body {
            Body::Text(_) => self.lines().iter().skip(at + ahead).position(|line| line.contains(wanted)),
            Body::Table { rows, .. } => {
                rows.iter().skip(at + ahead).position(|row| row.iter().any(|cell| cell.contains(wanted)))
            }
            Body::Calls(window) => window.lines.iter().skip(at + ahead).position(|line| line.text.contains(wanted)),
            Body::Lanes { shown, .. } => {
                shown.lanes.iter().skip(at + ahead).position(|lane| lane.name.contains(wanted))
            }
        };
        match found {
            Some(lines) => self.move_by(isize::try_from(lines + ahead).unwrap_or(0)),
            None => self.said = format!("'{wanted}' is not in what is here below this line"),
        }
    }

    /// The command that prints what is seen, without the tape.
    pub(super) fn command(&self) -> String {
        let page = self.page();
        match &page.body {
            Body::Text(parts) => {
                // the part whose lines are at the top
                let mut begin = 0;
                let mut command = &[][..];
                for part in parts {
                    if begin <= page.top {
                        command = &part.words;
                    }
                    begin += part.lines.as_ref().map_or(1, Vec::len) + 1;
                }
                line(command)
            }
            Body::Table { metric, .. } => table_command(*metric),
            Body::Calls(window) => {
                let first = window.lines.get(page.top).map(|line| line.time);
                let from = first.filter(|_| window.at > 0 || page.top > 0);
                line(&window.words(from, None, self.open))
            }
            Body::Lanes { from, to, .. } => lanes_command(*from, *to),
        }
    }
}

/// Cells of a lane's name.
pub(super) const NAMES: usize = 24;

/// The command of the table of processes.
fn table_command(metric: usize) -> String {
    format!("top --by pid,comm --metric {}", METRICS[metric])
}

/// The command with the sums of a stretch of lanes.
fn lanes_command(from: i64, to: i64) -> String {
    format!("states --by tid,comm,state --time={},{}", time_word(from), time_word(to))
}

impl CallsWindow {
    /// The command line of the calls between two times; None: the ends of what is asked.
    fn words(&self, from: Option<u64>, to: Option<u64>, open: u64) -> Vec<String> {
        let mut typed = vec!["trace".to_owned()];
        let (mut until, mut rest) = (None, words(&self.options).into_iter());
        let since = |ts: u64| time_word(i64::try_from(i128::from(ts) - i128::from(open)).unwrap_or(i64::MAX));
        let mut own = None;
        while let Some(word) = rest.next() {
            let time = match word.strip_prefix("--time") {
                Some("") => rest.next(),
                Some(value) if value.starts_with('=') => Some(value[1..].to_owned()),
                _ => {
                    typed.push(word);
                    continue;
                }
            };
            until = time.as_deref().and_then(|time| time.split_once(',')).map(|(_, to)| to.to_owned());
            own = time;
        }
        match (from, to) {
            (None, _) => typed.extend(own.map(|time| format!("--time={time}"))),
            (Some(from), Some(to)) => typed.push(format!("--time={},{}", since(from), since(to))),
            (Some(from), None) => typed.push(format!("--time={},{}", since(from), until.unwrap_or_default())),
        }
        typed
    }

    /// How many lines of its time the listing has before the line `at` of the window.
    fn before(&self, at: usize) -> usize {
        let Some(line) = self.lines.get(at) else { return 0 };
        let same = self.lines[..at].iter().rev().take_while(|other| other.time == line.time).count();
        // the window may begin among those of this time
        match self.begins.get(self.at) {
            Some((time, skip)) if *time == line.time && self.at > 0 => same + skip,
            _ => same,
        }
    }

    /// Notes where the next window begins.
    fn note_next(&mut self) {
        let half = WINDOW / 2;
        let Some(line) = self.lines.get(half).filter(|_| self.more && self.begins.len() == self.at + 1) else { return };
        self.begins.push((line.time, self.before(half)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browser() -> Browser {
        Browser::new("a.tape".to_owned(), (80, 24), 1_000, (0, 1_000_000_000))
    }

    fn press(browser: &mut Browser, keys: &[TermKey]) -> Wish {
        keys.iter().fold(Wish::Nothing, |_, key| browser.press(*key))
    }

    fn answered(browser: &mut Browser, reply: InquiryAnswer) -> Inquiry {
        let asked = browser.next().expect("a question");
        browser.answer(asked.number, Ok(reply));
        asked.inquiry
    }

    #[test]
    fn the_overview_comes_in_parts() {
        let mut browser = browser();
        assert_eq!(browser.lines(), ["...", "", "..."]);
        let asked = answered(&mut browser, InquiryAnswer::Text(vec!["tape".into(); 40]));
        assert_eq!(asked, Inquiry::Text { words: vec!["info".into()], cells: 80 });
        assert_eq!((browser.length(), browser.command().as_str()), (42, "info"));
        answered(&mut browser, InquiryAnswer::Text(vec!["slow".into(); 40]));
        press(&mut browser, &[TermKey::PageDown, TermKey::PageDown, TermKey::PageDown]);
        assert_eq!((browser.page().top, browser.command().as_str()), (81 - 21, "why"));
        press(&mut browser, &[TermKey::Home, TermKey::Char('/'), TermKey::Char('s'), TermKey::Enter]);
        assert_eq!(browser.page().top, 41);
        assert_eq!(press(&mut browser, &[TermKey::Char('q')]), Wish::Quit);
    }

    #[test]
    fn answers_that_nobody_waits_for_are_dropped() {
        let mut browser = browser();
        let asked = browser.next().unwrap();
        assert!(browser.next().is_none(), "one at a time");
        browser.press(TermKey::Esc);
        assert!(browser.dropped);
        browser.answer(asked.number, Ok(InquiryAnswer::Text(vec!["late".into()])));
        assert_eq!(browser.lines(), ["given up; r asks again", "", "given up; r asks again"]);
        browser.press(TermKey::Char('r'));
        assert_eq!(browser.lines(), ["...", "", "..."]);
    }

    #[test]
    fn a_process_is_chosen_and_left() {
        let mut browser = browser();
        browser.press(TermKey::Char('2'));
        let row = |pid: &str| {
            vec![pid.to_owned(), "sh".into(), ">=1.0".into(), "1".into(), "0".into(), "-".into(), "-".into()]
        };
        answered(&mut browser, InquiryAnswer::Rows { rows: vec![row("1"), row("22")], notes: Vec::new() });
        press(&mut browser, &[TermKey::Char('j'), TermKey::Char('j'), TermKey::Enter]);
        assert_eq!(browser.page().title, "process 22 sh");
        assert_eq!(browser.command(), "top --by tid,comm -p 22");
        press(&mut browser, &[TermKey::Esc, TermKey::Char('s')]);
        assert_eq!(browser.command(), "top --by pid,comm --metric calls");
    }

    /// A listing of `count` calls, three of each time.
    fn listing(inquiry: &Inquiry, count: u64) -> InquiryAnswer {
        let Inquiry::Calls { from, skip, most, .. } = inquiry else { panic!("{inquiry:?}") };
        let all = (0..count).map(|at| CallLine { time: 1_000 + at / 3, text: at.to_string() });
        let mut lines: Vec<CallLine> =
            all.filter(|line| from.is_none_or(|from| line.time >= from)).skip(*skip).collect();
        let more = lines.len() > *most;
        lines.truncate(*most);
        InquiryAnswer::Calls { lines, more, notes: Vec::new() }
    }

    #[test]
    fn calls_are_a_window_of_the_listing() {
        let mut browser = browser();
        browser.press(TermKey::Char('3'));
        let mut seen = Vec::new();
        for key in std::iter::repeat_n(TermKey::Down, 2_100).chain(std::iter::repeat_n(TermKey::Up, 2_100)) {
            while let Some(asked) = browser.next() {
                let reply = listing(&asked.inquiry, 2_000);
                browser.answer(asked.number, Ok(reply));
            }
            let page = browser.page();
            let Body::Calls(window) = &page.body else { panic!() };
            assert!(window.lines.len() <= WINDOW);
            seen.push(window.lines[page.chosen].text.parse::<usize>().unwrap());
            browser.press(key);
        }
        let down: Vec<usize> = (0..2_000).chain(std::iter::repeat_n(1_999, 101)).collect();
        assert_eq!(seen[..2_100], down[..2_100]);
        assert_eq!(seen[4_199], 0);
        assert!(
            seen[2_100..].windows(2).all(|two| two[1] + 1 == two[0] || (two[0] == 0 && two[1] == 0)),
            "no line is left out"
        );
    }

    #[test]
    fn a_call_is_found_among_those_of_its_time() {
        let mut browser = browser();
        press(&mut browser, &[TermKey::Char('3'), TermKey::Char('e')]);
        "-p 7 --time 0,2".chars().for_each(|letter| _ = browser.press(TermKey::Char(letter)));
        browser.press(TermKey::Enter);
        assert_eq!(browser.command(), "trace -p 7 --time=0,2");
        let asked = browser.next().unwrap();
        let reply = listing(&asked.inquiry, 9);
        browser.answer(asked.number, Ok(reply));
        press(&mut browser, &[TermKey::Down; 5]);
        browser.press(TermKey::Enter);
        assert_eq!(browser.command(), "trace -p 7 --time=0.000000001,0.000000002 --max-events 3");
        let Inquiry::Call { at, .. } = browser.next().unwrap().inquiry else { panic!() };
        assert_eq!(at, 2);
    }

    #[test]
    fn a_command_is_one_for_a_shell() {
        let mut browser = browser();
        press(&mut browser, &[TermKey::Char('3'), TermKey::Char('e')]);
        "-P '/a b'".chars().for_each(|letter| _ = browser.press(TermKey::Char(letter)));
        browser.press(TermKey::Enter);
        assert_eq!(browser.command(), "trace -P '/a b'");
        let Inquiry::Calls { words, .. } = browser.next().unwrap().inquiry else { panic!() };
        assert_eq!(words[..3], ["trace", "-P", "/a b"]);
    }

    #[test]
    fn lanes_zoom_around_the_cursor_and_stay_in_the_tape() {
        let mut browser = browser();
        browser.press(TermKey::Char('4'));
        let span = |browser: &Browser| {
            let Body::Lanes { from, to, .. } = browser.page().body else { panic!() };
            (from, to)
        };
        press(&mut browser, &[TermKey::Char('+'), TermKey::Char('d'), TermKey::Char('d'), TermKey::Char('d')]);
        assert_eq!(span(&browser), (500_000_000, 1_000_000_000));
        press(&mut browser, &[TermKey::Char('-'), TermKey::Char('-')]);
        assert_eq!(span(&browser), (0, 1_000_000_000));
        (0..60).for_each(|_| _ = browser.press(TermKey::Char('+')));
        assert_eq!(span(&browser), (0, 1000));
        browser.press(TermKey::Char('0'));
        assert_eq!(browser.command(), "states --by tid,comm,state --time=0.000000000,1.000000000");
    }

    #[test]
    fn no_key_is_too_much() {
        let keys = [
            TermKey::Up,
            TermKey::Down,
            TermKey::Left,
            TermKey::Right,
            TermKey::PageUp,
            TermKey::PageDown,
            TermKey::Home,
            TermKey::End,
            TermKey::Enter,
            TermKey::Esc,
            TermKey::Tab,
            TermKey::BackTab,
            TermKey::Backspace,
            TermKey::F1,
            TermKey::Char('s'),
            TermKey::Char('/'),
            TermKey::Char('n'),
            TermKey::Char('e'),
            TermKey::Char('r'),
            TermKey::Char('+'),
            TermKey::Char('-'),
            TermKey::Char('a'),
            TermKey::Char('d'),
            TermKey::Char('ü'),
        ];
        let (mut browser, mut seed) = (browser(), 1_u64);
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            browser.press(keys[(seed >> 33) as usize % keys.len()]);
            if seed >> 62 == 0
                && let Some(asked) = browser.next()
            {
                let reply = match &asked.inquiry {
                    Inquiry::Calls { .. } => listing(&asked.inquiry, 700),
                    Inquiry::Lanes { .. } => InquiryAnswer::Lanes(Lanes::default()),
                    Inquiry::Rows { .. } => InquiryAnswer::Rows { rows: Vec::new(), notes: vec!["lost".into()] },
                    _ => InquiryAnswer::Text(vec!["a".into(); 50]),
                };
                browser.answer(asked.number, Ok(reply));
            }
            if seed >> 60 == 3 {
                browser.resize(((seed >> 40) as usize % 300, (seed >> 50) as usize % 100));
            }
            assert!(browser.pages.len() <= 64, "{}", browser.pages.len());
            let _ = (browser.command(), browser.lines(), browser.rows_room());
        }
    }
}

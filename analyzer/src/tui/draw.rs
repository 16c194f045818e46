//! Screens: from the state to cells. Nothing is asked or changed here, and text was made harmless before it became part of the state.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::lanes::{KINDS, Lanes};
use super::state::{Body, Browser, HEADINGS, NAMES, Page, TypedLine};
use systape_answers::values::fit::cells;
use systape_events::values::timespec::time_word;

/// The smallest screen.
pub(super) const SMALLEST: (usize, usize) = (60, 15);

const HELP: &str = "\
1 overview   2 processes   3 calls   4 lanes   Tab, Shift-Tab: next, before
Up Down j k      a line               PgUp PgDn Space b   a screen
Home End g G     first, last          Left Right h l      sideways
Enter            what is chosen       Esc, Backspace      back, or give up
/ n              search, go on        r                   ask again
s                sort processes by another column
e                options of calls: -e openat --duration 10 -p 7 --time 50%
q Ctrl-C         quit
Lanes: a line a thread, the busiest first. A column has the letter of what
filled most of it; Left and Right move the cursor, below is what it is on.
  # on a CPU      + waits for a CPU     % throttled
  - asleep in a call     . asleep, in no known call     D uninterruptible
  T stopped       ? not known           blank: not there
+ - zoom, a d earlier and later, 0 all, Enter the calls of the thread
The last line prints what a screen shows. >= and ~ are before numbers that
are not exact, because something is missing.";

/// Draws all of `browser`; `waits`: for how many tenths of a second something has been asked.
pub(super) fn draw(browser: &Browser, waits: Option<u64>, colors: bool, buffer: &mut Buffer) {
    let (width, height) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    if width < SMALLEST.0 || height < SMALLEST.1 {
        let text = format!("{width}x{height} is too small: at least {}x{}; q quits", SMALLEST.0, SMALLEST.1);
        Screen { buffer, colors, width }.put(0, 0, &text, Style::new());
        return;
    }
    let mut screen = Screen { buffer, colors, width };
    let page = browser.page();
    let reverse = Style::new().add_modifier(Modifier::REVERSED);
    screen.title(browser, waits, reverse);
    let bottom = height - 2;
    if browser.help {
        HELP.lines().take(bottom).enumerate().for_each(|(at, line)| screen.put(0, 1 + at, line, Style::new()));
    } else {
        screen.body(browser, page);
    }
    let (said, style) = match &browser.prompt {
        Some((TypedLine::Search, text)) => (format!("/{text}_"), Style::new()),
        Some((TypedLine::Options, text)) => (format!("options: {text}_"), Style::new()),
        None if browser.said.is_empty() => (hint(&page.body).to_owned(), screen.dim()),
        None => (systape_abi::plain(&browser.said).into_owned(), Style::new()),
    };
    screen.put(0, bottom, &said, style);
    let command = format!("analyze {} {}", browser.command(), browser.tape);
    let (first, rest) = halves(&command, width);
    if let Some(first) = first.filter(|_| browser.prompt.is_none() && browser.said.is_empty()) {
        // a command to copy is whole
        screen.bar(bottom, first, reverse);
        screen.bar(height - 1, rest, reverse);
    } else {
        screen.bar(height - 1, &command, reverse);
    }
}

/// `command` in two lines if it is too long for one.
fn halves(command: &str, width: usize) -> (Option<&str>, &str) {
    let mut used = 0;
    let end = command.char_indices().find(|(at, letter)| {
        used += cells(&command[*at..*at + letter.len_utf8()]);
        used > width
    });
    match end {
        Some((at, _)) => (Some(&command[..at]), &command[at..]),
        None => (None, command),
    }
}

/// What can be pressed.
fn hint(body: &Body) -> &'static str {
    match body {
        Body::Text(_) => "q quit  ? help  1-4 screens  / search  Esc back",
        Body::Table { .. } => "q quit  ? help  1-4 screens  Enter the process  s sort  / search",
        Body::Calls(_) => "q quit  ? help  1-4 screens  Enter the call  e options  / search",
        Body::Lanes { .. } => "q quit  ? help  1-4 screens  + - zoom  a d move  0 all  Enter calls",
    }
}

struct Screen<'b> {
    buffer: &'b mut Buffer,
    colors: bool,
    width: usize,
}

impl Screen<'_> {
    fn put(&mut self, x: usize, y: usize, text: &str, style: Style) {
        let Ok(row) = u16::try_from(y) else { return };
        if row >= self.buffer.area.height || x >= self.width {
            return;
        }
        self.buffer.set_stringn(x as u16, row, text, self.width - x, style);
    }

    fn dim(&self) -> Style {
        if self.colors { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    /// Puts a line of text; words with a mark of what is not exact, and what is missing, stand out as the program's text has it.
    fn marked(&mut self, y: usize, text: &str, left: usize) {
        let shown: String = text.chars().skip(left).collect();
        self.put(0, y, &shown, Style::new());
        if !self.colors {
            return;
        }
        let mut at = 0;
        for word in shown.split_inclusive([' ', '(', ',', ';']) {
            let number = word.trim_start_matches(['>', '<', '=', '~']);
            let mark = &word[..word.len() - number.len()];
            let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
            if [">=", "<=", "~"].contains(&mark) && digits > 0 {
                self.put(at, y, &word[..mark.len() + digits], Style::new().fg(Color::Cyan));
            }
            at += cells(word);
        }
    }

    /// A line in reverse, whole.
    fn bar(&mut self, y: usize, text: &str, style: Style) {
        self.put(0, y, &" ".repeat(self.width), style);
        self.put(0, y, text, style);
    }

    fn title(&mut self, browser: &Browser, waits: Option<u64>, style: Style) {
        let names = ["1 overview", "2 processes", "3 calls", "4 lanes"];
        let page = browser.page();
        let known = names.iter().any(|name| name[2..] == page.title);
        let mut text: Vec<String> = names
            .iter()
            .map(|name| match name[2..] == page.title {
                true => format!("[{name}]"),
                false => format!(" {name} "),
            })
            .collect();
        if !known {
            text.push(format!("[{}]", page.title));
        }
        self.bar(0, &text.join(""), style);
        if let Some(tenths) = waits {
            let told = format!(" asking {}.{} s, Esc gives up", tenths / 10, tenths % 10);
            self.put(self.width.saturating_sub(told.len()), 0, &told, style);
        }
    }

    fn body(&mut self, browser: &Browser, page: &Page) {
        match &page.body {
            Body::Text(_) => {
                let lines = browser.lines();
                for (at, line) in lines.iter().skip(page.top).take(browser.room()).enumerate() {
                    self.marked(1 + at, line, page.left);
                }
            }
            Body::Table { rows, notes, .. } => {
                let notes = &notes[..notes.len().min(2)];
                notes.iter().enumerate().for_each(|(at, note)| self.marked(1 + at, note, 0));
                self.table(rows, 1 + notes.len(), browser, page);
            }
            Body::Calls(window) => {
                let notes = &window.notes[..window.notes.len().min(2)];
                notes.iter().enumerate().for_each(|(at, note)| self.marked(1 + at, note, 0));
                let rows = window.lines.iter().enumerate().skip(page.top).take(browser.rows_room());
                for (line, (at, call)) in rows.enumerate() {
                    self.row(1 + notes.len() + line, &call.text, page.left, at == page.chosen);
                }
            }
            Body::Lanes { cursor, shown, .. } => self.lanes(shown, *cursor, browser, page),
        }
    }

    /// A row, in reverse if it is the chosen one.
    fn row(&mut self, y: usize, text: &str, left: usize, chosen: bool) {
        self.marked(y, text, left);
        if chosen {
            let area = Rect::new(0, y as u16, self.buffer.area.width, 1);
            self.buffer.set_style(area, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    fn table(&mut self, rows: &[Vec<String>], y: usize, browser: &Browser, page: &Page) {
        let mut widths: Vec<usize> = HEADINGS.iter().map(|heading| heading.len()).collect();
        for row in rows {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cells(cell)));
        }
        // names stand to the left
        let line = |row: &[&str]| {
            let cell = |(at, text): (usize, &&str)| {
                let fill = " ".repeat(widths[at].saturating_sub(cells(text)));
                if at == 1 { format!("{text}{fill}") } else { format!("{fill}{text}") }
            };
            row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
        };
        self.put(0, y, &line(&HEADINGS), Style::new().add_modifier(Modifier::BOLD));
        for (below, (at, row)) in rows.iter().enumerate().skip(page.top).take(browser.rows_room()).enumerate() {
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            self.row(y + 1 + below, &line(&row), page.left, at == page.chosen);
        }
    }

    fn lanes(&mut self, shown: &Lanes, cursor: usize, browser: &Browser, page: &Page) {
        shown.lost.iter().enumerate().for_each(|(at, lost)| self.marked(1 + at, lost, 0));
        let y = 1 + shown.lost.len();
        let span = format!("{} to {} s", time_word(shown.span.0), time_word(shown.span.1));
        let more = match shown.more {
            _ if shown.lanes.is_empty() => String::new(),
            0 => format!("{} threads, {span}", shown.lanes.len()),
            more => format!("the first {} threads, {more} more, {span}", shown.lanes.len()),
        };
        self.put(0, y, &more, Style::new());
        for (below, (at, lane)) in shown.lanes.iter().enumerate().skip(page.top).take(browser.rows_room()).enumerate() {
            let line = y + 1 + below;
            let name: String = lane.name.chars().take(NAMES - 1).collect();
            let style = if at == page.chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            self.put(0, line, &name, style);
            for (column, letter) in lane.letters.chars().enumerate() {
                let mut style = self.kind(letter);
                if at == page.chosen && column == cursor {
                    style = style.add_modifier(Modifier::REVERSED);
                }
                self.put(NAMES + column, line, letter.encode_utf8(&mut [0; 4]), style);
            }
        }
        let at_cursor = shown.lanes.get(page.chosen).and_then(|lane| {
            let letter = lane.letters.chars().nth(cursor)?;
            let (_, kind) = KINDS.into_iter().find(|(known, _)| *known == letter).unwrap_or((' ', "not there"));
            let call = lane.calls.get(cursor).filter(|call| !call.is_empty());
            Some(call.map_or_else(|| format!("{kind}; in no known call"), |call| format!("{kind}; longest in {call}")))
        });
        let last = y + 1 + browser.rows_room();
        self.put(0, last, &at_cursor.unwrap_or_default(), Style::new().add_modifier(Modifier::BOLD));
    }

    fn kind(&self, letter: char) -> Style {
        let color = match letter {
            '#' => Color::Green,
            '+' | '%' => Color::Yellow,
            'D' => Color::Red,
            '-' => Color::Blue,
            '?' => Color::Cyan,
            _ => return Style::new(),
        };
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }
}

//! `analyze tui`: a tape in a terminal. [`state`] is what is on the screen and what keys do, as plain values; [`draw`] makes cells of it;
//! [`ask`] answers what the state wants to know, each time as a command line of `analyze` that is run inside; [`lanes`] are the states of
//! threads as characters; [`keys`] and [`terminal`] are the terminal, which is left as it was found.
//!
//! Memory is bounded: one window of the listing, a number of lines or rows of each other answer, and what the reports themselves take.

mod ask;
mod draw;
mod keys;
mod lanes;
mod state;
mod terminal;

use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use ratatui_core::terminal::Terminal;

pub(crate) use self::ask::MakeConfig;
use self::ask::{RunningInquiry, TapeAsker};
use self::state::{Browser, Wish};
use self::terminal::{RawTerminal, Sequences};
use crate::asked::config::Config;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::open::open;
use systape_answers::values::output;
use systape_answers::values::say::Verdict;
use systape_events::values::words::shell;

/// ms without a key after which the screen is looked at again while something is asked.
const TICK: i32 = 20;
/// The same while nothing is.
const IDLE: i32 = 250;

/// Fails unless there is a terminal that can show screens.
///
/// # Errors
/// There is none.
pub(crate) fn check(config: &Config) -> Result<()> {
    if terminal::is_there() {
        return Ok(());
    }
    let tape = tape_word(config);
    let why = "standard input and output must be a terminal that can move its cursor (TERM is not dumb)";
    Err(BadUsage(format!("{why}: 'analyze why {tape}' and 'analyze -s {tape}' print text")).into())
}

fn tape_word(config: &Config) -> String {
    shell(&[config.file.as_os_str().as_encoded_bytes().to_vec()])
}

/// Shows the tape of `config` until somebody has enough; `make` reads command lines.
///
/// # Errors
/// It is no tape, or the terminal fails.
pub(crate) fn run(config: &Config, make: MakeConfig) -> Result<Verdict> {
    let colors = output::colored();
    let tape = open(&config.file)?;
    let (start, end) = (tape.session().window_open, tape.complete_until());
    drop(tape);
    let length = i64::try_from(end.saturating_sub(start)).unwrap_or(i64::MAX).max(1);
    let size = terminal::size().unwrap_or((80, 24));
    let mut browser = Browser::new(tape_word(config), size, start, (0, length));
    let asker = TapeAsker { file: config.file.clone(), config: make };
    let raw = RawTerminal::begin()?;
    let ended = show(&mut browser, &asker, colors, &raw);
    let signal = raw.signal();
    drop(raw);
    if let Some(signal) = signal {
        terminal::end_by(signal);
    }
    ended.map(|()| Verdict::default())
}

/// Draws, asks and takes keys until the end.
fn show(browser: &mut Browser, asker: &TapeAsker, colors: bool, raw: &RawTerminal) -> Result<()> {
    let mut screen = Terminal::new(Sequences::default()).context("the terminal")?;
    let (send, answers) = mpsc::channel();
    let mut running: Option<(RunningInquiry, Instant)> = None;
    let mut bytes = Vec::new();
    loop {
        if std::mem::take(&mut browser.dropped)
            && let Some((inquiry, _)) = running.take()
        {
            inquiry.give_up();
        }
        if let Some(next) = browser.next() {
            match asker.begin(next.number, next.inquiry, send.clone()) {
                Ok(begun) => running = Some((begun, Instant::now())),
                Err(why) => browser.answer(next.number, Err(format!("{why:#}"))),
            }
        }
        let waits =
            running.as_ref().map(|(_, since)| since.elapsed().as_millis() as u64 / 100).filter(|tenths| *tenths > 0);
        screen.draw(|frame| draw::draw(browser, waits, colors, frame.buffer_mut())).context("the terminal")?;
        let begun = bytes.len();
        let open = raw.read(if running.is_some() { TICK } else { IDLE }, &mut bytes);
        if raw.signal().is_some() || !open {
            return Ok(());
        }
        let last = bytes.len() == begun;
        while let Some((key, taken)) = keys::key(&bytes, last) {
            bytes.drain(..taken);
            if key.is_some_and(|key| browser.press(key) == Wish::Quit) {
                return Ok(());
            }
        }
        if let Some(size) = terminal::size() {
            browser.resize(size);
        }
        // in this order: who has ended has answered
        let ended = running.as_ref().is_some_and(|(inquiry, _)| inquiry.has_ended());
        match answers.try_recv() {
            Ok((number, reply)) => {
                if running.take_if(|(inquiry, _)| inquiry.number == number).is_some() {
                    browser.answer(number, reply.map_err(|why| format!("{why:#}")));
                }
            }
            Err(_) if ended => {
                if let Some((inquiry, _)) = running.take() {
                    browser.answer(inquiry.number, Err("this question ended in a fault of the program".to_owned()));
                }
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ratatui_core::backend::TestBackend;

    use super::keys::TermKey;
    use super::*;
    use crate::cli::answer::config_of;

    /// Reads a command line whose answer is as wide as it is, whatever terminal the test has.
    fn wide(words: &[String], file: &Path, text: bool) -> Result<Config> {
        let more = if text { vec!["--wide".to_owned()] } else { Vec::new() };
        config_of(&[words, &more].concat(), file, text)
    }

    /// The screens that `keys` lead to, one after the other, of a terminal of that size.
    fn screens(name: &str, size: (u16, u16), keys: &[(&str, &[TermKey])]) -> String {
        let file = Path::new("../testdata/tapes").join(name);
        let tape = open(&file).unwrap();
        let (start, end) = (tape.session().window_open, tape.complete_until());
        let cells = (usize::from(size.0), usize::from(size.1));
        let mut browser = Browser::new(name.to_owned(), cells, start, (0, (end - start) as i64));
        let asker = TapeAsker { file, config: wide };
        let mut all = String::new();
        for (what, keys) in std::iter::once(&("overview", &[][..])).chain(keys) {
            for key in *keys {
                assert_eq!(browser.press(*key), Wish::Nothing);
                while let Some(next) = browser.next() {
                    let reply = asker.answer(&open(&asker.file).unwrap(), next.inquiry);
                    browser.answer(next.number, reply.map_err(|why| format!("{why:#}")));
                }
            }
            while let Some(next) = browser.next() {
                let reply = asker.answer(&open(&asker.file).unwrap(), next.inquiry);
                browser.answer(next.number, reply.map_err(|why| format!("{why:#}")));
            }
            let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
            terminal.draw(|frame| draw::draw(&browser, None, false, frame.buffer_mut())).unwrap();
            let buffer = terminal.backend().buffer();
            all.push_str(&format!("== {name} {}x{}: {what}\n", size.0, size.1));
            for y in 0..size.1 {
                let line: String = (0..size.0).map(|x| buffer[(x, y)].symbol()).collect();
                all.push_str(line.trim_end());
                all.push('\n');
            }
        }
        all
    }

    #[test]
    fn screens_are_as_they_were() {
        const DOWN: TermKey = TermKey::Down;
        let keys: [(&str, &[TermKey]); 9] = [
            ("processes", &[TermKey::Char('2')]),
            ("sorted by calls", &[TermKey::Char('s')]),
            ("one process", &[DOWN, TermKey::Enter]),
            ("its calls by syscall", &[TermKey::PageDown, TermKey::PageDown, TermKey::PageDown]),
            ("calls", &[TermKey::Char('3')]),
            ("one call", &[DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, TermKey::Enter]),
            ("lanes", &[TermKey::Char('4')]),
            ("zoomed lanes", &[DOWN, TermKey::Right, TermKey::Char('+'), TermKey::Char('+'), TermKey::Char('d')]),
            ("help", &[TermKey::F1]),
        ];
        let update = std::env::var_os("UPDATE_GOLDEN").is_some();
        for (name, size) in [
            ("mix-1.5.tape", (80, 24)),
            ("mix-1.5.tape", (200, 50)),
            ("kernel-6.12-sh.tape", (80, 24)),
            ("ledger-1.3.tape", (80, 24)),
            ("ledger-1.3.tape", (40, 10)),
        ] {
            let got = screens(name, size, &keys);
            let file = format!("../testdata/tui/{}-{}x{}.txt", name.trim_end_matches(".tape"), size.0, size.1);
            if update {
                std::fs::write(&file, &got).unwrap();
            }
            let expected = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(got == expected, "{file} is another (UPDATE_GOLDEN=1 writes it anew):\n{got}");
        }
    }
}

//! One line on a terminal while the recording runs, and one line when it is over.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::drain::Control;
use crate::pipeline::Progress;

/// The line that changes; nothing at all when stderr is no terminal.
pub struct Line {
    bar: ProgressBar,
    started: Instant,
    last: (Instant, u64),
}

impl Line {
    /// Begins; `hidden` when the recorded command writes to the same terminal.
    pub fn new(hidden: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        if hidden || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        }
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, started: Instant::now(), last: (Instant::now(), 0) }
    }

    /// Shows the numbers of now.
    pub fn update(&mut self, progress: &Progress, control: &Control) {
        if self.bar.is_hidden() || self.last.0.elapsed() < Duration::from_millis(250) {
            return;
        }
        let events = progress.events.load(Ordering::Relaxed);
        let rate = (events - self.last.1) as f64 / self.last.0.elapsed().as_secs_f64();
        self.last = (Instant::now(), events);
        self.bar.set_message(format!(
            "{:.1} s  {} events  {}/s  {}  {} lost",
            self.started.elapsed().as_secs_f64(),
            HumanCount(events),
            HumanCount(rate as u64),
            HumanBytes(progress.bytes.load(Ordering::Relaxed)),
            HumanCount(control.lost.load(Ordering::Relaxed)),
        ));
        self.bar.tick();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

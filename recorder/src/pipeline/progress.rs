//! Progress of the recording: counters of every stage, one line on a terminal while it runs, and one line at the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use systape_format::model::{Family, GapCause};

use crate::pipeline::drain::DrainControl;
use crate::rings::backlog::Backlog;
use crate::tape::sink::OutputState;

/// Counters that any thread may read while the recording runs.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Events encoded.
    pub events: AtomicU64,
    /// Bytes of the tape that were written.
    pub written: AtomicU64,
    /// Events dropped because there was no room, and calls counted for that reason.
    pub lost: AtomicU64,
    /// Calls that were counted because there was no room.
    pub counted: AtomicU64,
    /// Calls that are only counted because of an option.
    pub filtered: AtomicU64,
    /// Missing events by cause, with those that BPF programs dropped.
    pub losses: LossCounts,
    /// The waiting data.
    pub backlog: Backlog,
    /// Set when the tape can no longer be written.
    pub failed: Arc<AtomicBool>,
    /// Whether the output accepts data.
    pub flow: Arc<OutputState>,
    /// State of the output of the flight recorder's tapes.
    pub kept: Arc<OutputState>,
}

impl Progress {
    /// Zero, with `room` bytes for waiting data.
    pub(crate) fn new(room: u64, flow: Arc<OutputState>) -> Self {
        Self {
            events: AtomicU64::new(0),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            losses: LossCounts::default(),
            backlog: Backlog::new(room),
            failed: Arc::default(),
            flow,
            kept: Arc::default(),
        }
    }

    /// Bytes of the tape so far, including waiting ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed) + self.backlog.pieces()
    }
}

/// Number of events that are missing for one cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossCount {
    /// The cause, and the family of the events.
    pub of: (GapCause, Family),
    /// Events of which only the number is known.
    pub lost: u64,
    /// Calls that are counted in the ledger.
    pub counted: u64,
}

/// Missing events by cause and family.
#[derive(Debug, Default)]
pub(crate) struct LossCounts(Mutex<Vec<LossCount>>);

impl LossCounts {
    /// Adds `count` missing events, of which the ledger has `counted`.
    pub(crate) fn add(&self, of: (GapCause, Family), count: u64, counted: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|one| one.of == of).unwrap_or_else(|| {
            all.push(LossCount { of, lost: 0, counted: 0 });
            all.len() - 1
        });
        all[at].lost += count.saturating_sub(counted);
        all[at].counted += counted;
    }

    /// What is missing so far.
    pub(crate) fn all(&self) -> Vec<LossCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `58 lost, 843,200 as totals only`: events of which only the number is known, and calls that are in every sum and in no
/// listing.
pub(crate) fn not_stored(lost: u64, counted: u64) -> String {
    match counted {
        0 => format!("{} lost", HumanCount(lost)),
        _ => format!("{} lost, {} as totals only", HumanCount(lost), HumanCount(counted)),
    }
}

/// The progress line; nothing when stderr is not a terminal.
pub(crate) struct Line {
    bar: ProgressBar,
    started: Instant,
    last: (Instant, u64),
}

impl Line {
    /// Shows the line; `hidden` when the recorded command writes to the same terminal.
    pub(crate) fn new(hidden: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        if hidden || !systape_cli::takes_escapes(&std::io::stderr()) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        }
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, started: Instant::now(), last: (Instant::now(), 0) }
    }

    /// Shows the current numbers.
    pub(crate) fn update(&mut self, progress: &Progress, control: &DrainControl) {
        if self.bar.is_hidden() || self.last.0.elapsed() < Duration::from_millis(250) {
            return;
        }
        let sum = |a: &AtomicU64, b: &AtomicU64| a.load(Ordering::Relaxed) + b.load(Ordering::Relaxed);
        let events = progress.events.load(Ordering::Relaxed);
        let rate = (events - self.last.1) as f64 / self.last.0.elapsed().as_secs_f64();
        self.last = (Instant::now(), events);
        self.bar.set_message(format!(
            "{:.1} s  {} events  {}/s  {}  {}",
            self.started.elapsed().as_secs_f64(),
            HumanCount(events),
            HumanCount(rate as u64),
            HumanBytes(progress.bytes()),
            not_stored(sum(&control.lost, &progress.lost), sum(&control.counted, &progress.counted)),
        ));
        self.bar.tick();
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::not_stored;

    #[test]
    fn two_figures_and_two_words() {
        assert_eq!(not_stored(0, 0), "0 lost");
        assert_eq!(not_stored(58, 843_200), "58 lost, 843,200 as totals only");
        assert_eq!(not_stored(0, 1_000), "0 lost, 1,000 as totals only");
    }
}

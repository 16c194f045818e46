//! A progress line on a terminal, for reports that take longer than a second.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Time without a progress line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two updates of the line.
const TICK: Duration = Duration::from_millis(200);

/// The line of this process, from [`begin`] to [`end`].
static LINE: Mutex<Option<Waiting>> = Mutex::new(None);

/// Something shown after a while, unless it ends before.
#[derive(Debug)]
struct Waiting {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Waiting {
    /// Calls `show` after `patience`, and the function it returns at the end. None: no thread could be made, and
    /// nothing is shown.
    fn start<H: FnOnce()>(patience: Duration, show: impl FnOnce() -> H + Send + 'static) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let wait = move || {
            if stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let hide = show();
                // ends when the other side does
                let _ = stopped.recv();
                hide();
            }
        };
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(wait).ok()?;
        Some(Self { stop, thread })
    }

    fn end(self) {
        drop(self.stop);
        // a panic in it has been told
        let _ = self.thread.join();
    }
}

/// Begins to show progress on `what`; nothing is shown unless standard error is a terminal that can take the line away.
pub fn begin(what: String) {
    if !systape_cli::takes_escapes(&io::stderr()) {
        return;
    }
    let show = move || {
        let bar = ProgressBar::new_spinner().with_message(what);
        if let Ok(style) = ProgressStyle::with_template("analyze: reading {msg} {spinner} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        move || bar.finish_and_clear()
    };
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = Waiting::start(PATIENCE, show);
}

/// Removes the line before other output.
pub fn end() {
    let line = LINE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(line) = line {
        line.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_shown_and_it_is_taken_away() {
        let (tell, told) = mpsc::channel();
        let show = |tell: Sender<&'static str>| {
            move || {
                let _ = tell.send("shown");
                move || {
                    let _ = tell.send("hidden");
                }
            }
        };
        let waiting = Waiting::start(Duration::ZERO, show(tell.clone())).unwrap();
        assert_eq!(told.recv(), Ok("shown"));
        waiting.end();
        assert_eq!(told.recv(), Ok("hidden"));
        Waiting::start(Duration::from_secs(3600), show(tell)).unwrap().end();
        assert!(told.recv().is_err(), "nothing was shown");
    }
}

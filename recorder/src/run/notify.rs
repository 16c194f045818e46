//! What a recorder that is a service tells systemd: that it records, that it still does, and that it ends.
//!
//! Without NOTIFY_SOCKET nothing is sent. The watchdog is fed only while the drain reads the rings and no writer is
//! stuck in one write, so a service that hangs is started anew.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::pipeline::drain::DrainControl;
use crate::tape::sink::OutputState;

/// Feeds the watchdog.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Half of the time in which the service manager wants to be told; None: it does not.
    every: Option<Duration>,
    /// When it was fed last, and how far drain and writers were then.
    fed: Instant,
    passes: u64,
    accepted: [u64; 2],
}

impl Watchdog {
    /// Tells that the recording has begun.
    pub(crate) fn ready() -> Self {
        tell(NotifyState::Ready);
        let every = sd_notify::watchdog_enabled().map(|time| time / 2);
        Self { every, fed: Instant::now(), passes: 0, accepted: [0; 2] }
    }

    /// Feeds it, when it is time to and all have moved since. A writer without anything to write has nothing to do.
    pub(crate) fn feed(&mut self, control: &DrainControl, flows: [&OutputState; 2]) {
        let Some(every) = self.every.filter(|every| self.fed.elapsed() >= *every) else { return };
        let passes = control.passes.load(Ordering::Relaxed);
        let accepted = flows.map(|flow| flow.accepted.load(Ordering::Relaxed));
        let stuck = |at: usize| accepted[at] == self.accepted[at] && flows[at].waiting.load(Ordering::Relaxed);
        let writes = !stuck(0) && !stuck(1);
        if passes != self.passes && writes {
            tell(NotifyState::Watchdog);
            (self.fed, self.passes, self.accepted) = (Instant::now(), passes, accepted);
        } else {
            // looked at again before the time is over
            self.fed = Instant::now().checked_sub(every - every / 4).unwrap_or(self.fed);
        }
    }
}

/// Tells that the recording ends: from here on it takes as long as the disk does.
pub(crate) fn stopping() {
    tell(NotifyState::Stopping);
}

/// A service manager that does not listen is no reason to stop recording.
fn tell(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watchdog that is to be fed at every look.
    fn hungry() -> Watchdog {
        Watchdog { every: Some(Duration::ZERO), fed: Instant::now(), passes: 0, accepted: [0; 2] }
    }

    #[test]
    fn it_is_fed_only_while_all_move() {
        let (control, flow, kept) = (DrainControl::default(), OutputState::default(), OutputState::default());
        let mut dog = hungry();
        dog.feed(&control, [&flow, &kept]);
        assert_eq!(dog.passes, 0, "the drain does not move");
        control.passes.store(5, Ordering::Relaxed);
        flow.waiting.store(true, Ordering::Relaxed);
        dog.feed(&control, [&flow, &kept]);
        assert_eq!(dog.passes, 0, "the writer is in a write that does not end");
        flow.accepted.store(100, Ordering::Relaxed);
        dog.feed(&control, [&flow, &kept]);
        assert_eq!((dog.passes, dog.accepted), (5, [100, 0]));
        flow.waiting.store(false, Ordering::Relaxed);
        control.passes.store(6, Ordering::Relaxed);
        dog.feed(&control, [&flow, &kept]);
        assert_eq!((dog.passes, dog.accepted), (6, [100, 0]), "nothing was to be written");
        control.passes.store(7, Ordering::Relaxed);
        kept.waiting.store(true, Ordering::Relaxed);
        dog.feed(&control, [&flow, &kept]);
        assert_eq!(dog.passes, 6, "the flight recorder's tape does not move");
    }
}

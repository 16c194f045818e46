//! When a tape begins, what joins it, and when it ends. Plain values in, plain values out.

/// Events that are listed in a tape, of all triggers together; of more there is the number.
const LISTED: usize = 64;

/// What to do with an event that a trigger fired on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A tape begins.
    Begin,
    /// The trigger belongs to the tape that is being written, which lists it.
    Join,
    /// The trigger belongs to that tape too, and only its number is kept.
    Count,
    /// The trigger fired not long ago: no tape.
    Suppress,
}

#[derive(Clone, Debug, Default)]
struct Of {
    /// When it last began or joined a tape.
    last: Option<u64>,
    /// Events of its cooldown since the last tape, with the time of the latest.
    suppressed: (u64, u64),
    /// Events of the tape that are not listed, likewise.
    more: (u64, u64),
}

/// Decides when a tape begins, what joins it, and when it ends. Times are ns of the recording's clock.
#[derive(Clone, Debug)]
pub(crate) struct Pilot {
    after: u64,
    cooldown: u64,
    triggers: Vec<Of>,
    /// The tape's end.
    until: Option<u64>,
    listed: usize,
}

impl Pilot {
    /// Makes one for `triggers` triggers; one more number stands for requests, which have no cooldown.
    pub(crate) fn new(after: u64, cooldown: u64, triggers: usize) -> Self {
        Self { after, cooldown, triggers: vec![Of::default(); triggers + 1], until: None, listed: 0 }
    }

    /// The number of requests.
    pub(crate) fn request(&self) -> usize {
        self.triggers.len() - 1
    }

    /// Whether a tape is being written.
    pub(crate) fn is_writing(&self) -> bool {
        self.until.is_some()
    }

    /// Whether everything until `reached` is known, and the tape needs no more.
    pub(crate) fn is_due(&self, reached: u64) -> bool {
        self.until.is_some_and(|until| reached >= until)
    }

    /// Trigger number `trigger` fired at `ts`.
    pub(crate) fn fire(&mut self, trigger: usize, ts: u64) -> Decision {
        let (request, writing) = (self.request(), self.is_writing());
        let Some(of) = self.triggers.get_mut(trigger) else { return Decision::Suppress };
        let rests = trigger != request && of.last.is_some_and(|last| ts.saturating_sub(last) < self.cooldown);
        if writing {
            of.last = if rests { of.last } else { Some(ts) };
            if self.listed < LISTED {
                self.listed += 1;
                return Decision::Join;
            }
            of.more = (of.more.0 + 1, ts);
            return Decision::Count;
        }
        if rests {
            of.suppressed = (of.suppressed.0 + 1, ts);
            return Decision::Suppress;
        }
        of.last = Some(ts);
        (self.until, self.listed) = (Some(ts.saturating_add(self.after)), 1);
        Decision::Begin
    }

    /// Events of cooldowns since the last tape: trigger, number, time of the latest.
    pub(crate) fn take_suppressed(&mut self) -> Vec<(usize, u64, u64)> {
        take(&mut self.triggers, |of| &mut of.suppressed)
    }

    /// The tape ends; returns what it does not list, as [`Self::take_suppressed`].
    pub(crate) fn end(&mut self) -> Vec<(usize, u64, u64)> {
        self.until = None;
        take(&mut self.triggers, |of| &mut of.more)
    }
}

fn take(triggers: &mut [Of], part: impl Fn(&mut Of) -> &mut (u64, u64)) -> Vec<(usize, u64, u64)> {
    let taken = triggers.iter_mut().enumerate().map(|(number, of)| {
        let (count, ts) = std::mem::take(part(of));
        (number, count, ts)
    });
    taken.filter(|(_, count, _)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{Begin, Count, Join, Suppress};

    const S: u64 = 1_000_000_000;

    #[test]
    fn events_join_a_tape_until_it_ends() {
        let mut pilot = Pilot::new(5 * S, 60 * S, 2);
        assert_eq!(pilot.fire(0, 100 * S), Begin);
        assert_eq!([pilot.fire(0, 101 * S), pilot.fire(1, 102 * S), pilot.fire(pilot.request(), 103 * S)], [Join; 3]);
        assert!(!pilot.is_due(105 * S - 1) && pilot.is_due(105 * S), "what joins does not make it longer");
        assert_eq!(pilot.end(), []);
        assert_eq!(pilot.fire(1, 106 * S), Suppress, "it is in that tape");
        assert_eq!(pilot.fire(2, 107 * S), Begin, "a request has no cooldown");
        assert_eq!(pilot.take_suppressed(), [(1, 1, 106 * S)]);
        pilot.end();
        assert_eq!((pilot.fire(1, 161 * S), pilot.fire(1, 162 * S)), (Suppress, Begin));
        assert_eq!(pilot.take_suppressed(), [(1, 1, 161 * S)]);
        assert_eq!(pilot.fire(9, 1), Suppress, "there is no such trigger");
    }

    #[test]
    fn ten_thousand_events_are_one_tape() {
        let mut pilot = Pilot::new(5 * S, 60 * S, 1);
        let mut decisions: Vec<Decision> = (0..10_000).map(|n| pilot.fire(0, n * S / 2000)).collect();
        assert_eq!(decisions.remove(0), Begin);
        let number = |of| decisions.iter().filter(|decision| **decision == of).count();
        assert_eq!((number(Begin), number(Join), number(Count)), (0, LISTED - 1, 10_000 - LISTED));
        assert_eq!(pilot.end(), [(0, 10_000 - LISTED as u64, 9_999 * S / 2000)]);
        assert_eq!(pilot.take_suppressed(), []);
    }
}

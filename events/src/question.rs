//! The common input of all reports: a tape with its filters and its known losses.

use systape_format::model::{ClockSample, Extent, Family};
use systape_format::reader::Tape;

use crate::calls::CallBook;
use crate::filter::{Filters, Scope, ScopeError};
use crate::kin;
use crate::loss::Loss;
use crate::values::clock::Clock;

/// The tape, the filters, and the known losses.
#[derive(Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The tape.
    pub tape: &'a Tape,
    /// Which calls.
    pub scope: Scope<'a>,
    /// What is known of each syscall.
    pub book: CallBook<'a>,
    /// Losses of the tape; reports add the holes they find.
    pub loss: Loss,
    /// The families whose loss could change the answer.
    pub families: Vec<Family>,
}

impl<'a> Question<'a> {
    /// Binds `filters` to `tape`, for a report about these families: only their loss could change its answer.
    ///
    /// # Errors
    /// The filters name an unknown time, user or cgroup.
    pub fn new(filters: &'a Filters, tape: &'a Tape, families: &[Family]) -> Result<Self, ScopeError> {
        let end = tape.complete_until();
        let mut scope = Scope::new(filters, tape.session(), end, || clock(tape))?;
        let mut families = families.to_vec();
        if filters.tree {
            scope.add_pids(kin::below(tape, &filters.pids));
            // who is below whom is known by the start of all between
            if !families.contains(&Family::Process) {
                families.push(Family::Process);
            }
        }
        let loss = Loss::gather(tape, &scope, &families);
        Ok(Self { tape, scope, book: CallBook::new(tape.session()), loss, families })
    }

    /// The segments that may have a call that passes, in order.
    pub fn candidates(&self) -> Vec<usize> {
        let segments = self.tape.segments().iter().enumerate();
        segments.filter(|(_, info)| self.scope.may_match(info)).map(|(at, _)| at).collect()
    }
}

/// Whether every process was recorded, so that events missing from the tape did not happen; for tapes whose entries of
/// tasks do not say it.
pub fn everyone(tape: &Tape) -> bool {
    let session = tape.session();
    session.extent == Extent::NotSaid && session.target.starts_with("system-wide")
}

/// The tape's clock, by all of its [`samples`].
pub fn clock(tape: &Tape) -> Clock {
    Clock::new(samples(tape))
}

/// The samples of clocks in a tape: of its session, its checkpoints and its end. Reads every checkpoint, so only for other clocks than
/// the tape's own.
pub fn samples(tape: &Tape) -> impl Iterator<Item = ClockSample> {
    let checkpoints =
        (0..tape.checkpoints()).filter_map(|at| tape.checkpoint(at).ok()).map(|checkpoint| checkpoint.clock);
    let ends = tape.end().map(|end| end.clock);
    std::iter::once(tape.session().clock)
        .chain(checkpoints)
        .chain(ends)
        .filter(|sample: &ClockSample| sample.monotonic != 0)
}

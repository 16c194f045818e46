//! One file a report. Each gets a [`Context`]: the tape, what was asked of it, and what is known to be missing.

pub mod block;
pub mod callgraph;
pub mod calls;
pub mod check;
pub mod diff;
pub mod exec;
pub mod info;
pub mod kills;
pub mod listing;
pub mod losses;
pub mod net;
pub mod offcpu;
pub mod repair;
pub mod runqlat;
pub mod sched;
pub mod scheduling;
pub mod states;
pub mod summary;

use anyhow::Result;
use systape_format::model::{ClockSample, Extent, Family};
use systape_format::reader::Tape;

use crate::calls::CallBook;
use crate::clock::Clock;
use crate::config::Config;
use crate::filter::Scope;
use crate::loss::Loss;

/// What every report works with.
#[derive(Debug)]
pub struct Context<'a> {
    /// The tape.
    pub tape: &'a Tape,
    /// What was asked.
    pub config: &'a Config,
    /// Which calls.
    pub scope: Scope<'a>,
    /// What is known of each syscall.
    pub book: CallBook<'a>,
    /// What is missing; reports add the holes they meet.
    pub loss: Loss,
    /// The families whose loss touches the answer.
    pub families: Vec<Family>,
}

impl<'a> Context<'a> {
    /// Binds `config` to `tape`, for a report about calls.
    pub fn new(config: &'a Config, tape: &'a Tape) -> Result<Self> {
        Self::about(config, tape, &[Family::Syscall])
    }

    /// Binds `config` to `tape`, for a report about these families: only their loss touches the answer.
    pub fn about(config: &'a Config, tape: &'a Tape, families: &[Family]) -> Result<Self> {
        let end = tape.end().map_or_else(|| tape.complete_until(), |end| end.window_close);
        let scope = Scope::new(&config.filters, tape.session(), end, || clock(tape))?;
        let loss = Loss::gather(tape, &scope, families);
        let families = families.to_vec();
        Ok(Self { tape, config, scope, book: CallBook::new(tape.session()), loss, families })
    }

    /// The segments that may hold a call that passes, in order.
    pub fn candidates(&self) -> Vec<usize> {
        let segments = self.tape.segments().iter().enumerate();
        segments.filter(|(_, info)| self.scope.may_match(info)).map(|(at, _)| at).collect()
    }
}

/// Whether every process was recorded, so that what is not in the tape did not happen, of a tape whose entries of tasks do not say it.
pub fn everyone(tape: &Tape) -> bool {
    let session = tape.session();
    session.extent == Extent::NotSaid && session.target.starts_with("system-wide")
}

/// The tape's clock: its session, its checkpoints and its end. Reads every checkpoint, so only for those who need real time.
pub fn clock(tape: &Tape) -> Clock {
    let checkpoints =
        (0..tape.checkpoints()).filter_map(|at| tape.checkpoint(at).ok()).map(|checkpoint| checkpoint.clock);
    let ends = tape.end().map(|end| end.clock);
    Clock::new(
        std::iter::once(tape.session().clock)
            .chain(checkpoints)
            .chain(ends)
            .filter(|sample: &ClockSample| sample.monotonic != 0),
    )
}

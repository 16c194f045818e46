//! Reads everything a tape has, for fuzzing and tests. Not part of the API.

pub mod bombs;
pub mod forge;
pub mod mutate;

use crate::error::Result;
use crate::model::{
    Args, BlockIo, Captured, Checkpoint, Core, Dict, Fds, Gap, LedgerRow, NetState, ProcessEvent, Sample, SignalEvent,
    Sleeper, Stacks, Switch, Symbols, Time, UringOp, Wakeup,
};
use crate::reader::{Feed, Tape};
use crate::tables::TableRows;

/// A segment, group by group; an error in the dict or core is an error of what depends on them.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Contents {
    pub dict: Result<Dict>,
    pub core: Option<Result<Core>>,
    pub time: Option<Result<Time>>,
    pub args: Option<Result<Args>>,
    pub fds: Option<Result<Fds>>,
    pub captured: Option<Result<Vec<Captured>>>,
    pub processes: Option<Result<Vec<ProcessEvent>>>,
    pub switches: Option<Result<Vec<Switch>>>,
    pub wakeups: Option<Result<Vec<Wakeup>>>,
    pub blocks: Option<Result<Vec<BlockIo>>>,
    pub signals: Option<Result<Vec<SignalEvent>>>,
    pub nets: Option<Result<Vec<NetState>>>,
    pub urings: Option<Result<Vec<UringOp>>>,
    pub samples: Option<Result<Vec<Sample>>>,
    pub sleepers: Option<Result<Vec<Sleeper>>>,
    pub ledger: Option<Result<Vec<LedgerRow>>>,
    pub stacks: Result<Stacks>,
    pub gaps: Result<Vec<Gap>>,
    pub tables: Option<Result<Vec<TableRows>>>,
}

/// Every group of every segment.
pub fn read_segments(tape: &Tape) -> Vec<Contents> {
    (0..tape.segments().len())
        .map(|i| {
            let s = tape.segment(i);
            let dict = s.dict();
            let known = dict.as_ref().ok();
            let core = known.map(|d| s.core(d));
            let rows = core.as_ref().and_then(|c| c.as_ref().ok());
            Contents {
                time: known.zip(rows).map(|(d, c)| s.time(d, c)),
                args: rows.map(|c| s.args(c)),
                fds: rows.map(|c| s.fds(c)),
                captured: rows.map(|c| s.captured(c)),
                processes: known.map(|d| s.processes(d)),
                switches: known.map(|d| s.switches(d)),
                wakeups: known.map(|d| s.wakeups(d)),
                blocks: known.map(|d| s.blocks(d)),
                signals: known.map(|d| s.signals(d)),
                nets: known.map(|d| s.nets(d)),
                urings: known.map(|d| s.urings(d)),
                samples: known.map(|d| s.samples(d)),
                sleepers: known.map(|d| s.sleepers(d)),
                ledger: known.map(|d| s.ledger(d)),
                stacks: s.stacks(),
                gaps: s.gaps(),
                tables: known.map(|d| s.tables(d)),
                core,
                dict,
            }
        })
        .collect()
}

/// Every checkpoint.
pub fn read_checkpoints(tape: &Tape) -> Vec<Result<Checkpoint>> {
    (0..tape.checkpoints()).map(|i| tape.checkpoint(i)).collect()
}

/// Every block of names.
pub fn read_symbols(tape: &Tape) -> Vec<Result<Symbols>> {
    (0..tape.symbol_blocks()).map(|i| tape.symbols(i)).collect()
}

/// Opens `bytes` and reads all of it in every way there is. Must never panic.
pub fn exercise(bytes: &[u8]) {
    // as it comes through a pipe
    if let Ok(mut feed) = Feed::open(bytes) {
        while feed.advance().is_ok_and(|more| more) {
            read_segments(feed.tape());
            read_checkpoints(feed.tape());
        }
    }
    let Ok(tape) = Tape::from_bytes(bytes.to_vec()) else { return };
    read_segments(&tape);
    read_checkpoints(&tape);
    read_symbols(&tape);
    tape.blocks();
    tape.verify(&|_| ());
}

//! Writes a world down as `record` would: segments in chunks, each behind a checkpoint, index and end mark.
//!
//! Segments are made and compressed in parallel, a few at a time, while those before are written: memory does not grow with the tape.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use rayon::prelude::*;
use systape_format::encode::{EncodedCheckpoint, EncodedSegment};
use systape_format::model::{End, Family};
use systape_format::{Encoder, Writer};

use super::world::{SynthWorld, clock};

/// As the recorder's.
pub const LEVEL: i32 = 1;
/// Segments of a chunk: about 32 MiB, at which the recorder closes one.
const CHUNK: u64 = 128;
/// Segments a thread makes at a time.
const AHEAD: u64 = 4;

/// A segment with what is in front of it.
struct Piece {
    checkpoint: Option<EncodedCheckpoint>,
    segment: EncodedSegment,
    /// Events of process life, signals.
    events: [u64; 2],
}

/// Writes all of `world` to a new file; `progress` is told segments. Gives the file's size.
///
/// # Errors
/// The file cannot be written.
pub fn write(world: &SynthWorld, file: &Path, mut progress: impl FnMut(u64)) -> Result<u64> {
    let what = || file.display().to_string();
    let mut writer = Writer::create(File::create(file).with_context(what)?, tape_id(), &world.session())?;
    let mut totals = [0; 2];
    let mut put = |pieces: Vec<Piece>| -> Result<u64> {
        for Piece { checkpoint, segment, events } in pieces {
            if let Some(checkpoint) = checkpoint {
                writer.checkpoint(checkpoint)?;
            }
            writer.segment(segment)?;
            totals.iter_mut().zip(events).for_each(|(total, n)| *total += n);
        }
        Ok(writer.segments().into())
    };
    let batch = AHEAD * rayon::current_num_threads() as u64;
    let mut ready = Vec::new();
    let mut from = 0;
    while from < world.windows() {
        let to = world.windows().min(from + batch);
        let make = || (from..to).into_par_iter().map(|at| piece(world, at)).collect::<Result<Vec<_>>>();
        let before = std::mem::take(&mut ready);
        let (written, made) = rayon::join(|| put(before), make);
        progress(written.with_context(what)?);
        ready = made?;
        from = to;
    }
    progress(put(ready).with_context(what)?);
    let end = End {
        clock: clock(world.close()),
        window_close: world.close(),
        reason: "made up".into(),
        events: vec![(Family::Syscall, world.calls()), (Family::Process, totals[0]), (Family::Signal, totals[1])],
        command_exit: -1,
        ..End::default()
    };
    let file = writer.finish(&end).with_context(what)?;
    Ok(file.metadata()?.len())
}

fn piece(world: &SynthWorld, at: u64) -> Result<Piece> {
    let mut encoder = Encoder::new(LEVEL);
    let checkpoint = at.is_multiple_of(CHUNK).then(|| encoder.checkpoint(&world.checkpoint(at))).transpose()?;
    let window = world.window(at);
    let events = [window.processes.len() as u64, window.signals.len() as u64];
    Ok(Piece { checkpoint, segment: encoder.segment(window.fill())?, events })
}

/// A tape's id tells it from others, those of the same plan too.
fn tape_id() -> [u8; 16] {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_nanos());
    (now ^ u128::from(std::process::id()) << 96).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use systape_format::Tape;

    use super::super::world::Plan;
    use super::*;

    #[test]
    fn a_tape_that_checks_with_exactly_what_was_asked() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("tape");
        let world = SynthWorld::new(Plan { calls: 300_001, processes: 400, host: 0 }).expect("a world");
        let bytes = write(&world, &file, |_| {}).expect("written");
        let tape = Tape::open(&file).expect("a tape");
        assert_eq!((tape.len_bytes(), tape.verify(&|_| {})), (bytes, vec![]));
        let rows: u64 = tape.segments().iter().map(|info| u64::from(info.rows)).sum();
        assert_eq!(rows, 300_001);
        let mut pids = std::collections::HashSet::new();
        let (mut forks, mut signals, mut carry) = (0, 0, 0);
        for at in 0..tape.segments().len() {
            let segment = tape.segment(at);
            let dict = segment.dict().expect("dict");
            pids.extend(dict.tasks.iter().map(|task| task.pid));
            signals += segment.signals(&dict).expect("signals").len();
            let events = segment.processes(&dict).expect("processes");
            forks += events.iter().filter(|e| e.kind == systape_format::ProcessKind::Fork).count();
            carry += segment.info().carry_rows;
        }
        assert_eq!(forks, 200, "half of them are born");
        assert!(signals > 0 && carry > 0 && pids.len() > 300, "{signals} {carry} {}", pids.len());
    }
}

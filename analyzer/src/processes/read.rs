//! Feeds [`Processes`] from a tape.

use rayon::prelude::*;
use systape_format::header::BlockKind;
use systape_format::model::{Dict, Family, Gap, ProcessEvent};
use systape_format::reader::{Segment, Tape};

use super::Processes;

/// Segments decoded at a time by each thread.
const BATCH: usize = 2;

/// The processes of `tape`. What cannot be read is told in `findings`: processes may be missing then.
pub fn read(tape: &Tape, findings: &mut Vec<String>) -> Processes {
    let mut processes = Processes::new(tape.session().window_open);
    checkpoint(tape, 0, &mut processes, findings);
    let segments: Vec<usize> = (0..tape.segments().len()).collect();
    for batch in segments.chunks(BATCH * rayon::current_num_threads().max(1)) {
        let parts: Vec<_> = batch.par_iter().map(|at| events(&tape.segment(*at))).collect();
        for (at, part) in batch.iter().zip(parts) {
            match part {
                Ok((dict, events)) => {
                    dict.tasks.iter().for_each(|task| {
                        processes.see(task);
                    });
                    events.iter().for_each(|event| processes.event(event, &dict.tasks));
                }
                Err(error) => {
                    findings.push(format!("segment {at}: its events of process life cannot be read: {error}"));
                }
            }
        }
    }
    // only where an exec was lost does a later checkpoint know what the events do not
    if lost(tape) {
        (1..tape.checkpoints()).for_each(|at| checkpoint(tape, at, &mut processes, findings));
    }
    processes.finish()
}

fn checkpoint(tape: &Tape, at: usize, processes: &mut Processes, findings: &mut Vec<String>) {
    if at >= tape.checkpoints() {
        return;
    }
    match tape.checkpoint(at) {
        Ok(checkpoint) => processes.checkpoint(&checkpoint, at == 0),
        Err(error) => findings.push(format!("checkpoint {at}: {error}")),
    }
}

fn events(segment: &Segment<'_>) -> Result<(Dict, Vec<ProcessEvent>), systape_format::Error> {
    let dict = segment.dict()?;
    let events = segment.processes(&dict)?;
    Ok((dict, events))
}

/// Whether events of process life are missing anywhere, whatever is asked for: an end that is not on the tape may be one of them.
pub fn lost(tape: &Tape) -> bool {
    !gaps(tape).is_empty()
}

/// Where they are missing.
pub fn gaps(tape: &Tape) -> Vec<Gap> {
    let gaps = |at: usize| tape.segment(at).gaps().unwrap_or_default();
    (0..tape.segments().len())
        .filter(|at| tape.segment(*at).has(BlockKind::Gaps))
        .flat_map(gaps)
        .filter(|gap| crate::loss::loses(gap, &[Family::Process]))
        .collect()
}

//! Reading the events of a tape segment by segment.

use std::ops::ControlFlow;

use anyhow::Result;
use rayon::prelude::*;
use systape_format::model::{Dict, SegmentInfo};
use systape_format::reader::Segment;

use crate::loss::Loss;
use crate::question::Question;

/// Reads what `read` gets of each of `segments`, several at a time, and hands it to `each` in their order until that says to stop. What cannot be read is a finding in `loss`; `what` names it there.
pub fn walk<T: Send>(
    question: &Question<'_>,
    loss: &mut Loss,
    what: &str,
    segments: &[usize],
    read: impl Fn(&Segment<'_>, &Dict) -> Result<Vec<T>, systape_format::Error> + Sync,
    mut each: impl FnMut(&Dict, Vec<T>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    for batch in segments.chunks(rayon::current_num_threads().clamp(1, 8)) {
        let one = |at: &usize| {
            let segment = question.tape.segment(*at);
            segment.dict().and_then(|dict| read(&segment, &dict).map(|events| (dict, events)))
        };
        let found: Vec<_> = batch.par_iter().map(one).collect();
        for (at, result) in batch.iter().zip(found) {
            match result {
                Ok((dict, events)) => {
                    if each(&dict, events)?.is_break() {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let number = question.tape.segments()[*at].segment;
                    loss.findings.push(format!("segment {number}: its {what} cannot be read: {error}"));
                }
            }
        }
    }
    Ok(())
}

/// Every segment.
pub fn all(question: &Question<'_>) -> Vec<usize> {
    (0..question.tape.segments().len()).collect()
}

/// The segments that may hold something of the processes and times asked for.
pub fn candidates(question: &Question<'_>) -> Vec<usize> {
    let scope = &question.scope;
    let pids = &scope.filters().pids;
    let wanted = |info: &SegmentInfo| {
        info.touches(scope.from, scope.to) && (pids.is_empty() || pids.iter().any(|pid| info.may_contain_pid(*pid)))
    };
    let segments = question.tape.segments().iter().enumerate();
    segments.filter(|(_, info)| wanted(info)).map(|(at, _)| at).collect()
}

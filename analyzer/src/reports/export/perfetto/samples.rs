//! CPU samples with their stacks.

use systape_format::model::{Ends, Mapping, Sample, StackOf, Stacks, Task};

use super::super::proto::perfetto::PerfSample;
use super::super::proto::perfetto::trace_packet::Data;
use super::clocks::Boot;
use super::packets::{Interned, Packets, Sequence};
use super::text;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::MAX_FRAMES;
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::names::Names;

/// Packets of the samples of a segment, with the names of their functions. Those that `passes` leaves out are not among them.
pub(super) fn packets(
    samples: &[Sample],
    tasks: &[Task],
    (stacks, names): (&Stacks, &Names),
    boot: &Boot,
    mut packets: Packets,
    passes: impl Fn(&Sample) -> bool,
) -> Vec<u8> {
    let mut interned = Interned::default();
    let ids: Vec<Option<u32>> = stacks.mappings.iter().map(|mapping| names.mapping(mapping)).collect();
    for (row, sample) in samples.iter().enumerate().filter(|(_, sample)| passes(sample)) {
        let Some(task) = tasks.get(sample.task as usize) else { continue };
        let found = stacks.of(StackOf::Sample, row as u32).map(Ends::from);
        let mut frames = Vec::new();
        let ending = match found {
            None => StackEnding::NotStored,
            Some(Ends { user, kernel, status }) => {
                for frame in stacks.frames_from(kernel).chain(stacks.frames_from(user)).take(MAX_FRAMES) {
                    let unknown = Mapping::default();
                    let mapping = stacks.mappings.get(frame.mapping as usize).unwrap_or(&unknown);
                    let id = ids.get(frame.mapping as usize).copied().flatten();
                    for (_, label) in label::labels(names, id, mapping, frame) {
                        frames.push(interned.frame(&label.in_tree(), &text(&label.module), frame.offset));
                    }
                }
                StackEnding::Status(status)
            }
        };
        if let Some(mark) = ending.mark(frames.is_empty()) {
            frames.push(interned.frame(&mark, "", 0));
        }
        frames.reverse();
        let sample_of = PerfSample {
            cpu: Some(sample.cpu),
            pid: task.pid,
            tid: task.tid,
            callstack_iid: interned.stack(frames),
            cpu_mode: if sample.kernel { 1 } else { 2 },
        };
        packets.interned(Sequence::Samples, &mut interned, boot.at(sample.ts), Data::PerfSample(sample_of));
    }
    packets.bytes
}

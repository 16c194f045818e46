//! Times off the CPU as stack samples, each with its length as its weight: what `analyze callgraph --of offcpu` adds up.

use std::io::{self, Write};

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Forest, MAX_FRAMES};
use systape_answers::derive::stacks::graph::{Key, Stacked};
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::names::Names;

use super::super::proto::perfetto::stack_sample::{CounterDescriptor, TaskContext};
use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{StackSample, StackSampleDefaults, TracePacketDefaults};
use super::clocks::Boot;
use super::packets::{Interned, Packets, Sequence};
use super::text;
use crate::reports::Context;
use crate::reports::callgraph::offcpu;

/// What samples are measured in: nanoseconds (StackSample.Unit).
const NANOSECONDS: u32 = 1;
/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 20;

/// Writes the times off the CPU of threads that pass to `file`, in the order in which they end. What is missing is added to the losses of
/// `context`.
///
/// # Errors
/// The tape has no scheduler events after all, or `file` cannot be written.
pub(super) fn write(
    context: &mut Context<'_>,
    names: &Names,
    boot: &Boot,
    packets: Packets,
    file: &mut (dyn Write + Send),
) -> Result<()> {
    let mut samples = StackSamples { names, interned: Interned::default(), stacks: FxHashMap::default(), packets };
    let mut written: io::Result<()> = Ok(());
    offcpu::walk(context, false, Stacked::default(), |stacked, away| {
        let sample = StackSample {
            task_context: Some(TaskContext { pid: away.task.pid, tid: away.task.tid }),
            callstack_iid: samples.stack(&stacked.forest, away.key),
            primary_weight: away.weight.time,
        };
        samples.add(boot.at(away.from), sample);
        if samples.packets.bytes.len() >= GATHERED && written.is_ok() {
            written = file.write_all(&std::mem::take(&mut samples.packets.bytes));
        }
    })?;
    written?;
    Ok(file.write_all(&samples.packets.bytes)?)
}

/// The samples that are being written.
struct StackSamples<'a> {
    names: &'a Names,
    interned: Interned,
    /// Numbers of stacks in the trace, by user and kernel node and how they end.
    stacks: FxHashMap<(u32, u32, StackEnding), u64>,
    packets: Packets,
}

impl StackSamples<'_> {
    fn add(&mut self, ts: u64, sample: StackSample) {
        let begins = !self.interned.begun();
        let counter = CounterDescriptor { name: "time off the CPU".to_owned(), unit: NANOSECONDS };
        let of_all = || StackSampleDefaults { source: "off-CPU".to_owned(), primary_descriptor: Some(counter) };
        let defaults = begins.then(|| TracePacketDefaults { stack_sample_defaults: Some(of_all()) });
        self.packets.with_defaults(Sequence::OffCpu, &mut self.interned, ts, (Data::StackSample(sample), defaults));
    }

    /// The number of a stack of `forest`.
    fn stack(&mut self, forest: &Forest, key: Key) -> u64 {
        let known = (key.user, key.kernel, key.ending);
        if let Some(iid) = self.stacks.get(&known) {
            return *iid;
        }
        let mut path = Vec::new();
        let whole = forest.frames_from(key.kernel, &mut path) && forest.frames_from(key.user, &mut path);
        let mut frames = Vec::new();
        for at in &path {
            let frame = &forest.frames()[*at as usize];
            let mapping = &forest.mappings().values()[frame.mapping as usize];
            for (_, label) in label::labels(self.names, self.names.mapping(mapping), mapping, frame) {
                frames.push(self.interned.frame(&label.in_tree(), &text(&label.module), frame.offset));
            }
        }
        let ending = if whole && frames.len() <= 2 * MAX_FRAMES { key.ending } else { StackEnding::TooLong };
        frames.truncate(2 * MAX_FRAMES);
        if let Some(mark) = ending.mark(frames.is_empty()) {
            frames.push(self.interned.frame(&mark, "", 0));
        }
        frames.reverse();
        let iid = self.interned.stack(frames);
        self.stacks.insert(known, iid);
        iid
    }
}

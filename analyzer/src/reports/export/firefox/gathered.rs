//! What a profile is made of, from all segments: threads, texts and stacks with one number each.

use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Graft, NONE};
use systape_answers::derive::stacks::graph::Stacked;
use systape_answers::derive::stacks::interner::Interner;
use systape_events::values::strings::NumberedStrings;
use systape_format::model::StackStatus;

use super::markers::{MarkerKind, MarkerRow, NOTHING};
use super::read::{LocalStack, SegmentPart, SkippedEvents};
use super::stacks::ForestStack;
use super::threads::{OffCpuWait, ProfiledThreads, StackSample};

/// Most CPU samples, and most times off the CPU.
pub(super) const MOST_SAMPLES: usize = 1_000_000;

/// Most bytes of arguments and results: programs that read JSON as one string end at some 500 MB of it.
const MOST_TEXT: u64 = 256 << 20;

/// What a profile is made of.
#[derive(Debug, Default)]
pub(super) struct GatheredProfile {
    /// The threads.
    pub threads: ProfiledThreads,
    /// Texts of markers.
    pub texts: NumberedStrings,
    /// The tree of stacks.
    pub stacked: Stacked,
    /// Stacks in that tree.
    pub stacks: Interner<ForestStack>,
    /// Times off the CPU, the longest first.
    pub waits: Vec<OffCpuWait>,
    /// Markers of no thread.
    pub others: Vec<MarkerRow>,
    /// Calls and block I/Os that are left out.
    pub left: SkippedEvents,
    /// CPU samples that are left out.
    pub left_samples: u64,
    /// Calls whose arguments are left out.
    pub textless: u64,
    /// How many CPU samples there are.
    samples: usize,
    /// Bytes of arguments and results.
    text_bytes: u64,
}

impl GatheredProfile {
    /// Adds a segment, behind those before it on the tape; the number of its calls, block I/Os and samples.
    pub(super) fn take(&mut self, part: SegmentPart) -> usize {
        let texts: Vec<u32> = part.texts.iter().map(|text| self.texts.number(text).0).collect();
        let mut threads: Vec<u32> = vec![NOTHING; part.tasks.len()];
        let mut graft = Graft::new(&part.stacks);
        let of_markers = part.markers.iter().filter_map(|marker| marker.stack);
        let stacks = of_markers.chain(part.samples.iter().map(|sample| sample.stack));
        let leaves = stacks.flat_map(|(user, kernel, ..)| [user, kernel]).flatten();
        graft.all(&part.stacks, &mut self.stacked.forest, leaves);
        // number of the thread of a task
        let mut thread = |all: &mut ProfiledThreads, task: u32| {
            let number = threads.get_mut(task as usize)?;
            if *number == NOTHING {
                *number = all.number(&part.tasks[task as usize]);
            }
            Some(*number as usize)
        };
        let shown = part.markers.len() + part.samples.len();
        for marker in &part.markers {
            let mut row = marker.row;
            row.name = texts[row.name as usize];
            for (value, field) in row.fields.iter_mut().zip(row.kind.fields()) {
                if *value != NOTHING && !field.is_number() {
                    *value = texts[*value as usize];
                }
            }
            if row.kind == MarkerKind::Call {
                self.bound(&mut row);
            }
            if let Some(stack) = marker.stack {
                row.stack = self.stack(&part, &mut graft, stack);
            }
            match marker.task.and_then(|task| thread(&mut self.threads, task)) {
                Some(thread) => self.threads.all[thread].markers.push(row),
                None => self.others.push(row),
            }
        }
        for sample in &part.samples {
            if self.samples == MOST_SAMPLES {
                self.left_samples += 1;
                continue;
            }
            let stack = self.stack(&part, &mut graft, sample.stack);
            if let Some(thread) = thread(&mut self.threads, sample.task) {
                self.threads.all[thread].samples.push(StackSample { ts: sample.ts, stack });
                self.samples += 1;
            }
        }
        for (task, ts) in &part.ends {
            if let Some(task) = part.tasks.get(*task as usize) {
                self.threads.ended(task, *ts);
            }
        }
        self.left.merge(part.left);
        shown
    }

    /// Leaves out the arguments of a call when there is too much text.
    fn bound(&mut self, row: &mut MarkerRow) {
        let length = |text: u32| self.texts.get(text).map_or(0, <[u8]>::len) as u64;
        let [arguments, result, ..] = row.fields.map(length);
        if self.text_bytes + arguments + result > MOST_TEXT {
            row.fields[0] = NOTHING;
            self.textless += 1;
        } else {
            self.text_bytes += arguments + result;
        }
    }

    /// Number of a segment's stack.
    fn stack(&mut self, part: &SegmentPart, graft: &mut Graft, (user, kernel, ending, in_kernel): LocalStack) -> u32 {
        let user = graft.node(&part.stacks, &mut self.stacked.forest, user);
        let kernel = graft.node(&part.stacks, &mut self.stacked.forest, kernel);
        // a status that promises frames without any is damage
        let lying = user == NONE && kernel == NONE && ending == StackEnding::Status(StackStatus::Complete);
        let ending = if lying { StackEnding::NotStored } else { ending };
        self.stacks.id(&ForestStack { user, kernel, ending, in_kernel })
    }

    /// Adds the text of a marker.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        self.texts.number(text.as_bytes()).0
    }
}

//! What is missing: each loss on a track LOST, and the CPUs whose switches are missing.

use std::collections::BTreeSet;

use systape_format::model::{CPU_NONE, Family, Gap};

use super::super::proto::perfetto::debug_annotation::Value;
use super::clocks::Boot;
use super::ftrace::Bundles;
use super::packets::Packets;
use super::slices::SliceWriter;
use super::tracks::Track;
use systape_events::loss::{Hole, Loss, cause_text, family_name};

/// A loss and when it was.
struct Lost {
    first: u64,
    last: u64,
    name: String,
    arguments: Vec<(&'static str, Value)>,
}

fn of_gap(gap: &Gap) -> Lost {
    let mut arguments = vec![("cause", Value::StringValue(cause_text(gap.cause).to_owned()))];
    // 0: nobody knows
    arguments.extend((gap.count > 0).then_some(("events", Value::UintValue(gap.count))));
    arguments.extend((gap.cpu != CPU_NONE).then_some(("cpu", Value::UintValue(gap.cpu.into()))));
    arguments.extend((gap.pid != 0).then_some(("pid", Value::UintValue(gap.pid.into()))));
    Lost { first: gap.first, last: gap.last, name: format!("{} events", family_name(gap.family)), arguments }
}

fn of_hole(hole: &Hole) -> Lost {
    let name = if hole.rows == 0 { "details of calls" } else { "calls" };
    let arguments = vec![("cause", Value::StringValue(hole.why.clone()))];
    Lost { first: hole.first, last: hole.last, name: name.to_owned(), arguments }
}

/// Writes `loss`. Those that overlap stand on lanes of their own; the track is there although nothing was lost.
pub(super) fn write(packets: &mut Packets, slices: &mut SliceWriter, loss: &Loss, (boot, end): (&Boot, u64)) {
    let of_switches = |gap: &&Gap| matches!(gap.family, Family::Sched | Family::Unknown);
    let cpus: BTreeSet<u32> =
        loss.gaps.iter().filter(of_switches).map(|gap| if gap.cpu == CPU_NONE { 0 } else { gap.cpu }).collect();
    cpus.into_iter().for_each(|cpu| Bundles::lost(packets, cpu));
    let mut all: Vec<Lost> = loss.gaps.iter().map(of_gap).chain(loss.holes.iter().map(of_hole)).collect();
    all.extend(loss.cut.map(|cut| Lost {
        first: cut,
        last: end.max(cut),
        name: match loss.being_written {
            true => "the tape was still being written".to_owned(),
            false => "the recording ended abnormally".to_owned(),
        },
        arguments: Vec::new(),
    }));
    let whole = |text: &String| Lost { first: 0, last: 0, name: text.clone(), arguments: Vec::new() };
    all.extend(loss.findings.iter().map(whole));
    all.sort_by_key(|lost| (lost.first, lost.last));
    if !all.is_empty() {
        Track::Lost.named(packets, None, "LOST");
    }
    // the end of the last loss of each lane
    let mut lanes: Vec<u64> = Vec::new();
    for lost in all {
        let (first, last) = (boot.at(lost.first), boot.at(lost.last.max(lost.first)));
        let free = lanes.iter().position(|until| *until < first);
        let lane = free.unwrap_or(lanes.len());
        let track = Track::LostLane(lane as u32);
        if free.is_none() {
            track.named(packets, Some(Track::Lost), "LOST");
            lanes.push(last);
        }
        lanes[lane] = last;
        let arguments = lost.arguments.into_iter().map(|(name, value)| slices.argument(name, value)).collect();
        slices.begin(packets, (first, track), &lost.name, arguments);
        slices.end(packets, last, track);
    }
}

//! Block I/Os by the slice of time in which they completed, with their latencies: those of the lowest devices, so each once.

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use systape_format::model::Family;

use super::calls_over_time::heat_json;
use crate::reports::Context;
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::summary::plan::Slices;
use systape_answers::render::loghist::LogHist;
use systape_events::scan::Scan;
use systape_events::values::devices::Dev;

/// One device.
#[derive(Clone, Debug)]
struct DiskRow {
    ios: Vec<u64>,
    heat: Vec<LogHist>,
    untimed: u64,
}

/// The I/Os that `page` is about.
///
/// # Errors
/// The scan fails; what of the tape cannot be read is among the losses.
pub(super) fn disks(page: &Context<'_>, slices: Slices, count: usize) -> Result<Value> {
    let mut context = Context::about(page.config, page.question.tape, &[Family::Block])?;
    let (tape, scope) = (context.question.tape, &context.question.scope);
    let mut disks: FxHashMap<Dev, DiskRow> = FxHashMap::default();
    let coverage = Scan::all(tape).walk(
        "block I/Os",
        |segment, dict| {
            let ios = segment.blocks(dict)?;
            let files = Files::read(segment, dict, &ios)?;
            Ok((ios, files))
        },
        |_, dict, (ios, files)| {
            for io in ios.iter().map(|io| Io::new(io, dict).with(&files)).filter(|io| io.passes(scope)) {
                let slice = io.io.complete.checked_sub(slices.from).map(|since| since / slices.width.max(1));
                let Some(slice) = slice.and_then(|slice| usize::try_from(slice).ok()).filter(|at| *at < count) else {
                    continue;
                };
                let disk = disks.entry(io.io.dev).or_insert_with(|| DiskRow {
                    ios: vec![0; count],
                    heat: vec![LogHist::default(); count],
                    untimed: 0,
                });
                disk.ios[slice] = disk.ios[slice].saturating_add(1);
                match io.latency() {
                    Some(ns) => disk.heat[slice].add(ns),
                    None => disk.untimed = disk.untimed.saturating_add(1),
                }
            }
        },
    );
    coverage.tell(&mut context.question.loss);
    let devices = devices(tape);
    let present: FxHashSet<Dev> = disks.keys().copied().collect();
    let (mut ios, mut heat, mut untimed) = (vec![0_u64; count], vec![LogHist::default(); count], 0_u64);
    for disk in disks.into_iter().filter(|(dev, _)| devices.below(*dev, &present).is_empty()).map(|(_, disk)| disk) {
        ios.iter_mut().zip(&disk.ios).for_each(|(all, more)| *all = all.saturating_add(*more));
        heat.iter_mut().zip(&disk.heat).for_each(|(all, more)| all.merge(more));
        untimed = untimed.saturating_add(disk.untimed);
    }
    Ok(json!({"ios": ios, "heat": heat_json(&heat), "untimed": untimed, "exact": context.question.loss.complete()}))
}

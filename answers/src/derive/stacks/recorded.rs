//! The stacks of a tape.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use systape_format::header::BlockKind;
use systape_format::model::{Mapping, StackOf, StackStatus, Stacks};
use systape_format::reader::{Segment, Tape};

use super::names::Names;
use super::places::Places;
use systape_events::scan::Scan;
use systape_events::values::order::InOrder as _;

/// The kinds of events whose stacks `tape` may have.
pub fn kinds(tape: &Tape) -> Vec<StackOf> {
    let mut kinds = tape.session().stacks.on.clone();
    if kinds.is_empty() {
        // the block that says so may be damaged
        kinds.extend(tape.table_defs().values().any(|def| def.stack_column().is_some()).then_some(StackOf::Row));
        for at in 0..tape.segments().len() {
            kinds.extend(tape.segment(at).stacks().unwrap_or_default().attached.iter().map(|attached| attached.of));
            kinds.sort();
            kinds.dedup();
        }
    }
    kinds
}

/// Refuses a question about stacks when there are none.
///
/// # Errors
/// There are none.
pub fn require(tape: &Tape) -> Result<Vec<StackOf>> {
    let kinds = kinds(tape);
    if kinds.is_empty() {
        bail!("this tape has no stacks: record them with 'record -g'");
    }
    Ok(kinds)
}

/// A mapping with places without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// The mapping.
    pub mapping: Mapping,
    /// Number of such places.
    pub places: u64,
    /// The reason, if the tape has it.
    pub why: Option<String>,
}

/// All facts about stacks that need no events.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Number of stacks by kind of event, by status.
    pub stacks: BTreeMap<StackOf, BTreeMap<StackStatus, u64>>,
    /// Distinct places in code.
    pub places: u64,
    /// Number of places with a name.
    pub named: u64,
    /// Places without a name by mapping, most first.
    pub unnamed: Vec<Unnamed>,
    /// Blocks that cannot be read.
    pub unreadable: Vec<String>,
}

impl Inventory {
    /// Reads the stacks and names of `tape`; None when it has none and none were requested.
    pub fn read(tape: &Tape) -> Option<Self> {
        let segments: Vec<usize> =
            (0..tape.segments().len()).filter(|at| tape.segment(*at).has(BlockKind::Stacks)).collect();
        if segments.is_empty() && tape.session().stacks.on.is_empty() {
            return None;
        }
        let mut all = Self::default();
        let places = all.segments(&Scan::of(tape, segments));
        let names = Names::read(tape, &mut all.unreadable);
        for (mapping, offsets) in places.iter() {
            let id = names.mapping(mapping);
            let has = |offset: &&u64| names.has(id, **offset);
            let named = offsets.iter().filter(has).count();
            all.places += offsets.len() as u64;
            all.named += named as u64;
            if named < offsets.len() {
                let why = names.failure(id).map(str::to_owned);
                all.unnamed.push(Unnamed { mapping: mapping.clone(), places: (offsets.len() - named) as u64, why });
            }
        }
        all.unnamed.order_by_key(|unnamed| (std::cmp::Reverse(unnamed.places), unnamed.mapping.clone()));
        Some(all)
    }

    fn segments(&mut self, scan: &Scan<'_>) -> Places {
        let (parts, coverage) = scan.fold(Found::default, |found, segment, coverage| match segment.stacks() {
            Ok(stacks) => found.add(&stacks, &rows(segment)),
            Err(error) => coverage.finding(segment, "stacks", &error),
        });
        self.unreadable.extend(coverage.sentences());
        let mut places = Places::default();
        for found in parts {
            places.merge(&found.places);
            for ((of, status), count) in found.stacks {
                *self.stacks.entry(of).or_default().entry(status).or_default() += count;
            }
        }
        places
    }
}

/// The result of one thread.
#[derive(Debug, Default)]
struct Found {
    stacks: BTreeMap<(StackOf, StackStatus), u64>,
    places: Places,
}

impl Found {
    /// The stacks of a segment, and those of rows of tables.
    fn add(&mut self, stacks: &Stacks, rows: &[u64]) {
        for end in rows.iter().filter_map(|code| stacks.of_code(*code)) {
            *self.stacks.entry((StackOf::Row, end.status)).or_default() += 1;
        }
        self.places.add(&stacks.mappings, &stacks.frames);
        for attached in &stacks.attached {
            *self.stacks.entry((attached.of, attached.status)).or_default() += 1;
        }
    }
}

/// The values of stack columns of a segment's tables; unreadable ones are reported where rows are counted.
fn rows(segment: &Segment<'_>) -> Vec<u64> {
    if !segment.has(BlockKind::Tables) {
        return Vec::new();
    }
    let tables = segment.dict().and_then(|dict| segment.tables(&dict)).unwrap_or_default();
    tables.iter().filter_map(|table| table.stacks()).flatten().copied().collect()
}

/// The places on all stacks of `tape`; unreadable ones are reported where stacks are used.
pub fn places(tape: &Tape) -> Places {
    Inventory::default().segments(&Scan::all(tape))
}

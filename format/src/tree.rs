//! A segment's stacks in the order and numbering of the tape.
//!
//! Attached stacks are sorted by their events. Then mappings, frames, nodes and distinct stacks are numbered in order
//! of first use, the outermost frame of a stack first. So equal recordings give equal tapes whatever the order of the
//! rings, most columns are "the next one", and unused entries are not stored.

use std::collections::HashMap;

use crate::model::{Attached, Ends, Frame, Node, StackOf, Stacks};

/// Number of a thing without a number yet.
const NONE: u32 = u32::MAX;

/// Stacks in the order of a tree, and where old ones are in it.
#[derive(Debug, Default)]
pub(crate) struct OrderedTree {
    /// Stacks in a reader's form.
    pub(crate) stacks: Stacks,
    /// Index of each attached stack among the distinct ones.
    pub(crate) end_ids: Vec<u32>,
    /// New numbers for each of the earlier distinct ones, which rows of tables refer to.
    pub(crate) renumbered: Vec<u32>,
}

/// Orders `stacks`, whose indices must have been checked. `position` returns the place of the event with an insertion
/// id.
pub(crate) fn order(stacks: &Stacks, position: impl Fn(StackOf, u32) -> u32) -> OrderedTree {
    let at = |a: &Attached| Attached { row: position(a.of, a.row), ..*a };
    let mut attached: Vec<Attached> = stacks.attached.iter().map(at).collect();
    // Stable: of two stacks of one event the one that was pushed first is kept.
    attached.sort_by_key(|a| (a.of, a.row));
    attached.dedup_by_key(|a| (a.of, a.row));
    number(stacks, attached, &[])
}

/// Renumbers a reader's stacks after some attached ones were taken out. Rows of tables refer to distinct stacks by
/// number, so these stay.
pub(crate) fn again(stacks: &Stacks) -> OrderedTree {
    number(stacks, stacks.attached.clone(), &stacks.distinct)
}

/// Numbers stacks in order of first use: `first`, then those of `attached`, then the remaining distinct ones.
fn number(stacks: &Stacks, mut attached: Vec<Attached>, first: &[Ends]) -> OrderedTree {
    let mut numbers = Renumbered::new(stacks);
    let mut known: HashMap<Ends, u32> = HashMap::new();
    let mut distinct: Vec<Ends> = Vec::new();
    for (id, end) in first.iter().enumerate() {
        let end = Ends { user: numbers.stack(end.user), kernel: numbers.stack(end.kernel), status: end.status };
        // of two that are the same each keeps its number
        known.entry(end).or_insert(id as u32);
        distinct.push(end);
    }
    let mut add = |numbers: &mut Renumbered<'_>, old: Ends| {
        let end = Ends { user: numbers.stack(old.user), kernel: numbers.stack(old.kernel), status: old.status };
        let id = *known.entry(end).or_insert_with(|| {
            distinct.push(end);
            distinct.len() as u32 - 1
        });
        (id, end)
    };
    let mut end_ids = Vec::with_capacity(attached.len());
    for a in &mut attached {
        let (id, end) = add(&mut numbers, Ends::from(&*a));
        end_ids.push(id);
        (a.user, a.kernel) = (end.user, end.kernel);
    }
    let renumbered = stacks.distinct.iter().map(|end| add(&mut numbers, *end).0).collect();
    let stacks = Stacks { attached, distinct, ..numbers.new };
    OrderedTree { stacks, end_ids, renumbered }
}

/// New numbers by old ones, and the stacks in the new numbers.
struct Renumbered<'a> {
    old: &'a Stacks,
    new: Stacks,
    mappings: Vec<u32>,
    frames: Vec<u32>,
    nodes: Vec<u32>,
    /// Of [`Self::stack`]: kept for its memory.
    chain: Vec<u32>,
}

impl<'a> Renumbered<'a> {
    fn new(old: &'a Stacks) -> Self {
        Self {
            old,
            new: Stacks::default(),
            mappings: vec![NONE; old.mappings.len()],
            frames: vec![NONE; old.frames.len()],
            nodes: vec![NONE; old.nodes.len()],
            chain: Vec::new(),
        }
    }

    /// The new number of the stack that ends at node `leaf`.
    fn stack(&mut self, leaf: Option<u32>) -> Option<u32> {
        self.chain.clear();
        let mut next = leaf;
        // A parent is less than its child: this ends.
        while let Some(node) = next.filter(|&node| self.nodes[node as usize] == NONE) {
            self.chain.push(node);
            next = self.old.nodes[node as usize].parent;
        }
        while let Some(node) = self.chain.pop() {
            let Node { parent, frame } = self.old.nodes[node as usize];
            let parent = parent.map(|parent| self.nodes[parent as usize]);
            let frame = self.frame(frame);
            self.nodes[node as usize] = self.new.nodes.len() as u32;
            self.new.nodes.push(Node { parent, frame });
        }
        leaf.map(|leaf| self.nodes[leaf as usize])
    }

    fn frame(&mut self, old: u32) -> u32 {
        if self.frames[old as usize] == NONE {
            let frame = self.old.frames[old as usize];
            let mapping = self.mapping(frame.mapping);
            self.frames[old as usize] = self.new.frames.len() as u32;
            self.new.frames.push(Frame { mapping, ..frame });
        }
        self.frames[old as usize]
    }

    fn mapping(&mut self, old: u32) -> u32 {
        if self.mappings[old as usize] == NONE {
            self.mappings[old as usize] = self.new.mappings.len() as u32;
            self.new.mappings.push(self.old.mappings[old as usize].clone());
        }
        self.mappings[old as usize]
    }
}

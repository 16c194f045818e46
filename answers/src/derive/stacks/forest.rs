//! The stacks of all segments as one tree of places in code.

use rustc_hash::FxHashMap;
use systape_format::model::{FRAME_EXACT, FRAME_SIGNAL, Frame, Mapping, Stacks};

use super::interner::Interner;
use super::places::Places;

/// No node: a stack without frames, or the caller of the outermost one.
pub const NONE: u32 = u32::MAX;

/// Most frames of a stack; a recorder stores far fewer, so more are damage.
pub const MAX_FRAMES: usize = 1024;

/// One tree of the stacks of many segments.
#[derive(Debug, Default)]
pub struct Forest {
    mappings: Interner<Mapping>,
    /// Distinct frames, whose mappings are indices into `mappings`.
    frames: Interner<Frame>,
    /// (node of the caller, frame), by number; [`NONE`]: the outermost.
    nodes: Vec<(u32, u32)>,
    /// Numbers of nodes, by caller << 32 | frame: small keys, because a large tape spends its time in this table.
    ids: FxHashMap<u64, u32>,
}

impl Forest {
    /// Where code came from, by [`Frame::mapping`] of this forest's frames.
    pub fn mappings(&self) -> &Interner<Mapping> {
        &self.mappings
    }

    /// Distinct frames, by number.
    pub fn frames(&self) -> &[Frame] {
        self.frames.values()
    }

    /// The numbers of the frames from `leaf` outwards, and whether these are all.
    pub fn frames_from(&self, leaf: u32, into: &mut Vec<u32>) -> bool {
        let mut next = leaf;
        while let Some((parent, frame)) = self.nodes.get(next as usize) {
            if into.len() == MAX_FRAMES {
                return false;
            }
            into.push(*frame);
            next = *parent;
        }
        true
    }

    /// The places on all stacks.
    pub fn places(&self) -> Places {
        let mut places = Places::default();
        places.add(self.mappings.values(), self.frames.values());
        places
    }

    fn node(&mut self, parent: u32, frame: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.ids.entry(u64::from(parent) << 32 | u64::from(frame)).or_insert_with(|| {
            nodes.push((parent, frame));
            nodes.len() as u32 - 1
        })
    }
}

/// Maps the nodes and frames of one segment's stacks to a [`Forest`], on demand.
#[derive(Debug)]
pub struct Graft {
    nodes: Vec<u32>,
    frames: Vec<u32>,
    chain: Vec<u32>,
}

impl Graft {
    /// Makes one for `stacks`, which the other functions get too.
    pub fn new(stacks: &Stacks) -> Self {
        let (nodes, frames) = (vec![NONE; stacks.nodes.len()], vec![NONE; stacks.frames.len()]);
        Self { nodes, frames, chain: Vec::new() }
    }

    /// Maps the nodes of all of `leaves` together, in the segment's order, because neighbours share callers.
    pub fn all(&mut self, stacks: &Stacks, forest: &mut Forest, leaves: impl Iterator<Item = u32>) {
        let mut used = vec![false; stacks.nodes.len()];
        for leaf in leaves {
            if let Some(used) = used.get_mut(leaf as usize) {
                *used = true;
            }
        }
        for at in (0..used.len()).rev() {
            // a caller stands before its callee
            let parent = stacks.nodes[at].parent.filter(|parent| used[at] && (*parent as usize) < at);
            if let Some(parent) = parent {
                used[parent as usize] = true;
            }
        }
        for at in (0..used.len()).filter(|at| used[*at]) {
            self.node(stacks, forest, Some(at as u32));
        }
    }

    /// The node of `forest` for the segment's node `leaf`; [`NONE`] for none.
    pub fn node(&mut self, stacks: &Stacks, forest: &mut Forest, leaf: Option<u32>) -> u32 {
        let mut known = NONE;
        let mut next = leaf;
        self.chain.clear();
        while let Some(at) = next {
            let (Some(node), Some(mine)) = (stacks.nodes.get(at as usize), self.nodes.get(at as usize)) else { break };
            if *mine != NONE {
                known = *mine;
                break;
            }
            self.chain.push(at);
            // a caller stands before its callee, so this comes to an end
            next = node.parent.filter(|parent| *parent < at);
        }
        while let Some(at) = self.chain.pop() {
            let frame = self.frame(stacks, forest, stacks.nodes[at as usize].frame);
            known = forest.node(known, frame);
            self.nodes[at as usize] = known;
        }
        known
    }

    fn frame(&mut self, stacks: &Stacks, forest: &mut Forest, at: u32) -> u32 {
        let Some(known) = self.frames.get(at as usize).copied() else {
            return forest.frames.id(&Frame::default());
        };
        if known != NONE {
            return known;
        }
        let frame = stacks.frames[at as usize];
        let mapping = stacks.mappings.get(frame.mapping as usize).cloned().unwrap_or_default();
        let mapping = forest.mappings.id(&mapping);
        let id = forest.frames.id(&Frame { mapping, flags: frame.flags & (FRAME_EXACT | FRAME_SIGNAL), ..frame });
        self.frames[at as usize] = id;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::{MappingKind, Node as Stored};

    fn stacks(paths: &[&str], frames: &[(u32, u64)], nodes: &[(Option<u32>, u32)]) -> Stacks {
        let mapping =
            |path: &&str| Mapping { kind: MappingKind::Elf, path: path.as_bytes().to_vec(), ..Mapping::default() };
        Stacks {
            mappings: paths.iter().map(mapping).collect(),
            frames: frames
                .iter()
                .map(|(mapping, offset)| Frame { mapping: *mapping, offset: *offset, flags: 0 })
                .collect(),
            nodes: nodes.iter().map(|(parent, frame)| Stored { parent: *parent, frame: *frame }).collect(),
            ..Stacks::default()
        }
    }

    #[test]
    fn the_same_stack_of_two_segments_is_one() {
        let a = stacks(&["/a", "/b"], &[(0, 1), (1, 1)], &[(None, 0), (Some(0), 1)]);
        let b = stacks(&["/b", "/x", "/a"], &[(1, 7), (0, 1), (2, 1)], &[(None, 0), (None, 2), (Some(1), 1)]);
        let mut forest = Forest::default();
        let first = Graft::new(&a).node(&a, &mut forest, Some(1));
        let mut graft = Graft::new(&b);
        assert_eq!(graft.node(&b, &mut forest, Some(2)), first);
        assert_ne!(graft.node(&b, &mut forest, Some(0)), first);
        assert_eq!(graft.node(&b, &mut forest, None), NONE);
        let mut frames = Vec::new();
        assert!(forest.frames_from(first, &mut frames));
        let paths: Vec<_> = frames
            .iter()
            .map(|at| &*forest.mappings.values()[forest.frames()[*at as usize].mapping as usize].path)
            .collect();
        assert_eq!(paths, [b"/b", b"/a"]);
    }

    #[test]
    fn damage_neither_loops_nor_panics() {
        let bad = stacks(&[], &[(9, 1)], &[(Some(0), 0), (Some(2), 8), (Some(1), 0)]);
        let mut forest = Forest::default();
        let mut graft = Graft::new(&bad);
        for leaf in [0, 1, 2, 77] {
            let node = graft.node(&bad, &mut forest, Some(leaf));
            assert!(forest.frames_from(node, &mut Vec::new()));
        }
        let deep = stacks(&["/a"], &[(0, 1)], &(0..5000).map(|at: u32| (at.checked_sub(1), 0)).collect::<Vec<_>>());
        let node = Graft::new(&deep).node(&deep, &mut forest, Some(4999));
        let mut frames = Vec::new();
        assert!(!forest.frames_from(node, &mut frames));
        assert_eq!(frames.len(), MAX_FRAMES);
    }
}

//! Places in code as numbers of 64 bits, for a program that keeps names apart from the stacks that need them.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::model::Mapping;
use crate::segment::SegmentData;

/// Stands for a mapping as a whole; no offset is that large.
const WHOLE: u64 = u64::MAX;

/// The number of the place at `offset` (that of [`crate::model::Frame::lookup`]) in `mapping`. Equal places have equal
/// numbers; different ones share a number by chance once in 2^64 pairs.
pub fn place_key(mapping: &Mapping, offset: u64) -> u64 {
    at(mapping_seed(mapping), offset)
}

/// The number of a mapping as a whole.
pub fn mapping_key(mapping: &Mapping) -> u64 {
    at(mapping_seed(mapping), WHOLE)
}

fn mapping_seed(mapping: &Mapping) -> u64 {
    let head = [mapping.kind as u64, u64::from(mapping.upid), mapping.build_id.len() as u64];
    let head: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
    xxh3_64(&[head.as_slice(), &mapping.build_id, &mapping.path].concat())
}

fn at(seed: u64, offset: u64) -> u64 {
    xxh3_64_with_seed(&offset.to_le_bytes(), seed)
}

impl SegmentData {
    /// Numbers of the places on the segment's stacks and of their mappings, ascending, each once.
    pub fn place_keys(&self) -> Box<[u64]> {
        let stacks = self.stacks();
        let seeds: Vec<u64> = stacks.mappings.iter().map(mapping_seed).collect();
        let places =
            stacks.frames.iter().filter_map(|frame| Some(at(*seeds.get(frame.mapping as usize)?, frame.lookup())));
        let mut keys: Vec<u64> = places.chain(seeds.iter().map(|&seed| at(seed, WHOLE))).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_boxed_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FRAME_EXACT, Frame, MappingKind, Node};
    use crate::segment::SegmentBuilder;

    #[test]
    fn places_of_a_segment_are_those_of_their_names() {
        let mapping = Mapping { kind: MappingKind::Elf, path: b"/bin/a".to_vec(), ..Mapping::default() };
        let other = Mapping { kind: MappingKind::Jit, upid: 7, ..Mapping::default() };
        let mut builder = SegmentBuilder::new(0);
        for (of, offset, flags) in [(&mapping, 10, 0), (&mapping, 9, FRAME_EXACT), (&other, 10, FRAME_EXACT)] {
            let mapping = builder.intern_mapping(of);
            let frame = builder.intern_frame(Frame { mapping, offset, flags });
            builder.intern_node(Node { parent: None, frame });
        }
        let keys = builder.finish(1).place_keys();
        let mut expected =
            vec![place_key(&mapping, 9), place_key(&other, 10), mapping_key(&mapping), mapping_key(&other)];
        expected.sort_unstable();
        assert_eq!(*keys, *expected, "a return address is looked up in the call before it");
        let differ = [
            Mapping { build_id: b"/bin/a".to_vec(), path: Vec::new(), ..mapping.clone() },
            Mapping { upid: 1, ..mapping.clone() },
            Mapping { kind: MappingKind::Module, ..mapping.clone() },
        ];
        assert!(differ.iter().all(|other| place_key(other, 9) != place_key(&mapping, 9)));
    }
}

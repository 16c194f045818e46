//! Changes tapes at random, the same way for the same seed.

use super::forge::{ForgedBlock, seal, unseal};
use crate::error::Error;
use crate::header::BlockKind;

/// A small generator (xorshift64*): tests must repeat.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Seeds that are near give numbers that are not.
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        rng.next_u64();
        rng
    }

    /// Any number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 when there is none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next_u64() >> 11) as usize % n.max(1)
    }

    /// A number at which code breaks.
    fn nasty(&mut self) -> u64 {
        let any = self.next_u64();
        let near = |at: u64| at.wrapping_add(any % 5).wrapping_sub(2);
        match self.below(8) {
            0 => near(0),
            1 => near(u64::MAX),
            2 => near(1 << 63),
            3 => near(1 << 32),
            4 => near(1 << 31),
            5 => 1 << (any % 64),
            6 => any % 1000,
            _ => any,
        }
    }
}

/// A sound tape to make others from.
#[derive(Clone, Debug)]
pub struct SampleTape {
    bytes: Vec<u8>,
    blocks: Vec<ForgedBlock>,
}

impl SampleTape {
    /// Takes a tape apart.
    ///
    /// # Errors
    /// It is none.
    pub fn new(bytes: Vec<u8>) -> Result<Self, Error> {
        Ok(Self { blocks: unseal(&bytes)?, bytes })
    }
}

/// What was done to a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Bits, anywhere; hashes tell.
    Flip,
    /// The end is missing, or is zeros.
    Cut,
    /// The head of one and the tail of another.
    Splice,
    /// Content, sealed again.
    Content,
    /// Headers, sealed again.
    Headers,
    /// Blocks left out, doubled, moved, or taken from another tape, sealed again.
    Blocks,
}

impl Change {
    /// All of them. Content counts three times: it is what reaches the decoders.
    const DRAWN: [Self; 8] =
        [Self::Flip, Self::Cut, Self::Splice, Self::Content, Self::Content, Self::Content, Self::Headers, Self::Blocks];
}

/// A tape made from `samples`, of which there must be one.
pub fn mutate(rng: &mut Rng, samples: &[SampleTape]) -> (Change, Vec<u8>) {
    let sample = &samples[rng.below(samples.len())];
    let other = &samples[rng.below(samples.len())];
    let change = Change::DRAWN[rng.below(Change::DRAWN.len())];
    let bytes = match change {
        Change::Flip => {
            let mut bytes = sample.bytes.clone();
            flip(rng, &mut bytes);
            bytes
        }
        Change::Cut => {
            let mut bytes = sample.bytes[..rng.below(sample.bytes.len())].to_vec();
            if rng.below(2) == 0 {
                bytes.resize(sample.bytes.len(), 0);
            }
            bytes
        }
        Change::Splice => {
            let head = &sample.bytes[..rng.below(sample.bytes.len())];
            let tail = &other.bytes[rng.below(other.bytes.len())..];
            [head, tail].concat()
        }
        Change::Content => sealed(rng, sample, |rng, blocks| {
            for _ in 0..=rng.below(4) {
                let at = rng.below(blocks.len());
                damage(rng, &mut blocks[at]);
            }
        }),
        Change::Headers => sealed(rng, sample, |rng, blocks| {
            for _ in 0..=rng.below(3) {
                let at = rng.below(blocks.len());
                let (value, header) = (rng.nasty(), &mut blocks[at].header);
                match rng.below(11) {
                    0 => header.kind = BlockKind::from_raw(value as u16 % 27),
                    1 => header.flags = value as u16,
                    2 => header.chunk = value as u32,
                    3 => header.segment = value as u32,
                    4 => header.seq = value,
                    5 => header.end_min = value,
                    6 => header.end_max = value,
                    7 => header.start_min = value,
                    8 => header.rows = value as u32,
                    9 => header.carry_rows = value as u32,
                    _ => header.groups = value,
                }
            }
        }),
        Change::Blocks => sealed(rng, sample, |rng, blocks| {
            for _ in 0..=rng.below(3) {
                let (at, to) = (rng.below(blocks.len()), rng.below(blocks.len()));
                match rng.below(4) {
                    0 if blocks.len() > 1 => drop(blocks.remove(at)),
                    1 => blocks.insert(to, blocks[at].clone()),
                    2 => blocks.swap(at, to),
                    _ => {
                        // content of another tape's block of that kind
                        let kind = blocks[at].header.kind;
                        let same: Vec<&ForgedBlock> = other.blocks.iter().filter(|b| b.header.kind == kind).collect();
                        if let Some(taken) = same.get(rng.below(same.len())) {
                            blocks[at].raw.clone_from(&taken.raw);
                            blocks[at].header.rows = taken.header.rows;
                            blocks[at].header.carry_rows = taken.header.carry_rows;
                        }
                    }
                }
            }
            for (seq, block) in blocks.iter_mut().enumerate() {
                block.header.seq = seq as u64;
            }
        }),
    };
    (change, bytes)
}

fn flip(rng: &mut Rng, bytes: &mut [u8]) {
    for _ in 0..=rng.below(8) {
        let at = rng.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
}

/// With and without an index: readers go two ways.
fn sealed(rng: &mut Rng, sample: &SampleTape, change: impl FnOnce(&mut Rng, &mut Vec<ForgedBlock>)) -> Vec<u8> {
    let mut blocks = sample.blocks.clone();
    change(rng, &mut blocks);
    if rng.below(2) == 0 {
        blocks.retain(|block| block.header.kind != BlockKind::Index);
    }
    seal(&blocks)
}

/// Changes what a block holds.
fn damage(rng: &mut Rng, block: &mut ForgedBlock) {
    let words = block.raw.len() / 8;
    let (at, from) = (rng.below(words) * 8, rng.below(words) * 8);
    match rng.below(8) {
        0 | 1 => flip(rng, &mut block.raw),
        // a number, or a pointer, of 1, 2, 4 or 8 bytes
        2..=4 => {
            let size = 1 << rng.below(4);
            let at = at + rng.below(8 / size) * size;
            let value = rng.nasty().to_le_bytes();
            if let Some(field) = block.raw.get_mut(at..at + size) {
                field.copy_from_slice(&value[..size]);
            }
        }
        // a pointer to what another one points near to
        5 | 6 if words > 0 => block.raw.copy_within(from..from + 8, at),
        _ => block.raw.truncate(at),
    }
}

//! What the targets share: tapes around what the fuzzer thinks of, sealed so that decoders see it.

use std::sync::LazyLock;

use systape_format::exercise::forge::{ForgedBlock, seal, unseal};
use systape_format::header::BlockKind;

/// The tapes of testdata/fuzz/tapes: every kind of block among them.
static TAPES: LazyLock<Vec<Vec<ForgedBlock>>> = LazyLock::new(|| {
    let tapes: [&[u8]; 6] = [
        include_bytes!("../../testdata/fuzz/tapes/sample.tape"),
        include_bytes!("../../testdata/fuzz/tapes/sched.tape"),
        include_bytes!("../../testdata/fuzz/tapes/events.tape"),
        include_bytes!("../../testdata/fuzz/tapes/life.tape"),
        include_bytes!("../../testdata/fuzz/tapes/stacks.tape"),
        include_bytes!("../../testdata/fuzz/tapes/ledger.tape"),
    ];
    tapes.into_iter().map(|tape| unseal(tape).expect("a tape")).collect()
});

/// Bytes before the content: tape, block, flags (1: other numbers of rows; 2: no index), one that is free, rows, carry rows.
pub const HEAD: usize = 12;

/// A sound tape with one block's content replaced. None: the input is too short to say which.
pub fn tape_with(input: &[u8]) -> Option<Vec<u8>> {
    let (head, raw) = input.split_first_chunk::<HEAD>()?;
    let [tape, block, flags, _, r0, r1, r2, r3, c0, c1, c2, c3] = *head;
    let mut blocks = TAPES[usize::from(tape) % TAPES.len()].clone();
    let at = usize::from(block) % blocks.len();
    blocks[at].set_raw(raw);
    if flags & 1 != 0 {
        blocks[at].header.rows = u32::from_le_bytes([r0, r1, r2, r3]);
        blocks[at].header.carry_rows = u32::from_le_bytes([c0, c1, c2, c3]);
    }
    if flags & 2 != 0 {
        blocks.retain(|block| block.header.kind != BlockKind::Index);
    }
    Some(seal(&blocks))
}

//! Blocks whose headers and hashes are right and whose content is not.

mod common;

use common::{GROUPS, Rng, block_spans, fix_crc, sample};
use systape_format::exercise::exercise;
use systape_format::footer::FOOTER_LEN;
use systape_format::header::{HEADER_LEN, MAX_RAW};
use systape_format::{BlockKind, Error, Tape};
use xxhash_rust::xxh3::xxh3_64;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The tape with block `i`'s payload replaced, everything around it made right again, index offsets excepted.
fn with_payload(whole: &[u8], i: usize, stored: &[u8], raw_len: u32) -> Vec<u8> {
    let spans = block_spans(whole);
    let (from, to) = spans[i];
    let mut block = whole[from..from + HEADER_LEN].to_vec();
    put(&mut block, 76, &(stored.len() as u32).to_le_bytes());
    put(&mut block, 80, &raw_len.to_le_bytes());
    put(&mut block, 88, &xxh3_64(stored).to_le_bytes());
    fix_crc(&mut block, 0);
    block.extend_from_slice(stored);
    block.resize(block.len().next_multiple_of(8), 0);
    let mut out = [&whole[..from], &block, &whole[to.next_multiple_of(8)..]].concat();
    // The footer: where index and end mark are now.
    let moved = out.len() as i64 - whole.len() as i64;
    let footer = out.len() - FOOTER_LEN;
    for (field, before) in
        [(24, spans[spans.len() - 2].0), (32, spans[spans.len() - 1].0), (40, whole.len() - FOOTER_LEN)]
    {
        let now = if before > from { before as i64 + moved } else { before as i64 };
        put(&mut out, footer + field, &(now as u64).to_le_bytes());
    }
    let crc = crc32c::crc32c(&out[footer..footer + 60]);
    put(&mut out, footer + 60, &crc.to_le_bytes());
    out
}

fn with_raw(whole: &[u8], i: usize, raw: &[u8]) -> Vec<u8> {
    with_payload(whole, i, &zstd::bulk::compress(raw, 1).unwrap(), raw.len() as u32)
}

fn raw_of(whole: &[u8], i: usize) -> Vec<u8> {
    let (from, to) = block_spans(whole)[i];
    zstd::bulk::decompress(&whole[from + HEADER_LEN..to], MAX_RAW as usize).unwrap()
}

fn kinds(whole: &[u8]) -> Vec<BlockKind> {
    Tape::from_bytes(whole.to_vec()).unwrap().blocks().iter().map(|b| b.kind).collect()
}

fn first(whole: &[u8], kind: BlockKind) -> usize {
    kinds(whole).iter().position(|&k| k == kind).unwrap()
}

#[test]
fn the_forge_itself_is_sound() {
    let whole = sample();
    for i in 0..kinds(&whole).len() {
        let same = with_raw(&whole, i, &raw_of(&whole, i));
        assert_eq!(common::Truth::of(&whole).check(&Tape::from_bytes(same).unwrap(), "forged"), 3 * GROUPS);
    }
}

#[test]
fn messages_with_flipped_bytes_never_panic() {
    // SYSTAPE_FUZZ_ROUNDS=5000 for a night of it.
    let rounds = std::env::var("SYSTAPE_FUZZ_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(40u64);
    let whole = sample();
    let mut rng = Rng(2024 + rounds);
    for i in 0..kinds(&whole).len() {
        let raw = raw_of(&whole, i);
        // Every word once with something nasty in it, then a few at random.
        for word in 0..raw.len() / 8 {
            let mut bad = raw.clone();
            let nasty = [u64::MAX, 0, 1 << 32, rng.next(), u64::MAX << 3][rng.below(5)];
            put(&mut bad, word * 8, &nasty.to_le_bytes());
            exercise(&with_raw(&whole, i, &bad));
        }
        for _ in 0..rounds {
            let mut bad = raw.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bad.len());
                bad[at] ^= 1 << rng.below(8);
            }
            exercise(&with_raw(&whole, i, &bad));
        }
    }
}

#[test]
fn lengths_are_checked_before_memory_is_taken() {
    let whole = sample();
    let core = first(&whole, BlockKind::SyscallsCore);
    let at = block_spans(&whole)[core].0;
    let dict_of = |tape: &Tape| tape.segment(0).dict().unwrap();
    for raw_len in [MAX_RAW + 8, u32::MAX, 0, 12] {
        let mut bytes = whole.clone();
        put(&mut bytes, at + 80, &raw_len.to_le_bytes());
        fix_crc(&mut bytes, at);
        let tape = Tape::from_bytes(bytes).unwrap();
        let e = tape.segment(0).core(&dict_of(&tape)).unwrap_err();
        assert!(matches!(e, Error::TooLarge { .. } | Error::Invalid { .. }), "{raw_len}: {e}");
    }
    let mut bytes = whole.clone();
    put(&mut bytes, at + 80, &MAX_RAW.to_le_bytes());
    fix_crc(&mut bytes, at);
    let tape = Tape::from_bytes(bytes).unwrap();
    let e = tape.segment(0).core(&dict_of(&tape)).unwrap_err();
    assert!(e.to_string().contains("the header says 8388608"), "{e}");
    // A stored length that runs out of the file, and one over the limit.
    for stored_len in [1 << 20, u32::MAX] {
        let mut bytes = whole.clone();
        put(&mut bytes, at + 76, &u32::to_le_bytes(stored_len));
        fix_crc(&mut bytes, at);
        let tape = Tape::from_bytes(bytes.clone()).unwrap();
        assert!(tape.segment(0).core(&dict_of(&tape)).is_err());
        assert_eq!(tape.segments().len(), 3, "the blocks behind it are found");
        exercise(&bytes);
    }
    // Rows: the header's and the message's must agree, whatever they are.
    for at in [at + 72, at + 84] {
        let mut bytes = whole.clone();
        put(&mut bytes, at, &u32::MAX.to_le_bytes());
        fix_crc(&mut bytes, block_spans(&whole)[core].0);
        let tape = Tape::from_bytes(bytes.clone()).unwrap();
        assert!(tape.segment(0).core(&dict_of(&tape)).is_err());
        exercise(&bytes);
    }
}

#[test]
fn bombs_do_not_go_off() {
    let whole = sample();
    let gaps = first(&whole, BlockKind::Gaps);
    let bomb = zstd::bulk::compress(&vec![0u8; 256 << 20], 1).unwrap();
    for raw_len in [MAX_RAW, 256 << 20, 64] {
        let tape = Tape::from_bytes(with_payload(&whole, gaps, &bomb, raw_len)).unwrap();
        let e = tape.segment(0).gaps().unwrap_err();
        assert!(matches!(e, Error::Zstd { .. } | Error::TooLarge { .. }), "{e}");
    }
    let good = raw_of(&whole, gaps);
    let frame = zstd::bulk::compress(&good, 1).unwrap();
    let len = good.len() as u32;
    // Two frames; a frame and something; a frame that is cut; nothing.
    let two = [&frame[..], &frame].concat();
    let more = [&frame[..], b"more"].concat();
    for stored in [&two[..], &more, &frame[..frame.len() - 1], b"", b"\x28\xb5\x2f\xfd"] {
        let tape = Tape::from_bytes(with_payload(&whole, gaps, stored, len)).unwrap();
        let e = tape.segment(0).gaps().unwrap_err();
        assert!(matches!(e, Error::Zstd { .. }), "{e}");
    }
    // As many lists in one message as pointers allow, all to the same place: bounded by the traversal limit.
    let zeros = vec![0u8; MAX_RAW as usize];
    exercise(&with_raw(&whole, gaps, &zeros));
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let whole = sample();
    let truth = common::Truth::of(&whole);
    let index = first(&whole, BlockKind::Index);
    let raw = raw_of(&whole, index);
    let (mut refused, mut harmless) = (0, 0);
    for at in 0..raw.len() {
        let mut bad = raw.clone();
        bad[at] ^= 1;
        let tape = Tape::from_bytes(with_raw(&whole, index, &bad)).unwrap();
        assert_eq!(truth.check(&tape, &format!("index byte {at}")), 3 * GROUPS);
        // What opening does not see (max_dur, calls, pids, failures) verify does.
        let told = !tape.findings().is_empty() || !tape.verify(&|_| ()).is_empty();
        refused += usize::from(told);
        harmless += usize::from(!told);
    }
    // Bytes of the message that nothing reads: padding in structs, unused high bits.
    assert!(harmless * 3 < refused, "{harmless} of {} changed bytes not seen", raw.len());
}

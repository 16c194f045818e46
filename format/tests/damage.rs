//! Whatever happens to the bytes: what is whole is read, nothing wrong is, and damage is told.

mod common;

use std::os::unix::fs::FileExt as _;

use common::{Events, GROUPS, ID, Rng, Stack, Truth, Window, block_spans, encode, fix_crc, sample, tape, window};
use systape_format::exercise::forge::{seal, unseal};
use systape_format::exercise::{exercise, read_symbols};
use systape_format::model::{StackOf, StackStatus};
use systape_format::repair::repair;
use systape_format::{BlockKind, Error, Tape};

#[test]
fn holes_of_a_file_are_not_searched() {
    let (whole, hole) = (sample(), 1 << 40);
    let spans = block_spans(&whole);
    let (cut, _) = spans[spans.len() / 2];
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all_at(&whole[..cut], 0).unwrap();
    file.as_file().set_len(2 * hole).unwrap();
    let blocks = || Tape::open(file.path()).unwrap().blocks().len();
    assert_eq!(blocks(), spans.len() / 2);
    // a terabyte of zeros takes minutes to read
    file.as_file().write_all_at(&whole[cut..], hole + 12_345).unwrap();
    assert_eq!(blocks(), spans.len());
}

#[test]
fn cut_anywhere_keeps_every_whole_block() {
    let whole = sample();
    let truth = Truth::of(&whole);
    let spans = block_spans(&whole);
    let kinds: Vec<_> = Tape::from_bytes(whole.clone()).unwrap().blocks();
    let mut rng = Rng(42);
    let mut cuts: Vec<usize> = spans.iter().flat_map(|&(from, to)| [from, to]).collect();
    cuts.extend((0..200).map(|_| rng.below(whole.len())));
    cuts.extend(whole.len() - 70..whole.len());
    for cut in cuts {
        let tape = match Tape::from_bytes(whole[..cut].to_vec()) {
            Ok(tape) => tape,
            Err(e) => {
                assert!(cut < spans[0].0 + 128, "cut at {cut}: {e}");
                continue;
            }
        };
        let whole_blocks = spans.iter().filter(|&&(_, to)| to <= cut).count();
        assert_eq!(tape.blocks().len(), whole_blocks, "cut at {cut}");
        assert_eq!(tape.session_is_whole(), whole_blocks > 0);
        let of_segments: Vec<_> = kinds[..whole_blocks].iter().filter(|b| b.segment.is_some()).collect();
        let good = truth.check(&tape, &format!("cut at {cut}"));
        assert_eq!(good, of_segments.len(), "cut at {cut}: groups read");
        let ended = whole_blocks == spans.len();
        assert_eq!(tape.end().is_some(), ended, "cut at {cut}");
        assert_ne!(tape.verify(&|_| ()), [], "cut at {cut}: not told");
        let whole_segments = of_segments.iter().filter(|b| b.kind == BlockKind::Tables).count() as u64;
        let until = match (ended, whole_segments) {
            (true, _) => 4000,
            (false, 0) => tape.session().window_open,
            (false, n) => 1000 * (n + 1),
        };
        assert_eq!(tape.complete_until(), until, "cut at {cut}");
        // The same followed by zeros, as after a power cut.
        let mut zeros = whole[..cut].to_vec();
        zeros.resize(cut + 5000, 0);
        let tape = Tape::from_bytes(zeros).unwrap();
        assert_eq!(truth.check(&tape, "zeros"), good, "cut at {cut} with zeros");
        assert_ne!(tape.verify(&|_| ()), []);
    }
}

#[test]
fn without_index_the_times_are_the_same() {
    let whole = sample();
    let with = Tape::from_bytes(whole.clone()).unwrap();
    let index = with.blocks().iter().find(|b| b.kind == BlockKind::Index).unwrap().offset as usize;
    let without = Tape::from_bytes(whole[..index].to_vec()).unwrap();
    assert!(with.has_index() && !without.has_index());
    assert_eq!(without.findings(), [], "cut between blocks: only the end mark is missing");
    for (a, b) in with.segments().iter().zip(without.segments()) {
        assert_eq!((a.rows, a.carry_rows, a.carry_start_min), (b.rows, b.carry_rows, b.carry_start_min));
        assert_eq!((a.start_min, a.end_min, a.end_max), (b.start_min, b.end_min, b.end_max));
        assert_eq!((b.max_dur, b.failures), (u64::MAX, u32::MAX));
        assert!(b.calls.is_none() && b.may_contain_pid(1));
    }
    // Only the footer is missing: the index is still found, and used.
    let tape = Tape::from_bytes(whole[..whole.len() - 1].to_vec()).unwrap();
    assert_eq!(tape.segments(), with.segments());
    assert!(tape.has_index() && tape.end().is_some());
}

#[test]
fn every_flipped_byte_is_told_and_nothing_wrong_is_read() {
    let whole = encode(&[window(0), window(1)]);
    let truth = Truth::of(&whole);
    let mut rng = Rng(7);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.below(8);
        let tape = Tape::from_bytes(bytes).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        let good = truth.check(&tape, &format!("byte {at}"));
        // One block is lost at most; without the dict or core, what depends on it.
        assert!(good > GROUPS, "byte {at}: only {good} groups left");
        assert_ne!(tape.verify(&|_| ()), [], "byte {at} flipped, not told");
    }
}

#[test]
fn blocks_lost_doubled_and_swapped() {
    let whole = sample();
    let truth = Truth::of(&whole);
    let spans = block_spans(&whole);
    let infos = Tape::from_bytes(whole.clone()).unwrap().blocks();
    let start = |i: usize| spans.get(i).map_or(whole.len(), |s| s.0);
    let piece = |i: usize| &whole[start(i)..start(i + 1)];
    for i in 1..spans.len() - 1 {
        let lost = [&whole[..start(i)], &whole[start(i + 1)..]].concat();
        let tape = Tape::from_bytes(lost).unwrap();
        let good = truth.check(&tape, &format!("block {i} lost"));
        let dependents = match infos[i].kind {
            // Gaps and stacks do not point into it.
            BlockKind::Dict => GROUPS - 2,
            BlockKind::SyscallsCore => 5,
            _ => usize::from(infos[i].segment.is_some()),
        };
        assert_eq!(good, 3 * GROUPS - dependents, "block {i} ({}) lost", infos[i].kind.name());
        assert_ne!(tape.findings(), [], "block {i} lost: not told on opening");

        let doubled = [&whole[..start(i + 1)], piece(i), &whole[start(i + 1)..]].concat();
        let tape = Tape::from_bytes(doubled).unwrap();
        assert_eq!(truth.check(&tape, &format!("block {i} doubled")), 3 * GROUPS);
        assert_ne!(tape.findings(), [], "block {i} doubled: not told on opening");
    }
    for i in 1..spans.len() - 2 {
        let swapped = [&whole[..start(i)], piece(i + 1), piece(i), &whole[start(i + 2)..]].concat();
        let tape = Tape::from_bytes(swapped).unwrap();
        assert_eq!(truth.check(&tape, &format!("blocks {i} swapped")), 3 * GROUPS);
        assert_ne!(tape.verify(&|_| ()), [], "blocks {i} swapped: not told");
    }
}

/// The block of a kind in segment 0, or of no segment: where it begins and ends.
fn span_of(whole: &[u8], kind: BlockKind) -> (usize, usize) {
    let infos = Tape::from_bytes(whole.to_vec()).unwrap().blocks();
    block_spans(whole)[infos.iter().position(|b| b.kind == kind).unwrap()]
}

#[test]
fn damaged_stacks_leave_everything_else() {
    let whole = encode(&[window(0)]);
    let truth = Truth::of(&whole);
    let (from, to) = span_of(&whole, BlockKind::Stacks);
    let mut rng = Rng(5);
    for at in from + 128..to {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.below(8);
        let tape = Tape::from_bytes(bytes).unwrap();
        assert!(matches!(tape.segment(0).stacks(), Err(Error::BadHash { .. })), "byte {at}");
        assert_eq!(truth.check(&tape, "stacks damaged"), GROUPS - 1, "byte {at}");
    }
}

#[test]
fn stacks_of_events_that_are_not_there_are_refused() {
    let whole = encode(&[window(0)]);
    let kinds = [BlockKind::SyscallsCore, BlockKind::Sched, BlockKind::Wakeups, BlockKind::Blocks, BlockKind::Signals];
    for kind in kinds.into_iter().chain([BlockKind::Samples, BlockKind::Sleepers]) {
        let (from, _) = span_of(&whole, kind);
        // The header says that there are none.
        let mut bytes = whole.clone();
        bytes[from + 72..from + 76].copy_from_slice(&0u32.to_le_bytes());
        fix_crc(&mut bytes, from);
        let tape = Tape::from_bytes(bytes).unwrap();
        let e = tape.segment(0).stacks().unwrap_err().to_string();
        assert!(e.contains(&format!("of {}, which has 0", kind.name())), "{kind:?}: {e}");
        assert!(tape.verify(&|_| ()).iter().any(|f| f.text.contains("which has 0")), "{kind:?}");
        // Its header is damaged: how many rows there were nobody knows.
        let mut bytes = whole.clone();
        bytes[from + 72] ^= 1;
        let tape = Tape::from_bytes(bytes).unwrap();
        let truth = Tape::from_bytes(whole.clone()).unwrap();
        assert_eq!(tape.segment(0).stacks().unwrap(), truth.segment(0).stacks().unwrap(), "{kind:?} lost");
    }
}

#[test]
fn names_are_found_however_the_tape_ends() {
    let whole = sample();
    let spans = block_spans(&whole);
    let infos = Tape::from_bytes(whole.clone()).unwrap().blocks();
    for (i, &(_, to)) in spans.iter().enumerate() {
        // Killed behind this block, or in the middle of the next one.
        for cut in [to, (to + 100).min(whole.len())] {
            let tape = Tape::from_bytes(whole[..cut].to_vec()).unwrap();
            let names = infos[..=i].iter().filter(|b| b.kind == BlockKind::Symbols).count();
            assert_eq!(tape.symbol_blocks(), names, "cut at {cut}");
            assert!(read_symbols(&tape).into_iter().all(|s| s.unwrap() == common::symbols()));
        }
    }
    let mut rng = Rng(3);
    for kind in [BlockKind::Symbols, BlockKind::Index] {
        let (from, to) = span_of(&whole, kind);
        for at in from..to {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << rng.below(8);
            let tape = Tape::from_bytes(bytes).unwrap();
            let good = read_symbols(&tape).into_iter().filter_map(Result::ok).collect::<Vec<_>>();
            assert_eq!(good.len(), if kind == BlockKind::Symbols { 1 } else { 2 }, "{kind:?}, byte {at}");
            assert!(good.iter().all(|s| *s == common::symbols()));
            assert_ne!(tape.verify(&|_| ()), []);
        }
    }
}

#[test]
fn two_tapes_in_one_file() {
    let (a, b) = (sample(), tape(*b"another tape 123", &[window(5)]));
    let truth = Truth::of(&a);
    let both = Tape::from_bytes([&a[..], &b].concat()).unwrap();
    assert_eq!(truth.check(&both, "a + b"), 3 * GROUPS);
    assert!(both.end().is_some() && both.has_index());
    assert!(both.findings()[0].text.contains("follow the end"), "{:?}", both.findings());
    // The first one has no end.
    let spans = block_spans(&a);
    let cut = spans[spans.len() - 2].0;
    let both = Tape::from_bytes([&a[..cut], &b].concat()).unwrap();
    assert_eq!(truth.check(&both, "cut a + b"), 3 * GROUPS);
    assert!(both.end().is_none());
    assert!(both.findings()[0].text.contains("another tape"), "{:?}", both.findings());
    // The first one is torn in a block: nothing of the second may be taken for it.
    let both = Tape::from_bytes([&a[..cut - 10], &b].concat()).unwrap();
    assert!(truth.check(&both, "torn a + b") >= 3 * GROUPS - 1);
    assert!(both.end().is_none());
}

#[test]
fn junk_in_the_middle_is_stepped_over() {
    let whole = sample();
    let truth = Truth::of(&whole);
    for &(at, _) in &block_spans(&whole)[1..] {
        for junk in [1, 8, 127, 70_000] {
            let bytes = [&whole[..at], &vec![0x8f; junk], &whole[at..]].concat();
            let tape = Tape::from_bytes(bytes).unwrap();
            assert_eq!(truth.check(&tape, "junk"), 3 * GROUPS, "{junk} bytes at {at}");
            assert!(tape.end().is_some());
            assert_ne!(tape.findings(), []);
        }
    }
}

#[test]
fn what_is_no_tape_is_told_apart() {
    assert!(matches!(Tape::from_bytes(Vec::new()), Err(Error::Empty)));
    for bytes in [&[1][..], &[0; 300], &[0xff; 70_000]] {
        let opened = Tape::from_bytes(bytes.to_vec());
        assert!(matches!(opened, Err(Error::NotATape { .. })), "{opened:?}");
    }
    for text in [&b"x"[..], b"#!/bin/sh\necho"] {
        let opened = Tape::from_bytes(text.to_vec());
        assert!(matches!(opened, Err(Error::Other(_))), "{opened:?}");
    }
    let mut newer = sample();
    newer[8] = 2;
    fix_crc(&mut newer, 0);
    assert!(matches!(Tape::from_bytes(newer), Err(Error::NewerMajor { found: 2, known: 1 })));
    let mut minor = sample();
    minor[10] = 9;
    fix_crc(&mut minor, 0);
    assert_eq!(Tape::from_bytes(minor).unwrap().version(), (1, 9));
}

#[test]
fn a_lost_session_does_not_lose_the_rest() {
    let mut bytes = sample();
    bytes[130] ^= 1;
    let tape = Tape::from_bytes(bytes).unwrap();
    assert!(!tape.session_is_whole());
    assert_eq!(tape.session().window_open, 1000, "from the first checkpoint");
    assert_eq!(Truth::of(&sample()).check(&tape, "no session"), 3 * GROUPS);
}

#[test]
fn features_and_kinds_of_the_future() {
    let whole = sample();
    let truth = Truth::of(&whole);
    let infos = Tape::from_bytes(whole.clone()).unwrap().blocks();
    let core = infos.iter().find(|b| b.kind == BlockKind::SyscallsCore).unwrap().offset as usize;
    // An incompat bit makes a hole of the block.
    let mut bytes = whole.clone();
    bytes[core + 97] = 1;
    fix_crc(&mut bytes, core);
    let tape = Tape::from_bytes(bytes).unwrap();
    assert_eq!(truth.check(&tape, "incompat"), 3 * GROUPS - 5);
    let dict = tape.segment(0).dict().unwrap();
    assert!(matches!(tape.segment(0).core(&dict), Err(Error::UnsupportedIncompat { bits: 256, .. })));
    // A compat bit and unknown flags do not.
    let mut bytes = whole.clone();
    bytes[core + 105] = 1;
    bytes[core + 15] = 0x80;
    fix_crc(&mut bytes, core);
    assert_eq!(truth.check(&Tape::from_bytes(bytes).unwrap(), "compat"), 3 * GROUPS);
    // An incompat bit of the session concerns the whole tape.
    let mut bytes = whole.clone();
    bytes[96] = 1;
    fix_crc(&mut bytes, 0);
    assert!(matches!(Tape::from_bytes(bytes), Err(Error::UnsupportedIncompat { bits: 1, .. })));
    // A kind nobody knows is stepped over: here the gaps of segment 0 become kind 77.
    let gaps = infos.iter().find(|b| b.kind == BlockKind::Gaps).unwrap().offset as usize;
    let mut bytes = whole;
    bytes[gaps + 12] = 77;
    fix_crc(&mut bytes, gaps);
    let tape = Tape::from_bytes(bytes).unwrap();
    assert_eq!(truth.check(&tape, "kind 77"), 3 * GROUPS - 1, "and its absence is an error, not an empty list");
    assert_eq!(tape.tape_id(), ID);
}

#[test]
fn random_bytes_behind_a_magic() {
    let mut rng = Rng(99);
    let whole = sample();
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..1 + rng.below(20) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next() as u8;
        }
        bytes.truncate(1 + rng.below(bytes.len()));
        exercise(&bytes);
    }
}

/// Rows of tables name stacks by number: one that the segment does not have refuses them, and lost stacks leave them.
#[test]
fn stacks_of_rows_are_those_of_the_segment() {
    let rows = |bytes: Vec<u8>| {
        let tape = Tape::from_bytes(bytes).unwrap();
        let segment = tape.segment(0);
        let (tables, stacks) = (segment.tables(&segment.dict().unwrap()), segment.stacks());
        (tables.map_err(|e| e.to_string()), stacks.map_err(|e| e.to_string()), tape.verify(&|_| ()).len())
    };
    let whole = encode(&[window(0)]);
    let (tables, stacks, _) = rows(whole.clone());
    let (tables, stacks) = (tables.unwrap(), stacks.unwrap());
    let codes = tables.iter().find_map(|table| table.stacks()).unwrap().to_vec();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1);
    // one is a call's too, one is of a row alone
    assert_eq!(codes.iter().max(), Some(&(stacks.distinct.len() as u64)));
    // the block of another segment has fewer stacks
    let few = Window { stacks: Vec::new(), events: Events { tables: Vec::new(), ..common::events(1000) }, ..window(0) };
    let one = Stack { of: StackOf::Sample, row: 0, user: vec![], kernel: vec![], status: StackStatus::Complete };
    let few = unseal(&encode(&[Window { stacks: vec![one], ..few }])).unwrap();
    let of = |blocks: &[systape_format::exercise::forge::ForgedBlock]| {
        blocks.iter().position(|block| block.header.kind == BlockKind::Stacks).unwrap()
    };
    let mut forged = unseal(&whole).unwrap();
    let (to, from) = (of(&forged), of(&few));
    // of two blocks with one number a reader takes the first
    let seq = forged[to].header.seq;
    forged[to] = few[from].clone();
    forged[to].header.seq = seq;
    forged.retain(|block| block.header.kind != BlockKind::Index);
    let (tables, stacks, findings) = rows(seal(&forged));
    let distinct = stacks.map(|stacks| stacks.distinct.len());
    assert_eq!(distinct, Ok(1));
    assert!(tables.unwrap_err().contains("of 1") && findings > 0);
    // damaged, and left out
    let spans = block_spans(&whole);
    let at =
        Tape::from_bytes(whole.clone()).unwrap().blocks().iter().position(|b| b.kind == BlockKind::Stacks).unwrap();
    let mut damaged = whole.clone();
    damaged[spans[at].1 - 9] ^= 0x55;
    let (tables, stacks, _) = rows(damaged.clone());
    assert!(stacks.is_err());
    assert_eq!(tables.unwrap().iter().find_map(|table| table.stacks()).unwrap(), codes);
    let copy = repair(&Tape::from_bytes(damaged).unwrap(), Vec::new(), *b"a copy of a test", &|_| ()).unwrap().0;
    let (tables, _, findings) = rows(copy);
    assert_eq!((tables.unwrap().len(), findings), (2, 0));
}

/// Each chunk defines the tables of its rows: any copy will do, and without one the rows are a hole.
#[test]
fn tables_are_read_while_one_definition_is_left() {
    let whole = sample();
    let truth = Truth::of(&whole);
    let blocks = unseal(&whole).unwrap();
    let copies: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].header.kind == BlockKind::TableDefs).collect();
    assert!(copies.len() > 1, "{copies:?}");
    let without = |gone: &[usize]| {
        let mut forged = blocks.clone();
        gone.iter().for_each(|&i| forged[i].set_raw(&[0; 8]));
        Tape::from_bytes(seal(&forged)).unwrap()
    };
    assert_eq!(truth.check(&without(&copies[1..]), "one is left"), 3 * GROUPS);
    let tape = without(&copies);
    assert_eq!(truth.check(&tape, "none is left"), 3 * GROUPS - 3);
    let told: Vec<String> = tape.verify(&|_| ()).into_iter().map(|finding| finding.text).collect();
    assert!(told.iter().any(|text| text.contains("is lost")), "{told:?}");
}

//! What a tape may cost: no more memory than its bounds allow, whatever it claims. The allocator counts.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systape_format::exercise::bombs::bombs;
use systape_format::exercise::exercise;
use systape_format::exercise::forge::{seal, unseal};
use systape_format::exercise::mutate::{Rng, SampleTape, mutate};
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::{Field, MAX_CELLS};
use systape_format::{BlockKind, Encoder, SegmentBuilder, Tape, Writer};

/// Memory in use, and the most there was since it was asked last.
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that `f` takes at most, at one time.
fn peak(f: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    f();
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

/// One test: what others allocate meanwhile would count.
#[test]
fn memory_is_bounded() {
    let whole = common::sample();
    a_bomb_costs_its_block_only(&whole);
    constant_columns_are_bounded();
    let plain = peak(|| exercise(&whole));
    let blocks = unseal(&whole).unwrap();

    // A block of 8 MiB is decompressed into 8 MiB; its strings are copied, as often as the traversal limit lets a reader walk over
    // it (4 times).
    let most = 64 << 20;
    let mut read = 0;
    let mut kinds = std::collections::HashSet::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| kinds.insert(block.header.kind)) {
        for (name, raw) in bombs() {
            for rows in [10_000, 1 << 20] {
                let mut forged = blocks.clone();
                forged[at].set_raw(&raw);
                forged[at].header.rows = rows;
                let bytes = seal(&forged);
                let took = peak(|| exercise(&bytes));
                let kind = block.header.kind.name();
                assert!(took < most, "{name} in {kind} with {rows} rows: {} MiB", took >> 20);
                read += usize::from(Tape::from_bytes(bytes).is_ok());
            }
        }
    }
    assert!(read > 0);
    assert!(plain < 4 << 20, "a tape of {} bytes takes {plain}", whole.len());

    // SYSTAPE_MUTATIONS=10000 is the long run.
    let count = std::env::var("SYSTAPE_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let samples = [SampleTape::new(whole).unwrap(), SampleTape::new(common::encode(&[common::window(3)])).unwrap()];
    let mut greatest = 0;
    for seed in 0..count {
        let (change, bytes) = mutate(&mut Rng::new(seed), &samples);
        let took = peak(|| exercise(&bytes));
        assert!(took < most, "seed {seed}, {change:?}: {} MiB", took >> 20);
        greatest = greatest.max(took);
    }
    println!("{count} changed tapes: {greatest} bytes at most; unchanged: {plain}");
}

fn a_bomb_costs_its_block_only(whole: &[u8]) {
    let truth = common::Truth::of(whole);
    let blocks = unseal(whole).unwrap();
    let args = blocks.iter().position(|b| b.header.kind == BlockKind::SyscallsArgs).unwrap();
    for (name, raw) in bombs() {
        let mut forged = blocks.clone();
        forged[args].set_raw(&raw);
        let tape = Tape::from_bytes(seal(&forged)).unwrap();
        assert_eq!(truth.check(&tape, name), 3 * common::GROUPS - 1, "{name}");
    }
}

/// Constant columns take no bytes in a tape: only the limit of cells bounds what they become.
fn constant_columns_are_bounded() {
    let column =
        |at: usize| ColumnDef::stored(format!("c{at}"), if at == 0 { Type::Time } else { Type::Wide }, None, "");
    let def = |columns: usize| {
        let columns: Vec<ColumnDef> = (0..columns).map(column).collect();
        Arc::new(TableDef { name: format!("x:{}", columns.len()).into(), doc: "".into(), columns: columns.into() })
    };
    for (columns, rows, fits) in [(128, 16 << 10, true), (128, (16 << 10) + 1, false), (2, MAX_CELLS / 2, true)] {
        let def = def(columns);
        let mut builder = SegmentBuilder::new(0);
        let values = vec![Field::Number(7); columns - 1];
        (0..rows).for_each(|_| _ = builder.push_table_row(&def, 5, &values).unwrap());
        let mut writer = Writer::create(Vec::new(), common::ID, &common::session()).unwrap();
        writer.segment(Encoder::new(1).segment(builder.finish(10)).unwrap()).unwrap();
        let bytes = writer.finish(&common::end(10)).unwrap();
        assert!(bytes.len() < 64 << 10, "{} bytes", bytes.len());
        let took = peak(|| {
            let tape = Tape::from_bytes(bytes).unwrap();
            let segment = tape.segment(0);
            let read = segment.tables(&segment.dict().unwrap());
            match read {
                Ok(tables) => assert!(fits && tables[0].columns[0].iter().all(|value| *value == 7)),
                Err(error) => assert!(!fits && error.to_string().contains("cells"), "{error}"),
            }
        });
        assert!(took < 40 << 20, "{columns} columns, {rows} rows: {} MiB", took >> 20);
    }
}

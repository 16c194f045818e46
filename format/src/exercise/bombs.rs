//! Messages made to cost a reader more than they cost their maker.
//!
//! They know nothing of the schema: every pointer of the root is the same bomb, so that it goes off whatever a decoder reads.

/// Words of data and pointers of the root: more than any message of ours has.
const ROOT: u16 = 40;
/// The most a list can claim to have.
const MOST: u64 = (1 << 29) - 1;
/// Size codes of a list pointer.
const VOID: u64 = 0;
const BIT: u64 = 1;
const BYTE: u64 = 2;
const EIGHT_BYTES: u64 = 5;
const POINTER: u64 = 6;
const COMPOSITE: u64 = 7;

fn list(offset: i64, code: u64, count: u64) -> u64 {
    (offset as u64 & 0x3fff_ffff) << 2 | 1 | (code | count << 3) << 32
}

fn structure(offset: i64, data: u16, pointers: u16) -> u64 {
    (offset as u64 & 0x3fff_ffff) << 2 | u64::from(data) << 32 | u64::from(pointers) << 48
}

/// The word in front of a composite list.
fn tag(count: u64, data: u16, pointers: u16) -> u64 {
    count << 2 | u64::from(data) << 32 | u64::from(pointers) << 48
}

/// A message: a root full of `value`, all of whose pointers are `pointer` to `words` behind it.
fn message(value: u64, words: &[u64], pointer: impl Fn(i64) -> u64) -> Vec<u8> {
    let mut all = vec![structure(0, ROOT, ROOT)];
    all.resize(all.len() + usize::from(ROOT), value);
    for left in (0..i64::from(ROOT)).rev() {
        all.push(pointer(left));
    }
    all.extend_from_slice(words);
    let table = (all.len() as u64) << 32;
    [table].iter().chain(&all).flat_map(|word| word.to_le_bytes()).collect()
}

/// A list of structs of 4 words and 4 pointers; each pointer is `pointer`, given how far the first word behind the list is.
fn structs(count: usize, value: u64, pointer: impl Fn(i64) -> u64) -> Vec<u64> {
    let mut words = vec![tag(count as u64, 4, 4)];
    for i in 0..count {
        words.extend([value; 4]);
        for j in 0..4 {
            words.push(pointer(((count - i) * 8 - 4 - j - 1) as i64));
        }
    }
    words
}

/// Bombs by name.
pub fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    const MIB: u64 = 1 << 20;
    let text = vec![0x0041_4141_4141_4141; (MIB / 8) as usize];
    let mut out = Vec::new();
    for value in [0, 1, 7, u64::MAX, 1 << 63] {
        // 40,000 pointers share a mebibyte.
        let mut shared = structs(10_000, value, |left| list(left, BYTE, MIB));
        let words = shared.len() as u64 - 1;
        shared.extend_from_slice(&text);
        out.push(("structs that share bytes", message(value, &shared, |left| list(left, COMPOSITE, words))));

        // Structs whose lists are the list they are in.
        let back = structs(2_000, value, |left| list(left - 2_000 * 8 - 1, COMPOSITE, 2_000 * 8));
        out.push(("structs that hold themselves", message(value, &back, |left| list(left, COMPOSITE, 2_000 * 8))));
    }
    out.push(("structs of no size", message(1, &[tag(MOST, 0, 0)], |left| list(left, COMPOSITE, 0))));
    out.push(("nothing, often", message(1, &[0], |left| list(left, VOID, MOST))));
    out.push(("bits beyond the end", message(1, &[0], |left| list(left, BIT, MOST))));
    out.push(("bytes", message(1, &text, |left| list(left, BYTE, MIB))));
    out.push(("numbers", message(1, &text, |left| list(left, EIGHT_BYTES, MIB / 8))));
    // The k-th pointer of the list is the list itself.
    let turns: Vec<u64> = (0..1000).map(|k| list(-k - 1, POINTER, 1000)).collect();
    out.push(("lists that hold themselves", message(1, &turns, |left| list(left, POINTER, 1000))));
    // Far pointers to themselves.
    out.push(("far pointers", message(1, &[2], |left| 2 | ((1 + 2 * i64::from(ROOT) - left - 1) as u64) << 3)));
    out.push((
        "structs that hold themselves",
        message(1, &[0], |left| structure(left - 2 * i64::from(ROOT), ROOT, ROOT)),
    ));
    out
}

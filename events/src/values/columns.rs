//! What is done for each row of a column where a table is read: rows are chosen, put in order and written. It stands here because this crate
//! is built to be fast, also where what uses it is built to be small.

use std::ops::Range;

use systape_format::model::CallState;

/// The code of a text that is NULL.
pub const NONE: u32 = u32::MAX;

/// The rows of `rows` that are in any state but `left_out`, as runs of rows that follow each other.
pub fn runs_without(states: &[CallState], rows: Range<usize>, left_out: CallState) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut from = rows.start;
    while let Some(len) = states.get(from..rows.end).and_then(|rest| rest.iter().position(|state| *state == left_out)) {
        if len > 0 {
            runs.push(from..from + len);
        }
        from += len + 1;
    }
    if from < rows.end {
        runs.push(from..rows.end);
    }
    runs
}

/// The values of these rows.
pub fn taken<T: Copy>(values: &[T], runs: &[Range<usize>]) -> Vec<T> {
    let mut all = Vec::with_capacity(runs.iter().map(Range::len).sum());
    runs.iter().for_each(|run| all.extend_from_slice(&values[run.clone()]));
    all
}

/// The values of these rows as numbers with a sign, whose bits are the same.
pub fn taken_signed(values: &[u64], runs: &[Range<usize>]) -> Vec<i64> {
    let mut all = Vec::with_capacity(runs.iter().map(Range::len).sum());
    runs.iter().for_each(|run| all.extend(values[run.clone()].iter().map(|value| value.cast_signed())));
    all
}

/// Which of `states` are others than `usual`, ascending; few are.
pub fn others(states: &[CallState], usual: CallState) -> Vec<usize> {
    // whole parts are looked at first: what nobody is, is in none of them
    const PART: usize = 64;
    let mut all = Vec::new();
    for (from, part) in (0..).step_by(PART).zip(states.chunks(PART)) {
        if part.iter().fold(true, |all, state| all & (*state == usual)) {
            continue;
        }
        all.extend((from..).zip(part).filter(|(_, state)| **state != usual).map(|(at, _)| at));
    }
    all
}

/// Which of `values` are negative, ascending; few are.
pub fn negative(values: &[i64]) -> Vec<usize> {
    let none = values.iter().fold(0, |bits, value| bits | value) >= 0;
    if none {
        return Vec::new();
    }
    (0..).zip(values).filter(|(_, value)| **value < 0).map(|(at, _)| at).collect()
}

/// Points in time since `open`.
pub fn since(times: &[i64], open: u64) -> Vec<i64> {
    times.iter().map(|time| time.cast_unsigned().wrapping_sub(open).cast_signed()).collect()
}

/// What each of `codes` stands for among `values`: that of a code without a value is 0.
pub fn looked_up(codes: &[u32], values: &[i64]) -> Vec<i64> {
    codes.iter().map(|code| values.get(*code as usize).copied().unwrap_or(0)).collect()
}

/// The order of rows by their times, equals in the order that they have, i64::MAX (not known) at the end; None: they are in order. Most
/// rows are, because those that are not began long before they ended.
pub fn order_of(times: &[i64]) -> Option<Vec<u32>> {
    if times.is_sorted() {
        return None;
    }
    // those that are in order among themselves, and the others
    let (mut leading, mut late, mut unknown) = (Vec::with_capacity(times.len()), Vec::new(), Vec::new());
    let mut latest = i64::MIN;
    for (row, &time) in (0_u32..).zip(times) {
        if time == i64::MAX {
            unknown.push(row);
        } else if time < latest {
            late.push((time, row));
        } else {
            latest = time;
            leading.push(row);
        }
    }
    late.sort_unstable();
    let mut order = Vec::with_capacity(times.len());
    let mut rest = leading.iter().copied();
    let mut next = rest.next();
    for (time, row) in late {
        while let Some(before) = next.filter(|before| (times[*before as usize], *before) < (time, row)) {
            order.push(before);
            next = rest.next();
        }
        order.push(row);
    }
    order.extend(next);
    order.extend(rest);
    order.extend(unknown);
    Some(order)
}

/// The values in this order of their rows, each of which is there.
pub fn in_order<T: Copy>(values: &[T], order: &[u32]) -> Vec<T> {
    order.iter().map(|row| values[*row as usize]).collect()
}

/// Adds numbers as bytes, the lowest first.
pub fn put_longs(bytes: &mut Vec<u8>, values: &[i64]) {
    let from = bytes.len();
    bytes.resize(from + 8 * values.len(), 0);
    for (place, value) in bytes[from..].as_chunks_mut::<8>().0.iter_mut().zip(values) {
        *place = value.to_le_bytes();
    }
}

/// Marks which texts `codes` stand for.
pub fn mark_used(codes: &[u32], used: &mut [bool]) {
    for code in codes {
        if let Some(used) = used.get_mut(*code as usize) {
            *used = true;
        }
    }
}

/// Bytes of a number that tells `texts` texts and [`NONE`] apart.
pub fn code_width(texts: usize) -> usize {
    match texts {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Adds what `codes` are called by `new`, as many bytes of each as `width` says; [`NONE`] has all bits. How many of them are that.
pub fn put_codes(bytes: &mut Vec<u8>, codes: &[u32], new: &[u32], width: usize) -> usize {
    let of = |code: &u32| new.get(*code as usize).copied().unwrap_or(NONE);
    let from = bytes.len();
    bytes.resize(from + width * codes.len(), 0);
    let mut nulls = 0;
    let mut put = |code: &u32| {
        let code = of(code);
        nulls += usize::from(code == NONE);
        code
    };
    match width {
        1 => bytes[from..].iter_mut().zip(codes).for_each(|(place, code)| *place = put(code) as u8),
        2 => {
            let places = bytes[from..].as_chunks_mut::<2>().0;
            places.iter_mut().zip(codes).for_each(|(place, code)| *place = (put(code) as u16).to_le_bytes());
        }
        _ => {
            let places = bytes[from..].as_chunks_mut::<4>().0;
            places.iter_mut().zip(codes).for_each(|(place, code)| *place = put(code).to_le_bytes());
        }
    }
    nulls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_state_are_left_out() {
        let of = |states: &[u8]| -> Vec<CallState> {
            states.iter().map(|child| if *child == 1 { CallState::CloneChild } else { CallState::Complete }).collect()
        };
        let runs = |states: &[u8], rows| runs_without(&of(states), rows, CallState::CloneChild);
        assert_eq!(runs(&[0, 0, 1, 0, 1, 1, 0], 0..7), [0..2, 3..4, 6..7]);
        assert_eq!(runs(&[1, 0, 1, 0, 1], 1..4), [1..2, 3..4]);
        assert_eq!((runs(&[1, 1], 0..2), runs(&[], 0..0), runs(&[0, 0], 1..1)), (vec![], vec![], vec![]));
        assert_eq!(taken(&[5, 6, 7, 8], &[0..1, 2..4]), [5, 7, 8]);
        assert_eq!(taken_signed(&[5, u64::MAX, 7], std::slice::from_ref(&(1..3))), [-1, 7]);
        let mut many = vec![0; 200];
        (many[3], many[63], many[64], many[199]) = (1, 1, 1, 1);
        assert_eq!(others(&of(&many), CallState::Complete), [3, 63, 64, 199]);
        assert_eq!((negative(&[3, -1, 0, i64::MIN]), negative(&[0, 1])), (vec![1, 3], vec![]));
    }

    #[test]
    fn rows_are_in_the_order_of_a_stable_sort() {
        let mut seed = 7_u64;
        for len in 0..60 {
            let times: Vec<i64> = (0..len)
                .map(|at| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // a few are late, some are equal, some are not known
                    match seed >> 60 {
                        0 | 1 => at / 4,
                        2 => i64::MAX,
                        _ => at / 2,
                    }
                })
                .collect();
            let mut wanted: Vec<u32> = (0..len as u32).collect();
            wanted.sort_by_key(|row| times[*row as usize]);
            let order = order_of(&times);
            assert_eq!(order.is_none(), times.is_sorted());
            let order = order.unwrap_or_else(|| (0..len as u32).collect());
            assert_eq!(order, wanted, "{times:?}");
            assert!(in_order(&times, &order).is_sorted());
        }
    }

    #[test]
    fn codes_are_as_wide_as_their_texts_need() {
        assert_eq!([0, 255, 256, 65_535, 65_536].map(code_width), [1, 1, 2, 2, 4]);
        let codes = [1, NONE, 0, 9];
        for (width, none) in [(1, 0xff), (2, 0xffff), (4, NONE)] {
            let mut bytes = vec![7];
            assert_eq!(put_codes(&mut bytes, &codes, &[3, 254], width), 2);
            let made: Vec<u32> = bytes[1..]
                .chunks(width)
                .map(|code| code.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
                .collect();
            assert_eq!(made, [254, none, 3, none]);
        }
        let mut used = [false; 3];
        mark_used(&[2, NONE, 0], &mut used);
        assert_eq!(used, [true, false, true]);
    }

    #[test]
    fn numbers_are_written_and_looked_up() {
        let mut bytes = Vec::new();
        put_longs(&mut bytes, &[1, -1]);
        assert_eq!(bytes, [1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(since(&[10, 3], 5), [5, -2]);
        assert_eq!(looked_up(&[1, NONE, 0], &[7, 8]), [8, 0, 7]);
    }
}

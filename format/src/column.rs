//! Columns: one unsigned number per row, in the smallest width that holds most of them.
//!
//! An encoder may choose any width; a decoder accepts every one. A value that does not fit the narrow width is an
//! *exception* (patched): 12 bytes for its row and its value. The choice here minimises bytes before compression.
//!
//! Decoding works on whole slices without a branch per row. The caller chooses the type of the values; a value that
//! does not fit it refuses the block.

use foldhash::{HashMap, HashMapExt};

use crate::error::{Error, Result, capnp_err};
use crate::trace_capnp::{Transform, column};

/// Least average number of rows per value of a listed (dictionary) column, beyond the first values: with fewer, the
/// lookup costs more than it saves.
const LISTED_ROWS: usize = 8;
const LISTED_FREE: usize = 1024;
/// Bytes an exception takes before compression: u32 row, u64 value.
const EXCEPTION: usize = 12;

/// Signed to unsigned such that small magnitudes stay small: 0, -1, 1, -2 … become 0, 1, 2, 3 …
pub(crate) fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

/// Undoes [`zigzag`].
pub(crate) fn unzigzag(v: u64) -> i64 {
    ((v >> 1) as i64) ^ -((v & 1) as i64)
}

/// Layout of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Const(u64),
    U8,
    /// Byte-stream split into this many bytes a row, lowest byte of all rows first: the random low bytes do not spoil
    /// the compression of the others.
    Planes(u32),
}

/// A layout, the number of exceptions to it, and its bytes.
#[derive(Clone, Copy, Debug)]
struct LayoutChoice {
    layout: Layout,
    exceptions: usize,
    bytes: usize,
}

impl LayoutChoice {
    fn new(layout: Layout, n: usize, exceptions: usize) -> Self {
        let each = match layout {
            Layout::Const(_) => 0,
            Layout::U8 => 1,
            Layout::Planes(width) => width as usize,
        };
        Self { layout, exceptions, bytes: n * each + EXCEPTION * exceptions }
    }
}

/// The layout with the fewest bytes.
fn choose<T: Copy + Into<u64>>(values: &[T]) -> LayoutChoice {
    let (mut any, mut all) = (0u64, u64::MAX);
    for &v in values {
        any |= v.into();
        all &= v.into();
    }
    let n = values.len();
    if values.is_empty() || any == all {
        return LayoutChoice::new(Layout::Const(any), n, 0);
    }
    let over = if any > 0xff { wide(values) } else { [0; 3] };
    let (base, others) = most_frequent(values);
    let narrower = [
        LayoutChoice::new(Layout::Const(base), n, others),
        LayoutChoice::new(Layout::U8, n, over[0]),
        LayoutChoice::new(Layout::Planes(2), n, over[1]),
        LayoutChoice::new(Layout::Planes(4), n, over[2]),
    ];
    let widest = LayoutChoice::new(Layout::Planes(8), n, 0);
    narrower.into_iter().chain([widest]).min_by_key(|choice| choice.bytes).unwrap_or(widest)
}

/// Number of values that take more than 1, 2 and 4 bytes.
fn wide<T: Copy + Into<u64>>(values: &[T]) -> [usize; 3] {
    let mut over = [0; 3];
    // mostly neighbours are alike: what none of them needs is not counted one by one
    for part in values.chunks(64) {
        let any = part.iter().fold(0, |any, &v| any | v.into());
        for (over, limit) in over.iter_mut().zip([0xff, 0xffff, 0xffff_ffff]) {
            if any <= limit {
                break;
            }
            *over += part.iter().filter(|&&v| v.into() > limit).count();
        }
    }
    over
}

/// A likely most frequent value (by majority in a sample), and the number of rows with another value.
fn most_frequent<T: Copy + Into<u64>>(values: &[T]) -> (u64, usize) {
    let step = (values.len() / 61).max(1);
    let (mut base, mut votes) = (0u64, 0u32);
    for &v in values.iter().step_by(step) {
        let v = v.into();
        match votes {
            0 => (base, votes) = (v, 1),
            _ if v == base => votes += 1,
            _ => votes -= 1,
        }
    }
    (base, values.iter().filter(|&&v| v.into() != base).count())
}

/// An estimate of the bits that an entropy coder needs for values, regardless of their neighbours.
pub(crate) fn bits(values: impl Iterator<Item = u64>) -> f64 {
    // Small values each count for themselves, large ones by their length and the 4 bits after the leading one; the
    // bits below those cost what they are.
    const SMALL: u64 = 1024;
    let mut counts = vec![0u32; SMALL as usize + 64 * 16];
    let (mut n, mut low_bits) = (0u32, 0u64);
    for v in values {
        let bucket = if v < SMALL {
            v
        } else {
            let shift = u64::from(v.ilog2()) - 4;
            low_bits += shift;
            SMALL + shift * 16 + (v >> shift & 15)
        };
        counts[bucket as usize] += 1;
        n += 1;
    }
    let code: f64 =
        counts.iter().filter(|&&c| c > 0).map(|&c| f64::from(c) * (f64::from(n) / f64::from(c)).log2()).sum();
    code + low_bits as f64
}

/// Writes unsigned values.
pub(crate) fn put<T: Copy + Into<u64>>(col: column::Builder<'_>, values: &[T]) {
    put_as(col, Transform::None, values, choose(values));
}

/// Writes signed values, zigzagged only if one is negative.
pub(crate) fn put_signed(col: column::Builder<'_>, values: &[i64]) {
    if values.iter().any(|&v| v < 0) {
        let folded: Vec<u64> = values.iter().map(|&v| zigzag(v)).collect();
        put_as(col, Transform::Zigzag, &folded, choose(&folded));
    } else {
        put(col, &values.iter().map(|&v| v as u64).collect::<Vec<_>>());
    }
}

/// Writes unsigned values with few distinct ones: listed (dictionary) if that takes fewer bytes.
pub(crate) fn put_repeating(mut col: column::Builder<'_>, values: &[u64]) {
    let plain = choose(values);
    if let Some((list, places)) = (plain.bytes > values.len()).then(|| list(values)).flatten() {
        let narrow = choose(&places);
        if narrow.bytes + 8 * list.len() < plain.bytes {
            let mut slots = col.reborrow().init_values(list.len() as u32);
            list.iter().enumerate().for_each(|(i, &value)| slots.set(i as u32, value));
            return put_as(col, Transform::Listed, &places, narrow);
        }
    }
    put_as(col, Transform::None, values, plain);
}

/// Writes unsigned values that each differ little from the one before.
pub(crate) fn put_running(col: column::Builder<'_>, values: &[u64]) {
    let mut before = 0;
    let step = |&v: &u64| zigzag(v.wrapping_sub(std::mem::replace(&mut before, v)).cast_signed());
    let deltas: Vec<u64> = values.iter().map(step).collect();
    let (plain, delta) = (choose(values), choose(&deltas));
    if delta.bytes < plain.bytes {
        put_as(col, Transform::Delta, &deltas, delta);
    } else {
        put_as(col, Transform::None, values, plain);
    }
}

/// The distinct values in order of first use, and each row's index among them; None when there are many.
fn list(values: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    let (mut list, mut places) = (Vec::new(), Vec::with_capacity(values.len()));
    // seeded: the values are chosen by the programs that are recorded
    let mut known: HashMap<u64, u32> = HashMap::with_capacity(LISTED_FREE);
    let mut last = None;
    for (row, &value) in values.iter().enumerate() {
        let place = match last {
            Some((before, place)) if before == value => place,
            _ => *known.entry(value).or_insert_with(|| {
                list.push(value);
                list.len() as u32 - 1
            }),
        };
        // most columns of many values show it soon
        if list.len() > LISTED_FREE + row / LISTED_ROWS {
            return None;
        }
        places.push(place);
        last = Some((value, place));
    }
    Some((list, places))
}

/// Writes the values after `transform`.
fn put_as<T: Copy + Into<u64>>(mut col: column::Builder<'_>, transform: Transform, values: &[T], choice: LayoutChoice) {
    col.set_transform(transform);
    let n = values.len() as u32;
    let count = choice.exceptions;
    let exceptions: Vec<(u32, u64)> = match choice.layout {
        Layout::Const(base) => {
            col.set_const(base);
            exceptions(values, count, |v| v != base)
        }
        Layout::U8 => {
            let slots = col.reborrow().init_u8(n);
            slots.iter_mut().zip(values).for_each(|(slot, &v)| {
                let v: u64 = v.into();
                *slot = if v <= 0xff { v as u8 } else { 0 };
            });
            exceptions(values, count, |v| v > 0xff)
        }
        Layout::Planes(width) => {
            let max = u64::MAX >> (64 - 8 * width);
            let planes = col.reborrow().init_planes(n * width);
            for (k, plane) in planes.chunks_exact_mut(values.len()).enumerate() {
                plane.iter_mut().zip(values).for_each(|(slot, &v)| {
                    let v: u64 = v.into();
                    *slot = if v <= max { (v >> (8 * k)) as u8 } else { 0 };
                });
            }
            exceptions(values, count, |v| v > max)
        }
    };
    if !exceptions.is_empty() {
        let mut rows = col.reborrow().init_exception_rows(exceptions.len() as u32);
        for (i, &(row, _)) in exceptions.iter().enumerate() {
            rows.set(i as u32, row);
        }
        let mut list = col.init_exception_values(exceptions.len() as u32);
        for (i, &(_, value)) in exceptions.iter().enumerate() {
            list.set(i as u32, value);
        }
    }
}

/// Rows and values of the `count` exceptions.
fn exceptions<T: Copy + Into<u64>>(values: &[T], count: usize, is: impl Fn(u64) -> bool) -> Vec<(u32, u64)> {
    let rows = (0..).zip(values).map(|(row, &v)| (row, v.into()));
    rows.filter(|&(_, v)| is(v)).take(count).collect()
}

/// A type that a column can be decoded to.
pub(crate) trait ColumnValue: Copy + Ord + Into<u64> {
    /// Greatest value.
    const MAX: u64;
    /// The low bits.
    fn cut(v: u64) -> Self;
}

macro_rules! cell {
    ($($t:ty)*) => { $(impl ColumnValue for $t {
        const MAX: u64 = <$t>::MAX as u64;
        fn cut(v: u64) -> Self { v as $t }
    })* };
}
cell!(u8 u16 u32 u64);

/// Block and column, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    /// Kind of the block.
    pub(crate) block: &'static str,
    /// Name of the column.
    pub(crate) column: &'static str,
}

impl Name {
    fn invalid(self, why: String) -> Error {
        Error::invalid(self.block, format!("column {}: {why}", self.column))
    }
}

/// Appends `slice` to `out`; refuses values that `T` cannot hold.
fn extend<S: ColumnValue, T: ColumnValue>(name: Name, slice: &[S], n: usize, out: &mut Vec<T>) -> Result<()> {
    if slice.len() != n {
        return Err(name.invalid(format!("{} values for {n} rows", slice.len())));
    }
    if S::MAX > T::MAX
        && let Some(&max) = slice.iter().max().filter(|&&max| max.into() > T::MAX)
    {
        return Err(name.invalid(format!("value {} > {}", max.into(), T::MAX)));
    }
    out.extend(slice.iter().map(|&v| T::cut(v.into())));
    Ok(())
}

/// Appends a primitive list to `$out`.
macro_rules! extend_list {
    ($name:expr, $list:expr, $n:expr, $out:expr) => {{
        let list = $list.map_err(capnp_err($name.block))?;
        if list.len() as usize != $n {
            return Err($name.invalid(format!("{} values for {} rows", list.len(), $n)));
        }
        #[cfg(target_endian = "little")]
        let slice = list.as_slice();
        #[cfg(not(target_endian = "little"))]
        let slice = None;
        match slice {
            Some(slice) => extend($name, slice, $n, $out)?,
            // Not contiguous: a list of structs, as a later schema might have it.
            None => extend($name, &list.iter().collect::<Vec<_>>(), $n, $out)?,
        }
    }};
}

/// Appends values of a byte-stream split column.
fn extend_planes<T: ColumnValue>(name: Name, planes: &[u8], n: usize, out: &mut Vec<T>) -> Result<()> {
    let width = planes.len().checked_div(n).unwrap_or(0);
    if !(2..=8).contains(&width) || width * n != planes.len() {
        return Err(name.invalid(format!("{} bytes in planes for {n} rows", planes.len())));
    }
    let (low, high) = planes.split_at(n);
    if width == 2 && T::MAX >= 0xffff {
        // most are: without the copy
        out.extend(low.iter().zip(high).map(|(&low, &high)| T::cut(u64::from(low) | u64::from(high) << 8)));
        return Ok(());
    }
    let mut values = vec![0u64; n];
    for (k, plane) in planes.chunks_exact(n).enumerate() {
        values.iter_mut().zip(plane).for_each(|(value, &byte)| *value |= u64::from(byte) << (8 * k));
    }
    extend(name, &values, n, out)
}

/// Reads `n` unsigned values into `out` (cleared first). False: the column is absent and `out` stays empty.
pub(crate) fn get<T: ColumnValue>(name: Name, col: column::Reader<'_>, n: usize, out: &mut Vec<T>) -> Result<bool> {
    out.clear();
    let which = col.which().map_err(|e| name.invalid(format!("unknown layout {}", e.0)))?;
    match which {
        column::Absent(()) => return Ok(false),
        column::Const(v) if v > T::MAX => return Err(name.invalid(format!("value {v} > {}", T::MAX))),
        column::Const(v) => out.resize(n, T::cut(v)),
        column::U8(data) => extend(name, data.map_err(capnp_err(name.block))?, n, out)?,
        column::U16(list) => extend_list!(name, list, n, out),
        column::U32(list) => extend_list!(name, list, n, out),
        column::U64(list) => extend_list!(name, list, n, out),
        column::Planes(data) => extend_planes(name, data.map_err(capnp_err(name.block))?, n, out)?,
    }
    get_exceptions(name, col, out)?;
    match col.get_transform() {
        Ok(Transform::None) => Ok(true),
        Ok(Transform::Zigzag) if T::MAX == u64::MAX => {
            out.iter_mut().for_each(|v| *v = T::cut(unzigzag((*v).into()) as u64));
            Ok(true)
        }
        Ok(Transform::Zigzag) => Err(name.invalid("zigzag in a column without sign".to_owned())),
        Ok(Transform::Listed) => {
            take_listed(name, col, out)?;
            Ok(true)
        }
        Ok(Transform::Delta) if T::MAX == u64::MAX => {
            let mut sum = 0u64;
            out.iter_mut().for_each(|v| {
                sum = sum.wrapping_add_signed(unzigzag((*v).into()));
                *v = T::cut(sum);
            });
            Ok(true)
        }
        Ok(Transform::Delta) => Err(name.invalid("delta in a column that is not one of 64 bits".to_owned())),
        Ok(Transform::Unknown) => Err(name.invalid("transform 0".to_owned())),
        Err(e) => Err(name.invalid(format!("unknown transform {}", e.0))),
    }
}

/// Replaces indices into the list by its values.
fn take_listed<T: ColumnValue>(name: Name, col: column::Reader<'_>, out: &mut [T]) -> Result<()> {
    let list = col.get_values().map_err(capnp_err(name.block))?;
    let mut values: Vec<T> = Vec::with_capacity(list.len() as usize);
    for value in list {
        if value > T::MAX {
            return Err(name.invalid(format!("value {value} > {}", T::MAX)));
        }
        values.push(T::cut(value));
    }
    for slot in out {
        let place: u64 = (*slot).into();
        *slot = *values
            .get(place as usize)
            .ok_or_else(|| name.invalid(format!("value {place} of a list of {}", values.len())))?;
    }
    Ok(())
}

fn get_exceptions<T: ColumnValue>(name: Name, col: column::Reader<'_>, out: &mut [T]) -> Result<()> {
    if !col.has_exception_rows() && !col.has_exception_values() {
        return Ok(());
    }
    let rows = col.get_exception_rows().map_err(capnp_err(name.block))?;
    let values = col.get_exception_values().map_err(capnp_err(name.block))?;
    if rows.len() != values.len() {
        return Err(name.invalid(format!("{} exception rows, {} values", rows.len(), values.len())));
    }
    let mut least = 0;
    for (row, value) in rows.iter().zip(values.iter()) {
        let n = out.len();
        if row < least {
            return Err(name.invalid(format!("exception row {row} after {least}: not ascending")));
        }
        let slot = out.get_mut(row as usize).ok_or_else(|| name.invalid(format!("exception row {row} of {n}")))?;
        if value > T::MAX {
            return Err(name.invalid(format!("value {value} > {}", T::MAX)));
        }
        *slot = T::cut(value);
        least = row + 1;
    }
    Ok(())
}

/// Decodes a column as [`get`] does, which must be present.
pub(crate) fn need<T: ColumnValue>(name: Name, col: column::Reader<'_>, n: usize, out: &mut Vec<T>) -> Result<()> {
    if get(name, col, n, out)? { Ok(()) } else { Err(name.invalid("absent, but every tape must have it".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::new_message;

    fn with_column<R>(write: impl FnOnce(column::Builder<'_>), read: impl FnOnce(column::Reader<'_>) -> R) -> R {
        let mut message = new_message(1 << 16);
        write(message.init_root());
        read(message.get_root_as_reader().unwrap())
    }

    const NAME: Name = Name { block: "test", column: "c" };

    fn round_trip(values: &[u64]) {
        let got = with_column(
            |col| put(col, values),
            |col| {
                let mut out = vec![7u64];
                assert!(get(NAME, col, values.len(), &mut out).unwrap());
                out
            },
        );
        assert_eq!(got, values);
        let signed: Vec<i64> = values.iter().map(|&v| v as i64).collect();
        let got = with_column(
            |col| put_signed(col, &signed),
            |col| {
                let mut out: Vec<u64> = Vec::new();
                get(NAME, col, values.len(), &mut out).map(|_| out).unwrap()
            },
        );
        assert_eq!(got, values, "signed");
    }

    #[test]
    fn layouts_are_the_smallest() {
        let few =
            |n: usize, odd: u64| (0..n).map(|i| if i % 100 == 3 { odd } else { i as u64 % 7 }).collect::<Vec<_>>();
        assert_eq!(choose::<u64>(&[]).layout, Layout::Const(0));
        assert_eq!(choose(&[9u64; 1000]).layout, Layout::Const(9));
        assert_eq!(choose(&few(1000, 3)).layout, Layout::U8);
        assert_eq!(choose(&few(1000, 300)).layout, Layout::U8, "10 exceptions cost less than a second byte");
        assert_eq!(choose(&few(1000, u64::MAX)).layout, Layout::U8);
        assert_eq!(choose(&(0..1000u64).map(|i| i * 60).collect::<Vec<_>>()).layout, Layout::Planes(2));
        assert_eq!(choose(&(0..1000u64).map(|i| i << 20).collect::<Vec<_>>()).layout, Layout::Planes(4));
        assert_eq!(choose(&(0..1000u64).map(|i| i << 50).collect::<Vec<_>>()).layout, Layout::Planes(8));
        let mostly: Vec<u64> = (0..1000).map(|i| if i % 100 == 0 { i } else { 5 }).collect();
        assert_eq!(choose(&mostly).layout, Layout::Const(5));
    }

    #[test]
    fn values_survive_every_layout() {
        for shift in [0, 8, 16, 32, 50] {
            for odd in [0, 255, 256, 65536, u64::MAX, 1 << 63] {
                let values: Vec<u64> = (0..500).map(|i| if i % 50 == 1 { odd } else { (i % 200) << shift }).collect();
                round_trip(&values);
            }
        }
        round_trip(&[]);
        round_trip(&[u64::MAX]);
    }

    /// What a way of writing makes of values: the transform it took, and the values read again.
    fn written(put: impl FnOnce(column::Builder<'_>, &[u64]), values: &[u64]) -> (Transform, Vec<u64>) {
        with_column(
            |col| put(col, values),
            |col| {
                let mut out: Vec<u64> = Vec::new();
                get(NAME, col, values.len(), &mut out).unwrap();
                (col.get_transform().unwrap(), out)
            },
        )
    }

    #[test]
    fn few_values_are_listed() {
        let buffers: Vec<u64> = (0..5000u64).map(|i| 0x7f00_1234_5000 + i * i % 97 * 4096).collect();
        let places: Vec<u64> = (0..5000).map(|i| i % 300 * 7919).collect();
        for (values, transform) in [
            (&buffers, Transform::Listed),
            (&places, Transform::Listed),
            (&(0..5000).map(|i| i << 30).collect(), Transform::None),
            (&vec![1 << 40; 5000], Transform::None),
            (&(0..5000).map(|i| i % 200).collect(), Transform::None),
            (&(0..5000).map(|i| if i < 2500 { 7 } else { i << 20 }).collect(), Transform::None),
            (&vec![], Transform::None),
        ] {
            assert_eq!(written(put_repeating, values), (transform, values.clone()));
        }
        let listed =
            with_column(|col| put_repeating(col, &buffers), |col| col.get_values().unwrap().iter().collect::<Vec<_>>());
        let mut distinct: Vec<u64> = buffers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, distinct, "each once");
        assert_eq!(listed[..2], buffers[..2], "in the order in which they come");
    }

    #[test]
    fn what_goes_on_is_deltas() {
        let names: Vec<u64> = (0..5000u64).map(|i| 2 + i / 3 + i % 2).collect();
        assert_eq!(written(put_running, &names), (Transform::Delta, names));
        let down: Vec<u64> = (0..300u64).map(|i| (1000 - i).wrapping_mul(1 << 55)).collect();
        assert_eq!(written(put_running, &down).1, down, "modulo 2^64");
        let few: Vec<u64> = (0..5000).map(|i| i * 31 % 200).collect();
        assert_eq!(written(put_running, &few), (Transform::None, few));
        assert_eq!(written(put_running, &[]), (Transform::None, vec![]));
    }

    #[test]
    fn zigzag_folds_all_of_i64() {
        for v in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(v)), v);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }

    /// Which no writer makes any more.
    #[test]
    fn wide_numbers_of_older_tapes_are_read() {
        let read = |write: &dyn Fn(column::Builder<'_>)| {
            let write = |mut col: column::Builder<'_>| {
                col.set_transform(Transform::Zigzag);
                write(col);
            };
            with_column(write, |col| {
                let mut out: Vec<u64> = Vec::new();
                get(NAME, col, 3, &mut out).map(|_| out).map_err(|e| e.to_string())
            })
        };
        assert_eq!(read(&|mut col| col.set_u16(&[2, 600, 65535][..]).unwrap()), Ok(vec![1, 300, -32768i64 as u64]));
        assert_eq!(read(&|mut col| col.set_u32(&[2, 0, 1 << 20][..]).unwrap()), Ok(vec![1, 0, 1 << 19]));
        assert_eq!(read(&|mut col| col.set_u64(&[2, 1, 1 << 50][..]).unwrap()), Ok(vec![1, u64::MAX, 1 << 49]));
        assert!(read(&|mut col| col.set_u32(&[2, 0][..]).unwrap()).unwrap_err().contains("2 values for 3 rows"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let read = |write: &dyn Fn(column::Builder<'_>), n| {
            with_column(write, |col| {
                let mut out: Vec<u16> = Vec::new();
                get(NAME, col, n, &mut out).map(|there| there.then_some(out)).map_err(|e| e.to_string())
            })
        };
        assert_eq!(read(&|_| (), 3), Ok(None), "absent");
        let says = |got: Result<Option<Vec<u16>>, String>, what: &str| {
            let e = got.unwrap_err();
            assert!(e.contains(what), "{e}");
        };
        says(read(&|col| put(col, &[1u32, 2, 3]), 4), "3 values for 4 rows");
        says(read(&|col| put(col, &[1u32, 70000, 3, 90000]), 4), "value 90000 > 65535");
        says(read(&|col| put(col, &[70000u32; 4]), 4), "value 70000 > 65535");
        says(read(&|mut col| col.set_const(1), 4), "transform 0");
        says(read(&|col| put_signed(col, &[-1, 1]), 2), "zigzag in a column without sign");
        let exceptions = |rows: &'static [u32], values: &'static [u64]| {
            move |mut col: column::Builder<'_>| {
                col.set_transform(Transform::None);
                col.set_const(1);
                col.set_exception_rows(rows).unwrap();
                col.set_exception_values(values).unwrap();
            }
        };
        let listed = |values: &'static [u64]| {
            move |mut col: column::Builder<'_>| {
                col.set_transform(Transform::Listed);
                col.reborrow().init_u8(3).copy_from_slice(&[0, 2, 1]);
                col.set_values(values).unwrap();
            }
        };
        assert_eq!(read(&listed(&[7, 8, 9]), 3), Ok(Some(vec![7, 9, 8])));
        says(read(&listed(&[7, 8]), 3), "value 2 of a list of 2");
        says(read(&listed(&[]), 3), "value 0 of a list of 0");
        says(read(&listed(&[7, 8, 65536]), 3), "value 65536 > 65535");
        let delta = |mut col: column::Builder<'_>| {
            col.set_transform(Transform::Delta);
            col.set_const(2);
        };
        says(read(&delta, 3), "delta in a column that is not one of 64 bits");
        let planes = |bytes: &'static [u8]| {
            move |mut col: column::Builder<'_>| {
                col.set_transform(Transform::None);
                col.set_planes(bytes);
            }
        };
        assert_eq!(read(&planes(&[1, 2, 3, 0, 1, 0]), 3), Ok(Some(vec![1, 258, 3])));
        assert_eq!(read(&planes(&[1, 2, 3, 0, 1, 0, 0, 0, 0]), 3), Ok(Some(vec![1, 258, 3])));
        says(read(&planes(&[1, 2, 3, 0, 1, 0, 0, 1, 0]), 3), "value 65794 > 65535");
        says(read(&planes(&[1, 2, 3]), 3), "3 bytes in planes for 3 rows");
        says(read(&planes(&[1, 2, 3, 4, 5, 6, 7]), 3), "7 bytes in planes for 3 rows");
        says(read(&planes(&[0; 27]), 3), "27 bytes in planes for 3 rows");
        says(read(&planes(&[]), 3), "0 bytes in planes for 3 rows");
        says(read(&planes(&[1]), 0), "1 bytes in planes for 0 rows");
        assert_eq!(read(&exceptions(&[0, 2], &[5, 6]), 3), Ok(Some(vec![5, 1, 6])));
        says(read(&exceptions(&[0, 2], &[5]), 3), "2 exception rows, 1 values");
        says(read(&exceptions(&[2, 2], &[5, 5]), 3), "not ascending");
        says(read(&exceptions(&[3], &[5]), 3), "exception row 3 of 3");
        says(read(&exceptions(&[1], &[1 << 40]), 3), "value 1099511627776 > 65535");
    }
}

//! Checks of buffers that a child process made. It reads tapes that anybody may have written, so what comes from it is looked at before a
//! program follows an offset in it: lengths, ends of texts, and that texts are UTF-8.

use systape_analyzer::frames::Kind;
use systape_analyzer::frames::arrow::code_width;

use crate::wire::{self, AlignedBytes};

/// A column of received rows, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedColumn {
    /// Number of rows.
    pub(crate) rows: usize,
    /// How many of them are NULL.
    pub(crate) nulls: usize,
    /// Where each buffer is among the bytes; None: there is none, because no row is NULL. A column of texts has the numbers of its rows'
    /// texts ([`code_width`]; all bits: NULL), where its texts end, and they; a part of a map has what Arrow has for texts.
    pub(crate) buffers: Vec<Option<(usize, usize)>>,
    /// The parts of the column.
    pub(crate) children: Vec<Self>,
}

/// Where the columns of received rows are, once they are checked.
#[derive(Debug)]
pub(crate) struct CheckedRows {
    /// Number of rows.
    pub(crate) rows: usize,
    /// The columns.
    pub(crate) columns: Vec<ReceivedColumn>,
}

/// What is left of a layout.
struct LayoutReader<'a> {
    nodes: std::slice::Iter<'a, [i64; 2]>,
    buffers: std::slice::Iter<'a, [i64; 2]>,
    bytes: &'a [u8],
}

/// The columns of these kinds that `layout` says are in `data`; None: it says something impossible.
pub(crate) fn check(kinds: &[Kind], layout: &[u8], data: &AlignedBytes) -> Option<CheckedRows> {
    let numbers = wire::numbers(layout);
    let (&[rows, nodes], rest) = numbers.split_first_chunk::<2>()?;
    let (rows, nodes) = (usize::try_from(rows).ok()?, usize::try_from(nodes).ok()?);
    let (pairs, []) = rest.as_chunks::<2>() else { return None };
    let (nodes, buffers) = pairs.split_at_checked(nodes)?;
    let mut reader = LayoutReader { nodes: nodes.iter(), buffers: buffers.iter(), bytes: data.bytes() };
    let columns = kinds.iter().map(|kind| reader.column(*kind, rows)).collect::<Option<_>>()?;
    (reader.nodes.len() == 0 && reader.buffers.len() == 0).then_some(CheckedRows { rows, columns })
}

impl LayoutReader<'_> {
    fn node(&mut self, rows: usize) -> Option<usize> {
        let [length, nulls] = self.nodes.next()?;
        let nulls = usize::try_from(*nulls).ok()?;
        (usize::try_from(*length).ok()? == rows && nulls <= rows).then_some(nulls)
    }

    /// The next buffer: it has `least` bytes at least.
    fn buffer(&mut self, least: Option<usize>) -> Option<(usize, usize)> {
        let [from, len] = self.buffers.next()?;
        let (from, len) = (usize::try_from(*from).ok()?, usize::try_from(*len).ok()?);
        let within = from.checked_add(len)? <= self.bytes.len();
        (within && from.is_multiple_of(64) && len >= least?).then_some((from, len))
    }

    fn of(&self, (from, len): (usize, usize)) -> &[u8] {
        &self.bytes[from..from + len]
    }

    /// The buffer that says which rows are not NULL.
    fn valid(&mut self, rows: usize, nulls: usize) -> Option<Option<(usize, usize)>> {
        if nulls == 0 {
            return self.buffer(Some(0)).map(|_| None);
        }
        let bits = self.buffer(Some(rows.div_ceil(8)))?;
        let bytes = self.of(bits);
        let whole: usize = bytes[..rows / 8].iter().map(|byte| byte.count_ones() as usize).sum();
        let rest = if rows.is_multiple_of(8) { 0 } else { bytes[rows / 8] & ((1 << (rows % 8)) - 1) };
        (rows - (whole + rest.count_ones() as usize) == nulls).then_some(Some(bits))
    }

    fn column(&mut self, kind: Kind, rows: usize) -> Option<ReceivedColumn> {
        if kind == Kind::Text {
            return self.coded(rows);
        }
        let nulls = self.node(rows)?;
        let valid = self.valid(rows, nulls)?;
        let (mut buffers, mut children) = (vec![valid], Vec::new());
        match kind {
            Kind::Int | Kind::Instant | Kind::Real => buffers.push(Some(self.buffer(rows.checked_mul(8))?)),
            Kind::Wide => buffers.push(Some(self.buffer(rows.checked_mul(16))?)),
            Kind::Flag => buffers.push(Some(self.buffer(Some(rows.div_ceil(8)))?)),
            Kind::Map => {
                let ends = self.buffer(ends_of(rows))?;
                let pairs = usize::try_from(*self.ends(ends, rows)?.last()?).ok()?;
                buffers.push(Some(ends));
                let (nulls, _) = (self.node(pairs)?, self.buffer(Some(0))?);
                let parts = vec![self.whole(pairs)?, self.whole(pairs)?];
                if nulls != 0 || parts[0].nulls != 0 {
                    return None;
                }
                children.push(ReceivedColumn { rows: pairs, nulls: 0, buffers: vec![None], children: parts });
            }
            Kind::Text => return None,
        }
        Some(ReceivedColumn { rows, nulls, buffers, children })
    }

    /// A column of texts as numbers, and each text once.
    fn coded(&mut self, rows: usize) -> Option<ReceivedColumn> {
        let nulls = self.node(rows)?;
        let codes = self.buffer(Some(rows))?;
        let (ends, texts) = (self.buffer(Some(4))?, self.buffer(Some(0))?);
        let count = ends.1 / 4 - 1;
        self.texts(ends, texts, count)?;
        let all = self.of(codes);
        let (beyond, found) = match code_width(count) {
            1 => beyond(all.get(..rows)?.iter().copied(), u8::MAX, count),
            2 => beyond(all.as_chunks().0.get(..rows)?.iter().map(|code| u16::from_le_bytes(*code)), u16::MAX, count),
            _ => beyond(all.as_chunks().0.get(..rows)?.iter().map(|code| u32::from_le_bytes(*code)), u32::MAX, count),
        };
        let buffers = vec![Some(codes), Some(ends), Some(texts)];
        // of those that are no text all are NULL
        (beyond == found && found == nulls).then_some(ReceivedColumn { rows, nulls, buffers, children: Vec::new() })
    }

    /// A column with a text for each row.
    fn whole(&mut self, rows: usize) -> Option<ReceivedColumn> {
        let nulls = self.node(rows)?;
        let valid = self.valid(rows, nulls)?;
        let (ends, texts) = (self.buffer(ends_of(rows))?, self.buffer(Some(0))?);
        self.texts(ends, texts, rows)?;
        Some(ReceivedColumn { rows, nulls, buffers: vec![valid, Some(ends), Some(texts)], children: Vec::new() })
    }

    /// Looks at texts, one after the other, and where each of them ends.
    fn texts(&self, ends: (usize, usize), texts: (usize, usize), count: usize) -> Option<()> {
        let text = str::from_utf8(self.of(texts)).ok()?;
        let all = self.ends(ends, count)?;
        let last = usize::try_from(*all.last()?).ok()?;
        (last <= text.len() && all.iter().all(|end| text.is_char_boundary(*end as usize))).then_some(())
    }

    /// Where each of `rows` ends, behind the 0 where the first begins; None: they are not in order.
    fn ends(&self, buffer: (usize, usize), rows: usize) -> Option<Vec<i32>> {
        let (ends, _) = self.of(buffer).as_chunks::<4>();
        let ends: Vec<i32> = ends.get(..=rows)?.iter().map(|end| i32::from_le_bytes(*end)).collect();
        (ends[0] == 0 && ends.is_sorted()).then_some(ends)
    }
}

/// How many of `codes` are none of `count` texts, and how many are `none`, which means NULL.
fn beyond<C: Copy + Into<u32> + PartialEq>(codes: impl Iterator<Item = C>, none: C, count: usize) -> (usize, usize) {
    codes.fold((0, 0), |(beyond, found), code| {
        (beyond + usize::from(code.into() as usize >= count), found + usize::from(code == none))
    })
}

/// Bytes of the ends of `rows`.
fn ends_of(rows: usize) -> Option<usize> {
    rows.checked_add(1)?.checked_mul(4)
}

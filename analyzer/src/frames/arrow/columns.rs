//! Columns of rows as the buffers of a record batch: they are filled from the vectors of [`Values`], column by column.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Result, bail};
use systape_answers::render::json::lossless;

use crate::frames::picks::RowPicks;
use crate::frames::{Argument, Kind, NONE, Values};

/// Buffers begin at multiples of this.
const ALIGNED: usize = 64;

/// The buffers of a record batch, and where each of them is.
#[derive(Debug, Default)]
pub struct BatchBody {
    /// All buffers, one after the other.
    pub bytes: Vec<u8>,
    /// Rows, and how many of them are NULL: of each column, and of the parts of one behind it.
    pub nodes: Vec<[i64; 2]>,
    /// Where each buffer begins, and its length.
    pub buffers: Vec<[i64; 2]>,
}

/// Which rows of a column are not NULL, a bit for each.
#[derive(Debug, Default)]
struct ValidBits {
    bytes: Vec<u8>,
    rows: usize,
    nulls: usize,
}

impl ValidBits {
    fn push(&mut self, valid: bool) {
        if self.rows.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if valid {
            let last = self.bytes.len() - 1;
            self.bytes[last] |= 1 << (self.rows % 8);
        } else {
            self.nulls += 1;
        }
        self.rows += 1;
    }
}

/// Texts of rows, one after the other, and where each ends.
#[derive(Debug)]
struct TextBuffers {
    valid: ValidBits,
    ends: Vec<u8>,
    bytes: Vec<u8>,
}

impl TextBuffers {
    fn new() -> Self {
        Self { valid: ValidBits::default(), ends: 0_i32.to_le_bytes().to_vec(), bytes: Vec::new() }
    }

    fn push(&mut self, text: Option<&str>) -> Result<()> {
        self.valid.push(text.is_some());
        self.bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
        let Ok(end) = i32::try_from(self.bytes.len()) else { bail!("a batch of rows has more than 2 GiB of text") };
        self.ends.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }
}

impl BatchBody {
    /// Makes the buffers of the rows `picks`, whose columns have these kinds.
    ///
    /// # Errors
    /// Texts of one column are longer than 2 GiB.
    pub fn new(kinds: impl IntoIterator<Item = Kind>, picks: &RowPicks<'_>) -> Result<Self> {
        let mut body = Self::default();
        for (at, kind) in kinds.into_iter().enumerate() {
            body.column(kind, at, picks)?;
        }
        Ok(body)
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.push([self.bytes.len() as i64, bytes.len() as i64]);
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNED), 0);
    }

    /// Adds the node of a column, and the buffer that says which of its rows are NULL.
    fn valid(&mut self, valid: &ValidBits) {
        self.nodes.push([valid.rows as i64, valid.nulls as i64]);
        // none at all means that no row is
        self.buffer(if valid.nulls == 0 { &[] } else { &valid.bytes });
    }

    fn texts(&mut self, texts: &TextBuffers) {
        self.valid(&texts.valid);
        self.buffer(&texts.ends);
        self.buffer(&texts.bytes);
    }

    /// Adds a column of values with a fixed size.
    fn sized<T: Copy + Default, const N: usize>(
        &mut self,
        picks: &RowPicks<'_>,
        of: impl Fn(&Values) -> Option<&[Option<T>]>,
        at: usize,
        bytes: impl Fn(T) -> [u8; N],
    ) {
        let columns: Vec<&[Option<T>]> =
            picks.batches().map(|batch| batch.columns.get(at).and_then(&of).unwrap_or_default()).collect();
        let there = |(batch, rows): (usize, Range<usize>)| columns[batch].get(rows);
        let whole = |rows: &[Option<T>]| rows.iter().all(Option::is_some);
        let mut valid = ValidBits { rows: picks.len(), ..ValidBits::default() };
        if !picks.runs().all(|run| there(run).is_some_and(whole)) {
            valid.rows = 0;
            picks.rows().for_each(|(batch, row)| valid.push(columns[batch].get(row).is_some_and(Option::is_some)));
        }
        self.valid(&valid);
        let (from, mut at) = (self.bytes.len(), self.bytes.len());
        self.bytes.resize(from + N * picks.len(), 0);
        for (batch, rows) in picks.runs() {
            let places = self.bytes[at..at + N * rows.len()].as_chunks_mut::<N>().0;
            at += N * rows.len();
            let values = columns[batch].get(rows.start..).unwrap_or_default();
            for (place, value) in places.iter_mut().zip(values) {
                *place = bytes(value.unwrap_or_default());
            }
        }
        self.buffers.push([from as i64, (at - from) as i64]);
        self.bytes.resize(at.next_multiple_of(ALIGNED), 0);
    }

    fn column(&mut self, kind: Kind, at: usize, picks: &RowPicks<'_>) -> Result<()> {
        match kind {
            Kind::Int | Kind::Instant => self.sized(picks, ints, at, i64::to_le_bytes),
            Kind::Wide => self.sized(picks, wides, at, i128::to_le_bytes),
            Kind::Real => self.sized(picks, reals, at, f64::to_le_bytes),
            Kind::Flag => {
                let columns: Vec<&[Option<bool>]> =
                    picks.batches().map(|batch| batch.columns.get(at).and_then(flags).unwrap_or_default()).collect();
                let (mut valid, mut values) = (ValidBits::default(), ValidBits::default());
                for (batch, row) in picks.rows() {
                    let value = columns[batch].get(row).copied().flatten();
                    valid.push(value.is_some());
                    values.push(value == Some(true));
                }
                self.valid(&valid);
                self.buffer(&values.bytes);
            }
            Kind::Text => {
                let columns: Vec<(&[u32], Vec<Cow<'_, str>>)> = picks
                    .batches()
                    .map(|batch| match batch.columns.get(at) {
                        Some(Values::Text(codes, names)) => {
                            (&**codes, names.iter().map(|name| lossless(name)).collect())
                        }
                        _ => (&[][..], Vec::new()),
                    })
                    .collect();
                let mut texts = TextBuffers::new();
                for (batch, row) in picks.rows() {
                    let (codes, names) = &columns[batch];
                    let code = codes.get(row).copied().unwrap_or(NONE);
                    texts.push(names.get(code as usize).filter(|_| code != NONE).map(|name| &**name))?;
                }
                self.texts(&texts);
            }
            Kind::Map => {
                let (mut valid, mut ends) = (ValidBits::default(), 0_i32.to_le_bytes().to_vec());
                let (mut keys, mut texts) = (TextBuffers::new(), TextBuffers::new());
                let columns: Vec<_> =
                    picks.batches().map(|batch| batch.columns.get(at).and_then(maps).unwrap_or_default()).collect();
                for (batch, row) in picks.rows() {
                    let pairs = columns[batch].get(row).and_then(Option::as_ref);
                    valid.push(pairs.is_some());
                    for (name, text) in pairs.into_iter().flatten() {
                        keys.push(Some(name))?;
                        texts.push(text.as_deref())?;
                    }
                    // each has bytes among the names, which are fewer than 2 GiB
                    ends.extend_from_slice(&(keys.valid.rows as i32).to_le_bytes());
                }
                self.valid(&valid);
                self.buffer(&ends);
                // the pairs themselves are never NULL
                self.nodes.push([keys.valid.rows as i64, 0]);
                self.buffer(&[]);
                self.texts(&keys);
                self.texts(&texts);
            }
        }
        Ok(())
    }
}

fn ints(values: &Values) -> Option<&[Option<i64>]> {
    if let Values::Int(values) = values { Some(values) } else { None }
}

fn wides(values: &Values) -> Option<&[Option<i128>]> {
    if let Values::Wide(values) = values { Some(values) } else { None }
}

fn reals(values: &Values) -> Option<&[Option<f64>]> {
    if let Values::Real(values) = values { Some(values) } else { None }
}

fn flags(values: &Values) -> Option<&[Option<bool>]> {
    if let Values::Flag(values) = values { Some(values) } else { None }
}

fn maps(values: &Values) -> Option<&[Option<Vec<Argument>>]> {
    if let Values::Map(values) = values { Some(values) } else { None }
}

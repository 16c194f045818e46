//! Columns of rows as the buffers of a record batch: they are filled from the vectors of [`Values`], column by column.

use std::borrow::Cow;

use anyhow::{Result, bail};
use systape_answers::render::json::lossless;
use systape_events::values::columns::{code_width, mark_used, put_codes, put_longs};

use crate::frames::picks::RowPicks;
use crate::frames::{Argument, Batch, Kind, NONE, Nullable, Values};

/// Buffers begin at multiples of this.
const ALIGNED: usize = 64;
/// So many texts are passed on without a look at which of them rows have.
const FEW: usize = 256;

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

/// What the texts of a column become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// A text for each row, one after the other, as Arrow's IPC format has them.
    Whole,
    /// The number of a text for each row, in as many bytes as [`code_width`] says for the number of texts (all bits: NULL), and each text
    /// once. There is no buffer that says which rows are NULL.
    Coded,
}

/// A column of a batch that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchColumn {
    /// Kind of its values.
    pub kind: Kind,
    /// Which column of the batches it is; None: none, it is NULL in all rows.
    pub at: Option<usize>,
}

impl BatchColumn {
    /// Columns of these kinds that are those of the batches.
    pub fn in_order(kinds: impl IntoIterator<Item = Kind>) -> impl Iterator<Item = Self> {
        (0..).zip(kinds).map(|(at, kind)| Self { kind, at: Some(at) })
    }
}

impl BatchBody {
    /// Makes the buffers of the rows `picks`.
    ///
    /// # Errors
    /// Texts of one column are longer than 2 GiB.
    pub fn new(columns: impl IntoIterator<Item = BatchColumn>, picks: &RowPicks<'_>, texts: TextForm) -> Result<Self> {
        let mut body = Self::default();
        // room for a number in each row of each column, so that few of them move
        let columns: Vec<BatchColumn> = columns.into_iter().collect();
        body.bytes.reserve(columns.len() * (8 * picks.len() + ALIGNED));
        for column in columns {
            body.column(column, picks, texts)?;
        }
        Ok(body)
    }

    fn buffer(&mut self, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.end_buffer(from);
    }

    /// Ends a buffer that begins at `from`.
    fn end_buffer(&mut self, from: usize) {
        self.buffers.push([from as i64, (self.bytes.len() - from) as i64]);
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
    fn sized<'b, T: Copy + Default + 'b, const N: usize>(
        &mut self,
        picks: &RowPicks<'b>,
        of: impl Fn(&'b Batch) -> Option<&'b Nullable<T>>,
        bytes: impl Fn(T) -> [u8; N],
    ) {
        let columns: Vec<Option<&Nullable<T>>> = picks.batches().map(of).collect();
        self.valid_of(&columns, picks);
        let (from, mut at) = (self.bytes.len(), self.bytes.len());
        self.bytes.resize(from + N * picks.len(), 0);
        for (batch, rows) in picks.runs() {
            let places = self.bytes[at..at + N * rows.len()].as_chunks_mut::<N>().0;
            at += N * rows.len();
            let values = columns[batch].and_then(|column| column.values().get(rows)).unwrap_or_default();
            for (place, value) in places.iter_mut().zip(values) {
                *place = bytes(*value);
            }
        }
        self.end_buffer(from);
    }

    /// Adds a column of texts as numbers, and of the texts those that rows have, if there are many.
    fn coded(&mut self, columns: &[BatchTexts<'_>], picks: &RowPicks<'_>) -> Result<()> {
        let mut texts = TextBuffers::new();
        // what each batch's codes become
        let mut made: Vec<Vec<u32>> = Vec::with_capacity(columns.len());
        for (batch, column) in (0..).zip(columns) {
            let count = column.names.len();
            let mut used = vec![count <= FEW; count];
            if count > FEW {
                let runs = picks.runs().filter(|(of, _)| *of == batch);
                runs.for_each(|(_, rows)| mark_used(column.codes.get(rows).unwrap_or_default(), &mut used));
            }
            let mut codes = vec![NONE; count];
            for ((name, code), _) in column.names.iter().zip(&mut codes).zip(used).filter(|(_, used)| *used) {
                *code = texts.valid.rows as u32;
                texts.push(Some(&lossless(name)))?;
            }
            made.push(codes);
        }
        let width = code_width(texts.valid.rows);
        let (from, mut nulls) = (self.bytes.len(), 0);
        for (batch, rows) in picks.runs() {
            let (column, count) = (&columns[batch], rows.len());
            nulls += match column.codes.get(rows) {
                Some(codes) => put_codes(&mut self.bytes, codes, &made[batch], width),
                // a column that the tape has not
                None => put_codes(&mut self.bytes, &vec![NONE; count], &[], width),
            };
        }
        self.nodes.push([picks.len() as i64, nulls as i64]);
        self.end_buffer(from);
        self.buffer(&texts.ends);
        self.buffer(&texts.bytes);
        Ok(())
    }

    /// Adds a column of numbers.
    fn longs(&mut self, columns: &[Option<&Nullable<i64>>], picks: &RowPicks<'_>) {
        self.valid_of(columns, picks);
        let from = self.bytes.len();
        for (batch, rows) in picks.runs() {
            let end = self.bytes.len() + 8 * rows.len();
            if let Some(values) = columns[batch].and_then(|column| column.values().get(rows)) {
                put_longs(&mut self.bytes, values);
            }
            self.bytes.resize(end, 0);
        }
        self.end_buffer(from);
    }

    /// Says which rows of a column are NULL.
    fn valid_of<T: Copy + Default>(&mut self, columns: &[Option<&Nullable<T>>], picks: &RowPicks<'_>) {
        let mut valid = ValidBits { rows: picks.len(), ..ValidBits::default() };
        if !columns.iter().all(|column| column.is_some_and(Nullable::is_whole)) {
            valid.rows = 0;
            let is_valid = |(batch, row): (usize, usize)| columns[batch].is_some_and(|column| !column.is_null(row));
            picks.rows().for_each(|row| valid.push(is_valid(row)));
        }
        self.valid(&valid);
    }

    fn column(&mut self, column: BatchColumn, picks: &RowPicks<'_>, texts: TextForm) -> Result<()> {
        let values = |batch| values_of(batch, column.at);
        match column.kind {
            Kind::Int | Kind::Instant => {
                let columns: Vec<_> = picks.batches().map(|batch| values(batch).and_then(ints)).collect();
                self.longs(&columns, picks);
            }
            Kind::Wide => self.sized(picks, |batch| values(batch).and_then(wides), i128::to_le_bytes),
            Kind::Real => self.sized(picks, |batch| values(batch).and_then(reals), f64::to_le_bytes),
            Kind::Flag => {
                let columns: Vec<Option<&Nullable<bool>>> =
                    picks.batches().map(|batch| values(batch).and_then(flags)).collect();
                let (mut valid, mut set) = (ValidBits::default(), ValidBits::default());
                for (batch, row) in picks.rows() {
                    let value = columns[batch].and_then(|column| column.get(row));
                    valid.push(value.is_some());
                    set.push(value == Some(true));
                }
                self.valid(&valid);
                self.buffer(&set.bytes);
            }
            Kind::Text => {
                let columns: Vec<BatchTexts<'_>> = picks
                    .batches()
                    .map(|batch| match values(batch) {
                        Some(Values::Text(codes, names)) => BatchTexts { codes, names },
                        _ => BatchTexts { codes: &[], names: &[] },
                    })
                    .collect();
                if texts == TextForm::Coded {
                    return self.coded(&columns, picks);
                }
                let shown: Vec<Vec<Cow<'_, str>>> =
                    columns.iter().map(|column| column.names.iter().map(|name| lossless(name)).collect()).collect();
                let mut texts = TextBuffers::new();
                for (batch, row) in picks.rows() {
                    let code = columns[batch].codes.get(row).copied().unwrap_or(NONE);
                    texts.push(shown[batch].get(code as usize).map(|name| &**name))?;
                }
                self.texts(&texts);
            }
            Kind::Map => {
                let (mut valid, mut ends) = (ValidBits::default(), 0_i32.to_le_bytes().to_vec());
                let (mut keys, mut texts) = (TextBuffers::new(), TextBuffers::new());
                let columns: Vec<_> =
                    picks.batches().map(|batch| values(batch).and_then(maps).unwrap_or_default()).collect();
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

/// The texts of a batch: the index of each row's, and they.
struct BatchTexts<'b> {
    codes: &'b [u32],
    names: &'b [Vec<u8>],
}

fn values_of(batch: &Batch, at: Option<usize>) -> Option<&Values> {
    batch.columns.get(at?)
}

fn ints(values: &Values) -> Option<&Nullable<i64>> {
    if let Values::Int(values) = values { Some(values) } else { None }
}

fn wides(values: &Values) -> Option<&Nullable<i128>> {
    if let Values::Wide(values) = values { Some(values) } else { None }
}

fn reals(values: &Values) -> Option<&Nullable<f64>> {
    if let Values::Real(values) = values { Some(values) } else { None }
}

fn flags(values: &Values) -> Option<&Nullable<bool>> {
    if let Values::Flag(values) = values { Some(values) } else { None }
}

fn maps(values: &Values) -> Option<&[Option<Vec<Argument>>]> {
    if let Values::Map(values) = values { Some(values) } else { None }
}

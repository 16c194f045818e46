//! Common parts of groups of rows: their number, their times, and indices into the dict.

use crate::column::{ColumnValue, Name, get, need};
use crate::error::{Error, Result, capnp_err};
use crate::header::{Header, MAX_ROWS};
use crate::trace_capnp::column;

/// Rows of a group, within the limit.
pub(super) fn rows_of(what: &'static str, rows: u32) -> Result<usize> {
    if rows > MAX_ROWS {
        return Err(Error::TooLarge {
            what: format!("{what} block: rows"),
            len: u64::from(rows),
            limit: u64::from(MAX_ROWS),
        });
    }
    Ok(rows as usize)
}

/// Number of rows as [`rows_of`] has it, refusing a number that differs from the header's.
pub(super) fn rows_as_header(what: &'static str, rows: u32, header: &Header) -> Result<usize> {
    if rows != header.rows {
        return Err(Error::invalid(what, format!("{rows} rows, its header says {}", header.rows)));
    }
    rows_of(what, rows)
}

/// Refuses indices that do not point into a table.
pub(super) fn in_range(what: &'static str, column: &str, values: &[u32], len: usize) -> Result<()> {
    match values.iter().max() {
        Some(&max) if max as usize >= len => {
            Err(Error::invalid(what, format!("{column} {max} where the dict has {len}")))
        }
        _ => Ok(()),
    }
}

/// Differences to the value before; the first to `base`. `values` must ascend from `base`.
pub(super) fn deltas(values: &[u64], base: u64) -> Vec<u64> {
    let mut before = base;
    values.iter().map(|&v| v.wrapping_sub(std::mem::replace(&mut before, v))).collect()
}

/// Running sums from `base`; None when one passes 2^64 - 1.
pub(super) fn sums(values: &mut [u64], base: u64) -> Option<()> {
    let mut sum = base;
    let mut over = false;
    for v in values {
        let passed;
        (sum, passed) = sum.overflowing_add(*v);
        over |= passed;
        *v = sum;
    }
    (!over).then_some(())
}

/// Values that are mostly new ones: 0 for the lowest not reached before, else the value + 1. See `Rows::nexts`.
pub(super) fn nexts(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut next = 0;
    let code = |v: u32| {
        let code = if v == next { 0 } else { v.saturating_add(1) };
        next = next.max(v.saturating_add(1));
        code
    };
    values.map(code).collect()
}

/// The `n` rows of one block, for reading its columns.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Block, for messages.
    pub(super) block: &'static str,
    /// Number of rows.
    pub(super) n: usize,
}

impl Rows {
    /// A column that must be present.
    pub(super) fn column<T: ColumnValue>(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
    ) -> Result<Vec<T>> {
        let mut out = Vec::new();
        need(Name { block: self.block, column }, r.map_err(capnp_err(self.block))?, self.n, &mut out)?;
        Ok(out)
    }

    /// A column that older tapes lack: then each value is 0.
    pub(super) fn column_or_zero<T: ColumnValue + Default + Clone>(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
    ) -> Result<Vec<T>> {
        let mut out = Vec::new();
        if !get(Name { block: self.block, column }, r.map_err(capnp_err(self.block))?, self.n, &mut out)? {
            out.resize(self.n, T::default());
        }
        Ok(out)
    }

    /// Times, from that of the first row and the deltas.
    pub(super) fn times(self, first: u64, delta: capnp::Result<column::Reader<'_>>) -> Result<Vec<u64>> {
        let mut ts = self.column("delta", delta)?;
        sums(&mut ts, first).ok_or_else(|| Error::invalid(self.block, "a time passes 2^64 - 1"))?;
        Ok(ts)
    }

    /// Tasks of a dict with `tasks` ones.
    pub(super) fn tasks(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
        tasks: usize,
    ) -> Result<Vec<u32>> {
        let out = self.column(column, r)?;
        in_range(self.block, column, &out, tasks)?;
        Ok(out)
    }

    /// Undoes [`nexts`]; the values are indices into a table of `len`.
    pub(super) fn nexts(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
        len: usize,
    ) -> Result<Vec<u32>> {
        let mut out: Vec<u32> = self.column(column, r)?;
        let mut next = 0;
        for v in &mut out {
            *v = v.checked_sub(1).unwrap_or(next);
            if *v as usize >= len {
                return Err(Error::invalid(self.block, format!("{column} {v} where there are {len}")));
            }
            next = next.max(*v + 1);
        }
        Ok(out)
    }

    /// Running sums of signed steps from 0; none may leave 0 to `most`.
    pub(super) fn steps(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
        most: usize,
    ) -> Result<Vec<u32>> {
        let steps: Vec<u64> = self.column(column, r)?;
        let mut sum = 0u64;
        let value = |step: u64| {
            sum = sum.wrapping_add(step);
            let fits = u32::try_from(sum).ok().filter(|&v| v as usize <= most);
            fits.ok_or_else(|| Error::invalid(self.block, format!("{column} {sum} where there are {most}")))
        };
        steps.into_iter().map(value).collect()
    }

    /// Optional tasks: index + 1, or 0.
    pub(super) fn maybe_tasks(
        self,
        column: &'static str,
        r: capnp::Result<column::Reader<'_>>,
        tasks: usize,
    ) -> Result<Vec<u32>> {
        self.tasks(column, r, tasks.saturating_add(1))
    }
}

/// Stored form of an optional index. An index is below the length of a table, so index + 1 fits.
pub(super) fn plus_one(index: Option<u32>) -> u32 {
    index.map_or(0, |index| index.saturating_add(1))
}

/// Undoes [`plus_one`].
pub(super) fn minus_one(raw: u32) -> Option<u32> {
    raw.checked_sub(1)
}

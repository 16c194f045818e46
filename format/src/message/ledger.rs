//! Calls that were counted instead of stored.

use super::rows::{Rows, in_range, minus_one, plus_one, rows_as_header, rows_of, sums};
use crate::column::put;
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::CallState;
use crate::model::{LEDGER_BUCKETS, LedgerReason, LedgerRow};
use crate::payload::{Message, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const LEDGER: &str = "ledger";

/// Most bytes of a row in a message, and of each of its buckets.
const ROW_BYTES: usize = 65;
const BUCKET_BYTES: usize = 9;

/// Most bytes of a row in a message.
pub(crate) fn ledger_bytes(row: &LedgerRow) -> usize {
    ROW_BYTES + row.sizes.len() * BUCKET_BYTES
}

/// The ledger message; `rows` must be sorted by `first`.
pub(crate) fn write_ledger(rows: &[LedgerRow]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.iter().map(ledger_bytes).sum::<usize>() + 1024);
    let mut b = message.init_root::<schema::ledger::Builder<'_>>();
    let narrow = |f: fn(&LedgerRow) -> u32| rows.iter().map(f).collect::<Vec<_>>();
    let wide = |f: fn(&LedgerRow) -> u64| rows.iter().map(f).collect::<Vec<_>>();
    let sizes = || rows.iter().flat_map(|r| &r.sizes);
    let start = rows.first().map_or(0, |r| r.first);
    let firsts = wide(|r| r.first);
    b.set_rows(rows.len() as u32);
    b.set_start(start);
    b.set_bucket_rows(sizes().count() as u32);
    put(b.reborrow().init_task(), &narrow(|r| plus_one(r.task)));
    put(b.reborrow().init_call(), &narrow(|r| r.call));
    put(b.reborrow().init_reason(), &narrow(|r| r.reason as u32));
    put(b.reborrow().init_errno(), &narrow(|r| r.errno.into()));
    put(b.reborrow().init_state(), &narrow(|r| r.state as u32));
    put(b.reborrow().init_cpu(), &narrow(|r| r.cpu));
    put(b.reborrow().init_count(), &wide(|r| r.count));
    put(b.reborrow().init_sum(), &wide(|r| r.sum));
    put(b.reborrow().init_min(), &wide(|r| r.min));
    put(b.reborrow().init_max(), &wide(|r| r.max));
    put(b.reborrow().init_first(), &super::rows::deltas(&firsts, start));
    put(b.reborrow().init_last(), &wide(|r| r.last.saturating_sub(r.first)));
    put(b.reborrow().init_buckets(), &narrow(|r| r.sizes.len() as u32));
    put(b.reborrow().init_bucket(), &sizes().map(|(bucket, _)| *bucket).collect::<Vec<_>>());
    put(b.init_bucket_count(), &sizes().map(|(_, count)| *count).collect::<Vec<_>>());
    message
}

/// The rows of a ledger block whose segment has `tasks` tasks and `calls` calls.
pub(crate) fn read_ledger(
    header: &Header,
    message: &Message<'_>,
    tasks: usize,
    calls: usize,
) -> Result<Vec<LedgerRow>> {
    let r = message.get_root::<schema::ledger::Reader<'_>>().map_err(capnp_err(LEDGER))?;
    let n = rows_as_header(LEDGER, r.get_rows(), header)?;
    let rows = Rows { block: LEDGER, n };
    let task = rows.maybe_tasks("task", r.get_task(), tasks)?;
    let call: Vec<u32> = rows.column("call", r.get_call())?;
    in_range(LEDGER, "call", &call, calls)?;
    let reason: Vec<u8> = rows.column("reason", r.get_reason())?;
    let errno: Vec<u16> = rows.column("errno", r.get_errno())?;
    let state: Vec<u8> = rows.column("state", r.get_state())?;
    let cpu: Vec<u32> = rows.column("cpu", r.get_cpu())?;
    let wide = |name, column| -> Result<Vec<u64>> { rows.column(name, column) };
    let (count, sum) = (wide("count", r.get_count())?, wide("sum", r.get_sum())?);
    let (min, max) = (wide("min", r.get_min())?, wide("max", r.get_max())?);
    let mut first = wide("first", r.get_first())?;
    sums(&mut first, r.get_start()).ok_or_else(|| Error::invalid(LEDGER, "a time passes 2^64 - 1"))?;
    let last = wide("last", r.get_last())?;
    let mut sizes = sizes(r, rows)?.into_iter();
    let mut out = Vec::with_capacity(n);
    for i in 0..n {
        let bad = |why: &str| Error::invalid(LEDGER, format!("row {i}: {why}"));
        let sizes = sizes.next().unwrap_or_default();
        let mut counted = sizes.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
        if sizes.is_empty() {
            counted = Some(count[i]);
        }
        if count[i] == 0 || counted != Some(count[i]) {
            return Err(bad("sizes do not come to its calls"));
        }
        if min[i] > max[i] {
            return Err(bad("min is greater than max"));
        }
        out.push(LedgerRow {
            task: minus_one(task[i]),
            call: call[i],
            reason: LedgerReason::from_raw(reason[i]).ok_or_else(|| bad("unknown reason"))?,
            errno: errno[i],
            state: CallState::from_raw(state[i]).ok_or_else(|| bad("unknown state"))?,
            cpu: cpu[i],
            count: count[i],
            sum: sum[i],
            min: min[i],
            max: max[i],
            first: first[i],
            last: first[i].checked_add(last[i]).ok_or_else(|| bad("a time passes 2^64 - 1"))?,
            sizes,
        });
    }
    Ok(out)
}

/// The sizes of each row.
fn sizes(r: schema::ledger::Reader<'_>, rows: Rows) -> Result<Vec<Vec<(u8, u64)>>> {
    let buckets: Vec<u8> = rows.column("buckets", r.get_buckets())?;
    // at most 255 times MAX_ROWS: but the columns below must be that long, or constant
    let all: usize = buckets.iter().map(|&n| usize::from(n)).sum();
    if all != r.get_bucket_rows() as usize {
        return Err(Error::invalid(LEDGER, format!("{all} buckets, bucketRows says {}", r.get_bucket_rows())));
    }
    let flat = Rows { block: LEDGER, n: rows_of(LEDGER, r.get_bucket_rows())? };
    let bucket: Vec<u8> = flat.column("bucket", r.get_bucket())?;
    let count: Vec<u64> = flat.column("bucketCount", r.get_bucket_count())?;
    let mut flat = bucket.into_iter().zip(count);
    let mut out = Vec::with_capacity(buckets.len());
    for (i, &n) in buckets.iter().enumerate() {
        let sizes: Vec<(u8, u64)> = flat.by_ref().take(usize::from(n)).collect();
        let ascends = sizes.is_sorted_by(|a, b| a.0 < b.0);
        let inside = sizes.iter().all(|(bucket, count)| usize::from(*bucket) < LEDGER_BUCKETS && *count > 0);
        if !ascends || !inside {
            return Err(Error::invalid(LEDGER, format!("row {i}: sizes out of order or range")));
        }
        out.push(sizes);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    fn row(task: Option<u32>, first: u64) -> LedgerRow {
        LedgerRow {
            task,
            count: 3,
            sum: 70,
            min: 10,
            max: 40,
            first,
            last: first + 5,
            sizes: vec![(3, 1), (5, 2)],
            ..LedgerRow::default()
        }
    }

    #[test]
    fn rows_come_back_and_those_that_break_a_must_are_refused() {
        let coarse = LedgerRow { sizes: Vec::new(), errno: crate::model::ERRNO_ANY, ..row(None, 9) };
        let rows = [row(Some(0), 7), coarse, row(Some(1), u64::MAX - 5)];
        let forged = |(tasks, calls), forge: &dyn Fn(schema::ledger::Builder<'_>)| {
            let mut message = write_ledger(&rows);
            forge(message.get_root().expect("the root"));
            reread(&message, 3, |h, m| read_ledger(h, m, tasks, calls)).map_err(|e| e.to_string())
        };
        assert_eq!(forged((2, 1), &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: std::result::Result<Vec<LedgerRow>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged((1, 1), &|_| ()), "task 2 where the dict has 2");
        says(forged((2, 0), &|_| ()), "call 0 where the dict has 0");
        says(forged((2, 1), &|b| put(b.init_reason(), &[1u32, 9, 1])), "row 1: unknown reason");
        says(forged((2, 1), &|b| put(b.init_state(), &[1u32, 1, 0])), "row 2: unknown state");
        says(forged((2, 1), &|b| put(b.init_min(), &[10u64, 41, 10])), "row 1: min is greater");
        says(forged((2, 1), &|b| put(b.init_count(), &[2u64, 3, 3])), "row 0: sizes do not come");
        says(forged((2, 1), &|b| put(b.init_count(), &[3u64, 0, 3])), "row 1: sizes do not come");
        says(forged((2, 1), &|b| put(b.init_bucket(), &[5u32, 5, 3, 5])), "row 0: sizes out of order");
        says(forged((2, 1), &|b| put(b.init_bucket(), &[3u32, 64, 3, 5])), "row 0: sizes out of order");
        says(forged((2, 1), &|b| put(b.init_buckets(), &[2u32, 0, 3])), "5 buckets, bucketRows says 4");
        says(forged((2, 1), &|b| put(b.init_last(), &[5u64, 5, 6])), "row 2: a time passes");
        says(forged((2, 1), &|mut b| b.set_start(8)), "a time passes");
    }
}

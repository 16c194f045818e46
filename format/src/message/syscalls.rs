//! The column groups of syscalls.
//!
//! Writing takes columns already in row order ([`Columns`]); `args` and `fds` put them in column order themselves.
//! Reading gives row order back.

use super::rows::{deltas, in_range, rows_of, sums};
use crate::column::{Name, bits, get, need, put, put_repeating, put_running, put_signed, zigzag};
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{
    Args, BESIDE, ByteStatus, CPU_NONE, CallState, Captured, Core, Dict, FD_FIRST, FD_NONE, Fds, NEEDS, SECOND_VALUE,
    Time,
};
use crate::order::PickedRows;
use crate::payload::{Message, list_len, new_message};
use crate::strings::Strings;
use crate::trace_capnp::{self as schema, EndFrom};
use capnp::message::{Builder, HeapAllocator};

const CORE: &str = "syscalls.core";
const TIME: &str = "syscalls.time";
const ARGS: &str = "syscalls.args";
const FDS: &str = "syscalls.fds";
const BYTES: &str = "syscalls.bytes";

/// Bit of `state`: not selected by record's `-e`, kept for fd tracking (before 1.5).
const UNSELECTED: u8 = 1 << 4;

/// Rows of a segment in row order.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) carry_rows: usize,
    pub(crate) start: Vec<u64>,
    pub(crate) end: Vec<u64>,
    pub(crate) dur: Vec<u64>,
    pub(crate) cpu: Vec<u32>,
    pub(crate) task: Vec<u32>,
    pub(crate) call: Vec<u32>,
    pub(crate) errno: Vec<u16>,
    pub(crate) state: Vec<u8>,
}

/// Captured values sorted by (row, arg).
#[derive(Debug, Default)]
pub(crate) struct CapturedValues {
    pub(crate) row: Vec<u32>,
    pub(crate) arg: Vec<u8>,
    pub(crate) status: Vec<u8>,
    pub(crate) len: Vec<u32>,
    pub(crate) full: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

impl CapturedValues {
    /// Makes one without values, but with room for `values` of `bytes` together.
    pub(crate) fn with_capacity(values: usize, bytes: usize) -> Self {
        Self {
            row: Vec::with_capacity(values),
            arg: Vec::with_capacity(values),
            status: Vec::with_capacity(values),
            len: Vec::with_capacity(values),
            full: Vec::with_capacity(values),
            bytes: Vec::with_capacity(bytes),
        }
    }
}

/// The core message.
pub(crate) fn write_core(c: &Columns) -> Builder<HeapAllocator> {
    let mut message = new_message(c.dur.len() * 16 + 512);
    let mut b = message.init_root::<schema::syscalls_core::Builder<'_>>();
    b.set_rows(c.dur.len() as u32);
    b.set_carry_rows(c.carry_rows as u32);
    put(b.reborrow().init_call(), &c.call);
    put(b.reborrow().init_task(), &c.task);
    put(b.reborrow().init_dur(), &c.dur);
    put(b.reborrow().init_errno(), &c.errno);
    put(b.init_state(), &c.state);
    message
}

/// The state for each value of `state`; None, and none of these: refuse.
fn states() -> [Option<CallState>; 32] {
    std::array::from_fn(|raw| CallState::from_raw(raw as u8 & 15))
}

/// The core columns of a segment with this dict, into `out`, whose buffers are used again.
pub(crate) fn read_core(header: &Header, message: &Message<'_>, dict: &Dict, out: &mut Core) -> Result<()> {
    let err = capnp_err(CORE);
    let r = message.get_root::<schema::syscalls_core::Reader<'_>>().map_err(&err)?;
    let n = rows_of(CORE, r.get_rows())?;
    let name = |column| Name { block: CORE, column };
    if r.get_carry_rows() > r.get_rows() {
        return Err(Error::invalid(CORE, format!("{} carry rows of {n}", r.get_carry_rows())));
    }
    if (r.get_rows(), r.get_carry_rows()) != (header.rows, header.carry_rows) {
        let why = format!(
            "{n} rows, {} carry rows; its header says {}, {}",
            r.get_carry_rows(),
            header.rows,
            header.carry_rows
        );
        return Err(Error::invalid(CORE, why));
    }
    out.carry_rows = r.get_carry_rows() as usize;
    need(name("call"), r.get_call().map_err(&err)?, n, &mut out.call)?;
    in_range(CORE, "call", &out.call, dict.calls.len())?;
    need(name("task"), r.get_task().map_err(&err)?, n, &mut out.task)?;
    in_range(CORE, "task", &out.task, dict.tasks.len())?;
    need(name("dur"), r.get_dur().map_err(&err)?, n, &mut out.dur)?;
    need(name("errno"), r.get_errno().map_err(&err)?, n, &mut out.errno)?;
    let mut raw: Vec<u8> = Vec::new();
    need(name("state"), r.get_state().map_err(&err)?, n, &mut raw)?;
    out.state.clear();
    out.unselected.clear();
    if raw.iter().all(|&s| s == CallState::Complete as u8) {
        out.state.resize(n, CallState::Complete);
        return Ok(());
    }
    let table = states();
    for &s in &raw {
        let Some(state) = table.get(usize::from(s)).copied().flatten() else {
            return Err(Error::invalid(CORE, format!("unknown state {s:#x}")));
        };
        out.state.push(state);
    }
    if raw.iter().any(|&s| s & UNSELECTED != 0) {
        out.unselected.extend(raw.iter().map(|&s| s & UNSELECTED != 0));
    }
    Ok(())
}

/// The time message.
pub(crate) fn write_time(c: &Columns, window_start: u64) -> Builder<HeapAllocator> {
    let mut message = new_message(c.end.len() * 8 + 512);
    let mut b = message.init_root::<schema::syscalls_time::Builder<'_>>();
    let (end, dur) = (&c.end[c.carry_rows..], &c.dur[c.carry_rows..]);
    let plain = deltas(end, window_start);
    match to_start(&plain, dur).filter(|gaps| bits(gaps.iter().map(|&v| zigzag(v))) < bits(plain.iter().copied())) {
        Some(gaps) => {
            b.set_end_from(EndFrom::PreviousEndToStart);
            put_signed(b.reborrow().init_end_delta(), &gaps);
        }
        None => {
            b.set_end_from(EndFrom::PreviousEnd);
            put(b.reborrow().init_end_delta(), &plain);
        }
    }
    let carry0 = if c.carry_rows > 0 { c.start[0] } else { 0 };
    b.set_carry_start0(carry0);
    put(b.reborrow().init_carry_start_delta(), &deltas(&c.start[..c.carry_rows], carry0));
    // of no call known: the column is absent
    if c.cpu.iter().any(|&cpu| cpu != CPU_NONE) {
        put(b.init_cpu(), &c.cpu);
    }
    message
}

/// Starts minus the previous ends; None when one does not fit.
fn to_start(deltas: &[u64], dur: &[u64]) -> Option<Vec<i64>> {
    let fits = |&v: &u64| v <= i64::MAX as u64;
    (deltas.iter().all(fits) && dur.iter().all(fits))
        .then(|| deltas.iter().zip(dur).map(|(&delta, &dur)| delta as i64 - dur as i64).collect())
}

/// The ends of rows, from `base`, in place of their deltas; None when one is not in range.
fn ends(deltas: &mut [u64], dur: &[u64], from: EndFrom, base: u64) -> Option<()> {
    if from == EndFrom::PreviousEndToStart {
        let mut bad = false;
        for (delta, &dur) in deltas.iter_mut().zip(dur) {
            let (step, out) = dur.overflowing_add_signed(*delta as i64);
            bad |= out;
            *delta = step;
        }
        if bad {
            return None;
        }
    }
    sums(deltas, base)
}

/// Starts and CPUs of the rows of `core`.
pub(crate) fn read_time(header: &Header, message: &Message<'_>, dict: &Dict, core: &Core) -> Result<Time> {
    let err = capnp_err(TIME);
    let n = core.dur.len();
    same_rows(TIME, header, core)?;
    let r = message.get_root::<schema::syscalls_time::Reader<'_>>().map_err(&err)?;
    let name = |column| Name { block: TIME, column };
    let carry = core.carry_rows.min(n);
    let overflow = |what: &str| Error::invalid(TIME, format!("{what} passes 2^64 - 1"));
    let mut start = Vec::new();
    need(name("carryStartDelta"), r.get_carry_start_delta().map_err(&err)?, carry, &mut start)?;
    sums(&mut start, r.get_carry_start0()).ok_or_else(|| overflow("a carry row's start"))?;
    if start.iter().zip(&core.dur).any(|(&start, &dur)| start.checked_add(dur).is_none()) {
        return Err(overflow("a carry row's end"));
    }
    let mut end = Vec::new();
    need(name("endDelta"), r.get_end_delta().map_err(&err)?, n - carry, &mut end)?;
    let from = match r.get_end_from() {
        Ok(from @ (EndFrom::PreviousEnd | EndFrom::PreviousEndToStart)) => from,
        Ok(EndFrom::Unknown) => return Err(Error::invalid(TIME, "endFrom 0")),
        Err(e) => return Err(Error::invalid(TIME, format!("unknown endFrom {}", e.0))),
    };
    ends(&mut end, &core.dur[carry..], from, dict.window_start).ok_or_else(|| overflow("an end"))?;
    start.extend(end.iter().zip(&core.dur[carry..]).map(|(&end, &dur): (&u64, &u64)| end.saturating_sub(dur)));
    let mut cpu = Vec::new();
    get(name("cpu"), r.get_cpu().map_err(&err)?, n, &mut cpu)?;
    Ok(Time { start, cpu })
}

/// Refuses a group whose header has another number of rows than core.
fn same_rows(what: &'static str, header: &Header, core: &Core) -> Result<()> {
    let n = core.dur.len();
    if core.task.len() != n || core.call.len() != n {
        return Err(Error::invalid(
            what,
            format!("core has {n} durations, {} tasks, {} calls", core.task.len(), core.call.len()),
        ));
    }
    if (header.rows as usize, header.carry_rows as usize) != (n, core.carry_rows) {
        let why = format!(
            "{} rows, {} carry rows where syscalls.core has {n}, {}",
            header.rows, header.carry_rows, core.carry_rows
        );
        return Err(Error::invalid(what, why));
    }
    Ok(())
}

/// The args message. `order` is the column order; `ret`, `args` and `unknown` are by insertion id, `ids` the ids in row order.
pub(crate) fn write_args(
    order: &[u32],
    ids: &[u32],
    ret: &[i64],
    args: &[[u64; 6]],
    unknown: &[u8],
) -> Builder<HeapAllocator> {
    let n = order.len();
    let mut message = new_message(n * 32 + 1024);
    let mut b = message.init_root::<schema::syscalls_args::Builder<'_>>();
    let order: Vec<u32> = order.iter().map(|&row| ids[row as usize]).collect();
    let ret: Vec<i64> = order.iter().map(|&id| ret[id as usize]).collect();
    put_signed(b.reborrow().init_ret(), &ret);
    // a row's arguments stand together: each row is looked up once, and a few make a part of each column
    let mut columns: [Vec<u64>; 6] = std::array::from_fn(|_| Vec::with_capacity(n));
    const PART: usize = 64;
    let mut part = [[0u64; PART]; 6];
    for ids in order.chunks(PART) {
        for (at, &id) in ids.iter().enumerate() {
            part.iter_mut().zip(args[id as usize]).for_each(|(column, arg)| column[at] = arg);
        }
        columns.iter_mut().zip(&part).for_each(|(column, part)| column.extend_from_slice(&part[..ids.len()]));
    }
    if unknown.iter().any(|&bits| bits != 0) {
        let bits: Vec<u8> = order.iter().map(|&id| unknown[id as usize]).collect();
        put(b.reborrow().init_unknown(), &bits);
    }
    let mut list = b.init_args(6);
    (0..).zip(&columns).for_each(|(k, column)| put_repeating(list.reborrow().get(k), column));
    message
}

/// Return values and arguments of the rows of `core`; those that are not `picked` have 0.
pub(crate) fn read_args(header: &Header, message: &Message<'_>, core: &Core, picked: &PickedRows) -> Result<Args> {
    let err = capnp_err(ARGS);
    let n = core.dur.len();
    same_rows(ARGS, header, core)?;
    let r = message.get_root::<schema::syscalls_args::Reader<'_>>().map_err(&err)?;
    let mut column: Vec<u64> = Vec::new();
    let mut out = Args::default();
    if get(Name { block: ARGS, column: "ret" }, r.get_ret().map_err(&err)?, n, &mut column)? {
        out.ret = vec![0; n];
        picked.each(&column, |row, v| out.ret[row] = v as i64);
    }
    let list = r.get_args().map_err(&err)?;
    if list.len() > 6 {
        return Err(Error::invalid(ARGS, format!("{} arguments > limit 6", list.len())));
    }
    if list.is_empty() {
        return Ok(out);
    }
    out.args = vec![[0; 6]; n];
    for (k, col) in list.iter().enumerate() {
        need(Name { block: ARGS, column: "args" }, col, n, &mut column)?;
        picked.each(&column, |row, v| out.args[row][k] = v);
    }
    if get(Name { block: ARGS, column: "unknown" }, r.get_unknown().map_err(&err)?, n, &mut column)? {
        if let Some(bits) = column.iter().find(|&&bits| bits > 0x3f) {
            return Err(Error::invalid(ARGS, format!("unknown arguments {bits:#x}")));
        }
        out.unknown = vec![0; n];
        picked.each(&column, |row, v| out.unknown[row] = v as u8);
    }
    Ok(out)
}

/// The fds message; see [`write_args`] for `order` and `ids`.
pub(crate) fn write_fds(order: &[u32], ids: &[u32], fds: [&[u32]; 2], names: &Strings) -> Builder<HeapAllocator> {
    let mut message = new_message(order.len() * 8 + names.len() * 16 + names.bytes() + 512);
    let mut b = message.init_root::<schema::syscalls_fds::Builder<'_>>();
    let column = |fd: &[u32]| -> Vec<u64> { order.iter().map(|&row| fd[ids[row as usize] as usize].into()).collect() };
    put_running(b.reborrow().init_fd(), &column(fds[0]));
    if fds[1].iter().any(|&fd| fd != FD_NONE) {
        put_running(b.reborrow().init_fd2(), &column(fds[1]));
    }
    let mut list = b.init_names(names.len() as u32);
    for (i, name) in names.iter().enumerate() {
        list.reborrow().get(i as u32).set_name(name);
    }
    message
}

/// Paths of fd arguments, for the rows of `core`; those that are not `picked` have none, and of names only theirs are there.
pub(crate) fn read_fds(header: &Header, message: &Message<'_>, core: &Core, picked: &PickedRows) -> Result<Fds> {
    let err = capnp_err(FDS);
    let n = core.dur.len();
    same_rows(FDS, header, core)?;
    let r = message.get_root::<schema::syscalls_fds::Reader<'_>>().map_err(&err)?;
    let list = r.get_names().map_err(&err)?;
    list_len::<schema::fd_name::Builder<'_>>(FDS, "names", list.len(), header)?;
    let mut names = list.iter().map(|r| r.get_name().map_err(&err)).collect::<Result<Vec<_>>>()?;
    let limit = names.len() + FD_FIRST as usize;
    let row_order = |column: Vec<u64>| -> Result<Vec<u32>> {
        if let Some(&max) = column.iter().max().filter(|&&max| max >= limit as u64) {
            return Err(Error::invalid(FDS, format!("fd {max} where there are {} names", limit - FD_FIRST as usize)));
        }
        let mut rows = vec![FD_NONE; n];
        picked.each(&column, |row, v| rows[row] = v as u32);
        Ok(rows)
    };
    let mut fds = Fds::default();
    let mut column = Vec::new();
    if get(Name { block: FDS, column: "fd" }, r.get_fd().map_err(&err)?, n, &mut column)? {
        fds.fd = row_order(column)?;
    }
    let mut column = Vec::new();
    if get(Name { block: FDS, column: "fd2" }, r.get_fd2().map_err(&err)?, n, &mut column)? {
        fds.fd2 = row_order(column)?;
    }
    if !picked.is_all() {
        names = only_used(&mut fds, &names);
    }
    fds.names = names.into_iter().map(<[u8]>::to_vec).collect();
    Ok(fds)
}

/// Those of `names` that rows of `fds` have, which get their new numbers.
fn only_used<'a>(fds: &mut Fds, names: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let (mut numbers, mut used) = (vec![FD_NONE; names.len()], Vec::new());
    for fd in fds.fd.iter_mut().chain(&mut fds.fd2).filter(|fd| **fd >= FD_FIRST) {
        let at = (*fd - FD_FIRST) as usize;
        if numbers[at] == FD_NONE {
            numbers[at] = used.len() as u32 + FD_FIRST;
            used.push(names[at]);
        }
        *fd = numbers[at];
    }
    used
}

/// The bytes message.
pub(crate) fn write_bytes(v: &CapturedValues) -> Builder<HeapAllocator> {
    let mut message = new_message(v.row.len() * 24 + v.bytes.len() + 512);
    let mut b = message.init_root::<schema::syscalls_bytes::Builder<'_>>();
    b.set_n(v.row.len() as u32);
    let mut before = 0;
    let rows: Vec<u32> = v.row.iter().map(|&row| row.wrapping_sub(std::mem::replace(&mut before, row))).collect();
    put(b.reborrow().init_row(), &rows);
    put(b.reborrow().init_arg(), &v.arg);
    put(b.reborrow().init_status(), &v.status);
    put(b.reborrow().init_len(), &v.len);
    put(b.reborrow().init_full(), &v.full);
    b.set_bytes(&v.bytes);
    message
}

/// Captured values of those rows of a segment that are `picked`; its core has `rows` rows.
pub(crate) fn read_bytes(
    header: &Header,
    message: &Message<'_>,
    rows: usize,
    picked: Option<&PickedRows>,
) -> Result<Vec<Captured>> {
    let err = capnp_err(BYTES);
    let r = message.get_root::<schema::syscalls_bytes::Reader<'_>>().map_err(&err)?;
    if r.get_n() != header.rows {
        return Err(Error::invalid(BYTES, format!("{} values, its header says {}", r.get_n(), header.rows)));
    }
    // At most 16 values a row: 8 places, two of them taken by the bit.
    let n = rows_of(BYTES, r.get_n())?;
    let name = |column| Name { block: BYTES, column };
    let (mut row, mut len) = (Vec::<u32>::new(), Vec::<u32>::new());
    let (mut arg, mut status, mut full) = (Vec::<u8>::new(), Vec::<u8>::new(), Vec::<u64>::new());
    need(name("row"), r.get_row().map_err(&err)?, n, &mut row)?;
    need(name("arg"), r.get_arg().map_err(&err)?, n, &mut arg)?;
    need(name("status"), r.get_status().map_err(&err)?, n, &mut status)?;
    need(name("len"), r.get_len().map_err(&err)?, n, &mut len)?;
    need(name("full"), r.get_full().map_err(&err)?, n, &mut full)?;
    let bytes = r.get_bytes().map_err(&err)?;
    let mut rest: &[u8] = bytes;
    let mut out: Vec<Captured> = Vec::with_capacity(if picked.is_none_or(PickedRows::is_all) { n } else { 0 });
    let (mut at, mut last) = (0u64, (0, 0));
    for i in 0..n {
        let bad = |why: String| Error::invalid(BYTES, format!("value {i}: {why}"));
        at += u64::from(row[i]);
        if at >= rows as u64 {
            return Err(bad(format!("row {at} of {rows}")));
        }
        if arg[i] & !SECOND_VALUE > 5 && ![BESIDE, NEEDS].contains(&arg[i]) {
            return Err(bad(format!("argument {}", arg[i])));
        }
        let status = ByteStatus::from_raw(status[i]).ok_or_else(|| bad(format!("unknown status {}", status[i])))?;
        let (value, tail) = rest
            .split_at_checked(len[i] as usize)
            .ok_or_else(|| bad(format!("{} bytes where {} are left of {}", len[i], rest.len(), bytes.len())))?;
        rest = tail;
        let row = at as u32;
        if last > (row, arg[i]) {
            return Err(bad("not sorted by (row, arg)".to_owned()));
        }
        last = (row, arg[i]);
        if picked.is_none_or(|picked| picked.has(row)) {
            out.push(Captured { row, arg: arg[i], status, full: full[i], bytes: value.to_vec() });
        }
    }
    if !rest.is_empty() {
        return Err(Error::invalid(BYTES, format!("{} bytes belong to no value", rest.len())));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    #[test]
    fn a_state_with_a_bit_that_has_no_meaning_is_refused() {
        let two = || vec![0u32; 2];
        let columns = || Columns { dur: vec![5, 6], task: two(), call: two(), errno: vec![0; 2], ..Columns::default() };
        let dict = Dict { tasks: vec![Default::default()], calls: vec![Default::default()], ..Dict::default() };
        let read = |raw: u8| {
            let message = write_core(&Columns { state: vec![raw, CallState::Complete as u8], ..columns() });
            let read = |h: &Header, m: &Message<'_>| {
                let mut core = Core::default();
                read_core(h, m, &dict, &mut core).map(|()| (core.state[0], !core.unselected.is_empty()))
            };
            reread(&message, 2, read).map_err(|e| e.to_string())
        };
        let killed = CallState::Killed as u8;
        assert_eq!(read(killed), Ok((CallState::Killed, false)));
        assert_eq!(read(killed | UNSELECTED), Ok((CallState::Killed, true)));
        for bit in 5..8 {
            let error = read(killed | 1 << bit).expect_err("bits 5 to 7 must be 0");
            assert!(error.contains(&format!("unknown state {:#x}", killed | 1 << bit)), "{error}");
        }
    }
}

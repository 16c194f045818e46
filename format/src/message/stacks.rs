//! Stacks of a segment's events, CPU samples, and threads that sleep.

use super::data;
use super::rows::{Rows, deltas, minus_one, nexts, plus_one, rows_as_header, rows_of};
use crate::column::{put, put_signed};
use crate::error::{Error, Result, capnp_err};
use crate::header::{Header, MAX_ROWS};
use crate::model::{
    Attached, Ends, FRAME_EXACT, FRAME_GUESSED, FRAME_SIGNAL, Frame, Mapping, MappingKind, Node, Sample, Sleeper,
    StackOf, StackStatus, Stacks,
};
use crate::payload::{Message, list_len, new_message};
use crate::trace_capnp as schema;
use crate::tree::OrderedTree;
use capnp::message::{Builder, HeapAllocator};

const SAMPLES: &str = "samples";
const STACKS: &str = "stacks";
const SLEEPERS: &str = "sleepers";

/// Most bytes of a sample in a message, in any layout of its columns.
pub(crate) const SAMPLE_BYTES: usize = 20;
/// Most bytes of a sleeper.
pub(crate) const SLEEPER_BYTES: usize = 16;
/// Most bytes of a frame.
pub(crate) const FRAME_BYTES: usize = 16;
/// Most bytes of a node.
pub(crate) const NODE_BYTES: usize = 8;
/// Most bytes of an attached stack unlike all others.
pub(crate) const ATTACHED_BYTES: usize = 20;
/// Most bytes of a mapping.
pub(crate) fn mapping_bytes(m: &Mapping) -> usize {
    24 + m.build_id.len().next_multiple_of(8) + m.path.len().next_multiple_of(8)
}

/// Bit of `flags` of a sample.
const KERNEL: u8 = 1;
/// Bits of `flags` of a frame.
pub(crate) const FRAME_FLAGS: u8 = FRAME_EXACT | FRAME_SIGNAL | FRAME_GUESSED;

/// The samples message; `rows` must be sorted by ts.
pub(crate) fn write_samples(rows: &[Sample]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * SAMPLE_BYTES + 512);
    let mut b = message.init_root::<schema::samples::Builder<'_>>();
    let ts: Vec<u64> = rows.iter().map(|r| r.ts).collect();
    let first = ts.first().copied().unwrap_or(0);
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&ts, first));
    put(b.reborrow().init_cpu(), &rows.iter().map(|r| r.cpu).collect::<Vec<_>>());
    put(b.reborrow().init_task(), &rows.iter().map(|r| r.task).collect::<Vec<_>>());
    put(b.init_flags(), &rows.iter().map(|r| if r.kernel { KERNEL } else { 0 }).collect::<Vec<_>>());
    message
}

/// The samples of a samples block whose segment has `tasks` tasks.
pub(crate) fn read_samples(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<Sample>> {
    let r = message.get_root::<schema::samples::Reader<'_>>().map_err(capnp_err(SAMPLES))?;
    let n = rows_as_header(SAMPLES, r.get_rows(), header)?;
    let rows = Rows { block: SAMPLES, n };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let cpu: Vec<u32> = rows.column("cpu", r.get_cpu())?;
    let task = rows.tasks("task", r.get_task(), tasks)?;
    let flags: Vec<u8> = rows.column("flags", r.get_flags())?;
    if let Some(flags) = flags.iter().find(|&&flags| flags & !KERNEL != 0) {
        return Err(Error::invalid(SAMPLES, format!("unknown flags {flags:#x}")));
    }
    let row = |(i, &ts): (usize, &u64)| Sample { ts, cpu: cpu[i], task: task[i], kernel: flags[i] & KERNEL != 0 };
    Ok(ts.iter().enumerate().map(row).collect())
}

/// The sleepers message; `rows` must be sorted by ts.
pub(crate) fn write_sleepers(rows: &[Sleeper]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * SLEEPER_BYTES + 512);
    let mut b = message.init_root::<schema::sleepers::Builder<'_>>();
    let ts: Vec<u64> = rows.iter().map(|r| r.ts).collect();
    let first = ts.first().copied().unwrap_or(0);
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&ts, first));
    put(b.reborrow().init_task(), &rows.iter().map(|r| r.task).collect::<Vec<_>>());
    put(b.init_state(), &rows.iter().map(|r| r.state).collect::<Vec<_>>());
    message
}

/// The sleepers of a block whose segment has `tasks` tasks.
pub(crate) fn read_sleepers(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<Sleeper>> {
    let r = message.get_root::<schema::sleepers::Reader<'_>>().map_err(capnp_err(SLEEPERS))?;
    let n = rows_as_header(SLEEPERS, r.get_rows(), header)?;
    let rows = Rows { block: SLEEPERS, n };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let task = rows.tasks("task", r.get_task(), tasks)?;
    let state: Vec<u8> = rows.column("state", r.get_state())?;
    Ok(ts.iter().enumerate().map(|(i, &ts)| Sleeper { ts, task: task[i], state: state[i] }).collect())
}

type Mappings<'a> = capnp::struct_list::Builder<'a, schema::mapping::Owned>;

/// Fills a list of mappings.
pub(super) fn write_mappings(mut list: Mappings<'_>, mappings: &[Mapping]) {
    for (i, m) in mappings.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_kind(m.kind as u8);
        if !m.build_id.is_empty() {
            b.set_build_id(&m.build_id);
        }
        if !m.path.is_empty() {
            b.set_path(&m.path);
        }
        b.set_upid(m.upid);
    }
}

/// A list of mappings.
pub(super) fn read_mappings(
    what: &'static str,
    header: &Header,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::mapping::Owned>>,
) -> Result<Vec<Mapping>> {
    let list = list.map_err(capnp_err(what))?;
    let n = list_len::<schema::mapping::Builder<'_>>(what, "mappings", list.len(), header)?;
    let mut mappings = Vec::with_capacity(n);
    for (i, r) in list.iter().enumerate() {
        let raw = r.get_kind();
        let kind = MappingKind::from_raw(raw)
            .ok_or_else(|| Error::invalid(what, format!("mapping {i} has unknown kind {raw}")))?;
        let (build_id, path) = (data(what, r.get_build_id())?, data(what, r.get_path())?);
        mappings.push(Mapping { kind, build_id, path, upid: r.get_upid() });
    }
    Ok(mappings)
}

/// Differences to the value before, the first to 0; modulo 2^64.
fn steps(values: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0;
    values.map(|v| v.wrapping_sub(std::mem::replace(&mut before, v)) as i64).collect()
}

/// The stacks message.
pub(crate) fn write_stacks(ordered: &OrderedTree) -> Builder<HeapAllocator> {
    let OrderedTree { stacks: s, end_ids, .. } = ordered;
    let ends = &s.distinct;
    let mappings: usize = s.mappings.iter().map(mapping_bytes).sum();
    let columns =
        s.frames.len() * FRAME_BYTES + s.nodes.len() * NODE_BYTES + s.attached.len().max(ends.len()) * ATTACHED_BYTES;
    let mut message = new_message(mappings + columns + 1024);
    let mut b = message.init_root::<schema::stacks::Builder<'_>>();
    write_mappings(b.reborrow().init_mappings(s.mappings.len() as u32), &s.mappings);

    b.set_frames(s.frames.len() as u32);
    put(b.reborrow().init_mapping(), &s.frames.iter().map(|f| f.mapping).collect::<Vec<_>>());
    let mut last = vec![0u64; s.mappings.len()];
    let offset = |f: &Frame| f.offset.wrapping_sub(std::mem::replace(&mut last[f.mapping as usize], f.offset)) as i64;
    put_signed(b.reborrow().init_offset(), &s.frames.iter().map(offset).collect::<Vec<_>>());
    put(b.reborrow().init_flags(), &s.frames.iter().map(|f| f.flags).collect::<Vec<_>>());

    b.set_nodes(s.nodes.len() as u32);
    let parent = |(i, n): (usize, &Node)| n.parent.map_or(0, |parent| i as u32 - parent);
    put(b.reborrow().init_parent(), &s.nodes.iter().enumerate().map(parent).collect::<Vec<_>>());
    put(b.reborrow().init_frame(), &nexts(s.nodes.iter().map(|n| n.frame)));

    b.set_stacks(ends.len() as u32);
    let user = ends.iter().map(|end| u64::from(plus_one(end.user)));
    put_signed(b.reborrow().init_user(), &steps(user));
    let kernel = ends.iter().map(|end| plus_one(end.kernel));
    put(b.reborrow().init_kernel(), &kernel.collect::<Vec<_>>());
    put(b.reborrow().init_status(), &ends.iter().map(|end| end.status as u8).collect::<Vec<_>>());

    b.set_rows(s.attached.len() as u32);
    put(b.reborrow().init_of(), &s.attached.iter().map(|a| a.of as u8).collect::<Vec<_>>());
    let mut before = (None, 0);
    let row = |a: &Attached| match std::mem::replace(&mut before, (Some(a.of), a.row)) {
        (Some(of), row) if of == a.of => a.row - row,
        _ => a.row,
    };
    put(b.reborrow().init_row(), &s.attached.iter().map(row).collect::<Vec<_>>());
    put(b.init_stack(), &nexts(end_ids.iter().copied()));
    message
}

/// The stacks of a stacks block. The caller checks that each row is one of the segment's, because rows are in other
/// blocks. No row is [`MAX_ROWS`] or more.
pub(crate) fn read_stacks(header: &Header, message: &Message<'_>) -> Result<Stacks> {
    let bad = |why: String| Error::invalid(STACKS, why);
    let r = message.get_root::<schema::stacks::Reader<'_>>().map_err(capnp_err(STACKS))?;
    let mappings = read_mappings(STACKS, header, r.get_mappings())?;
    let frames = read_frames(&r, mappings.len())?;
    let nodes = read_nodes(&r, frames.len())?;

    let rows = Rows { block: STACKS, n: rows_of(STACKS, r.get_stacks())? };
    let user = rows.steps("user", r.get_user(), nodes.len())?;
    let kernel: Vec<u32> = rows.column("kernel", r.get_kernel())?;
    if let Some(kernel) = kernel.iter().find(|&&kernel| kernel as usize > nodes.len()) {
        return Err(bad(format!("kernel {kernel} where there are {}", nodes.len())));
    }
    let status: Vec<u8> = rows.column("status", r.get_status())?;
    let mut distinct = Vec::with_capacity(status.len());
    for (i, raw) in status.into_iter().enumerate() {
        let status = StackStatus::from_raw(raw).ok_or_else(|| bad(format!("stack {i}: unknown status {raw}")))?;
        distinct.push(Ends { user: minus_one(user[i]), kernel: minus_one(kernel[i]), status });
    }

    let n = rows_as_header(STACKS, r.get_rows(), header)?;
    let rows = Rows { block: STACKS, n };
    let of: Vec<u8> = rows.column("of", r.get_of())?;
    let row: Vec<u32> = rows.column("row", r.get_row())?;
    let stack = rows.nexts("stack", r.get_stack(), distinct.len())?;
    let mut attached: Vec<Attached> = Vec::with_capacity(n);
    for (i, &stack) in stack.iter().enumerate() {
        let kind = StackOf::from_raw(of[i]).ok_or_else(|| bad(format!("row {i}: of unknown kind {}", of[i])))?;
        let row = match attached.last() {
            Some(before) if before.of > kind => return Err(bad(format!("row {i}: kind {} is not sorted", of[i]))),
            Some(before) if before.of == kind && row[i] == 0 => return Err(bad(format!("row {i}: a second stack"))),
            Some(before) if before.of == kind => before.row.saturating_add(row[i]),
            _ => row[i],
        };
        if row >= MAX_ROWS {
            return Err(bad(format!("row {i}: event {row} > limit {MAX_ROWS}")));
        }
        let Ends { user, kernel, status } = distinct[stack as usize];
        attached.push(Attached { of: kind, row, user, kernel, status });
    }
    Ok(Stacks { mappings, frames, nodes, attached, distinct })
}

fn read_frames(r: &schema::stacks::Reader<'_>, mappings: usize) -> Result<Vec<Frame>> {
    let rows = Rows { block: STACKS, n: rows_of(STACKS, r.get_frames())? };
    let mapping: Vec<u32> = rows.column("mapping", r.get_mapping())?;
    if let Some(mapping) = mapping.iter().find(|&&mapping| mapping as usize >= mappings) {
        return Err(Error::invalid(STACKS, format!("mapping {mapping} where there are {mappings}")));
    }
    let offset: Vec<u64> = rows.column("offset", r.get_offset())?;
    let flags: Vec<u8> = rows.column("flags", r.get_flags())?;
    if let Some(flags) = flags.iter().find(|&&flags| flags & !FRAME_FLAGS != 0) {
        return Err(Error::invalid(STACKS, format!("unknown flags {flags:#x} of a frame")));
    }
    let mut last = vec![0u64; mappings];
    let frame = |(i, &mapping): (usize, &u32)| {
        let slot = &mut last[mapping as usize];
        *slot = slot.wrapping_add(offset[i]);
        Frame { mapping, offset: *slot, flags: flags[i] }
    };
    Ok(mapping.iter().enumerate().map(frame).collect())
}

fn read_nodes(r: &schema::stacks::Reader<'_>, frames: usize) -> Result<Vec<Node>> {
    let rows = Rows { block: STACKS, n: rows_of(STACKS, r.get_nodes())? };
    let parent: Vec<u32> = rows.column("parent", r.get_parent())?;
    let frame = rows.nexts("frame", r.get_frame(), frames)?;
    let node = |(i, (&back, &frame)): (usize, (&u32, &u32))| {
        let parent = match back {
            0 => None,
            _ => Some((i as u32).checked_sub(back).ok_or_else(|| {
                Error::invalid(STACKS, format!("node {i} has its caller {back} nodes before: there are not as many"))
            })?),
        };
        Ok(Node { parent, frame })
    };
    parent.iter().zip(&frame).enumerate().map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;
    use crate::tree::order;

    /// Two calls and a sample of one user stack, the second call with a kernel part; an unused node in between.
    fn sample() -> OrderedTree {
        let mapping = |path: &[u8]| Mapping { path: path.to_vec(), kind: MappingKind::Elf, ..Mapping::default() };
        let attached = |of, row, user, kernel| Attached { of, row, user, kernel, status: StackStatus::Complete };
        let stacks = Stacks {
            mappings: vec![mapping(b"unused"), mapping(b"a"), mapping(b"b")],
            frames: vec![
                Frame { mapping: 2, offset: 9, flags: 1 },
                Frame { mapping: 0, offset: 1, flags: 0 },
                Frame { mapping: 1, offset: u64::MAX, flags: 0 },
            ],
            nodes: vec![
                Node { parent: None, frame: 2 },
                Node { parent: None, frame: 1 },
                Node { parent: Some(0), frame: 0 },
                Node { parent: None, frame: 0 },
            ],
            attached: vec![
                attached(StackOf::Sample, 5, Some(2), None),
                attached(StackOf::Syscall, 4, Some(2), Some(3)),
                attached(StackOf::Syscall, 1, Some(2), None),
                attached(StackOf::Syscall, 4, None, None),
            ],
            ..Stacks::default()
        };
        order(&stacks, |_, id| id)
    }

    type Root<'a> = schema::stacks::Builder<'a>;

    /// What reading the sample with a change to the message gives.
    fn forged(forge: impl FnOnce(Root<'_>)) -> Result<Stacks, String> {
        let mut message = write_stacks(&sample());
        forge(message.get_root().expect("the root"));
        reread(&message, 3, read_stacks).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_are_those_of_first_use() {
        let got = forged(|_| ()).expect("own message");
        assert_eq!(got, sample().stacks);
        assert_eq!(got.mappings.iter().map(|m| &m.path[..]).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(got.nodes.len(), 3, "one is of no stack");
        let rows: Vec<_> = got.attached.iter().map(|a| (a.of, a.row, a.user, a.kernel)).collect();
        assert_eq!(
            rows,
            [
                (StackOf::Syscall, 1, Some(1), None),
                (StackOf::Syscall, 4, Some(1), Some(2)),
                (StackOf::Sample, 5, Some(1), None),
            ],
            "of two stacks of one call the first"
        );
        assert_eq!(got.frames_from(Some(1)).map(|f| f.offset).collect::<Vec<_>>(), [9, u64::MAX]);
    }

    #[test]
    fn stacks_that_break_a_must_are_refused() {
        let says = |what: &str, forge: &dyn Fn(Root<'_>)| {
            let e = forged(forge).expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says("mapping 1 has unknown kind 7", &|b| b.get_mappings().expect("mappings").get(1).set_kind(7));
        says("mapping 2 where there are 2", &|b| put(b.init_mapping(), &[0u32, 2]));
        says("unknown flags 0x8 of a frame", &|b| put(b.init_flags(), &[0u32, 8]));
        says("2 values for 3 rows", &|mut b| b.set_frames(3));
        says("node 1 has its caller 2 nodes before", &|b| put(b.init_parent(), &[0u32, 2, 0]));
        says("node 0 has its caller 1 nodes before", &|b| put(b.init_parent(), &[1u32, 0, 0]));
        says("frame 2 where there are 2", &|b| put(b.init_frame(), &[0u32, 0, 0]));
        says("frame 6 where there are 2", &|b| put(b.init_frame(), &[1u32, 7, 1]));
        says("user 4 where there are 3", &|b| put(b.init_user(), &[2u32, 2]));
        says("user 18446744073709551615 where there are 3", &|b| put_signed(b.init_user(), &[-1, 0]));
        says("kernel 4 where there are 3", &|b| put(b.init_kernel(), &[0u32, 4]));
        says("unknown status 17", &|b| put(b.init_status(), &[17u32, 1]));
        says("row 0: of unknown kind 0", &|b| put(b.init_of(), &[0u32, 1, 6]));
        says("row 2: of unknown kind 8", &|b| put(b.init_of(), &[1u32, 1, 8]));
        says("row 1: kind 1 is not sorted", &|b| put(b.init_of(), &[2u32, 1, 6]));
        says("row 1: a second stack", &|b| put(b.init_row(), &[1u32, 0, 5]));
        says("row 2: event 1048576 > limit", &|b| put(b.init_row(), &[1u32, 3, 1 << 20]));
        says("row 1: event 4294967295 > limit", &|b| put(b.init_row(), &[1u32, u32::MAX, 5]));
        says("stack 2 where there are 2", &|b| put(b.init_stack(), &[0u32, 0, 0]));
        says("4 rows, its header says 3", &|mut b| b.set_rows(4));
        says("absent", &|b| _ = b.init_stack());
        let limit = "> limit 1048576";
        says(limit, &|mut b| b.set_frames(u32::MAX));
        says(limit, &|mut b| b.set_nodes(u32::MAX));
        says(limit, &|mut b| b.set_stacks(u32::MAX));
    }

    #[test]
    fn samples_that_break_a_must_are_refused() {
        let rows = [Sample { ts: 5, cpu: 1, task: 1, kernel: true }, Sample::default()];
        let rows = [rows[1], rows[0]];
        let forged = |tasks, forge: &dyn Fn(schema::samples::Builder<'_>)| {
            let mut message = write_samples(&rows);
            forge(message.get_root().expect("the root"));
            reread(&message, 2, |h, m| read_samples(h, m, tasks)).map_err(|e| e.to_string())
        };
        assert_eq!(forged(2, &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: Result<Vec<Sample>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged(1, &|_| ()), "task 1 where the dict has 1");
        says(forged(2, &|b| put(b.init_flags(), &[0u32, 2])), "unknown flags 0x2");
        says(forged(2, &|mut b| b.set_first(u64::MAX)), "a time passes 2^64 - 1");
        says(forged(2, &|mut b| b.set_rows(3)), "3 rows, its header says 2");
    }

    #[test]
    fn sleepers_that_break_a_must_are_refused() {
        let rows = [Sleeper { ts: 5, task: 0, state: b'D' }, Sleeper { ts: 9, task: 1, state: b'S' }];
        let forged = |tasks, forge: &dyn Fn(schema::sleepers::Builder<'_>)| {
            let mut message = write_sleepers(&rows);
            forge(message.get_root().expect("the root"));
            reread(&message, 2, |h, m| read_sleepers(h, m, tasks)).map_err(|e| e.to_string())
        };
        assert_eq!(forged(2, &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: Result<Vec<Sleeper>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged(1, &|_| ()), "task 1 where the dict has 1");
        says(forged(2, &|mut b| b.set_first(u64::MAX)), "a time passes 2^64 - 1");
        says(forged(2, &|b| put(b.init_state(), &[256u32, 1])), "state");
        says(forged(2, &|mut b| b.set_rows(3)), "3 rows, its header says 2");
    }
}

//! Checkpoints, which may take several blocks ("parts") on a large machine.

use std::ops::Range;

use super::dict::{read_tasks, task_bytes, write_tasks};
use super::{data, read_clock, text, write_clock};
use crate::error::{Result, capnp_err};
use crate::header::Header;
use crate::model::{Call, Checkpoint, CommandLine, Fd, FdTable, InFlight, MAX_VALUE, RunState};
use crate::payload::{Message, list_len, new_message, plain_len};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const CHECKPOINT: &str = "checkpoint";

/// Estimated bytes at which the next part begins: half of a block's limit.
const PART_BYTES: usize = 4 << 20;

/// The share of a checkpoint in one block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) tasks: Range<usize>,
    /// (table, which of its fds).
    pub(crate) tables: Vec<(usize, Range<usize>)>,
    pub(crate) in_flight: Range<usize>,
    pub(crate) run: Range<usize>,
    pub(crate) commands: Range<usize>,
    bytes: usize,
}

/// The stored part of a command line. It is cut like a captured value; `full` has its size.
fn head(argv: &[u8]) -> &[u8] {
    argv.get(..MAX_VALUE).unwrap_or(argv)
}

/// Divides a checkpoint into parts that fit blocks; at least one.
pub(crate) fn split_checkpoint(cp: &Checkpoint) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part::default();
    // Starts the next part when `bytes` more would not fit.
    let mut room = |part: &mut Part, bytes: usize| {
        if part.bytes > 0 && part.bytes + bytes > PART_BYTES {
            let next = Part {
                tasks: part.tasks.end..part.tasks.end,
                in_flight: part.in_flight.end..part.in_flight.end,
                run: part.run.end..part.run.end,
                commands: part.commands.end..part.commands.end,
                ..Part::default()
            };
            parts.push(std::mem::replace(part, next));
        }
        part.bytes += bytes;
    };
    for task in &cp.tasks {
        room(&mut part, task_bytes(task));
        part.tasks.end += 1;
    }
    for (i, table) in cp.fd_tables.iter().enumerate() {
        room(&mut part, 40 + table.cwd.len().next_multiple_of(8));
        part.tables.push((i, 0..0));
        for (j, fd) in table.fds.iter().enumerate() {
            room(&mut part, 24 + fd.path.len().next_multiple_of(8));
            match part.tables.last_mut() {
                Some((_, fds)) => fds.end = j + 1,
                // The table goes on in a new part.
                None => {
                    part.bytes += 40 + table.cwd.len().next_multiple_of(8);
                    part.tables.push((i, j..j + 1));
                }
            }
        }
    }
    for call in &cp.in_flight {
        room(&mut part, 56 + 8 * call.args.len());
        part.in_flight.end += 1;
    }
    for _ in &cp.run {
        room(&mut part, 32);
        part.run.end += 1;
    }
    for command in &cp.commands {
        room(&mut part, 24 + head(&command.argv).len().next_multiple_of(8));
        part.commands.end += 1;
    }
    parts.push(part);
    parts
}

/// The message of one part.
pub(crate) fn write_checkpoint_part(cp: &Checkpoint, part: &Part) -> Builder<HeapAllocator> {
    let mut message = new_message(part.bytes + 512);
    let mut b = message.init_root::<schema::checkpoint::Builder<'_>>();
    b.set_ts(cp.ts);
    write_clock(b.reborrow().init_clock(), &cp.clock);
    b.set_source(&cp.source);
    let tasks = &cp.tasks[part.tasks.clone()];
    write_tasks(b.reborrow().init_tasks(tasks.len() as u32), tasks);
    let mut list = b.reborrow().init_fd_tables(part.tables.len() as u32);
    for (i, (table, range)) in part.tables.iter().enumerate() {
        let table = &cp.fd_tables[*table];
        let mut b = list.reborrow().get(i as u32);
        b.set_upid(table.upid);
        b.set_complete(table.complete);
        b.set_cwd(&table.cwd);
        b.set_thread(table.thread);
        b.set_own(table.own);
        let fds = &table.fds[range.clone()];
        let mut list = b.init_fds(fds.len() as u32);
        for (i, fd) in fds.iter().enumerate() {
            let mut b = list.reborrow().get(i as u32);
            b.set_fd(fd.fd);
            b.set_path(&fd.path);
            b.set_cloexec(fd.cloexec);
        }
    }
    let calls = &cp.in_flight[part.in_flight.clone()];
    let mut list = b.reborrow().init_in_flight(calls.len() as u32);
    for (i, c) in calls.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_utid(c.utid);
        let mut call = b.reborrow().init_call();
        call.set_abi(c.call.abi);
        call.set_nr(c.call.nr);
        b.set_start(c.start);
        b.set_task_state(c.task_state);
        let mut args = b.init_args(c.args.len() as u32);
        for (i, &arg) in c.args.iter().enumerate() {
            args.set(i as u32, arg);
        }
    }
    let run = &cp.run[part.run.clone()];
    let mut list = b.reborrow().init_run(run.len() as u32);
    for (i, state) in run.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_utid(state.utid);
        b.set_state(state.state);
        b.set_on_cpu(state.on_cpu);
        b.set_cpu(state.cpu);
        b.set_last_run(state.last_run);
        b.set_seen(state.seen);
    }
    let commands = &cp.commands[part.commands.clone()];
    let mut list = b.init_commands(commands.len() as u32);
    for (i, command) in commands.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_upid(command.upid);
        b.set_argv(head(&command.argv));
        b.set_full(command.full.max(if command.argv.len() > MAX_VALUE { command.argv.len() as u64 } else { 0 }));
    }
    message
}

/// Adds a part to a checkpoint; the first one sets ts, clock and source.
pub(crate) fn read_checkpoint_part(
    header: &Header,
    message: &Message<'_>,
    first: bool,
    cp: &mut Checkpoint,
) -> Result<()> {
    let err = capnp_err(CHECKPOINT);
    let r = message.get_root::<schema::checkpoint::Reader<'_>>().map_err(&err)?;
    if first {
        cp.ts = r.get_ts();
        cp.clock = read_clock(CHECKPOINT, r.get_clock())?;
        cp.source = text(CHECKPOINT, r.get_source())?;
    }
    cp.tasks.append(&mut read_tasks(CHECKPOINT, header, r.get_tasks())?);
    let list = r.get_fd_tables().map_err(&err)?;
    list_len::<schema::fd_table::Builder<'_>>(CHECKPOINT, "fdTables", list.len(), header)?;
    for (i, r) in list.iter().enumerate() {
        let fd_list = r.get_fds().map_err(&err)?;
        list_len::<schema::fd::Builder<'_>>(CHECKPOINT, "fds", fd_list.len(), header)?;
        let mut fds = Vec::new();
        for r in fd_list {
            fds.push(Fd { fd: r.get_fd(), path: data(CHECKPOINT, r.get_path())?, cloexec: r.get_cloexec() });
        }
        match cp
            .fd_tables
            .last_mut()
            .filter(|last| !first && i == 0 && (last.upid, last.thread) == (r.get_upid(), r.get_thread()))
        {
            Some(last) => last.fds.append(&mut fds),
            None => cp.fd_tables.push(FdTable {
                upid: r.get_upid(),
                complete: r.get_complete(),
                cwd: data(CHECKPOINT, r.get_cwd())?,
                fds,
                thread: r.get_thread(),
                own: r.get_own(),
            }),
        }
    }
    let list = r.get_in_flight().map_err(&err)?;
    list_len::<schema::in_flight::Builder<'_>>(CHECKPOINT, "inFlight", list.len(), header)?;
    for r in list {
        let call = r.get_call().map_err(&err)?;
        let args = r.get_args().map_err(&err)?;
        plain_len(CHECKPOINT, "args", args.len(), 8, header)?;
        cp.in_flight.push(InFlight {
            utid: r.get_utid(),
            call: Call { abi: call.get_abi(), nr: call.get_nr() },
            start: r.get_start(),
            args: args.iter().collect(),
            task_state: r.get_task_state(),
        });
    }
    let list = r.get_run().map_err(&err)?;
    // 24 bytes each before 1.5
    plain_len(CHECKPOINT, "run", list.len(), 24, header)?;
    cp.run.extend(list.iter().map(|r| RunState {
        utid: r.get_utid(),
        state: r.get_state(),
        on_cpu: r.get_on_cpu(),
        cpu: r.get_cpu(),
        last_run: r.get_last_run(),
        seen: r.get_seen(),
    }));
    let list = r.get_commands().map_err(&err)?;
    list_len::<schema::command_line::Builder<'_>>(CHECKPOINT, "commands", list.len(), header)?;
    for r in list {
        let argv = data(CHECKPOINT, r.get_argv())?;
        cp.commands.push(CommandLine { upid: r.get_upid(), argv, full: r.get_full() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once_and_in_order() {
        let fds = |n: i32| (0..n).map(|fd| Fd { fd, path: vec![b'x'; 100], cloexec: false }).collect();
        let cp = Checkpoint {
            tasks: vec![Default::default(); 100_000],
            fd_tables: vec![
                FdTable { upid: 1, fds: fds(90_000), ..FdTable::default() },
                FdTable { upid: 2, fds: fds(0), ..FdTable::default() },
                FdTable { upid: 3, fds: fds(5), ..FdTable::default() },
            ],
            in_flight: vec![InFlight { args: vec![1; 6], ..InFlight::default() }; 50_000],
            run: vec![RunState::default(); 200_000],
            commands: vec![CommandLine { argv: vec![b'x'; 90], ..CommandLine::default() }; 100_000],
            ..Checkpoint::default()
        };
        let parts = split_checkpoint(&cp);
        assert!(parts.len() > 3, "{}", parts.len());
        let (mut tasks, mut calls, mut fds) = (0, 0, [0; 3]);
        let (mut run, mut commands) = (0, 0);
        for part in &parts {
            assert!(part.bytes <= PART_BYTES + 100);
            assert_eq!((part.tasks.start, part.in_flight.start), (tasks, calls));
            (tasks, calls) = (part.tasks.end, part.in_flight.end);
            assert_eq!((part.run.start, part.commands.start), (run, commands));
            (run, commands) = (part.run.end, part.commands.end);
            for (table, range) in &part.tables {
                assert_eq!(range.start, fds[*table]);
                fds[*table] = range.end;
            }
        }
        assert_eq!((tasks, calls, fds), (100_000, 50_000, [90_000, 0, 5]));
        assert_eq!((run, commands), (200_000, 100_000));
        assert_eq!(split_checkpoint(&Checkpoint::default()), [Part::default()]);
    }
}

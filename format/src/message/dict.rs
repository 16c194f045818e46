//! Tasks and calls: the dict of a segment. Checkpoints have tasks too.

use super::data;
use crate::error::{Error, Result, capnp_err};
use crate::header::{Header, MAX_ROWS};
use crate::model::{Call, Dict, RecordedFamilies, Task};
use crate::payload::{Message, list_len, new_message, plain_len};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const DICT: &str = "dict";

/// Most tasks in a segment's table: as many as rows, and 65536 more.
const MAX_TASKS: u32 = MAX_ROWS + 65536;

/// Most bytes of a task in a message.
pub(crate) fn task_bytes(t: &Task) -> usize {
    88 + [&t.comm, &t.exe, &t.env].map(|bytes| bytes.len().next_multiple_of(8)).iter().sum::<usize>()
}

type TaskDict<'a> = capnp::struct_list::Builder<'a, schema::task::Owned>;

/// Fills a list of tasks.
pub(super) fn write_tasks(mut list: TaskDict<'_>, tasks: &[Task]) {
    for (i, t) in tasks.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_tid(t.tid);
        b.set_pid(t.pid);
        b.set_start_ns(t.start_ns);
        b.set_leader_start_ns(t.leader_start_ns);
        b.set_comm(&t.comm);
        b.set_exe(&t.exe);
        b.set_uid(t.uid);
        b.set_cgroup_id(t.cgroup_id);
        b.set_utid(t.utid);
        b.set_upid(t.upid);
        b.set_ns_tid(t.ns_tid);
        b.set_ns_pid(t.ns_pid);
        b.set_ppid(t.ppid);
        b.set_recorded(t.recorded.raw());
        b.set_env(&t.env);
    }
}

/// A list of tasks.
pub(super) fn read_tasks(
    what: &'static str,
    header: &Header,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::task::Owned>>,
) -> Result<Vec<Task>> {
    let list = list.map_err(capnp_err(what))?;
    // A task takes 9 words before 1.5; a list without room for them has structs that share it or are cut short.
    const LEAST: u32 = 72;
    let n = plain_len(what, "tasks", list.len(), LEAST, header)?;
    let mut tasks = Vec::with_capacity(n);
    for r in list {
        tasks.push(Task {
            tid: r.get_tid(),
            pid: r.get_pid(),
            start_ns: r.get_start_ns(),
            leader_start_ns: r.get_leader_start_ns(),
            comm: data(what, r.get_comm())?,
            exe: data(what, r.get_exe())?,
            uid: r.get_uid(),
            cgroup_id: r.get_cgroup_id(),
            utid: r.get_utid(),
            upid: r.get_upid(),
            ns_tid: r.get_ns_tid(),
            ns_pid: r.get_ns_pid(),
            ppid: r.get_ppid(),
            recorded: RecordedFamilies::from_raw(r.get_recorded()),
            env: data(what, r.get_env())?,
        });
    }
    Ok(tasks)
}

/// The dict message.
pub(crate) fn write_dict(tasks: &[Task], calls: &[Call], window: (u64, u64)) -> Builder<HeapAllocator> {
    let bytes: usize = tasks.iter().map(task_bytes).sum();
    let mut message = new_message(bytes + calls.len() * 8 + 256);
    let mut b = message.init_root::<schema::dict::Builder<'_>>();
    write_tasks(b.reborrow().init_tasks(tasks.len() as u32), tasks);
    let mut list = b.reborrow().init_calls(calls.len() as u32);
    for (i, call) in calls.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_abi(call.abi);
        b.set_nr(call.nr);
    }
    b.set_window_start(window.0);
    b.set_window_end(window.1);
    message
}

/// The tables of a dict block.
pub(crate) fn read_dict(header: &Header, message: &Message<'_>) -> Result<Dict> {
    let r = message.get_root::<schema::dict::Reader<'_>>().map_err(capnp_err(DICT))?;
    let tasks = read_tasks(DICT, header, r.get_tasks())?;
    if tasks.len() > MAX_TASKS as usize {
        return Err(Error::invalid(DICT, format!("{} tasks > limit {MAX_TASKS}", tasks.len())));
    }
    let list = r.get_calls().map_err(capnp_err(DICT))?;
    list_len::<schema::call::Builder<'_>>(DICT, "calls", list.len(), header)?;
    let calls = list.iter().map(|r| Call { abi: r.get_abi(), nr: r.get_nr() }).collect();
    Ok(Dict { tasks, calls, window_start: r.get_window_start(), window_end: r.get_window_end() })
}

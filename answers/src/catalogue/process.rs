//! Process life; a fork is the line of the parent.

use systape_format::model::{FORK_THREAD, ProcessEvent, ProcessKind, Task};

use super::{Observed, catalogue};
use crate::render::row::TaskColumn;
use systape_events::values::words::escaped;

catalogue! {
    /// One row for each event of process life: fork, exec, exit, a new name, user or cgroup.
    pub PROCESS_EVENTS = "process_events" of ProcessEvent {
        event: Word "its name: `sched:sched_process_fork`, `sched:sched_process_exec`, `sched:sched_process_exit`, `task:task_rename`, `process:cred`, `cgroup:cgroup_attach_task`, `process:target` (record took it as a target, or ceased to)" = |o| o.kind().name;
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        _: Task "process; of fork the one that forked" = |o| whose(o);
        uid: Int "real user; null: not known" = |o| TaskColumn::Uid.cell(whose(o));
        child: Task "of fork: process of the new thread; null: of others" of [ProcessKind::Fork] = |o| o.task(o.e.task);
        thread: Flag "of fork: a thread of the same process; null: of others" of [ProcessKind::Fork] = |o| o.e.flags & FORK_THREAD != 0;
        filename: Str [Path] "of exec: path of the program; null: of others" of [ProcessKind::Exec] = |o| &o.e.path;
        old_tid: Int "of exec: number that the thread had before, of its process's first thread the same; null: of others" of [ProcessKind::Exec] = |o| old_tid(o);
        exit_code: Int "of exit: exit status; null: a signal ended it, or of others" of [ProcessKind::Exit] = |o| (o.e.exit_code & 0x7f == 0).then_some(o.e.exit_code >> 8 & 0xff);
        exit_signal: Int "of exit: the signal that ended it; null: none, or of others" of [ProcessKind::Exit] = |o| Some(o.e.exit_code & 0x7f).filter(|signal| *signal != 0);
        wait_status: Int "of exit: both as wait(2) has them, 256 times the status plus the signal, and 128 if it dumped core; null: of others" of [ProcessKind::Exit] = |o| o.e.exit_code;
        group_dead: Flag "of exit: the last thread of its process; null: of others" of [ProcessKind::Exit] = |o| o.e.group_dead;
        oldcomm: Str [Comm] "of a new name: the name before; null: not known, or of others" of [ProcessKind::Rename] = |o| whose(o).map(|task| &*task.comm).filter(|comm| *comm != o.e.comm);
        newcomm: Str [Comm] "of a new name: it; null: of others" of [ProcessKind::Rename] = |o| &o.e.comm;
        dst_path: Str [Path] "of a new cgroup: its path; null: not known, or of others" of [ProcessKind::Cgroup] = |o| whose(o).and_then(|task| o.at.times.session.cgroup_path(task.cgroup_id));
        target: Flag "of process:target: it is one from here on; null: of others" of [ProcessKind::Target] = |o| whose(o).is_some_and(|task| task.recorded.anything());
    }
    family Process, blocks [Processes], stacks None;
    read |segment, dict| segment.processes(dict);
    when |e| (e.ts, None);
    whose |o| [whose(o), o.task(o.e.task)];
    kind |e| e.kind as u32;
    ProcessKind::Fork as u32 => "sched:sched_process_fork" ["process:fork"]:
        comm, pid = tid, child_comm, child_pid = child_tid, thread;
    ProcessKind::Exec as u32 => "sched:sched_process_exec" ["process:exec"]:
        filename, pid = tid, old_pid = old_tid |o| Some(old_pid(o));
    ProcessKind::Exit as u32 => "sched:sched_process_exit" ["process:exit"]:
        comm, pid = tid, exit_code = wait_status, group_dead;
    ProcessKind::Rename as u32 => "task:task_rename" ["process:rename"]: pid = tid, oldcomm, newcomm;
    ProcessKind::Cred as u32 => "process:cred" []: pid = tid, uid;
    ProcessKind::Cgroup as u32 => "cgroup:cgroup_attach_task" ["process:cgroup"]: dst_path, pid = tid;
    ProcessKind::Target as u32 => "process:target" []: comm, pid = tid, target;
}

fn whose<'a>(o: Observed<'a, ProcessEvent>) -> Option<&'a Task> {
    o.task(if o.e.kind == ProcessKind::Fork { o.e.parent } else { o.e.task })
}

fn old_tid(o: Observed<'_, ProcessEvent>) -> Option<u32> {
    if o.e.old_tid == 0 { whose(o).map(|task| task.tid) } else { Some(o.e.old_tid) }
}

/// The thread that called exec: with its name if it is the process's first.
fn old_pid(o: Observed<'_, ProcessEvent>) -> String {
    match (o.e.old_tid, whose(o)) {
        (0, Some(task)) => format!("{} ({})", task.tid, escaped(&task.comm)),
        (0, None) => "?".to_owned(),
        (tid, _) => tid.to_string(),
    }
}

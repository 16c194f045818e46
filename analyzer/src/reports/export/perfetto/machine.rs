//! The machine, and who there was when the recording began.

use std::collections::BTreeMap;

use systape_format::model::{Checkpoint, Session, Task};

use super::super::proto::perfetto::process_tree::{Process, Thread};
use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{ProcessTree, SystemInfo, Utsname};
use super::packets::Packets;
use super::text;

/// The machine of `session`.
pub(super) fn system(packets: &mut Packets, session: &Session) {
    let utsname = Utsname {
        sysname: "Linux".to_owned(),
        version: session.kernel_version.clone(),
        release: session.kernel_release.clone(),
        machine: session.machine.clone(),
    };
    let info = SystemInfo { utsname: Some(utsname), num_cpus: session.cpus, machine_name: text(&session.hostname) };
    packets.add(0, Data::SystemInfo(info));
}

/// The tasks of `checkpoint`, at `ts` of the trace.
pub(super) fn tasks(packets: &mut Packets, checkpoint: &Checkpoint, ts: u64) {
    let mut leaders: BTreeMap<u32, &Task> = BTreeMap::new();
    for task in checkpoint.tasks.iter().filter(|task| task.pid != 0) {
        let leader = leaders.entry(task.pid).or_insert(task);
        if task.tid == task.pid {
            *leader = task;
        }
    }
    let command = |task: &Task| checkpoint.commands.iter().find(|line| line.upid == task.upid && !line.argv.is_empty());
    let words = |task: &Task| match command(task) {
        Some(line) => line.argv.split(|byte| *byte == 0).map(text).collect(),
        None => vec![text(&task.comm)],
    };
    let process = |task: &&Task| Process {
        pid: task.pid.cast_signed(),
        ppid: task.ppid.cast_signed(),
        cmdline: words(task),
        uid: task.uid.cast_signed(),
    };
    let thread =
        |task: &Task| Thread { tid: task.tid.cast_signed(), name: text(&task.comm), tgid: task.pid.cast_signed() };
    let tree = ProcessTree {
        processes: leaders.values().map(process).collect(),
        threads: checkpoint.tasks.iter().filter(|task| task.pid != 0).map(thread).collect(),
    };
    packets.add(ts, Data::ProcessTree(tree));
}

//! Process life, signals and block I/O as the kernel's events. A tape has no CPU of these: they stand on CPU 0.

use systape_format::model::{
    BlockIo, FORK_THREAD, ProcessEvent, ProcessKind, SIGNAL_GROUP, SignalEvent, SignalKind, Task,
};

use super::super::proto::perfetto::ftrace_event::Event;
use super::super::proto::perfetto::{
    BlockIoDoneFtraceEvent, BlockIoStartFtraceEvent, SchedProcessExecFtraceEvent, SchedProcessExitFtraceEvent,
    SchedProcessFreeFtraceEvent, SignalDeliverFtraceEvent, SignalGenerateFtraceEvent, TaskNewtaskFtraceEvent,
    TaskRenameFtraceEvent,
};
use super::clocks::Boot;
use super::ftrace::Bundles;
use super::sched::Sched;
use super::text;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::flags::letters;

/// CLONE_THREAD
const CLONE_THREAD: u64 = 0x1_0000;

/// An event of process life. `sched`: where switches are recorded, a thread is gone with its last one.
pub(super) fn life(
    event: &ProcessEvent,
    tasks: &[Task],
    boot: &Boot,
    sched: Option<&mut Sched>,
    bundles: &mut Bundles,
) {
    let Some(task) = tasks.get(event.task as usize) else { return };
    let (ts, tid, comm) = (boot.at(event.ts), task.tid, text(&task.comm));
    let pid = tid.cast_signed();
    let mut add = |ts: u64, of: u32, event: Event| bundles.event(0, ts, of, false, event);
    let rename =
        |newcomm: String| Event::TaskRename(TaskRenameFtraceEvent { pid, newcomm, ..TaskRenameFtraceEvent::default() });
    match event.kind {
        ProcessKind::Fork => {
            let Some(parent) = tasks.get(event.parent as usize) else { return };
            let clone_flags = if event.flags & FORK_THREAD != 0 { CLONE_THREAD } else { 0 };
            add(ts, parent.tid, Event::TaskNewtask(TaskNewtaskFtraceEvent { pid, comm, clone_flags }));
        }
        ProcessKind::Exec => {
            let filename = text(if task.exe.is_empty() { &event.path } else { &task.exe });
            let old_pid = if event.old_tid == 0 { pid } else { event.old_tid.cast_signed() };
            add(ts, tid, Event::SchedProcessExec(SchedProcessExecFtraceEvent { filename, pid, old_pid }));
            add(ts, tid, rename(comm));
        }
        ProcessKind::Rename => add(ts, tid, rename(text(&event.comm))),
        ProcessKind::Exit => {
            let tgid = task.pid.cast_signed();
            add(ts, tid, Event::SchedProcessExit(SchedProcessExitFtraceEvent { comm: comm.clone(), pid, tgid }));
            match sched {
                Some(sched) => sched.ends(tid),
                None => add(ts + 1, tid, Event::SchedProcessFree(SchedProcessFreeFtraceEvent { comm, pid })),
            }
        }
        ProcessKind::Cred | ProcessKind::Cgroup | ProcessKind::Target => {}
    }
}

/// A signal that was sent or taken.
pub(super) fn signal(event: &SignalEvent, tasks: &[Task], boot: &Boot, bundles: &mut Bundles) {
    let Some(target) = tasks.get(event.target as usize) else { return };
    let sender = event.sender.and_then(|sender| tasks.get(sender as usize));
    let (ts, sig) = (boot.at(event.ts), event.sig.cast_signed());
    match event.kind {
        SignalKind::Generate => {
            let generate = SignalGenerateFtraceEvent {
                code: event.code,
                comm: text(&target.comm),
                group: (event.flags & SIGNAL_GROUP != 0).into(),
                pid: target.tid.cast_signed(),
                result: event.result.into(),
                sig,
            };
            bundles.event(0, ts, sender.map_or(0, |sender| sender.tid), false, Event::SignalGenerate(generate));
        }
        SignalKind::Deliver => {
            let deliver = SignalDeliverFtraceEvent { code: event.code, sig };
            bundles.event(0, ts, target.tid, false, Event::SignalDeliver(deliver));
        }
        SignalKind::OomVictim => {}
    }
}

/// A block I/O, with what tables say of those of its segment: where it began, if that is known, and where it ended.
pub(super) fn block(io: &BlockIo, files: &Files, tasks: &[Task], boot: &Boot, bundles: &mut Bundles) {
    let begin = [io.queued, io.issued].into_iter().find(|ts| *ts != 0 && *ts <= io.complete);
    let Some(begin) = begin else { return };
    let owner = || io.owner.or(io.origin).and_then(|task| tasks.get(task as usize));
    let owner = files.dirtier(io).or_else(owner);
    let (tid, comm) = owner.map_or((0, String::new()), |task| (task.tid, text(&task.comm)));
    let (dev, sector, nr_sector, bytes) = (u64::from(io.dev), io.sector, io.bytes / 512, io.bytes);
    let rwbs = letters(io.flags);
    let start = BlockIoStartFtraceEvent { dev, sector, nr_sector, bytes, rwbs: rwbs.clone(), comm: comm.clone() };
    bundles.event(0, boot.at(begin), tid, false, Event::BlockIoStart(start));
    let done = BlockIoDoneFtraceEvent { dev, sector, nr_sector, bytes, rwbs, comm };
    bundles.event(0, boot.at(io.complete), tid, false, Event::BlockIoDone(done));
}

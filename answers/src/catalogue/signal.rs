//! Signals: sent, the line of the running task; taken, of the target. And victims of the OOM killer.

use systape_format::model::{SIGNAL_GROUP, SIGNAL_HANDLER_UNKNOWN, SignalEvent, SignalInfo, SignalKind, StackOf};

use super::{Observed, catalogue};

catalogue! {
    /// One row for each signal that was sent or taken, and each victim of the OOM killer, as the kernel says it. `kills` has what came of those that matter.
    pub SIGNALS = "signals" of SignalEvent {
        event: Word "its name: `signal:signal_generate`, `signal:signal_deliver`, `oom:mark_victim`" = |o| o.kind().name;
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        signal: Int "its number; null: of an OOM victim" of [SignalKind::Generate, SignalKind::Deliver] = |o| o.e.sig;
        signal_name: Word "its name; null: likewise" of [SignalKind::Generate, SignalKind::Deliver] = |o| name(o);
        si_errno: Int "the kernel's si_errno; null: likewise" of [SignalKind::Generate, SignalKind::Deliver] = |o| o.e.errno;
        code: Int "the kernel's si_code; null: likewise, or an imported log does not say" of [SignalKind::Generate, SignalKind::Deliver] = |o| Some(o.e.code).filter(|_| !imported(o) || o.e.info != SignalInfo::Unknown);
        target: Task "process of the target" = |o| o.task(o.e.target);
        to_group: Flag "of generate: sent to the process, not to a thread; null: of others" of [SignalKind::Generate] = |o| o.e.flags & SIGNAL_GROUP != 0;
        result: Int "of generate: 0 delivered, 1 ignored, 2 already pending, 3 and 4 lost in part; null: of others" of [SignalKind::Generate] = |o| o.e.result;
        sender: Task "process that ran, of an OOM victim out of memory; null with the next four: not known, or of deliver (but for what an imported log names)" of [SignalKind::Generate, SignalKind::Deliver, SignalKind::OomVictim] = |o| o.e.sender.and_then(|task| o.task(task));
        sa_handler: Hex "of deliver: the handler, 0x0 default, 0x1 ignore; null: of others, or an imported log does not say" of [SignalKind::Deliver] = |o| Some(o.e.ip).filter(|_| !imported(o));
        total_vm: Wide "of an OOM victim: its virtual memory, bytes; 0 in all four: not known; null: of others" of [SignalKind::OomVictim] = |o| o.e.oom.total_vm;
        anon_rss: Wide "of an OOM victim: its anonymous memory, bytes; null: of others" of [SignalKind::OomVictim] = |o| o.e.oom.anon;
        file_rss: Wide "of an OOM victim: its memory of files, bytes; null: of others" of [SignalKind::OomVictim] = |o| o.e.oom.file;
        shmem_rss: Wide "of an OOM victim: its shared memory, bytes; null: of others" of [SignalKind::OomVictim] = |o| o.e.oom.shmem;
    }
    family Signal, blocks [Signals], stacks Some(StackOf::Signal);
    read |segment, dict| segment.signals(dict);
    when |e| (e.ts, None);
    whose |o| match o.e.kind {
        SignalKind::Deliver => [o.task(o.e.target), o.task(o.e.target)],
        _ => [o.e.sender.and_then(|task| o.task(task)), o.task(o.e.target)],
    };
    kind |e| e.kind as u32;
    SignalKind::Generate as u32 => "signal:signal_generate" []:
        sig = signal |o| Some(name(o)), errno = si_errno, code, comm = target_comm, pid = target_tid, group = to_group, result;
    SignalKind::Deliver as u32 => "signal:signal_deliver" []:
        sig = signal |o| Some(name(o)), errno = si_errno, code, sa_handler;
    SignalKind::OomVictim as u32 => "oom:mark_victim" []:
        comm = target_comm, pid = target_tid, total_vm, anon_rss, file_rss, shmem_rss;
}

/// Whether it is of a log that was imported, which has less than a recording.
fn imported(o: Observed<'_, SignalEvent>) -> bool {
    o.e.flags & SIGNAL_HANDLER_UNKNOWN != 0
}

fn name(o: Observed<'_, SignalEvent>) -> String {
    systape_abi::signal_name(o.e.sig).into_owned()
}

//! Made-up signals and processes for unit tests.

use std::sync::Arc;

use systape_format::model::{
    ByteStatus, Call, ProcessEvent, ProcessKind, Session, SignalEvent, SignalInfo, SignalKind, Task,
};

use super::sent::Sent;
use systape_events::calls::{CallBook, CallInfo};

/// The leader of process `pid`, whose unique number is its pid too.
pub(super) fn task(pid: u32) -> Task {
    Task {
        tid: pid,
        pid,
        upid: pid,
        utid: pid,
        start_ns: u64::from(pid),
        leader_start_ns: u64::from(pid),
        comm: format!("p{pid}").into_bytes(),
        ..Task::default()
    }
}

/// A call of x86_64.
pub(super) fn call(name: &str) -> Arc<CallInfo> {
    let session = Session { machine: "x86_64".into(), ..Session::default() };
    let nr = systape_abi::number(systape_abi::Abi::X86_64, name).unwrap();
    CallBook::new(&session).get(Call { abi: 1, nr })
}

/// Signal `sig`, sent at `ts` by task `sender` to task `target` (indices) with kill's siginfo.
pub(super) fn event(ts: u64, sig: u32, sender: u32, target: u32) -> SignalEvent {
    SignalEvent {
        info: SignalInfo::Siginfo,
        sender: Some(sender),
        argv_status: ByteStatus::Whole,
        ..SignalEvent::new(ts, SignalKind::Generate, sig, target)
    }
}

/// `event` as sent by process `sender` to process `target` in `name`.
pub(super) fn sent(event: SignalEvent, sender: u32, target: u32, name: Option<&str>) -> Sent {
    Sent {
        event,
        sender: Some(task(sender).into()),
        target: task(target).into(),
        call: name.map(call),
        call_unknown: false,
        sender_above: Arc::default(),
        target_above: Arc::default(),
        place: None,
    }
}

/// The end of the process of task `at` (an index), with the kernel's exit code.
pub(super) fn exit(ts: u64, at: u32, exit_code: u32) -> ProcessEvent {
    ProcessEvent { exit_code, group_dead: true, ..ProcessEvent::new(ts, ProcessKind::Exit, at) }
}

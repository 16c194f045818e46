//! Process life and gaps.

use super::data;
use super::session::family;
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{ByteStatus, Gap, GapCause, ProcessEvent, ProcessKind};
use crate::payload::{Message, list_len, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const PROCESSES: &str = "processes";
const GAPS: &str = "gaps";

/// The schema's number of a status: the two enums have the same values.
pub(super) fn status_raw(status: ByteStatus) -> schema::ByteStatus {
    match status {
        ByteStatus::Whole => schema::ByteStatus::Whole,
        ByteStatus::Truncated => schema::ByteStatus::Truncated,
        ByteStatus::NotResident => schema::ByteStatus::NotResident,
        ByteStatus::Late => schema::ByteStatus::Late,
        ByteStatus::LateTruncated => schema::ByteStatus::LateTruncated,
        ByteStatus::NoBuffer => schema::ByteStatus::NoBuffer,
        ByteStatus::Redacted => schema::ByteStatus::Redacted,
    }
}

fn kind_raw(kind: ProcessKind) -> schema::ProcessKind {
    match kind {
        ProcessKind::Fork => schema::ProcessKind::Fork,
        ProcessKind::Exec => schema::ProcessKind::Exec,
        ProcessKind::Exit => schema::ProcessKind::Exit,
        ProcessKind::Rename => schema::ProcessKind::Rename,
        ProcessKind::Cred => schema::ProcessKind::Cred,
        ProcessKind::Cgroup => schema::ProcessKind::Cgroup,
        ProcessKind::Target => schema::ProcessKind::Target,
    }
}

/// The processes message; `events` must be sorted by ts.
pub(crate) fn write_processes(events: &[ProcessEvent]) -> Builder<HeapAllocator> {
    let bytes: usize = events.iter().map(|e| 128 + e.path.len() + e.argv.len() + e.comm.len()).sum();
    let mut message = new_message(bytes);
    let b = message.init_root::<schema::processes::Builder<'_>>();
    let mut list = b.init_events(events.len() as u32);
    for (i, e) in events.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_ts(e.ts);
        b.set_kind(kind_raw(e.kind));
        b.set_task(e.task);
        b.set_parent(e.parent);
        b.set_flags(e.flags);
        b.set_exit_code(e.exit_code);
        b.set_group_dead(e.group_dead);
        b.set_path(&e.path);
        b.set_argv(&e.argv);
        b.set_argv_full(e.argv_full);
        b.set_argv_status(status_raw(e.argv_status));
        b.set_old_tid(e.old_tid);
        b.set_comm(&e.comm);
    }
    message
}

/// The events of a processes block whose segment has `tasks` tasks.
pub(crate) fn read_processes(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<ProcessEvent>> {
    let r = message.get_root::<schema::processes::Reader<'_>>().map_err(capnp_err(PROCESSES))?;
    let list = r.get_events().map_err(capnp_err(PROCESSES))?;
    let n = list_len::<schema::process_event::Builder<'_>>(PROCESSES, "events", list.len(), header)?;
    let mut events = Vec::with_capacity(n.min(header.raw_len as usize / 64 + 1));
    let mut before = 0;
    for (i, r) in list.iter().enumerate() {
        let bad = |why: String| Error::invalid(PROCESSES, format!("event {i}: {why}"));
        let raw_kind = r.get_kind().map_or_else(|e| e.0, |kind| kind as u16);
        let kind = match raw_kind {
            1 => ProcessKind::Fork,
            2 => ProcessKind::Exec,
            3 => ProcessKind::Exit,
            4 => ProcessKind::Rename,
            5 => ProcessKind::Cred,
            6 => ProcessKind::Cgroup,
            7 => ProcessKind::Target,
            other => return Err(bad(format!("unknown kind {other}"))),
        };
        let raw_status = r.get_argv_status().map_or_else(|e| e.0, |status| status as u16);
        let argv_status = u8::try_from(raw_status)
            .ok()
            .and_then(ByteStatus::from_raw)
            .ok_or_else(|| bad(format!("unknown argv status {raw_status}")))?;
        let (task, parent, ts) = (r.get_task(), r.get_parent(), r.get_ts());
        if task.max(parent) as usize >= tasks {
            return Err(bad(format!("task {task}, parent {parent} of {tasks} tasks")));
        }
        if ts < before {
            return Err(bad(format!("ts {ts} after {before}: not sorted")));
        }
        before = ts;
        events.push(ProcessEvent {
            ts,
            kind,
            task,
            parent,
            flags: r.get_flags(),
            exit_code: r.get_exit_code(),
            group_dead: r.get_group_dead(),
            path: data(PROCESSES, r.get_path())?,
            argv: data(PROCESSES, r.get_argv())?,
            argv_full: r.get_argv_full(),
            argv_status,
            old_tid: r.get_old_tid(),
            comm: data(PROCESSES, r.get_comm())?,
        });
    }
    Ok(events)
}

/// Pairs of our causes and the schema's.
const CAUSES: [(GapCause, schema::GapCause); 22] = [
    (GapCause::Unknown, schema::GapCause::Unknown),
    (GapCause::RingFull, schema::GapCause::RingFull),
    (GapCause::StateFailed, schema::GapCause::StateFailed),
    (GapCause::ScratchExhausted, schema::GapCause::ScratchExhausted),
    (GapCause::Skipped, schema::GapCause::Skipped),
    (GapCause::QueueFull, schema::GapCause::QueueFull),
    (GapCause::OwnTraffic, schema::GapCause::OwnTraffic),
    (GapCause::StringFault, schema::GapCause::StringFault),
    (GapCause::DiskError, schema::GapCause::DiskError),
    (GapCause::BadRecord, schema::GapCause::BadRecord),
    (GapCause::LateRecord, schema::GapCause::LateRecord),
    (GapCause::Everyday, schema::GapCause::Everyday),
    (GapCause::Unexplained, schema::GapCause::Unexplained),
    (GapCause::Damaged, schema::GapCause::Damaged),
    (GapCause::DetailDamaged, schema::GapCause::DetailDamaged),
    (GapCause::Filtered, schema::GapCause::Filtered),
    (GapCause::OverShare, schema::GapCause::OverShare),
    (GapCause::Hidden, schema::GapCause::Hidden),
    (GapCause::NotRead, schema::GapCause::NotRead),
    (GapCause::NotUnderstood, schema::GapCause::NotUnderstood),
    (GapCause::OtherAbi, schema::GapCause::OtherAbi),
    (GapCause::Crowded, schema::GapCause::Crowded),
];

/// The gaps message.
pub(crate) fn write_gaps(gaps: &[Gap]) -> Builder<HeapAllocator> {
    let mut message = new_message(gaps.len() * 48 + 64);
    let b = message.init_root::<schema::gaps::Builder<'_>>();
    let mut list = b.init_gaps(gaps.len() as u32);
    for (i, g) in gaps.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        let cause = CAUSES.iter().find(|(ours, _)| *ours == g.cause);
        b.set_cause(cause.map_or(schema::GapCause::Unknown, |&(_, theirs)| theirs));
        b.set_family(g.family as u16);
        b.set_cpu(g.cpu);
        b.set_count(g.count);
        b.set_first(g.first);
        b.set_last(g.last);
        b.set_pid(g.pid);
        b.set_ledger(g.ledger);
    }
    message
}

/// The gaps of a gaps block. An unknown cause or family reads as unknown: the loss itself counts.
pub(crate) fn read_gaps(header: &Header, message: &Message<'_>) -> Result<Vec<Gap>> {
    let r = message.get_root::<schema::gaps::Reader<'_>>().map_err(capnp_err(GAPS))?;
    let list = r.get_gaps().map_err(capnp_err(GAPS))?;
    list_len::<schema::gap::Builder<'_>>(GAPS, "gaps", list.len(), header)?;
    let cause = |raw: Result<schema::GapCause, capnp::NotInSchema>| {
        let known = raw.ok().and_then(|raw| CAUSES.iter().find(|(_, theirs)| *theirs == raw));
        known.map_or(GapCause::Unknown, |&(ours, _)| ours)
    };
    Ok(list
        .iter()
        .map(|r| Gap {
            cause: cause(r.get_cause()),
            family: family(r.get_family()),
            cpu: r.get_cpu(),
            count: r.get_count(),
            first: r.get_first(),
            last: r.get_last(),
            pid: r.get_pid(),
            ledger: r.get_ledger(),
        })
        .collect())
}

//! Signals and changes of sockets' states.

use super::data;
use super::events::status_raw;
use super::rows::{minus_one, plus_one, rows_as_header};
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{Ancestor, ByteStatus, NetState, OomMemory, SignalEvent, SignalInfo, SignalKind};
use crate::payload::{Message, list_len, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const SIGNALS: &str = "signals";
const NET: &str = "net";

/// Most bytes of an address (IPv6).
pub(crate) const MAX_ADDRESS: usize = 16;

/// Most bytes of a signal in a message.
pub(crate) fn signal_bytes(s: &SignalEvent) -> usize {
    let ancestors: usize =
        s.sender_ancestors.iter().chain(&s.target_ancestors).map(|a| 24 + a.comm.len().next_multiple_of(8)).sum();
    // The struct; its four arguments; two list tags; memory.
    128 + 32 + 16 + 32 + s.call_path.len().next_multiple_of(8) + s.argv.len().next_multiple_of(8) + ancestors
}

/// Most bytes of a change of state in a message.
pub(crate) fn net_bytes(n: &NetState) -> usize {
    56 + n.saddr.len().next_multiple_of(8) + n.daddr.len().next_multiple_of(8)
}

fn kind_raw(kind: SignalKind) -> schema::SignalKind {
    match kind {
        SignalKind::Generate => schema::SignalKind::Generate,
        SignalKind::Deliver => schema::SignalKind::Deliver,
        SignalKind::OomVictim => schema::SignalKind::OomVictim,
    }
}

fn info_raw(info: SignalInfo) -> schema::SignalInfo {
    match info {
        SignalInfo::Unknown => schema::SignalInfo::Unknown,
        SignalInfo::Siginfo => schema::SignalInfo::Siginfo,
        SignalInfo::NoInfo => schema::SignalInfo::NoInfo,
        SignalInfo::Priv => schema::SignalInfo::Priv,
    }
}

fn write_ancestors(mut list: capnp::struct_list::Builder<'_, schema::ancestor::Owned>, ancestors: &[Ancestor]) {
    for (i, a) in ancestors.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_pid(a.pid);
        b.set_start_ns(a.start_ns);
        b.set_comm(&a.comm);
    }
}

/// The signals message; `signals` must be sorted by ts.
pub(crate) fn write_signals(signals: &[SignalEvent]) -> Builder<HeapAllocator> {
    let mut message = new_message(signals.iter().map(signal_bytes).sum::<usize>() + 64);
    let b = message.init_root::<schema::signals::Builder<'_>>();
    let mut list = b.init_signals(signals.len() as u32);
    for (i, s) in signals.iter().enumerate() {
        write_signal(list.reborrow().get(i as u32), s);
    }
    message
}

/// Lists and bytes that are empty stay null pointers: most signals have none of them.
fn write_signal(mut b: schema::signal::Builder<'_>, s: &SignalEvent) {
    b.set_ts(s.ts);
    b.set_kind(kind_raw(s.kind));
    b.set_sig(s.sig);
    b.set_code(s.code);
    b.set_errno(s.errno);
    b.set_info(info_raw(s.info));
    b.set_result(s.result);
    b.set_flags(s.flags);
    b.set_target(s.target);
    b.set_sender(plus_one(s.sender));
    b.set_call(plus_one(s.call));
    if s.call_args != [0; 4] {
        let mut args = b.reborrow().init_call_args(s.call_args.len() as u32);
        for (i, &arg) in s.call_args.iter().enumerate() {
            args.set(i as u32, arg);
        }
    }
    if !s.call_path.is_empty() {
        b.set_call_path(&s.call_path);
    }
    b.set_si_pid(s.si_pid);
    b.set_si_uid(s.si_uid);
    b.set_addr(s.addr);
    b.set_ip(s.ip);
    if !s.sender_ancestors.is_empty() {
        let list = b.reborrow().init_sender_ancestors(s.sender_ancestors.len() as u32);
        write_ancestors(list, &s.sender_ancestors);
    }
    if !s.target_ancestors.is_empty() {
        let list = b.reborrow().init_target_ancestors(s.target_ancestors.len() as u32);
        write_ancestors(list, &s.target_ancestors);
    }
    if !s.argv.is_empty() {
        b.set_argv(&s.argv);
    }
    b.set_argv_status(status_raw(s.argv_status));
    b.set_argv_full(s.argv_full);
    if s.oom != OomMemory::default() {
        let mut oom = b.init_oom();
        oom.set_total_vm(s.oom.total_vm);
        oom.set_anon(s.oom.anon);
        oom.set_file(s.oom.file);
        oom.set_shmem(s.oom.shmem);
    }
}

/// The signals of a signals block whose segment has `tasks` tasks and `calls` calls.
pub(crate) fn read_signals(
    header: &Header,
    message: &Message<'_>,
    tasks: usize,
    calls: usize,
) -> Result<Vec<SignalEvent>> {
    let r = message.get_root::<schema::signals::Reader<'_>>().map_err(capnp_err(SIGNALS))?;
    let list = r.get_signals().map_err(capnp_err(SIGNALS))?;
    let n = list_len::<schema::signal::Builder<'_>>(SIGNALS, "signals", list.len(), header)?;
    rows_as_header(SIGNALS, list.len(), header)?;
    let mut out: Vec<SignalEvent> = Vec::with_capacity(n);
    for (i, r) in list.iter().enumerate() {
        let bad = |why: String| Error::invalid(SIGNALS, format!("signal {i}: {why}"));
        let signal = read_signal(header, r, &bad)?;
        if signal.target as usize >= tasks || signal.sender.is_some_and(|sender| sender as usize >= tasks) {
            return Err(bad(format!("target {}, sender {:?} of {tasks} tasks", signal.target, signal.sender)));
        }
        if let Some(call) = signal.call.filter(|&call| call as usize >= calls) {
            return Err(bad(format!("call {call} of {calls}")));
        }
        sorted(out.last().map(|last| last.ts), signal.ts).map_err(bad)?;
        out.push(signal);
    }
    Ok(out)
}

fn sorted(before: Option<u64>, ts: u64) -> Result<(), String> {
    match before {
        Some(before) if ts < before => Err(format!("ts {ts} after {before}: not sorted")),
        _ => Ok(()),
    }
}

fn read_signal(header: &Header, r: schema::signal::Reader<'_>, bad: &dyn Fn(String) -> Error) -> Result<SignalEvent> {
    let err = capnp_err(SIGNALS);
    let raw_kind = r.get_kind().map_or_else(|e| e.0, |kind| kind as u16);
    let kind = match raw_kind {
        1 => SignalKind::Generate,
        2 => SignalKind::Deliver,
        3 => SignalKind::OomVictim,
        other => return Err(bad(format!("unknown kind {other}"))),
    };
    let raw_info = r.get_info().map_or_else(|e| e.0, |info| info as u16);
    let info = match raw_info {
        0 => SignalInfo::Unknown,
        1 => SignalInfo::Siginfo,
        2 => SignalInfo::NoInfo,
        3 => SignalInfo::Priv,
        other => return Err(bad(format!("unknown info {other}"))),
    };
    let raw_status = r.get_argv_status().map_or_else(|e| e.0, |status| status as u16);
    let argv_status = u8::try_from(raw_status)
        .ok()
        .and_then(ByteStatus::from_raw)
        .ok_or_else(|| bad(format!("unknown argv status {raw_status}")))?;
    let args = r.get_call_args().map_err(&err)?;
    let mut call_args = [0; 4];
    if args.len() as usize > call_args.len() {
        return Err(bad(format!("{} arguments > limit {}", args.len(), call_args.len())));
    }
    for (slot, arg) in call_args.iter_mut().zip(args.iter()) {
        *slot = arg;
    }
    let oom = r.get_oom().map_err(&err)?;
    Ok(SignalEvent {
        ts: r.get_ts(),
        kind,
        sig: r.get_sig(),
        code: r.get_code(),
        errno: r.get_errno(),
        info,
        result: r.get_result(),
        flags: r.get_flags(),
        target: r.get_target(),
        sender: minus_one(r.get_sender()),
        call: minus_one(r.get_call()),
        call_args,
        call_path: data(SIGNALS, r.get_call_path())?,
        si_pid: r.get_si_pid(),
        si_uid: r.get_si_uid(),
        addr: r.get_addr(),
        ip: r.get_ip(),
        sender_ancestors: read_ancestors(header, "senderAncestors", r.get_sender_ancestors())?,
        target_ancestors: read_ancestors(header, "targetAncestors", r.get_target_ancestors())?,
        argv: data(SIGNALS, r.get_argv())?,
        argv_status,
        argv_full: r.get_argv_full(),
        oom: OomMemory {
            total_vm: oom.get_total_vm(),
            anon: oom.get_anon(),
            file: oom.get_file(),
            shmem: oom.get_shmem(),
        },
    })
}

fn read_ancestors(
    header: &Header,
    name: &str,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::ancestor::Owned>>,
) -> Result<Vec<Ancestor>> {
    let list = list.map_err(capnp_err(SIGNALS))?;
    list_len::<schema::ancestor::Builder<'_>>(SIGNALS, name, list.len(), header)?;
    list.iter()
        .map(|r| Ok(Ancestor { pid: r.get_pid(), start_ns: r.get_start_ns(), comm: data(SIGNALS, r.get_comm())? }))
        .collect()
}

/// The net message; `states` must be sorted by ts.
pub(crate) fn write_nets(states: &[NetState]) -> Builder<HeapAllocator> {
    let mut message = new_message(states.iter().map(net_bytes).sum::<usize>() + 64);
    let b = message.init_root::<schema::net::Builder<'_>>();
    let mut list = b.init_states(states.len() as u32);
    for (i, s) in states.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_ts(s.ts);
        b.set_task(plus_one(s.task));
        b.set_sender(plus_one(s.sender));
        b.set_socket(s.socket);
        b.set_family(s.family);
        b.set_protocol(s.protocol);
        b.set_old_state(s.old_state);
        b.set_new_state(s.new_state);
        b.set_sport(s.sport);
        b.set_dport(s.dport);
        b.set_saddr(&s.saddr);
        b.set_daddr(&s.daddr);
    }
    message
}

/// The changes of state of a net block whose segment has `tasks` tasks.
pub(crate) fn read_nets(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<NetState>> {
    let r = message.get_root::<schema::net::Reader<'_>>().map_err(capnp_err(NET))?;
    let list = r.get_states().map_err(capnp_err(NET))?;
    let n = list_len::<schema::net_state::Builder<'_>>(NET, "states", list.len(), header)?;
    rows_as_header(NET, list.len(), header)?;
    let mut out: Vec<NetState> = Vec::with_capacity(n);
    for (i, r) in list.iter().enumerate() {
        let bad = |why: String| Error::invalid(NET, format!("state {i}: {why}"));
        let (task, sender) = (minus_one(r.get_task()), minus_one(r.get_sender()));
        if let Some(task) = task.into_iter().chain(sender).find(|&task| task as usize >= tasks) {
            return Err(bad(format!("task {task} of {tasks}")));
        }
        sorted(out.last().map(|last| last.ts), r.get_ts()).map_err(&bad)?;
        let address = |bytes: Vec<u8>| {
            if bytes.len() > MAX_ADDRESS { Err(bad(format!("an address of {} bytes", bytes.len()))) } else { Ok(bytes) }
        };
        out.push(NetState {
            ts: r.get_ts(),
            task,
            sender,
            socket: r.get_socket(),
            family: r.get_family(),
            protocol: r.get_protocol(),
            old_state: r.get_old_state(),
            new_state: r.get_new_state(),
            sport: r.get_sport(),
            dport: r.get_dport(),
            saddr: address(data(NET, r.get_saddr())?)?,
            daddr: address(data(NET, r.get_daddr())?)?,
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    fn signal(ts: u64) -> SignalEvent {
        SignalEvent { argv_status: ByteStatus::Whole, ..SignalEvent::new(ts, SignalKind::Deliver, 9, 0) }
    }

    #[test]
    fn signals_that_break_a_must_are_refused() {
        let rows = [signal(5), SignalEvent { sender: Some(0), call: Some(0), ..signal(6) }];
        let forged = |tasks, calls, forge: &dyn Fn(schema::signal::Builder<'_>)| {
            let mut message = write_signals(&rows);
            let list = message.get_root::<schema::signals::Builder<'_>>().and_then(|b| b.get_signals());
            forge(list.expect("the list").get(1));
            reread(&message, 2, |h, m| read_signals(h, m, tasks, calls)).map_err(|e| e.to_string())
        };
        assert_eq!(forged(1, 1, &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: Result<Vec<SignalEvent>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged(0, 1, &|_| ()), "signal 0: target 0, sender None of 0 tasks");
        says(forged(1, 0, &|_| ()), "signal 1: call 0 of 0");
        says(forged(1, 1, &|mut b| b.set_sender(2)), "sender Some(1) of 1 tasks");
        says(forged(1, 1, &|mut b| b.set_sender(u32::MAX)), "of 1 tasks");
        says(forged(1, 1, &|mut b| b.set_ts(4)), "signal 1: ts 4 after 5: not sorted");
        says(forged(1, 1, &|mut b| b.set_kind(schema::SignalKind::Unknown)), "unknown kind 0");
        says(forged(1, 1, &|mut b| b.set_argv_status(schema::ByteStatus::Unknown)), "unknown argv status 0");
        says(forged(1, 1, &|b| _ = b.init_call_args(5)), "5 arguments > limit 4");
        let e = reread(&write_signals(&rows), 3, |h, m| read_signals(h, m, 1, 1)).expect_err("3 rows");
        assert!(e.to_string().contains("2 rows, its header says 3"), "{e}");
    }

    #[test]
    fn addresses_are_at_most_16_bytes() {
        let state = NetState { saddr: vec![1; 17], ..NetState::default() };
        let e = reread(&write_nets(&[state]), 1, |h, m| read_nets(h, m, 0)).expect_err("17 bytes");
        assert!(e.to_string().contains("state 0: an address of 17 bytes"), "{e}");
        let state = NetState { task: Some(0), ..NetState::default() };
        let e = reread(&write_nets(&[state]), 1, |h, m| read_nets(h, m, 0)).expect_err("no tasks");
        assert!(e.to_string().contains("task 0 of 0"), "{e}");
    }

    #[test]
    fn estimates_are_from_above() {
        let words = capnp::serialize::compute_serialized_size_in_words;
        let ancestors = vec![Ancestor { comm: vec![b'x'; 15], ..Ancestor::default() }; 3];
        let full = SignalEvent {
            call_args: [1; 4],
            call_path: vec![b'/'; 9],
            sender_ancestors: ancestors.clone(),
            target_ancestors: ancestors,
            argv: vec![b'a'; 17],
            oom: OomMemory { anon: 1, ..OomMemory::default() },
            ..signal(1)
        };
        for one in [signal(1), full] {
            let two = [one.clone(), one];
            let (n1, n2) = (write_signals(&two[..1]), write_signals(&two));
            assert!((words(&n2) - words(&n1)) * 8 <= signal_bytes(&two[0]));
        }
        let net = NetState { saddr: vec![1; 4], daddr: vec![1; 16], ..NetState::default() };
        let two = [net.clone(), net];
        let (n1, n2) = (write_nets(&two[..1]), write_nets(&two));
        assert!((words(&n2) - words(&n1)) * 8 <= net_bytes(&two[0]));
    }
}

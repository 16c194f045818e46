//! Signals: who sent what to whom, and what the sender was doing.

use systape_bpf::wire::{self, SignalParts};
use systape_format::model::{
    Ancestor, ByteStatus, Family, OomMemory, SIGNAL_INTERRUPT, SignalEvent, SignalInfo, SignalKind, StackOf,
};

use super::Encoder;
use crate::effects;
use crate::tasks::TaskId;

impl Encoder {
    pub(super) fn signal(&mut self, parts: &SignalParts<'_>) {
        let s = &parts.signal;
        let kind = match s.kind {
            wire::SIGNAL_GENERATE => SignalKind::Generate,
            wire::SIGNAL_DELIVER => SignalKind::Deliver,
            _ => SignalKind::OomVictim,
        };
        let flags = u32::from(s.hdr.flags);
        let target = self.target(&s.target);
        let sender = (s.sender.hdr.kind != 0).then(|| self.introduced(&s.sender));
        if let Some(sender) = sender.filter(|_| kind == SignalKind::Generate && self.tasks.is_target(target)) {
            // who kills a target is the answer to a question about the target
            let entry = self.tasks.get_mut(sender);
            if !std::mem::replace(&mut entry.sender, true) {
                entry.interned = (u32::MAX, 0);
            }
        }
        if self.sheds(Family::Signal, s.ts) {
            return;
        }
        let call = (s.nr != wire::SNAP_NO_CALL && flags & SIGNAL_INTERRUPT == 0).then(|| self.call_info(s.abi, s.nr));
        let call_path = match (&call, sender, wire::name(parts.path)) {
            (Some(_), _, Some(path)) => path,
            (Some(info), Some(sender), None) => self.call_path(sender, *info, s),
            _ => Vec::new(),
        };
        let call = call.map(|info| self.interned_call(s.abi, s.nr, &info));
        let caller = sender;
        let (target, sender) = (self.interned_task(target), sender.map(|id| self.interned_task(id)));
        let argv = parts.argv.strip_suffix(&[0]).unwrap_or(parts.argv).to_vec();
        self.stored(Family::Signal, s.ts);
        let row = self.builder.push_signal(SignalEvent {
            ts: s.ts,
            kind,
            sig: s.sig,
            code: s.code,
            errno: s.err,
            info: match s.info {
                1 => SignalInfo::Siginfo,
                2 => SignalInfo::NoInfo,
                3 => SignalInfo::Priv,
                _ => SignalInfo::Unknown,
            },
            result: s.result,
            flags,
            target,
            sender,
            call,
            call_args: s.call_args,
            call_path,
            si_pid: s.si_pid,
            si_uid: s.si_uid,
            addr: s.addr,
            ip: s.ip,
            sender_ancestors: ancestors(&parts.sender_ancestors),
            target_ancestors: ancestors(&parts.target_ancestors),
            argv,
            argv_status: ByteStatus::from_raw(s.argv_status).unwrap_or(ByteStatus::NotResident),
            argv_full: s.argv_full,
            oom: OomMemory { total_vm: s.oom[0], anon: s.oom[1], file: s.oom[2], shmem: s.oom[3] },
        });
        // of the everyday ones no stack is taken, as no ancestors are
        let expected = s.kind == wire::SIGNAL_GENERATE && flags & SIGNAL_INTERRUPT == 0 && s.target_ancestors > 0;
        if let Some(caller) = caller.filter(|_| s.kind == wire::SIGNAL_GENERATE) {
            self.attach(StackOf::Signal, row, (caller, s.sender.id.tid), s.ts, expected);
        }
    }

    /// Kernels before 6.1 name an OOM victim by its pid only.
    fn target(&mut self, target: &wire::Task) -> TaskId {
        match target.id.start {
            0 => self.tasks.process(target.id.pid).unwrap_or_else(|| self.tasks.find_or_add(&target.id)),
            _ => self.introduced(target),
        }
    }

    /// A task that is perhaps not recorded itself; its executable is looked up while it may still be there.
    fn introduced(&mut self, task: &wire::Task) -> TaskId {
        let id = self.tasks.introduce(task);
        let entry = self.tasks.get_mut(id);
        if entry.task.exe.is_empty() && !entry.looked_up {
            entry.looked_up = true;
            self.look_up_exe(task.id, task.here_pid);
        }
        id
    }

    /// What the fd argument of the sender's call stands for; empty = it has none, or not known.
    fn call_path(&self, sender: TaskId, info: effects::CallInfo, s: &wire::Signal) -> Vec<u8> {
        let fd = info.fd_args[0].and_then(|arg| s.call_args.get(usize::from(arg))).map(|fd| *fd as i32);
        let Some(fd) = fd.filter(|fd| *fd >= 0) else { return Vec::new() };
        effects::resolve(&self.tasks, sender, &info, s.ts, fd, |name| name.bytes.clone()).unwrap_or_default()
    }
}

fn ancestors(chain: &[wire::Ancestor]) -> Vec<Ancestor> {
    chain.iter().map(|a| Ancestor { pid: a.pid, start_ns: a.start, comm: wire::comm(&a.comm) }).collect()
}

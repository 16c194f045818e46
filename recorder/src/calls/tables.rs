//! Tables of calls for the BPF programs: what to copy, what to keep under any filter.

use crate::calls::filter::CallFilter;
use systape_abi::{Abi, ArgKind, Effect, ElementCount, Layout, Selection, Struct, Structs, SyscallDesc, describe};
use systape_bpf::wire::{CallDesc, CallStructs, StructRule};
use systape_bpf::{
    SC_MAX, also, call_flags as flag, capture_kind as cap, condition, plain, socket_call, struct_count, struct_when,
};

/// One entry per number below [`SC_MAX`]; the last serves all numbers from there on.
pub(crate) fn table(
    abi: Abi,
    selection: &Selection,
    filter: &CallFilter,
    structs: Structs,
) -> Vec<(CallDesc, CallStructs)> {
    let one = |nr| {
        let (desc, rules) = entry((abi, structs), describe(abi, nr), selection.contains(abi, nr));
        (CallDesc { min_dur: filter.min_dur(abi, nr), ..desc }, rules)
    };
    (0..SC_MAX).map(one).collect()
}

fn entry((abi, structs): (Abi, Structs), desc: Option<&SyscallDesc>, selected: bool) -> (CallDesc, CallStructs) {
    let mut out = CallDesc { args: 6, ..CallDesc::default() };
    let mut rules = CallStructs::default();
    if selected {
        out.flags |= flag::SELECTED;
    }
    if let Some(desc) = desc {
        describe_to(&mut out, desc);
        if selected {
            rules = rules_of(desc, abi, structs);
            out.structs = rules.rules.iter().fold(0, |all, rule| all | rule.when);
            out.struct_ops = desc.struct_ops();
        }
    }
    let is_bare = out.cap_kind == [0; 3] && out.also == also::NOTHING;
    out.plain = match out.flags == flag::SELECTED && is_bare {
        true if out.structs == 0 => plain::ALWAYS,
        true if desc.is_some_and(|desc| desc.name.starts_with("futex") && out.struct_ops != 0) => plain::WITHOUT_STRUCT,
        _ => plain::NEVER,
    };
    (out, rules)
}

/// The structures that a call's arguments point to.
pub(crate) fn rules_of(desc: &SyscallDesc, abi: Abi, structs: Structs) -> CallStructs {
    let mut rules = CallStructs::default();
    let all = desc.structs(abi, structs).map(|(arg, kind, layout)| rule(arg, kind, layout));
    rules.rules.iter_mut().zip(all).for_each(|(to, rule)| *to = rule);
    rules
}

/// How and when to copy a structure.
fn rule(arg: u8, kind: ArgKind, layout: Layout) -> StructRule {
    let count = match layout.count {
        ElementCount::Arg(arg) => arg,
        ElementCount::One => struct_count::ONE,
        ElementCount::Returned => struct_count::RETURNED,
        ElementCount::Bits => struct_count::BITS,
        ElementCount::ToPage => struct_count::TO_PAGE,
    };
    let when = match kind {
        ArgKind::In(_) => struct_when::ENTER,
        ArgKind::Futex => struct_when::ENTER | struct_when::BESIDE,
        ArgKind::Out(what) if what.needs_result() => struct_when::EXIT | struct_when::IF_POSITIVE,
        ArgKind::InOut(Struct::PollFds) => {
            struct_when::ENTER | struct_when::EXIT | struct_when::IF_POSITIVE | struct_when::KEPT
        }
        ArgKind::InOut(_) => struct_when::ENTER | struct_when::EXIT | struct_when::IF_POSITIVE,
        ArgKind::Left(_) => struct_when::EXIT | struct_when::IF_INTERRUPTED,
        _ => struct_when::EXIT,
    };
    StructRule { arg, when, count, most: layout.most, size: layout.size, pad: 0 }
}

fn describe_to(out: &mut CallDesc, desc: &SyscallDesc) {
    out.args = desc.args.len() as u8;
    let (flags, only_if) = effect_flags(desc.effect);
    out.flags |= flags;
    out.only_if = only_if;
    out.socket = socket_call_of(desc.effect);
    out.also = also_of(desc);
    let captures = desc.args.iter().enumerate().filter_map(|(i, arg)| capture_of(arg.kind).map(|c| (i as u8, c)));
    for (slot, (arg, (kind, len_arg))) in captures.take(out.cap_kind.len()).enumerate() {
        out.cap_kind[slot] = kind;
        out.cap_arg[slot] = arg;
        if let Some(len_arg) = len_arg {
            out.cap_len_arg = len_arg;
        }
    }
}

/// How to copy an argument, and which argument has the length.
fn capture_of(kind: ArgKind) -> Option<(u8, Option<u8>)> {
    Some(match kind {
        ArgKind::Path | ArgKind::FileName | ArgKind::Str => (cap::STRING, None),
        ArgKind::SockaddrIn { len_arg } | ArgKind::OpenHow { len_arg } | ArgKind::CloneArgs { len_arg } => {
            (cap::SOCKADDR_IN, Some(len_arg))
        }
        ArgKind::SockaddrOut { len_ptr_arg } => (cap::SOCKADDR_OUT, Some(len_ptr_arg)),
        ArgKind::FdPair => (cap::PAIR, None),
        ArgKind::Argv => (cap::ARGV, None),
        _ => return None,
    })
}

/// Work of the programs that keeps fd tables and identities known.
fn effect_flags(effect: Effect) -> (u8, u8) {
    match effect {
        Effect::NewFd | Effect::MaybeFd | Effect::Dup => (flag::STATE | flag::NEW_FD, 0),
        Effect::NewFdPair => (flag::STATE | flag::FD_PAIR, 0),
        Effect::Close | Effect::CloseRange => (flag::STATE | flag::CLOSING, 0),
        Effect::Dup2 | Effect::Dup3 => (flag::STATE | flag::CLOSING | flag::NEW_FD, 0),
        Effect::Fcntl => (flag::STATE | flag::NEW_FD, condition::DUP_FCNTL),
        Effect::Ioctl => (flag::STATE, condition::CLOEXEC_IOCTL),
        Effect::SocketCall => (flag::STATE | flag::NEW_FD, condition::SOCKET_CALL),
        Effect::Chdir | Effect::Fchdir => (flag::STATE | flag::CWD, 0),
        Effect::Cred => (flag::STATE | flag::CRED, 0),
        Effect::Exec => (flag::STATE | flag::EXEC, 0),
        Effect::Unshare | Effect::NamesSocket => (flag::STATE, 0),
        _ => (0, 0),
    }
}

/// What it does that is looked at besides.
fn also_of(desc: &SyscallDesc) -> u8 {
    match desc.name {
        _ if desc.removes() => also::REMOVES,
        "io_submit" => also::SUBMITS,
        "io_getevents" | "io_pgetevents" | "io_pgetevents_time64" => also::REAPS,
        _ => also::NOTHING,
    }
}

/// What it may do to the name of a socket.
fn socket_call_of(effect: Effect) -> u8 {
    match effect {
        Effect::NamesSocket | Effect::ReadsSocket => socket_call::NAMED,
        Effect::MayBindSocket => socket_call::SENDS,
        Effect::SocketCall => socket_call::CALL,
        _ => socket_call::UNTOUCHED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(name: &str, selection: &[&str]) -> CallDesc {
        let selection = Selection::parse(selection).unwrap();
        let nr = systape_abi::number(Abi::X86_64, name).unwrap();
        table(Abi::X86_64, &selection, &CallFilter::default(), Structs::Waits)[nr as usize].0
    }

    #[test]
    fn calls_that_change_state_are_kept_unselected() {
        let close = get("close", &["read"]);
        assert_eq!(close.flags, flag::STATE | flag::CLOSING);
        assert_eq!(get("read", &["read"]).flags, flag::SELECTED);
        assert_eq!(get("write", &["read"]).flags, 0);
        assert_eq!(get("openat", &[]).flags, flag::SELECTED | flag::STATE | flag::NEW_FD);
    }

    #[test]
    fn sockets_are_named_by_the_calls_that_change_them() {
        let of = |name| (get(name, &["read"]).flags, get(name, &[]).socket);
        for name in ["bind", "connect", "listen"] {
            assert_eq!(of(name), (flag::STATE, socket_call::NAMED), "{name}");
        }
        assert_eq!(of("getsockname"), (0, socket_call::NAMED));
        assert_eq!((of("sendto"), of("sendmsg")), ((0, socket_call::SENDS), (0, socket_call::UNTOUCHED)));
    }

    #[test]
    fn strings_and_addresses_are_captured() {
        let rename = get("renameat2", &[]);
        assert_eq!((rename.cap_kind, rename.cap_arg), ([cap::STRING, cap::STRING, 0], [1, 3, 0]));
        let connect = get("connect", &[]);
        assert_eq!((connect.cap_kind[0], connect.cap_arg[0], connect.cap_len_arg), (cap::SOCKADDR_IN, 1, 2));
        let accept = get("accept4", &[]);
        assert_eq!((accept.cap_kind[0], accept.cap_arg[0], accept.cap_len_arg), (cap::SOCKADDR_OUT, 1, 2));
    }

    #[test]
    fn calls_with_nothing_but_arguments_are_plain() {
        let plain = |name| get(name, &[]).plain;
        use systape_bpf::plain;
        assert_eq!(["read", "exit_group", "rt_sigprocmask"].map(plain), [plain::ALWAYS; 3]);
        assert_eq!(["openat", "close", "setuid", "execve", "stat", "connect", "fcntl"].map(plain), [plain::NEVER; 7]);
        // a copy is made of what waits only
        assert_eq!(["futex", "poll", "epoll_wait"].map(plain), [plain::WITHOUT_STRUCT, plain::NEVER, plain::NEVER]);
        assert_eq!(get("read", &["write"]).plain, 0);
    }

    #[test]
    fn structures_are_copied_when_they_hold_a_value() {
        let all = table(Abi::X86_64, &Selection::all(), &CallFilter::default(), Structs::All);
        let rules = |name: &str| {
            let (desc, structs) = all[systape_abi::number(Abi::X86_64, name).unwrap() as usize];
            let rules = structs.rules.iter().filter(|rule| rule.when != 0);
            (desc.structs, rules.map(|rule| (rule.arg, rule.when, rule.count, rule.size)).collect::<Vec<_>>())
        };
        use struct_when::{ENTER, EXIT, IF_INTERRUPTED, IF_POSITIVE, KEPT};
        let both = ENTER | EXIT | IF_POSITIVE;
        let one = struct_count::ONE;
        assert_eq!(rules("nanosleep").1, [(0, ENTER, one, 16), (1, EXIT | IF_INTERRUPTED, one, 16)]);
        assert_eq!(rules("ppoll").1, [(0, both | KEPT, 1, 8), (2, both, one, 16), (3, ENTER, one, 8)]);
        assert_eq!(rules("epoll_wait").1, [(1, EXIT | IF_POSITIVE, struct_count::RETURNED, 12)]);
        assert_eq!(rules("clock_gettime"), (EXIT, vec![(1, EXIT, one, 16)]));
        assert_eq!(rules("select").1[0], (1, both, struct_count::BITS, 8));
        let beside = ENTER | struct_when::BESIDE;
        assert_eq!(rules("futex").1, [(0, beside, struct_count::TO_PAGE, 4), (3, ENTER, one, 16)]);
        assert_eq!(rules("read"), (0, vec![]));
        let none = table(Abi::X86_64, &Selection::parse(&["read"]).unwrap(), &CallFilter::default(), Structs::All);
        assert!(none.iter().all(|(desc, _)| desc.structs == 0));
    }

    #[test]
    fn numbers_beyond_the_tables_are_recorded() {
        let last = table(Abi::X86_64, &Selection::all(), &CallFilter::default(), Structs::All)[SC_MAX as usize - 1].0;
        assert_eq!((last.flags, last.args, last.plain), (flag::SELECTED, 6, 1));
    }
}

//! Tables of calls for the BPF programs: what to copy, what to keep under any filter.

use crate::filter::CallFilter;
use systape_abi::{Abi, ArgKind, Effect, Selection, SyscallDesc, describe};
use systape_bpf::wire::CallDesc;
use systape_bpf::{SC_MAX, call_flags as flag, capture_kind as cap, condition, socket_call};

/// One entry per number below [`SC_MAX`]; the last serves all numbers from there on.
pub(crate) fn table(abi: Abi, selection: &Selection, filter: &CallFilter) -> Vec<CallDesc> {
    let one =
        |nr| CallDesc { min_dur: filter.min_dur(abi, nr), ..entry(describe(abi, nr), selection.contains(abi, nr)) };
    (0..SC_MAX).map(one).collect()
}

fn entry(desc: Option<&SyscallDesc>, selected: bool) -> CallDesc {
    let mut out = CallDesc { args: 6, ..CallDesc::default() };
    if selected {
        out.flags |= flag::SELECTED;
    }
    if let Some(desc) = desc {
        describe_to(&mut out, desc);
    }
    out.plain = u8::from(out.flags == flag::SELECTED && out.cap_kind == [0; 3]);
    out
}

fn describe_to(out: &mut CallDesc, desc: &SyscallDesc) {
    out.args = desc.args.len() as u8;
    let (flags, only_if) = effect_flags(desc.effect);
    out.flags |= flags;
    out.only_if = only_if;
    out.socket = socket_call_of(desc.effect);
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
        table(Abi::X86_64, &selection, &CallFilter::default())[nr as usize]
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
        assert_eq!(["read", "futex", "exit_group"].map(plain), [1; 3]);
        assert_eq!(["openat", "close", "setuid", "execve", "stat", "connect", "fcntl"].map(plain), [0; 7]);
        assert_eq!(get("read", &["write"]).plain, 0);
    }

    #[test]
    fn numbers_beyond_the_tables_are_recorded() {
        let last = table(Abi::X86_64, &Selection::all(), &CallFilter::default())[SC_MAX as usize - 1];
        assert_eq!((last.flags, last.args, last.plain), (flag::SELECTED, 6, 1));
    }
}

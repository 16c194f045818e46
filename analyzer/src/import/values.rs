//! The printed arguments of a call, as a tape has arguments: numbers, and memory that they point to.
//!
//! A pointer whose memory was printed has no number in the log. What cannot be turned back is not known.

use systape_abi::{
    AT_FDCWD, Abi, ArgKind, FlagSet, SyscallDesc, clock_flags, open_flags, protocol_flags, sockopt_flags,
};
use systape_format::model::{ByteStatus, NO_MATTER};

use super::body::{CallResult, find, split_list};
use super::number::{signal, unsigned};
use super::structs::{field, memory};
use super::text::{string, with_file};

/// Arguments of a call as a tape has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadArgs {
    /// Values of the arguments.
    pub args: [u64; 6],
    /// Bits of those that are not known.
    pub unknown: u8,
    /// Memory that arguments point to: argument, status, full length, bytes.
    pub captured: Vec<(u8, ByteStatus, u64, Vec<u8>)>,
    /// Files of the first two descriptors.
    pub files: [ReadFile; 2],
}

/// What a log says of the file of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadFile {
    /// There is no descriptor.
    #[default]
    None,
    /// The log does not say.
    Unknown,
    /// Name of the file, as `-y` writes it.
    Named(Vec<u8>),
}

impl ReadArgs {
    /// Arguments of which nothing is known.
    pub(super) fn nothing(desc: Option<&SyscallDesc>) -> Self {
        let count = desc.map_or(6, |desc| desc.args.len().min(6));
        let descriptor = |at: usize| match desc.and_then(|desc| desc.fd_args()[at]) {
            Some(_) => ReadFile::Unknown,
            None => ReadFile::None,
        };
        Self { unknown: ((1_u16 << count) - 1) as u8, files: [descriptor(0), descriptor(1)], ..Self::default() }
    }

    fn is_not_known(&mut self, at: usize, matters: bool) {
        self.unknown |= 1 << at;
        self.args[at] = if matters { 0 } else { NO_MATTER };
    }
}

/// Reads the arguments that were printed as `text`. `torn`: letters of others may stand behind the last.
pub(super) fn read(desc: Option<&SyscallDesc>, abi: Abi, text: &[u8], result: &CallResult<'_>, torn: bool) -> ReadArgs {
    let mut tokens = split_list(text);
    let Some(desc) = desc else { return unnamed(&tokens) };
    let clone;
    if desc.name == "clone" {
        clone = clone_order(desc, &tokens);
        tokens = clone;
    }
    let mut read = ReadArgs::default();
    let mut token = 0;
    for (at, arg) in desc.args.iter().enumerate().take(6) {
        if matches!(arg.kind, ArgKind::HighHalf) && at > 0 && matches!(desc.args[at - 1].kind, ArgKind::LowHalf) {
            // one number was printed for both
            continue;
        }
        let printed = tokens.get(token).map(|printed| without_comment(printed)).filter(|printed| !printed.is_empty());
        token += 1;
        match printed {
            // the kernel does not read it, or it was lost with the end of the line
            None => read.is_not_known(at, torn),
            Some(_) if torn && token == tokens.len() => read.is_not_known(at, true),
            Some(printed) => argument(&mut read, desc, at, abi, printed, result),
        }
    }
    files(&mut read, desc, &tokens);
    read
}

/// The arguments of a call that nobody describes: those that are numbers.
fn unnamed(tokens: &[&[u8]]) -> ReadArgs {
    let mut read = ReadArgs::default();
    for at in 0..6 {
        match tokens.get(at).and_then(|token| unsigned(without_comment(token))) {
            Some(value) => read.args[at] = value,
            None => read.is_not_known(at, at < tokens.len()),
        }
    }
    read
}

/// A token without the comment behind or in front of it: `0x7ffe /* 35 vars */`.
fn without_comment(token: &[u8]) -> &[u8] {
    if token.starts_with(b"\"") {
        return token;
    }
    match (find(token, b"/*"), find(token, b"*/")) {
        (Some(0), Some(end)) => token[end + 2..].trim_ascii(),
        (Some(begin), Some(_)) => token[..begin].trim_ascii_end(),
        _ => token,
    }
}

/// The arguments of clone, which strace prints in another order and with their names.
fn clone_order<'a>(desc: &SyscallDesc, tokens: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let labels = |name: &str| -> &[&[u8]] {
        match name {
            "clone_flags" => &[b"flags="],
            "newsp" => &[b"child_stack=", b"stack="],
            "parent_tidptr" => &[b"parent_tidptr=", b"parent_tid="],
            "child_tidptr" => &[b"child_tidptr=", b"child_tid="],
            _ => &[b"tls="],
        }
    };
    let of = |name: &str| {
        let has = |token: &&'a [u8]| labels(name).iter().find_map(|label| token.strip_prefix(*label));
        tokens.iter().find_map(has).unwrap_or_default()
    };
    desc.args.iter().map(|arg| of(arg.name)).collect()
}

/// Reads one argument.
fn argument(read: &mut ReadArgs, desc: &SyscallDesc, at: usize, abi: Abi, printed: &[u8], result: &CallResult<'_>) {
    let kind = desc.args[at].kind;
    if printed == b"NULL" {
        return;
    }
    if let Some(set) = names(desc, kind, &read.args, abi) {
        let text = std::str::from_utf8(printed).unwrap_or_default();
        match text.split(" or ").find_map(|text| set.parse(text)) {
            Some(value) => read.args[at] = narrowed(value, set),
            None => read.is_not_known(at, true),
        }
        return;
    }
    match kind {
        ArgKind::Fd | ArgKind::DirFd => {
            let (number, _) = with_file(printed);
            match number {
                b"AT_FDCWD" => read.args[at] = u64::from(AT_FDCWD as u32),
                _ => match unsigned(number) {
                    Some(value) => read.args[at] = value & 0xffff_ffff,
                    None => read.is_not_known(at, true),
                },
            }
        }
        ArgKind::LowHalf => match unsigned(printed) {
            Some(value) => {
                read.args[at] = value & 0xffff_ffff;
                if let Some(high) = read.args.get_mut(at + 1) {
                    *high = value >> 32;
                }
            }
            None => read.is_not_known(at, true),
        },
        ArgKind::Signal => match unsigned(printed).or_else(|| signal(printed).map(u64::from)) {
            Some(value) => read.args[at] = value,
            None => read.is_not_known(at, true),
        },
        ArgKind::Mode => match mode(printed) {
            Some(value) => read.args[at] = value,
            None => read.is_not_known(at, true),
        },
        ArgKind::Dev => match device(printed) {
            Some(value) => read.args[at] = value,
            None => read.is_not_known(at, true),
        },
        _ => pointer_or_number(read, kind, at, abi, printed, result),
    }
}

/// Reads an argument that is a number, or points to memory that was printed.
fn pointer_or_number(read: &mut ReadArgs, kind: ArgKind, at: usize, abi: Abi, printed: &[u8], result: &CallResult<'_>) {
    // -Y: the name of a process behind its number
    let digits = if matches!(kind, ArgKind::Pid) { with_file(printed).0 } else { printed };
    if let Some(value) = unsigned(digits).or_else(|| word(printed)) {
        read.args[at] = value;
        return;
    }
    if let Some(string) = string(printed).filter(|_| holds_text(kind)) {
        read.is_not_known(at, false);
        let status = if string.whole { ByteStatus::Whole } else { ByteStatus::Truncated };
        let full = match (string.whole, kind) {
            (true, _) => string.bytes.len() as u64,
            // what was read is as long as the result, what is written as long as its own argument says
            (false, ArgKind::BufOut) => result.ret.and_then(|ret| u64::try_from(ret).ok()).unwrap_or(0),
            (false, _) => 0,
        };
        read.captured.push((at as u8, status, full, string.bytes));
        return;
    }
    match memory(kind, abi, printed) {
        Some(found) => {
            read.is_not_known(at, false);
            let status = if found.cut { ByteStatus::Truncated } else { ByteStatus::Whole };
            let full = if found.cut { 0 } else { found.bytes.len() as u64 };
            read.captured.push((at as u8, status, full, found.bytes));
        }
        // memory that was printed lies somewhere
        None => read.is_not_known(at, !matches!(printed.first(), Some(b'{' | b'[' | b'"' | b'~'))),
    }
}

/// Whether what an argument of `kind` points to is printed as a string.
fn holds_text(kind: ArgKind) -> bool {
    let other = matches!(
        kind,
        ArgKind::SockaddrIn { .. }
            | ArgKind::SockaddrOut { .. }
            | ArgKind::FdPair
            | ArgKind::OpenHow { .. }
            | ArgKind::CloneArgs { .. }
            | ArgKind::Argv
            | ArgKind::Envp
            | ArgKind::Iovec { .. }
            | ArgKind::Msghdr
    );
    !other && kind.structure().is_none()
}

/// The set of names that an argument has.
fn names(desc: &SyscallDesc, kind: ArgKind, args: &[u64; 6], abi: Abi) -> Option<&'static FlagSet> {
    let other = |at: u8| args.get(usize::from(at)).copied().unwrap_or(0);
    match kind {
        ArgKind::Flags(set) if set.prefix == "O_" && desc.name.starts_with("open") => Some(open_flags(abi)),
        ArgKind::Flags(set) => Some(set),
        ArgKind::ClockId => Some(clock_flags()),
        ArgKind::SockProto { family_arg } => protocol_flags(other(family_arg)),
        ArgKind::SockOpt { level_arg } => sockopt_flags(other(level_arg)),
        _ => None,
    }
}

/// `value` as the register has it.
fn narrowed(value: u64, set: &FlagSet) -> u64 {
    if set.wide { value } else { value & 0xffff_ffff }
}

/// Words that strace writes for numbers of arguments without a set of names.
fn word(printed: &[u8]) -> Option<u64> {
    Some(match printed {
        b"FD_CLOEXEC" => 1,
        b"FUTEX_BITSET_MATCH_ANY" => 0xffff_ffff,
        b"INT_MAX" => 0x7fff_ffff,
        b"UINT_MAX" => 0xffff_ffff,
        b"-1U" => 0xffff_ffff,
        _ => {
            // what F_SETFL sets
            let text = std::str::from_utf8(printed).ok().filter(|text| text.starts_with("O_"))?;
            open_flags(Abi::X86_64).parse(text)?
        }
    })
}

/// `S_IFREG|0644`, `0644`.
fn mode(printed: &[u8]) -> Option<u64> {
    const TYPES: [(&[u8], u64); 10] = [
        (b"S_IFREG", 0o100_000),
        (b"S_IFDIR", 0o040_000),
        (b"S_IFCHR", 0o020_000),
        (b"S_IFBLK", 0o060_000),
        (b"S_IFIFO", 0o010_000),
        (b"S_IFSOCK", 0o140_000),
        (b"S_IFLNK", 0o120_000),
        (b"S_ISUID", 0o4_000),
        (b"S_ISGID", 0o2_000),
        (b"S_ISVTX", 0o1_000),
    ];
    let word = |word: &[u8]| {
        let named = TYPES.iter().find(|(name, _)| *name == word).map(|(_, bits)| *bits);
        named.or_else(|| unsigned(word))
    };
    printed.split(|byte| *byte == b'|').try_fold(0, |mode, part| Some(mode | word(part.trim_ascii())?))
}

/// `makedev(0x1, 0x3)`, as the kernel packs it (`new_encode_dev`, include/linux/kdev_t.h).
fn device(printed: &[u8]) -> Option<u64> {
    let Some(inner) = printed.strip_prefix(b"makedev(") else { return unsigned(printed) };
    let parts = split_list(inner.strip_suffix(b")")?);
    let [major, minor] = parts.as_slice() else { return None };
    let (major, minor) = (unsigned(major)?, unsigned(minor)?);
    Some((minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xfff00) << 12)
}

/// The files of the descriptors that a tape names.
fn files(read: &mut ReadArgs, desc: &SyscallDesc, tokens: &[&[u8]]) {
    let of = |token: &[u8]| {
        let (number, file) = with_file(token);
        match (number, unsigned(number), file) {
            (b"AT_FDCWD", ..) => ReadFile::None,
            (_, Some(value), _) if value as u32 as i32 <= -1 => ReadFile::None,
            (_, _, Some(file)) => ReadFile::Named(file),
            _ => ReadFile::Unknown,
        }
    };
    // of an array to poll those of its first two
    if let (Some(ArgKind::InOut(systape_abi::Struct::PollFds)), Some(array)) =
        (desc.args.first().map(|arg| arg.kind), tokens.first())
    {
        let inner = array.strip_prefix(b"[").and_then(|array| array.strip_suffix(b"]")).unwrap_or_default();
        for (to, one) in read.files.iter_mut().zip(split_list(inner)) {
            *to = field(one, "fd").map_or(ReadFile::None, of);
        }
        return;
    }
    for (to, at) in read.files.iter_mut().zip(desc.fd_args()) {
        *to = match at {
            Some(at) => tokens.get(at).map_or(ReadFile::Unknown, |token| of(without_comment(token))),
            None => ReadFile::None,
        };
    }
}

#[cfg(test)]
mod tests {
    use systape_abi::{describe, number};

    use super::*;

    fn of(name: &str, text: &str) -> ReadArgs {
        let desc = describe(Abi::X86_64, number(Abi::X86_64, name).unwrap());
        read(desc, Abi::X86_64, text.as_bytes(), &CallResult::default(), false)
    }

    const CWD: u64 = AT_FDCWD as u32 as u64;

    #[test]
    fn words_become_the_numbers_that_they_stand_for() {
        let open = of("openat", r#"AT_FDCWD</tmp>, "a\n", O_RDWR|O_CREAT, 0644"#);
        assert_eq!((open.args, open.unknown), ([CWD, NO_MATTER, 0o102, 0o644, 0, 0], 0b10));
        assert_eq!(open.captured, [(1, ByteStatus::Whole, 2, b"a\n".to_vec())]);
        assert_eq!(open.files, [ReadFile::None, ReadFile::None]);
        let plain = of("openat", r#"5</srv>, "a", O_RDONLY"#);
        assert_eq!((plain.args[0], plain.args[3], plain.unknown), (5, NO_MATTER, 0b1010));
        assert_eq!(plain.files[0], ReadFile::Named(b"/srv".to_vec()));
        let map = of("mmap", "NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0");
        assert_eq!((map.args, map.unknown), ([0, 8192, 3, 0x22, 0xffff_ffff, 0], 0));
        let futex = of("futex", "0x7f12, FUTEX_WAIT_PRIVATE, 2, NULL");
        assert_eq!((futex.args, futex.unknown), ([0x7f12, 128, 2, 0, NO_MATTER, NO_MATTER], 0b110000));
        let socket = of("socket", "AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP");
        assert_eq!((socket.args[..3].to_vec(), socket.unknown), (vec![2, 0o2000001, 6], 0));
        let ioctl = of("ioctl", "1</dev/pts/0<char 136:0>>, TCGETS, {c_iflag=0x4500, ...}");
        assert_eq!((ioctl.args[1], ioctl.unknown & 0b10), (0x5401, 0));
        let kill = of("kill", "18, SIGTERM");
        assert_eq!(kill.args[..2], [18, 15]);
        assert_eq!(of("mknodat", r#"AT_FDCWD, "x", S_IFCHR|0600, makedev(0x1, 0x3)"#).args[2..4], [0o20600, 0x103]);
    }

    #[test]
    fn clone_has_its_arguments_in_the_kernels_order() {
        let clone = of(
            "clone",
            "child_stack=0x7f10, flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS, parent_tid=[7], tls=0x7f20, child_tidptr=0x7f30",
        );
        assert_eq!(clone.args, [0x90100, 0x7f10, NO_MATTER, 0x7f30, 0x7f20, 0]);
        let fork = of("clone", "child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f30");
        assert_eq!((fork.args[..2].to_vec(), fork.args[3]), (vec![0x0100_0011, 0], 0x7f30));
    }

    #[test]
    fn what_is_no_number_is_not_known() {
        let stat = of("newfstatat", r#"3</a>, "", {st_mode=S_IFREG|0644, st_size=5, ...}, AT_EMPTY_PATH"#);
        assert_eq!((stat.args, stat.unknown), ([3, NO_MATTER, NO_MATTER, 0x1000, 0, 0], 0b110));
        let strange = of("openat", r#"AT_FDCWD, "a", O_NOSUCH"#);
        assert_eq!((strange.args[2], strange.unknown & 4), (0, 4));
        let read = of("read", r#"3, "abc"..., 4096"#);
        assert_eq!(read.captured[0].1, ByteStatus::Truncated);
        assert_eq!(of("close", "3").files[0], ReadFile::Unknown);
        assert_eq!(of("execve", r#""/bin/ls", ["ls"], 0x7ffe /* 35 vars */"#).args[2], 0x7ffe);
        let poll = of("poll", "[{fd=3</a>, events=POLLIN}, {fd=-1}], 2, 100");
        assert_eq!(poll.files, [ReadFile::Named(b"/a".to_vec()), ReadFile::None]);
        let nobody = read_unnamed("1, 0x2, \"x\"");
        assert_eq!((nobody.args[..3].to_vec(), nobody.unknown), (vec![1, 2, 0], 0b111100));
    }

    fn read_unnamed(text: &str) -> ReadArgs {
        read(None, Abi::X86_64, text.as_bytes(), &CallResult::default(), false)
    }
}

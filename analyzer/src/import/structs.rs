//! Structures that strace prints, as the bytes that they were: those of which it prints all that a tape has of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use systape_abi::{Abi, ArgKind, FlagSet, Struct, describe_name, open_flags};

use super::body::{find, split_list};
use super::number::{product, signal, signed, unsigned};
use super::text::{string, with_file};

/// Bytes of memory, and whether they are all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// More of them were not printed.
    pub cut: bool,
}

impl MemoryBytes {
    fn whole(bytes: Vec<u8>) -> Self {
        Self { bytes, cut: false }
    }
}

/// The memory that an argument of `kind` points to, printed as `token`; None: it is not known, or not in full.
pub(super) fn memory(kind: ArgKind, abi: Abi, token: &[u8]) -> Option<MemoryBytes> {
    match kind {
        ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } => socket_address(token).map(MemoryBytes::whole),
        ArgKind::FdPair => descriptors(token).map(MemoryBytes::whole),
        ArgKind::Argv | ArgKind::Envp => words(token),
        ArgKind::CloneArgs { .. } => clone_args(token).map(MemoryBytes::whole),
        ArgKind::OpenHow { .. } => open_how(abi, token).map(MemoryBytes::whole),
        _ => of_struct(kind.structure()?, abi, token),
    }
}

fn of_struct(what: Struct, abi: Abi, token: &[u8]) -> Option<MemoryBytes> {
    let long = abi != Abi::I386;
    match what {
        Struct::Timespec => pair(token, "tv_sec", "tv_nsec", true),
        Struct::Timespec32 => pair(token, "tv_sec", "tv_nsec", false),
        Struct::Timeval => pair(token, "tv_sec", "tv_usec", long),
        Struct::Rlimit => pair(token, "rlim_cur", "rlim_max", long),
        Struct::Rlimit64 => pair(token, "rlim_cur", "rlim_max", true),
        Struct::Itimerval => nested(token, |inner| pair(inner, "tv_sec", "tv_usec", long)),
        Struct::Itimerspec => nested(token, |inner| pair(inner, "tv_sec", "tv_nsec", true)),
        Struct::Itimerspec32 => nested(token, |inner| pair(inner, "tv_sec", "tv_nsec", false)),
        Struct::SigSet => signals(token).map(|set| set.to_le_bytes().to_vec()),
        Struct::WaitStatus => wait_status(token).map(|status| status.to_le_bytes().to_vec()),
        Struct::PollFds => return poll_fds(token),
        _ => None,
    }
    .map(MemoryBytes::whole)
}

/// The value of the field `name` in `{name=value, ...}`.
pub(super) fn field<'a>(token: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let inner = token.strip_prefix(b"{")?.strip_suffix(b"}")?;
    let mut fields = split_list(inner).into_iter();
    fields
        .find_map(|field| field.strip_prefix(name.as_bytes())?.trim_ascii_start().strip_prefix(b"="))
        .map(<[u8]>::trim_ascii)
}

/// The words for numbers that limits and times of files have.
fn named(token: &[u8]) -> Option<u64> {
    match token {
        b"RLIM64_INFINITY" | b"RLIM_INFINITY" => Some(u64::MAX),
        b"UTIME_NOW" => Some((1 << 30) - 1),
        b"UTIME_OMIT" => Some((1 << 30) - 2),
        _ => product(token),
    }
}

fn pair(token: &[u8], first: &str, second: &str, long: bool) -> Option<Vec<u8>> {
    let values = [named(field(token, first)?)?, named(field(token, second)?)?];
    Some(match long {
        true => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        false => values.iter().flat_map(|value| (*value as u32).to_le_bytes()).collect(),
    })
}

fn nested(token: &[u8], inner: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut bytes = inner(field(token, "it_interval")?)?;
    bytes.extend(inner(field(token, "it_value")?)?);
    Some(bytes)
}

/// `[INT CHLD]`, `~[KILL STOP]`: a bit for each signal.
fn signals(token: &[u8]) -> Option<u64> {
    let (all, list) = match token.strip_prefix(b"~") {
        Some(list) => (true, list),
        None => (false, token),
    };
    let inner = std::str::from_utf8(list.strip_prefix(b"[")?.strip_suffix(b"]")?).ok()?;
    let mut set = 0;
    for word in inner.split([' ', ',']).filter(|word| !word.is_empty()) {
        set |= 1 << (signal(word.as_bytes())? - 1);
    }
    Some(if all { !set } else { set })
}

/// `[{WIFEXITED(s) && WEXITSTATUS(s) == 2}]`.
fn wait_status(token: &[u8]) -> Option<u32> {
    let inner = token.strip_prefix(b"[{")?.strip_suffix(b"}]")?;
    let value = |name: &[u8]| {
        let rest = &inner[find(inner, name)? + name.len()..];
        let rest = rest.strip_prefix(b"(s) == ")?;
        Some(rest.split(|byte| *byte == b' ').next().unwrap_or(rest))
    };
    if let Some(status) = value(b"WEXITSTATUS") {
        return Some((unsigned(status)? as u32 & 0xff) << 8);
    }
    if let Some(killed) = value(b"WTERMSIG") {
        return Some(signal(killed)? | if find(inner, b"WCOREDUMP(s)").is_some() { 0x80 } else { 0 });
    }
    if let Some(stopped) = value(b"WSTOPSIG") {
        // what ptrace says besides is not in what is printed as one word
        return find(inner, b">>16").is_none().then_some(()).and(signal(stopped)).map(|signal| signal << 8 | 0x7f);
    }
    (inner == b"WIFCONTINUED(s)").then_some(0xffff)
}

/// `[{fd=3</x>, events=POLLIN}, {fd=-1}]`.
fn poll_fds(token: &[u8]) -> Option<MemoryBytes> {
    let inner = token.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let (mut bytes, mut cut) = (Vec::new(), false);
    for one in split_list(inner) {
        if one == b"..." {
            cut = true;
            break;
        }
        let (fd, _) = with_file(field(one, "fd")?);
        bytes.extend((signed(fd)? as i32).to_le_bytes());
        let events = match field(one, "events") {
            Some(events) => poll_events(events)?,
            // of a negative descriptor they are not printed, nor read
            None if signed(fd)? < 0 => 0,
            None => return None,
        };
        bytes.extend((events as u16).to_le_bytes());
        bytes.extend([0; 2]);
    }
    Some(MemoryBytes { bytes, cut })
}

/// The bits of `POLLIN|POLLOUT` (include/uapi/asm-generic/poll.h).
fn poll_events(token: &[u8]) -> Option<u64> {
    const BITS: [(&str, u64); 13] = [
        ("POLLIN", 1),
        ("POLLPRI", 2),
        ("POLLOUT", 4),
        ("POLLERR", 8),
        ("POLLHUP", 0x10),
        ("POLLNVAL", 0x20),
        ("POLLRDNORM", 0x40),
        ("POLLRDBAND", 0x80),
        ("POLLWRNORM", 0x100),
        ("POLLWRBAND", 0x200),
        ("POLLMSG", 0x400),
        ("POLLREMOVE", 0x1000),
        ("POLLRDHUP", 0x2000),
    ];
    let word = |word: &str| {
        let named = BITS.iter().find(|(name, _)| *name == word).map(|(_, bit)| *bit);
        named.or_else(|| unsigned(word.as_bytes()))
    };
    std::str::from_utf8(token).ok()?.split('|').try_fold(0, |all, name| Some(all | word(name.trim())?))
}

/// `[3</a>, 4</b>]`.
fn descriptors(token: &[u8]) -> Option<Vec<u8>> {
    let inner = token.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let fds: Vec<&[u8]> = split_list(inner);
    let [first, second] = fds.as_slice() else { return None };
    let number = |token: &[u8]| signed(with_file(token).0).map(|fd| (fd as i32).to_le_bytes());
    Some([number(first)?, number(second)?].concat())
}

/// `["ls", "-l"]`, with a NUL between words.
fn words(token: &[u8]) -> Option<MemoryBytes> {
    let inner = token.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let (mut bytes, mut cut) = (Vec::new(), false);
    for (at, word) in split_list(inner).into_iter().enumerate() {
        if word == b"..." {
            cut = true;
            break;
        }
        let word = string(word)?;
        if at > 0 {
            bytes.push(0);
        }
        bytes.extend(word.bytes);
        // what follows a word that was cut is left out: the bytes are the beginning of the list
        if !word.whole {
            cut = true;
            break;
        }
    }
    Some(MemoryBytes { bytes, cut })
}

/// `{flags=O_RDONLY|O_CLOEXEC, mode=0644, resolve=RESOLVE_BENEATH}`.
fn open_how(abi: Abi, token: &[u8]) -> Option<Vec<u8>> {
    const RESOLVE: [(&str, u64); 6] = [
        ("RESOLVE_NO_XDEV", 1),
        ("RESOLVE_NO_MAGICLINKS", 2),
        ("RESOLVE_NO_SYMLINKS", 4),
        ("RESOLVE_BENEATH", 8),
        ("RESOLVE_IN_ROOT", 0x10),
        ("RESOLVE_CACHED", 0x20),
    ];
    let text = |name: &str| std::str::from_utf8(field(token, name)?).ok();
    let flags = open_flags(abi).parse(text("flags")?)?;
    let mode = field(token, "mode").map_or(Some(0), unsigned)?;
    let word = |word: &str| {
        let named = RESOLVE.iter().find(|(name, _)| *name == word).map(|(_, bit)| *bit);
        named.or_else(|| unsigned(word.as_bytes()))
    };
    let resolve = match text("resolve") {
        Some(words) => words.split('|').try_fold(0, |all, name| Some(all | word(name)?))?,
        None => 0,
    };
    Some([flags, mode, resolve].iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// A socket's address: `{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}`.
fn socket_address(token: &[u8]) -> Option<Vec<u8>> {
    let family = field(token, "sa_family")?;
    let call = |name: &str, function: &str| {
        let value = field(token, name)?.strip_prefix(function.as_bytes())?.strip_prefix(b"(")?.strip_suffix(b")")?;
        Some(value)
    };
    let port = |name: &str| unsigned(call(name, "htons")?).map(|port| (port as u16).to_be_bytes());
    let text = |token: &[u8]| String::from_utf8(string(token)?.bytes).ok();
    let mut bytes = Vec::new();
    match family {
        b"AF_INET" => {
            bytes.extend(2_u16.to_le_bytes());
            bytes.extend(port("sin_port")?);
            let address: Ipv4Addr = text(call("sin_addr", "inet_addr")?)?.parse().ok()?;
            bytes.extend(address.octets());
            bytes.extend([0; 8]);
        }
        b"AF_INET6" => {
            bytes.extend(10_u16.to_le_bytes());
            bytes.extend(port("sin6_port")?);
            let flow = call("sin6_flowinfo", "htonl").map_or(Some(0), unsigned)?;
            bytes.extend((flow as u32).to_be_bytes());
            // inet_pton(AF_INET6, "::1", &sin6_addr) is an item without a name of its own
            let inner = token.strip_prefix(b"{")?.strip_suffix(b"}")?;
            let item = split_list(inner).into_iter().find(|item| item.starts_with(b"inet_pton(AF_INET6"));
            let address = match item {
                Some(item) => split_list(item.strip_prefix(b"inet_pton(")?.strip_suffix(b")")?).get(1).copied()?,
                None => {
                    field(token, "sin6_addr")?.strip_prefix(b"inet_pton(AF_INET6,")?.trim_ascii().strip_suffix(b")")?
                }
            };
            let address: Ipv6Addr = text(address)?.parse().ok()?;
            bytes.extend(address.octets());
            let scope = field(token, "sin6_scope_id").and_then(unsigned).unwrap_or(0);
            bytes.extend((scope as u32).to_le_bytes());
        }
        b"AF_UNIX" => {
            bytes.extend(1_u16.to_le_bytes());
            let Some(path) = field(token, "sun_path") else { return Some(bytes) };
            let (path, is_abstract) = match path.strip_prefix(b"@") {
                Some(path) => (path, true),
                None => (path, false),
            };
            let path = string(path).filter(|path| path.whole)?;
            bytes.extend(is_abstract.then_some(0));
            bytes.extend(path.bytes);
            if !is_abstract {
                bytes.push(0);
            }
        }
        _ => return None,
    }
    Some(bytes)
}

/// `{flags=CLONE_VM|..., exit_signal=SIGCHLD, stack=0x7f10, stack_size=0x8000} => {parent_tid=[7]}`: the eight numbers that
/// `struct clone_args` begins with (include/uapi/linux/sched.h). Those that are not printed are 0.
fn clone_args(token: &[u8]) -> Option<Vec<u8>> {
    let given = find(token, b" => ").map_or(token, |at| &token[..at]);
    let flags = std::str::from_utf8(field(given, "flags")?).ok()?;
    let number = |name: &str| field(given, name).map_or(Some(0), unsigned);
    let exit = match field(given, "exit_signal") {
        Some(name) if name.starts_with(b"SIG") => signal(name)?.into(),
        Some(number) => unsigned(number)?,
        None => 0,
    };
    let values = [
        clone_flags()?.parse(flags)?,
        number("pidfd")?,
        number("child_tid")?,
        number("parent_tid")?,
        exit,
        number("stack")?,
        number("stack_size")?,
        number("tls")?,
    ];
    Some(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// The names of clone's flags.
fn clone_flags() -> Option<&'static FlagSet> {
    match describe_name("clone")?.args.first()?.kind {
        ArgKind::Flags(set) => Some(set),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use systape_abi::{StructBytes, sockaddr_text};

    use super::*;

    #[test]
    fn addresses_are_those_that_were_printed() {
        let text = |token: &str| socket_address(token.as_bytes()).map(|bytes| sockaddr_text(&bytes));
        let four = r#"{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}"#;
        assert_eq!(text(four).as_deref(), Some("{AF_INET, 127.0.0.1:80}"));
        let six = r#"{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}"#;
        assert_eq!(text(six).as_deref(), Some("{AF_INET6, [::1]:443}"));
        assert_eq!(text(r#"{sa_family=AF_UNIX, sun_path="/run/x"}"#).as_deref(), Some("{AF_UNIX, /run/x}"));
        assert_eq!(text(r#"{sa_family=AF_UNIX, sun_path=@"name"}"#).as_deref(), Some("{AF_UNIX, @name}"));
        assert_eq!(text("{sa_family=AF_UNIX}").as_deref(), Some("{AF_UNIX}"));
        assert_eq!((text("{sa_family=AF_VSOCK, svm_cid=2}"), text("NULL"), text("{}")), (None, None, None));
    }

    /// What the tape prints of what was read.
    fn again(what: Struct, token: &str) -> Option<String> {
        let memory = of_struct(what, Abi::X86_64, token.as_bytes())?;
        let read = StructBytes { what, abi: Abi::X86_64, args: &[0; 6], bytes: &memory.bytes, whole: !memory.cut };
        read.text(&mut |out, fd| out.push_str(&fd.to_string()))
    }

    #[test]
    fn structures_print_as_they_were_printed() {
        let same = [
            (Struct::Timespec, "{tv_sec=1, tv_nsec=500000000}"),
            (Struct::Timeval, "{tv_sec=0, tv_usec=5}"),
            (Struct::SigSet, "[INT CHLD]"),
            (Struct::SigSet, "[]"),
            (Struct::WaitStatus, "[{WIFEXITED(s) && WEXITSTATUS(s) == 2}]"),
            (Struct::WaitStatus, "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}]"),
            (Struct::PollFds, "[{fd=3, events=POLLIN|POLLOUT}, {fd=4, events=POLLPRI}]"),
            (Struct::Rlimit, "{rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}"),
            (Struct::Itimerspec, "{it_interval={tv_sec=0, tv_nsec=0}, it_value={tv_sec=1, tv_nsec=0}}"),
        ];
        for (what, text) in same {
            assert_eq!(again(what, text).as_deref(), Some(text));
        }
        assert_eq!(again(Struct::SigSet, "~[KILL STOP]").as_deref(), Some("~[KILL STOP]"));
        assert_eq!(of_struct(Struct::SigSet, Abi::X86_64, b"[RTMIN RT_1]").unwrap().bytes, (3_u64 << 31).to_le_bytes());
        for (what, text) in [(Struct::Timespec, "NULL"), (Struct::PollFds, "[{fd=3}]"), (Struct::SigSet, "[NOSUCH]")] {
            assert_eq!(again(what, text), None);
        }
    }

    #[test]
    fn lists_of_words_and_descriptors_are_read() {
        let words = |token: &str| words(token.as_bytes()).map(|words| (words.bytes, words.cut));
        assert_eq!(words(r#"["ls", "-l", "a b"]"#), Some((b"ls\0-l\0a b".to_vec(), false)));
        assert_eq!(words(r#"["ls", "-l"..., "a"]"#), Some((b"ls\0-l".to_vec(), true)));
        assert_eq!((words("[]"), words("0x7ffe")), (Some((Vec::new(), false)), None));
        assert_eq!(descriptors(b"[3</a,b>, 4]"), Some(vec![3, 0, 0, 0, 4, 0, 0, 0]));
        assert_eq!(open_how(Abi::X86_64, b"{flags=O_RDONLY, resolve=RESOLVE_BENEATH}").unwrap()[16], 8);
    }
}

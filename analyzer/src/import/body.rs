//! What a line of strace says, behind whose it is and when.

use systape_abi::errno_number;

use super::lead::number;
use super::text::end_of_string;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StraceLine<'a> {
    /// `name(args) = result`.
    Whole {
        /// Name of the call.
        name: &'a [u8],
        /// What stands between the parentheses.
        args: &'a [u8],
        /// What came of it.
        result: CallResult<'a>,
    },
    /// `name(args <unfinished ...>`: another line has the rest.
    Begun {
        /// Name of the call.
        name: &'a [u8],
        /// Arguments so far.
        args: &'a [u8],
    },
    /// The end of a call that was begun: `<... name resumed>args) = result`.
    Resumed {
        /// Name of the call.
        name: &'a [u8],
        /// The rest of the arguments.
        args: &'a [u8],
        /// What came of it.
        result: CallResult<'a>,
    },
    /// `name(args`, torn by the program's own output or by a message of strace.
    Torn {
        /// Name of the call.
        name: &'a [u8],
        /// Arguments so far, perhaps with letters of others behind them.
        args: &'a [u8],
    },
    /// `+++ exited with 3 +++`, `+++ killed by SIGKILL +++`: the kernel's exit code.
    Ended(u32),
    /// `+++ superseded by execve in pid 17 +++`: that thread takes the number of this one.
    Superseded(u32),
    /// `--- SIGCHLD {...} ---`: the thread took a signal; what stands between the marks.
    Signal(&'a [u8]),
    /// `--- stopped by SIGSTOP ---`: it stands still, for a signal that has a line of its own.
    Stopped,
    /// `strace: Process 17 attached`, `[ Process PID=17 runs in 32 bit mode. ]`.
    Remark(StraceRemark),
    /// A line of a stack, `-k`.
    Frame,
}

/// What strace says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StraceRemark {
    /// A thread that is followed from now on.
    Attached(u32),
    /// A program of this thread uses this many bits: 32, 64, or `x32`.
    Bits(u32, u8),
    /// Something else.
    Other,
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallResult<'a> {
    /// Return value; None: `?`.
    pub ret: Option<i64>,
    /// The error, or a restart; 0: none.
    pub errno: u16,
    /// The file of a returned descriptor, with its angle brackets: `3</etc/passwd>`.
    pub value: &'a [u8],
    /// What the call left, without its parentheses: `[{fd=3, revents=POLLIN}]`.
    pub after: &'a [u8],
    /// How long it took, ns; None: without `-T`.
    pub dur: Option<u64>,
    /// The returned process's number as strace sees it, where the program sees another (`--pidns-translation`).
    pub outer: Option<u32>,
}

/// Bits of `x32` programs.
pub(super) const X32: u8 = 33;

/// Time that no call takes, ns: 417 days.
const LONGEST: u64 = 1 << 55;
const UNFINISHED: &[u8] = b"<unfinished ...>";
const DETACHED: &[u8] = b"<detached ...>";

/// Reads a line behind its lead; None: it is not understood.
pub(super) fn parse(body: &[u8]) -> Option<StraceLine<'_>> {
    let body = body.trim_ascii_end();
    match body {
        [b'+', b'+', b'+', b' ', ..] => return end_of_thread(body),
        [b'-', b'-', b'-', b' ', ..] if body.ends_with(b" ---") => return signal_line(body),
        [b'>', b' ', ..] => return Some(StraceLine::Frame),
        _ => {}
    }
    if let Some(remark) = remark(body) {
        return Some(StraceLine::Remark(remark));
    }
    if let Some(rest) = body.strip_prefix(b"<... ") {
        let at = find(rest, b" resumed>")?;
        let (name, rest) = (&rest[..at], rest[at + b" resumed>".len()..].trim_ascii_start());
        let (args, result) = match rest.strip_prefix(UNFINISHED) {
            // killed inside the call
            Some(rest) => (&rest[..0], rest.strip_prefix(b")")?),
            None => split_arguments(rest)?,
        };
        return Some(StraceLine::Resumed { name: call_name(name)?, args, result: result_of(result)? });
    }
    let open = body.iter().position(|byte| *byte == b'(')?;
    let (name, rest) = (call_name(&body[..open])?, &body[open + 1..]);
    for mark in [UNFINISHED, DETACHED] {
        if let Some(args) = rest.strip_suffix(mark) {
            return Some(StraceLine::Begun { name, args: args.trim_ascii_end() });
        }
    }
    let whole = split_arguments(rest).and_then(|(args, result)| Some((args, result_of(result)?)));
    Some(match whole {
        Some((args, result)) => {
            let args = args.strip_suffix(UNFINISHED).unwrap_or(args).trim_ascii();
            StraceLine::Whole { name, args, result }
        }
        None => StraceLine::Torn { name, args: rest },
    })
}

/// What is behind the letters of others that tore a line: the rest of the arguments, and the result.
pub(super) fn continued(line: &[u8]) -> Option<(&[u8], CallResult<'_>)> {
    let line = line.trim_ascii();
    let (args, result) = split_arguments(line)?;
    Some((args, result_of(result)?))
}

/// The name of a call: letters, digits, `_`.
fn call_name(name: &[u8]) -> Option<&[u8]> {
    const MOST: usize = 64;
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'?';
    let fits = !name.is_empty() && name.len() <= MOST && name.iter().all(letter) && !name[0].is_ascii_digit();
    fits.then_some(name)
}

fn end_of_thread(body: &[u8]) -> Option<StraceLine<'_>> {
    let inner = body.strip_prefix(b"+++ ")?.strip_suffix(b"+++")?.trim_ascii_end();
    if let Some(status) = inner.strip_prefix(b"exited with ") {
        let (status, _) = number(status)?;
        return Some(StraceLine::Ended((status as u32 & 0xff) << 8));
    }
    if let Some(tid) = inner.strip_prefix(b"superseded by execve in pid ") {
        return Some(StraceLine::Superseded(u32::try_from(number(tid)?.0).ok()?));
    }
    let signal = inner.strip_prefix(b"killed by ")?;
    let (signal, dumped) = match signal.strip_suffix(b" (core dumped)") {
        Some(signal) => (signal, 0x80),
        None => (signal, 0),
    };
    Some(StraceLine::Ended(super::number::signal(signal)? | dumped))
}

/// `--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=7, si_uid=0} ---`; strace before 4.7 has other words behind the name.
fn signal_line(body: &[u8]) -> Option<StraceLine<'_>> {
    let inner = body.strip_prefix(b"--- ")?.strip_suffix(b" ---")?;
    if inner.starts_with(b"stopped by ") {
        return Some(StraceLine::Stopped);
    }
    Some(StraceLine::Signal(inner))
}

fn remark(body: &[u8]) -> Option<StraceRemark> {
    let own = body.strip_prefix(b"strace: ");
    let text = own.unwrap_or(body);
    let process = text.strip_prefix(b"Process ").and_then(number);
    if let Some((tid, b" attached")) = process {
        return Some(u32::try_from(tid).map_or(StraceRemark::Other, StraceRemark::Attached));
    }
    if let Some((_, b" detached" | b" suspended" | b" resumed")) = process {
        return Some(StraceRemark::Other);
    }
    if let Some(rest) = text.strip_prefix(b"[ Process PID=") {
        let bits = number(rest).and_then(|(tid, rest)| {
            let mode = rest.strip_prefix(b" runs in ")?.strip_suffix(b" mode. ]")?;
            let bits = match mode {
                b"32 bit" => 32,
                b"64 bit" => 64,
                b"x32" => X32,
                _ => return None,
            };
            Some(StraceRemark::Bits(u32::try_from(tid).ok()?, bits))
        });
        return Some(bits.unwrap_or(StraceRemark::Other));
    }
    own.map(|_| StraceRemark::Other)
}

/// Splits behind the parenthesis that ends the arguments.
fn split_arguments(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = end_of_arguments(text)?;
    Some((text[..end].trim_ascii(), &text[end + 1..]))
}

/// Where the parenthesis is that ends the arguments which `text` begins with.
fn end_of_arguments(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b')' if depth == 0 => return Some(at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {
                at = skip(text, at)?;
                continue;
            }
        }
        at += 1;
    }
    None
}

/// Where what begins at `at` ends: a string, a comment, the file of a descriptor, or one letter.
fn skip(text: &[u8], at: usize) -> Option<usize> {
    match text[at] {
        b'"' => Some(at + 2 + end_of_string(&text[at + 1..])?),
        b'/' if text[at..].starts_with(b"/*") => Some(at + 2 + find(&text[at + 2..], b"*/")? + 2),
        b'<' if opens_file(text, at) => Some(at + 1 + end_of_file(&text[at + 1..])?),
        _ => Some(at + 1),
    }
}

/// Whether the `<` at `at` begins the file of a descriptor: a number or `AT_FDCWD` is before it.
fn opens_file(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| text[before]);
    before.is_some_and(|byte| byte.is_ascii_digit() || byte == b'D') && text.get(at + 1) != Some(&b'<')
}

/// Where the `>` of a descriptor's file is, and one more: `->` is part of a name, and `<char 1:3>` is inside.
fn end_of_file(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if at > 0 && text[at - 1] == b'-' => {}
            b'>' if depth == 0 => return Some(at + 1),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits the inside of parentheses at its commas.
pub(super) fn split_list(text: &[u8]) -> Vec<&[u8]> {
    /// Most parts: no list of strace's has as many.
    const MOST: usize = 4096;
    let (mut parts, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    while let Some(&byte) = text.get(at) {
        match byte {
            b',' if depth == 0 => {
                if parts.len() + 1 >= MOST {
                    break;
                }
                parts.push(text[start..at].trim_ascii());
                start = at + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {
                at = skip(text, at).unwrap_or(text.len());
                continue;
            }
        }
        at += 1;
    }
    let last = text[start.min(text.len())..].trim_ascii();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// Reads ` = 3</etc/passwd> <0.000012>`.
fn result_of(text: &[u8]) -> Option<CallResult<'_>> {
    let text = text.trim_ascii_start().strip_prefix(b"=")?;
    if !text.starts_with(b" ") {
        return None;
    }
    let mut text = text.trim_ascii();
    let mut result = CallResult::default();
    if let Some((before, dur)) = duration(text) {
        (text, result.dur) = (before, Some(dur));
    }
    // strace's own changes to a call
    for mark in [&b"(INJECTED)"[..], b"(DELAYED)", b"(INJECTED: args)", b"(INJECTED: retval)"] {
        text = text.strip_suffix(mark).unwrap_or(text).trim_ascii_end();
    }
    let end = end_of_value(text);
    let (value, rest) = (&text[..end], text[end..].trim_ascii());
    if let Some(inner) = rest.strip_suffix(b")")
        && let Some(open) = inner.iter().position(|byte| *byte == b'(')
    {
        result.after = &inner[open + 1..];
    }
    let word = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
    let errno = || std::str::from_utf8(word).ok().and_then(errno_number);
    if value == b"?" {
        result.errno = errno().filter(|errno| systape_abi::is_restart(*errno)).unwrap_or(0);
        return Some(result);
    }
    let (digits, _) = super::text::with_file(value);
    let ret = super::number::signed(digits)?;
    result.value = value;
    result.outer = outer(rest);
    result.ret = Some(ret);
    if ret == -1 {
        result.errno = errno().or_else(|| unnamed_errno(rest)).unwrap_or(0);
    }
    Some(result)
}

/// `/* 17 in strace's PID NS */`.
fn outer(rest: &[u8]) -> Option<u32> {
    let (tid, after) = number(rest.strip_prefix(b"/* ")?)?;
    after.starts_with(b" in strace's PID NS").then(|| u32::try_from(tid).ok())?
}

/// Where the value of a result ends: behind a number and the file of a descriptor.
fn end_of_value(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        // a space, but not in the name of a file
        if byte == b' ' {
            break;
        }
        at = skip(text, at).unwrap_or(text.len());
    }
    at.min(text.len())
}

/// `(errno 524)`, `ERRNO_524 (...)`: an error without a name.
fn unnamed_errno(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"(errno ").or_else(|| text.strip_prefix(b"ERRNO_"))?;
    u16::try_from(number(digits)?.0).ok().filter(|errno| (1..4096).contains(errno))
}

/// Splits ` <0.000012>` from the end of a result.
fn duration(text: &[u8]) -> Option<(&[u8], u64)> {
    let inner = text.strip_suffix(b">")?;
    let open = inner.iter().rposition(|byte| *byte == b'<')?;
    let before = inner[..open].strip_suffix(b" ").or_else(|| (open == 0).then_some(&inner[..0]))?;
    let (seconds, rest) = number(&inner[open + 1..])?;
    let digits = rest.strip_prefix(b".").unwrap_or_default();
    let fits = rest.is_empty() || (!digits.is_empty() && digits.len() <= 9);
    if !fits || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fraction = if digits.is_empty() { 0 } else { number(digits)?.0 * 10_u64.pow(9 - digits.len() as u32) };
    let dur = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    (dur < LONGEST).then(|| (before.trim_ascii_end(), dur))
}

/// Where `what` is in `text`.
pub(super) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> (String, Vec<String>, CallResult<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match parse(line.as_bytes()) {
            Some(StraceLine::Whole { name, args, result }) => {
                (text(name), split_list(args).into_iter().map(text).collect(), result)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_call_is_split_at_its_own_commas_and_parentheses() {
        let (name, args, result) = whole(r#"openat(AT_FDCWD</a,)b>, "x\"),(", O_RDONLY) = 3</c)> <0.000021>"#);
        assert_eq!(name, "openat");
        assert_eq!(args, ["AT_FDCWD</a,)b>", r#""x\"),(""#, "O_RDONLY"]);
        assert_eq!((result.ret, result.errno, result.value, result.dur), (Some(3), 0, &b"3</c)>"[..], Some(21_000)));
        let (_, args, result) = whole("poll([{fd=3, events=POLLIN}], 1, -1) = 1 ([{fd=3, revents=POLLIN}])");
        assert_eq!(args, ["[{fd=3, events=POLLIN}]", "1", "-1"]);
        assert_eq!((result.after, result.dur), (&b"[{fd=3, revents=POLLIN}]"[..], None));
        let (_, args, result) = whole("execve(\"/bin/ls\", [\"ls\"], 0x7ffe /* 35 vars, (x) */) = 0 <0.1>");
        assert_eq!((args[2].as_str(), result.dur), ("0x7ffe /* 35 vars, (x) */", Some(100_000_000)));
        let (_, args, _) = whole("write(4<TCP:[1.1.1.1:1->2.2.2.2:2]>, \"a\", 1) = 1");
        assert_eq!(args[0], "4<TCP:[1.1.1.1:1->2.2.2.2:2]>");
        let (_, args, _) =
            whole("ioctl(1</dev/null<char 1:3>>, TCGETS, 0x7f) = -1 ENOTTY (Inappropriate ioctl for device)");
        assert_eq!(args[0], "1</dev/null<char 1:3>>");
        assert_eq!(whole("getpid() = 7").1, Vec::<String>::new());
    }

    #[test]
    fn each_form_of_a_result_is_read() {
        let of = |line: &str| {
            let text = format!("f() {line}");
            let (_, _, result) = whole(&text);
            (result.ret, result.errno)
        };
        assert_eq!(of("= -1 ENOENT (No such file or directory)"), (Some(-1), 2));
        assert_eq!(of("= -1 EAGAIN (Resource temporarily unavailable) (INJECTED)"), (Some(-1), 11));
        assert_eq!(of("= -1 (errno 524)"), (Some(-1), 524));
        assert_eq!(of("= ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.5>"), (None, 512));
        assert_eq!(of("= ?"), (None, 0));
        assert_eq!(of("= ? <unavailable>"), (None, 0));
        assert_eq!(of("= 0x7facd4d8d000"), (Some(0x7fac_d4d8_d000), 0));
        assert_eq!(of("= 0 (Timeout)"), (Some(0), 0));
        assert_eq!(of("= 18<sh>"), (Some(18), 0));
        assert_eq!(of("= 0x8002 (flags O_RDWR|O_LARGEFILE)"), (Some(0x8002), 0));
        assert_eq!(of("= -1"), (Some(-1), 0));
        assert!(matches!(parse(b"f() ="), Some(StraceLine::Torn { .. })));
        assert!(matches!(parse(b"f() = x"), Some(StraceLine::Torn { .. })));
    }

    #[test]
    fn lines_without_a_call_are_known() {
        assert_eq!(parse(b"+++ exited with 3 +++"), Some(StraceLine::Ended(0x300)));
        assert_eq!(parse(b"+++ killed by SIGSEGV (core dumped) +++"), Some(StraceLine::Ended(0x8b)));
        assert_eq!(parse(b"+++ superseded by execve in pid 17 +++"), Some(StraceLine::Superseded(17)));
        let taken = StraceLine::Signal(b"SIGCHLD {si_signo=SIGCHLD}");
        assert_eq!(parse(b"--- SIGCHLD {si_signo=SIGCHLD} ---"), Some(taken));
        assert_eq!(parse(b"--- stopped by SIGSTOP ---"), Some(StraceLine::Stopped));
        assert_eq!(parse(b"--- ---"), None);
        let remark = |line| match parse(line) {
            Some(StraceLine::Remark(remark)) => remark,
            other => panic!("{other:?}"),
        };
        assert_eq!(remark(b"strace: Process 17 attached"), StraceRemark::Attached(17));
        assert_eq!(remark(b"[ Process PID=17 runs in 32 bit mode. ]"), StraceRemark::Bits(17, 32));
        assert_eq!(remark(b"strace: [ Process PID=17 runs in x32 mode. ]"), StraceRemark::Bits(17, X32));
        assert_eq!(remark(b"strace: something"), StraceRemark::Other);
        assert_eq!(parse(b"> /usr/lib/libc.so.6(read+0x1) [0x2]"), Some(StraceLine::Frame));
        assert_eq!(parse(b"hello, world"), None);
        assert_eq!(parse(b"1f() = 2"), None);
    }

    #[test]
    fn a_call_in_two_lines_is_read() {
        assert_eq!(parse(b"read(0,  <unfinished ...>"), Some(StraceLine::Begun { name: b"read", args: b"0," }));
        assert_eq!(parse(b"vfork( <unfinished ...>"), Some(StraceLine::Begun { name: b"vfork", args: b"" }));
        let resumed = parse(b"<... read resumed>\"a\", 5) = 1 <0.5>");
        let Some(StraceLine::Resumed { name: b"read", args: b"\"a\", 5", result }) = resumed else {
            panic!("{resumed:?}")
        };
        assert_eq!((result.ret, result.dur), (Some(1), Some(500_000_000)));
        let killed = parse(b"<... read resumed> <unfinished ...>) = ?");
        assert!(matches!(killed, Some(StraceLine::Resumed { args: b"", .. })), "{killed:?}");
        let (args, result) = continued(b") = 4 <0.000010>").unwrap();
        assert_eq!((args, result.ret), (&b""[..], Some(4)));
    }
}

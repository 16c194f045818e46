//! Structures that arguments point to, as strace prints them.
//!
//! Names of flags are written in full in either [`FlagStyle`]. What is not printed although strace prints it: dates beside times of
//! files, and times of a child in `waitid`'s `siginfo_t`, which the kernel does not write there.

use std::fmt::Write as _;

use crate::desc::epoll_event_bytes;
use crate::flags::{CLD, EPOLL, FILE_TYPE, POLL, PTRACE_EVENT, SA, STATX, STATX_ATTR};
use crate::uapi::compared;
use crate::{Abi, FlagSet, FlagStyle, Struct, signal_name};

/// `si_code` of a child that ended by itself.
const CLD_EXITED: i64 = compared!(general::CLD_EXITED = 1);

/// Writes a descriptor, with the name of its file if that is known.
pub type FdText<'a> = dyn FnMut(&mut String, i32) + 'a;

/// A structure that was copied from the memory of a program.
#[derive(Clone, Copy, Debug)]
pub struct StructBytes<'a> {
    /// What it is.
    pub what: Struct,
    /// The ABI of the call that it is an argument of.
    pub abi: Abi,
    /// The call's arguments.
    pub args: &'a [u64; 6],
    /// The bytes of its elements.
    pub bytes: &'a [u8],
    /// Whether these are all elements.
    pub whole: bool,
}

impl StructBytes<'_> {
    /// The value that the call was given, or that it wrote; `None`: there are too few bytes.
    ///
    /// ```
    /// use systape_abi::{Abi, Struct, StructBytes};
    /// let bytes = [3, 0, 0, 0, 1, 0, 0, 0];
    /// let polled = StructBytes { what: Struct::PollFds, abi: Abi::X86_64, args: &[0; 6], bytes: &bytes, whole: true };
    /// let text = polled.text(&mut |out, fd| out.push_str(&format!("{fd}</dev/null>")));
    /// assert_eq!(text.as_deref(), Some("[{fd=3</dev/null>, events=POLLIN}]"));
    /// ```
    pub fn text(&self, fd: &mut FdText<'_>) -> Option<String> {
        let mut out = String::new();
        match self.what {
            Struct::PollFds => self.list(&mut out, 8, |out, bytes| pollfd(out, bytes, false, fd))?,
            Struct::EpollEvents => {
                self.list(&mut out, epoll_event_bytes(self.abi).into(), |out, bytes| epoll_event(out, bytes, self.abi))?
            }
            Struct::EpollEvent => epoll_event(&mut out, self.bytes, self.abi)?,
            Struct::FdSet => self.fd_set(&mut out, fd),
            Struct::TwoTimespecs | Struct::TwoTimespecs32 | Struct::TwoTimevals => self.file_times(&mut out)?,
            Struct::Timespec | Struct::Timespec32 | Struct::Timeval => self.time(&mut out, 0)?,
            Struct::Itimerval | Struct::Itimerspec | Struct::Itimerspec32 => {
                out.push_str("{it_interval=");
                self.time(&mut out, 0)?;
                out.push_str(", it_value=");
                self.time(&mut out, 1)?;
                out.push('}');
            }
            Struct::Rlimit | Struct::Rlimit64 => self.rlimit(&mut out)?,
            Struct::Sigaction => self.sigaction(&mut out)?,
            Struct::Stat | Struct::Stat64 => self.stat(&mut out)?,
            Struct::Statx => self.statx(&mut out)?,
            Struct::SigSet => sigset(&mut out, long(self.bytes, 0, 8)? as u64),
            Struct::WaitStatus => wait_status(&mut out, long(self.bytes, 0, 4)? as u32),
            Struct::SigInfo => self.siginfo(&mut out)?,
            Struct::Futex => self.list(&mut out, 4, |out, word| {
                let _ = write!(out, "{}", long(word, 0, 4)? as u32);
                Some(())
            })?,
        }
        Some(out)
    }

    /// What the call left in a structure that it was given: revents of descriptors, the ready ones of a set, the time left.
    pub fn text_after(&self, fd: &mut FdText<'_>) -> Option<String> {
        let mut out = String::new();
        match self.what {
            Struct::PollFds => self.list(&mut out, 8, |out, bytes| pollfd(out, bytes, true, fd))?,
            Struct::FdSet => self.fd_set(&mut out, fd),
            _ => self.time(&mut out, 0)?,
        }
        Some(out)
    }

    /// `[…, …]`, with `...` if it is not whole.
    fn list(&self, out: &mut String, size: usize, mut one: impl FnMut(&mut String, &[u8]) -> Option<()>) -> Option<()> {
        out.push('[');
        for (at, element) in self.bytes.chunks(size).enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            one(out, element)?;
        }
        out.push_str(if self.whole { "]" } else { ", ...]" });
        Some(())
    }

    /// `[3 4]`: the descriptors below the first argument whose bit is set.
    fn fd_set(&self, out: &mut String, fd: &mut FdText<'_>) {
        let below = usize::try_from(self.args[0] as i32).unwrap_or(0);
        let is_set = |bit: &usize| self.bytes[bit / 8] >> (bit % 8) & 1 != 0;
        out.push('[');
        for (at, bit) in (0..below.min(8 * self.bytes.len())).filter(is_set).enumerate() {
            if at > 0 {
                out.push(' ');
            }
            fd(out, bit as i32);
        }
        out.push_str(if self.whole { "]" } else { " ...]" });
    }

    /// Seconds, and nanoseconds or microseconds.
    fn parts(&self, at: usize) -> Option<(i64, i64, &'static str)> {
        let compat = matches!(self.abi, Abi::I386 | Abi::X32);
        let (half, name) = match self.what {
            Struct::Timespec32 | Struct::TwoTimespecs32 | Struct::Itimerspec32 => (4, "nsec"),
            Struct::Timespec | Struct::TwoTimespecs | Struct::Itimerspec => (8, "nsec"),
            _ if self.abi == Abi::I386 => (4, "usec"),
            _ => (8, "usec"),
        };
        let part = long(self.bytes, 2 * half * at + half, half)?;
        // the kernel ignores the upper half, which the C library of a 32-bit ABI may leave as it was (get_timespec64, kernel/time/time.c)
        let part = if compat && half == 8 && name == "nsec" { part & 0xffff_ffff } else { part };
        Some((long(self.bytes, 2 * half * at, half)?, part, name))
    }

    fn time(&self, out: &mut String, at: usize) -> Option<()> {
        let (seconds, part, name) = self.parts(at)?;
        let _ = write!(out, "{{tv_sec={seconds}, tv_{name}={part}}}");
        Some(())
    }

    fn file_times(&self, out: &mut String) -> Option<()> {
        for at in 0..2 {
            out.push_str(if at == 0 { "[" } else { ", " });
            match self.parts(at)? {
                // include/linux/stat.h
                (_, 0x3fff_ffff, "nsec") => out.push_str("UTIME_NOW"),
                (_, 0x3fff_fffe, "nsec") => out.push_str("UTIME_OMIT"),
                _ => self.time(out, at)?,
            }
        }
        out.push(']');
        Some(())
    }

    fn rlimit(&self, out: &mut String) -> Option<()> {
        let (half, none, infinity) = match (self.what, self.abi) {
            (Struct::Rlimit, Abi::I386) => (4, u64::from(u32::MAX), "RLIM_INFINITY"),
            _ => (8, u64::MAX, "RLIM64_INFINITY"),
        };
        for (at, label) in [(0, "{rlim_cur="), (half, ", rlim_max=")] {
            out.push_str(label);
            let limit = long(self.bytes, at, half)? as u64 & none;
            let _ = match limit {
                _ if limit == none => write!(out, "{infinity}"),
                1025.. if limit.is_multiple_of(1024) => write!(out, "{}*1024", limit / 1024),
                _ => write!(out, "{limit}"),
            };
        }
        out.push('}');
        Some(())
    }

    /// `struct sigaction` of the kernel: handler, flags, restorer, mask.
    fn sigaction(&self, out: &mut String) -> Option<()> {
        let word = if self.abi == Abi::I386 { 4 } else { 8 };
        let field = |at: usize| {
            Some(long(self.bytes, at * word, word)? as u64 & if word == 4 { 0xffff_ffff } else { u64::MAX })
        };
        let (handler, flags, restorer) = (field(0)?, field(1)?, field(2)?);
        let _ = match handler {
            0 => write!(out, "{{sa_handler=SIG_DFL, sa_mask="),
            1 => write!(out, "{{sa_handler=SIG_IGN, sa_mask="),
            _ => write!(out, "{{sa_handler={handler:#x}, sa_mask="),
        };
        sigset(out, long(self.bytes, 3 * word, 8)? as u64);
        out.push_str(", sa_flags=");
        SA.write_text(flags, FlagStyle::FULL, out);
        if SA.bits.iter().any(|(bit, name)| *name == "SA_RESTORER" && flags & bit != 0) {
            let _ = write!(out, ", sa_restorer={restorer:#x}");
        }
        out.push('}');
        Some(())
    }

    fn stat(&self, out: &mut String) -> Option<()> {
        let number = |at, size| long(self.bytes, at, size);
        let (mode, device, size) = match (self.what, self.abi) {
            (Struct::Stat64, _) => (number(16, 4)?, number(32, 8)?, number(44, 8)?),
            (_, Abi::I386) => (number(8, 2)?, number(16, 4)?, number(20, 4)? & 0xffff_ffff),
            (_, Abi::Aarch64) => (number(16, 4)?, number(32, 8)?, number(48, 8)?),
            _ => (number(24, 4)?, number(40, 8)?, number(48, 8)?),
        };
        out.push_str("{st_mode=");
        file_mode(out, mode as u32 & 0xffff);
        let _ = match mode & 0o170_000 {
            // of a device its number, as the kernel packs it (new_encode_dev, include/linux/kdev_t.h)
            0o20_000 | 0o60_000 => {
                let (device, high) = (device as u64, (device as u64) >> 32 & 0xffff_f000);
                let (major, minor) = (device >> 8 & 0xfff | high, device & 0xff | device >> 12 & 0xf_ff00);
                write!(out, ", st_rdev=makedev({major:#x}, {minor:#x})")
            }
            _ => write!(out, ", st_size={size}"),
        };
        out.push_str(", ...}");
        Some(())
    }

    fn statx(&self, out: &mut String) -> Option<()> {
        out.push_str("{stx_mask=");
        names(out, &STATX, long(self.bytes, 0, 4)? as u32);
        out.push_str(", stx_attributes=");
        STATX_ATTR.write_text(long(self.bytes, 8, 8)? as u64, FlagStyle::FULL, out);
        out.push_str(", stx_mode=");
        file_mode(out, long(self.bytes, 28, 2)? as u32 & 0xffff);
        let _ = write!(out, ", stx_size={}, ...}}", long(self.bytes, 40, 8)? as u64);
        Some(())
    }

    /// `si_signo` is 0 when there was no child to report.
    fn siginfo(&self, out: &mut String) -> Option<()> {
        let from = if self.abi == Abi::I386 { 12 } else { 16 };
        let int = |at| long(self.bytes, at, 4);
        let (signo, errno, code) = (int(0)?, int(4)?, int(8)?);
        if signo == 0 {
            out.push_str("{}");
            return Some(());
        }
        let _ = write!(out, "{{si_signo={}, ", signal_name(signo as u32));
        if errno != 0 {
            let _ = write!(out, "si_errno={errno}, ");
        }
        out.push_str("si_code=");
        names(out, &CLD, code as u32);
        let status = int(from + 8)?;
        let _ = write!(out, ", si_pid={}, si_uid={}, si_status=", int(from)?, int(from + 4)? as u32);
        let exited = code == CLD_EXITED;
        let _ = if exited { write!(out, "{status}}}") } else { write!(out, "{}}}", signal_name(status as u32)) };
        Some(())
    }
}

/// A signed number of 2, 4 or 8 bytes.
fn long(bytes: &[u8], at: usize, size: usize) -> Option<i64> {
    let bytes = bytes.get(at..)?;
    Some(match size {
        2 => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
        4 => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
        _ => i64::from_le_bytes(*bytes.first_chunk()?),
    })
}

fn names(out: &mut String, set: &'static FlagSet, value: u32) {
    set.write_text(u64::from(value), FlagStyle::FULL, out);
}

fn pollfd(out: &mut String, bytes: &[u8], after: bool, name: &mut FdText<'_>) -> Option<()> {
    let fd = long(bytes, 0, 4)? as i32;
    let (label, events) = if after { ("revents", long(bytes, 6, 2)?) } else { ("events", long(bytes, 4, 2)?) };
    if fd < 0 {
        // the kernel ignores it
        let _ = write!(out, "{{fd={fd}}}");
        return Some(());
    }
    out.push_str("{fd=");
    name(out, fd);
    let _ = write!(out, ", {label}=");
    names(out, &POLL, u32::from(events as u16));
    out.push('}');
    Some(())
}

/// The data is whatever the program wants: a descriptor, an index, a pointer.
fn epoll_event(out: &mut String, bytes: &[u8], abi: Abi) -> Option<()> {
    out.push_str("{events=");
    names(out, &EPOLL, long(bytes, 0, 4)? as u32);
    // behind the data's own alignment, where it is not packed
    let data = long(bytes, usize::from(epoll_event_bytes(abi)) - 8, 8)? as u64;
    let _ = write!(out, ", data={{u32={}, u64={data}}}}}", data as u32);
    Some(())
}

/// `S_IFDIR|S_ISVTX|0777`.
fn file_mode(out: &mut String, mode: u32) {
    match mode & 0o170_000 {
        0 => {}
        kind => {
            names(out, &FILE_TYPE, kind);
            out.push('|');
        }
    }
    for (bit, name) in [(0o4000, "S_ISUID|"), (0o2000, "S_ISGID|"), (0o1000, "S_ISVTX|")] {
        if mode & bit != 0 {
            out.push_str(name);
        }
    }
    let _ = write!(out, "0{:02o}", mode & 0o777);
}

/// `[INT RT_5]`, or `~[KILL]` of one that has most signals. strace calls the first two real-time signals so too.
fn sigset(out: &mut String, mask: u64) {
    let inverted = mask.count_ones() > 64 * 2 / 3;
    let shown = if inverted { !mask } else { mask };
    out.push_str(if inverted { "~[" } else { "[" });
    for (at, bit) in (0..64).filter(|bit| shown >> bit & 1 != 0).enumerate() {
        if at > 0 {
            out.push(' ');
        }
        match bit + 1 {
            32 => out.push_str("RTMIN"),
            signo => out.push_str(signal_name(signo).trim_start_matches("SIG")),
        }
    }
    out.push(']');
}

/// As the macros of wait(2) take it apart.
fn wait_status(out: &mut String, status: u32) {
    let signo = status & 0x7f;
    let stop = status >> 8 & 0xff;
    let event = status >> 16;
    let _ = match (status, signo) {
        (0xffff, _) => write!(out, "[{{WIFCONTINUED(s)}}]"),
        (_, 0) => write!(out, "[{{WIFEXITED(s) && WEXITSTATUS(s) == {stop}}}"),
        (_, 0x7f) => {
            let traced = if stop & 0x80 != 0 { " | 0x80" } else { "" };
            write!(out, "[{{WIFSTOPPED(s) && WSTOPSIG(s) == {}{traced}}}", signal_name(stop & 0x7f))
        }
        _ => {
            let core = if status & 0x80 != 0 { " && WCOREDUMP(s)" } else { "" };
            write!(out, "[{{WIFSIGNALED(s) && WTERMSIG(s) == {}{core}}}", signal_name(signo))
        }
    };
    if status == 0xffff {
        return;
    }
    if event != 0 {
        out.push_str(" | ");
        names(out, &PTRACE_EVENT, event);
        out.push_str(" << 16");
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(what: Struct, abi: Abi, bytes: &[u8]) -> Option<String> {
        let args = [70, 0, 0, 0, 0, 0];
        StructBytes { what, abi, args: &args, bytes, whole: true }.text(&mut |out, fd| out.push_str(&fd.to_string()))
    }

    fn x86_64(what: Struct, bytes: &[u8]) -> String {
        text(what, Abi::X86_64, bytes).expect("enough bytes")
    }

    fn words<const N: usize>(words: [i64; N]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn ints<const N: usize>(ints: [i32; N]) -> Vec<u8> {
        ints.iter().flat_map(|int| int.to_le_bytes()).collect()
    }

    #[test]
    fn times() {
        assert_eq!(x86_64(Struct::Timespec, &words([1, -5])), "{tv_sec=1, tv_nsec=-5}");
        assert_eq!(x86_64(Struct::Timeval, &words([1, 5])), "{tv_sec=1, tv_usec=5}");
        assert_eq!(text(Struct::Timeval, Abi::I386, &ints([-1, 5])).as_deref(), Some("{tv_sec=-1, tv_usec=5}"));
        assert_eq!(text(Struct::Timespec32, Abi::I386, &ints([1, 5])).as_deref(), Some("{tv_sec=1, tv_nsec=5}"));
        // what is above 32 bits of nanoseconds is not read of a 32-bit program
        let garbage = words([1, 0x7_0000_0005]);
        assert_eq!(text(Struct::Timespec, Abi::I386, &garbage).as_deref(), Some("{tv_sec=1, tv_nsec=5}"));
        assert_eq!(x86_64(Struct::Timespec, &garbage), "{tv_sec=1, tv_nsec=30064771077}");
        let file = words([7, 8, 0, 0x3fff_ffff]);
        assert_eq!(x86_64(Struct::TwoTimespecs, &file), "[{tv_sec=7, tv_nsec=8}, UTIME_NOW]");
        assert_eq!(x86_64(Struct::TwoTimevals, &words([7, 8, 0, 0])), "[{tv_sec=7, tv_usec=8}, {tv_sec=0, tv_usec=0}]");
    }

    #[test]
    fn sets() {
        let set = |mask: u64| x86_64(Struct::SigSet, &mask.to_le_bytes());
        assert_eq!([set(0), set(1 << 9 | 1 << 36), set(!0)], ["[]", "[USR1 RT_5]", "~[]"]);
        assert_eq!(set(!(3 << 31)), "~[RTMIN RT_1]");
        assert_eq!(set(0xffff_ffff_ffff).chars().next(), Some('~'));
        assert!(set(0x3_ffff_ffff).starts_with("[HUP INT"));
        // bits from the first argument on are not of the set
        assert_eq!(x86_64(Struct::FdSet, &words([1 << 3 | 1 << 60, 0x7e])), "[3 60 65 66 67 68 69]");
    }

    #[test]
    fn statuses() {
        let status = |status: i32| x86_64(Struct::WaitStatus, &status.to_le_bytes());
        assert_eq!(status(0x300), "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]");
        assert_eq!(status(0x89), "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL && WCOREDUMP(s)}]");
        assert_eq!(status(0x137f), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]");
        assert_eq!(status(0x857f), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTRAP | 0x80}]");
        assert_eq!(status(0x4_057f), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTRAP} | PTRACE_EVENT_EXEC << 16]");
        assert_eq!(status(0xffff), "[{WIFCONTINUED(s)}]");
        let info = ints([17, 0, 1, 0, 99, 5, 7]);
        assert_eq!(
            x86_64(Struct::SigInfo, &info),
            "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=99, si_uid=5, si_status=7}"
        );
        let compat = ints([17, 0, 2, 99, 5, 9]);
        assert!(text(Struct::SigInfo, Abi::I386, &compat).unwrap().ends_with("si_uid=5, si_status=SIGKILL}"));
        assert_eq!(x86_64(Struct::SigInfo, &[0; 28]), "{}");
    }

    #[test]
    fn polled() {
        let fds = [[3, 0, 0, 0, 3, 0, 1, 0], [255, 255, 255, 255, 1, 0, 0, 0], [4, 0, 0, 0, 4, 0x40, 0, 0]].concat();
        let polled = StructBytes { what: Struct::PollFds, abi: Abi::X86_64, args: &[0; 6], bytes: &fds, whole: false };
        let mut fd = |out: &mut String, fd: i32| out.push_str(&format!("{fd}<x>"));
        let text = polled.text(&mut fd).unwrap();
        assert_eq!(text, "[{fd=3<x>, events=POLLIN|POLLPRI}, {fd=-1}, {fd=4<x>, events=POLLOUT|0x4000}, ...]");
        let after = StructBytes { bytes: &fds[..8], whole: true, ..polled };
        assert_eq!(after.text_after(&mut fd).unwrap(), "[{fd=3<x>, revents=POLLIN}]");
        assert_eq!(x86_64(Struct::PollFds, &[]), "[]");
        assert_eq!(x86_64(Struct::Futex, &ints([2, 77])), "[2, 77]");
        let event = [&[1, 0, 0, 0x80][..], &words([0x1_0000_0003])].concat();
        assert_eq!(x86_64(Struct::EpollEvents, &event), "[{events=EPOLLIN|EPOLLET, data={u32=3, u64=4294967299}}]");
    }

    #[test]
    fn limits_and_timers() {
        assert_eq!(x86_64(Struct::Rlimit64, &words([4096, -1])), "{rlim_cur=4*1024, rlim_max=RLIM64_INFINITY}");
        assert_eq!(x86_64(Struct::Rlimit, &words([1024, 1025])), "{rlim_cur=1024, rlim_max=1025}");
        let compat = text(Struct::Rlimit, Abi::I386, &ints([i32::MIN, -1]));
        assert_eq!(compat.as_deref(), Some("{rlim_cur=2097152*1024, rlim_max=RLIM_INFINITY}"));
        let timer = "{it_interval={tv_sec=1, tv_usec=2}, it_value={tv_sec=3, tv_usec=4}}";
        assert_eq!(x86_64(Struct::Itimerval, &words([1, 2, 3, 4])), timer);
        assert_eq!(text(Struct::Itimerval, Abi::I386, &ints([1, 2, 3, 4])).as_deref(), Some(timer));
        assert_eq!(text(Struct::Itimerspec32, Abi::I386, &ints([1, 2, 3, 4])).unwrap(), timer.replace("usec", "nsec"));
        assert_eq!(x86_64(Struct::Itimerspec, &words([1, 2, 3, 4])), timer.replace("usec", "nsec"));
    }

    #[test]
    fn handlers() {
        let action = words([0x1234, 0x1400_0000, 0x55, 1]);
        let shown = "{sa_handler=0x1234, sa_mask=[HUP], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x55}";
        assert_eq!(x86_64(Struct::Sigaction, &action), shown);
        assert_eq!(x86_64(Struct::Sigaction, &words([1, 0, 9, 0])), "{sa_handler=SIG_IGN, sa_mask=[], sa_flags=0}");
        let compat = text(Struct::Sigaction, Abi::I386, &ints([0x1234, 0x1400_0000, 0x55, 1, 0]));
        assert_eq!(compat.as_deref(), Some(shown));
        let resethand = text(Struct::Sigaction, Abi::I386, &ints([0, i32::MIN, 0, 0, 0]));
        assert_eq!(resethand.as_deref(), Some("{sa_handler=SIG_DFL, sa_mask=[], sa_flags=SA_RESETHAND}"));
    }

    /// What arm64 lays out in another way, and what it does not.
    #[test]
    fn arm64() {
        let arm = |what, bytes: &[u8]| text(what, Abi::Aarch64, bytes).unwrap();
        let events =
            [&[1, 0, 0, 0x80, 9, 9, 9, 9][..], &words([0x1_0000_0003]), &[4, 0, 0, 0, 9, 9, 9, 9], &words([5])]
                .concat();
        let shown = "{events=EPOLLIN|EPOLLET, data={u32=3, u64=4294967299}}";
        assert_eq!(arm(Struct::EpollEvents, &events), format!("[{shown}, {{events=EPOLLOUT, data={{u32=5, u64=5}}}}]"));
        assert_eq!(arm(Struct::EpollEvent, &events[..16]), shown);
        let stat = [&words([1, 2])[..], &ints([0o100_644, 1, 0, 0]), &words([0, 0, 1221])].concat();
        assert_eq!(arm(Struct::Stat, &stat), "{st_mode=S_IFREG|0644, st_size=1221, ...}");
        let device = [&words([1, 2])[..], &ints([0o20_000, 1, 0, 0]), &words([0x1_03, 0, 0])].concat();
        assert_eq!(arm(Struct::Stat, &device), "{st_mode=S_IFCHR|000, st_rdev=makedev(0x1, 0x3), ...}");
        let action = words([0x1234, 0x1400_0000, 0x55, 1]);
        assert_eq!(arm(Struct::Sigaction, &action), text(Struct::Sigaction, Abi::X86_64, &action).unwrap());
    }

    /// Places in structures of the machine that this runs on are those of its C library.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[test]
    fn structures_are_the_machines() {
        use std::mem::{offset_of, size_of};
        let abi = if cfg!(target_arch = "aarch64") { Abi::Aarch64 } else { Abi::X86_64 };
        let size = |what: Struct| usize::from(what.layout(abi).unwrap().size);
        assert_eq!(size(Struct::EpollEvent), size_of::<libc::epoll_event>());
        assert_eq!(size(Struct::Stat), offset_of!(libc::stat, st_size) + 8);
        let mut bytes = vec![0; size(Struct::Stat)];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(libc::stat, st_mode), &0o20_644_u32.to_le_bytes());
        put(offset_of!(libc::stat, st_rdev), &0x1_03_u64.to_le_bytes());
        assert_eq!(text(Struct::Stat, abi, &bytes).unwrap(), "{st_mode=S_IFCHR|0644, st_rdev=makedev(0x1, 0x3), ...}");
        let mut event = vec![0; size(Struct::EpollEvent)];
        event[offset_of!(libc::epoll_event, u64)] = 7;
        assert_eq!(text(Struct::EpollEvent, abi, &event).unwrap(), "{events=0, data={u32=7, u64=7}}");
    }

    #[test]
    fn files() {
        let stat = |mode: i64, device, size| x86_64(Struct::Stat, &words([1, 2, 3, mode, 0, device, size]));
        assert_eq!(stat(0o100_644, 0, 1221), "{st_mode=S_IFREG|0644, st_size=1221, ...}");
        assert_eq!(stat(0o41_777, 0, 4096), "{st_mode=S_IFDIR|S_ISVTX|0777, st_size=4096, ...}");
        assert_eq!(stat(0o20_000, 0x1_03, 0), "{st_mode=S_IFCHR|000, st_rdev=makedev(0x1, 0x3), ...}");
        let old = [ints([1, 2]), vec![0xa4, 0x81, 1, 0, 0, 0, 0, 0], ints([0, -1])].concat();
        assert_eq!(text(Struct::Stat, Abi::I386, &old).unwrap(), "{st_mode=S_IFREG|0644, st_size=4294967295, ...}");
        let new = ints([1, 0, 0, 2, 0o100_644, 1, 0, 0, 0, 0, 0, 1221, 1]);
        assert_eq!(text(Struct::Stat64, Abi::I386, &new).unwrap(), "{st_mode=S_IFREG|0644, st_size=4294968517, ...}");
        let mut statx = words([0x17ff, 0x1000, 0, 0, 0, 1221]);
        statx[28..30].copy_from_slice(&0o100_644_u16.to_le_bytes());
        let shown = "{stx_mask=STATX_BASIC_STATS|STATX_MNT_ID, stx_attributes=STATX_ATTR_AUTOMOUNT, \
                     stx_mode=S_IFREG|0644, stx_size=1221, ...}";
        assert_eq!(x86_64(Struct::Statx, &statx).replace("STATX_ALL", "STATX_BASIC_STATS"), shown);
        assert!(text(Struct::Statx, Abi::I386, &statx[..40]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_printed_or_too_few(bytes: Vec<u8>, n: u64) {
            use Struct::*;
            let all = [Timespec, Timespec32, Timeval, TwoTimespecs, TwoTimespecs32, TwoTimevals, SigSet, WaitStatus, SigInfo, PollFds, FdSet, EpollEvent, EpollEvents, Itimerval, Itimerspec, Itimerspec32, Rlimit, Rlimit64, Sigaction, Stat, Stat64, Statx];
            for (what, abi) in all.into_iter().flat_map(|what| [Abi::I386, Abi::Aarch64].map(|abi| (what, abi))) {
                let value = StructBytes { what, abi, args: &[n; 6], bytes: &bytes, whole: false };
                let _ = value.text(&mut |_, _| ());
            }
        }
    }
}

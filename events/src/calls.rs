//! The syscalls on a tape: names, arguments, and how to print them.
//!
//! Argument names are those of the recording kernel if the tape has them, else systape-abi's. The *kind* of an argument
//! always comes from systape-abi. A number unknown to both is `sys_451` with `arg0` to `arg5`.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use systape_abi::{Abi, ArgKind, ContentIo, Effect, NO_CALL, RetKind, Selection, SyscallDesc};
use systape_format::model::{Call, Session, SyscallFormat};

/// The error of a call on a descriptor that is not open, or not for what was asked: it is on no file.
pub const EBADF: u16 = 9;

/// The calls that `record -e` selected, all of them without it; None = its words are not understood.
#[inline]
pub fn recorded(session: &Session) -> Option<Selection> {
    let words: Vec<_> = session.selection.iter().map(|words| String::from_utf8_lossy(words)).collect();
    Selection::parse(&words).ok()
}

/// One argument of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArgInfo {
    /// Name of the argument, `dfd`.
    pub name: String,
    /// `dfd: `, ready to print.
    pub label: String,
    /// Kind of the argument.
    pub kind: ArgKind,
}

/// One syscall.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallInfo {
    /// The call.
    pub call: Call,
    /// ABI of the call.
    pub abi: Abi,
    /// `openat`, `sys_451`.
    pub name: String,
    /// Name with the ABI: `openat`; `read@i386` when it is not the machine's own ABI.
    pub long_name: String,
    /// Arguments of the call, at most six.
    pub args: Vec<ArgInfo>,
    /// Kind of its return value; None for an unknown call.
    pub ret: RetKind,
    /// The arguments of the tape's `fd` and `fd2` columns.
    pub fd_args: [Option<usize>; 2],
    /// Effect of the call on the contents of files.
    pub io: ContentIo,
    /// Effect of the call on the state that resolves names.
    pub effect: Effect,
    /// unlink, unlinkat: they take away the name of a file.
    pub removes: bool,
    /// exit and exit_group: they never return, so they have no duration.
    pub is_exit: bool,
    /// fork, clone, wait: a returned pid is printed with a name.
    pub returns_pid: bool,
    /// fork, vfork, clone: that pid is a new one.
    pub makes_task: bool,
}

/// The calls of a tape, made on first use.
#[derive(Debug)]
pub struct CallBook<'a> {
    formats: FxHashMap<Call, &'a SyscallFormat>,
    native: Abi,
    known: Mutex<FxHashMap<Call, Arc<CallInfo>>>,
}

impl<'a> CallBook<'a> {
    /// The calls of the tape of `session`.
    #[inline]
    pub fn new(session: &'a Session) -> Self {
        let formats = session.syscalls.iter().map(|f| (Call { abi: f.abi, nr: f.nr }, f)).collect();
        Self { formats, native: native_abi(&session.machine), known: Mutex::default() }
    }

    /// Facts about `call`.
    #[inline]
    pub fn get(&self, call: Call) -> Arc<CallInfo> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(call).or_insert_with(|| Arc::new(self.make(call))))
    }

    fn make(&self, call: Call) -> CallInfo {
        let abi = Abi::from_raw(call.abi);
        let desc = systape_abi::describe(abi, call.nr);
        let format = self.formats.get(&call).copied();
        let name = match (systape_abi::name(abi, call.nr), format) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Some(format)) if !format.name.is_empty() => Cow::Owned(printable(&format.name)),
            _ => systape_abi::display_name(abi, call.nr),
        };
        let long_name =
            if abi == self.native || call.nr == NO_CALL { name.to_string() } else { format!("{name}@{abi}") };
        let args = arguments(desc, format);
        let effect = desc.map_or(Effect::None, |d| d.effect);
        CallInfo {
            call,
            abi,
            long_name,
            ret: desc.map_or(RetKind::Int, |d| d.ret),
            fd_args: desc.map_or([None; 2], |d| d.fd_args()),
            io: desc.map_or(ContentIo::None, SyscallDesc::io),
            effect,
            removes: desc.is_some_and(SyscallDesc::removes),
            is_exit: effect == Effect::Exit,
            returns_pid: desc.is_some_and(|d| d.ret == RetKind::Pid),
            makes_task: effect == Effect::Clone,
            name: name.into_owned(),
            args,
        }
    }
}

/// The ABI of 64-bit programs on `machine` (uname -m); of a tape [`Session::machine`].
pub fn native_abi(machine: &str) -> Abi {
    match machine {
        "x86_64" | "" => Abi::X86_64,
        "aarch64" => Abi::Aarch64,
        "i386" | "i486" | "i586" | "i686" => Abi::I386,
        _ => Abi::Unknown,
    }
}

/// A tape's names are untrusted bytes: keeps the characters that a terminal prints as one word.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

fn arguments(desc: Option<&SyscallDesc>, format: Option<&SyscallFormat>) -> Vec<ArgInfo> {
    let described = desc.map_or(0, |d| d.args.len());
    let count = match format {
        Some(format) if !format.arg_names.is_empty() || desc.is_some() => format.arg_names.len().max(described),
        _ if desc.is_some() => described,
        _ => 6,
    };
    let arg = |i: usize| {
        let known = desc.and_then(|d| d.args.get(i));
        let recorded = format.and_then(|f| f.arg_names.get(i)).filter(|n| !n.is_empty());
        let name = match (recorded, known) {
            (Some(name), _) => printable(name),
            (None, Some(known)) => known.name.to_owned(),
            (None, None) => format!("arg{i}"),
        };
        let kind = known.map_or_else(|| kind_of(&name, format.and_then(|f| f.arg_types.get(i))), |k| k.kind);
        ArgInfo { label: format!("{name}: "), name, kind }
    };
    (0..count.min(6)).map(arg).collect()
}

/// A guess from the kernel's C type, for calls newer than systape-abi.
fn kind_of(name: &str, c_type: Option<&String>) -> ArgKind {
    match c_type.map(|t| t.trim()) {
        Some(t) if t.contains('*') => ArgKind::Ptr,
        Some("int") if name == "fd" => ArgKind::Fd,
        Some("int") if name == "dfd" => ArgKind::DirFd,
        Some("int") => ArgKind::Int,
        Some("unsigned int" | "u32") => ArgKind::UInt,
        Some("size_t") => ArgKind::Size,
        Some("loff_t" | "off_t") => ArgKind::Offset,
        Some("umode_t") => ArgKind::Mode,
        Some(_) => ArgKind::Long,
        None => ArgKind::Hex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(formats: Vec<SyscallFormat>) -> Session {
        Session { machine: "x86_64".into(), syscalls: formats, ..Session::default() }
    }

    #[test]
    fn names_come_from_the_recording_kernel_first() {
        let tape = session(vec![
            SyscallFormat {
                abi: 1,
                nr: 0,
                name: "read".into(),
                arg_names: vec!["filedes".into(), "to".into(), "n".into()],
                arg_types: vec![],
            },
            SyscallFormat {
                abi: 1,
                nr: 9000,
                name: "new\x1bcall".into(),
                arg_names: vec!["fd".into(), "p".into()],
                arg_types: vec!["int".into(), "char *".into()],
            },
        ]);
        let book = CallBook::new(&tape);
        let read = book.get(Call { abi: 1, nr: 0 });
        assert_eq!(read.args.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["filedes", "to", "n"]);
        assert!(matches!(read.args[0].kind, ArgKind::Fd));
        let new = book.get(Call { abi: 1, nr: 9000 });
        assert_eq!(new.name, "new_call");
        assert!(matches!((new.args[0].kind, new.args[1].kind), (ArgKind::Fd, ArgKind::Ptr)));
    }

    #[test]
    fn unknown_numbers_have_six_arguments() {
        let tape = session(vec![]);
        let book = CallBook::new(&tape);
        let call = book.get(Call { abi: 1, nr: 4510 });
        assert_eq!((call.name.as_str(), call.args.len(), call.args[5].label.as_str()), ("sys_4510", 6, "arg5: "));
        assert_eq!(book.get(Call { abi: 2, nr: 3 }).long_name, "read@i386");
        assert_eq!(book.get(Call { abi: 3, nr: NO_CALL }).long_name, "sys_-1");
    }
}

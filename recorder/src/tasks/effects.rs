//! Effects of a returned call on its process's fds, from plain values: the call, its arguments, its result and the
//! names that the kernel side read.

use std::rc::Rc;

use systape_abi::descriptors::{Descriptors, Entered, Made, SocketUse};
use systape_abi::uapi::SECCOMP_IOCTL_NOTIF_ADDFD;
use systape_abi::{Abi, ArgKind, ContentIo, Effect, Struct, SyscallDesc, describe};
use systape_format::model::CallState;

use crate::descriptors::names::Name;
use crate::tasks::{ClosingFd, TaskId, Tasks};

/// Facts about a call for the encoder, looked up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallFacts {
    /// The arguments whose files the tape names.
    pub fd_args: [Option<u8>; 2],
    /// Whether it opens a file: the tape names what was opened, in the place of the second descriptor, which it has not.
    pub opens: bool,
    /// Whether it reads what is in a file, a socket and the like.
    pub reads: bool,
    /// Whether it takes away the name of a file: the tape names that too, where the kernel told it.
    pub removes: bool,
    /// The argument with an array of descriptors to poll: the tape names the files of the first two.
    pub polls: Option<u8>,
    /// Effect of the call on fds.
    pub effect: Effect,
    /// What it does to descriptors.
    descriptors: Descriptors,
    /// Number of its arguments.
    pub args: u8,
    /// The argument with argv, of an exec.
    pub argv_arg: Option<u8>,
    /// Number of the call in the segment being built: (segment, index).
    pub interned: (u32, u32),
}

impl CallFacts {
    /// The facts about call `nr` of an ABI as the wire has it.
    pub(crate) fn new(abi: u8, nr: u32) -> Self {
        let abi = Abi::from_raw(abi);
        let desc = describe(abi, nr);
        let args = desc.map_or(&[][..], |d| d.args);
        let position = |want: fn(&ArgKind) -> bool| args.iter().position(|a| want(&a.kind));
        Self {
            fd_args: desc.map_or([None; 2], SyscallDesc::fd_args).map(|arg| arg.map(|arg| arg as u8)),
            opens: desc.is_some_and(|desc| desc.io() == ContentIo::Open),
            reads: desc.is_some_and(|desc| desc.io().reads().is_some()),
            removes: desc.is_some_and(SyscallDesc::removes),
            polls: position(|k| matches!(k, ArgKind::InOut(Struct::PollFds))).map(|i| i as u8),
            descriptors: Descriptors::of(abi, nr),
            effect: desc.map_or(Effect::None, |d| d.effect),
            args: if desc.is_some() { args.len() as u8 } else { 6 },
            argv_arg: position(|k| matches!(k, ArgKind::Argv)).map(|i| i as u8),
            interned: (u32::MAX, 0),
        }
    }

    /// What a success with these values did to descriptors; whether exec closes new ones is not always known.
    pub(crate) fn made(&self, args: &[u64; 6], ret: i64, pair: Option<[i32; 2]>) -> Made {
        self.descriptors.returned(args, ret, pair, None)
    }

    /// What it does with the socket that it names, with these arguments.
    pub(crate) fn socket(&self, args: &[u64; 6]) -> SocketUse {
        self.descriptors.socket(args)
    }
}

/// A call that returned.
#[derive(Debug)]
pub(crate) struct Returned<'a> {
    /// Time of the return.
    pub end: u64,
    /// Return value, not negative.
    pub ret: i64,
    /// Arguments of the call.
    pub args: &'a [u64; 6],
    /// Name of the new fd (or the first of two, or the cwd), if the kernel side could read it.
    pub name0: Option<Rc<Name>>,
    /// Name of the second of two.
    pub name1: Option<Rc<Name>>,
    /// The two fds of a pair.
    pub pair: Option<[i32; 2]>,
    /// Contents of `open_how`.
    pub open_how_flags: Option<u64>,
}

/// errno and return value as the tape has them.
pub(crate) fn split_ret(ret: i64, state: CallState) -> (u16, i64) {
    match ret {
        _ if !state.returned() => (0, 0),
        -4095..=-1 => (ret.unsigned_abs() as u16, 0),
        _ => (0, ret),
    }
}

/// Whether an entered call puts a file into another, unnamed process (SECCOMP_IOCTL_NOTIF_ADDFD): the only record of an
/// ioctl with such an effect.
pub(crate) fn is_injection(nr: u32, args: &[u64; 3]) -> bool {
    const IOCTL: u32 = 16;
    nr == IOCTL && args[1] as u32 == SECCOMP_IOCTL_NOTIF_ADDFD
}

/// A call that closes fds was entered at `ts`.
pub(crate) fn entered(tasks: &mut Tasks, task: TaskId, effect: Effect, ts: u64, args: &[u64; 3]) {
    // what the call before left belongs to that one
    tasks.get_mut(task).closing = None;
    let target = match Descriptors::entered(effect, args) {
        Entered::Nothing => return,
        Entered::Closes(fd) => fd,
        Entered::Range { first, last, marks, unshares } => {
            if unshares {
                tasks.unshare_files(task);
            }
            if marks {
                tasks.files_mut(task).set_cloexec_range(first, last);
            } else {
                tasks.files_mut(task).close_range(ts, first, last);
            }
            return;
        }
    };
    let name = tasks.files(task).at(ts, target).cloned();
    tasks.get_mut(task).closing = Some(ClosingFd { ts, fd: target, name });
    tasks.files_mut(task).close(ts, target);
}

/// A call failed. dup2 and dup3 close their target last, so it is open as before; close has closed it nevertheless.
pub(crate) fn failed(tasks: &mut Tasks, task: TaskId, info: &CallFacts) {
    if matches!(info.effect, Effect::Dup2 | Effect::Dup3)
        && let Some(closing) = tasks.get_mut(task).closing.take()
    {
        tasks.files_mut(task).undo_close(closing.ts, closing.fd);
    }
}

/// A call succeeded.
pub(crate) fn returned(tasks: &mut Tasks, task: TaskId, info: &CallFacts, r: &mut Returned<'_>) {
    match info.descriptors.returned(r.args, r.ret, r.pair, r.open_how_flags) {
        Made::Nothing => {}
        Made::One { fd, cloexec } => {
            if info.descriptors.ring && !tasks.follows_rings {
                tasks.files_mut(task).make_opaque(r.end);
            }
            set(tasks, task, r.end, fd, r.name0.take(), cloexec);
        }
        Made::Two { fds: [first, second], cloexec } => {
            set(tasks, task, r.end, first, r.name0.take(), cloexec);
            set(tasks, task, r.end, second, r.name1.take(), cloexec);
        }
        Made::Marked { fd, cloexec } => tasks.files_mut(task).set_cloexec(fd, cloexec),
        Made::Unshared => tasks.unshare_files(task),
    }
    if matches!(info.effect, Effect::Chdir | Effect::Fchdir) {
        let known = r.name0.take().filter(|_| !tasks.files(task).is_blind(r.end));
        tasks.set_cwd(task, known);
    }
}

fn set(tasks: &mut Tasks, task: TaskId, ts: u64, fd: i32, name: Option<Rc<Name>>, cloexec: bool) {
    let files = tasks.files_mut(task);
    match name {
        Some(name) => files.set(ts, fd, name, cloexec),
        None => files.close(ts, fd),
    }
}

/// File of an fd argument when the call was entered, passed to `found`; None = not known.
pub(crate) fn resolve<R>(
    tasks: &Tasks,
    task: TaskId,
    info: &CallFacts,
    start: u64,
    fd: i32,
    found: impl FnOnce(&Rc<Name>) -> R,
) -> Option<R> {
    if matches!(info.effect, Effect::Close | Effect::Dup2 | Effect::Dup3)
        && let Some(closing) = tasks.get(task).closing.as_ref().filter(|c| c.fd == fd)
    {
        return closing.name.as_ref().map(|name| name.at(start, found));
    }
    if info.effect == Effect::Close {
        return None;
    }
    tasks.files(task).at(start, fd).map(|name| name.at(start, found))
}

/// A call returned that may have changed what its socket is called, and the kernel side had no room for the new name.
pub(crate) fn unnamed(tasks: &Tasks, task: TaskId, end: u64, args: &[u64; 6]) {
    let file = tasks.files(task).at(end, args[0] as i32);
    file.and_then(|file| file.names.as_ref()).into_iter().for_each(|names| names.forget(end));
}

/// A call has been stored: what it closed at its enter is not valid for the calls after it.
pub(crate) fn ended(tasks: &mut Tasks, task: TaskId, info: &CallFacts) {
    if matches!(info.effect, Effect::Close | Effect::Dup2 | Effect::Dup3) {
        tasks.get_mut(task).closing = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_abi::uapi::{CLOSE_RANGE_CLOEXEC, F_SETFD, O_CLOEXEC};
    use systape_bpf::wire::{Ident, Task};

    fn call(name: &str) -> CallFacts {
        CallFacts::new(1, systape_abi::number(Abi::X86_64, name).unwrap())
    }

    fn setup() -> (Tasks, TaskId) {
        let mut tasks = Tasks::default();
        let id = Ident { tid: 7, pid: 7, start: 1, leader_start: 1 };
        let task = tasks.learn(&Task { id, ..Task::default() });
        (tasks, task)
    }

    fn ok<'a>(end: u64, ret: i64, args: &'a [u64; 6], name: &str) -> Returned<'a> {
        Returned { end, ret, args, name0: Some(Name::new(name.into())), name1: None, pair: None, open_how_flags: None }
    }

    fn at(tasks: &Tasks, task: TaskId, ts: u64, fd: i32) -> Option<String> {
        tasks.files(task).at(ts, fd).map(|n| String::from_utf8_lossy(&n.bytes).into_owned())
    }

    #[test]
    fn open_then_close_by_name() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0, 0, O_CLOEXEC.into(), 0, 0, 0], "/a"));
        assert_eq!(at(&tasks, task, 10, 3).unwrap(), "/a");
        entered(&mut tasks, task, Effect::Close, 20, &[3, 0, 0]);
        assert_eq!(at(&tasks, task, 21, 3), None);
        // the row of close itself still knows what it closed
        assert_eq!(resolve(&tasks, task, &call("close"), 22, 3, Rc::clone).unwrap().bytes, b"/a");
        ended(&mut tasks, task, &call("close"));
        assert!(resolve(&tasks, task, &call("close"), 30, 3, Rc::clone).is_none());
    }

    #[test]
    fn a_new_fd_without_a_name_replaces_what_was_there() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        let mut nameless = Returned { name0: None, ..ok(20, 3, &[0; 6], "") };
        returned(&mut tasks, task, &call("openat"), &mut nameless);
        assert_eq!(at(&tasks, task, 21, 3), None);
    }

    #[test]
    fn dup2_onto_itself_changes_nothing() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        entered(&mut tasks, task, Effect::Dup2, 20, &[3, 3, 0]);
        assert_eq!(at(&tasks, task, 21, 3).unwrap(), "/a");
    }

    /// File of `fd` for a call's row.
    fn seen(tasks: &Tasks, task: TaskId, name: &str, start: u64, fd: i32) -> Option<String> {
        resolve(tasks, task, &call(name), start, fd, |n| String::from_utf8_lossy(&n.bytes).into_owned())
    }

    #[test]
    fn the_calls_after_a_dup2_do_not_see_what_it_closed() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        returned(&mut tasks, task, &call("openat"), &mut ok(11, 4, &[0; 6], "/b"));
        returned(&mut tasks, task, &call("dup2"), &mut ok(12, 30, &[3, 30, 0, 0, 0, 0], "/a"));
        entered(&mut tasks, task, Effect::Dup2, 20, &[4, 30, 0]);
        assert_eq!(seen(&tasks, task, "dup2", 20, 30).unwrap(), "/a");
        returned(&mut tasks, task, &call("dup2"), &mut ok(22, 30, &[4, 30, 0, 0, 0, 0], "/b"));
        ended(&mut tasks, task, &call("dup2"));
        for name in ["dup2", "dup3"] {
            entered(&mut tasks, task, call(name).effect, 30, &[30, 30, 0]);
            assert_eq!(seen(&tasks, task, name, 30, 30).unwrap(), "/b", "{name}");
            ended(&mut tasks, task, &call(name));
        }
        // 31 is not open: the call fails, and no close is undone
        entered(&mut tasks, task, Effect::Dup2, 40, &[31, 31, 0]);
        assert_eq!(seen(&tasks, task, "dup2", 40, 31), None);
        failed(&mut tasks, task, &call("dup2"));
        ended(&mut tasks, task, &call("dup2"));
        assert_eq!(at(&tasks, task, 50, 30).unwrap(), "/b");
    }

    #[test]
    fn a_call_without_a_record_leaves_nothing_behind() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        returned(&mut tasks, task, &call("openat"), &mut ok(11, 4, &[0; 6], "/b"));
        // its exit was lost
        entered(&mut tasks, task, Effect::Dup2, 20, &[4, 3, 0]);
        entered(&mut tasks, task, Effect::Dup2, 30, &[3, 3, 0]);
        assert_eq!(seen(&tasks, task, "dup2", 30, 3), None, "nobody knows whether it is /a or /b");
    }

    #[test]
    fn a_dup2_that_fails_leaves_its_target_open() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        entered(&mut tasks, task, Effect::Dup2, 20, &[777, 3, 0]);
        assert_eq!(at(&tasks, task, 21, 3), None);
        failed(&mut tasks, task, &call("dup2"));
        assert_eq!(at(&tasks, task, 30, 3).unwrap(), "/a");
    }

    #[test]
    fn exec_closes_what_is_marked() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0, 0, O_CLOEXEC.into(), 0, 0, 0], "/c"));
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 4, &[0; 6], "/k"));
        returned(&mut tasks, task, &call("fcntl"), &mut ok(11, 0, &[4, F_SETFD.into(), 0, 0, 0, 0], ""));
        returned(&mut tasks, task, &call("dup"), &mut ok(12, 5, &[3, 0, 0, 0, 0, 0], "/c"));
        let mut how = Returned { open_how_flags: Some(0), ..ok(13, 6, &[0; 6], "/h") };
        returned(&mut tasks, task, &call("openat2"), &mut how);
        tasks.files_mut(task).exec(20);
        let open: Vec<_> = tasks.files(task).open().iter().map(|(fd, ..)| *fd).collect();
        assert_eq!(open, [4, 5, 6]);
    }

    #[test]
    fn close_range_closes_marks_or_unshares() {
        let (mut tasks, task) = setup();
        for fd in 3..8 {
            returned(&mut tasks, task, &call("openat"), &mut ok(10, fd, &[0; 6], "/a"));
        }
        entered(&mut tasks, task, Effect::CloseRange, 20, &[5, u64::from(u32::MAX), 0]);
        assert!(at(&tasks, task, 21, 4).is_some() && at(&tasks, task, 21, 5).is_none());
        entered(&mut tasks, task, Effect::CloseRange, 22, &[3, 3, CLOSE_RANGE_CLOEXEC.into()]);
        assert!(at(&tasks, task, 23, 3).is_some());
        tasks.files_mut(task).exec(24);
        assert!(at(&tasks, task, 25, 3).is_none() && at(&tasks, task, 25, 4).is_some());
    }

    #[test]
    fn io_uring_makes_the_table_unknown() {
        let (mut tasks, task) = setup();
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        returned(&mut tasks, task, &call("io_uring_setup"), &mut ok(20, 4, &[0; 6], "anon_inode:[io_uring]"));
        assert_eq!(at(&tasks, task, 15, 3).unwrap(), "/a");
        assert_eq!(at(&tasks, task, 21, 3), None);
        let (mut tasks, task) = setup();
        tasks.follows_rings = true;
        returned(&mut tasks, task, &call("openat"), &mut ok(10, 3, &[0; 6], "/a"));
        returned(&mut tasks, task, &call("io_uring_setup"), &mut ok(20, 4, &[0; 6], "anon_inode:[io_uring]"));
        assert_eq!(at(&tasks, task, 21, 3).unwrap(), "/a");
    }

    #[test]
    fn pairs() {
        let (mut tasks, task) = setup();
        let mut pair = Returned {
            name1: Some(Name::new(b"pipe:[9]".into())),
            pair: Some([3, 4]),
            ..ok(10, 0, &[0; 6], "pipe:[9]")
        };
        returned(&mut tasks, task, &call("pipe2"), &mut pair);
        assert_eq!(at(&tasks, task, 11, 4).unwrap(), "pipe:[9]");
    }
}

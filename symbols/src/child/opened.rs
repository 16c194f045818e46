//! Files that the child has opened for it.
//!
//! It can open nothing itself. A separate debug file is asked for at the other end of the socket ([`open`]). Libraries
//! that open by a path do not know that: the kernel sends a signal instead of opening, and its handler ([`answer_traps`])
//! gives them the descriptor that /proc/self/fd/N names, or asks as well.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::socket;
use crate::wire::{self, MessageOut};

/// The current directory is [`DESCRIPTORS`].
static AMONG_THEM: AtomicBool = AtomicBool::new(false);
/// Where the kernel has this process's descriptors, as files.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Goes to the descriptors, whose names are then found without the right to search the root directory: that of a container may be its
/// owner's alone.
pub(super) fn stay_among_descriptors() {
    AMONG_THEM.store(std::env::set_current_dir(DESCRIPTORS).is_ok(), Ordering::Relaxed);
}

/// A path of the open file.
pub(super) fn path_of(file: &File) -> String {
    let number = file.as_raw_fd();
    if AMONG_THEM.load(Ordering::Relaxed) { number.to_string() } else { format!("{DESCRIPTORS}/{number}") }
}

/// The file of a path, for reading; None = there is none, or it is not for the child.
pub(super) fn open(path: &Path) -> Option<File> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
    ask(&socket, path.as_os_str().as_bytes())
}

fn ask(socket: &UnixStream, path: &[u8]) -> Option<File> {
    if path.len() > wire::LONGEST_STRING {
        return None;
    }
    let mut want = MessageOut::new(wire::WANT);
    want.bytes(path);
    socket::send(socket, &want.0, &[], &socket::for_ever).ok()?;
    let (_, fds) = socket::receive(socket, wire::LONGEST_REQUEST, &socket::for_ever).ok()??;
    fds.into_iter().next().map(File::from)
}

/// Has traps of open(2) and openat(2) answered here.
///
/// # Errors
/// The handler is refused, which should never happen.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn answer_traps() -> std::io::Result<()> {
    // SAFETY: a zeroed sigaction is one; the handler has the type that SA_SIGINFO asks for, and what it does is said there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        super::check(libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()))
    }
}

/// Runs in the place of the call, which is one of a thread of this process and interrupts nothing: it may do what the caller of an open may.
/// Allocators open files of /proc with their locks held, so that no memory is asked for before these are refused.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a ucontext, which is the handler's until it returns.
    let mut call = TrappedCall(unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext });
    let path = call.path();
    let result = if path == 0 {
        -i64::from(libc::EPERM)
    } else {
        // SAFETY: std and the C library pass strings that end with zero.
        descriptor_of(unsafe { std::ffi::CStr::from_ptr(path as *const libc::c_char) }.to_bytes())
    };
    call.set_result(result);
}

/// The registers of a call that was trapped.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
struct TrappedCall<'a>(&'a mut libc::mcontext_t);

#[cfg(target_arch = "x86_64")]
impl TrappedCall<'_> {
    /// Address of the path that it opens; 0 = it opens none.
    fn path(&self) -> u64 {
        let of = |register: libc::c_int| self.0.gregs[register as usize];
        match of(libc::REG_RAX) {
            libc::SYS_open => of(libc::REG_RDI).cast_unsigned(),
            libc::SYS_openat => of(libc::REG_RSI).cast_unsigned(),
            _ => 0,
        }
    }

    fn set_result(&mut self, result: i64) {
        self.0.gregs[libc::REG_RAX as usize] = result;
    }
}

#[cfg(target_arch = "aarch64")]
impl TrappedCall<'_> {
    /// Address of the path that it opens; 0 = it opens none.
    fn path(&self) -> u64 {
        if self.0.regs[8].cast_signed() == libc::SYS_openat { self.0.regs[1] } else { 0 }
    }

    fn set_result(&mut self, result: i64) {
        self.0.regs[0] = result.cast_unsigned();
    }
}

/// A new descriptor of the file, or minus an error's number.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn descriptor_of(path: &[u8]) -> i64 {
    use std::os::fd::IntoRawFd;

    let inside = path.strip_prefix(DESCRIPTORS.as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
    if let Some(number) = inside.or(Some(path).filter(|path| !path.contains(&b'/'))) {
        let number = std::str::from_utf8(number).ok().and_then(|digits| digits.parse::<i32>().ok());
        // SAFETY: numbers only.
        let new = number.map_or(-1, |number| unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) });
        return if new < 0 { -i64::from(libc::EBADF) } else { i64::from(new) };
    }
    if path.starts_with(b"/proc/") || path.starts_with(b"/sys/") {
        return -i64::from(libc::ENOENT);
    }
    open(Path::new(std::ffi::OsStr::from_bytes(path)))
        .map_or(-i64::from(libc::ENOENT), |file| i64::from(file.into_raw_fd()))
}

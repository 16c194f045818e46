//! What is no regular file is never opened, whoever names it.

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use common::{build_c, instructions, look_up, offsets, resolver, run};
use systape_symbols::open_regular;

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    common::be_the_child();
}

#[test]
fn nothing_but_regular_files() {
    let dir = tempfile::tempdir().unwrap();
    let [fifo, socket] = ["fifo", "socket"].map(|name| dir.path().join(name));
    run("mkfifo", &["fifo"], dir.path());
    let _listener = UnixListener::bind(&socket).unwrap();
    let watch = Watch::of(dir.path());
    for path in [&fifo, &socket, dir.path(), Path::new("/dev/null")] {
        assert!(open_regular(path).unwrap().is_none(), "{}", path.display());
    }
    assert_eq!(watch.opened(), 0);
    // the watch sees an open that does happen
    drop(File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap());
    assert_eq!(watch.opened(), 1);
}

#[test]
fn a_debug_link_to_a_fifo_or_device_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &["-Wl,--build-id=none"]);
    let offsets = offsets(&path, &instructions(&path, &["<outer>"]));
    let in_dir = |program: &str, arguments: &[&str]| run(program, arguments, dir.path());
    in_dir("objcopy", &["--only-keep-debug", "c", "c.debug"]);
    in_dir("strip", &["-s", "c"]);
    in_dir("objcopy", &["--add-gnu-debuglink=c.debug", "c"]);
    let below = dir.path().join(".debug");
    fs::create_dir(&below).unwrap();
    let good = below.join("c.debug");
    fs::rename(dir.path().join("c.debug"), &good).unwrap();
    let named = || look_up(&mut resolver(Vec::new()), &path, &offsets).unwrap().iter().all(|names| !names.is_empty());
    let watch = Watch::of(&below);
    assert!(named() && watch.opened() > 0, "the link is followed, and the watch sees it");
    fs::remove_file(&good).unwrap();
    in_dir("mkfifo", &[".debug/c.debug"]);
    assert!(!named());
    assert_eq!(watch.opened(), 0, "the FIFO was opened");
    // one that reads as another /dev/null, if this user may make devices
    fs::remove_file(&good).unwrap();
    let made = std::process::Command::new("mknod").arg(&good).args(["c", "1", "3"]).status().unwrap();
    if made.success() {
        assert!(!named());
        assert_eq!(watch.opened(), 0, "the device was opened");
    }
}

/// inotify: counts opens of what is in a directory. `O_PATH` opens nothing, and is not among them.
struct Watch(File);

impl Watch {
    fn of(dir: &Path) -> Self {
        use std::os::fd::FromRawFd;
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).unwrap();
        // SAFETY: a new descriptor that nobody else owns; path is a string that ends with zero.
        unsafe {
            let fd = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            assert!(fd >= 0 && libc::inotify_add_watch(fd, path.as_ptr(), libc::IN_OPEN) >= 0);
            Self(File::from_raw_fd(fd))
        }
    }

    /// Opens of files since the last time, not of the directory itself.
    fn opened(&self) -> usize {
        let (mut buf, mut count) = ([0; 4096], 0);
        while let Ok(length) = (&self.0).read(&mut buf) {
            let mut at = 0;
            while at + 16 <= length {
                let word = |i: usize| u32::from_ne_bytes(buf[at + i..at + i + 4].try_into().unwrap());
                count += usize::from(word(4) & libc::IN_ISDIR == 0);
                at += 16 + word(12) as usize;
            }
        }
        count
    }
}

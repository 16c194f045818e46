//! Triggers on what the kernel reports by itself: pressure (/proc/pressure), and a file that appears (inotify). A thread
//! waits for both.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use crossbeam_channel::Sender;

use super::request::FlightCommand;
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::triggers::{Fire, Kind, TriggerSpec};

/// How often the end of the recording is checked, ms.
const TICK: i32 = 500;

#[derive(Debug)]
enum What {
    /// Words of the trigger.
    Pressure(String),
    /// The last part of its path.
    Appears(Vec<u8>),
}

/// Descriptors to wait for, opened while there are rights to.
#[derive(Debug)]
pub(crate) struct Outside(Vec<(usize, File, What)>);

impl Outside {
    /// Opens what the triggers need.
    ///
    /// # Errors
    /// When the kernel does not measure pressure, or a directory is missing.
    pub(crate) fn open(triggers: &[TriggerSpec]) -> Result<Self> {
        let mut all = Vec::new();
        for (number, spec) in triggers.iter().enumerate() {
            let (file, what) = match &spec.kind {
                Kind::Pressure(resource, percent, window) => {
                    let path = format!("/proc/pressure/{}", resource.name());
                    let words = format!("some {} {}", window / 1000 * u64::from(*percent) / 100, window / 1000);
                    let opened = OpenOptions::new().read(true).write(true).open(&path).and_then(|mut file| {
                        file.write_all(format!("{words}\0").as_bytes())?;
                        Ok(file)
                    });
                    let file = opened.with_context(|| format!("--on {}: {path}", spec.text))?;
                    (
                        file,
                        What::Pressure(format!(
                            "{} stalled for more than {percent} % of {} s",
                            resource.name(),
                            *window as f64 / 1e9
                        )),
                    )
                }
                Kind::File(path) => {
                    let path = Path::new(path);
                    let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
                    let directory = path.parent().unwrap_or(Path::new("/"));
                    let file = watch(directory.as_os_str());
                    (file.with_context(|| format!("--on {}: {}", spec.text, directory.display()))?, What::Appears(name))
                }
                _ => continue,
            };
            all.push((number, file, what));
        }
        Ok(Self(all))
    }

    /// Waits in a thread until `stop`; without triggers there is none.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(self, out: Sender<FlightCommand>, stop: Arc<AtomicBool>) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let work = move || {
            while !stop.load(Ordering::Relaxed) {
                for (trigger, what) in self.wait(TICK) {
                    let fire = Fire { trigger, ts: clock::monotonic(), what, value: 0 };
                    if out.send(FlightCommand::Fire(fire)).is_err() {
                        return;
                    }
                }
            }
        };
        thread::Builder::new()
            .name("outside".into())
            .spawn(counted("outside", work))
            .context("cannot start a thread")?;
        Ok(())
    }

    /// The triggers that fire within `tick` ms, by number, with words.
    pub(crate) fn wait(&self, tick: i32) -> Vec<(usize, String)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let poll = |(_, file, what): &(usize, File, What)| libc::pollfd {
            fd: file.as_raw_fd(),
            events: if matches!(what, What::Pressure(_)) { libc::POLLPRI } else { libc::POLLIN },
            revents: 0,
        };
        let mut fds: Vec<libc::pollfd> = self.0.iter().map(poll).collect();
        // SAFETY: fds is a valid array of as many pollfd.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, tick) };
        let mut fired = Vec::new();
        for ((number, file, what), polled) in self.0.iter().zip(&fds) {
            match what {
                What::Pressure(words) if polled.revents & libc::POLLPRI != 0 => fired.push((*number, words.clone())),
                What::Appears(name) if polled.revents & libc::POLLIN != 0 && appeared(file, name) => {
                    fired.push((*number, "appeared".to_owned()));
                }
                _ => {}
            }
        }
        fired
    }
}

/// Watches a directory for new names.
fn watch(directory: &OsStr) -> Result<File> {
    let path = CString::new(directory.as_bytes())?;
    // SAFETY: numbers only; a new descriptor comes back, or -1.
    let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the kernel just gave this descriptor to us.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: the descriptor is open, path NUL-terminated.
    if unsafe { libc::inotify_add_watch(fd, path.as_ptr(), libc::IN_CREATE | libc::IN_MOVED_TO) } < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(file)
}

/// Reads what happened; whether `name` appeared.
fn appeared(mut file: &File, name: &[u8]) -> bool {
    let mut buf = [0_u8; 4096];
    let mut found = false;
    while let Ok(n @ 1..) = file.read(&mut buf) {
        found |= names(&buf[..n]).any(|of| of == name);
    }
    found
}

/// The names in events of inotify(7): each has 16 bytes, the last 4 the length of the padded name behind them.
fn names(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(bytes.get(12..16)?.try_into().ok()?) as usize;
        let name = bytes.get(16..16 + len)?;
        bytes = &bytes[16 + len..];
        name.split(|&b| b == 0).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::parse;

    #[test]
    fn a_file_that_appears_is_seen_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("core.7");
        let outside =
            Outside::open(&[parse("kill").unwrap(), parse(&format!("file:{}", path.display())).unwrap()]).unwrap();
        std::fs::write(temp.path().join("core.70"), "").unwrap();
        assert_eq!(outside.wait(TICK), [], "another file");
        std::fs::write(&path, "").unwrap();
        assert_eq!(outside.wait(TICK), [(1, "appeared".to_owned())]);
        std::fs::write(&path, "again").unwrap();
        std::fs::write(temp.path().join("x"), "").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(outside.wait(TICK), []);
        std::fs::rename(temp.path().join("x"), &path).unwrap();
        assert_eq!(outside.wait(TICK), [(1, "appeared".to_owned())]);
        assert!(Outside::open(&[parse("file:/no/such/dir/x").unwrap()]).is_err());
    }

    #[test]
    fn torn_events_have_no_name() {
        assert_eq!(names(&[0; 15]).count(), 0);
        let mut event = vec![0; 12];
        event.extend(8_u32.to_ne_bytes());
        event.extend(b"ab\0\0\0\0\0\0");
        assert_eq!(names(&event).collect::<Vec<_>>(), [b"ab"]);
        assert_eq!(names(&event[..20]).count(), 0);
    }
}

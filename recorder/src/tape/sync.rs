//! When to sync a tape against a power cut. A process that dies loses nothing it has written. A machine that dies loses
//! what is only in memory, up to half a minute with the kernel's defaults.
//!
//! A thread of its own syncs, so that only the end of the recording waits for it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use crate::own::cpu_time::counted;
use crate::tape::sink::TapeSink;

/// The requested mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Leave it to the kernel.
    No,
    /// Once, when the recording is over.
    End,
    /// Periodically, and at the end.
    Every(Duration),
}

/// Syncs a tape while it is written.
#[derive(Debug)]
pub(crate) struct Syncing {
    file: Option<File>,
    /// It has the tape's name: a file without a name is lost.
    directory: Option<PathBuf>,
    periodic: Option<(Sender<()>, JoinHandle<io::Result<()>>)>,
}

impl Syncing {
    /// Begins for `sink`, at `path`. Sets `failed` when the disk reports a loss.
    ///
    /// # Errors
    /// When no thread or descriptor can be made.
    pub(crate) fn start(policy: Policy, sink: &TapeSink, path: &Path, failed: &Arc<AtomicBool>) -> Result<Self> {
        let file = if policy == Policy::No { None } else { sink.to_sync().context("cannot sync the tape")? };
        let directory = (path != Path::new("-")).then(|| directory_of(path));
        let mut this = Self { file, directory, periodic: None };
        if let (Policy::Every(period), Some(file)) = (policy, &this.file) {
            let (file, directory) = (file.try_clone().context("cannot sync the tape")?, this.directory.clone());
            let (stop, stopped) = bounded::<()>(0);
            let failed = Arc::clone(failed);
            let work = move || {
                let mut synced = sync(&file, directory.as_deref());
                while synced.is_ok() && stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    synced = file.sync_data();
                }
                failed.fetch_or(synced.is_err(), Ordering::AcqRel);
                synced
            };
            let thread = thread::Builder::new()
                .name("sync".into())
                .spawn(counted("sync", work))
                .context("cannot start the sync thread")?;
            this.periodic = Some((stop, thread));
        }
        Ok(this)
    }

    /// Waits until everything written is synced, or gives up.
    ///
    /// # Errors
    /// A power cut may lose the data written before, or some of it is lost already.
    pub(crate) fn finish(self) -> Result<()> {
        if let Some((stop, thread)) = self.periodic {
            drop(stop);
            // an error is told once by the kernel: the sync below would know nothing of it
            thread.join().map_err(|_| anyhow!("the sync thread died"))?.context("cannot sync the tape")?;
        }
        let Some(file) = self.file else { return Ok(()) };
        sync(&file, self.directory.as_deref()).context("cannot sync the tape")
    }
}

fn sync(file: &File, directory: Option<&Path>) -> io::Result<()> {
    file.sync_data()?;
    // one that may be written but not read cannot be opened, and a few file systems cannot sync directories
    let Some(Ok(directory)) = directory.map(File::open) else { return Ok(()) };
    match directory.sync_all() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(()),
        done => done,
    }
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.tape");
        for policy in [Policy::No, Policy::End, Policy::Every(Duration::from_millis(1))] {
            let sink = TapeSink::new(File::create(&path).unwrap()).unwrap();
            let failed = Arc::default();
            let syncing = Syncing::start(policy, &sink, &path, &failed).unwrap();
            thread::sleep(Duration::from_millis(5));
            syncing.finish().unwrap();
            assert!(!failed.load(Ordering::Acquire));
        }
        assert_eq!(directory_of(Path::new("t.tape")), Path::new("."));
        assert_eq!(directory_of(Path::new("a/t.tape")), Path::new("a"));
        assert_eq!(directory_of(Path::new("/t.tape")), Path::new("/"));
    }
}

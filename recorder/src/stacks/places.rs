//! Addresses of processes for the unwinding stage: their code, with the parts that all processes share.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use systape_format::model::Mapping;

use crate::mappings::{Backing, FileNumber, Tracker};

/// An image that is mapped in processes: a file, or the vDSO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ImageId(pub u32);

/// The vDSO; numbers of files never reach it.
const VDSO: ImageId = ImageId(u32::MAX);

/// Time between two removals of ended processes, ns: each one walks all processes.
const SWEEP_NS: u64 = 1_000_000_000;

/// Place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A place at this offset of an image.
    Image {
        /// The image.
        id: ImageId,
        /// Of a file: the file offset.
        offset: u64,
    },
    /// A place in executable memory without a file.
    Jit,
    /// No mapping is known there.
    Nothing,
}

/// Address spaces, and the images in them.
#[derive(Debug)]
pub(crate) struct Places {
    tracker: Tracker,
    mappings: Vec<Option<Arc<Mapping>>>,
    vdso: Arc<Mapping>,
    swept: u64,
}

impl Places {
    /// Makes one that asks `tracker`.
    pub(crate) fn new(tracker: Tracker) -> Self {
        let vdso = Arc::new(tracker.vdso().mapping.clone());
        Self { tracker, mappings: Vec::new(), vdso, swept: 0 }
    }

    /// Adds the mappings since the last time.
    pub(crate) fn read(&mut self) {
        self.tracker.read();
    }

    /// Takes the span of [`Tracker::take_lost_span`].
    pub(crate) fn take_lost_span(&mut self) -> Option<(u64, u64)> {
        self.tracker.take_lost_span()
    }

    /// Applies changes, so that addresses are those of `time`, CLOCK_MONOTONIC ns. Times must not go back.
    pub(crate) fn apply_until(&mut self, time: u64) {
        self.tracker.apply_until(time);
    }

    /// Drops processes that ended before `time`, at the latest a second later.
    pub(crate) fn sweep(&mut self, time: u64) {
        if time.saturating_sub(self.swept) >= SWEEP_NS {
            self.tracker.sweep(time);
            self.swept = time;
        }
    }

    /// Reads a process's mappings if it has no entry.
    pub(crate) fn meet(&mut self, pid: u32) {
        if !self.tracker.is_known(pid) {
            self.tracker.look_again(pid);
        }
    }

    /// Place of `address` in process `pid`.
    pub(crate) fn place(&self, pid: u32, address: u64) -> Place {
        let Some(region) = self.tracker.find(pid, address) else { return Place::Nothing };
        let offset = region.offset(address);
        match region.backing {
            Backing::File(id) => Place::Image { id: ImageId(id.0), offset },
            Backing::Vdso => Place::Image { id: VDSO, offset },
            Backing::Jit => Place::Jit,
            _ => Place::Nothing,
        }
    }

    /// The tape's mapping for an image.
    pub(crate) fn mapping(&mut self, id: ImageId) -> Arc<Mapping> {
        if id == VDSO {
            return Arc::clone(&self.vdso);
        }
        let at = id.0 as usize;
        if self.mappings.len() <= at {
            self.mappings.resize(at + 1, None);
        }
        let known = self.tracker.files().mapping(FileNumber(id.0));
        let slot = &mut self.mappings[at];
        Arc::clone(slot.get_or_insert_with(|| Arc::new(known.cloned().unwrap_or_default())))
    }

    /// The file of an image.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn open(&mut self, id: ImageId) -> Result<Arc<File>, String> {
        if id == VDSO {
            return self.vdso_file();
        }
        let file = self.tracker.files_mut().get(FileNumber(id.0)).map_err(str::to_owned)?;
        file.try_clone().map(Arc::new).map_err(|e| format!("cannot keep it open: {e}"))
    }

    /// The vDSO as a file, made of its bytes.
    fn vdso_file(&self) -> Result<Arc<File>, String> {
        // SAFETY: the name is a C string; a new descriptor comes back, or -1.
        let fd = unsafe { libc::memfd_create(c"vdso".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(format!("no memory for the vDSO's image: {}", std::io::Error::last_os_error()));
        }
        // SAFETY: the kernel just gave this descriptor to us.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(&self.tracker.vdso().image).map_err(|e| format!("no memory for the vDSO's image: {e}"))?;
        Ok(Arc::new(file))
    }

    /// Name of an image.
    pub(crate) fn path(&mut self, id: ImageId) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.mapping(id).path))
    }
}

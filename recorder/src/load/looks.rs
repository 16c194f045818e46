//! Runs the programs that look at all threads (bpf/src/c/looks.bpf.h).

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use systape_bpf::wire::{LookAsk, LookDetail, LookNote, LookRoom, WireValue};

/// Most pieces of a look: 8 million threads.
const PIECES: u32 = 4096;

/// The program that walks.
#[derive(Debug)]
pub(crate) struct LookPrograms {
    walk: OwnedFd,
    copy: Option<OwnedFd>,
    room: MapHandle,
    detail: MapHandle,
}

/// The program that reads what a thread waits for.
#[derive(Debug)]
pub(crate) struct LookCopier {
    /// None: the kernel refused it.
    copy: Option<OwnedFd>,
    detail: MapHandle,
}

/// What a look found.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundThreads {
    /// Threads walked.
    pub threads: u64,
    /// Threads ready to run on the CPU that the walk had.
    pub displaced: u64,
    /// Threads stopped, traced or frozen.
    pub stopped: u64,
    /// Threads that had no room.
    pub over: u64,
    /// Threads in calls that wait for work, by the call's number.
    pub idle: Vec<u32>,
    /// Threads that wait.
    pub notes: Vec<LookNote>,
}

impl LookPrograms {
    pub(super) fn new(walk: OwnedFd, copy: Option<OwnedFd>, room: MapHandle, detail: MapHandle) -> Self {
        Self { walk, copy, room, detail }
    }

    /// The other program, for another thread.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn copier(&self) -> Result<LookCopier> {
        let copy = self.copy.as_ref().map(OwnedFd::try_clone).transpose().context("cannot keep a program")?;
        Ok(LookCopier { copy, detail: MapHandle::try_from(&self.detail)? })
    }

    /// Looks at all threads.
    ///
    /// # Errors
    /// When the kernel does not run the program.
    pub(crate) fn walk(&self) -> Result<FoundThreads> {
        let key = 0_u32.to_ne_bytes();
        self.room.update(&key, LookRoom::default().bytes(), MapFlags::ANY)?;
        let mut first = 1_u64;
        for _ in 0..PIECES {
            run(&self.walk, &first.to_ne_bytes())?;
            first = 0;
            let bytes = self.room.lookup(&key, MapFlags::ANY)?.unwrap_or_default();
            let room = LookRoom::read(&bytes).context("a look has no result")?;
            if room.more == 0 {
                return Ok(look(&room));
            }
        }
        // more threads than any kernel has
        Ok(FoundThreads::default())
    }
}

fn look(room: &LookRoom) -> FoundThreads {
    let noted = (room.noted as usize).min(room.notes.len());
    FoundThreads {
        threads: room.threads,
        displaced: room.displaced,
        stopped: room.stopped,
        over: room.over,
        idle: room.idle.to_vec(),
        notes: room.notes[..noted].to_vec(),
    }
}

impl LookCopier {
    /// Reads what a thread waits for; None: it has left, or the kernel does not run the program.
    pub(crate) fn copy(&self, ask: &LookAsk) -> Option<LookDetail> {
        run(self.copy.as_ref()?, ask.bytes()).ok()?;
        let bytes = self.detail.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        LookDetail::read(&bytes)
    }
}

fn run(program: &OwnedFd, argument: &[u8]) -> Result<()> {
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as _,
        ctx_in: argument.as_ptr().cast(),
        ctx_size_in: argument.len() as u32,
        ..Default::default()
    };
    // SAFETY: the descriptor is open, and the kernel reads the argument and writes into `options` during the call only.
    let refused = unsafe { bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &mut options) };
    if refused < 0 {
        return Err(std::io::Error::from_raw_os_error(-refused)).context("the kernel does not run the program");
    }
    Ok(())
}

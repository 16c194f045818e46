//! Runs the programs that look at all threads (bpf/src/c/looks.bpf.h).

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use libbpf_rs::MapHandle;
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use memmap2::{MmapOptions, MmapRaw};
use systape_bpf::wire::{LookAsk, LookDetail, LookNote, LookRoom, WireValue};

use crate::own::clock;

/// Most pieces of a look: 8 million threads.
const PIECES: u32 = 4096;
/// Longest time between two.
const PAUSE: Duration = Duration::from_millis(5);

/// The program that walks.
#[derive(Debug)]
pub(crate) struct LookPrograms {
    walk: OwnedFd,
    copy: Option<OwnedFd>,
    room: MmapRaw,
    detail: MapHandle,
}

/// The program that reads what a thread waits for.
#[derive(Debug)]
pub(crate) struct LookCopier {
    /// None: the kernel refused it.
    copy: Option<OwnedFd>,
    detail: MmapRaw,
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
    /// `room` and `detail` are the maps that the programs write to.
    ///
    /// # Errors
    /// When a map cannot be mapped.
    pub(super) fn new(walk: OwnedFd, copy: Option<OwnedFd>, room: &MapHandle, detail: MapHandle) -> Result<Self> {
        Ok(Self { walk, copy, room: mapped::<LookRoom>(room)?, detail })
    }

    /// The other program, for another thread.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn copier(&self) -> Result<LookCopier> {
        let copy = self.copy.as_ref().map(OwnedFd::try_clone).transpose().context("cannot keep a program")?;
        Ok(LookCopier { copy, detail: mapped::<LookDetail>(&self.detail)? })
    }

    /// Looks at all threads.
    ///
    /// # Errors
    /// When the kernel does not run the program.
    pub(crate) fn walk(&mut self) -> Result<FoundThreads> {
        let counts = std::mem::offset_of!(LookRoom, notes);
        // SAFETY: the map is of a LookRoom's size, and nobody else writes to it while the program does not run.
        unsafe { self.room.as_mut_ptr().write_bytes(0, counts) };
        for _ in 0..PIECES {
            let began = clock::monotonic();
            run(&self.walk, &[])?;
            let took = clock::monotonic().saturating_sub(began);
            // SAFETY: as above; a LookRoom is made of integers only.
            let room = unsafe { &*self.room.as_ptr().cast::<LookRoom>() };
            if room.more == 0 {
                return Ok(look(room));
            }
            // whoever has to run on this CPU gets it for as long as this had it
            thread::sleep(Duration::from_nanos(took).min(PAUSE));
        }
        // more threads than any kernel has
        Ok(FoundThreads::default())
    }
}

/// Maps the only value of a map.
fn mapped<T>(map: &MapHandle) -> Result<MmapRaw> {
    MmapOptions::new().len(size_of::<T>()).map_raw(map.as_fd().as_raw_fd()).context("cannot map what looks find")
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
    pub(crate) fn copy(&mut self, ask: &LookAsk) -> Option<LookDetail> {
        run(self.copy.as_ref()?, ask.bytes()).ok()?;
        // SAFETY: as in walk; only this thread runs the program.
        Some(unsafe { self.detail.as_ptr().cast::<LookDetail>().read() })
    }
}

fn run(program: &OwnedFd, argument: &[u8]) -> Result<()> {
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as _,
        // without an argument it is to be none
        ctx_in: if argument.is_empty() { ptr::null() } else { argument.as_ptr().cast() },
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

//! Stacks: from what the BPF side sends to frames and names.
//!
//! The stack ring is read by the drain like the others, but its records go another way ([`feed`]): [`unwinding`] turns them into
//! frames in a thread of its own, off the way of the events, and hands them to the encoder, which ties them to their events.
//! [`names`] looks up what the frames are called.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, unbounded};
use systape_symbols::Kallsyms;

use crate::config::Config;
use crate::spaces::{self, Tracker};
use kernel::Kernel;
use names::{Message, Names};
use places::Places;
use unwinding::Unwinding;

pub mod feed;
pub mod kernel;
pub mod names;
pub mod options;
pub mod places;
pub mod taken;
pub mod unwinding;

/// With more processes than this only those of the target are looked at from the start.
const MAX_STRANGERS: usize = 4096;

/// What works on stacks beside the other stages.
#[derive(Debug)]
pub struct Workers {
    /// Makes frames.
    pub unwinding: Unwinding,
    /// Looks up their names; None = not asked for.
    pub names: Option<NameWorker>,
}

/// The thread that looks names up, and its queue.
#[derive(Debug)]
pub struct NameWorker {
    /// The work.
    pub names: Names,
    /// How it is told. The queue has no bound of its own: every place is told once, and how many are is bounded where they are told.
    pub tell: Sender<Message>,
    /// What it was told.
    pub told: Receiver<Message>,
}

/// Allocations of this many bytes go back to the system as soon as they are free.
const RETURNED: libc::c_int = 2 << 20;

/// Buffers of stacks are large and freed by other threads than those that made them. glibc comes to keep such, for ever and for each thread.
fn return_memory() {
    // SAFETY: it changes a number of the allocator, under its own lock.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED);
    }
}

/// The kernel's symbols, on their way: there are some 200,000.
#[derive(Debug)]
pub struct KernelSymbols(Option<JoinHandle<Result<Kallsyms, String>>>);

impl KernelSymbols {
    /// Begins to read them, if the asked-for stacks need them.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub fn begin(config: &Config) -> Result<Self> {
        let wanted = !config.stacks.on.is_empty() && !config.stacks.kernel.is_empty();
        let read = || thread::Builder::new().name("kallsyms".into()).spawn(Kallsyms::read);
        Ok(Self(wanted.then(read).transpose().context("cannot start a thread")?))
    }

    fn end(self, notes: &mut Vec<Vec<u8>>) -> Option<Arc<Kallsyms>> {
        let read = self.0?.join().unwrap_or_else(|_| Err("they could not be read".into()));
        read.map_err(|why| notes.push(format!("frames of the kernel have no names: {why}").into_bytes()))
            .ok()
            .map(Arc::new)
    }
}

/// Makes ready what the asked-for stacks need; None = none were asked for. What cannot be had is noted.
///
/// # Errors
/// When the file for the raw stacks cannot be made.
pub fn start(config: &Config, symbols: KernelSymbols, notes: &mut Vec<Vec<u8>>) -> Result<Option<Workers>> {
    if config.stacks.on.is_empty() {
        return Ok(None);
    }
    return_memory();
    let (mut tracker, missing) = Tracker::open(&spaces::Config::default());
    notes.extend(missing.into_iter().map(String::into_bytes));
    tracker.scan(&already_there(config));
    let kallsyms = symbols.end(notes);
    let places = Places::new(tracker);
    let names = config.symbols.then(|| Names::new(kallsyms.clone())).transpose()?;
    let names = names.map(|names| {
        let (tell, told) = unbounded();
        NameWorker { names, tell, told }
    });
    let keep = config.keep_stack_bytes.then(|| keep_file(config)).transpose()?;
    let tell = names.as_ref().map(|worker| worker.tell.clone());
    Ok(Some(Workers { unwinding: Unwinding::new(places, Kernel::new(kallsyms), tell, keep), names }))
}

/// Processes whose mappings are read at the start. Those of others are read when a stack of theirs is met, if they are many: a target may
/// be sent a signal by anybody.
fn already_there(config: &Config) -> Vec<u32> {
    let pids = spaces::proc_maps::pids();
    if !config.marks_tasks() || pids.len() <= MAX_STRANGERS {
        return pids;
    }
    let of_threads = config.tids.iter().filter_map(|tid| crate::load::process_of(*tid));
    config.pids.iter().copied().chain(of_threads).collect()
}

fn keep_file(config: &Config) -> Result<File> {
    let mut path = config.output.clone().into_os_string();
    path.push(".stacks");
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

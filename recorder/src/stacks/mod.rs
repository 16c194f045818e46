//! Stacks: from what the BPF side sends to frames and names.
//!
//! The stack ring is read by the drain like the others, but its records go another way ([`feed`]): [`unwinding`] turns them into
//! frames in a thread of its own, off the way of the events, and hands them to the encoder, which ties them to their events.
//! [`names`] looks up what the frames are called.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

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

/// Makes ready what the asked-for stacks need; None = none were asked for. What cannot be had is noted.
///
/// # Errors
/// When the file for the raw stacks cannot be made.
pub fn start(config: &Config, notes: &mut Vec<Vec<u8>>) -> Result<Option<Workers>> {
    let settings = &config.stacks;
    if settings.on.is_empty() {
        return Ok(None);
    }
    return_memory();
    let kallsyms = if settings.kernel.is_empty() { Ok(None) } else { Kallsyms::read().map(|k| Some(Arc::new(k))) };
    let kallsyms = kallsyms.unwrap_or_else(|why| {
        notes.push(format!("frames of the kernel have no names: {why}").into_bytes());
        None
    });
    let (mut tracker, missing) = Tracker::open(&spaces::Config::default());
    notes.extend(missing.into_iter().map(String::into_bytes));
    tracker.scan(&already_there(config));
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

//! Stacks: from the BPF side's records to frames and names.
//!
//! The drain reads the stack ring like the others, but its records go another way ([`feed`]). [`unwinding`] turns them
//! into frames in a thread of its own and passes them to the encoder, which joins them to their events. [`names`] looks
//! up the names of frames.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use crossbeam_channel::Receiver;
use systape_format::model::StackSettings;
use systape_symbols::{Kallsyms, RuleReader};

use crate::foreign;
use crate::mappings::{self, Tracker};
use crate::tape::output;
use budget::NamesTime;
use kernel::Kernel;
use name_queue::{NameMessage, NameQueue};
use names::Names;
use places::Places;
use unwinding::Unwinding;

pub(crate) mod asleep;
pub(crate) mod budget;
pub(crate) mod code;
pub(crate) mod feed;
pub(crate) mod forgot;
pub(crate) mod jit_maps;
pub(crate) mod kernel;
pub(crate) mod name_queue;
pub mod names;
pub(crate) mod options;
pub(crate) mod places;
pub(crate) mod taken;
pub(crate) mod unwinding;

/// With more processes than this only those of the target are read at the start.
const MAX_STRANGERS: usize = 4096;

/// The stages for stacks.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Makes frames.
    pub unwinding: Unwinding,
    /// Looks up their names; None = not requested.
    pub names: Option<NameWorker>,
}

/// The thread that looks names up, and its queue.
#[derive(Debug)]
pub(crate) struct NameWorker {
    /// The work.
    pub names: Names,
    /// Queue of the thread.
    pub queue: NameQueue,
    /// The receiving end.
    pub told: Receiver<NameMessage>,
    /// Ends it.
    pub time: NamesTime,
}

/// Everything that needs rights, opened; nothing of any process was read yet.
#[derive(Debug)]
pub(crate) struct OpenedStacks {
    kallsyms: Option<Arc<Kallsyms>>,
    kernel: Kernel,
    tracker: Tracker,
    reader: RuleReader,
    keep: Option<File>,
}

/// Opens everything that the requested stacks need; None = none were requested. Failures are noted. `keep`: the tape
/// beside which raw stacks are kept.
///
/// # Errors
/// When the file for the raw stacks cannot be made, or this program's own file cannot be found.
pub(crate) fn open(
    settings: &StackSettings,
    keep: Option<&Path>,
    notes: &mut Vec<Vec<u8>>,
) -> Result<Option<OpenedStacks>> {
    if settings.on.is_empty() {
        return Ok(None);
    }
    let kallsyms = if settings.kernel.is_empty() { Ok(None) } else { Kallsyms::read().map(|k| Some(Arc::new(k))) };
    let kallsyms = kallsyms.unwrap_or_else(|why| {
        notes.push(format!("frames of the kernel have no names: {why}").into_bytes());
        None
    });
    let reader = foreign::rules()?;
    // other threads that ask it end before the recording does
    reader.begin();
    let (tracker, missing) = Tracker::open(&mappings::TrackerConfig::default(), reader.clone());
    notes.extend(missing.into_iter().map(String::into_bytes));
    let keep = keep.map(keep_file).transpose()?;
    Ok(Some(OpenedStacks { kernel: Kernel::new(kallsyms.clone()), kallsyms, tracker, reader, keep }))
}

impl OpenedStacks {
    /// Reads the mappings of existing processes, and prepares the workers. `targets`: marked processes; None = all are
    /// recorded. `names`: the time for names; None = none are looked up.
    ///
    /// # Errors
    /// When this program's own file cannot be found.
    pub(crate) fn scan(mut self, targets: Option<&[u32]>, names: Option<NamesTime>) -> Result<Workers> {
        self.tracker.scan(&already_there(targets));
        let places = Places::new(self.tracker);
        let worker = |time: NamesTime| {
            let names = Names::new(self.kallsyms, time.clone())?;
            let (queue, told) = names.queue();
            Ok::<_, anyhow::Error>(NameWorker { names, queue, told, time })
        };
        let names = names.map(worker).transpose()?;
        let queue = names.as_ref().map(|worker| worker.queue.clone());
        Ok(Workers { unwinding: Unwinding::new((places, self.reader), self.kernel, queue, self.keep), names })
    }
}

/// Processes whose mappings are read at the start. If there are many others, theirs are read at their first stack,
/// because any process may send a signal to a target.
fn already_there(targets: Option<&[u32]>) -> Vec<u32> {
    let pids = mappings::proc_maps::pids();
    match targets {
        Some(targets) if pids.len() > MAX_STRANGERS => targets.to_vec(),
        _ => pids,
    }
}

fn keep_file(tape: &Path) -> Result<File> {
    let mut path = tape.to_path_buf().into_os_string();
    path.push(".stacks");
    output::replace(path.as_ref()).with_context(|| format!("cannot write {}", path.display()))
}

//! Names of the places on stacks, looked up at the end of each chunk and of the recording.
//!
//! A thread of its own collects the distinct places. ELF files and perf maps are parsed in a child process (systape-symbols).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender};
use indicatif::{ProgressBar, ProgressStyle};
use rustc_hash::FxHashMap;
use systape_abi::plain;
use systape_format::model::{Function, Mapping, Symbol, Symbols};
use systape_format::redact::Redactor;
use systape_symbols::{Kallsyms, Resolver};

use super::jit_maps::{JitMaps, Owner};

/// The first argument that makes `record` the child that parses them.
pub const CHILD: &str = "--look-up-names";
/// Directories of debug files that are not beside their program.
const DEBUG_DIR: &str = "/usr/lib/debug";

/// Source of a place's name.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A file, open if possible, and its path.
    File {
        /// Its content, or why it could not be opened.
        file: Result<Arc<File>, String>,
        /// Its path.
        path: PathBuf,
    },
    /// An address in the kernel.
    Kernel(u64),
    /// Code made at run time, by this process; `here` 0 = it is not in /proc.
    Jit(Owner),
}

/// A place on a stack, sent once.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The code.
    pub mapping: Arc<Mapping>,
    /// Offset as returned by [`systape_format::model::Frame::lookup`].
    pub offset: u64,
    /// Its source.
    pub origin: Origin,
}

/// Input of the thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A place.
    Seen(Seen),
    /// A chunk ended: names of the places so far are looked up and written.
    ChunkEnds,
    /// The same; who sent it is told when they are passed on.
    Settle(Sender<()>),
    /// The recording ended. An explicit message, because other senders may hang.
    End,
}

/// Places of one mapping without names so far.
#[derive(Debug)]
struct Pending {
    origin: Origin,
    /// Offset → address, for the kernel's.
    offsets: BTreeMap<u64, u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Resolver,
    kernel: Option<Arc<Kallsyms>>,
    jit_maps: JitMaps,
    pending: FxHashMap<Arc<Mapping>, Pending>,
}

impl Names {
    /// The work of a thread; the child starts with the first look-up.
    ///
    /// # Errors
    /// When this program's own file cannot be found.
    pub(crate) fn new(kernel: Option<Arc<Kallsyms>>) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let command = vec![program.into_os_string(), OsString::from(CHILD)];
        Ok(Self {
            resolver: Resolver::new(command, vec![PathBuf::from(DEBUG_DIR)]),
            kernel,
            jit_maps: JitMaps::default(),
            pending: FxHashMap::default(),
        })
    }

    /// Works until the end, then looks up the rest.
    ///
    /// # Errors
    /// That of `out`; names passed to it before are safe.
    pub(crate) fn run(
        mut self,
        input: &Receiver<Message>,
        redactor: Option<&Redactor>,
        mut out: impl FnMut(Symbols) -> Result<()>,
    ) -> Result<()> {
        let mut out = move |mut symbols: Symbols| -> Result<()> {
            if let Some(redactor) = redactor {
                redactor.symbols(&mut symbols);
            }
            out(symbols)
        };
        for message in input {
            match message {
                Message::Seen(seen) => self.add(seen),
                Message::End => break,
                Message::ChunkEnds => self.write(&ProgressBar::hidden(), &mut out)?,
                Message::Settle(done) => {
                    self.write(&ProgressBar::hidden(), &mut out)?;
                    // who asked may have gone
                    done.send(()).ok();
                }
            }
        }
        let places: usize = self.pending.values().map(|p| p.offsets.len()).sum();
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new(places as u64) } else { ProgressBar::hidden() };
        bar.set_style(
            ProgressStyle::with_template("looking up names  {pos}/{len}  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let written = self.write(&bar, &mut out);
        bar.finish_and_clear();
        written
    }

    fn add(&mut self, seen: Seen) {
        let address = if let Origin::Kernel(address) = seen.origin { address } else { 0 };
        let pending = self
            .pending
            .entry(seen.mapping)
            .or_insert_with(|| Pending { origin: seen.origin, offsets: BTreeMap::new() });
        pending.offsets.insert(seen.offset, address);
    }

    /// Looks up the pending places, a mapping at a time, so that only one mapping's names are in memory.
    fn write(&mut self, bar: &ProgressBar, out: &mut impl FnMut(Symbols) -> Result<()>) -> Result<()> {
        let mut all: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        for (mapping, pending) in all {
            bar.set_message(plain(&String::from_utf8_lossy(&mapping.path)).into_owned());
            let symbols = self.look_up(&mapping, &pending);
            bar.inc(pending.offsets.len() as u64);
            out(symbols)?;
        }
        Ok(())
    }

    fn look_up(&mut self, mapping: &Mapping, pending: &Pending) -> Symbols {
        let offsets: Vec<u64> = pending.offsets.keys().copied().collect();
        let mut symbols = Symbols { mappings: vec![mapping.clone()], ..Symbols::default() };
        let found = match &pending.origin {
            Origin::File { file: Ok(file), path } => {
                let file = systape_symbols::File { fd: file.as_fd(), path, build_id: &mapping.build_id };
                self.resolver.look_up(&file, &offsets)
            }
            Origin::File { file: Err(why), .. } => Err(why.clone()),
            Origin::Kernel(_) => self.kernel_names(pending),
            Origin::Jit(owner) => self.jit_names(*owner, &offsets, &mut symbols),
        };
        match found {
            Ok(names) => {
                let named = offsets.into_iter().zip(names);
                symbols.symbols = named.map(|(offset, functions)| Symbol { mapping: 0, offset, functions }).collect();
            }
            Err(why) => symbols.failures.push((0, why)),
        }
        symbols
    }

    fn kernel_names(&self, pending: &Pending) -> Result<Vec<Vec<Function>>, String> {
        let Some(kernel) = &self.kernel else {
            return Err(crate::addresses::hidden().to_owned());
        };
        let name = |address: &u64| match kernel.lookup(*address) {
            Some((name, ..)) => vec![Function { name: name.as_bytes().to_vec(), ..Function::default() }],
            None => Vec::new(),
        };
        Ok(pending.offsets.values().map(name).collect())
    }

    /// Names from a JIT compiler's perf map. Missing ones are noted in `symbols`.
    fn jit_names(
        &mut self,
        owner: Owner,
        addresses: &[u64],
        symbols: &mut Symbols,
    ) -> Result<Vec<Vec<Function>>, String> {
        if owner.here == 0 {
            return Err("its process is not in the recorder's pid namespace".into());
        }
        let map = self.jit_maps.find(owner)?;
        let names = self.resolver.look_up_map(map.file.as_fd(), addresses)?;
        if map.skipped > 0 && names.iter().any(Vec::is_empty) {
            symbols.failures.push((0, format!("the first {} bytes of its perf map are too much to read", map.skipped)));
        }
        Ok(names)
    }
}

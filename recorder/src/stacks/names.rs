//! Names of the places on stacks, looked up at the end of each chunk and of the recording.
//!
//! A thread of its own collects the distinct places. ELF files and perf maps are parsed in a child process
//! (systape-symbols); [`super::budget`] has the limits of that.

use std::cmp::Reverse;
use std::os::fd::AsFd;
use std::sync::Arc;

use anyhow::Result;
use crossbeam_channel::Receiver;
use indicatif::{ProgressBar, ProgressStyle};
use systape_abi::plain;
use systape_format::model::{Function, Mapping, Symbol, Symbols};
use systape_format::redact::Redactor;
use systape_symbols::{Deadline, GivenUp, Kallsyms, Resolver};

use super::budget::{NamesTime, StackBudget};
use super::jit_maps::{JitMaps, Owner};
use super::name_queue::{self, NameMessage, NameOrigin, NameQueue, Pending, Waiting, WaitingPlaces};
use crate::foreign;

/// Names that are kept until they are written.
const MOST_SYMBOLS: usize = 4096;

/// What becomes of places that the time does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Look-up with the next chunk's places.
    Later,
    /// Look-up with the next chunk's, and a tape says why it lacks the names.
    LaterAndSaid,
    /// No look-up, and the tape says why.
    Said,
}

/// Looks up the names of frames.
#[derive(Debug)]
pub(crate) struct Names {
    sources: Sources,
    places: WaitingPlaces,
    budget: StackBudget,
}

/// Sources of names.
#[derive(Debug)]
struct Sources {
    resolver: Resolver,
    kernel: Option<Arc<Kallsyms>>,
    jit_maps: JitMaps,
}

/// The names of one mapping on their way out: some are kept until they are worth a block.
struct Found<'a> {
    mapping: &'a Mapping,
    offsets: Vec<u64>,
    /// Of `offsets` that were answered.
    answered: usize,
    /// There is no room for more: what comes belongs to offsets behind those that were left out.
    full: bool,
    symbols: Vec<Symbol>,
    budget: &'a mut StackBudget,
    out: &'a mut dyn FnMut(Symbols) -> Result<()>,
    /// The first error of `out`.
    written: Result<()>,
}

impl Found<'_> {
    /// Takes the names of the next offsets.
    fn take(&mut self, names: Vec<Vec<Function>>) {
        if self.full {
            return;
        }
        let offsets = self.offsets.get(self.answered..).unwrap_or_default().iter();
        let symbols = offsets.zip(names).map(|(offset, functions)| Symbol { mapping: 0, offset: *offset, functions });
        let before = self.symbols.len();
        self.symbols.extend(symbols);
        let new = self.symbols.len() - before;
        if self.budget.take(&self.symbols[before..]).is_none() {
            self.symbols.truncate(before);
            self.full = true;
            return;
        }
        self.answered += new;
        if self.symbols.len() >= MOST_SYMBOLS {
            self.flush();
        }
    }

    /// Writes what was taken.
    fn flush(&mut self) {
        if !self.symbols.is_empty() && self.written.is_ok() {
            let (mappings, symbols) = (vec![self.mapping.clone()], std::mem::take(&mut self.symbols));
            self.written = (self.out)(Symbols { mappings, symbols, ..Symbols::default() });
        }
    }
}

impl Names {
    /// The work of a thread; the child starts with the first look-up.
    ///
    /// # Errors
    /// When this program's own file cannot be found.
    pub(crate) fn new(kernel: Option<Arc<Kallsyms>>, time: NamesTime) -> Result<Self> {
        let carrier = foreign::carrier()?;
        let resolver = foreign::resolver(time.limits(), carrier.clone())?;
        let sources = Sources { resolver, kernel, jit_maps: JitMaps::new(carrier) };
        Ok(Self { sources, places: WaitingPlaces::default(), budget: StackBudget::new(time) })
    }

    /// The queue to it.
    pub(crate) fn queue(&self) -> (NameQueue, Receiver<NameMessage>) {
        NameQueue::new(self.places.clone(), self.budget.time.clone())
    }

    /// What is looked up is not kept for ever: its memory is bounded elsewhere.
    pub(crate) fn are_forgotten(&mut self) {
        self.budget.without_bytes();
    }

    /// Works until the end, then looks up the rest.
    ///
    /// # Errors
    /// That of `out`; names passed to it before are safe.
    pub(crate) fn run(
        mut self,
        input: &Receiver<NameMessage>,
        redactor: Option<&Redactor>,
        mut out: impl FnMut(Symbols) -> Result<()>,
    ) -> Result<()> {
        let mut out = move |mut symbols: Symbols| -> Result<()> {
            if let Some(redactor) = redactor {
                redactor.symbols(&mut symbols);
            }
            out(symbols)
        };
        while let Ok(message) = input.recv() {
            // several tapes may wait for the same names
            let messages: Vec<NameMessage> = std::iter::once(message).chain(input.try_iter()).collect();
            let ends = messages.iter().any(|message| matches!(message, NameMessage::End));
            let chunk_ends = messages.iter().any(|message| matches!(message, NameMessage::ChunkEnds));
            for message in &messages {
                if let NameMessage::Made(owner) = message {
                    self.sources.jit_maps.hold(*owner);
                }
            }
            let tapes: Vec<_> = messages
                .into_iter()
                .filter_map(|message| if let NameMessage::Settle(done) = message { Some(done) } else { None })
                .collect();
            if !tapes.is_empty() {
                let deadline = self.budget.time.begin();
                self.write(Left::LaterAndSaid, &deadline, &ProgressBar::hidden(), &mut out)?;
                for done in tapes {
                    self.budget.time.tape_is_done();
                    // who asked may have gone
                    done.send(()).ok();
                }
            } else if chunk_ends
                && !ends
                && let Some(deadline) = self.budget.time.begin_chunk()
            {
                self.write(Left::Later, &deadline, &ProgressBar::hidden(), &mut out)?;
                let waiting = self.places.with(|waiting| waiting.makers());
                self.sources.jit_maps.forget_ended(&waiting);
            }
            if ends {
                break;
            }
        }
        let places: usize = self.places.with(|waiting| waiting.places.values().map(|p| p.offsets.len()).sum());
        let bar = if systape_cli::takes_escapes(&std::io::stderr()) {
            ProgressBar::new(places as u64)
        } else {
            ProgressBar::hidden()
        };
        bar.set_style(
            ProgressStyle::with_template("looking up names  {pos}/{len}  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let written = self.write(Left::Said, &self.budget.time.begin(), &bar, &mut out);
        bar.finish_and_clear();
        written
    }

    /// Looks up the pending places, a mapping at a time.
    fn write(
        &mut self,
        left: Left,
        deadline: &Deadline,
        bar: &ProgressBar,
        out: &mut impl FnMut(Symbols) -> Result<()>,
    ) -> Result<()> {
        let Waiting { places, mut refused, .. } = self.places.with(std::mem::take);
        self.budget.count(refused.values().sum());
        let mut all: Vec<_> = places.into_iter().collect();
        all.sort_by(|(a, of_a), (b, of_b)| of_a.rank().cmp(&of_b.rank()).then_with(|| a.cmp(b)));
        for (mapping, pending) in all {
            bar.set_message(plain(&String::from_utf8_lossy(&mapping.path)).into_owned());
            let places = pending.offsets.len();
            let why = self.write_one(&mapping, pending, left, deadline, out)?;
            bar.inc(places as u64);
            if let Some(why) = why {
                refused.remove(&mapping);
                fail(&mapping, why, out)?;
            }
        }
        refused.keys().try_for_each(|mapping| fail(mapping, too_many(), out))
    }

    /// Looks up the places of a mapping. Returns why some lack a name, if the tape is to say so.
    ///
    /// # Errors
    /// That of `out`.
    fn write_one(
        &mut self,
        mapping: &Arc<Mapping>,
        mut pending: Pending,
        left: Left,
        deadline: &Deadline,
        out: &mut impl FnMut(Symbols) -> Result<()>,
    ) -> Result<Option<String>> {
        let offsets: Vec<u64> = pending.offsets.keys().copied().collect();
        let places = offsets.len();
        if let Some(why) = self.budget.refuses(mapping) {
            self.budget.count(places);
            return Ok(Some(why));
        }
        let (symbols, written, budget) = (Vec::new(), Ok(()), &mut self.budget);
        let mut found = Found { mapping, offsets, answered: 0, full: false, symbols, budget, out, written };
        let looked_up = self.sources.look_up(&pending, deadline, &mut found);
        found.flush();
        let Found { answered, written, .. } = found;
        written?;
        Ok(match looked_up {
            Ok(()) if answered == places => None,
            Ok(()) => {
                self.budget.count(places - answered);
                self.budget.refuses(mapping)
            }
            Err(GivenUp::Over) if left != Left::Said => {
                pending.offsets = pending.offsets.into_iter().skip(answered).collect();
                self.places.with(|waiting| waiting.put_back(mapping, pending));
                (left == Left::LaterAndSaid).then(|| self.budget.words(&GivenUp::Over))
            }
            Err(why) => Some(self.budget.give_up(mapping, places - answered, &why)),
        })
    }
}

/// Says why places of a mapping have no name.
fn fail(mapping: &Mapping, why: String, out: &mut impl FnMut(Symbols) -> Result<()>) -> Result<()> {
    let (mappings, failures) = (vec![mapping.clone()], vec![(0, why)]);
    out(Symbols { mappings, failures, ..Symbols::default() })
}

fn too_many() -> String {
    format!("given up: {} places waited for names already", name_queue::MOST)
}

impl Pending {
    /// The order of look-ups: the kernel's, which take no time, then those with the most places.
    fn rank(&self) -> (bool, Reverse<usize>) {
        (!matches!(self.origin, NameOrigin::Kernel(_)), Reverse(self.offsets.len()))
    }
}

impl Sources {
    fn look_up(&mut self, pending: &Pending, deadline: &Deadline, found: &mut Found<'_>) -> Result<(), GivenUp> {
        let offsets = found.offsets.clone();
        match &pending.origin {
            NameOrigin::File { file: Ok(file), path } => {
                let build_id = found.mapping.build_id.clone();
                let file = systape_symbols::File { fd: file.as_fd(), path, build_id: &build_id };
                self.resolver.look_up_each(&file, &offsets, deadline, |names| found.take(names))
            }
            NameOrigin::File { file: Err(why), .. } => Err(GivenUp::Refused(why.clone())),
            NameOrigin::Kernel(_) => self.kernel_names(pending, found),
            NameOrigin::Jit(owner) => self.jit_names(*owner, &offsets, deadline, found),
        }
    }

    fn kernel_names(&self, pending: &Pending, found: &mut Found<'_>) -> Result<(), GivenUp> {
        let Some(kernel) = &self.kernel else {
            return Err(GivenUp::Refused(crate::machine::addresses::hidden().to_owned()));
        };
        let name = |address: &u64| match kernel.lookup(*address) {
            Some((name, ..)) => vec![Function { name: name.as_bytes().to_vec(), ..Function::default() }],
            None => Vec::new(),
        };
        let addresses: Vec<u64> = pending.offsets.values().copied().collect();
        addresses.chunks(MOST_SYMBOLS).for_each(|some| found.take(some.iter().map(name).collect()));
        Ok(())
    }

    /// Names from a JIT compiler's perf map.
    fn jit_names(
        &mut self,
        owner: Owner,
        addresses: &[u64],
        deadline: &Deadline,
        found: &mut Found<'_>,
    ) -> Result<(), GivenUp> {
        if owner.here == 0 {
            return Err(GivenUp::Refused("its process is not in the recorder's pid namespace".into()));
        }
        if deadline.is_over() {
            return Err(GivenUp::Over);
        }
        let map = self.jit_maps.find(owner).map_err(GivenUp::Refused)?;
        let mut nameless = false;
        self.resolver.look_up_map(map.file.as_fd(), addresses, deadline, |names| {
            nameless |= names.iter().any(Vec::is_empty);
            found.take(names);
        })?;
        if map.skipped > 0 && nameless {
            let why = format!("the first {} bytes of its perf map are too much to read", map.skipped);
            return Err(GivenUp::Refused(why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::super::name_queue::SeenPlace;
    use super::*;

    fn mapping(name: &str) -> Arc<Mapping> {
        Arc::new(Mapping { path: name.into(), ..Mapping::default() })
    }

    fn function(name: &str) -> Vec<Function> {
        vec![Function { name: name.into(), ..Function::default() }]
    }

    fn names(time: NamesTime) -> Names {
        Names::new(None, time).unwrap()
    }

    #[test]
    fn names_belong_to_their_offsets_whatever_has_no_room() {
        let mut budget = StackBudget::new(NamesTime::new(Duration::ZERO));
        let (mapping, mut written) = (Mapping::default(), Vec::new());
        let mut out = |symbols: Symbols| {
            written.extend(symbols.symbols.into_iter().map(|symbol| (symbol.offset, symbol.functions.len())));
            Ok(())
        };
        let offsets = vec![10, 20, 30, 40];
        let mut found = Found {
            mapping: &mapping,
            offsets,
            answered: 0,
            full: false,
            symbols: Vec::new(),
            budget: &mut budget,
            out: &mut out,
            written: Ok(()),
        };
        found.take(vec![function("first"), Vec::new()]);
        found.take(vec![function(&"x".repeat(300 << 20))]);
        // of offset 40, not of 30
        found.take(vec![Vec::new()]);
        found.flush();
        assert_eq!(found.answered, 2);
        assert_eq!(written, [(10, 1), (20, 0)]);
    }

    #[test]
    fn the_file_with_the_most_places_comes_first() {
        let (names, out) = (names(NamesTime::new(Duration::from_secs(60))), &mut Vec::new());
        let (queue, told) = names.queue();
        let none = |why: &str| NameOrigin::File { file: Err(why.into()), path: PathBuf::new() };
        for (name, places) in [("a", 1), ("b", 3), ("c", 2)] {
            for offset in 0..places {
                queue.see(SeenPlace { mapping: mapping(name), offset, origin: none(name) });
            }
        }
        queue.see(SeenPlace { mapping: mapping("kernel"), offset: 0, origin: NameOrigin::Kernel(1) });
        let take = |symbols: Symbols| {
            out.push(symbols.mappings[0].path.clone());
            Ok(())
        };
        queue.end();
        names.run(&told, None, take).unwrap();
        assert_eq!(*out, [&b"kernel"[..], b"b", b"c", b"a"]);
    }

    #[test]
    fn what_the_time_does_not_reach_waits_or_is_said() {
        let file = Arc::new(File::open("/proc/self/exe").unwrap());
        let seen = |offset| SeenPlace {
            mapping: mapping("late"),
            offset,
            origin: NameOrigin::File { file: Ok(Arc::clone(&file)), path: PathBuf::from("/late") },
        };
        let time = NamesTime::new(Duration::ZERO);
        let names = names(time.clone());
        let (queue, told) = names.queue();
        (1..=3).for_each(|offset| queue.see(seen(offset)));
        let (say, said) = crossbeam_channel::unbounded();
        let take = move |symbols: Symbols| {
            assert!(symbols.symbols.is_empty());
            symbols.failures.into_iter().for_each(|(_, why)| say.send(why).unwrap());
            Ok(())
        };
        let running = std::thread::spawn(move || names.run(&told, None, take).unwrap());
        let why = "given up: names have 0 s (--names-for)";
        queue.chunk_ends();
        queue.settle();
        assert_eq!(said.try_iter().collect::<Vec<_>>(), [why], "for a tape, and nothing at the chunk's end");
        for offset in 4..20 {
            queue.see(seen(offset));
        }
        queue.end();
        running.join().unwrap();
        assert_eq!(said.iter().collect::<Vec<_>>(), [why]);
        assert_eq!(time.given_up(), 19, "each place once, those without room too");
    }
}

//! Names of places in code, looked up once and kept for as long as stacks in memory need them.
//!
//! A place is reported once, a tape needs the names of every place on its stacks. So names do not go to a tape as they
//! are found: they wait here, and each tape takes those it needs. When they take too much room, those that no kept stack
//! needs are forgotten, and every place is reported anew from then on. What is found while there is no room at all is left
//! out, and tapes say so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Function, Mapping, Symbol, Symbols};
use systape_format::places::{mapping_key, place_key};

use crate::stacks::forgot::Forgot;
use crate::stacks::name_queue::NameQueue;

/// Bytes of names beyond which those that no stack needs are forgotten.
const MOST_BYTES: usize = if cfg!(test) { 8 << 10 } else { 32 << 20 };
/// Bytes of names beyond which none is added: they come faster than any are forgotten.
const NO_MORE_BYTES: usize = MOST_BYTES / 2 * 3;
/// Names that are compressed at a time.
const PART: usize = if cfg!(test) { 2 } else { 4096 };

#[derive(Debug)]
struct Named {
    mapping: Arc<Mapping>,
    offset: u64,
    functions: Vec<Function>,
}

#[derive(Debug, Default)]
struct Table {
    places: FxHashMap<u64, Arc<Named>>,
    failures: FxHashMap<u64, (Arc<Mapping>, String)>,
    bytes: usize,
}

/// Names of frames that chunks in memory need; shared by the threads that look names up, keep chunks and write tapes.
#[derive(Clone, Debug)]
pub(crate) struct NameStore {
    table: Arc<Mutex<Table>>,
    queue: NameQueue,
    forgot: Forgot,
}

fn bytes_of(functions: &[Function]) -> usize {
    128 + functions.iter().map(|f| 112 + f.name.len() + f.file.len()).sum::<usize>()
}

/// Of a failure, with the mapping that is kept by it alone.
const FAILURE_BYTES: usize = 512;

impl Table {
    fn fail(&mut self, mapping: &Arc<Mapping>, why: String) {
        if self.failures.insert(mapping_key(mapping), (Arc::clone(mapping), why)).is_none() {
            self.bytes += FAILURE_BYTES;
        }
    }
}

impl NameStore {
    /// `queue`: of the thread that looks names up; `forgot` is read by those that report places.
    pub(crate) fn new(queue: NameQueue, forgot: Forgot) -> Self {
        Self { table: Arc::default(), queue, forgot }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps names, if there is room.
    pub(crate) fn add(&self, symbols: Symbols) {
        let mappings: Vec<Arc<Mapping>> = symbols.mappings.into_iter().map(Arc::new).collect();
        let mut table = self.table();
        let mut refused = 0;
        for Symbol { mapping, offset, functions } in symbols.symbols {
            let Some(mapping) = mappings.get(mapping as usize).cloned() else { continue };
            let bytes = bytes_of(&functions);
            if table.bytes + bytes > NO_MORE_BYTES {
                refused += 1;
                table.fail(&mapping, format!("given up: names take {} MiB already", NO_MORE_BYTES >> 20));
                continue;
            }
            // what was said of it before may hold no more; if it does, it is said again
            if table.failures.remove(&mapping_key(&mapping)).is_some() {
                table.bytes -= FAILURE_BYTES;
            }
            table.bytes += bytes;
            let key = place_key(&mapping, offset);
            if let Some(before) = table.places.insert(key, Arc::new(Named { mapping, offset, functions })) {
                table.bytes -= bytes_of(&before.functions);
            }
        }
        self.queue.give_up(refused);
        for (mapping, why) in symbols.failures {
            let Some(mapping) = mappings.get(mapping as usize).cloned() else { continue };
            table.fail(&mapping, why);
        }
    }

    /// Waits until the places reported so far are looked up, for a bounded time.
    pub(crate) fn settle(&self) {
        self.queue.settle();
    }

    /// The names of these places and mappings, by [`place_key`] and [`mapping_key`], in parts: they are many, and what is
    /// made of them takes room again.
    pub(crate) fn of(&self, keys: &FxHashSet<u64>) -> impl Iterator<Item = Symbols> {
        let table = self.table();
        let mut places: Vec<Arc<Named>> = keys.iter().filter_map(|key| table.places.get(key)).cloned().collect();
        let mut failed: Vec<_> = keys.iter().filter_map(|key| table.failures.get(key)).cloned().collect();
        drop(table);
        places.sort_unstable_by(|a, b| a.mapping.cmp(&b.mapping).then(a.offset.cmp(&b.offset)));
        failed.sort_unstable();
        let mut at = 0;
        let names = std::iter::from_fn(move || {
            let part = places.get(at..places.len().min(at + PART)).filter(|part| !part.is_empty())?;
            at += part.len();
            Some(names(part))
        });
        let (mappings, failures) =
            failed.into_iter().enumerate().map(|(at, (of, why))| (Mapping::clone(&of), (at as u32, why))).unzip();
        names.chain([Symbols { mappings, failures, ..Symbols::default() }])
    }

    /// Forgets names if they take too much room, but not those of the places `needed`.
    pub(crate) fn trim<'a>(&self, needed: impl Iterator<Item = &'a [u64]>) {
        let mut table = self.table();
        if table.bytes <= MOST_BYTES {
            return;
        }
        let needed: FxHashSet<u64> = needed.flatten().copied().collect();
        table.places.retain(|key, _| needed.contains(key));
        table.failures.retain(|key, _| needed.contains(key));
        let names: usize = table.places.values().map(|named| bytes_of(&named.functions)).sum();
        table.bytes = names + table.failures.len() * FAILURE_BYTES;
        self.forgot.again();
    }
}

/// As a tape has them; they are sorted by mapping.
fn names(places: &[Arc<Named>]) -> Symbols {
    let mut symbols = Symbols::default();
    for named in places {
        if symbols.mappings.last() != Some(&*named.mapping) {
            symbols.mappings.push(Mapping::clone(&named.mapping));
        }
        let mapping = symbols.mappings.len() as u32 - 1;
        symbols.symbols.push(Symbol { mapping, offset: named.offset, functions: named.functions.clone() });
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::MappingKind;

    fn mapping(path: &str) -> Mapping {
        Mapping { kind: MappingKind::Elf, path: path.into(), ..Mapping::default() }
    }

    fn found(path: &str, offsets: std::ops::Range<u64>) -> Symbols {
        let function = |offset| Function { name: format!("f{offset}").into(), ..Function::default() };
        let symbol = |offset| Symbol { mapping: 0, offset, functions: vec![function(offset)] };
        Symbols { mappings: vec![mapping(path)], symbols: offsets.map(symbol).collect(), failures: Vec::new() }
    }

    fn store(forgot: Forgot) -> NameStore {
        NameStore::new(NameQueue::for_tests().0, forgot)
    }

    /// Mapping and name of each place, and what has none.
    type OfATape = (Vec<(Vec<u8>, Vec<u8>)>, Vec<(Vec<u8>, String)>);

    fn of(store: &NameStore, keys: &FxHashSet<u64>) -> OfATape {
        let (mut names, mut failures) = (Vec::new(), Vec::new());
        for Symbols { mappings, symbols, failures: failed } in store.of(keys) {
            assert!(symbols.len() <= PART);
            let path = |mapping: u32| mappings[mapping as usize].path.clone();
            names.extend(symbols.iter().map(|s| (path(s.mapping), s.functions[0].name.clone())));
            failures.extend(failed.into_iter().map(|(mapping, why)| (path(mapping), why)));
        }
        (names, failures)
    }

    #[test]
    fn a_tape_takes_the_names_that_it_needs() {
        let store = store(Forgot::default());
        store.add(found("b", 0..3));
        store.add(found("a", 5..7));
        let failure =
            Symbols { mappings: vec![mapping("c")], failures: vec![(0, "gone".into())], ..Symbols::default() };
        store.add(failure);
        let keys = [place_key(&mapping("b"), 2), place_key(&mapping("b"), 1), place_key(&mapping("a"), 6), 77];
        let mut keys: FxHashSet<u64> = keys.into_iter().collect();
        let names = [("a", "f6"), ("b", "f1"), ("b", "f2")].map(|(path, name)| (path.into(), name.into()));
        assert_eq!(of(&store, &keys), (names.to_vec(), Vec::new()), "none that failed is of a stack");
        keys.insert(mapping_key(&mapping("c")));
        assert_eq!(of(&store, &keys), (names.to_vec(), vec![(b"c".to_vec(), "gone".to_owned())]));
    }

    #[test]
    fn names_that_no_stack_needs_go_first() {
        let forgot = Forgot::default();
        let store = store(forgot.clone());
        let mut seen = 0;
        store.add(found("a", 0..10));
        store.trim(std::iter::empty());
        assert!(!forgot.since(&mut seen), "there is room");
        store.add(found("b", 0..100));
        let needed = [place_key(&mapping("a"), 3)];
        let all = (0..100).flat_map(|n| [place_key(&mapping("a"), n), place_key(&mapping("b"), n)]);
        let all: FxHashSet<u64> = all.chain([mapping_key(&mapping("b"))]).collect();
        // there is an end to the room, and a tape says so
        let (names, failures) = of(&store, &all);
        assert!(names.len() < 60 && store.table().bytes <= NO_MORE_BYTES + FAILURE_BYTES, "{}", names.len());
        assert_eq!(failures, [(b"b".to_vec(), "given up: names take 0 MiB already".to_owned())]);
        store.trim([needed.as_slice()].into_iter());
        assert!(forgot.since(&mut seen) && !forgot.since(&mut seen));
        assert_eq!(of(&store, &all), (vec![(b"a".to_vec(), b"f3".to_vec())], Vec::new()));
        // the same name twice takes the room of one
        let before = store.table().bytes;
        store.add(found("a", 3..4));
        assert_eq!(store.table().bytes, before);
        // what failed once, and is found once there is room
        store.add(found("b", 0..1));
        assert_eq!(of(&store, &all).0.len(), 2);
    }
}

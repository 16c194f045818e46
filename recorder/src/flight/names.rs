//! Names of places in code, looked up once and kept for as long as stacks in memory need them.
//!
//! A place is reported once, a tape needs the names of every place on its stacks. So names do not go to a tape as they
//! are found: they wait here, and each tape takes those it needs. When they take too much room, those that no kept stack
//! needs are forgotten, and every place is reported anew from then on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Function, Mapping, Symbol, Symbols};
use systape_format::places::{mapping_key, place_key};

use crate::stacks::forgot::Forgot;
use crate::stacks::names::Message;

/// Bytes of names beyond which those that no stack needs are forgotten.
const MOST_BYTES: usize = if cfg!(test) { 4 << 10 } else { 64 << 20 };

#[derive(Debug)]
struct Named {
    mapping: Arc<Mapping>,
    offset: u64,
    functions: Vec<Function>,
}

#[derive(Debug, Default)]
struct Table {
    places: FxHashMap<u64, Named>,
    failures: FxHashMap<u64, (Arc<Mapping>, String)>,
    bytes: usize,
}

/// See the module; shared by the threads that look names up, keep chunks and write tapes.
#[derive(Clone, Debug)]
pub(crate) struct NameStore {
    table: Arc<Mutex<Table>>,
    tell: Sender<Message>,
    forgot: Forgot,
    /// How long a tape waits for names.
    patience: Duration,
}

fn bytes_of(functions: &[Function]) -> usize {
    96 + functions.iter().map(|f| 64 + f.name.len() + f.file.len()).sum::<usize>()
}

impl NameStore {
    /// `tell`: queue of the thread that looks names up; `forgot` is read by those that report places;
    /// `patience`: how long a tape waits for names.
    pub(crate) fn new(tell: Sender<Message>, forgot: Forgot, patience: Duration) -> Self {
        Self { table: Arc::default(), tell, forgot, patience }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps names.
    pub(crate) fn add(&self, symbols: Symbols) {
        let mappings: Vec<Arc<Mapping>> = symbols.mappings.into_iter().map(Arc::new).collect();
        let mut table = self.table();
        for Symbol { mapping, offset, functions } in symbols.symbols {
            let Some(mapping) = mappings.get(mapping as usize).cloned() else { continue };
            // what was said of it before may hold no more; if it does, it is said again
            table.failures.remove(&mapping_key(&mapping));
            table.bytes += bytes_of(&functions);
            let key = place_key(&mapping, offset);
            if let Some(before) = table.places.insert(key, Named { mapping, offset, functions }) {
                table.bytes -= bytes_of(&before.functions);
            }
        }
        for (mapping, why) in symbols.failures {
            let Some(mapping) = mappings.get(mapping as usize).cloned() else { continue };
            table.failures.insert(mapping_key(&mapping), (mapping, why));
        }
    }

    /// Waits until the places reported so far are looked up, for a bounded time.
    pub(crate) fn settle(&self) {
        let (done, settled) = bounded(1);
        if self.tell.send(Message::Settle(done)).is_ok() {
            // an error: that thread has ended, and everything is here
            settled.recv_timeout(self.patience).ok();
        }
    }

    /// The names of these places and mappings, by [`place_key`] and [`mapping_key`].
    pub(crate) fn of(&self, keys: &FxHashSet<u64>) -> Symbols {
        let table = self.table();
        let mut by_mapping: BTreeMap<&Arc<Mapping>, Vec<&Named>> = BTreeMap::new();
        for named in keys.iter().filter_map(|key| table.places.get(key)) {
            by_mapping.entry(&named.mapping).or_default().push(named);
        }
        let failed: Vec<&(Arc<Mapping>, String)> = keys.iter().filter_map(|key| table.failures.get(key)).collect();
        for (mapping, _) in &failed {
            by_mapping.entry(mapping).or_default();
        }
        let mut symbols = Symbols::default();
        for (number, (mapping, mut places)) in by_mapping.into_iter().enumerate() {
            let number = number as u32;
            places.sort_unstable_by_key(|named| named.offset);
            symbols.mappings.push(Mapping::clone(mapping));
            let named =
                |named: &Named| Symbol { mapping: number, offset: named.offset, functions: named.functions.clone() };
            symbols.symbols.extend(places.into_iter().map(named));
            let why = failed.iter().find(|(of, _)| of == mapping);
            symbols.failures.extend(why.map(|(_, why)| (number, why.clone())));
        }
        symbols
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
        table.bytes = table.places.values().map(|named| bytes_of(&named.functions)).sum();
        self.forgot.again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::MappingKind;

    fn mapping(path: &str) -> Mapping {
        Mapping { kind: MappingKind::Elf, path: path.into(), ..Mapping::default() }
    }

    fn names(path: &str, offsets: std::ops::Range<u64>) -> Symbols {
        let function = |offset| Function { name: format!("f{offset}").into(), ..Function::default() };
        let symbol = |offset| Symbol { mapping: 0, offset, functions: vec![function(offset)] };
        Symbols { mappings: vec![mapping(path)], symbols: offsets.map(symbol).collect(), failures: Vec::new() }
    }

    #[test]
    fn a_tape_takes_the_names_that_it_needs() {
        let (tell, told) = bounded(1);
        let store = NameStore::new(tell, Forgot::default(), Duration::ZERO);
        store.add(names("b", 0..3));
        store.add(names("a", 5..7));
        let failure =
            Symbols { mappings: vec![mapping("c")], failures: vec![(0, "gone".into())], ..Symbols::default() };
        store.add(failure);
        let keys = [place_key(&mapping("b"), 2), place_key(&mapping("b"), 1), place_key(&mapping("a"), 6), 77];
        let mut keys: FxHashSet<u64> = keys.into_iter().collect();
        let symbols = store.of(&keys);
        assert_eq!(symbols.mappings, [mapping("a"), mapping("b")]);
        let places: Vec<_> =
            symbols.symbols.iter().map(|s| (s.mapping, s.offset, s.functions[0].name.as_slice())).collect();
        assert_eq!(places, [(0, 6, b"f6".as_slice()), (1, 1, b"f1"), (1, 2, b"f2")]);
        assert!(symbols.failures.is_empty(), "of no stack");
        keys.insert(mapping_key(&mapping("c")));
        let symbols = store.of(&keys);
        assert_eq!((symbols.mappings.len(), symbols.failures), (3, vec![(2, "gone".to_owned())]));
        drop(told);
        store.settle();
    }

    #[test]
    fn names_that_no_stack_needs_go_first() {
        let forgot = Forgot::default();
        let store = NameStore::new(bounded(1).0, forgot.clone(), Duration::ZERO);
        let mut seen = 0;
        store.add(names("a", 0..10));
        store.trim(std::iter::empty());
        assert!(!forgot.since(&mut seen), "there is room");
        store.add(names("b", 0..100));
        let needed = [place_key(&mapping("a"), 3)];
        store.trim([needed.as_slice()].into_iter());
        assert!(forgot.since(&mut seen) && !forgot.since(&mut seen));
        let all = (0..100).flat_map(|n| [place_key(&mapping("a"), n), place_key(&mapping("b"), n)]).collect();
        let left = store.of(&all);
        assert_eq!((left.mappings, left.symbols.len()), (vec![mapping("a")], 1));
        // the same name twice takes the room of one
        let before = store.table().bytes;
        store.add(names("a", 3..4));
        assert_eq!(store.table().bytes, before);
    }
}

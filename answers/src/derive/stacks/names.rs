//! Names of places in code, as far as the tape has them.

use rustc_hash::FxHashMap;
use systape_format::model::{Frame, Function, Mapping};
use systape_format::reader::Tape;

use super::interner::Interner;

/// Most places kept: some 100 MB. The rest would print as addresses.
const MAX_PLACES: usize = 1 << 20;

/// Names of places.
#[derive(Debug, Default)]
pub struct Names {
    mappings: Interner<Mapping>,
    /// (mapping, offset) → functions, the innermost inlined one first; empty = looked up, and there is no name.
    places: FxHashMap<(u32, u64), Vec<Function>>,
    /// Why mappings lack names.
    failures: FxHashMap<u32, String>,
    /// Number of places beyond the limit.
    dropped: u64,
}

/// Rank of an answer's details: a later answer replaces one with fewer or equal details.
fn detail(functions: &[Function]) -> (bool, bool, usize) {
    let lines = functions.iter().any(|function| function.line != 0);
    (!functions.is_empty(), lines, functions.len())
}

impl Names {
    /// The names in `tape`; blocks that cannot be read are added to `findings`, and their places print as addresses.
    pub fn read(tape: &Tape, findings: &mut Vec<String>) -> Self {
        let mut names = Self::default();
        for at in 0..tape.symbol_blocks() {
            match tape.symbols(at) {
                Ok(symbols) => {
                    let ids: Vec<u32> = symbols.mappings.iter().map(|mapping| names.mappings.id(mapping)).collect();
                    for (mapping, why) in symbols.failures {
                        if let Some(id) = ids.get(mapping as usize) {
                            names.failures.insert(*id, why);
                        }
                    }
                    for symbol in symbols.symbols {
                        if let Some(id) = ids.get(symbol.mapping as usize) {
                            names.put((*id, symbol.offset), symbol.functions, false);
                        }
                    }
                }
                Err(error) => findings.push(format!("names: block {at} cannot be read: {error}")),
            }
        }
        if tape.end().is_none() {
            findings
                .push("names: the tape lacks its end, where most of them stand: places print as addresses".to_owned());
        }
        if names.dropped > 0 {
            findings.push(format!("names: {} places more than are kept print as addresses", names.dropped));
        }
        names
    }

    /// Adds the functions of a place; `better`: only if they have more details than the known ones.
    fn put(&mut self, place: (u32, u64), functions: Vec<Function>, better: bool) {
        let full = self.places.len() >= MAX_PLACES;
        match self.places.get_mut(&place) {
            Some(known) => {
                if !better || detail(known) < detail(&functions) {
                    *known = functions;
                }
            }
            None if full => self.dropped += 1,
            None => {
                self.places.insert(place, functions);
            }
        }
    }

    /// Adds the functions found in a file; they count if they have more details than the tape's.
    pub fn improve(&mut self, mapping: &Mapping, offset: u64, functions: Vec<Function>) {
        let id = self.mappings.id(mapping);
        self.put((id, offset), functions, true);
    }

    /// The number of a mapping, for [`Self::at`].
    pub fn mapping(&self, mapping: &Mapping) -> Option<u32> {
        self.mappings.get(mapping)
    }

    /// The functions at `frame` of the mapping with that number, the innermost inlined one first; empty = no name.
    pub fn at(&self, mapping: Option<u32>, frame: &Frame) -> &[Function] {
        let functions = mapping.and_then(|mapping| self.places.get(&(mapping, frame.lookup())));
        functions.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether there is a name at `offset`, as returned by [`Frame::lookup`].
    pub fn has(&self, mapping: Option<u32>, offset: u64) -> bool {
        self.detail(mapping, offset).0
    }

    /// Whether there is a source line at `offset`.
    pub fn has_lines(&self, mapping: Option<u32>, offset: u64) -> bool {
        self.detail(mapping, offset).1
    }

    fn detail(&self, mapping: Option<u32>, offset: u64) -> (bool, bool, usize) {
        let functions = mapping.and_then(|mapping| self.places.get(&(mapping, offset)));
        functions.map(|functions| detail(functions)).unwrap_or_default()
    }

    /// Why the mapping with that number has no names, if it was tried.
    pub fn failure(&self, mapping: Option<u32>) -> Option<&str> {
        mapping.and_then(|mapping| self.failures.get(&mapping)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, line: u32) -> Function {
        Function { name: name.into(), file: Vec::new(), line }
    }

    #[test]
    fn later_names_win_and_found_files_only_when_they_say_more() {
        let mut names = Names::default();
        let mapping = Mapping { path: b"/a".to_vec(), ..Mapping::default() };
        let id = names.mappings.id(&mapping);
        let frame = Frame { mapping: 0, offset: 5, flags: 0 };
        let first = |names: &Names| names.at(Some(id), &frame).first().map(|f| f.name.clone()).unwrap_or_default();
        names.put((id, 4), vec![function("old", 0)], false);
        names.put((id, 4), vec![function("new", 0)], false);
        assert_eq!(first(&names), b"new", "a return address is looked up inside its call");
        names.improve(&mapping, 4, vec![function("other", 0)]);
        names.improve(&mapping, 4, Vec::new());
        assert_eq!(first(&names), b"new");
        names.improve(&mapping, 4, vec![function("inner", 3), function("outer", 9)]);
        assert_eq!(first(&names), b"inner");
    }
}

//! Reads the code of running processes, for the instructions of code made at run time.
//!
//! The bytes are kept for one pass of the unwinding: the same few trampolines are in every stack of it, and later they
//! may change. A process whose mmap lock is held, or whose memory comes from a disk that hangs, is not read again.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use systape_unwind::CODE_BYTES;

use crate::machine::patient::{PATIENCE, Patient, none_hang};

/// Most places kept, and most files open.
const MAX_PLACES: usize = 1 << 16;
const MAX_OPEN: usize = 64;

/// Process and address.
type Place = (u32, u64);

/// The memory if it is open, and the place to read.
type Job = (Option<Arc<File>>, Place);
/// The memory, None = it cannot be opened, and the bytes read.
type Read = (Option<Arc<File>>, Option<[u8; CODE_BYTES]>);

/// Hashed with a key, because a program chooses where its code is.
pub(crate) struct CodeReader {
    /// None = the memory cannot be opened.
    memory: RefCell<HashMap<u32, Option<Arc<File>>>>,
    places: RefCell<HashMap<Place, Option<[u8; CODE_BYTES]>>>,
    patient: RefCell<Patient<Job, Read>>,
    hung: RefCell<HashSet<u32>>,
}

impl Default for CodeReader {
    fn default() -> Self {
        Self {
            memory: RefCell::default(),
            places: RefCell::default(),
            patient: RefCell::new(Patient::new("code", read)),
            hung: RefCell::default(),
        }
    }
}

fn read((memory, (pid, address)): Job) -> Read {
    let Some(memory) = memory.or_else(|| File::open(format!("/proc/{pid}/mem")).ok().map(Arc::new)) else {
        return (None, None);
    };
    let mut code = [0xcc; CODE_BYTES];
    let some = matches!(memory.read_at(&mut code, address), Ok(1..));
    (Some(memory), some.then_some(code))
}

impl CodeReader {
    /// Forgets the bytes.
    pub(crate) fn forget(&mut self) {
        self.memory.get_mut().clear();
        self.places.get_mut().clear();
        if none_hang() {
            self.hung.get_mut().clear();
        }
    }

    /// The bytes in a process' memory from `address` on; None = the process is gone or hangs, or has nothing there.
    pub(crate) fn read(&self, pid: u32, address: u64) -> Option<[u8; CODE_BYTES]> {
        if let Some(known) = self.places.borrow().get(&(pid, address)) {
            return *known;
        }
        let code = self.read_memory(pid, address);
        let mut places = self.places.borrow_mut();
        if places.len() >= MAX_PLACES {
            places.clear();
        }
        places.insert((pid, address), code);
        code
    }

    fn read_memory(&self, pid: u32, address: u64) -> Option<[u8; CODE_BYTES]> {
        let mut open = self.memory.borrow_mut();
        if open.len() >= MAX_OPEN && !open.contains_key(&pid) {
            open.clear();
        }
        let memory = match open.get(&pid) {
            Some(None) => return None,
            Some(known) => known.clone(),
            None if self.hung.borrow().contains(&pid) => return None,
            None => None,
        };
        let Ok((memory, code)) = self.patient.borrow_mut().run(PATIENCE, (memory, (pid, address))) else {
            self.hung.borrow_mut().insert(pid);
            open.insert(pid, None);
            return None;
        };
        open.insert(pid, memory);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        static CODE: [u8; CODE_BYTES] = *b"sixteen of these";
        let (reader, pid) = (CodeReader::default(), std::process::id());
        let at = CODE.as_ptr() as u64;
        assert_eq!(reader.read(pid, at), Some(CODE));
        assert_eq!(reader.read(pid, at), Some(CODE), "kept");
        assert_eq!(reader.read(pid, 8), None, "nothing is there");
        assert_eq!(reader.read(pid, u64::MAX - 3), None);
        assert_eq!(reader.read(u32::MAX, at), None, "no process");
    }
}

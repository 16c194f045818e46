//! Reads the code of running processes, for what the instructions of code made at run time say of a stack.
//!
//! What was read is kept for one pass of the unwinding: the same few trampolines stand in every stack of it, and later they may be others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use systape_unwind::CODE_BYTES;

/// Most places kept, and most files open.
const MAX_PLACES: usize = 1 << 16;
const MAX_OPEN: usize = 64;

/// Process and address.
type Place = (u32, u64);

/// Hashed with a key: a program chooses where its code is.
#[derive(Default)]
pub struct CodeReader {
    /// None = the memory cannot be opened.
    memory: RefCell<HashMap<u32, Option<File>>>,
    places: RefCell<HashMap<Place, Option<[u8; CODE_BYTES]>>>,
}

impl CodeReader {
    /// The bytes in a process' memory from `address` on; None = the process is gone, or it has nothing there.
    pub fn read(&self, pid: u32, address: u64) -> Option<[u8; CODE_BYTES]> {
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
        let memory = open.entry(pid).or_insert_with(|| File::open(format!("/proc/{pid}/mem")).ok()).as_ref()?;
        let mut code = [0xcc; CODE_BYTES];
        match memory.read_at(&mut code, address) {
            Ok(1..) => Some(code),
            _ => None,
        }
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

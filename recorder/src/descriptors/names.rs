//! Names of open files. A socket has several, one after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use systape_bpf::wire;

/// Past names kept per socket; what older ones were is unknown.
const HISTORY: usize = 4;

/// A path with its number in the segment being built, so that a path is looked up there once.
#[derive(Debug)]
pub(crate) struct Name {
    /// Text of the name in the form of /proc/PID/fd.
    pub bytes: Vec<u8>,
    /// (segment, index in its names).
    pub interned: Cell<(u32, u32)>,
    /// Names of a socket beside its number, which is in `bytes`.
    pub names: Option<Box<Names>>,
    /// Which file it is; None: not known, or it is none of a file system's.
    pub file: Option<Box<FileKey>>,
}

/// A file, whatever it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKey {
    /// When it had the name.
    pub since: u64,
    /// Identity of the inode as the kernel has it.
    pub inode: wire::Inode,
}

impl Name {
    /// A name that is in no segment yet.
    pub(crate) fn new(bytes: Vec<u8>) -> Rc<Self> {
        Self::of_file(bytes, None)
    }

    /// Makes the name of a file.
    pub(crate) fn of_file(bytes: Vec<u8>, file: Option<FileKey>) -> Rc<Self> {
        Rc::new(Self { bytes, interned: Cell::new((u32::MAX, 0)), names: None, file: file.map(Box::new) })
    }

    /// Makes the name of a socket.
    pub(crate) fn socket(bytes: Vec<u8>) -> Rc<Self> {
        Rc::new(Self { bytes, interned: Cell::new((u32::MAX, 0)), names: Some(Box::default()), file: None })
    }

    /// Passes the name at `ts` to `found`: of a socket what it was called then.
    pub(crate) fn at<R>(self: &Rc<Self>, ts: u64, found: impl FnOnce(&Rc<Self>) -> R) -> R {
        match self.names.as_ref().and_then(|names| names.at(ts)) {
            Some(name) => found(&name),
            None => found(self),
        }
    }
}

/// The names of a socket over time.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// From when on; None = its number is all that is known.
    past: RefCell<Vec<(u64, Option<Rc<Name>>)>>,
    /// Ends that the last of them says, 0 to 2.
    pub ends: Cell<u8>,
    /// Facts that the name of an `AF_UNIX` socket without an other end so far is made of.
    pub alone: RefCell<Option<Box<wire::Socket>>>,
    /// The process that made or accepted it, or had it open when it was first seen: pid and start; None = not known.
    pub owner: Cell<Option<(u32, u64)>>,
}

impl Names {
    /// The name at `ts`; None = only the number is known.
    pub(crate) fn at(&self, ts: u64) -> Option<Rc<Name>> {
        let past = self.past.borrow();
        past.iter().rev().find(|(since, _)| *since <= ts).and_then(|(_, name)| name.clone())
    }

    /// Notes that the name is not known from `ts` on.
    pub(crate) fn forget(&self, ts: u64) {
        *self.alone.borrow_mut() = None;
        self.push(ts, None);
    }

    /// The last name; None = only the number is known.
    pub(crate) fn last(&self) -> Option<Rc<Name>> {
        self.past.borrow().last().and_then(|(_, name)| name.clone())
    }

    /// Notes the name from `ts` on.
    pub(crate) fn push(&self, ts: u64, name: Option<Rc<Name>>) {
        let mut past = self.past.borrow_mut();
        let since = past.last().map_or(ts, |(since, _)| ts.max(*since));
        if past.len() == HISTORY {
            past.remove(0);
        }
        past.push((since, name));
    }
}

//! Sums rolled up until they are worth a line: calls on one file, then on the files of one directory, then on all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::calls::CallTime;
use super::calls::Object;
use super::finding::{FindingMember, Who, only};

/// Calls of one kind, of one program, on one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Name of the program, and its pid.
    pub who: Who,
    /// The call.
    pub call: String,
    /// The error; 0: none.
    pub errno: u16,
    /// What they are on.
    pub object: Object,
    /// Time of the calls.
    pub work: CallTime,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// One thing.
    One(Object),
    /// Files of this directory, and of those in it.
    In(Vec<u8>),
    /// Sockets whose other end has this address.
    Peer(Vec<u8>),
    /// Any object.
    Any,
}

/// Sums of several processes of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedProcesses {
    /// Time of the calls.
    pub work: CallTime,
    /// The processes.
    pub pids: BTreeSet<u32>,
    /// Number of different things.
    pub things: u64,
    /// The largest [`MEMBERS`] of them at least, in any order until [`Self::keep_largest`].
    members: Vec<(Object, CallTime)>,
}

/// Most things that a row can name.
const MEMBERS: usize = 64;

impl JoinedProcesses {
    /// Adds calls on other things.
    fn add(&mut self, other: &Self) {
        self.sum(other);
        self.things += other.things;
        self.members.extend(other.members.iter().cloned());
        // not each time: a directory may have very many files
        if self.members.len() > 4 * MEMBERS {
            self.keep_largest();
        }
    }

    /// Adds other calls on the same things.
    pub fn join(&mut self, other: &Self) {
        self.sum(other);
        for (object, work) in &other.members {
            match self.members.iter_mut().find(|(known, _)| known == object) {
                Some((_, sum)) => sum.add(work),
                None => self.members.push((object.clone(), work.clone())),
            }
        }
        self.keep_largest();
    }

    fn sum(&mut self, other: &Self) {
        self.work.add(&other.work);
        let room = PIDS - self.pids.len();
        self.pids.extend(other.pids.iter().take(room));
    }

    fn keep_largest(&mut self) {
        self.members.sort_by(|a, b| (Reverse(a.1.ns), &a.0).cmp(&(Reverse(b.1.ns), &b.0)));
        self.members.truncate(MEMBERS);
    }

    /// What it joins; empty: it is about one thing.
    pub fn members(&self) -> Vec<FindingMember> {
        if self.things < 2 {
            return Vec::new();
        }
        let member = |(object, work): &(Object, CallTime)| FindingMember {
            object: if let Object::Named(name) = object { name.to_vec() } else { Vec::new() },
            calls: work.calls,
            ns: work.ns,
            max: work.max,
        };
        self.members.iter().map(member).collect()
    }
}

/// Most processes that are told apart.
const PIDS: usize = 4096;

/// Program, call and error.
type Kind = (Vec<u8>, String, u16);

/// Kind of calls; what they are on; sums.
pub type Row = (Kind, On, JoinedProcesses);

/// Sums of one step on the way up.
type RankLevel = BTreeMap<On, JoinedProcesses>;

/// What else is counted with it one step up.
fn parent(on: &On) -> On {
    let dir_of = |path: &[u8]| {
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        On::In(path[..end.max(1)].to_vec())
    };
    match on {
        On::One(Object::Named(name)) if name.starts_with(b"/") => dir_of(name),
        On::One(Object::Named(name)) => peer(name).map_or(On::Any, On::Peer),
        On::In(dir) if dir.len() > 1 => dir_of(dir),
        _ => On::Any,
    }
}

/// `10.0.0.2:443` of `TCP:[10.0.0.1:40002->10.0.0.2:443]`, `/run/x.sock` of `UNIX-STREAM:[3->4 /run/x.sock]`.
fn peer(socket: &[u8]) -> Option<Vec<u8>> {
    let at = socket.windows(2).position(|pair| pair == b"->")?;
    let end = socket[at + 2..].strip_suffix(b"]")?;
    (!end.is_empty()).then(|| end.to_vec())
}

/// How much a row explains, ns: threads that waited at once count each, so that a part of them is less than all.
fn explains(work: &CallTime) -> u64 {
    if work.slow == 0 { work.ns } else { work.slow_ns }
}

/// Whether rows are one cause, `on`: that explains more than the largest of them, and there is nothing better to call them by.
fn is_one(on: &On, rows: &[(On, JoinedProcesses)], all: &JoinedProcesses) -> bool {
    let largest = rows.iter().map(|(_, row)| explains(&row.work)).max().unwrap_or(0);
    let files = rows.iter().all(|(on, _)| matches!(on, On::One(_)));
    let (fewest, tenths) = match on {
        On::Any => return false,
        On::In(dir) if dir == b"/" => return false,
        On::In(_) if files => (3, 20),
        On::In(_) | On::Peer(_) | On::One(_) => (2, 15),
    };
    rows.len() >= fewest && explains(&all.work).saturating_mul(10) >= largest.saturating_mul(tenths)
}

/// Rows of which each passes `worth`, each sum in one at most. Those of one directory, directory of directories or peer are one row when that
/// explains more than each of them; else those that are worth it stand alone, and what is left is counted one step up.
pub(crate) fn roll<'a>(
    sums: impl IntoIterator<Item = &'a Sum>,
    worth: impl Fn(&CallTime) -> bool,
    by_errno: bool,
) -> Vec<Row> {
    let mut kinds: BTreeMap<(&[u8], &str, u16), FxHashMap<&Object, JoinedProcesses>> = BTreeMap::new();
    for sum in sums {
        let errno = if by_errno { sum.errno } else { 0 };
        let kind = kinds.entry((&sum.who.comm, &sum.call, errno)).or_default();
        let row =
            kind.entry(&sum.object).or_insert_with(|| JoinedProcesses { things: 1, ..JoinedProcesses::default() });
        row.work.add(&sum.work);
        row.pids.extend(sum.who.pid.filter(|_| row.pids.len() < PIDS));
    }
    let mut rows = Vec::new();
    for ((comm, call, errno), objects) in kinds {
        let mut level = RankLevel::new();
        for (object, mut row) in objects {
            row.members.push((object.clone(), row.work.clone()));
            level.insert(On::One(object.clone()), row);
        }
        let kind = (comm.to_vec(), call.to_owned(), errno);
        rows.extend(rise(level, &worth).into_iter().map(|(on, sums)| (kind.clone(), on, sums)));
    }
    rows
}

/// The rows of calls of one kind, in the order of what they are on.
fn rise(mut level: RankLevel, worth: impl Fn(&CallTime) -> bool) -> Vec<(On, JoinedProcesses)> {
    let mut rows = Vec::new();
    for _ in 0..DEEPEST {
        let mut groups: BTreeMap<On, Vec<(On, JoinedProcesses)>> = BTreeMap::new();
        for (on, sums) in level {
            groups.entry(parent(&on)).or_default().push((on, sums));
        }
        level = RankLevel::new();
        for (up, children) in groups {
            let mut all = JoinedProcesses::default();
            children.iter().for_each(|(_, child)| all.add(child));
            if is_one(&up, &children, &all) {
                level.entry(up).or_default().add(&all);
                continue;
            }
            for (on, sums) in children {
                if worth(&sums.work) {
                    rows.push((on, sums));
                } else if on != On::Any {
                    level.entry(up.clone()).or_default().add(&sums);
                }
            }
        }
        if level.is_empty() {
            break;
        }
    }
    rows.iter_mut().for_each(|(_, sums)| sums.keep_largest());
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

/// Steps up at most: directories in directories.
const DEEPEST: usize = 16;

/// The program of a row: with its pid if it is one process.
pub fn who(comm: &[u8], together: &JoinedProcesses) -> Who {
    Who { comm: comm.to_vec(), pid: only(&together.pids) }
}

/// The file of calls on `name`.
#[cfg(test)]
pub(crate) fn named(name: &str) -> Object {
    Object::Named(Arc::from(name.as_bytes()))
}

/// A name as an object.
pub fn object(name: Vec<u8>) -> Object {
    Object::Named(Arc::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sums_are_rolled_up_until_they_are_worth_a_line() {
        let sum = |pid, name: &str, ns| Sum {
            who: Who { comm: b"ls".to_vec(), pid: Some(pid) },
            call: "statx".into(),
            errno: 0,
            object: named(name),
            work: CallTime { calls: 1, ns, slow_ns: ns, ..CallTime::default() },
        };
        let sums = [sum(1, "/nfs/big", 90), sum(1, "/nfs/a", 20), sum(2, "/nfs/b", 30), sum(2, "/etc/x", 4)];
        let rows = roll(&sums, |work| work.slow_ns >= 50, false);
        let found: Vec<_> =
            rows.iter().map(|(_, on, sums)| (on.clone(), sums.work.ns, sums.things, sums.pids.len())).collect();
        // in the order of their kinds
        assert_eq!(found, [(On::One(named("/nfs/big")), 90, 1, 1), (On::In(b"/nfs".to_vec()), 50, 2, 2)]);
        assert_eq!(who(b"ls", &rows[1].2).pid, None, "two processes");
        let members: Vec<_> = rows[1].2.members().into_iter().map(|member| (member.object, member.ns)).collect();
        assert_eq!(members, [(b"/nfs/b".to_vec(), 30), (b"/nfs/a".to_vec(), 20)]);
        assert_eq!(rows[0].2.members(), [], "one thing");
    }

    #[test]
    fn one_cause_is_one_row() {
        let sum = |name: &str, ns| Sum {
            who: Who { comm: b"cc".to_vec(), pid: Some(1) },
            call: "openat".into(),
            errno: 0,
            object: named(name),
            work: CallTime { calls: 1, ns, slow: 1, slow_ns: ns, ..CallTime::default() },
        };
        let found = |sums: &[Sum]| -> Vec<(On, u64)> {
            roll(sums, |work| work.slow_ns >= 50, false).into_iter().map(|(_, on, sums)| (on, sums.work.ns)).collect()
        };
        let files: Vec<Sum> = (0..9).map(|at| sum(&format!("/mnt/share/inc{}/h{at}", at % 3), 60)).collect();
        assert_eq!(found(&files), [(On::In(b"/mnt/share".to_vec()), 540)], "files of directories of a mount");
        let peers = [sum("TCP:[1.1.1.1:4->2.2.2.2:80]", 60), sum("TCP:[1.1.1.1:5->2.2.2.2:80]", 70)];
        assert_eq!(found(&peers), [(On::Peer(b"2.2.2.2:80".to_vec()), 130)], "connections to a peer");
        let apart = [sum("/data/a", 60), sum("/etc/b", 70)];
        assert_eq!(found(&apart).len(), 2, "files that have nothing in common");
        let large = [sum("/data/a", 900), sum("/data/b", 60), sum("/data/c", 60)];
        assert_eq!(found(&large).len(), 3, "the first explains nearly all");
    }
}

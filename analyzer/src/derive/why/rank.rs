//! Sums rolled up until they are worth a line: calls on one file, then on the files of one directory, then on all.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::calls::Object;
use super::calls::Work;
use super::finding::Who;

/// Calls of one kind, of one program, on one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Name of the program, and its pid.
    pub who: Who,
    /// The call.
    pub call: String,
    /// The error; 0: none.
    pub errno: u16,
    /// What they are on.
    pub object: Object,
    /// Time.
    pub work: Work,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum On {
    /// One thing.
    One(Object),
    /// Files of this directory.
    In(Vec<u8>),
    /// Anything.
    Any,
}

/// Sums of several processes of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Together {
    /// Their time.
    pub work: Work,
    /// The processes.
    pub pids: Vec<u32>,
    /// Number of different things.
    pub things: u64,
}

impl Together {
    fn add(&mut self, other: &Self) {
        self.work.add(&other.work);
        self.things += other.things;
        for pid in &other.pids {
            if !self.pids.contains(pid) && self.pids.len() < PIDS {
                self.pids.push(*pid);
            }
        }
    }
}

/// Most processes that are told apart.
const PIDS: usize = 4096;

/// Program, call and error.
type Kind = (Vec<u8>, String, u16);

/// Their kind; what they are on; sums.
pub(crate) type Row = (Kind, On, Together);

/// Sums of one step on the way up.
type Level = BTreeMap<(Kind, On), Together>;

fn parent(on: &On) -> On {
    match on {
        On::One(Object::Named(name)) if name.starts_with(b"/") => {
            let end = name.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            On::In(name[..end.max(1)].to_vec())
        }
        _ => On::Any,
    }
}

/// Rows of which each passes `worth`, each sum in one at most: on one thing if that is enough, else on a directory, else on all.
pub(crate) fn roll(sums: &[Sum], worth: impl Fn(&Work) -> bool, by_errno: bool) -> Vec<Row> {
    let mut level: Level = Level::new();
    for sum in sums {
        let errno = if by_errno { sum.errno } else { 0 };
        let key = ((sum.who.comm.clone(), sum.call.clone(), errno), On::One(sum.object.clone()));
        let one = Together { work: sum.work.clone(), pids: sum.who.pid.into_iter().collect(), things: 0 };
        level.entry(key).or_default().add(&one);
    }
    level.values_mut().for_each(|row| row.things = 1);
    let mut rows = Vec::new();
    for last in [false, false, true] {
        let mut next: Level = Level::new();
        for ((who, on), sums) in level {
            if worth(&sums.work) {
                rows.push((who, on, sums));
            } else if !last && on != On::Any {
                next.entry((who, parent(&on))).or_default().add(&sums);
            }
        }
        level = next;
    }
    rows
}

/// The program of a row: with its pid if it is one process.
pub(crate) fn who(comm: &[u8], together: &Together) -> Who {
    let pid = if let [pid] = together.pids[..] { Some(pid) } else { None };
    Who { comm: comm.to_vec(), pid }
}

/// The file of calls on `name`.
#[cfg(test)]
pub(crate) fn named(name: &str) -> Object {
    Object::Named(Arc::from(name.as_bytes()))
}

/// A name as an object.
pub(crate) fn object(name: Vec<u8>) -> Object {
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
            work: Work { calls: 1, ns, slow_ns: ns, ..Work::default() },
        };
        let sums = [sum(1, "/nfs/big", 90), sum(1, "/nfs/a", 20), sum(2, "/nfs/b", 30), sum(2, "/etc/x", 4)];
        let rows = roll(&sums, |work| work.slow_ns >= 50, false);
        let found: Vec<_> =
            rows.iter().map(|(_, on, sums)| (on.clone(), sums.work.ns, sums.things, sums.pids.len())).collect();
        assert_eq!(found, [(On::One(named("/nfs/big")), 90, 1, 1), (On::In(b"/nfs".to_vec()), 50, 2, 2)]);
        assert_eq!(who(b"ls", &rows[1].2).pid, None, "two processes");
    }
}

//! Waits for one other end, of all processes of one name: what a line of an answer is about.

use std::collections::BTreeMap;

use super::{For, TalkWait};
use crate::derive::why::cpu::wider;
use crate::derive::why::finding::Who;

/// Waits of one process in one call for one thing, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talked {
    /// Who waits.
    pub who: Who,
    /// The call.
    pub call: String,
    /// What for.
    pub what: For,
    /// The waits.
    pub waited: TalkWait,
    /// The only process at the other end, and how long it did something in all the time looked at, ns: on a CPU, waiting for one, in slow
    /// calls, asleep as its code asks, waiting for answers of others; None: it is not on the tape, or there are several.
    pub other: Option<(Who, u64)>,
}

impl Talked {
    /// Whether the other end is on the tape and did so little that it was at rest: nothing was late.
    pub fn rests(&self) -> bool {
        self.other.as_ref().is_some_and(|(_, busy)| *busy < self.waited.ns / 2)
    }
}

/// Waits of processes of one name for one other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The waits.
    pub waited: TalkWait,
    /// The processes, at most 4,096.
    pub pids: Vec<u32>,
    /// The only process at the other end.
    pub other: Option<Who>,
    /// There are several.
    pub others: bool,
}

/// Most processes that are told apart.
const PIDS: usize = 4096;

/// Waits of `talked` that `on` names, by program, call and that name.
pub fn together<'a>(
    talked: &'a [Talked],
    on: impl Fn(&'a Talked) -> Option<Vec<u8>>,
) -> BTreeMap<(Vec<u8>, String, Vec<u8>), Together> {
    let mut all: BTreeMap<_, Together> = BTreeMap::new();
    for one in talked {
        let Some(name) = on(one) else { continue };
        let row = all.entry((one.who.comm.clone(), one.call.clone(), name)).or_default();
        let (sum, more) = (&mut row.waited, &one.waited);
        sum.count = sum.count.saturating_add(more.count);
        sum.ns = sum.ns.saturating_add(more.ns);
        sum.others = sum.others.saturating_add(more.others);
        sum.max = sum.max.max(more.max);
        if let Some((from, to)) = more.span {
            sum.span = wider(sum.span, from, to);
        }
        let other = one.other.as_ref().map(|(who, _)| who.clone());
        row.others |= !row.pids.is_empty() && row.other != other;
        row.other = other;
        if let Some(pid) = one.who.pid.filter(|pid| !row.pids.contains(pid) && row.pids.len() < PIDS) {
            row.pids.push(pid);
        }
    }
    all.values_mut().filter(|row| row.others).for_each(|row| row.other = None);
    all
}

/// The other end's address in the name of a socket; None: it has none.
pub fn peer(name: &[u8]) -> Option<&[u8]> {
    let arrow = name.windows(2).position(|two| two == b"->")?;
    name.get(arrow + 2..)?.strip_suffix(b"]")
}

/// Whether an address is that of a name server.
pub(crate) fn is_dns(peer: &[u8]) -> bool {
    peer.ends_with(b":53")
}

#[cfg(test)]
pub(crate) fn talked(call: &str, what: For, count: u64, ns: u64) -> Talked {
    let waited = TalkWait { count, ns, max: ns / count.max(1), span: Some((0, 2_000_000_000)), others: 0 };
    Talked { who: Who { comm: b"app".to_vec(), pid: Some(7) }, call: call.into(), what, waited, other: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_one_name_for_one_end_are_one_line() {
        let to = |name: &[u8]| For::Answer(name.into());
        let mut one = talked("poll", to(b"TCP:[1.1.1.1:50000->2.2.2.2:80]"), 2, 50);
        let mut two = talked("poll", to(b"TCP:[1.1.1.1:50002->2.2.2.2:80]"), 3, 70);
        two.who.pid = Some(8);
        let server = |pid| Some((Who { comm: b"srv".to_vec(), pid: Some(pid) }, 90));
        (one.other, two.other) = (server(20), server(21));
        let all = [one, two];
        let rows = together(&all, |one| match &one.what {
            For::Answer(name) => peer(name).map(<[u8]>::to_vec),
            _ => None,
        });
        let row = &rows[&(b"app".to_vec(), "poll".to_owned(), b"2.2.2.2:80".to_vec())];
        assert_eq!((rows.len(), row.waited.count, row.waited.ns, row.pids.len()), (1, 5, 120, 2));
        assert_eq!((row.other.clone(), row.others), (None, true), "two servers");
        assert!(!all[0].rests() && Talked { other: server(1).map(|(who, _)| (who, 9)), ..all[0].clone() }.rests());
        assert!(is_dns(b"8.8.8.8:53") && !is_dns(b"8.8.8.8:153:5"));
    }
}

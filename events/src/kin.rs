//! Processes that run below others, as far as the tape has them: by the parents of its tasks. A number that was given to several processes
//! stands for all of them, as with `-p`.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Task;
use systape_format::reader::Tape;

/// Processes that descend from `pids` and are none of them, ascending.
pub fn below(tape: &Tape, pids: &[u32]) -> Vec<u32> {
    let mut edges = FxHashSet::default();
    let mut see = |task: &Task| {
        edges.insert((task.ppid, task.pid));
    };
    // those between have nothing new to say: who came after the first is in a segment or in the last
    let last = tape.checkpoints().saturating_sub(1);
    for at in [0, last].into_iter().filter(|at| *at < tape.checkpoints()) {
        tape.checkpoint(at).iter().for_each(|checkpoint| checkpoint.tasks.iter().for_each(&mut see));
    }
    for at in 0..tape.segments().len() {
        // what cannot be read is told by the report, which reads the same
        tape.segment(at).dict().iter().for_each(|dict| dict.tasks.iter().for_each(&mut see));
    }
    descend(&edges, pids)
}

/// The pids that `pids` lead to by `edges` from parents to children.
fn descend(edges: &FxHashSet<(u32, u32)>, pids: &[u32]) -> Vec<u32> {
    let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    edges.iter().for_each(|(parent, child)| children.entry(*parent).or_default().push(*child));
    let mut found: FxHashSet<u32> = pids.iter().copied().collect();
    let mut next = pids.to_vec();
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if found.insert(*child) {
                next.push(*child);
            }
        }
    }
    let mut below: Vec<u32> = found.into_iter().filter(|pid| !pids.contains(pid)).collect();
    below.sort_unstable();
    below
}

/// What is said of `left_out` processes below `pids` that a report of these leaves out; None: there are none.
pub fn note(pids: &[u32], left_out: usize) -> Option<String> {
    let list = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let (processes, are) = match left_out {
        0 => return None,
        1 => ("1 process".to_owned(), "is"),
        more => (format!("{more} processes"), "are"),
    };
    Some(format!("-p {list}: {processes} below {list} {are} left out; with them: -p {list} --tree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_generations_are_found_once() {
        let edges = [(0, 1), (0, 2), (1, 10), (10, 11), (11, 12), (2, 20), (12, 30), (1, 30)].into_iter().collect();
        assert_eq!(descend(&edges, &[10]), [11, 12, 30]);
        assert_eq!(descend(&edges, &[10, 11]), [12, 30], "who was named is none");
        assert_eq!(descend(&edges, &[20]), [0; 0]);
        // numbers are used again: a circle ends
        assert_eq!(descend(&[(5, 6), (6, 5)].into_iter().collect(), &[5]), [6]);
    }

    #[test]
    fn the_note_names_the_option() {
        assert_eq!(note(&[7], 0), None);
        let text = "-p 7: 1 process below 7 is left out; with them: -p 7 --tree";
        assert_eq!(note(&[7], 1).as_deref(), Some(text));
        assert!(note(&[7, 8], 2).unwrap().starts_with("-p 7,8: 2 processes below 7,8 are left out"));
    }
}

//! Running descendants of processes, from the parents that /proc names.
//!
//! Targets by number inherit to children that are made from then on; those that run already are other processes.

use std::fs;

use crate::machine::bounded;

/// Most descendants that are taken: the map of targets holds 4,096 numbers.
pub(crate) const MOST: usize = 4_000;
/// Bytes of a line of /proc/PID/stat at most; its fields are numbers and a name of 15 bytes.
const STAT: usize = 4_096;

/// The running descendants of `of`, without these, ascending; at most [`MOST`]. Ids are those of this pid namespace. This process and who
/// started it (a shell's sudo) are none.
pub(crate) fn descendants(of: &[u32]) -> Vec<u32> {
    let parents = parents();
    let own = above(&parents, std::process::id());
    below(&parents, of).into_iter().filter(|pid| !own.contains(pid)).collect()
}

/// `pid` and all that it descends from.
fn above(parents: &[(u32, u32)], pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let parent = |pid: u32| parents.iter().find(|(is, _)| *is == pid).map(|(_, ppid)| *ppid);
    while let Some(next) = found.last().and_then(|pid| parent(*pid)).filter(|next| !found.contains(next)) {
        found.push(next);
    }
    found
}

/// Every process and its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: u32| Some((pid, parent_in(&bounded::lines(format!("/proc/{pid}/stat"), STAT).ok()?)?));
    pids.filter_map(parent).collect()
}

/// The parent in a line of /proc/PID/stat: `17 (na) me) S 4 …`. The name may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Those of `parents`, pairs of a process and its parent, that descend from `of`.
fn below(parents: &[(u32, u32)], of: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> = of.to_vec();
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = parents.iter().filter(|(_, ppid)| *ppid == parent).map(|(pid, _)| *pid);
        let new: Vec<u32> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
        at += 1;
        if found.len() >= of.len() + MOST {
            break;
        }
    }
    let mut found = found.split_off(of.len());
    found.truncate(MOST);
    found.sort_unstable();
    found
}

/// What is said of processes `pids` whose descendants `left_out` run and are not recorded; None: there are none.
pub(crate) fn note(pids: &[u32], left_out: usize) -> Option<String> {
    let list = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let its = if pids.len() == 1 { "its" } else { "their" };
    let what = match left_out {
        0 => return None,
        1 => format!("1 process that runs below {list} is not recorded"),
        more => format!("{more} processes that run below {list} are not recorded"),
    };
    Some(format!("-p: {what}, only {its} new children are; all of them: record -p {list} --tree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_fields() {
        assert_eq!(parent_in("17 (sh) S 4 17 17 0"), Some(4));
        assert_eq!(parent_in("17 (a) R 9) ) S 4 17"), Some(4));
        assert_eq!((parent_in(""), parent_in("17 (x) S")), (None, None));
    }

    #[test]
    fn all_generations_are_found_once() {
        let parents = [(1, 0), (2, 0), (10, 1), (11, 10), (12, 11), (20, 2), (30, 12)];
        assert_eq!(below(&parents, &[10]), [11, 12, 30]);
        assert_eq!(below(&parents, &[10, 11]), [12, 30], "who was named is none");
        assert_eq!(below(&parents, &[20]), [0; 0]);
        // numbers are used again while /proc is read: a circle ends
        assert_eq!(below(&[(5, 6), (6, 5)], &[5]), [6]);
    }

    #[test]
    fn who_records_is_none_of_them() {
        let parents = [(10, 1), (11, 10), (12, 11), (13, 10)];
        assert_eq!(above(&parents, 12), [12, 11, 10, 1]);
        let parent = std::os::unix::process::parent_id();
        assert!(!descendants(&[parent]).contains(&std::process::id()));
    }

    #[test]
    fn a_child_of_this_process_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = descendants(&[std::process::id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
    }

    #[test]
    fn the_note_names_the_command() {
        assert_eq!(note(&[7], 0), None);
        let text = "-p: 13 processes that run below 1217 are not recorded, only its new children are; all of them: record -p 1217 --tree";
        assert_eq!(note(&[1217], 13).as_deref(), Some(text));
        assert!(note(&[7, 8], 1).unwrap().starts_with("-p: 1 process that runs below 7,8 is not recorded, only their"));
    }
}

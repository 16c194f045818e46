//! Cgroups: which hierarchies are followed, and what their cgroups are called.
//!
//! A task is in one cgroup of v2 and in one of each hierarchy of v1. It is shown in that of v2, or, if that is the top,
//! in that of the first v1 hierarchy of [`CONTROLLERS`]: where v1 is used, all of these agree in practice.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use systape_bpf::values::v1_controller;

use crate::machine::bounded;

/// Controllers whose hierarchy may be followed, the preferred first, with what the programs call them.
const CONTROLLERS: [(&str, u8); 3] =
    [("memory", v1_controller::MEMORY), ("pids", v1_controller::PIDS), ("cpu", v1_controller::CPU)];
/// Most names, and bytes of them, that are read at the start.
const MOST: usize = 65536;
const MOST_BYTES: usize = 16 << 20;

/// A hierarchy of v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct V1 {
    /// Number of the hierarchy, from 1 on.
    pub hierarchy: u32,
    /// Number of its controller, for the programs.
    pub controller: u8,
    name: &'static str,
}

/// The v1 hierarchy that is followed; None = none.
pub(crate) fn v1() -> Option<V1> {
    choose(&bounded::lines("/proc/cgroups", bounded::LINES).ok()?)
}

/// The same of the text of /proc/cgroups. A number has eight bits of an id on tapes.
fn choose(text: &str) -> Option<V1> {
    let number = |name: &str| {
        let line =
            text.lines().map(|line| line.split_ascii_whitespace()).find(|line| line.clone().next() == Some(name));
        line?.nth(1)?.parse::<u8>().ok().filter(|number| *number != 0)
    };
    let of = |(name, controller): &(&'static str, u8)| {
        number(name).map(|number| V1 { hierarchy: number.into(), controller: *controller, name })
    };
    CONTROLLERS.iter().find_map(of)
}

/// Mount point of the v2 hierarchy; None when there is none.
pub(crate) fn v2_mount() -> Option<PathBuf> {
    mount(&bounded::lines("/proc/self/mounts", bounded::MOUNTS).ok()?, "cgroup2", None)
}

/// The first mount of that type with that option.
pub(crate) fn mount(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (dir, of, options) = (fields.next()?, fields.next()?, fields.next()?);
        let has = |name: &str| options.split(',').any(|option| option == name);
        (of == kind && option.is_none_or(has)).then(|| PathBuf::from(dir))
    })
}

/// Every cgroup of the hierarchies that are followed: its id on tapes and its path, up to a bound.
pub(crate) fn names() -> Vec<(u64, Vec<u8>)> {
    let mounts = bounded::lines("/proc/self/mounts", bounded::MOUNTS).unwrap_or_default();
    let mut found = Vec::new();
    if let Some(dir) = mount(&mounts, "cgroup2", None) {
        walk(&dir, 0, &mut found);
    }
    if let Some(v1) = v1()
        && let Some(dir) = mount(&mounts, "cgroup", Some(v1.name))
    {
        walk(&dir, u64::from(v1.hierarchy) << v1_controller::SHIFT, &mut found);
    }
    found.sort_unstable();
    found
}

fn walk(mount: &Path, of: u64, found: &mut Vec<(u64, Vec<u8>)>) {
    let mut room = MOST_BYTES.saturating_sub(found.iter().map(|(_, path)| path.len()).sum());
    let mut todo = vec![mount.to_path_buf()];
    while let Some(dir) = todo.pop() {
        if found.len() >= MOST || room == 0 {
            break;
        }
        let Ok(meta) = fs::metadata(&dir) else { continue };
        let relative = dir.strip_prefix(mount).map(|p| Path::new("/").join(p)).unwrap_or_default();
        let relative = relative.into_os_string().into_vec();
        room = room.saturating_sub(relative.len());
        found.push((of | meta.ino(), relative));
        let Ok(list) = fs::read_dir(&dir) else { continue };
        let below = list.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path());
        let most = MOST.saturating_sub(found.len() + todo.len());
        todo.extend(below.take(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_v1_is_the_preferred_controllers() {
        let of = |memory, pids, cpu| {
            let text = format!(
                "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t{cpu}\t1\t1\nmemory\t{memory}\t14\t1\npids\t{pids}\t1\t1\n"
            );
            choose(&text).map(|v1| (v1.hierarchy, v1.controller))
        };
        assert_eq!(of(4, 8, 1), Some((4, v1_controller::MEMORY)));
        assert_eq!(of(0, 8, 1), Some((8, v1_controller::PIDS)));
        assert_eq!(of(0, 0, 1), Some((1, v1_controller::CPU)));
        assert_eq!((of(0, 0, 0), of(300, 0, 0), choose("")), (None, None, None));
    }

    #[test]
    fn mounts_are_found_by_type_and_controller() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /c/cpu cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /c/memory cgroup rw,memory 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n";
        assert_eq!(mount(mounts, "cgroup2", None), Some("/c/unified".into()));
        assert_eq!(mount(mounts, "cgroup", Some("memory")), Some("/c/memory".into()));
        assert_eq!(mount(mounts, "cgroup", Some("pids")), None);
    }
}

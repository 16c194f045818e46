//! Limits of cgroups: the quota of CPU time, the most memory, the rates of I/O, and how often each was reached.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::machine::bounded;
use crate::machine::cgroups::mount;

/// Most cgroups of a hierarchy that are looked at, from the top down.
const MOST: usize = 8192;
/// Most values that are kept.
const MOST_VALUES: usize = 65536;
/// Most levels above a cgroup whose limits are read with its own.
const MOST_LEVELS: usize = 32;
/// Enough for memory.stat, the longest of these files.
const MOST_BYTES: usize = 16 << 10;
/// What v1 says of memory without a limit is the largest number of whole pages; no machine has a quarter of that.
const NO_MEMORY_LIMIT: u64 = 1 << 60;

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Controller {
    Cpu,
    Memory,
    Io,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Io];

    /// Name of the controller on tapes, that of v2.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }

    /// Its name in v1.
    fn of_v1(self) -> &'static str {
        match self {
            Self::Io => "blkio",
            Self::Cpu | Self::Memory => self.name(),
        }
    }
}

/// A value of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// Controller that has the limit.
    pub controller: Controller,
    /// The cgroup's path from the top of its hierarchy.
    pub cgroup: Vec<u8>,
    /// What it is.
    pub name: &'static str,
    /// Device that it is for, major << 20 | minor; 0 = of none.
    pub device: u64,
    /// Value of the limit as on tapes.
    pub value: u64,
}

/// A hierarchy with the controllers that limit in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Number of the hierarchy; 0 = v2.
    pub number: u8,
    /// What limits in it.
    pub controllers: Vec<Controller>,
    mount: PathBuf,
}

/// How a file has its values.
#[derive(Clone, Copy)]
enum Form {
    /// A number alone; `max`, -1 and what stands for no limit are none.
    Number(&'static str),
    /// Time in a period, both us; `max` for the first is no limit.
    Quota,
    /// A line for each device, with one number.
    Device(&'static str),
    /// A line for each device, with `key=number`.
    Devices(&'static [(&'static str, &'static str)]),
    /// Lines of a key and a number, which is multiplied.
    Keys(&'static [(&'static str, &'static str, u64)]),
}

/// A file: its name, its form.
type File = (&'static str, Form);

const REFAULTS: [(&str, &str, u64); 1] = [("workingset_refault_file", "refaulted_pages", 1)];

/// Those that limit, and those that tell what came of it, of v1.
fn files_v1(controller: Controller) -> (&'static [File], &'static [File]) {
    match controller {
        Controller::Cpu => (
            &[("cpu.cfs_quota_us", Form::Number("quota_us"))],
            &[
                ("cpu.cfs_period_us", Form::Number("period_us")),
                (
                    "cpu.stat",
                    Form::Keys(&[
                        ("nr_periods", "periods", 1),
                        ("nr_throttled", "throttled_periods", 1),
                        ("throttled_time", "throttled_ns", 1),
                    ]),
                ),
            ],
        ),
        Controller::Memory => (
            &[("memory.limit_in_bytes", Form::Number("max"))],
            &[
                ("memory.usage_in_bytes", Form::Number("current")),
                ("memory.failcnt", Form::Number("reached_max")),
                ("memory.oom_control", Form::Keys(&[("oom_kill", "oom_kills", 1)])),
                ("memory.stat", Form::Keys(&REFAULTS)),
            ],
        ),
        Controller::Io => (
            &[
                ("blkio.throttle.read_bps_device", Form::Device("read_bytes_s")),
                ("blkio.throttle.write_bps_device", Form::Device("write_bytes_s")),
                ("blkio.throttle.read_iops_device", Form::Device("reads_s")),
                ("blkio.throttle.write_iops_device", Form::Device("writes_s")),
            ],
            &[],
        ),
    }
}

/// The same of v2.
fn files_v2(controller: Controller) -> (&'static [File], &'static [File]) {
    match controller {
        Controller::Cpu => (
            &[("cpu.max", Form::Quota)],
            &[(
                "cpu.stat",
                Form::Keys(&[
                    ("nr_periods", "periods", 1),
                    ("nr_throttled", "throttled_periods", 1),
                    ("throttled_usec", "throttled_ns", 1000),
                ]),
            )],
        ),
        Controller::Memory => (
            &[
                ("memory.max", Form::Number("max")),
                ("memory.high", Form::Number("high")),
                ("memory.swap.max", Form::Number("swap_max")),
            ],
            &[
                ("memory.current", Form::Number("current")),
                (
                    "memory.events",
                    Form::Keys(&[("max", "reached_max", 1), ("high", "reached_high", 1), ("oom_kill", "oom_kills", 1)]),
                ),
                ("memory.stat", Form::Keys(&REFAULTS)),
            ],
        ),
        Controller::Io => (
            &[(
                "io.max",
                Form::Devices(&[
                    ("rbps", "read_bytes_s"),
                    ("wbps", "write_bytes_s"),
                    ("riops", "reads_s"),
                    ("wiops", "writes_s"),
                ]),
            )],
            &[],
        ),
    }
}

/// The hierarchies in which something can limit, as they are mounted here.
fn hierarchies() -> Vec<Hierarchy> {
    let text = bounded::lines("/proc/cgroups", bounded::LINES).unwrap_or_default();
    let mounts = bounded::lines("/proc/self/mounts", bounded::MOUNTS).unwrap_or_default();
    let mut found: Vec<Hierarchy> = Vec::new();
    for controller in Controller::ALL {
        let at = match number(&text, controller.of_v1()) {
            0 => mount(&mounts, "cgroup2", None).map(|dir| (0, dir)),
            number => mount(&mounts, "cgroup", Some(controller.of_v1())).map(|dir| (number, dir)),
        };
        let Some((number, mount)) = at else { continue };
        match found.iter_mut().find(|hierarchy| hierarchy.number == number) {
            Some(hierarchy) => hierarchy.controllers.push(controller),
            None => found.push(Hierarchy { number, controllers: vec![controller], mount }),
        }
    }
    found
}

/// The number of a controller's hierarchy in the text of /proc/cgroups; 0 = that of v2, or there is none.
fn number(text: &str, name: &str) -> u8 {
    let lines = text.lines().map(|line| line.split_ascii_whitespace());
    let line = lines.into_iter().find(|line| line.clone().next() == Some(name));
    line.and_then(|mut line| line.nth(1)?.parse().ok()).unwrap_or(0)
}

/// What cgroups that have a limit say, of all `hierarchies`.
pub(crate) fn all(hierarchies: &[Hierarchy]) -> Vec<Value> {
    let mut found = Vec::new();
    for hierarchy in hierarchies {
        let mut todo = VecDeque::from([hierarchy.mount.clone()]);
        let mut seen = 0;
        while let Some(dir) = todo.pop_front().filter(|_| seen < MOST && found.len() < MOST_VALUES) {
            seen += 1;
            hierarchy.read(&dir, &mut found);
            let below = fs::read_dir(&dir).into_iter().flatten().flatten();
            let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let mut below: Vec<_> = below.map(|entry| entry.path()).take(MOST.saturating_sub(todo.len())).collect();
            below.sort_unstable();
            todo.extend(below);
        }
    }
    found
}

/// Reads the limits of one cgroup of the hierarchy with this number, and of those above it.
pub(crate) fn of(hierarchies: &[Hierarchy], number: u8, cgroup: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    let Some(hierarchy) = hierarchies.iter().find(|hierarchy| hierarchy.number == number) else { return found };
    let below = Path::new(std::ffi::OsStr::from_bytes(cgroup.strip_prefix(b"/").unwrap_or(cgroup)));
    // no other part of a path would stay below the mount
    if below.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
        for path in below.ancestors().take(MOST_LEVELS) {
            hierarchy.read(&hierarchy.mount.join(path), &mut found);
        }
    }
    found
}

impl Hierarchy {
    fn read(&self, dir: &Path, found: &mut Vec<Value>) {
        let path = dir.strip_prefix(&self.mount).map(|path| Path::new("/").join(path)).unwrap_or_default();
        let cgroup = path.into_os_string().into_vec();
        for controller in &self.controllers {
            let (limits, counts) = if self.number == 0 { files_v2(*controller) } else { files_v1(*controller) };
            let before = found.len();
            let values = |(file, form): &File| {
                let text = bounded::lines(dir.join(file), MOST_BYTES).unwrap_or_default();
                let value = |(name, device, value)| Value {
                    controller: *controller,
                    cgroup: cgroup.clone(),
                    name,
                    device,
                    value,
                };
                form.values(&text).into_iter().map(value).collect::<Vec<_>>()
            };
            found.extend(limits.iter().flat_map(values));
            // v2 has a period without a quota, too
            if found[before..].iter().all(|value| value.name == "period_us") {
                found.truncate(before);
            } else {
                found.extend(counts.iter().flat_map(values));
            }
        }
    }
}

impl Form {
    /// Name, device and value of each number in `text` that is a limit or a count.
    fn values(self, text: &str) -> Vec<(&'static str, u64, u64)> {
        let number = |word: &str| word.parse::<u64>().ok().filter(|number| *number < NO_MEMORY_LIMIT);
        let lines = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        match self {
            Self::Number(name) => number(text.trim()).map(|value| (name, 0, value)).into_iter().collect(),
            Self::Quota => {
                let words = lines.into_iter().next().unwrap_or_default();
                let named = ["quota_us", "period_us"].into_iter().zip(words);
                named.filter_map(|(name, word)| Some((name, 0, number(word)?))).collect()
            }
            Self::Device(name) => lines
                .filter_map(|words| Some((name, device(words.first()?)?, number(words.get(1)?)?)))
                .filter(|(_, _, value)| *value > 0)
                .collect(),
            Self::Devices(keys) => {
                let of = |words: Vec<&str>| {
                    let device = words.first().and_then(|word| device(word));
                    let pairs = words.iter().filter_map(|word| word.split_once('=')).collect::<Vec<_>>();
                    let named = keys.iter().filter_map(|(key, name)| {
                        let (_, word) = pairs.iter().find(|(of, _)| of == key)?;
                        Some((*name, device?, number(word)?))
                    });
                    named.collect::<Vec<_>>()
                };
                lines.flat_map(of).collect()
            }
            Self::Keys(keys) => lines
                .filter_map(|words| {
                    let (_, name, unit) = keys.iter().find(|(key, ..)| words.first() == Some(key))?;
                    Some((*name, 0, words.get(1)?.parse::<u64>().ok()?.saturating_mul(*unit)))
                })
                .collect(),
        }
    }
}

/// `8:16` as on tapes.
fn device(word: &str) -> Option<u64> {
    let (major, minor) = word.split_once(':')?;
    Some(major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?)
}

/// What is known of limits when the recording begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// The hierarchies.
    pub hierarchies: Arc<[Hierarchy]>,
    /// What cgroups with limits say.
    pub values: Vec<Value>,
    /// Whom those of v1 limit.
    pub members: Vec<LimitedProcess>,
}

/// Reads them, of the processes `pids` (on the machine, here).
pub(crate) fn limits(pids: &[(u32, u32)]) -> Limits {
    let hierarchies: Arc<[Hierarchy]> = hierarchies().into();
    let values = all(&hierarchies);
    let members = members(&hierarchies, &values, pids);
    Limits { hierarchies, values, members }
}

/// A process that is in a cgroup of v1 with a limit: its pid, what limits, and the cgroup's path.
pub(crate) type LimitedProcess = (u32, Controller, Vec<u8>);

/// Of `pids` those that `values` limit in hierarchies of v1. That of v2 is known of each task.
fn members(hierarchies: &[Hierarchy], values: &[Value], pids: &[(u32, u32)]) -> Vec<LimitedProcess> {
    let of_v1 = |controller| hierarchies.iter().any(|h| h.number != 0 && h.controllers.contains(&controller));
    let limited: BTreeSet<(Controller, &[u8])> =
        values.iter().filter(|v| of_v1(v.controller)).map(|v| (v.controller, v.cgroup.as_slice())).collect();
    if limited.is_empty() {
        return Vec::new();
    }
    let of = |&(pid, here): &(u32, u32)| {
        let text = bounded::lines(format!("/proc/{here}/cgroup"), bounded::MOUNTS).unwrap_or_default();
        let groups = groups(&text).into_iter();
        groups
            .filter(|(controller, path)| limited.iter().any(|(of, at)| of == controller && is_below(path, at)))
            .map(move |(controller, path)| (pid, controller, path))
            .collect::<Vec<_>>()
    };
    pids.iter().flat_map(of).collect()
}

/// Whether the cgroup `path` is `above`, or below it.
fn is_below(path: &[u8], above: &[u8]) -> bool {
    above == b"/" || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// The cgroups of v1 in the text of /proc/PID/cgroup.
fn groups(text: &str) -> Vec<(Controller, Vec<u8>)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (parts.next(), parts.next()) else { continue };
        let named = Controller::ALL.into_iter().filter(|c| names.split(',').any(|name| name == c.of_v1()));
        found.extend(named.map(|controller| (controller, path.as_bytes().to_vec())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_form() {
        let of = |form: Form, text| form.values(text);
        assert_eq!(of(Form::Number("max"), "4096\n"), [("max", 0, 4096)]);
        assert_eq!((of(Form::Number("max"), "max\n"), of(Form::Number("max"), "-1\n")), (vec![], vec![]));
        assert_eq!(of(Form::Number("max"), "9223372036854771712\n"), []);
        assert_eq!(of(Form::Quota, "20000 100000\n"), [("quota_us", 0, 20_000), ("period_us", 0, 100_000)]);
        assert_eq!(of(Form::Quota, "max 100000\n"), [("period_us", 0, 100_000)]);
        let disk = 8 << 20 | 16;
        assert_eq!(of(Form::Device("reads_s"), "8:16 400\n8:32 0\n"), [("reads_s", disk, 400)]);
        let io_max = files_v2(Controller::Io).0[0].1;
        assert_eq!(
            of(io_max, "8:16 rbps=2097152 wbps=max riops=max wiops=120\n"),
            [("read_bytes_s", disk, 2_097_152), ("writes_s", disk, 120)]
        );
        let stat = files_v2(Controller::Cpu).1[0].1;
        assert_eq!(
            of(stat, "usage_usec 7\nnr_periods 33\nnr_throttled 30\nthrottled_usec 2281040\n"),
            [("periods", 0, 33), ("throttled_periods", 0, 30), ("throttled_ns", 0, 2_281_040_000)]
        );
        for text in ["", "\n", "8:16", "8:16 rbps=", "x y z", "nr_periods"] {
            for form in [Form::Quota, io_max, stat, Form::Device("reads_s"), Form::Number("max")] {
                assert_eq!(of(form, text), [], "{text:?}");
            }
        }
    }

    /// A hierarchy below `root`.
    fn at(root: &Path, number: u8) -> Vec<Hierarchy> {
        vec![Hierarchy { number, controllers: Controller::ALL.to_vec(), mount: root.to_owned() }]
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn only_cgroups_with_a_limit_are_told_of() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/cpu.max", "20000 100000\n"),
            ("a/cpu.stat", "nr_periods 3\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "4096\n"),
            ("c/memory.high", "1048576\n"),
            ("c/memory.events", "low 0\nhigh 5\nmax 0\noom 0\noom_kill 0\n"),
        ] {
            write(root.path(), path, text);
        }
        let found = all(&at(root.path(), 0));
        let name = |cgroup: &[u8]| String::from_utf8_lossy(cgroup).into_owned();
        let short: Vec<_> = found.iter().map(|v| (name(&v.cgroup), v.controller.name(), v.name, v.value)).collect();
        assert_eq!(
            short,
            [
                ("/a".into(), "cpu", "quota_us", 20_000),
                ("/a".into(), "cpu", "period_us", 100_000),
                ("/a".into(), "cpu", "periods", 3),
                ("/c".into(), "memory", "high", 1_048_576),
                ("/c".into(), "memory", "reached_high", 5),
                ("/c".into(), "memory", "reached_max", 0),
                ("/c".into(), "memory", "oom_kills", 0),
            ]
        );
        let names = |path: &[u8]| of(&at(root.path(), 0), 0, path).iter().map(|v| v.name).collect::<Vec<_>>();
        assert_eq!(names(b"/a/b"), ["quota_us", "period_us", "periods"], "the limit of the cgroup above");
        assert_eq!((names(b"/a/../c"), names(b"/../a")), (vec![], vec![]));
        assert_eq!(of(&at(root.path(), 0), 7, b"/a"), [], "no such hierarchy");
    }

    #[test]
    fn members_are_those_below_a_limit() {
        let text = "9:name=systemd:/\n7:blkio:/slow/job\n4:memory:/\n1:cpu,cpuacct:/st-q3\n0::/\n";
        assert_eq!(
            groups(text),
            [
                (Controller::Io, b"/slow/job".to_vec()),
                (Controller::Memory, b"/".to_vec()),
                (Controller::Cpu, b"/st-q3".to_vec())
            ]
        );
        assert!(is_below(b"/slow/job", b"/slow") && is_below(b"/slow", b"/slow") && is_below(b"/x", b"/"));
        assert!(!is_below(b"/slower", b"/slow") && !is_below(b"/", b"/slow"));
    }

    #[test]
    fn hierarchies_are_known_by_number() {
        let text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\nmemory\t0\t14\t1\nblkio\t300\t1\t1\n";
        assert_eq!(
            (number(text, "cpu"), number(text, "memory"), number(text, "blkio"), number("", "cpu")),
            (1, 0, 0, 0)
        );
    }
}

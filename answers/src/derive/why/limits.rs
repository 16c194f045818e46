//! Limits of cgroups on CPU time, memory and I/O, whom they limit and what came of them: rows of the tables `cgroup:limit` and
//! `cgroup:member`, and I/Os by process.

use std::collections::BTreeMap;

use systape_format::families::{CGROUP_LIMIT, CGROUP_MEMBER};
use systape_format::model::{Dict, Session};
use systape_format::tables::TableRows;

use crate::derive::block::flags::Op;
use crate::derive::block::io::Io;
use systape_events::values::devices::Dev;
use systape_events::values::words::{bytes, escaped, share_of_cpus};

/// Most processes, and most cgroups, that are told apart.
const MOST: usize = 1 << 16;

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limited {
    /// Time on CPUs.
    Cpu,
    /// Bytes of memory.
    Memory,
    /// Block I/Os.
    Io,
}

impl Limited {
    const ALL: [(&str, Self); 3] = [("cpu", Self::Cpu), ("memory", Self::Memory), ("io", Self::Io)];

    fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().find(|(of, _)| of.as_bytes() == name).map(|(_, limited)| *limited)
    }
}

/// First and last value of each name and device.
type FirstAndLast = BTreeMap<(String, u64), (u64, u64)>;

/// What a process read and wrote on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskTraffic {
    /// Bytes, and I/Os.
    read: (u64, u64),
    /// See `read`.
    written: (u64, u64),
    /// Time that the disk took, ns.
    ns: u64,
}

/// Limits of cgroups that were reached, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    groups: BTreeMap<(Limited, Vec<u8>), FirstAndLast>,
    /// Cgroups of v1 in which a process was, the last at the end.
    members: BTreeMap<(u32, Limited), Vec<Vec<u8>>>,
    /// The cgroup that each task's process has on the tape, by pid.
    of_tape: BTreeMap<u32, u64>,
    /// Their paths.
    paths: BTreeMap<u64, Vec<u8>>,
    moved: BTreeMap<(u32, Dev), DiskTraffic>,
    /// What I/Os of nobody moved, by file and disk: a limit has a thread of the kernel submit what it held back.
    unowned: BTreeMap<(Vec<u8>, Dev), DiskTraffic>,
    page: u64,
    /// The rows are of the whole time that is looked at, and of no more.
    pub counts: bool,
}

/// The sum of `key`; None: there is no room for more.
fn room<K: Ord>(sums: &mut BTreeMap<K, DiskTraffic>, key: K) -> Option<&mut DiskTraffic> {
    (sums.len() < MOST || sums.contains_key(&key)).then(|| sums.entry(key).or_default())
}

impl Limits {
    /// Makes those of a tape; `counts`: all of it is looked at.
    pub fn new(session: &Session, counts: bool) -> Self {
        Self { page: session.page_size.into(), counts, ..Self::default() }
    }

    /// Adds the rows of `table`, if it is one of these tables.
    pub fn add(&mut self, table: &TableRows, dict: &Dict) {
        if table.def.name == CGROUP_LIMIT.name {
            self.values(table);
        } else if table.def.name == CGROUP_MEMBER.name {
            self.members(table, dict);
        }
    }

    fn values(&mut self, table: &TableRows) {
        let (Some(controllers), Some(cgroups), Some(names)) =
            (table.column("controller"), table.column("cgroup"), table.column("name"))
        else {
            return;
        };
        let (Some(devices), Some(values)) = (table.column("device"), table.column("value")) else { return };
        for (row, value) in values.iter().enumerate() {
            let string = |column: &[u64]| column.get(row).and_then(|at| table.string(*at)).map(<[u8]>::to_vec);
            let limited = string(controllers).and_then(|name| Limited::of(&name));
            let (Some(limited), Some(cgroup), Some(name)) = (limited, string(cgroups), string(names)) else { continue };
            let key = (limited, cgroup);
            if self.groups.len() >= MOST && !self.groups.contains_key(&key) {
                continue;
            }
            let name = (String::from_utf8_lossy(&name).into_owned(), devices.get(row).copied().unwrap_or(0));
            self.groups.entry(key).or_default().entry(name).or_insert((*value, *value)).1 = *value;
        }
    }

    fn members(&mut self, table: &TableRows, dict: &Dict) {
        let (Some(tasks), Some(controllers), Some(cgroups)) =
            (table.column("task"), table.column("controller"), table.column("cgroup"))
        else {
            return;
        };
        for (row, task) in tasks.iter().enumerate() {
            let string = |column: &[u64]| column.get(row).and_then(|at| table.string(*at));
            let Some(task) = dict.task_of(*task) else { continue };
            let limited = string(controllers).and_then(Limited::of);
            let (Some(limited), Some(cgroup)) = (limited, string(cgroups)) else { continue };
            let key = (task.pid, limited);
            if self.members.len() >= MOST && !self.members.contains_key(&key) {
                continue;
            }
            let of = self.members.entry(key).or_default();
            if of.last().is_none_or(|last| last != cgroup) {
                of.push(cgroup.to_vec());
            }
        }
    }

    /// Adds the cgroups of a segment's tasks, if anything is limited.
    pub fn tasks(&mut self, dict: &Dict, session: &Session) {
        if self.groups.is_empty() {
            return;
        }
        for task in &dict.tasks {
            if self.of_tape.len() >= MOST && !self.of_tape.contains_key(&task.pid) {
                continue;
            }
            self.of_tape.insert(task.pid, task.cgroup_id);
            // few cgroups, and many tasks of each
            if !self.paths.contains_key(&task.cgroup_id)
                && let Some(path) = session.cgroup_path(task.cgroup_id)
            {
                self.paths.insert(task.cgroup_id, path.to_vec());
            }
        }
    }

    /// Adds an I/O.
    pub fn io(&mut self, io: &Io<'_>) {
        let moved = match (io.owner, io.file.and_then(|file| file.path.as_ref())) {
            (Some(owner), _) => room(&mut self.moved, (owner.pid, io.io.dev)),
            (None, Some(path)) => room(&mut self.unowned, (path.clone(), io.io.dev)),
            (None, None) => None,
        };
        let Some(moved) = moved else { return };
        let way = if Op::of(io.io.flags) == Op::Write { &mut moved.written } else { &mut moved.read };
        (way.0, way.1) = (way.0.saturating_add(io.io.bytes.into()), way.1 + 1);
        moved.ns = moved.ns.saturating_add(io.latency().unwrap_or(0));
    }

    /// What I/Os of nobody moved of a file, by disk.
    fn moved_of<'p>(&'p self, file: &'p [u8]) -> impl Iterator<Item = (Dev, &'p DiskTraffic)> {
        let all = self.unowned.range((file.to_vec(), 0)..=(file.to_vec(), Dev::MAX));
        all.map(|((_, dev), moved)| (*dev, moved))
    }

    /// The cgroups with a limit that a process is in, the innermost first.
    fn of(&self, pid: u32, limited: Limited) -> Vec<(&[u8], &FirstAndLast)> {
        let own = self.members.get(&(pid, limited)).and_then(|of| of.last()).map(Vec::as_slice);
        let of_tape = || self.of_tape.get(&pid).and_then(|id| self.paths.get(id)).map(Vec::as_slice);
        let above = std::iter::successors(own.or_else(of_tape), |path| {
            let end = path.iter().rposition(|byte| *byte == b'/')?;
            (path.len() > 1).then(|| &path[..end.max(1)])
        });
        let group = |path: &[u8]| self.groups.get_key_value(&(limited, path.to_vec()));
        above.filter_map(group).map(|((_, path), values)| (path.as_slice(), values)).collect()
    }

    /// What a process read and wrote, by disk.
    fn moved(&self, pid: u32) -> impl Iterator<Item = (Dev, &DiskTraffic)> {
        self.moved.range((pid, 0)..=(pid, Dev::MAX)).map(|((_, dev), moved)| (*dev, moved))
    }

    /// The one of the processes `pids` that are in the same cgroups.
    fn of_all<'p>(&self, pids: impl IntoIterator<Item = &'p u32>, limited: Limited) -> Vec<(&[u8], &FirstAndLast)> {
        let mut of = pids.into_iter().map(|pid| self.of(*pid, limited));
        let first = of.next().unwrap_or_default();
        of.fold(first, |common, of| {
            common.into_iter().filter(|(path, _)| of.iter().any(|(at, _)| at == path)).collect()
        })
    }

    /// `/pod7 (20 % of a CPU) was used up in 30 of 33 periods`: the quota that the processes have in common; None: not known.
    pub fn quota(&self, pids: &[u32]) -> Option<String> {
        let groups = self.of_all(pids, Limited::Cpu);
        let grew = |values: &FirstAndLast| self.grown(values, "throttled_periods").unwrap_or(0);
        let most = groups.iter().map(|(_, values)| grew(values)).max()?;
        let (path, values) = groups.into_iter().find(|(_, values)| grew(values) == most)?;
        let (quota, period) = (last(values, "quota_us")?, last(values, "period_us")?);
        let in_periods = match self.grown(values, "periods") {
            Some(periods) if most > 0 => format!(" in {{mark}}{most} of {{mark}}{periods} periods"),
            _ => String::new(),
        };
        Some(format!("{} ({}) was used up{in_periods}", escaped(path), share_of_cpus(quota, period)))
    }

    /// `the I/O limit of /slow (4.0 MB/s of writes)`: what held back the processes' I/Os, and those of nobody of `file`, for most of `ns`,
    /// of which their disks took the smaller part; None: nothing is known that did.
    pub fn io_limit<'p>(&self, pids: impl IntoIterator<Item = &'p u32> + Copy, file: &[u8], ns: u64) -> Option<String> {
        let groups = self.of_all(pids, Limited::Io);
        if groups.is_empty() {
            return None;
        }
        let mut disks: BTreeMap<Dev, DiskTraffic> = BTreeMap::new();
        for (dev, moved) in pids.into_iter().flat_map(|pid| self.moved(*pid)).chain(self.moved_of(file)) {
            let sum = disks.entry(dev).or_default();
            (sum.read.0, sum.read.1) = (sum.read.0.saturating_add(moved.read.0), sum.read.1 + moved.read.1);
            (sum.written.0, sum.written.1) =
                (sum.written.0.saturating_add(moved.written.0), sum.written.1 + moved.written.1);
            sum.ns = sum.ns.saturating_add(moved.ns);
        }
        for (path, values) in groups {
            for ((name, device), (_, value)) in values {
                let Some(moved) = disks.get(&Dev::try_from(*device).unwrap_or(0)).filter(|moved| moved.ns < ns / 2)
                else {
                    continue;
                };
                let (count, words) = match name.as_str() {
                    "read_bytes_s" => (moved.read.0, format!("{}/s of reads", bytes(*value))),
                    "write_bytes_s" => (moved.written.0, format!("{}/s of writes", bytes(*value))),
                    "reads_s" => (moved.read.1, format!("{value} reads a second")),
                    "writes_s" => (moved.written.1, format!("{value} writes a second")),
                    _ => continue,
                };
                // so long they take at that rate
                let least = u128::from(count) * 1_000_000_000 / u128::from((*value).max(1));
                if least >= u128::from(ns / 2) {
                    return Some(format!("the I/O limit of {} ({words})", escaped(path)));
                }
            }
        }
        None
    }

    /// The memory limit that made processes read again: `as the memory limit of /small (48.0 MiB) had no room for what was read before`: why the processes read most pages of files again;
    /// None: they did not, or nothing is known of a limit.
    pub(crate) fn memory_limit<'p>(&self, pids: impl IntoIterator<Item = &'p u32> + Copy) -> Option<String> {
        let groups = self.of_all(pids, Limited::Memory);
        if groups.is_empty() {
            return None;
        }
        let read: u64 = pids.into_iter().flat_map(|pid| self.moved(*pid)).map(|(_, moved)| moved.read.0).sum();
        let (path, limit) = groups.into_iter().find_map(|(path, values)| {
            let again = self.grown(values, "refaulted_pages")?.saturating_mul(self.page);
            let reached = |name: String| self.grown(values, &name).is_some_and(|times| times > 0);
            let limit = ["max", "high"].into_iter().find(|limit| reached(format!("reached_{limit}")));
            let limit = limit.filter(|_| again > 0 && again >= read / 2)?;
            Some((path, last(values, limit)?))
        })?;
        Some(format!(
            "as the memory limit of {} ({}) had no room for what was read before",
            escaped(path),
            bytes(limit)
        ))
    }

    /// `the memory limit of /small (48.0 MiB)` for which processes of its cgroup were killed; None: no limit is known to be the reason.
    pub fn oom(&self, pid: u32) -> Option<String> {
        let groups = self.of(pid, Limited::Memory);
        let (path, values) =
            groups.into_iter().find(|(_, values)| self.grown(values, "oom_kills").is_some_and(|kills| kills > 0))?;
        Some(format!("the memory limit of {} ({})", escaped(path), bytes(last(values, "max")?)))
    }

    /// By how much a count grew in the time that is looked at; None: not known.
    fn grown(&self, values: &FirstAndLast, name: &str) -> Option<u64> {
        let (first, last) = values.get(&(name.to_owned(), 0)).filter(|_| self.counts)?;
        Some(last.saturating_sub(*first))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.groups.values().map(BTreeMap::len).sum()
    }
}

fn last(values: &FirstAndLast, name: &str) -> Option<u64> {
    values.get(&(name.to_owned(), 0)).map(|(_, last)| *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const DISK: Dev = 8 << 20;

    /// Process 7 in /pods/a, 8 in /other, with limits on each.
    fn limits() -> Limits {
        let values = |all: &[(&str, u64, u64)]| {
            let device = |name: &str| if name.ends_with("_s") { u64::from(DISK) } else { 0 };
            all.iter().map(|(name, first, last)| (((*name).to_owned(), device(name)), (*first, *last))).collect()
        };
        let cpu = values(&[
            ("quota_us", 20_000, 20_000),
            ("period_us", 100_000, 100_000),
            ("periods", 10, 43),
            ("throttled_periods", 5, 35),
        ]);
        let idle =
            values(&[("quota_us", 250_000, 250_000), ("period_us", 100_000, 100_000), ("throttled_periods", 9, 9)]);
        let io = values(&[("write_bytes_s", 4 * MIB, 4 * MIB), ("reads_s", 9, 9)]);
        let memory = values(&[
            ("max", 48 * MIB, 48 * MIB),
            ("reached_max", 3, 90),
            ("refaulted_pages", 100, 100 + 4096),
            ("oom_kills", 0, 1),
        ]);
        let groups = [
            ((Limited::Cpu, "/pods"), cpu),
            ((Limited::Cpu, "/pods/a"), idle),
            ((Limited::Io, "/pods/a"), io),
            ((Limited::Memory, "/pods/a"), memory),
        ];
        let member = |pid, limited, path: &str| ((pid, limited), vec![path.as_bytes().to_vec()]);
        Limits {
            groups: groups.into_iter().map(|((limited, path), of)| ((limited, path.as_bytes().to_vec()), of)).collect(),
            members: [
                member(7, Limited::Cpu, "/pods/a"),
                member(7, Limited::Io, "/pods/a"),
                member(7, Limited::Memory, "/pods/a"),
                member(8, Limited::Cpu, "/other"),
                member(9, Limited::Cpu, "/pods"),
            ]
            .into(),
            page: 4096,
            counts: true,
            ..Limits::default()
        }
    }

    impl Limits {
        /// Note of process `pid`, whose cgroup reached its limit, and what it read was read again.
        pub(crate) fn short_of_memory(pid: u32, cgroup: &str, max: u64) -> Self {
            let values = [("max", max, max), ("reached_max", 0, 9), ("refaulted_pages", 0, 4096)];
            let values = values.map(|(name, first, last)| ((name.to_owned(), 0), (first, last)));
            Self {
                groups: [((Limited::Memory, cgroup.as_bytes().to_vec()), values.into())].into(),
                members: [((pid, Limited::Memory), vec![cgroup.as_bytes().to_vec()])].into(),
                page: 4096,
                counts: true,
                ..Self::default()
            }
        }
    }

    #[test]
    fn the_quota_that_was_used_up_is_named() {
        let limits = limits();
        let text = "/pods (20 % of a CPU) was used up in {mark}30 of {mark}33 periods";
        assert_eq!(limits.quota(&[7]).as_deref(), Some(text), "not the one that was never reached");
        assert_eq!(limits.quota(&[7, 9]).as_deref(), Some(text), "the one they share");
        assert_eq!((limits.quota(&[8]), limits.quota(&[7, 8]), limits.quota(&[1])), (None, None, None));
        let part = Limits { counts: false, ..limits };
        assert_eq!(part.quota(&[9]).as_deref(), Some("/pods (20 % of a CPU) was used up"));
    }

    #[test]
    fn the_cgroup_on_the_tape_is_that_of_v2() {
        let of_v2 = Limits {
            members: BTreeMap::new(),
            of_tape: [(7, 11)].into(),
            paths: [(11, b"/pods/a".to_vec())].into(),
            ..limits()
        };
        assert!(of_v2.quota(&[7]).is_some_and(|text| text.starts_with("/pods (20 %")));
        assert_eq!(of_v2.quota(&[8]), None);
    }

    #[test]
    fn a_limit_of_io_held_calls_back_only_if_its_rate_was_reached_and_the_disk_was_fast() {
        let of = |moved: DiskTraffic, ns| {
            Limits { moved: [((7, DISK), moved)].into(), ..limits() }.io_limit(&[7], b"/f", ns)
        };
        let wrote = DiskTraffic { written: (3 * MIB, 12), ns: 5_000_000, ..DiskTraffic::default() };
        let text = "the I/O limit of /pods/a (4.0 MiB/s of writes)";
        assert_eq!(of(wrote, 700_000_000).as_deref(), Some(text));
        assert_eq!(of(wrote, 7_000_000_000), None, "far from the limit");
        assert_eq!(of(DiskTraffic { ns: 600_000_000, ..wrote }, 700_000_000), None, "the disk was slow");
        // what the limit held back is submitted by nobody
        let unowned = |file: &[u8]| Limits { unowned: [((file.to_vec(), DISK), wrote)].into(), ..limits() };
        assert_eq!(unowned(b"/f").io_limit(&[7], b"/f", 700_000_000).as_deref(), Some(text));
        assert_eq!(unowned(b"/g").io_limit(&[7], b"/f", 700_000_000), None, "of another file");
        assert_eq!(unowned(b"/f").io_limit(&[9], b"/f", 700_000_000), None, "of another cgroup");
        let read = of(DiskTraffic { read: (MIB, 9), ..DiskTraffic::default() }, 900_000_000);
        assert_eq!(read.as_deref(), Some("the I/O limit of /pods/a (9 reads a second)"));
    }

    #[test]
    fn a_limit_of_memory_is_named_only_if_pages_were_read_again() {
        let of = |read| Limits {
            moved: [((7, DISK), DiskTraffic { read: (read, 9), ..DiskTraffic::default() })].into(),
            ..limits()
        };
        assert_eq!(
            of(20 * MIB).memory_limit(&[7]).as_deref(),
            Some("as the memory limit of /pods/a (48.0 MiB) had no room for what was read before")
        );
        assert_eq!(of(200 * MIB).memory_limit(&[7]), None, "most was read once");
        assert_eq!(limits().oom(7).as_deref(), Some("the memory limit of /pods/a (48.0 MiB)"));
        assert_eq!(limits().oom(8), None);
    }
}

//! Address spaces: the executable regions of every process, at the moment that the changes applied so far have reached.
//!
//! Plain values in, plain values out: no file, no kernel.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use super::FileNumber;

/// Kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file.
    File(FileNumber),
    /// The vDSO of 64-bit processes.
    Vdso,
    /// Memory without a file, or with a nameless file that is not ELF: code made at run time.
    Jit,
    /// A region without a name: a vDSO of other processes, a file over the limit.
    Unknown,
}

/// Executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// File offset of `start`.
    pub pgoff: u64,
    /// Kind of memory behind the mapping.
    pub backing: Backing,
}

impl Region {
    /// Offset of an address of this region in the tape's form: in the file or vDSO; the address itself if there is
    /// neither.
    pub fn offset(&self, address: u64) -> u64 {
        match self.backing {
            Backing::File(_) | Backing::Vdso => address.wrapping_sub(self.start).wrapping_add(self.pgoff),
            Backing::Jit | Backing::Unknown => address,
        }
    }

    /// The part from `start` to `end`, both within.
    fn part(&self, start: u64, end: u64) -> Self {
        Self { start, end, pgoff: self.pgoff.wrapping_add(start.wrapping_sub(self.start)), ..*self }
    }
}

/// A change of an address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When, CLOCK_MONOTONIC ns.
    pub time: u64,
    /// What changed.
    pub kind: ChangeKind,
}

/// Kind of a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// A region appeared; overlapped ones are gone.
    Map {
        /// Process.
        pid: u32,
        /// The region.
        region: Region,
    },
    /// All regions are gone.
    Exec {
        /// Process.
        pid: u32,
    },
    /// A process was forked, with a copy of the regions of another.
    Fork {
        /// The new one.
        pid: u32,
        /// The other.
        ppid: u32,
    },
    /// The first task of a process ended.
    Exit {
        /// Process.
        pid: u32,
    },
    /// A reading of /proc: all regions.
    Scan {
        /// Process.
        pid: u32,
        /// The regions.
        regions: Vec<Region>,
    },
}

/// Bounds of the mappings that are kept.
#[derive(Clone, Copy, Debug)]
pub struct SpaceLimits {
    /// Most processes.
    pub processes: usize,
    /// Most regions of a process.
    pub regions: usize,
    /// Most regions of all processes; shared ones count once. A region takes about 60 bytes.
    pub total: usize,
}

impl Default for SpaceLimits {
    /// The kernel's own limit of processes, its default limit of mappings, some 100 MB in all.
    fn default() -> Self {
        let pid_max =
            std::fs::read_to_string("/proc/sys/kernel/pid_max").ok().and_then(|text| text.trim().parse().ok());
        Self { processes: pid_max.unwrap_or(4 << 20).min(4 << 20), regions: 65_536, total: 1 << 20 }
    }
}

/// Regions by their start, without overlaps; counts itself in a common total.
#[derive(Debug)]
struct Regions {
    map: BTreeMap<u64, Region>,
    total: Arc<AtomicUsize>,
}

impl Regions {
    fn new(total: &Arc<AtomicUsize>) -> Self {
        Self { map: BTreeMap::new(), total: Arc::clone(total) }
    }

    fn find(&self, address: u64) -> Option<&Region> {
        self.map.range(..=address).next_back().map(|(_, region)| region).filter(|region| address < region.end)
    }

    fn insert(&mut self, mut region: Region) {
        let before = self.map.len();
        self.cut(region.start, region.end);
        if region.backing == Backing::Jit {
            // runtimes make memory executable page by page; one region says the same
            if let Some((start, last)) = self.map.range(..region.start).next_back().map(|(start, last)| (*start, *last))
                && last.backing == Backing::Jit
                && last.end == region.start
            {
                self.map.remove(&start);
                region.start = start;
            }
            if let Some(next) = self.map.get(&region.end).copied().filter(|next| next.backing == Backing::Jit) {
                self.map.remove(&next.start);
                region.end = next.end;
            }
        }
        self.map.insert(region.start, region);
        self.count(before);
    }

    /// Removes everything from `start` to `end`.
    fn cut(&mut self, start: u64, end: u64) {
        if let Some(first) = self.map.range_mut(..start).next_back().map(|(_, first)| first)
            && first.end > start
        {
            let whole = *first;
            *first = whole.part(whole.start, start);
            if whole.end > end {
                self.map.insert(end, whole.part(end, whole.end));
            }
        }
        while let Some((at, region)) = self.map.range(start..end).next().map(|(at, region)| (*at, *region)) {
            self.map.remove(&at);
            if region.end > end {
                self.map.insert(end, region.part(end, region.end));
            }
        }
    }

    /// Removes every region that overlaps `start` to `end`, as a whole.
    fn remove(&mut self, start: u64, end: u64) {
        let before = self.map.len();
        while let Some((at, _)) = self.map.range(..end).next_back().filter(|(_, region)| region.end > start) {
            let at = *at;
            self.map.remove(&at);
        }
        self.count(before);
    }

    fn count(&self, before: usize) {
        let now = self.map.len();
        if now >= before {
            self.total.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.total.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

impl Clone for Regions {
    fn clone(&self) -> Self {
        let copy = Self { map: self.map.clone(), total: Arc::clone(&self.total) };
        copy.count(0);
        copy
    }
}

impl Drop for Regions {
    fn drop(&mut self) {
        self.total.fetch_sub(self.map.len(), Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Space {
    regions: Arc<Regions>,
    /// Time of its regions: fork, exec or scan. Earlier changes belong to the regions before.
    since: u64,
    /// When its first task ended.
    ended: Option<u64>,
}

/// All address spaces.
#[derive(Debug)]
pub(crate) struct Spaces {
    spaces: FxHashMap<u32, Space>,
    limits: SpaceLimits,
    total: Arc<AtomicUsize>,
    dropped: u64,
    full: Vec<u32>,
}

/// Most processes remembered as full until the caller takes them.
const FULL_MAX: usize = 64;

impl Spaces {
    /// Makes address spaces without processes.
    pub(crate) fn new(limits: SpaceLimits) -> Self {
        Self { spaces: FxHashMap::default(), limits, total: Arc::default(), dropped: 0, full: Vec::new() }
    }

    /// Applies one change. Changes come in order of time; a late one is left out where a newer one took its place.
    pub(crate) fn apply(&mut self, change: &Change) {
        let time = change.time;
        match &change.kind {
            ChangeKind::Map { pid, region } => self.map(*pid, time, *region),
            ChangeKind::Exec { pid } => self.renew(*pid, time, None),
            ChangeKind::Fork { pid, ppid } => match self.spaces.get(ppid).map(|parent| Arc::clone(&parent.regions)) {
                Some(regions) => self.renew(*pid, time, Some(regions)),
                // made by a process that is not known, in place of one that had the number before
                None if self.spaces.get(pid).is_some_and(|space| space.since < time) => drop(self.spaces.remove(pid)),
                None => {}
            },
            ChangeKind::Exit { pid } => {
                if let Some(space) = self.spaces.get_mut(pid).filter(|space| space.since <= time) {
                    space.ended = Some(time);
                }
            }
            ChangeKind::Scan { pid, regions } => {
                self.renew(*pid, time, None);
                for region in regions {
                    self.map(*pid, time, *region);
                }
            }
        }
    }

    /// Gives a process new regions, unless its own are newer.
    fn renew(&mut self, pid: u32, time: u64, regions: Option<Arc<Regions>>) {
        let known = self.spaces.len();
        let regions = regions.unwrap_or_else(|| Arc::new(Regions::new(&self.total)));
        match self.spaces.get_mut(&pid) {
            Some(space) if space.since > time => {}
            Some(space) => *space = Space { regions, since: time, ended: None },
            None if known < self.limits.processes => {
                self.spaces.insert(pid, Space { regions, since: time, ended: None });
            }
            None => self.dropped += 1,
        }
    }

    fn map(&mut self, pid: u32, time: u64, region: Region) {
        if region.start >= region.end {
            return;
        }
        if !self.spaces.contains_key(&pid) {
            // a process whose beginning was not seen: this is not all it has, but better than nothing
            self.renew(pid, 0, None);
        }
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        if time < space.since {
            return;
        }
        // its first task may have ended, not the process
        space.ended = None;
        if space.regions.find(region.start) == Some(&region) {
            return;
        }
        let length = space.regions.map.len();
        // regions that are shared are copied to be changed
        let copied = if Arc::strong_count(&space.regions) > 1 { length } else { 0 };
        let total = self.total.load(Ordering::Relaxed) + copied;
        if length >= self.limits.regions || total >= self.limits.total {
            self.dropped += 1;
            if self.full.len() < FULL_MAX && !self.full.contains(&pid) {
                self.full.push(pid);
            }
            // what stood there is gone all the same; rather nothing than something wrong
            if total >= self.limits.total && copied > 0 {
                space.regions = Arc::new(Regions::new(&self.total));
            } else {
                Arc::make_mut(&mut space.regions).remove(region.start, region.end);
            }
            return;
        }
        Arc::make_mut(&mut space.regions).insert(region);
    }

    /// The region of a process at an address.
    pub(crate) fn find(&self, pid: u32, address: u64) -> Option<&Region> {
        self.spaces.get(&pid)?.regions.find(address)
    }

    /// All regions of a process, by address.
    pub(crate) fn regions_of(&self, pid: u32) -> impl Iterator<Item = &Region> {
        self.spaces.get(&pid).into_iter().flat_map(|space| space.regions.map.values())
    }

    /// Whether the process has an entry.
    pub(crate) fn is_known(&self, pid: u32) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Drops processes that ended before `before`, unless `alive` says that other tasks of it live on.
    pub(crate) fn sweep(&mut self, before: u64, alive: impl Fn(u32) -> bool) {
        self.spaces.retain(|pid, space| space.ended.is_none_or(|ended| ended >= before) || alive(*pid));
    }

    /// Number of processes and regions beyond the limits.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Processes with no room for a region since the last call. Unmapped regions may fill it: /proc has the current
    /// ones.
    pub(crate) fn take_full(&mut self) -> Vec<u32> {
        mem::take(&mut self.full)
    }

    /// Number of regions; shared ones count once.
    #[cfg(test)]
    pub(crate) fn regions(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(start: u64, end: u64, pgoff: u64, id: u32) -> Region {
        Region { start, end, pgoff, backing: Backing::File(FileNumber(id)) }
    }

    fn spaces() -> Spaces {
        Spaces::new(SpaceLimits { processes: 4, regions: 8, total: 16 })
    }

    fn map(spaces: &mut Spaces, time: u64, pid: u32, region: Region) {
        spaces.apply(&Change { time, kind: ChangeKind::Map { pid, region } });
    }

    fn apply(spaces: &mut Spaces, time: u64, kind: ChangeKind) {
        spaces.apply(&Change { time, kind });
    }

    fn all(spaces: &Spaces, pid: u32) -> Vec<Region> {
        spaces.regions_of(pid).copied().collect()
    }

    #[test]
    fn an_address_is_found_by_its_region() {
        let mut spaces = spaces();
        map(&mut spaces, 1, 7, file(0x1000, 0x3000, 0x400, 1));
        assert_eq!(spaces.find(7, 0xfff), None);
        assert_eq!(spaces.find(7, 0x3000), None);
        assert_eq!(spaces.find(8, 0x1000), None);
        let region = spaces.find(7, 0x2fff).unwrap();
        assert_eq!(region.offset(0x2fff), 0x23ff);
        let jit = Region { start: 0x9000, end: 0xa000, pgoff: 0, backing: Backing::Jit };
        map(&mut spaces, 1, 7, jit);
        assert_eq!(spaces.find(7, 0x9010).unwrap().offset(0x9010), 0x9010);
    }

    #[test]
    fn a_new_region_cuts_what_it_overlaps() {
        // in the middle: both ends stay, with their own offsets
        let mut s = spaces();
        map(&mut s, 1, 7, file(0x1000, 0x5000, 0, 1));
        map(&mut s, 2, 7, file(0x2000, 0x3000, 0x100, 2));
        assert_eq!(
            all(&s, 7),
            [file(0x1000, 0x2000, 0, 1), file(0x2000, 0x3000, 0x100, 2), file(0x3000, 0x5000, 0x2000, 1)]
        );
        assert_eq!(s.find(7, 0x3004).unwrap().offset(0x3004), 0x2004);
        // over the end of one, all of another, the beginning of a third
        map(&mut s, 3, 7, file(0x1800, 0x4000, 0, 3));
        assert_eq!(
            all(&s, 7),
            [file(0x1000, 0x1800, 0, 1), file(0x1800, 0x4000, 0, 3), file(0x4000, 0x5000, 0x3000, 1)]
        );
        // exactly one; touching neighbours stay
        map(&mut s, 4, 7, file(0x1800, 0x4000, 0, 4));
        assert_eq!(all(&s, 7).len(), 3);
        // everything
        map(&mut s, 5, 7, file(0, u64::MAX, 0, 5));
        assert_eq!(all(&s, 7), [file(0, u64::MAX, 0, 5)]);
        assert_eq!(s.regions(), 1);
    }

    #[test]
    fn any_order_of_regions_agrees_with_a_table_of_pages() {
        let mut spaces = Spaces::new(SpaceLimits { processes: 1, regions: 1000, total: 1000 });
        let mut pages = vec![None; 64];
        let mut random = 12345u64;
        for time in 1..3000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (start, length) = ((random >> 33) % 60, 1 + (random >> 45) % 4);
            let backing = if random >> 60 < 4 { Backing::Jit } else { Backing::File(FileNumber(time as u32)) };
            map(&mut spaces, time, 1, Region { start, end: start + length, pgoff: 0, backing });
            for page in start..start + length {
                let offset = if backing == Backing::Jit { page } else { page - start };
                pages[page as usize] = Some((backing, offset));
            }
            for (page, expect) in pages.iter().enumerate() {
                let found = spaces.find(1, page as u64).map(|r| (r.backing, r.offset(page as u64)));
                assert_eq!(found, *expect, "page {page} at {time}");
            }
            assert_eq!(spaces.regions(), all(&spaces, 1).len());
        }
    }

    #[test]
    fn a_fork_copies_and_each_goes_its_way() {
        let mut s = spaces();
        map(&mut s, 1, 7, file(0x1000, 0x2000, 0, 1));
        apply(&mut s, 2, ChangeKind::Fork { pid: 8, ppid: 7 });
        assert_eq!(s.find(8, 0x1000), s.find(7, 0x1000));
        assert_eq!(s.regions(), 1, "shared");
        map(&mut s, 3, 8, file(0x5000, 0x6000, 0, 2));
        map(&mut s, 4, 7, file(0x1000, 0x2000, 0, 3));
        assert_eq!(s.find(7, 0x5000), None);
        assert_eq!(s.find(8, 0x1000).unwrap().backing, Backing::File(FileNumber(1)));
        apply(&mut s, 5, ChangeKind::Exec { pid: 8 });
        assert_eq!(all(&s, 8), []);
        assert_eq!(all(&s, 7).len(), 1);
        assert_eq!(s.regions(), 1);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut s = spaces();
        map(&mut s, 1, 7, file(0x1000, 0x2000, 0, 1));
        map(&mut s, 1, 9, file(0x9000, 0xa000, 0, 9));
        apply(&mut s, 5, ChangeKind::Exit { pid: 7 });
        assert!(s.find(7, 0x1000).is_some(), "stacks from before the end may follow");
        s.sweep(5, |_| false);
        assert!(s.is_known(7));
        s.sweep(6, |pid| pid == 7);
        assert!(s.is_known(7), "its first task ended, others go on");
        // used again before it is swept
        apply(&mut s, 6, ChangeKind::Fork { pid: 7, ppid: 9 });
        s.sweep(100, |_| false);
        assert_eq!(all(&s, 7), [file(0x9000, 0xa000, 0, 9)]);
        // the end of the one before, told late
        apply(&mut s, 5, ChangeKind::Exit { pid: 7 });
        s.sweep(100, |_| false);
        assert!(s.is_known(7));
        // by a process that is not known
        apply(&mut s, 7, ChangeKind::Fork { pid: 7, ppid: 1000 });
        assert!(!s.is_known(7));
        apply(&mut s, 8, ChangeKind::Exit { pid: 9 });
        s.sweep(9, |_| false);
        assert_eq!(s.regions(), 0);
    }

    #[test]
    fn what_comes_late_does_not_replace_what_is_newer() {
        let mut s = spaces();
        map(&mut s, 1, 9, file(0x9000, 0xa000, 0, 9));
        apply(&mut s, 10, ChangeKind::Exec { pid: 7 });
        map(&mut s, 11, 7, file(0x1000, 0x2000, 0, 1));
        apply(&mut s, 5, ChangeKind::Fork { pid: 7, ppid: 9 });
        map(&mut s, 6, 7, file(0x9000, 0xa000, 0, 9));
        apply(&mut s, 7, ChangeKind::Scan { pid: 7, regions: vec![] });
        assert_eq!(all(&s, 7), [file(0x1000, 0x2000, 0, 1)]);
    }

    #[test]
    fn a_scan_replaces_everything() {
        let mut s = spaces();
        map(&mut s, 1, 7, file(0x1000, 0x2000, 0, 1));
        apply(&mut s, 5, ChangeKind::Scan { pid: 7, regions: vec![file(0x3000, 0x4000, 0, 2)] });
        assert_eq!(all(&s, 7), [file(0x3000, 0x4000, 0, 2)]);
        // a process without user memory is known, too
        apply(&mut s, 5, ChangeKind::Scan { pid: 2, regions: vec![] });
        assert!(s.is_known(2));
    }

    #[test]
    fn limits_hold_and_count() {
        let mut s = spaces();
        for i in 0..10 {
            map(&mut s, 1, 7, file(i * 0x2000, i * 0x2000 + 0x1000, 0, 1));
        }
        assert_eq!((all(&s, 7).len(), s.dropped()), (8, 2));
        assert_eq!(s.take_full(), [7]);
        // what did not fit still takes away what stood there
        map(&mut s, 2, 7, file(0, 0x1000, 0, 2));
        assert_eq!(s.find(7, 0), None);
        map(&mut s, 3, 7, file(0, 0x1000, 0, 2));
        assert!(s.find(7, 0).is_some());

        for pid in 8..20 {
            apply(&mut s, 4, ChangeKind::Fork { pid, ppid: 7 });
        }
        assert_eq!(s.spaces.len(), 4);
        assert_eq!(s.dropped(), 3 + 9);
        // of all together: copies that differ count
        map(&mut s, 5, 8, file(0x2000, 0x3000, 0, 3));
        map(&mut s, 5, 9, file(0x2000, 0x3000, 0, 3));
        map(&mut s, 5, 10, file(0x2000, 0x3000, 0, 3));
        assert!(s.regions() <= 16, "{}", s.regions());
        assert!(s.dropped() > 12);
    }

    #[test]
    fn neighbouring_code_made_at_run_time_is_one_region() {
        let mut s = spaces();
        let jit = |start, end| Region { start, end, pgoff: start, backing: Backing::Jit };
        map(&mut s, 1, 7, jit(0x1000, 0x2000));
        map(&mut s, 2, 7, jit(0x3000, 0x4000));
        map(&mut s, 3, 7, jit(0x2000, 0x3000));
        assert_eq!(all(&s, 7).len(), 1);
        assert_eq!(s.find(7, 0x3fff).unwrap().start, 0x1000);
    }
}

//! The whole of the mappings, in the order of use.
//!
//! Per pass: empty the stack ring, then [`Tracker::read`], then for each stack in order of time
//! [`Tracker::apply_until`] and [`Tracker::find`]. `read` opens files, whatever the time of their mapping.

use std::collections::VecDeque;
use std::{fs, io};

use rustc_hash::{FxHashMap, FxHashSet};
use systape_symbols::RuleReader;

use super::Mapped;
use super::exec_watch::ExecWatch;
use super::files::Files;
use super::proc_maps;
use super::sideband::{Event, EventKind, Sideband};
use super::space::{Change, ChangeKind, Region, SpaceLimits, Spaces};
use super::vdso::Vdso;
use crate::machine::patient::{PATIENCE, Patient, each, none_hang};
use crate::own::clock;

/// Most changes that wait for their time. A change takes about 80 bytes.
const QUEUE_MAX: usize = 1 << 18;
/// Least time between two readings of a process's maps, ns.
const RESCAN_NS: u64 = 100_000_000;
/// Most processes whose last reading is remembered.
const RESCANS_MAX: usize = 4096;
/// Most processes read again when records of the side-band were lost.
const RESCAN_PIDS_MAX: usize = 4096;
/// Least time between two readings of all processes after lost records, ns.
const RESCAN_ALL_NS: u64 = 1_000_000_000;

/// Settings of a tracker.
#[derive(Clone, Copy, Debug)]
pub struct TrackerConfig {
    /// Bytes of the side-band's ring of each CPU.
    pub ring_bytes: usize,
    /// Use the side-band; without it there are only the mappings in /proc at a scan.
    pub sideband: bool,
    /// Keep short-lived executables open.
    pub exec_watch: bool,
    /// Most files kept open.
    pub open_files: usize,
    /// Most processes and regions.
    pub limits: SpaceLimits,
}

impl Default for TrackerConfig {
    fn default() -> Self {
        Self {
            ring_bytes: 512 << 10,
            sideband: true,
            exec_watch: true,
            open_files: Files::default_open_max(),
            limits: SpaceLimits::default(),
        }
    }
}

/// Losses, by kind. If one is not 0, a frame may be unknown because of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Side-band records that did not fit into a ring. Processes are read again from /proc afterwards.
    pub records: u64,
    /// Records that could not be parsed.
    pub malformed: u64,
    /// Changes applied before their time, because too many waited.
    pub early: u64,
    /// Changes that came after a later one had been applied.
    pub late: u64,
    /// Regions and processes over the limits.
    pub dropped: u64,
    /// Files over the limit.
    pub files: u64,
    /// Times that executables were not kept open because there were too many at once.
    pub execs: u64,
}

/// Address spaces and files of the machine.
#[derive(Debug)]
pub struct Tracker {
    sideband: Option<Sideband>,
    watch: ExecWatch,
    spaces: Spaces,
    files: Files,
    vdso: Vdso,
    queue: VecDeque<Change>,
    sorted: bool,
    events: Vec<Event>,
    applied: u64,
    scanned: FxHashMap<u32, u64>,
    maps: Patient<u32, io::Result<Vec<Mapped>>>,
    /// Processes whose maps did not come in time: not read again before they exec, or until nothing hangs any more.
    hung: FxHashSet<u32>,
    rescan_all: bool,
    rescanned_all: u64,
    lost: Lost,
    /// When records were lost that [`Self::take_lost_span`] has not returned.
    lost_span: Option<(u64, u64)>,
}

impl Tracker {
    /// Opens everything possible; the notes say what failed, and why. `reader` reads the files.
    pub fn open(config: &TrackerConfig, reader: RuleReader) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let sideband = config.sideband.then(|| Sideband::open(config.ring_bytes));
        let sideband = sideband.and_then(|opened| {
            let explain = |e| format!("mappings are known from /proc only, those of short processes are not: {e}");
            opened.map_err(|e| notes.push(explain(e))).ok()
        });
        let watch = if config.exec_watch { ExecWatch::open() } else { Ok(ExecWatch::none()) };
        let watch = watch.unwrap_or_else(|e| {
            notes.push(format!("executables deleted while they start may not be read: {e}"));
            ExecWatch::none()
        });
        let this = Self {
            sideband,
            watch,
            spaces: Spaces::new(config.limits),
            files: Files::new(config.open_files, reader),
            vdso: Vdso::of_this_process(),
            queue: VecDeque::new(),
            sorted: true,
            events: Vec::new(),
            applied: 0,
            scanned: FxHashMap::default(),
            maps: Patient::new("maps", proc_maps::read),
            hung: FxHashSet::default(),
            rescan_all: false,
            rescanned_all: 0,
            lost: Lost::default(),
            lost_span: None,
        };
        (this, notes)
    }

    /// Whether new mappings are reported as they happen.
    pub fn has_sideband(&self) -> bool {
        self.sideband.is_some()
    }

    /// Reads /proc/PID/maps of processes: once right after opening, for earlier mappings. Returns how many could be
    /// read. Hanging ones, whose mmap lock is held, are left out.
    pub fn scan(&mut self, pids: &[u32]) -> usize {
        let from_the_begin = self.applied == 0;
        self.scan_all(pids, from_the_begin)
    }

    fn scan_all(&mut self, pids: &[u32], from_the_begin: bool) -> usize {
        let pids: Vec<u32> = pids.iter().copied().filter(|pid| !self.hung.contains(pid)).collect();
        let mut read = 0;
        let scan = |pid, _: &_| (clock::monotonic(), proc_maps::read(pid));
        let hung = each("maps", pids.clone(), scan, |number, (time, maps)| {
            if let Ok(maps) = maps {
                read += 1;
                self.take_maps(pids[number], &maps, if from_the_begin { 0 } else { time });
            }
        });
        self.hung.extend(hung.into_iter().map(|number| pids[number]));
        read
    }

    fn scan_one(&mut self, pid: u32) -> bool {
        if !self.hung.is_empty() && none_hang() {
            self.hung.clear();
        }
        if self.hung.contains(&pid) {
            return false;
        }
        let time = self.now();
        match self.maps.run(PATIENCE, pid) {
            Ok(Ok(maps)) => self.take_maps(pid, &maps, time),
            Ok(Err(_)) => return false,
            Err(_) => {
                self.hung.insert(pid);
                return false;
            }
        }
        true
    }

    /// The time of the current reading. Before the first change, it counts as valid from the beginning: changes in the
    /// meantime are in the queue and are applied on top.
    fn now(&self) -> u64 {
        if self.applied == 0 { 0 } else { clock::monotonic() }
    }

    fn take_maps(&mut self, pid: u32, maps: &[Mapped], time: u64) {
        let mut regions = Vec::with_capacity(maps.len());
        for mapped in maps {
            let backing = self.files.see(pid, mapped, &self.watch);
            regions.push(Region { start: mapped.start, end: mapped.end, pgoff: mapped.pgoff, backing });
        }
        self.push(Change { time, kind: ChangeKind::Scan { pid, regions } });
    }

    /// Adds the changes since the last time, without waiting, and opens new files.
    pub fn read(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        if let Some(sideband) = &mut self.sideband {
            sideband.read(&mut events);
        }
        // after the side-band: whatever is mapped was executed before
        self.watch.read();
        for event in events.drain(..) {
            self.take(event);
        }
        self.events = events;
        self.rescan();
        if self.queue.len() > QUEUE_MAX {
            let early = self.queue.len() - QUEUE_MAX / 2;
            self.sort();
            self.lost.early += early as u64;
            self.apply(early);
        }
    }

    fn take(&mut self, event: Event) {
        if !event.kind.is_here() {
            return;
        }
        match event.kind {
            EventKind::Exec { pid } => drop(self.hung.remove(&pid)),
            EventKind::Exit { pid, tid } if pid == tid => drop(self.hung.remove(&pid)),
            _ => {}
        }
        let kind = match event.kind {
            EventKind::Mmap { pid, mapped, .. } => {
                let backing = self.files.see(pid, &mapped, &self.watch);
                let region = Region { start: mapped.start, end: mapped.end, pgoff: mapped.pgoff, backing };
                ChangeKind::Map { pid, region }
            }
            EventKind::Exec { pid } => ChangeKind::Exec { pid },
            EventKind::Fork { is_thread: true, .. } => return,
            EventKind::Fork { pid, ppid, .. } => ChangeKind::Fork { pid, ppid },
            EventKind::Exit { pid, tid } if pid == tid => ChangeKind::Exit { pid },
            EventKind::Exit { .. } => return,
            EventKind::Lost { count, since } => {
                self.lost.records += count;
                let (first, last) = self.lost_span.unwrap_or((since, event.time));
                self.lost_span = Some((first.min(since), last.max(event.time)));
                self.rescan_all = true;
                return;
            }
        };
        self.push(Change { time: event.time, kind });
    }

    fn push(&mut self, change: Change) {
        if change.time < self.applied {
            self.lost.late += 1;
        }
        self.sorted &= self.queue.back().is_none_or(|last| last.time <= change.time);
        self.queue.push_back(change);
    }

    /// Reads outdated processes from /proc.
    fn rescan(&mut self) {
        for pid in self.spaces.take_full() {
            self.rescan_one(pid);
        }
        let now = clock::monotonic();
        if self.rescan_all && now.saturating_sub(self.rescanned_all) >= RESCAN_ALL_NS {
            self.rescan_all = false;
            self.rescanned_all = now;
            let mut pids = proc_maps::pids();
            pids.truncate(RESCAN_PIDS_MAX);
            // what came before the loss does not lie on top of what is read now, also where nothing was applied yet
            self.scan_all(&pids, false);
        }
    }

    fn rescan_one(&mut self, pid: u32) -> bool {
        let now = clock::monotonic();
        if self.scanned.get(&pid).is_some_and(|last| now.saturating_sub(*last) < RESCAN_NS) {
            return false;
        }
        if self.scanned.len() >= RESCANS_MAX {
            self.scanned.retain(|_, last| now.saturating_sub(*last) < RESCAN_NS);
        }
        if self.scanned.len() < RESCANS_MAX {
            self.scanned.insert(pid, now);
        }
        self.scan_one(pid)
    }

    /// Applies the changes up to and including `time`, CLOCK_MONOTONIC ns.
    pub fn apply_until(&mut self, time: u64) {
        self.sort();
        let count = self.queue.partition_point(|change| change.time <= time);
        self.apply(count);
    }

    /// Each CPU's changes come in order, all together do not. Equal times keep the order of arrival.
    fn sort(&mut self) {
        if !self.sorted {
            self.queue.make_contiguous().sort_by_key(|change| change.time);
            self.sorted = true;
        }
    }

    fn apply(&mut self, count: usize) {
        for change in self.queue.drain(..count) {
            self.applied = self.applied.max(change.time);
            self.spaces.apply(&change);
        }
    }

    /// The region of a process at an address, at the time applied so far.
    pub fn find(&self, pid: u32, address: u64) -> Option<&Region> {
        self.spaces.find(pid, address)
    }

    /// All regions of a process, by address.
    pub fn regions(&self, pid: u32) -> impl Iterator<Item = &Region> {
        self.spaces.regions_of(pid)
    }

    /// Reads again, for an address that was not found without a side-band or after lost records, the process's maps again,
    /// though not too often. True when that was done; the new maps count as those of the stack's time.
    pub fn look_again(&mut self, pid: u32) -> bool {
        // not in this pid namespace: nothing tells of it
        if pid == 0 {
            return false;
        }
        if self.sideband.is_some() && self.lost.records == 0 && self.spaces.is_known(pid) {
            return false;
        }
        let read = self.rescan_one(pid);
        if read {
            // one process only: what others wait for stays in the queue
            if let Some(change) = self.queue.pop_back() {
                self.spaces.apply(&change);
            }
        }
        read
    }

    /// Whether the process has an entry.
    pub fn is_known(&self, pid: u32) -> bool {
        self.spaces.is_known(pid)
    }

    /// Drops processes that ended before `before`, CLOCK_MONOTONIC ns.
    pub fn sweep(&mut self, before: u64) {
        self.spaces.sweep(before, has_other_tasks);
    }

    /// The files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The files, for reading.
    pub fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// The vDSO.
    pub(crate) fn vdso(&self) -> &Vdso {
        &self.vdso
    }

    /// The time span in which records of the side-band were lost since the last call, CLOCK_MONOTONIC ns; None = none
    /// were. The kernel reports it with the next record that fits.
    pub fn take_lost_span(&mut self) -> Option<(u64, u64)> {
        self.lost_span.take()
    }

    /// The losses.
    pub fn lost(&self) -> Lost {
        Lost {
            malformed: self.sideband.as_ref().map_or(0, Sideband::malformed),
            dropped: self.spaces.dropped(),
            files: self.files.counts().over_limit,
            execs: self.watch.overflows(),
            ..self.lost
        }
    }
}

/// Whether a process whose first task has ended has other tasks.
fn has_other_tasks(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let own = pid.to_string();
    tasks.take(2).any(|task| task.file_name().to_str() != Some(&own))
}

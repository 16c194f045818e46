//! perf's side-band: a record for every executable mapping, fork, exec and exit of the machine, as it happens.
//!
//! One event that counts nothing (PERF_COUNT_SW_DUMMY) per CPU, each with its ring. Records carry CLOCK_MONOTONIC, the
//! clock of the BPF side. The kernel writes a mapping's record before the process can run its code. So a reader that
//! empties the stack ring first and the side-band after it has every mapping those stacks need.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use perf_event_open_sys::bindings as perf;

use super::Mapped;
use super::bytes::{u32_at, u64_at};
use crate::kernel::perf_event;
use crate::kernel::perf_ring::PerfRing;
use crate::machine::system::page_size;
use crate::own::clock;

/// Bytes that sample_id_all adds to every record: u32 pid, tid; u64 time; u32 cpu, zero.
const TRAILER: usize = 24;
/// A change of an address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// When, CLOCK_MONOTONIC ns.
    pub time: u64,
    /// What happened.
    pub kind: EventKind,
}

/// Kind of an [`Event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Executable memory was mapped, or mapped memory became executable.
    Mmap {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// PROT_ bits.
        prot: u32,
        /// MAP_ bits.
        flags: u32,
        /// What and where.
        mapped: Mapped,
    },
    /// A program was executed: what was mapped is gone. Its own mappings follow.
    Exec {
        /// Process.
        pid: u32,
    },
    /// A task was made.
    Fork {
        /// A task was created.
        pid: u32,
        /// Its process.
        ppid: u32,
        /// The process that forked it.
        tid: u32,
        /// A thread of `ppid`.
        is_thread: bool,
    },
    /// A task ended; the process does when it was the last.
    Exit {
        /// A task ended; the process does with its last task.
        pid: u32,
        /// The task.
        tid: u32,
    },
    /// Records did not fit into a ring.
    Lost {
        /// How many.
        count: u64,
        /// When the last record before them was written, ns, or the side-band was opened.
        since: u64,
    },
}

impl EventKind {
    /// Whether it is of a process visible in this pid namespace. The kernel writes 0 for those outside, -1 for one that
    /// has just ended.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Mmap { pid, .. } | Self::Exec { pid } | Self::Fork { pid, .. } | Self::Exit { pid, .. } => {
                !matches!(*pid, 0 | u32::MAX)
            }
            Self::Lost { .. } => true,
        }
    }
}

/// The side-band of all CPUs. Closed when dropped.
#[derive(Debug)]
pub(crate) struct Sideband {
    // rings before the events they belong to: dropped in this order
    rings: Vec<PerfRing>,
    /// The time of the last record of each, or of its opening.
    latest: Vec<u64>,
    _events: Vec<OwnedFd>,
    scratch: Vec<u8>,
    malformed: u64,
}

impl Sideband {
    /// Opens the side-band of every online CPU, `ring_bytes` for each (less where that much memory may not be locked).
    ///
    /// # Errors
    /// The missing requirement, in words.
    pub(crate) fn open(ring_bytes: usize) -> Result<Self, String> {
        let online =
            perf_event::online_cpus().map_err(|e| format!("cannot read /sys/devices/system/cpu/online: {e}"))?;
        let mut this =
            Self { rings: Vec::new(), latest: Vec::new(), _events: Vec::new(), scratch: Vec::new(), malformed: 0 };
        for cpu in online {
            match this.add(cpu, ring_bytes) {
                Ok(()) => {}
                // went offline since
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
                Err(e) => return Err(explain(&e)),
            }
        }
        if this.rings.is_empty() { Err("no CPU is online".into()) } else { Ok(this) }
    }

    fn add(&mut self, cpu: u32, ring_bytes: usize) -> io::Result<()> {
        let event = open_event(cpu, ring_bytes)?;
        let mut bytes = ring_bytes;
        let ring = loop {
            match PerfRing::map(event.as_fd(), bytes) {
                // over the limit of locked memory (perf_event_mlock_kb): a smaller one may fit
                Err(e) if e.raw_os_error() == Some(libc::EPERM) && bytes > page_size() as usize => bytes /= 2,
                other => break other?,
            }
        };
        self.rings.push(ring);
        self.latest.push(clock::monotonic());
        self._events.push(event);
        Ok(())
    }

    /// Records that could not be parsed.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Appends all records of all CPUs, without waiting. In order of time for each CPU, not over all.
    pub(crate) fn read(&mut self, out: &mut Vec<Event>) {
        for (ring, latest) in self.rings.iter_mut().zip(&mut self.latest) {
            let mut malformed = 0;
            let dropped = ring.drain(&mut self.scratch, |record| match parse(record) {
                Parsed::Event(mut event) => {
                    let before = std::mem::replace(latest, event.time);
                    if let EventKind::Lost { since, .. } = &mut event.kind {
                        *since = before;
                    }
                    out.push(event);
                }
                Parsed::Other => {}
                Parsed::Malformed => malformed += 1,
            });
            self.malformed += malformed + u64::from(dropped > 0);
        }
    }
}

fn open_event(cpu: u32, ring_bytes: usize) -> io::Result<OwnedFd> {
    let mut attr = perf::perf_event_attr {
        type_: perf::PERF_TYPE_SOFTWARE,
        config: u64::from(perf::PERF_COUNT_SW_DUMMY),
        sample_type: u64::from(perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_CPU),
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.set_mmap(1);
    attr.set_mmap2(1);
    // Not attr.build_id: the kernel (seen on 6.18, perf_event_mmap_output) leaves its mark in the record of whoever comes next, and a
    // perf that did not ask for build ids then takes inode numbers for one and dies.
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    // nobody waits for the rings; without a watermark a wake-up would be tried for each record
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(ring_bytes / 2).unwrap_or(u32::MAX);
    perf_event::open(attr, cpu)
}

fn explain(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            format!(
                "perf_event_open is refused ({e}; kernel.perf_event_paranoid is {}): it takes CAP_PERFMON with paranoid <= 2, or CAP_SYS_ADMIN",
                paranoid.trim()
            )
        }
        Some(libc::ENOSYS) => "this kernel has no perf events (CONFIG_PERF_EVENTS)".into(),
        _ => format!("perf_event_open failed: {e}"),
    }
}

#[derive(Debug, PartialEq)]
enum Parsed {
    Event(Event),
    /// Not needed.
    Other,
    Malformed,
}

/// Reads one record (linux/perf_event.h, enum perf_event_type).
fn parse(record: &[u8]) -> Parsed {
    match try_parse(record) {
        Some(Some(event)) => Parsed::Event(event),
        Some(None) => Parsed::Other,
        None => Parsed::Malformed,
    }
}

/// None = malformed; Some(None) = not needed.
fn try_parse(record: &[u8]) -> Option<Option<Event>> {
    let kind = u32_at(record, 0)?;
    let misc = u32::from(u16::from_le_bytes(*record.get(4..)?.first_chunk()?));
    let body = record.get(8..record.len().checked_sub(TRAILER)?)?;
    let time = u64_at(record, record.len() - 16)?;
    let kind = match kind {
        // u32 pid, tid; u64 addr, len, pgoff; u32 maj, min; u64 ino, generation;
        // u32 prot, flags; char filename[]
        perf::PERF_RECORD_MMAP2 => {
            let start = u64_at(body, 8)?;
            // whether the mark of a build id is set or not: it may be somebody else's
            let mapped = Mapped {
                start,
                end: start.checked_add(u64_at(body, 16)?)?,
                pgoff: u64_at(body, 24)?,
                dev: libc::makedev(u32_at(body, 32)?, u32_at(body, 36)?),
                inode: u64_at(body, 40)?,
                generation: u64_at(body, 48)?,
                path: text(body.get(64..)?),
            };
            let (pid, tid) = (u32_at(body, 0)?, u32_at(body, 4)?);
            EventKind::Mmap { pid, tid, prot: u32_at(body, 56)?, flags: u32_at(body, 60)?, mapped }
        }
        // u32 pid, tid; char comm[]
        perf::PERF_RECORD_COMM if misc & perf::PERF_RECORD_MISC_COMM_EXEC != 0 => {
            EventKind::Exec { pid: u32_at(body, 0)? }
        }
        // u32 pid, ppid, tid, ptid; u64 time
        perf::PERF_RECORD_FORK => {
            let (pid, ppid) = (u32_at(body, 0)?, u32_at(body, 4)?);
            EventKind::Fork { pid, ppid, tid: u32_at(body, 8)?, is_thread: pid == ppid }
        }
        perf::PERF_RECORD_EXIT => EventKind::Exit { pid: u32_at(body, 0)?, tid: u32_at(body, 8)? },
        // u64 id, lost
        perf::PERF_RECORD_LOST => EventKind::Lost { count: u64_at(body, 8)?, since: 0 },
        _ => return Some(None),
    };
    Some(Some(Event { time, kind }))
}

/// A string that ends at its first zero.
fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((misc as u16).to_le_bytes());
        bytes.extend(((8 + body.len() + TRAILER) as u16).to_le_bytes());
        bytes.extend(body);
        bytes.extend([7, 0, 0, 0, 7, 0, 0, 0]);
        bytes.extend(1234u64.to_le_bytes());
        bytes.extend([0; 8]);
        bytes
    }

    fn mmap2(identity: &[u8; 24], path: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend([10u32, 11].iter().flat_map(|v| v.to_le_bytes()));
        body.extend([0x1000u64, 0x2000, 0x3000].iter().flat_map(|v| v.to_le_bytes()));
        body.extend(identity);
        body.extend([5u32, 2].iter().flat_map(|v| v.to_le_bytes()));
        body.extend(path);
        body
    }

    #[test]
    fn a_mapping_comes_with_its_inode_whoever_asked_for_build_ids() {
        let mut identity = [0; 24];
        identity[0] = 8;
        identity[4] = 1;
        identity[8] = 77;
        identity[16] = 3;
        let mapped = Mapped {
            start: 0x1000,
            end: 0x3000,
            pgoff: 0x3000,
            dev: libc::makedev(8, 1),
            inode: 77,
            generation: 3,
            path: b"/a".to_vec(),
        };
        for misc in [0, perf::PERF_RECORD_MISC_MMAP_BUILD_ID] {
            let kind = EventKind::Mmap { pid: 10, tid: 11, prot: 5, flags: 2, mapped: mapped.clone() };
            let bytes = record(perf::PERF_RECORD_MMAP2, misc, &mmap2(&identity, b"/a\0\0\0"));
            assert_eq!(parse(&bytes), Parsed::Event(Event { time: 1234, kind }));
        }
    }

    #[test]
    fn tasks_and_loss() {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        let event = |kind| Parsed::Event(Event { time: 1234, kind });
        let fork = words(&[5, 4, 6, 4, 0, 0]);
        assert_eq!(
            parse(&record(perf::PERF_RECORD_FORK, 0, &fork)),
            event(EventKind::Fork { pid: 5, ppid: 4, tid: 6, is_thread: false })
        );
        assert_eq!(parse(&record(perf::PERF_RECORD_EXIT, 0, &fork)), event(EventKind::Exit { pid: 5, tid: 6 }));
        let comm = words(&[5, 5, 0x6f6f66, 0]);
        assert_eq!(parse(&record(perf::PERF_RECORD_COMM, 0, &comm)), Parsed::Other);
        let exec = record(perf::PERF_RECORD_COMM, perf::PERF_RECORD_MISC_COMM_EXEC, &comm);
        assert_eq!(parse(&exec), event(EventKind::Exec { pid: 5 }));
        let lost = words(&[1, 0, 99, 0]);
        assert_eq!(parse(&record(perf::PERF_RECORD_LOST, 0, &lost)), event(EventKind::Lost { count: 99, since: 0 }));
    }

    #[test]
    fn what_is_too_short_is_malformed() {
        let whole = record(perf::PERF_RECORD_MMAP2, 0, &mmap2(&[0; 24], b""));
        assert!(matches!(parse(&whole), Parsed::Event(_)));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Parsed::Malformed, "{length} bytes");
        }
        let mut wraps = mmap2(&[0; 24], b"/a\0");
        wraps[8..16].fill(0xff);
        assert_eq!(parse(&record(perf::PERF_RECORD_MMAP2, 0, &wraps)), Parsed::Malformed);
    }
}

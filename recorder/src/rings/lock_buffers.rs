//! perf's buffers of the CPUs, which the programs of locks write to: they may take no lock, as a BPF ring does
//! (`bpf/src/c/lock.bpf.h`).
//!
//! A record that finds no room is counted by the program, which is told of it; what perf itself writes about that is
//! passed over.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_BPF_OUTPUT, PERF_RECORD_SAMPLE, PERF_SAMPLE_RAW, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use systape_bpf::wire::LOCK;

use crate::kernel::perf_event;
use crate::kernel::perf_ring::PerfRing;
use crate::machine::system::page_size;

/// Bytes of a CPU's buffer, without and with stacks: 20 ms at 500,000 waits a second, and 50,000 with stacks.
const BYTES: usize = 2 << 20;
const BYTES_WITH_STACKS: usize = 4 << 20;
/// In front of what the program wrote: perf's header and the length.
const BEFORE: usize = 8 + 4;

/// A buffer for each CPU that is online.
#[derive(Debug)]
pub(crate) struct LockBuffers {
    /// The ring is the event's: it goes first.
    rings: Vec<(PerfRing, OwnedFd)>,
    bytes: usize,
    scratch: Vec<u8>,
}

impl LockBuffers {
    /// Opens them and puts them into `map`, by CPU; `most`: bytes of one.
    ///
    /// # Errors
    /// When the kernel refuses the event (kernel.perf_event_paranoid) or its memory.
    pub(crate) fn open(map: &impl MapCore, most: usize, with_stacks: bool) -> Result<Self> {
        let wanted = if with_stacks { BYTES_WITH_STACKS } else { BYTES };
        // as the ring does
        let bytes = wanted.min(most.next_power_of_two()).max(page_size() as usize);
        let one = |cpu: u32| -> Result<(PerfRing, OwnedFd)> {
            let config = u64::from(PERF_COUNT_SW_BPF_OUTPUT);
            let mut attr = perf_event_attr { type_: PERF_TYPE_SOFTWARE, config, ..Default::default() };
            attr.sample_type = u64::from(PERF_SAMPLE_RAW);
            attr.__bindgen_anon_1.sample_period = 1;
            // nobody waits for them: the buffers are read every few ms
            attr.set_watermark(1);
            attr.__bindgen_anon_2.wakeup_watermark = u32::MAX;
            let event = perf_event::open(attr, cpu)?;
            let ring = PerfRing::map(event.as_fd(), bytes)?;
            map.update(&cpu.to_ne_bytes(), &event.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
            Ok((ring, event))
        };
        let cpus = perf_event::online_cpus().unwrap_or_else(|_| vec![0]);
        let rings = cpus.into_iter().map(|cpu| one(cpu).with_context(|| format!("no buffer of locks on CPU {cpu}")));
        Ok(Self { rings: rings.collect::<Result<_>>()?, bytes, scratch: Vec::new() })
    }

    /// Bytes of all.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rings.len() * self.bytes) as u64
    }

    /// Passes on all records, and the stacks behind some of them, and frees their room. Returns the bytes read.
    pub(crate) fn drain(&mut self, mut record: impl FnMut(&[u8]), mut stack: impl FnMut(&[u8])) -> u64 {
        let mut read = 0;
        for (ring, _) in &mut self.rings {
            ring.drain(&mut self.scratch, |bytes| {
                read += bytes.len() as u64;
                let Some((lock, behind)) = split(bytes) else { return };
                record(lock);
                if let Ok(Some(len)) = systape_bpf::wire::stack_len(behind) {
                    stack(&behind[..len]);
                }
            });
        }
        read
    }
}

/// A record of perf's as the program's, and what is behind it; None = perf's own.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let kind = u32::from_ne_bytes(*bytes.first_chunk()?);
    (kind == PERF_RECORD_SAMPLE).then_some(())?;
    bytes.get(BEFORE..)?.split_at_checked(LOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_record_and_perhaps_a_stack() {
        let mut sample = vec![0; BEFORE + LOCK + 4];
        sample[0] = PERF_RECORD_SAMPLE as u8;
        assert_eq!(split(&sample).map(|(lock, rest)| (lock.len(), rest.len())), Some((LOCK, 4)));
        assert_eq!(systape_bpf::wire::stack_len(split(&sample).unwrap().1), Ok(None));
        sample[0] = 2;
        assert_eq!(split(&sample), None, "PERF_RECORD_LOST");
        assert_eq!(split(&[9, 0, 0, 0, 0, 0, 24, 0]), None);
    }
}

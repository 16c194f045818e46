//! The rings and buffers that the programs fill.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use systape_bpf::SystapeSkel;

use crate::rings::cpu_buffers::{CpuBuffers, Rooms};
use crate::rings::sizes::RingSizes;

/// All of them; those that the object has itself are read from there.
pub(super) struct LoadedRings {
    /// One for each CPU, and that of tracepoints.
    pub bulk: Vec<MapHandle>,
    /// Of the buffers of the CPUs.
    rooms: Rooms,
    /// Whether stacks are taken.
    stacks: bool,
}

impl LoadedRings {
    /// Makes `count` bulk rings of `bytes` each, that of tracepoints among them.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(crate) fn make(skel: &SystapeSkel<'_>, (count, bytes): (u32, u32), rooms: Rooms, stacks: bool) -> Result<Self> {
        let opts = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..Default::default() };
        let one = |index: u32| -> Result<MapHandle> {
            let ring = MapHandle::create(MapType::RingBuf, Some("systape_bulk"), 0, 0, bytes, &opts)
                .with_context(|| format!("cannot make ring {index} of {bytes} bytes; try a smaller -m"))?;
            let fd = ring.as_fd().as_raw_fd();
            skel.maps.bulk_rings.update(&index.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)?;
            Ok(ring)
        };
        Ok(Self { bulk: (0..count).map(one).collect::<Result<_>>()?, rooms, stacks })
    }

    /// All rings in the order of reading: state and process records are rare and must not wait.
    pub(crate) fn all<'a>(&'a self, skel: &'a SystapeSkel<'_>) -> Vec<&'a dyn MapCore> {
        let mut all: Vec<&dyn MapCore> = vec![&skel.maps.process_ring, &skel.maps.state_ring];
        all.extend(self.bulk.iter().map(|ring| ring as &dyn MapCore));
        all
    }

    /// The stack ring; None without stacks.
    pub(crate) fn of_stacks<'a>(&self, skel: &'a SystapeSkel<'_>) -> Option<&'a dyn MapCore> {
        self.stacks.then_some(&skel.maps.stack_ring as &dyn MapCore)
    }

    /// The buffers of the CPUs.
    ///
    /// # Errors
    /// When they cannot be mapped.
    pub(crate) fn buffers(&self, skel: &SystapeSkel<'_>) -> Result<CpuBuffers> {
        let (positions, calls, sched) = (&skel.maps.cpu_buffers, &skel.maps.buffered_calls, &skel.maps.buffered_sched);
        CpuBuffers::map(positions.as_fd(), calls.as_fd(), sched.as_fd(), self.rooms)
            .context("cannot map the buffers of the CPUs")
    }

    /// Size of one ring of each kind.
    pub(crate) fn sizes(&self, skel: &SystapeSkel<'_>) -> RingSizes {
        RingSizes {
            buffers: self.rooms.each(),
            bulk: self.bulk.first().map_or(0, |ring| ring.max_entries().into()),
            state: skel.maps.state_ring.max_entries().into(),
            process: skel.maps.process_ring.max_entries().into(),
            stacks: self.of_stacks(skel).map_or(0, |ring| ring.max_entries().into()),
        }
    }

    /// Bytes of all.
    pub(crate) fn bytes(&self, skel: &SystapeSkel<'_>) -> u64 {
        let sizes = self.sizes(skel);
        self.bulk.len() as u64 * sizes.bulk + sizes.state + sizes.process + sizes.stacks + self.rooms.bytes()
    }
}

//! The programs' lookup tables, filled before attaching.

use std::mem::size_of;
use std::{ptr, slice};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use systape_bpf::wire::{CallDesc, CallStructs, Operands, TracepointFilter};
use systape_bpf::{SLOTS, SystapeSkel, also, target_bits};
use systape_format::model::Family;

use crate::calls::tables;
use crate::config::RecordConfig;
use crate::kernel::{bio_ends, native};
use crate::machine::kallsyms::WantedSymbols;
use crate::machine::kin;
use crate::machine::system::process_of;
use crate::own::forced::POISON;

/// Fills the tables that depend on `config` and the machine.
///
/// # Errors
/// When the kernel does not take an entry.
pub(super) fn fill(skel: &SystapeSkel<'_>, config: &RecordConfig, symbols: &WantedSymbols) -> Result<()> {
    let maps = &skel.maps;
    for slot in 0..SLOTS {
        maps.free_slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY).context("free_slots")?;
    }
    for slot in 0..maps.free_stack_slots.max_entries() {
        maps.free_stack_slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY).context("free_stack_slots")?;
    }
    if config.forced.poison {
        poison(skel)?;
    }
    let table = |abi| tables::table(abi, &config.selection, &config.filter, config.structs);
    let with_operations = config.families.has(Family::IoUring);
    for (index, (desc, structs)) in (0u32..).zip([table(native::ABI), table(native::ABI_32)].iter_mut().flatten()) {
        if !with_operations && matches!(desc.also, also::SUBMITS | also::REAPS) {
            desc.also = also::NOTHING;
        }
        maps.calls.update(&index.to_ne_bytes(), desc_bytes(desc), MapFlags::ANY).context("calls")?;
        if desc.structs != 0 {
            maps.call_structs
                .update(&index.to_ne_bytes(), struct_bytes(structs), MapFlags::ANY)
                .context("call_structs")?;
        }
    }
    for &cpu in config.cpus.iter().flatten() {
        maps.target_cpus.update(&cpu.to_ne_bytes(), &[1], MapFlags::ANY).context("target_cpus")?;
    }
    for (number, one) in (1u32..).zip(&config.tracepoints) {
        let Some(filter) = one.filter() else { continue };
        let key = number.to_ne_bytes();
        maps.tracepoint_filters.update(&key, filter_bytes(&filter), MapFlags::ANY).context("tracepoint_filters")?;
    }
    for (index, operands) in (0u32..).zip(&config.usdt.operands) {
        let operands = operands_bytes(operands);
        maps.static_operands.update(&index.to_ne_bytes(), operands, MapFlags::ANY).context("static_operands")?;
    }
    bio_ends::fill(&maps.bio_ends, symbols)?;
    add_targets(skel, config)
}

/// Fills scratch memory with a pattern that shows in a record if it is not overwritten.
fn poison(skel: &SystapeSkel<'_>) -> Result<()> {
    let maps = &skel.maps;
    for (map, count) in [(&maps.slots, SLOTS), (&maps.stack_slots, maps.free_stack_slots.max_entries())] {
        let poison = vec![POISON; map.value_size() as usize];
        for index in 0..count {
            map.update(&index.to_ne_bytes(), &poison, MapFlags::ANY).context("scratch slots")?;
        }
    }
    Ok(())
}

/// Tasks requested by number.
fn add_targets(skel: &SystapeSkel<'_>, config: &RecordConfig) -> Result<()> {
    for &pid in &config.pids {
        add_target(skel, pid, target_bits::PID)?;
    }
    // as late as can be: who is forked from now on by one of them inherits
    let tree = if config.tree { kin::descendants(&config.pids) } else { Vec::new() };
    for pid in tree {
        add_target(skel, pid, target_bits::PID)?;
    }
    for &tid in &config.tids {
        // a thread's table of files is its process's: what the other threads do to it matters
        if let Some(pid) = process_of(tid).filter(|pid| *pid != tid && !config.pids.contains(pid)) {
            let both = if config.tids.contains(&pid) { target_bits::TID } else { 0 };
            add_target(skel, pid, target_bits::STATE | both)?;
        }
    }
    for &tid in config.tids.iter().filter(|tid| !config.pids.contains(tid)) {
        let leads = process_of(tid) == Some(tid);
        add_target(skel, tid, target_bits::TID | if leads { target_bits::STATE } else { 0 })?;
    }
    Ok(())
}

/// Makes a process or thread a target of a walk that marks, by its id in this pid namespace.
pub(super) fn add_target(skel: &SystapeSkel<'_>, id: u32, bits: u32) -> Result<()> {
    skel.maps.targets.update(&id.to_ne_bytes(), &bits.to_ne_bytes(), MapFlags::ANY).context("targets")
}

fn filter_bytes(filter: &TracepointFilter) -> &[u8] {
    // SAFETY: a repr(C) struct of integers without padding, read as its bytes.
    unsafe { slice::from_raw_parts(ptr::from_ref(filter).cast::<u8>(), size_of::<TracepointFilter>()) }
}

fn struct_bytes(structs: &CallStructs) -> &[u8] {
    // SAFETY: a repr(C) struct of integers without padding, read as its bytes.
    unsafe { slice::from_raw_parts(ptr::from_ref(structs).cast::<u8>(), size_of::<CallStructs>()) }
}

fn operands_bytes(operands: &Operands) -> &[u8] {
    // SAFETY: a repr(C) struct of integers without padding, read as its bytes.
    unsafe { slice::from_raw_parts(ptr::from_ref(operands).cast::<u8>(), size_of::<Operands>()) }
}

fn desc_bytes(desc: &CallDesc) -> &[u8] {
    // SAFETY: a repr(C) struct of bytes without padding, read as its bytes.
    unsafe { slice::from_raw_parts(ptr::from_ref(desc).cast::<u8>(), size_of::<CallDesc>()) }
}

//! Settings of the programs and their maps before loading: sizes, and filters.

use std::fs;
use std::os::linux::fs::MetadataExt as _;

use anyhow::{Context, Result, bail};
use libbpf_rs::btf::Btf;
use systape_abi::rest;
use systape_bpf::types::rodata;
use systape_bpf::wire::PLAIN_SYSCALL;
use systape_bpf::{COARSE_PER_LANE, MAX_RINGS, OpenSystapeSkel, SCHED_BUFFERS, buffer};
use systape_format::model::{Family, StackMode, StackOf};

use crate::config::RecordConfig;
use crate::config::rights;
use crate::kernel::{native, registers, softirq};
use crate::machine::kallsyms::WantedSymbols;
use crate::machine::system::page_size;
use crate::machine::{cgroups, entries};
use crate::rings::cpu_buffers::Rooms;
use crate::stacks;

const STATE_RING: u32 = 8 << 20;
/// Process records have a ring of their own that `-m` does not shrink, so that no flood displaces them.
const PROCESS_RING: u32 = 4 << 20;
/// Rings of a recording without calls, switches and I/O (--sample): signals, and samples some times a second.
const RARE_RING: u32 = 1 << 20;
/// Each bulk ring without -m, and all of them together when the machine has many CPUs.
const BULK_RING: u32 = 16 << 20;
const BULK_BUDGET: u32 = 256 << 20;

/// Keys of a table of the ledger: 6.5 MB.
const LEDGER_KEYS: u32 = 16384;
/// A process may fill this part of a ring between two polls; beyond it only while the ring is not half full.
const SHARE: u64 = 8;
/// Tasks whose simple calls take the short way: 2.5 MB. A power of two.
const PLAIN_CALLS: u32 = 16384;
/// The buffers of calls of all CPUs together have this part of the bulk rings' size.
const CPU_BUFFERS: u32 = 4;
/// Capacity for switches, and for wake-ups, as a part of that for calls.
const SCHED_PART: u32 = 4;
/// CPUs whose coarse sums are kept apart: a lane takes a megabyte.
const MOST_LANES: u32 = 16;

/// The stack ring's size per CPU, by kind of stack: some 20 addresses, or kilobytes of memory.
const STACK_RING_ADDRESSES: u32 = 4 << 20;
const STACK_RING_COPIES: u32 = 16 << 20;
const STACK_BUDGET: u32 = 256 << 20;
/// Most stacks in progress on each CPU: in a task, in an interrupt above it, and one more for tasks preempted in
/// between.
const STACK_SLOTS_PER_CPU: u32 = 3;
/// Calls inside at once of which an argument is read when they return.
const PROBE_OUTS: u32 = 8192;
/// Bytes kept of the arguments of a program that begins beside looks: those of a linker are as much as all else of a build.
const LOOKS_ARGV: u32 = 511;

/// Leaves out unneeded parts, and sets the sizes of maps and the programs' constants.
pub(super) fn set(
    open: &mut OpenSystapeSkel<'static>,
    config: &RecordConfig,
    task_storage: bool,
    rings: u32,
    rooms: Rooms,
) -> Result<()> {
    leave_out(open, config, task_storage)?;
    set_sizes(open, config, rings, rooms)?;
    let maps = &mut open.maps;
    let Some(options) = maps.rodata_data.as_deref_mut() else { bail!("the BPF object has no options") };
    options.has_task_storage = task_storage;
    options.records_net = config.families.has(Family::Net);
    options.host_namespace = host_namespace();
    // 5.10 has neither
    options.has_lock = task_storage;
    options.ring_mask = rings - 1;
    options.tracepoint_ring = rings;
    options.coarse_mask = lanes(rings) - 1;
    options.plain_mask = maps.plain_calls.max_entries() - 1;
    options.call_buffer_mask = rooms.calls - 1;
    options.sched_buffer_mask = rooms.sched - 1;
    let (bulk, state) = (u64::from(bulk_ring(config, rings)), u64::from(maps.state_ring.max_entries()));
    (options.bulk_ring_bytes, options.bulk_share) = (bulk, bulk / SHARE);
    (options.state_ring_bytes, options.state_share) = (state, state / SHARE);
    (options.irq_entries_from, options.irq_entries_to) = entries::of_interrupts().unwrap_or_default();
    set_stacks(options, config);
    set_filters(options, config);
    options.string_limit = config.string_limit;
    options.page_bytes = page_size() as u32;
    options.ledger_check = config.forced.ledger_check;
    options.skip_first = config.forced.skip_first.unwrap_or(0);
    options.no_task_states = config.forced.no_task_states;
    options.regs_shift = config.forced.registers_off.unwrap_or(0);
    options.regs_by_hand = config.forced.registers_by_hand;
    set_idle_calls(options);
    if config.families.has(Family::Look) {
        (options.no_thread_usage, options.is_sparse) = (true, true);
        options.argv_limit = LOOKS_ARGV;
    }
    options.unseen_ios = config.forced.unseen_ios.unwrap_or(0);
    Ok(())
}

/// The network namespace of process 1, whose sockets have no number of one in their names; without the right to see it the recorder's own;
/// 0: neither is known.
fn host_namespace() -> u32 {
    let number = |path: &str| fs::metadata(path).ok().and_then(|found| u32::try_from(found.st_ino()).ok());
    number("/proc/1/ns/net").or_else(|| number("/proc/self/ns/net")).unwrap_or(0)
}

/// The calls of which looks only count the threads: they wait for work. Which futexes are locks the program sees by their words.
fn set_idle_calls(options: &mut rodata) {
    for (abi, bits) in [(native::ABI, &mut options.look_idle), (native::ABI_32, &mut options.look_idle_32)] {
        let waits = |(_, name): &(u32, &str)| rest::for_anything(name) && !name.starts_with("futex");
        for (nr, _) in systape_abi::all(abi).filter(waits) {
            if let Some(word) = bits.get_mut(nr as usize / 64) {
                *word |= 1 << (nr % 64);
            }
        }
    }
}

/// Place of tasks' registers, unless the kernel's helper finds them, and the facts that show the way into the kernel.
pub(super) fn set_registers(open: &mut OpenSystapeSkel<'static>, btf: &Btf<'_>) {
    let Some(options) = open.maps.rodata_data.as_deref_mut() else { return };
    options.regs_padding = registers::padding(btf);
    options.runs_fred = fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| registers::runs_fred(&text));
}

/// Settings for softirqs that run for their sender: none if the kernel does not show everything needed.
pub(super) fn set_softirqs(open: &mut OpenSystapeSkel<'static>, btf: &Btf<'_>, symbols: &WantedSymbols) {
    let Some(options) = open.maps.rodata_data.as_deref_mut() else { return };
    // a kernel without task storage has no such function either
    options.has_rdonly_cast = options.has_task_storage && softirq::has_rdonly_cast(btf);
    let Some(found) = softirq::find(btf, symbols) else { return };
    for (place, (from, to)) in options.do_softirq_codes.chunks_exact_mut(2).zip(found.do_softirq) {
        (place[0], place[1]) = (from, to);
    }
    (options.backlog_from, options.backlog_to) = found.backlog;
    options.preempt_count_distance = found.preempt_count;
    options.irq_stack_distance = found.irq_stack;
}

/// Maps and programs that this recording does not need.
fn leave_out(open: &mut OpenSystapeSkel<'static>, config: &RecordConfig, task_storage: bool) -> Result<()> {
    if task_storage {
        open.maps.task_states_by_tid.set_autocreate(false)?;
        open.maps.zero_state.set_autocreate(false)?;
    } else {
        open.maps.task_states.set_autocreate(false)?;
    }
    if !watches_outside(config) {
        open.progs.read_outsider.set_autoload(false);
        open.maps.outsiders.set_max_entries(1)?;
    }
    Ok(())
}

fn set_sizes(open: &mut OpenSystapeSkel<'static>, config: &RecordConfig, rings: u32, rooms: Rooms) -> Result<()> {
    let (maps, forced) = (&mut open.maps, &config.forced);
    if let Some(tasks) = forced.task_states {
        maps.task_states_by_tid.set_max_entries(tasks)?;
    }
    let looks = config.families.has(Family::Look);
    maps.state_ring.set_max_entries(forced.state_ring.unwrap_or(if looks { RARE_RING } else { STATE_RING }))?;
    maps.process_ring.set_max_entries(forced.process_ring.unwrap_or(PROCESS_RING))?;
    if !looks {
        maps.look_rests.set_max_entries(1)?;
    }
    let keys = forced.ledger_keys.unwrap_or(LEDGER_KEYS);
    maps.ledger_a.set_max_entries(keys)?;
    maps.ledger_b.set_max_entries(keys)?;
    maps.coarse_a.set_max_entries(lanes(rings) * COARSE_PER_LANE)?;
    maps.coarse_b.set_max_entries(lanes(rings) * COARSE_PER_LANE)?;
    maps.plain_calls.set_max_entries(forced.plain_calls.unwrap_or(PLAIN_CALLS).next_power_of_two())?;
    maps.cpu_buffers.set_max_entries(rooms.cpus * buffer::KINDS)?;
    maps.buffered_calls.set_max_entries(rooms.cpus * rooms.calls)?;
    maps.tracepoint_filters.set_max_entries(config.tracepoints.len() as u32 + 1)?;
    let outs = config.probes.iter().any(|probe| probe.parameters.iter().any(|parameter| parameter.behind));
    maps.probe_outs.set_max_entries(if outs { PROBE_OUTS } else { 1 })?;
    maps.static_operands.set_max_entries(config.usdt.operands.len().max(1) as u32)?;
    maps.buffered_sched.set_max_entries(rooms.cpus * SCHED_BUFFERS * rooms.sched)?;
    let stacks = &config.stacks;
    if !stacks.on.is_empty() {
        let each = if stacks.mode == StackMode::Dwarf { STACK_RING_COPIES } else { STACK_RING_ADDRESSES };
        let each = if looks { each.min(RARE_RING) } else { each };
        maps.stack_ring.set_max_entries(rings.saturating_mul(each).min(STACK_BUDGET))?;
        let slots = rings * STACK_SLOTS_PER_CPU;
        maps.stack_slots.set_max_entries(slots)?;
        maps.free_stack_slots.set_max_entries(slots)?;
    }
    if stacks.on.contains(&StackOf::Asleep) {
        maps.sleepers.set_max_entries(2)?;
    }
    Ok(())
}

fn set_stacks(options: &mut rodata, config: &RecordConfig) {
    let stacks = &config.stacks;
    options.stacks_on = stacks::options::bits(&stacks.on);
    options.stacks_kernel = stacks::options::bits(&stacks.kernel);
    options.stacks_user = stacks::options::user_kind(stacks.mode);
    options.stack_copy_limit = stacks.copy_limit;
    options.stacks_min_dur = stacks.min_dur;
}

/// Which tasks and calls are recorded.
fn set_filters(options: &mut rodata, config: &RecordConfig) {
    options.target_marked = config.marks_tasks();
    options.inherit = config.inherit;
    options.watch_outside = watches_outside(config);
    options.filter_calls = config.filter.is_on();
    options.only_failures = config.filter.failures;
    options.any_filter = config.filter.any;
    if let Some(errnos) = &config.filter.errnos {
        options.filter_errnos = true;
        errnos.iter().for_each(|errno| options.wanted_errnos[usize::from(errno >> 6)] |= 1 << (errno & 63));
    }
    if let Some(uid) = config.uid {
        options.filter_uid = true;
        options.target_uid = uid;
    }
    if let Some(comm) = &config.comm {
        options.filter_comm = true;
        for (to, from) in options.target_comm.iter_mut().zip(comm) {
            *to = from.cast_signed();
        }
    }
    if let Some(cgroup) = config.cgroup_id {
        options.filter_cgroup = true;
        options.target_cgroup = cgroup;
    }
    if let Some(v1) = cgroups::v1() {
        (options.v1_hierarchy, options.v1_controller) = (v1.hierarchy, v1.controller);
    }
    options.with_self = config.with_self;
    options.filter_cpu = config.cpus.is_some();
    // one flag to ask: programs ask at every call
    let filters = options.filter_uid || options.filter_comm || options.filter_cgroup || options.filter_cpu;
    options.has_short_way = !filters && !options.watch_outside && !config.stacks.on.contains(&StackOf::Syscall);
}

/// Whether only some tasks are recorded (records_everything of the programs).
pub(super) fn tells_tasks_apart(config: &RecordConfig) -> bool {
    config.marks_tasks() || config.uid.is_some() || config.comm.is_some() || config.cgroup.is_some()
}

/// Whether tasks outside this pid namespace may be recorded. Marked ones and what they fork are all in it.
pub(super) fn watches_outside(config: &RecordConfig) -> bool {
    !config.marks_tasks() && !rights::in_first_pid_namespace()
}

/// Bulk rings: one per possible CPU, as a power of two.
pub(super) fn ring_count() -> Result<u32> {
    let cpus = libbpf_rs::num_possible_cpus().context("cannot tell how many CPUs there are")? as u32;
    Ok(cpus.next_power_of_two().clamp(1, MAX_RINGS))
}

/// Bytes of each bulk ring.
pub(super) fn bulk_ring(config: &RecordConfig, rings: u32) -> u32 {
    let most = if config.families.has(Family::Look) { RARE_RING } else { BULK_RING };
    config.ring_bytes.unwrap_or(most.min(BULK_BUDGET / rings))
}

/// Records that the buffers of each CPU have room for.
pub(super) fn buffer_rooms(config: &RecordConfig, rings: u32) -> Result<Rooms> {
    let cpus = libbpf_rs::num_possible_cpus()? as u32;
    let bytes = u64::from(rings) * u64::from(bulk_ring(config, rings)) / u64::from(CPU_BUFFERS * cpus);
    let calls = config.forced.cpu_buffer.unwrap_or((bytes / PLAIN_SYSCALL as u64) as u32);
    let calls = 1 << calls.max(1).ilog2();
    let sched = if config.families.has(Family::Sched) { (calls / SCHED_PART).max(1) } else { 1 };
    Ok(Rooms { cpus, calls, sched })
}

/// Lanes of coarse sums: one per CPU up to a limit; a power of two.
pub(super) fn lanes(rings: u32) -> u32 {
    rings.min(MOST_LANES)
}

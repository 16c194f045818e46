//! Opens, sizes, loads and attaches the BPF programs, and gives access to their switches and counters.
//!
//! What the kernel has is decided by trying (task storage), never by version. A family whose program the kernel refuses is left
//! out, and the rest is recorded. Failing to load is explained in terms of what the user lacks: a capability, BTF, or a kernel
//! feature.

mod options;
mod plan;
mod refused;
mod walker;

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use anyhow::{Context, Result, bail};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, OpenObject, PrintLevel};
use systape_abi::Abi;
use systape_bpf::wire::{CallDesc, DropCount, Snap};
use systape_bpf::{Drop, OpenSystapeSkel, SLOTS, SystapeSkel, SystapeSkelBuilder, target_bits, walk, window};
use systape_format::model::{Family, LeftOut, StackOf};

use crate::calls;
use crate::config::Config;
use crate::cpu_buffers::{CpuBuffers, Rooms};
use crate::families::{self, Tracepoints};
use crate::forced::{Checked, POISON, Poisoned};
use crate::iterate::{iterate, open_iterator};
use crate::ledger::Tables;
use crate::programs::Part;
use crate::registers::{self, Known};
use crate::self_stats::RingSizes;
use crate::skips::Skips;
use crate::stacks::{self, asleep};
use crate::system::process_of;
use crate::{preemption, rights, sampler};
use plan::Next;
use refused::Refusal;

pub use walker::Walker;

/// The loaded programs. Dropping it detaches them.
pub struct Programs {
    skel: SystapeSkel<'static>,
    /// Of the buffers of the CPUs.
    rooms: Rooms,
    bulk: Vec<MapHandle>,
    /// Of the timers that take samples.
    samplers: Vec<libbpf_rs::Link>,
    /// Of the iterator over tasks outside this pid namespace.
    outsiders: Option<libbpf_rs::Link>,
    /// Of the iterator over I/Os in progress.
    ios: Option<libbpf_rs::Link>,
    stacks: bool,
    more_skips: u64,
    poisoned: bool,
    ring_bytes: u64,
    epoch: u32,
    /// Of `new_drops`, when it was looked at last; looks at the drops that are due since.
    drops_seen: u64,
    looks_due: u32,
    /// What the kernel lacks.
    pub notes: Vec<String>,
    /// Families that were asked for and are not recorded.
    pub left_out: Vec<LeftOut>,
    /// They may be preempted.
    pub preemptible: bool,
}

/// How to load: what the attempts before have shown.
#[derive(Debug)]
struct Attempt {
    task_storage: bool,
    /// Programs may be preempted.
    preemptible: bool,
    /// Programs that are left out alone.
    without: Vec<String>,
}

/// Counters of one cause on one CPU, since they were last taken.
#[derive(Clone, Copy, Debug)]
pub struct DropDelta {
    /// Why.
    pub cause: Drop,
    /// Where.
    pub cpu: u32,
    /// How many, first and last time.
    pub count: DropCount,
}

impl DropDelta {
    /// Whether events are missing, rather than left out on purpose or stored without some of their bytes.
    pub fn is_loss(&self) -> bool {
        !matches!(self.cause, Drop::NoScratch | Drop::StringFault | Drop::Own)
    }

    /// Whether each of them is a call that the ledger counts.
    pub fn is_counted(&self) -> bool {
        matches!(self.cause, Drop::Bulk | Drop::State | Drop::Share)
    }
}

impl Programs {
    /// Loads the programs for `config` and attaches them; the window stays closed. What the kernel refuses and the rest can do without is
    /// left out: `config` has what is recorded from then on.
    ///
    /// # Errors
    /// When the kernel refuses what is essential, or everything that was asked for.
    pub fn load(config: &mut Config) -> Result<Self> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep_message)));
        let kernel = Tracepoints::read().map_err(|e| explain(e, ""))?;
        let preemptible = preemption::is_on(kernel.btf());
        let task_storage = config.forced.task_states.is_none();
        let mut attempt = Attempt { task_storage, preemptible, without: Vec::new() };
        let (mut notes, mut left_out, mut first) = (Vec::new(), Vec::new(), None);
        for (family, why) in families::without_tracepoints(&config.families, &kernel) {
            leave_out(config, family, "", why, &mut left_out)?;
        }
        loop {
            let error = match Self::try_load(config, &attempt, &kernel) {
                Ok(mut programs) => {
                    notes.extend(
                        left_out
                            .iter()
                            .map(|left| format!("{} is not recorded: {}", families::name(left.family), left.why())),
                    );
                    notes.append(&mut programs.notes);
                    if let Some((_, _, refusal)) = first {
                        notes.push(programs.without_task_storage(&refusal));
                    }
                    return Ok(Self { notes, left_out, preemptible, ..programs });
                }
                Err(e) => e,
            };
            let said = said();
            let refusal = Refusal::read(&said);
            match plan::next(&refusal, attempt.task_storage) {
                Next::LeaveOut(part, program) => {
                    let why = refusal.reason.clone();
                    match part {
                        Part::Family(family) => leave_out(config, family, &program, why, &mut left_out)?,
                        Part::Stacks(StackOf::Sample) => {
                            leave_out(config, Family::Sample, &program, why, &mut left_out)?;
                        }
                        Part::Stacks(of) => {
                            stacks::options::leave_out(&mut config.stacks, |stack| stack == of);
                            notes.push(format!("no stacks of '{}': {}", stacks::options::name(of), refusal.text()));
                        }
                        Part::Alone(lacks) => {
                            notes.push(format!("{lacks}: {}", refusal.text()));
                            attempt.without.push(program);
                        }
                        Part::Essential => return Err(explain(error, &said)),
                    }
                }
                Next::WithoutTaskStorage => {
                    attempt.task_storage = false;
                    first = Some((error, said, refusal));
                }
                Next::GiveUp => {
                    // the first try's is the real one: the second was another way round it
                    let (error, said, _) = first.unwrap_or((error, said, refusal));
                    return Err(explain(error, &said));
                }
            }
        }
    }

    /// What to tell of recording without task storage, which `refusal` made necessary.
    fn without_task_storage(&self, refusal: &Refusal) -> String {
        let room = self.skel.maps.task_states_by_tid.max_entries();
        let why = match refusal.of_task_storage {
            true => "this kernel lets tracing programs keep nothing with a task (5.12 does)".to_owned(),
            false => format!("{}; they are loaded in the way that 5.10 needs", refusal.text()),
        };
        format!("{why}: what is known of a task takes longer to find, and there is room for {room}")
    }

    fn try_load(config: &Config, attempt: &Attempt, kernel: &Tracepoints) -> Result<Self> {
        MESSAGES.lock().map(|mut m| m.clear()).ok();
        // The skeleton borrows this for its whole life, which is the process's.
        let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = SystapeSkelBuilder::default().open(storage).context("cannot open the BPF object")?;
        let rings = options::ring_count()?;
        let rooms = options::buffer_rooms(config, rings)?;
        options::set(&mut open, config, attempt.task_storage, rings, rooms)?;
        let targets = options::tells_tasks_apart(config);
        options::set_softirqs(&mut open, kernel.btf());
        options::set_registers(&mut open, kernel.btf());
        let notes = families::choose(&mut open, &config.families, &config.stacks.on, targets, kernel)?;
        let twice = config.families.has(Family::Syscall) && (attempt.preemptible || config.forced.skip_first.is_some());
        families::run_twice(&mut open, twice)?;
        leave_out_programs(&mut open, &attempt.without, &config.forced.unloadable)?;
        let skel = open.load().context("the kernel refused the BPF programs")?;
        let stacks = !config.stacks.on.is_empty();
        let more_skips = config.forced.skips.map_or(0, u64::from);
        let mut programs = Self {
            skel,
            rooms,
            bulk: Vec::new(),
            samplers: Vec::new(),
            outsiders: None,
            stacks,
            ios: None,
            more_skips,
            poisoned: config.forced.poison,
            ring_bytes: 0,
            epoch: 0,
            drops_seen: 0,
            looks_due: 0,
            notes,
            left_out: Vec::new(),
            preemptible: false,
        };
        programs.make_rings(rings, options::bulk_ring(config, rings))?;
        programs.fill_tables(config)?;
        programs.note_self()?;
        programs.skel.attach().context("cannot attach the BPF programs")?;
        let has = |program: &str| !attempt.without.iter().any(|name| name == program);
        if options::watches_outside(config) && has("walk_outsiders") {
            let outsiders = programs.skel.maps.outsiders.as_fd();
            let link = programs.skel.progs.walk_outsiders.attach_iter(outsiders);
            programs.outsiders = Some(link.context("cannot attach the iterator of tasks outside")?);
        }
        if config.families.has(Family::Block) && has("walk_ios") {
            let link = programs.skel.progs.walk_ios.attach_iter(programs.skel.maps.ios.as_fd());
            programs.ios = Some(link.context("cannot attach the iterator of I/Os")?);
        }
        if config.stacks.frequency > 0 {
            programs.samplers =
                sampler::attach(&programs.skel.progs.cpu_sample, config.stacks.frequency, config.cpus.as_deref())?;
        }
        Ok(programs)
    }

    fn make_rings(&mut self, rings: u32, bytes: u32) -> Result<()> {
        for index in 0..rings {
            let opts = libbpf_rs::libbpf_sys::bpf_map_create_opts {
                sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
                ..Default::default()
            };
            let ring = MapHandle::create(MapType::RingBuf, Some("systape_bulk"), 0, 0, bytes, &opts)
                .with_context(|| format!("cannot make ring {index} of {bytes} bytes; try a smaller -m"))?;
            let fd = ring.as_fd().as_raw_fd();
            self.skel.maps.bulk_rings.update(&index.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)?;
            self.bulk.push(ring);
        }
        let (state, process) = (&self.skel.maps.state_ring, &self.skel.maps.process_ring);
        self.ring_bytes = u64::from(rings) * u64::from(bytes);
        self.ring_bytes += u64::from(state.max_entries()) + u64::from(process.max_entries());
        self.ring_bytes += self.rooms.bytes();
        if self.stacks {
            self.ring_bytes += u64::from(self.skel.maps.stack_ring.max_entries());
        }
        Ok(())
    }

    fn fill_tables(&mut self, config: &Config) -> Result<()> {
        let maps = &self.skel.maps;
        for slot in 0..SLOTS {
            maps.free_slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY).context("free_slots")?;
        }
        for slot in 0..maps.free_stack_slots.max_entries() {
            maps.free_stack_slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY).context("free_stack_slots")?;
        }
        if config.forced.poison {
            for (map, count) in [(&maps.slots, SLOTS), (&maps.stack_slots, maps.free_stack_slots.max_entries())] {
                let poison = vec![POISON; map.value_size() as usize];
                for index in 0..count {
                    map.update(&index.to_ne_bytes(), &poison, MapFlags::ANY).context("scratch slots")?;
                }
            }
        }
        let table = |abi| calls::table(abi, &config.selection, &config.filter);
        for (index, desc) in (0u32..).zip([table(Abi::X86_64), table(Abi::I386)].iter().flatten()) {
            maps.calls.update(&index.to_ne_bytes(), desc_bytes(desc), MapFlags::ANY).context("calls")?;
        }
        for &cpu in config.cpus.iter().flatten() {
            maps.target_cpus.update(&cpu.to_ne_bytes(), &[1], MapFlags::ANY).context("target_cpus")?;
        }
        for &pid in &config.pids {
            self.add_target(pid, target_bits::PID)?;
        }
        for &tid in &config.tids {
            // a thread's table of files is its process's: what the other threads do to it matters
            if let Some(pid) = process_of(tid).filter(|pid| *pid != tid && !config.pids.contains(pid)) {
                let both = if config.tids.contains(&pid) { target_bits::TID } else { 0 };
                self.add_target(pid, target_bits::STATE | both)?;
            }
        }
        for &tid in config.tids.iter().filter(|tid| !config.pids.contains(tid)) {
            let leads = process_of(tid) == Some(tid);
            self.add_target(tid, target_bits::TID | if leads { target_bits::STATE } else { 0 })?;
        }
        Ok(())
    }

    /// Has the kernel side note who the recorder is, before any program runs that must know: in a container no file tells.
    fn note_self(&mut self) -> Result<()> {
        let link = self.skel.progs.walk_tasks.attach().context("cannot attach the task iterator")?;
        self.set_walk(walk::SELF);
        let walk = open_iterator(link.as_fd())?;
        let known = registers::read_known(walk.as_fd()).context("cannot walk the tasks")?;
        self.set_walk(walk::READ);
        // it would record itself
        anyhow::ensure!(self.own_pid() != 0, "the task iterator did not see this process");
        self.check_registers(&known);
        Ok(())
    }

    /// Programs that read something else than a task's registers are to read none.
    fn check_registers(&mut self, known: &Known) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        // SAFETY: as in open_window; written by the walk.
        let read = unsafe { ptr::read_volatile(&raw const bss.own_regs) };
        if known.agrees(&read) {
            return;
        }
        // SAFETY: as in open_window.
        unsafe { ptr::write_volatile(&raw mut bss.regs_at, 0) };
        self.notes.push(registers::UNKNOWN.into());
    }

    /// Whether the programs know where tasks' registers are.
    pub fn knows_registers(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.regs_at) } != 0)
    }

    /// This process's id on the machine.
    pub fn own_pid(&self) -> u32 {
        // SAFETY: as in open_window; written by the kernel side.
        self.skel.maps.bss_data.as_deref().map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.own_tgid) })
    }

    /// Whether ids here are not the machine's: this is not its first pid namespace.
    pub fn is_nested(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.own_level) } > 0)
    }

    /// Makes a process or thread a target of [`Self::mark`], by its id in this pid namespace.
    pub fn add_target(&self, id: u32, bits: u32) -> Result<()> {
        self.skel.maps.targets.update(&id.to_ne_bytes(), &bits.to_ne_bytes(), MapFlags::ANY).context("targets")
    }

    /// Bytes of all rings.
    pub fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }

    /// The rings, in the order they should be read: state and process records are rare and must not wait.
    pub fn rings(&self) -> Vec<&dyn MapCore> {
        let mut all: Vec<&dyn MapCore> = vec![&self.skel.maps.process_ring, &self.skel.maps.state_ring];
        all.extend(self.bulk.iter().map(|ring| ring as &dyn MapCore));
        all
    }

    /// The buffers of the CPUs.
    ///
    /// # Errors
    /// When they cannot be mapped.
    pub fn cpu_buffers(&self) -> Result<CpuBuffers> {
        let maps = &self.skel.maps;
        let (positions, calls, sched) = (&maps.cpu_buffers, &maps.buffered_calls, &maps.buffered_sched);
        CpuBuffers::map(positions.as_fd(), calls.as_fd(), sched.as_fd(), self.rooms)
            .context("cannot map the buffers of the CPUs")
    }

    /// The ring of stacks; None when none are taken.
    pub fn stack_ring(&self) -> Option<&dyn MapCore> {
        self.stacks.then_some(&self.skel.maps.stack_ring as &dyn MapCore)
    }

    /// What the BPF side counted is read by this.
    pub fn ledger(&self) -> Result<Tables> {
        let maps = &self.skel.maps;
        let sums = [MapHandle::try_from(&maps.ledger_a)?, MapHandle::try_from(&maps.ledger_b)?];
        let coarse = [MapHandle::try_from(&maps.coarse_a)?, MapHandle::try_from(&maps.coarse_b)?];
        let (words, rings) = (MapHandle::try_from(&maps.ledger_words)?, MapHandle::try_from(&maps.bulk_rings)?);
        let ring = MapHandle::try_from(self.bulk.first().context("there are no rings")?)?;
        let lane_per_cpu = options::lanes(options::ring_count()?) as usize >= libbpf_rs::num_possible_cpus()?;
        let busy = MapHandle::try_from(&maps.ledger_busy)?;
        Ok(Tables::new(sums, busy, coarse, words, rings, ring, lane_per_cpu))
    }

    /// Whether scratch memory was filled with poison.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// Whether the ledger is checked: then it is read back to back.
    pub fn checks_ledger(&self) -> bool {
        self.skel.maps.rodata_data.is_some_and(|options| options.ledger_check)
    }

    /// The rings were looked at: every process has its share of them again.
    pub fn looked(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.looks, bss.looks.wrapping_add(1)) };
        }
    }

    /// With --force ledger-check: calls, their sum and sizes that the ledger must come to.
    pub fn checked(&self, poisoned: Poisoned) -> Option<Checked> {
        let bss = self.skel.maps.bss_data.as_deref()?;
        Some(Checked { calls: bss.checked_calls, sum: bss.checked_sum, sizes: bss.checked_sizes.to_vec(), poisoned })
    }

    /// Starts the recording; the time given is the first one events may have.
    fn open_window(&mut self) -> u64 {
        let now = crate::clock::monotonic();
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: bss is the map's memory, mapped for as long as the skeleton lives; volatile because the programs
            // read it at the same time.
            unsafe {
                ptr::write_volatile(&raw mut bss.window_open_ts, now);
                ptr::write_volatile(&raw mut bss.window, window::OPEN);
            }
        }
        now
    }

    /// No new calls from here on; those that are open are still recorded when they end.
    pub fn close_window(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.window, window::DRAINING) };
        }
    }

    /// Marks the tasks to record. What they fork from here on is marked too.
    pub fn mark(&mut self) -> Result<()> {
        self.set_walk(walk::MARK);
        self.walker()?.walk()?;
        self.set_walk(walk::READ);
        Ok(())
    }

    /// Opens the window, and tells what every task was doing then: the time of the opening, and one record per task.
    /// Marked before, no call of a target's after the opening is missed.
    pub fn start(&mut self) -> Result<(u64, Vec<Snap>)> {
        let walker = self.walker()?;
        if let Some(files) = &self.skel.links.walk_files {
            let files = files.as_fd().try_clone_to_owned()?;
            self.set_walk(walk::FILES);
            walker.walk()?;
            self.set_walk(walk::READ);
            iterate(files.as_fd()).context("cannot walk the open files")?;
        }
        let opened = self.open_window();
        self.set_walk(walk::CALLS);
        let snaps = walker.walk();
        self.set_walk(walk::READ);
        Ok((opened, snaps?))
    }

    fn set_walk(&mut self, mode: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.walk_mode, mode) };
        }
    }

    /// Skipped runs of second programs that cost nothing, until now.
    pub fn harmless_skips(&self) -> u64 {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.harmless_skips) })
    }

    /// Watches for runs that the kernel skips, from now on.
    pub fn skips(&self) -> Skips {
        Skips::new(self.skel.object(), self.more_skips)
    }

    /// The loaded programs by name, and how large a ring of each kind is.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn measured(&self) -> Result<(Vec<(String, OwnedFd)>, RingSizes)> {
        let loaded = self.skel.object().progs().filter(|program| program.as_fd().as_raw_fd() >= 0);
        let programs = loaded
            .map(|program| Ok((program.name().to_string_lossy().into_owned(), program.as_fd().try_clone_to_owned()?)));
        let maps = &self.skel.maps;
        let rings = RingSizes {
            buffers: self.rooms.each(),
            bulk: self.bulk.first().map_or(0, |ring| ring.max_entries().into()),
            state: maps.state_ring.max_entries().into(),
            process: maps.process_ring.max_entries().into(),
            stacks: self.stack_ring().map_or(0, |ring| ring.max_entries().into()),
        };
        Ok((programs.collect::<Result<_>>()?, rings))
    }

    /// The iterators over stacks of tasks that sleep; None: they were not asked for.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn sleepers(&self) -> Result<Option<asleep::Links>> {
        let links = &self.skel.links;
        let Some(plain) = &links.walk_sleepers else { return Ok(None) };
        let copying = links.copy_sleepers.as_ref().map(|link| link.as_fd().try_clone_to_owned()).transpose()?;
        Ok(Some(asleep::Links { plain: plain.as_fd().try_clone_to_owned()?, copying }))
    }

    /// Something that walks tasks on its own, from any thread.
    pub fn walker(&self) -> Result<Walker> {
        let link = self.skel.links.walk_tasks.as_ref().context("the task iterator is not attached")?;
        Walker::new(link.as_fd(), self.outsiders.as_ref().map(|link| link.as_fd()))
    }

    /// Whether something may have been counted that [`Self::take_drops`] and [`Self::take_lost_state`] have not told. They are system
    /// calls, this is a look at memory. Two calls after something new say so: it may be in the half that the first does not read.
    pub fn has_drops(&mut self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        let now = bss.map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.new_drops) });
        if now != std::mem::replace(&mut self.drops_seen, now) {
            self.looks_due = 2;
        }
        let due = self.looks_due > 0;
        self.looks_due = self.looks_due.saturating_sub(1);
        due
    }

    /// Counts the I/Os that are over although no program saw their end.
    ///
    /// # Errors
    /// When the kernel does not let the table of I/Os be walked.
    pub fn count_unseen_ios(&self) -> Result<()> {
        self.ios.as_ref().map_or(Ok(()), |ios| iterate(ios.as_fd()).map(drop))
    }

    /// What was lost since the last call. Counters of a half that the programs just left are read one call later, when
    /// none of them can still be writing it.
    pub fn take_drops(&mut self) -> Result<Vec<DropDelta>> {
        let old = self.epoch ^ 1;
        let mut deltas = Vec::new();
        let zero = vec![vec![0u8; size_of::<DropCount>()]; libbpf_rs::num_possible_cpus()?];
        for cause in Drop::ALL {
            let key = (old * Drop::ALL.len() as u32 + cause as u32).to_ne_bytes();
            let Some(values) = self.skel.maps.drops.lookup_percpu(&key, MapFlags::ANY)? else { continue };
            let counts: Vec<DropCount> = values.iter().filter_map(|v| drop_count(v)).collect();
            if counts.iter().all(|c| c.count == 0) {
                continue;
            }
            self.skel.maps.drops.update_percpu(&key, &zero, MapFlags::ANY)?;
            let lost = counts.into_iter().enumerate().filter(|(_, c)| c.count > 0);
            deltas.extend(lost.map(|(cpu, count)| DropDelta { cause, cpu: cpu as u32, count }));
        }
        self.epoch = old;
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.drop_epoch, old) };
        }
        Ok(deltas)
    }

    /// Processes that lost a state record since this was asked last.
    pub fn take_lost_state(&mut self) -> Vec<LostState> {
        let map = &self.skel.maps.lost_state_pids;
        let mut lost: Vec<(u32, u64)> = Vec::new();
        for key in map.keys().collect::<Vec<_>>() {
            let first = map.lookup(&key, MapFlags::ANY).ok().flatten().and_then(|v| v.first_chunk::<8>().copied());
            // an entry has the time of the first loss only; a loss after this makes a new one
            map.delete(&key).ok();
            if let (Some(pid), Some(first)) = (key.first_chunk::<4>(), first) {
                lost.push((u32::from_ne_bytes(*pid), u64::from_ne_bytes(first)));
            }
        }
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            let first = unsafe { ptr::read_volatile(&raw const bss.lost_state_unknown) };
            if first != 0 {
                // SAFETY: as in open_window.
                unsafe { ptr::write_volatile(&raw mut bss.lost_state_unknown, 0) };
                lost.push((0, first));
            }
        }
        // all of them lie before this, and so do those that found their process's entry there
        let last = crate::clock::monotonic();
        lost.into_iter().map(|(pid, first)| LostState { pid, first, last }).collect()
    }
}

/// A process that lost records of changes of its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostState {
    /// 0 = any process.
    pub pid: u32,
    /// When the first of them was lost.
    pub first: u64,
    /// There may have been more until then.
    pub last: u64,
}

fn desc_bytes(desc: &CallDesc) -> &[u8] {
    // SAFETY: a repr(C) struct of bytes without padding, read as its bytes.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(desc).cast::<u8>(), size_of::<CallDesc>()) }
}

fn drop_count(value: &[u8]) -> Option<DropCount> {
    let field = |i: usize| value.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    Some(DropCount { count: field(0)?, first: field(1)?, last: field(2)? })
}

/// What libbpf said last, for the message when loading fails.
static MESSAGES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

fn keep_message(_: PrintLevel, text: String) {
    if let Ok(mut messages) = MESSAGES.lock()
        && messages.len() < 200
    {
        messages.push(text);
    }
}

/// All of it.
fn said() -> String {
    MESSAGES.lock().map(|m| m.join("")).unwrap_or_default()
}

/// Notes that `family` is not recorded; refuses when nothing is left of what was asked for.
fn leave_out(
    config: &mut Config,
    family: Family,
    program: &str,
    reason: String,
    left: &mut Vec<LeftOut>,
) -> Result<()> {
    config.leave_out(family);
    left.push(LeftOut { family, program: program.to_owned(), reason });
    if !config.records_more_than_life() {
        let all: Vec<_> = left
            .iter()
            .map(|left| format!("{} cannot be recorded: {}", families::name(left.family), left.why()))
            .collect();
        bail!("{}", all.join("; "));
    }
    Ok(())
}

/// Keeps the programs of `without` from being loaded, and has the kernel refuse those of `unloadable`.
fn leave_out_programs(open: &mut OpenSystapeSkel<'static>, without: &[String], unloadable: &[String]) -> Result<()> {
    /// A flag of programs that no kernel knows.
    const UNKNOWN_FLAG: u32 = 1 << 31;
    let mut refused = 0;
    for mut program in open.open_object_mut().progs_mut() {
        let is_in = |names: &[String]| names.iter().any(|name| program.name() == name.as_str());
        let (out, bad) = (is_in(without), is_in(unloadable));
        if out {
            program.set_autoload(false);
        }
        if bad {
            refused += 1;
            program.set_flags(UNKNOWN_FLAG);
        }
    }
    anyhow::ensure!(refused == unloadable.len(), "--force unloadable: no such program among {}", unloadable.join(", "));
    Ok(())
}

/// Adds what the user can do about it; `said` is what libbpf said.
fn explain(error: anyhow::Error, said: &str) -> anyhow::Error {
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return error.context("this kernel has no BTF (/sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF=y");
    }
    if let Some(how) = rights::how_to_get() {
        return anyhow::anyhow!(how);
    }
    if error.chain().any(|cause| cause.to_string().contains("Too many open files")) {
        return error.context("record needs some 200 open files; raise the limit: ulimit -n 1024");
    }
    let tail: String = said.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    error.context(format!("the kernel's last words:\n{tail}\nloading failed"))
}

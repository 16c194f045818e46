//! Opens, sizes, loads and attaches the BPF programs. Their maps: [`rings`], [`tables`], [`drops`], and [`switches`] for single variables.
//!
//! Trials decide what the kernel supports (task storage), never its version. A family whose program the kernel refuses
//! is left out, and the rest is recorded. A failure to load is explained by what the user lacks: a capability, BTF, or
//! a kernel feature.

mod drops;
mod forbidden;
mod kprobe;
mod looks;
mod messages;
mod options;
mod per_key;
mod plan;
mod refused;
mod rings;
mod switches;
mod tables;
mod walker;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{Link, MapCore, MapHandle, OpenObject, TracepointCategory, TracepointOpts, UprobeOpts};
use systape_abi::plain;
use systape_bpf::{OpenSystapeSkel, SystapeSkel};
use systape_format::families::{
    FAULT_MAJOR, IO_URING_DESCRIPTOR, LOCK_UNPAIRED, LOOK_IDLE, LOOK_SECOND, LOOK_STAY, SOCKET_ERROR,
    SOCKET_RETRANSMIT, SOCKET_TCP,
};
use systape_format::model::{Family, LeftOut, StackOf};
use systape_format::table::TableDef;

use crate::config::RecordConfig;
use crate::kernel::families::{self, Tracepoints};
use crate::kernel::programs::Part;
use crate::kernel::skips::Skips;
use crate::kernel::{major_faults, preemption, sampler};
use crate::ledger::LedgerTables;
use crate::machine::lock_names::LockNames;
use crate::probes::{Binary, Place, Probe, Static};
use crate::rings::cpu_buffers::CpuBuffers;
use crate::rings::lock_buffers::LockBuffers;
use crate::rings::sizes::RingSizes;
use crate::stacks::{self, asleep};
use drops::Drops;
use per_key::PerKey;
use plan::AfterRefusal;
use refused::Refusal;
use rings::LoadedRings;
use walker::Outsiders;

pub(crate) use drops::{DropDelta, LostState};
pub(crate) use looks::{FoundThreads, LookCopier, LookPrograms};
pub(crate) use walker::{FirstDescriptors, Walker};

/// The loaded programs. Dropping it detaches them.
pub(crate) struct Programs {
    skel: SystapeSkel<'static>,
    rings: LoadedRings,
    /// Of the timers that take samples.
    samplers: Vec<Link>,
    /// Of the event of major page faults.
    major_faults: Vec<Link>,
    /// What the programs of locks write to; None = not recorded, or the drain has it.
    locks: Option<LockBuffers>,
    lock_bytes: u64,
    /// Attachments to the tracepoints of -e, and their tables.
    tracepoints: Vec<(Link, Arc<TableDef>)>,
    /// Attachments to functions.
    probes: Vec<Link>,
    /// Tables of functions.
    probed: Vec<Arc<TableDef>>,
    more_skips: u64,
    poisoned: bool,
    drops: Drops,
    /// Features the kernel lacks.
    pub notes: Vec<String>,
    /// Requested families that are not recorded.
    pub left_out: Vec<LeftOut>,
    /// Programs may be preempted.
    pub preemptible: bool,
    /// The kernel says which descriptor an operation of io_uring closes.
    knows_closes: bool,
}

/// How to load, given the attempts before.
#[derive(Debug)]
struct Attempt {
    task_storage: bool,
    /// Programs may be preempted.
    preemptible: bool,
    /// Programs left out alone.
    without: Vec<String>,
}

/// Most places that the kernel refused which are named one by one.
const MOST_REFUSED: usize = 16;

/// Which place is not probed, and why.
fn not_probed(what: &str, binary: &Binary, error: &anyhow::Error) -> String {
    format!("{} of {} is not probed: {error:#}", plain(what), binary.words())
}

impl Programs {
    /// Loads the programs for `config` and attaches them, if it is not armed; the window stays closed. Optional parts that the kernel
    /// refuses are left out: afterwards `config` has what is recorded.
    ///
    /// # Errors
    /// When the kernel refuses an essential part, or everything requested.
    pub(crate) fn load(config: &mut RecordConfig) -> Result<Self> {
        messages::keep();
        let kernel = Tracepoints::read().map_err(|e| messages::explain(e, ""))?;
        let preemptible = preemption::is_on(kernel.btf(), kernel.symbols());
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
            let said = messages::said();
            let refusal = Refusal::read(&said);
            match plan::next(&refusal, attempt.task_storage) {
                AfterRefusal::LeaveOut(part, program) => {
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
                        Part::Essential => return Err(messages::explain(error, &said)),
                    }
                }
                AfterRefusal::WithoutTaskStorage => {
                    attempt.task_storage = false;
                    first = Some((error, said, refusal));
                }
                AfterRefusal::GiveUp => {
                    // the first try's is the real one where the second was another way round it, not what old kernels need
                    let before = first.filter(|(_, _, refusal)| !refusal.of_task_storage);
                    let (error, said, _) = before.unwrap_or((error, said, refusal));
                    return Err(messages::explain(error, &said));
                }
            }
        }
    }

    /// The note about recording without task storage, because of `refusal`.
    fn without_task_storage(&self, refusal: &Refusal) -> String {
        let room = self.skel.maps.task_states_by_tid.max_entries();
        let why = match refusal.of_task_storage {
            true => "this kernel lets tracing programs keep nothing with a task (5.12 does)".to_owned(),
            false => format!("{}; they are loaded in the way that 5.10 needs", refusal.text()),
        };
        format!("{why}: what is known of a task takes longer to find, and there is room for {room}")
    }

    fn try_load(config: &RecordConfig, attempt: &Attempt, kernel: &Tracepoints) -> Result<Self> {
        messages::forget();
        // The skeleton borrows this for its whole life, which is the process's.
        let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = systape_bpf::open(storage).context("cannot open the BPF object")?;
        let rings = options::ring_count()?;
        let rooms = options::buffer_rooms(config, rings)?;
        options::set(&mut open, config, attempt.task_storage, rings, rooms)?;
        let targets = options::tells_tasks_apart(config);
        options::set_softirqs(&mut open, kernel.btf(), kernel.symbols());
        options::set_registers(&mut open, kernel.btf());
        let notes = families::choose(&mut open, &config.families, &config.stacks.on, targets, kernel)?;
        if config.probes.is_empty() {
            open.progs.probe_entry.set_autoload(false);
            open.progs.probe_return.set_autoload(false);
        }
        if config.usdt.probes.is_empty() {
            open.progs.static_probe.set_autoload(false);
        }
        if config.tracepoints.iter().all(|one| one.packet.is_some()) {
            open.progs.any_tracepoint.set_autoload(false);
        }
        if config.tracepoints.iter().all(|one| one.packet.is_none()) {
            open.progs.packet_tracepoint.set_autoload(false);
        }
        let twice = config.families.has(Family::Syscall) && (attempt.preemptible || config.forced.skip_first.is_some());
        families::run_twice(&mut open, twice)?;
        open.progs.exec_environ.set_autoload(!config.env.is_empty());
        leave_out_programs(&mut open, &attempt.without, &config.forced.unloadable)?;
        let skel = open.load().context("the kernel refused the BPF programs")?;
        let stacks = !config.stacks.on.is_empty();
        let all_rings = rings + u32::from(config.families.has(Family::Tracepoint));
        let made = LoadedRings::make(&skel, (all_rings, options::bulk_ring(config, rings)), rooms, stacks)?;
        let more_skips = config.forced.skips.map_or(0, u64::from);
        let mut programs = Self {
            skel,
            rings: made,
            samplers: Vec::new(),
            major_faults: Vec::new(),
            locks: None,
            lock_bytes: 0,
            tracepoints: Vec::new(),
            probes: Vec::new(),
            probed: Vec::new(),
            more_skips,
            poisoned: config.forced.poison,
            drops: Drops::default(),
            notes,
            left_out: Vec::new(),
            preemptible: false,
            knows_closes: kernel.knows_closes(),
        };
        tables::fill(&programs.skel, config, kernel.symbols())?;
        programs.note_self()?;
        if config.families.has(Family::Lock) {
            let with_stacks = config.stacks.on.contains(&StackOf::Row);
            // -m asks for smaller ones too
            let most = options::bulk_ring(config, rings) as usize / 4;
            let buffers = LockBuffers::open(&programs.skel.maps.lock_events, most, with_stacks)?;
            programs.lock_bytes = buffers.bytes();
            programs.locks = Some(buffers);
        }
        if !config.armed {
            programs.attach(config)?;
        }
        Ok(programs)
    }

    /// Attaches the programs.
    ///
    /// # Errors
    /// When the kernel refuses an essential one.
    pub(crate) fn attach(&mut self, config: &RecordConfig) -> Result<()> {
        self.skel.attach().context("cannot attach the BPF programs")?;
        self.attach_tracepoints(config)?;
        self.attach_probes(config)?;
        self.attach_static(config)?;
        if config.families.has(Family::Fault) {
            self.attach_major_faults(config);
        }
        if config.stacks.frequency > 0 {
            self.samplers =
                sampler::attach(&self.skel.progs.cpu_sample, config.stacks.frequency, config.cpus.as_deref())?;
        }
        Ok(())
    }

    /// Attaches the program of major faults, if it was loaded; notes why not.
    fn attach_major_faults(&mut self, config: &RecordConfig) {
        let progs = &self.skel.progs;
        let loaded = [&progs.fault_major, &progs.fault_major_plain].into_iter().find(|one| is_loaded(one));
        let Some(program) = loaded else { return };
        match major_faults::attach(program, config.cpus.as_deref()) {
            Ok(links) => self.major_faults = links,
            Err(error) => self.notes.push(format!("major page faults are not listed: {error:#}")),
        }
    }

    /// Attaches the program of any tracepoint to those of -e; notes what the kernel refuses.
    ///
    /// # Errors
    /// When it refuses all.
    fn attach_tracepoints(&mut self, config: &RecordConfig) -> Result<()> {
        if !config.families.has(Family::Tracepoint) || config.tracepoints.is_empty() {
            return Ok(());
        }
        let mut refused = Vec::new();
        for (at, one) in config.tracepoints.iter().enumerate() {
            let opts = TracepointOpts { cookie: one.cookie(at + 1), ..TracepointOpts::default() };
            let category = TracepointCategory::Custom(one.category.clone());
            let progs = &self.skel.progs;
            let program = if one.packet.is_some() { &progs.packet_tracepoint } else { &progs.any_tracepoint };
            match program.attach_tracepoint_with_opts(category, &one.name, opts) {
                Ok(link) => self.tracepoints.push((link, Arc::clone(&one.def))),
                Err(error) => refused.push(format!("{} is not recorded: {error:#}", one.def.name)),
            }
        }
        if self.tracepoints.is_empty() {
            bail!("{}", refused.join("; "));
        }
        self.notes.append(&mut refused);
        Ok(())
    }

    /// Attaches the programs of functions. A place that the kernel refuses is left out alone, with a note.
    ///
    /// # Errors
    /// When the kernel refuses all of them.
    fn attach_probes(&mut self, config: &RecordConfig) -> Result<()> {
        if !config.families.has(Family::Tracepoint) {
            return Ok(());
        }
        let mut refused = Vec::new();
        for (at, one) in config.probes.iter().enumerate() {
            let before = self.probes.len();
            for place in &one.places {
                match self.attach_place(at + 1, one, place) {
                    Ok(links) => self.probes.extend(links),
                    Err(error) => refused.push(not_probed(&one.def.name, &place.binary, &error)),
                }
            }
            if let Some(function) = &one.kernel {
                let (progs, cookie) = (&self.skel.progs, one.cookie(at + 1));
                let context = || format!("--kprobe {function}");
                if one.result.is_some() {
                    let link = kprobe::attach(&progs.probe_return, function, true, cookie);
                    self.probes.push(link.with_context(context)?);
                }
                let link = kprobe::attach(&progs.probe_entry, function, false, cookie);
                self.probes.push(link.with_context(context)?);
            }
            if self.probes.len() > before {
                self.probed.extend([Arc::clone(&one.def), Arc::clone(&one.unpaired)]);
            }
        }
        self.note_refused(refused)
    }

    /// The links of a function in a file: all that it needs, or none.
    fn attach_place(&self, number: usize, one: &Probe, place: &Place) -> Result<Vec<Link>> {
        let attach = |program: &libbpf_rs::ProgramMut<'_>, retprobe: bool, offset: u64, cookie: u64| {
            let opts = UprobeOpts { cookie, retprobe, ..UprobeOpts::default() };
            // every process that runs the file, now or later
            program.attach_uprobe_with_opts(-1, place.binary.by_descriptor(), offset as usize, opts)
        };
        let (progs, cookie) = (&self.skel.progs, one.cookie(number));
        let mut links = Vec::new();
        // returns first: an entry that is seen must have a return that is
        for offset in &place.returns {
            links.push(attach(&progs.probe_return, false, *offset, one.cookie_of_return(number))?);
        }
        let by_address = one.result.is_some() && place.returns.is_empty();
        if by_address {
            links.push(attach(&progs.probe_return, true, place.offset, cookie)?);
        }
        let entry = if by_address { place.offset } else { place.entry };
        links.push(attach(&progs.probe_entry, false, entry, cookie)?);
        Ok(links)
    }

    /// Attaches the program of static probes. A place that the kernel refuses is left out alone, with a note.
    ///
    /// # Errors
    /// When the kernel refuses all of them.
    fn attach_static(&mut self, config: &RecordConfig) -> Result<()> {
        if !config.families.has(Family::Tracepoint) {
            return Ok(());
        }
        let mut refused = Vec::new();
        for (at, one) in config.usdt.probes.iter().enumerate() {
            let before = self.probes.len();
            for place in &one.places {
                let cookie = Static::cookie(at + 1, place);
                let ref_ctr_offset = place.semaphore as usize;
                let opts = UprobeOpts { cookie, ref_ctr_offset, ..UprobeOpts::default() };
                let (program, file) = (&self.skel.progs.static_probe, place.binary.by_descriptor());
                match program.attach_uprobe_with_opts(-1, file, place.offset as usize, opts) {
                    Ok(link) => self.probes.push(link),
                    Err(error) => refused.push(not_probed(&one.def.name, &place.binary, &error.into())),
                }
            }
            if self.probes.len() > before {
                self.probed.push(Arc::clone(&one.def));
            }
        }
        self.note_refused(refused)
    }

    /// Notes which places are not probed.
    ///
    /// # Errors
    /// When none is.
    fn note_refused(&mut self, mut refused: Vec<String>) -> Result<()> {
        if self.probes.is_empty() && !refused.is_empty() {
            bail!("{}", refused.join("; "));
        }
        let more = refused.len().saturating_sub(MOST_REFUSED);
        refused.truncate(MOST_REFUSED);
        self.notes.append(&mut refused);
        if more > 0 {
            self.notes.push(format!("{more} more places are not probed"));
        }
        Ok(())
    }

    /// Tables of what is recorded, with or without rows: tracepoints that the kernel did not refuse, functions, sockets, major faults, waits
    /// and descriptors of io_uring.
    pub(crate) fn tables(&self) -> Vec<Arc<TableDef>> {
        let links = &self.skel.links;
        let of_sockets = [
            (&SOCKET_TCP, links.inet_sock_set_state.is_some()),
            (&SOCKET_RETRANSMIT, links.tcp_retransmit_skb.is_some()),
            (&SOCKET_ERROR, links.inet_sk_error_report.is_some()),
        ];
        let of_faults = (&FAULT_MAJOR, !self.major_faults.is_empty());
        let of_locks = (&LOCK_UNPAIRED, links.lock_begin.is_some());
        let of_rings = (&IO_URING_DESCRIPTOR, self.follows_rings());
        let looks = is_loaded(&self.skel.progs.look_walk);
        let of_looks = [(&LOOK_STAY, looks), (&LOOK_SECOND, looks), (&LOOK_IDLE, looks)];
        let on = of_sockets
            .into_iter()
            .chain([of_faults, of_locks, of_rings])
            .chain(of_looks)
            .filter(|(_, on)| *on)
            .map(|(def, _)| Arc::new(def.clone()));
        let asked_for = self.tracepoints.iter().map(|(_, def)| def).chain(&self.probed);
        on.chain(asked_for.cloned()).collect()
    }

    /// Whether what operations of io_uring do to descriptors is recorded.
    pub(crate) fn follows_rings(&self) -> bool {
        let links = &self.skel.links;
        let submitted = links.io_uring_submit_req.is_some() || links.io_uring_submit_sqe.is_some();
        let ended = links.io_uring_complete.is_some() || links.io_uring_complete_res.is_some();
        self.knows_closes && submitted && ended
    }

    /// Makes a process or thread a target of [`Self::mark`], by its id in this pid namespace.
    ///
    /// # Errors
    /// When the table is full.
    pub(crate) fn add_target(&self, id: u32, bits: u32) -> Result<()> {
        tables::add_target(&self.skel, id, bits)
    }

    /// Bytes of all rings.
    pub(crate) fn ring_bytes(&self) -> u64 {
        self.rings.bytes(&self.skel) + self.lock_bytes
    }

    /// The rings, in the order of reading: state and process records are rare and must not wait.
    pub(crate) fn rings(&self) -> Vec<&dyn MapCore> {
        self.rings.all(&self.skel)
    }

    /// The buffers of the CPUs.
    ///
    /// # Errors
    /// When they cannot be mapped.
    pub(crate) fn cpu_buffers(&self) -> Result<CpuBuffers> {
        self.rings.buffers(&self.skel)
    }

    /// The buffers of locks, for the drain; None = not recorded, or taken already.
    pub(crate) fn take_locks(&mut self) -> Option<LockBuffers> {
        self.locks.take()
    }

    /// Names of locks; none if they are not recorded or names are not wanted.
    pub(crate) fn lock_names(&self, wanted: bool) -> Arc<LockNames> {
        Arc::new(if wanted && self.locks.is_some() { LockNames::read() } else { LockNames::default() })
    }

    /// The stack ring; None without stacks.
    pub(crate) fn stack_ring(&self) -> Option<&dyn MapCore> {
        self.rings.of_stacks(&self.skel)
    }

    /// Whether there may be counts that [`Self::take_drops`] and [`Self::take_lost_state`] have not returned. Those are
    /// system calls; this is a read of memory. It returns true twice after a new count, which may be in the half that
    /// the first read leaves out.
    pub(crate) fn has_drops(&mut self) -> bool {
        self.drops.has_new(&self.skel)
    }

    /// The losses since the last call. A half that the programs just left is read one call later, when no program can
    /// still write it.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub(crate) fn take_drops(&mut self) -> Result<Vec<DropDelta>> {
        self.drops.take(&mut self.skel)
    }

    /// Processes that lost a state record since the last call.
    pub(crate) fn take_lost_state(&mut self) -> Vec<LostState> {
        drops::take_lost_state(&mut self.skel)
    }

    /// Reader of the BPF side's counts.
    pub(crate) fn ledger(&self) -> Result<LedgerTables> {
        let maps = &self.skel.maps;
        let sums = [MapHandle::try_from(&maps.ledger_a)?, MapHandle::try_from(&maps.ledger_b)?];
        let coarse = [MapHandle::try_from(&maps.coarse_a)?, MapHandle::try_from(&maps.coarse_b)?];
        let (words, rings) = (MapHandle::try_from(&maps.ledger_words)?, MapHandle::try_from(&maps.bulk_rings)?);
        let ring = MapHandle::try_from(self.rings.bulk.first().context("there are no rings")?)?;
        let lane_per_cpu = options::lanes(options::ring_count()?) as usize >= libbpf_rs::num_possible_cpus()?;
        let busy = MapHandle::try_from(&maps.ledger_busy)?;
        Ok(LedgerTables::new(sums, busy, coarse, words, rings, ring, lane_per_cpu))
    }

    /// Whether scratch memory was filled with poison.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// Watches for runs that the kernel skips, from now on.
    pub(crate) fn skips(&self) -> Skips {
        Skips::new(self.skel.object(), self.more_skips)
    }

    /// The size of one ring of each kind.
    pub(crate) fn ring_sizes(&self) -> RingSizes {
        self.rings.sizes(&self.skel)
    }

    /// The loaded programs by name.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn measured(&self) -> Result<Vec<(String, OwnedFd)>> {
        let loaded = self.skel.object().progs().filter(|program| program.as_fd().as_raw_fd() >= 0);
        let programs = loaded
            .map(|program| Ok((program.name().to_string_lossy().into_owned(), program.as_fd().try_clone_to_owned()?)));
        programs.collect()
    }

    /// The iterators over stacks of sleeping tasks; None: not requested.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn sleepers(&self) -> Result<Option<asleep::Links>> {
        let links = &self.skel.links;
        let Some(plain) = &links.walk_sleepers else { return Ok(None) };
        let copying = links.copy_sleepers.as_ref().map(|link| link.as_fd().try_clone_to_owned()).transpose()?;
        Ok(Some(asleep::Links { plain: plain.as_fd().try_clone_to_owned()?, copying }))
    }

    /// The programs of looks; None: not requested.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn looks(&self) -> Result<Option<LookPrograms>> {
        if !self.are_looks() {
            return Ok(None);
        }
        let (progs, maps) = (&self.skel.progs, &self.skel.maps);
        let copy = is_loaded(&progs.look_copy).then(|| progs.look_copy.as_fd().try_clone_to_owned()).transpose()?;
        let (room, detail) = (MapHandle::try_from(&maps.look_rooms)?, MapHandle::try_from(&maps.look_details)?);
        LookPrograms::new(progs.look_walk.as_fd().try_clone_to_owned()?, copy, &room, detail).map(Some)
    }

    /// Whether threads are looked at in place of events.
    pub(crate) fn are_looks(&self) -> bool {
        is_loaded(&self.skel.progs.look_walk)
    }

    /// A walker of tasks for any thread.
    pub(crate) fn walker(&self) -> Result<Walker> {
        let link = self.skel.links.walk_tasks.as_ref().context("the task iterator is not attached")?;
        let opens = self.skel.links.walk_opens.as_ref();
        let (progs, maps) = (&self.skel.progs, &self.skel.maps);
        let outsiders = if is_loaded(&progs.read_outsider) {
            let each = PerKey::new(&progs.read_outsider, MapHandle::try_from(&maps.outsiders)?)?;
            Some(Outsiders { each, call: MapHandle::try_from(&maps.outsider_call)? })
        } else {
            None
        };
        Walker::new(link.as_fd(), outsiders, opens.map(|link| link.as_fd()))
    }

    /// Counts the I/Os that ended without a program seeing it, each once.
    ///
    /// # Errors
    /// When the kernel does not let the table of I/Os be read.
    pub(crate) fn count_unseen_ios(&self) -> Result<()> {
        let check = &self.skel.progs.check_io;
        if !is_loaded(check) {
            return Ok(());
        }
        PerKey::new(check, MapHandle::try_from(&self.skel.maps.ios)?)?.run(|| Ok(()))
    }
}

/// Whether the program was wanted, and the kernel did not refuse it.
fn is_loaded(program: &libbpf_rs::ProgramMut<'_>) -> bool {
    program.as_fd().as_raw_fd() >= 0
}

/// Notes that `family` is not recorded; fails when nothing requested is left.
fn leave_out(
    config: &mut RecordConfig,
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

/// Prevents the loading of the programs in `without`, and makes the kernel refuse those in `unloadable`.
fn leave_out_programs(open: &mut OpenSystapeSkel<'static>, without: &[String], unloadable: &[String]) -> Result<()> {
    /// A program flag unknown to every kernel.
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

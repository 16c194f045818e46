//! The unwinding stage: raw stacks become frames, in a thread of its own.
//!
//! Stacks are handled in order of time, each with the address space of that time. A stack waits until everything before
//! it was read, so that earlier mappings are known.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender};
use rustc_hash::{FxHashMap, FxHashSet};
use systape_bpf::stack_user;
use systape_bpf::wire::{self, StackParts};
use systape_format::model::{FRAME_EXACT, FRAME_GUESSED, FRAME_SIGNAL, Mapping, StackOf, StackStatus};
use systape_symbols::{FileRules, RuleReader};
use systape_unwind::{
    AddressSpace, CODE_BYTES, Found, MappedCode as Mapped, Registers, StackCopy, UnwindEnd, Unwinder,
};

use super::code::CodeReader;
use super::feed::{RawStacks, UnwindInput, with_frames, without_frames};
use super::forgot::Forgot;
use super::kernel::Kernel;
use super::name_queue::NameQueue;
use super::name_queue::{NameOrigin, SeenPlace};
use super::places::{ImageId, Place, Places};
use super::taken::{Chain, Code, StackBatch, TakenFrame};

/// Most frames kept of a stack.
const MAX_FRAMES: usize = 1024;
/// Rules in the unwinder's cache.
const RULES: usize = 1 << 16;
/// Most unwind information kept of one file, and of all together: beyond that all are dropped and read again as needed.
const MODULE_BYTES: u64 = 48 << 20;
const ALL_MODULE_BYTES: u64 = 96 << 20;
/// With frame pointers only sleepers need unwind information, at the start: it is dropped this long after the last, ns.
const KEEP_NS: u64 = 2_000_000_000;
/// Stacks whose place is kept for those of the next passes.
const KEEP_WAITING: usize = 1 << 14;
/// Most files read for one stack.
const MAX_READS: usize = 64;
/// Most distinct frames whose names are looked up: bounds the memory of an endless recording.
const MAX_SEEN: usize = 1 << 20;
/// Most frames of the remembered chains, 16 bytes each: beyond that all are dropped, and collected anew.
const MAX_CHAIN_FRAMES: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };
/// Most frames of all existing chains. Beyond that stacks are dropped until some were stored.
const MAX_FRAMES_HELD: usize = if cfg!(test) { 1 << 8 } else { 1 << 21 };

/// More frames exist than allowed.
#[derive(Debug)]
struct TooMany;

/// A file for the unwinder.
enum Unwindable {
    Module(Box<FileRules>),
    /// No rules: the file could not be opened, or is invalid.
    No,
}

/// The unwinding stage: raw stacks become frames.
pub(crate) struct Unwinding {
    places: Places,
    reader: RuleReader,
    kernel: Kernel,
    unwinder: Unwinder,
    modules: FxHashMap<ImageId, Unwindable>,
    module_bytes: u64,
    /// Numbers of codes, by mapping and by kind.
    shared: FxHashMap<Arc<Mapping>, u32>,
    files: FxHashMap<ImageId, u32>,
    special: [Option<u32>; 2],
    codes: u32,
    seen: FxHashSet<(u32, u64)>,
    /// Places are reported anew when their names were forgotten; None = they never are.
    forgot: Option<(Forgot, u64)>,
    /// Hashed with a key, because a program chooses where its frames are.
    chains: HashSet<Chain>,
    chain_frames: usize,
    frames_held: Arc<AtomicUsize>,
    names: Option<NameQueue>,
    keep: Option<File>,
    waiting: Vec<(u64, Arc<RawStacks>, (usize, usize))>,
    code: CodeReader,
    found: Vec<Found>,
    frames: Vec<TakenFrame>,
    /// There are copies of stacks of events too, not only of sleepers.
    copies: bool,
    /// When the last sleeper was unwound.
    slept: u64,
}

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinding").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Unwinding {
    /// A stage with the address spaces of `places`, whose files `reader` reads. `names` gets every new place; `keep` gets
    /// the raw records.
    pub(crate) fn new(
        (places, reader): (Places, RuleReader),
        kernel: Kernel,
        names: Option<NameQueue>,
        keep: Option<File>,
    ) -> Self {
        Self {
            places,
            reader,
            kernel,
            unwinder: Unwinder::new(RULES),
            modules: FxHashMap::default(),
            module_bytes: 0,
            shared: FxHashMap::default(),
            files: FxHashMap::default(),
            special: [None; 2],
            codes: 0,
            seen: FxHashSet::default(),
            forgot: None,
            chains: HashSet::new(),
            chain_frames: 0,
            frames_held: Arc::default(),
            names,
            keep,
            waiting: Vec::new(),
            code: CodeReader::default(),
            found: Vec::new(),
            frames: Vec::new(),
            copies: false,
            slept: 0,
        }
    }

    /// Names may be forgotten: see [`Forgot`].
    pub(crate) fn may_forget(&mut self, forgot: Forgot) {
        self.forgot = Some((forgot, 0));
    }

    /// Works until the drain is done.
    pub(crate) fn run(mut self, input: &Receiver<UnwindInput>, out: &Sender<StackBatch>) {
        for raw in input {
            match raw {
                UnwindInput::Stacks(stacks) => stacks.into_iter().for_each(|piece| self.add(piece)),
                UnwindInput::Pass(watermark) => {
                    self.places.read();
                    let taken = self.pass(watermark);
                    if out.send(taken).is_err() {
                        return;
                    }
                }
            }
        }
        let rest = self.pass(u64::MAX);
        out.send(rest).ok();
    }

    fn add(&mut self, stacks: RawStacks) {
        let stacks = Arc::new(stacks);
        for range in stacks.records().ranges() {
            let bytes = stacks.records().get(range);
            if let Some(keep) = &mut self.keep {
                // for debugging only: what does not fit on the disk is left out
                keep.write_all(bytes).ok();
            }
            if let Ok(parts) = wire::stack(bytes) {
                self.waiting.push((parts.stack.ts, Arc::clone(&stacks), range));
            }
        }
    }

    fn pass(&mut self, watermark: u64) -> StackBatch {
        let mut taken = StackBatch { watermark, mappings_lost: self.places.take_lost_span(), ..StackBatch::default() };
        self.waiting.sort_by_key(|(ts, ..)| *ts);
        let ready = self.waiting.partition_point(|(ts, ..)| *ts < watermark);
        taken.stacks.reserve(ready);
        // its room is kept for the next ones, that of a burst is not
        let mut waiting = std::mem::take(&mut self.waiting);
        for (ts, stacks, range) in waiting.drain(..ready) {
            let Ok(parts) = wire::stack(stacks.records().get(range)) else { continue };
            self.places.apply_until(ts);
            self.one(&parts, &mut taken);
        }
        waiting.shrink_to(KEEP_WAITING);
        self.waiting = waiting;
        self.code.forget();
        if watermark != u64::MAX {
            self.places.sweep(watermark);
            if !self.copies && watermark.saturating_sub(self.slept) > KEEP_NS {
                self.forget_modules();
            }
        }
        taken
    }

    fn one(&mut self, parts: &StackParts<'_>, taken: &mut StackBatch) {
        // a sample begins where the CPU was: if that was in the tracing, it says what the tracing costs
        let sampled = parts.stack.of == StackOf::Sample as u8;
        self.kernel_frames(parts.kernel, !sampled, taken);
        let kernel = self.take_chain();
        let status = self.user_frames(parts, taken);
        let user = self.take_chain();
        let (Ok(kernel), Ok(user)) = (kernel, user) else {
            taken.given_up.add(parts.stack.ts);
            taken.stacks.extend(without_frames(parts));
            return;
        };
        taken.stacks.extend(with_frames(parts, status, user, kernel));
    }

    /// The frames collected so far.
    ///
    /// # Errors
    /// Too many exist.
    fn take_chain(&mut self) -> Result<Option<Chain>, TooMany> {
        let chain = match self.chains.get(self.frames.as_slice()) {
            _ if self.frames.is_empty() => Ok(None),
            Some(chain) => Ok(Some(chain.clone())),
            None => self.new_chain().map(Some),
        };
        self.frames.clear();
        chain
    }

    fn new_chain(&mut self) -> Result<Chain, TooMany> {
        if self.chain_frames + self.frames.len() > MAX_CHAIN_FRAMES {
            self.chains.clear();
            self.chain_frames = 0;
        }
        if self.frames_held.load(Ordering::Relaxed) + self.frames.len() > MAX_FRAMES_HELD {
            return Err(TooMany);
        }
        let of_task = self.frames.iter().any(|frame| self.special.contains(&Some(frame.code)));
        let chain = Chain::new(&self.frames, of_task, &self.frames_held);
        self.chain_frames += self.frames.len();
        self.chains.insert(chain.clone());
        Ok(chain)
    }

    /// `leading`: the innermost frames belong to the tracing that took the stack.
    fn kernel_frames(&mut self, addresses: &[u8], mut leading: bool, taken: &mut StackBatch) {
        for (i, address) in words(addresses).enumerate() {
            let place = self.kernel.place(address);
            leading &= place.tracing;
            if leading {
                continue;
            }
            let flags = if i == 0 { FRAME_EXACT } else { 0 };
            let code = self.shared_code(&place.mapping, taken);
            let frame = TakenFrame { code, offset: place.offset, flags };
            if self.first_seen(&frame) {
                self.tell(&frame, place.mapping, NameOrigin::Kernel(address));
            }
            self.frames.push(frame);
        }
    }

    fn user_frames(&mut self, parts: &StackParts<'_>, taken: &mut StackBatch) -> StackStatus {
        let stack = &parts.stack;
        let failed = stack.hdr.flags & wire::STACK_FAILED != 0;
        let in_call = stack.hdr.flags & wire::STACK_IN_CALL != 0;
        if matches!(stack.user, stack_user::ADDRESSES | stack_user::COPY) {
            self.places.meet(stack.here_pid);
        }
        match stack.user {
            stack_user::ADDRESSES if failed => StackStatus::Failed,
            stack_user::ADDRESSES => {
                let mut reached = 0;
                for (i, address) in words(parts.user).enumerate() {
                    // code without frame pointers uses that register for anything: a value that is no address of code ends the chain
                    if i > 0 && self.places.place(stack.here_pid, address.saturating_sub(1)) == Place::Nothing {
                        break;
                    }
                    reached = i + 1;
                    self.user_frame(stack.here_pid, address, if i == 0 && !in_call { FRAME_EXACT } else { 0 }, taken);
                }
                if reached >= MAX_ADDRESSES { StackStatus::TooDeep } else { StackStatus::FramePointers }
            }
            stack_user::COPY => self.unwind(parts, taken),
            _ => without_user_part(stack.hdr.flags),
        }
    }

    fn unwind(&mut self, parts: &StackParts<'_>, taken: &mut StackBatch) -> StackStatus {
        let stack = &parts.stack;
        let pid = stack.here_pid;
        if stack.of == StackOf::Asleep as u8 {
            self.slept = stack.ts
        } else {
            self.copies = true
        }
        let mut frames = std::mem::take(&mut self.found);
        frames.clear();
        let registers = Registers(stack.regs);
        let copy = StackCopy {
            base: registers.sp(),
            bytes: parts.user,
            absent: stack.absent,
            cut: stack.hdr.flags & wire::STACK_CUT != 0,
            in_call: stack.hdr.flags & wire::STACK_IN_CALL != 0,
            entry: stack.entry,
        };
        // What is not read yet stops the unwinding: then it is read, and the stack is unwound again. A stack leads through
        // a few files, each is read once.
        let mut reads = 0;
        let end = loop {
            frames.clear();
            let missing = std::cell::Cell::new(None);
            let space = ProcessSpace { places: &self.places, modules: &self.modules, code: &self.code, pid, missing };
            let end = self.unwinder.unwind(&space, &registers, &copy, MAX_FRAMES, &mut frames);
            match (space.missing.get(), self.reader.take_lost()) {
                _ if reads >= MAX_READS => break end,
                (_, Some(lost)) => self.lost_modules(lost.by.map(ImageId)),
                (Some(file), None) => self.read_module(file),
                (None, None) => break end,
            }
            reads += 1;
        };
        for found in &frames {
            let bit = |on: bool, flag: u8| if on { flag } else { 0 };
            let flags =
                bit(found.exact, FRAME_EXACT) | bit(found.signal, FRAME_SIGNAL) | bit(found.guessed, FRAME_GUESSED);
            self.user_frame(pid, found.address, flags, taken);
        }
        self.found = frames;
        status(end)
    }

    fn forget_modules(&mut self) {
        if !self.modules.is_empty() {
            self.modules.clear();
            self.module_bytes = 0;
            self.unwinder = Unwinder::new(RULES);
            self.reader.forget();
        }
    }

    /// Who reads the files has ended, maybe of one of them. What was known of addresses stays true.
    fn lost_modules(&mut self, by: Option<ImageId>) {
        self.modules.retain(|_, module| matches!(module, Unwindable::No));
        self.module_bytes = 0;
        self.modules.extend(by.map(|file| (file, Unwindable::No)));
    }

    fn read_module(&mut self, file: ImageId) {
        if self.module_bytes >= ALL_MODULE_BYTES {
            self.forget_modules();
        }
        let opened = self.places.open(file).ok();
        let rules = opened.and_then(|opened| self.reader.open(file.0, &opened, MODULE_BYTES).ok());
        let unwindable = rules.map_or(Unwindable::No, |rules| {
            self.module_bytes += rules.memory();
            Unwindable::Module(Box::new(rules))
        });
        self.modules.insert(file, unwindable);
    }

    fn user_frame(&mut self, pid: u32, address: u64, flags: u8, taken: &mut StackBatch) {
        // a call that never returns may be the last instruction of its mapping
        let back = u64::from(flags & FRAME_EXACT == 0);
        let place = self.places.place(pid, address.saturating_sub(back));
        let (code, offset) = match place {
            Place::Image { id, offset } => {
                let frame = TakenFrame { code: self.file_code(id, taken), offset: offset + back, flags };
                if self.first_seen(&frame) {
                    let mapping = self.places.mapping(id);
                    let (file, path) = (self.places.open(id), self.places.path(id));
                    self.tell(&frame, mapping, NameOrigin::File { file, path });
                }
                self.frames.push(frame);
                return;
            }
            Place::Jit => (self.special_code(0, taken), address),
            Place::Nothing => (self.special_code(1, taken), address),
        };
        self.frames.push(TakenFrame { code, offset, flags });
    }

    /// Whether the name of a new place is needed.
    fn first_seen(&mut self, frame: &TakenFrame) -> bool {
        if let Some((forgot, seen)) = &mut self.forgot
            && (forgot.since(seen) || self.seen.len() >= MAX_SEEN)
        {
            self.seen.clear();
        }
        self.names.is_some() && self.seen.len() < MAX_SEEN && self.seen.insert((frame.code, frame.lookup()))
    }

    fn tell(&self, frame: &TakenFrame, mapping: Arc<Mapping>, origin: NameOrigin) {
        if let Some(names) = &self.names {
            names.see(SeenPlace { mapping, offset: frame.lookup(), origin });
        }
    }

    fn new_code(&mut self, code: Code, taken: &mut StackBatch) -> u32 {
        taken.codes.push(code);
        self.codes += 1;
        self.codes - 1
    }

    fn shared_code(&mut self, mapping: &Arc<Mapping>, taken: &mut StackBatch) -> u32 {
        if let Some(code) = self.shared.get(mapping) {
            return *code;
        }
        let code = self.new_code(Code::Shared(Arc::clone(mapping)), taken);
        self.shared.insert(Arc::clone(mapping), code);
        code
    }

    fn file_code(&mut self, id: ImageId, taken: &mut StackBatch) -> u32 {
        if let Some(code) = self.files.get(&id) {
            return *code;
        }
        let mapping = self.places.mapping(id);
        let code = self.shared_code(&mapping, taken);
        self.files.insert(id, code);
        code
    }

    fn special_code(&mut self, which: usize, taken: &mut StackBatch) -> u32 {
        if let Some(code) = self.special[which] {
            return code;
        }
        let code = self.new_code(if which == 0 { Code::Jit } else { Code::Unknown }, taken);
        self.special[which] = Some(code);
        code
    }
}

/// Why a stack has no user part.
fn without_user_part(flags: u16) -> StackStatus {
    match flags {
        _ if flags & wire::STACK_LOCKED != 0 => StackStatus::Locked,
        _ if flags & wire::STACK_LATE != 0 => StackStatus::Late,
        _ if flags & wire::STACK_UNREAD != 0 => StackStatus::Unavailable,
        _ => StackStatus::Absent,
    }
}

/// Most addresses that the BPF side takes by frame pointers.
const MAX_ADDRESSES: usize = 127;

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes))
}

/// The address space of one process, for the unwinder.
struct ProcessSpace<'a> {
    places: &'a Places,
    modules: &'a FxHashMap<ImageId, Unwindable>,
    code: &'a CodeReader,
    pid: u32,
    /// A file that was mapped and is not read yet.
    missing: std::cell::Cell<Option<ImageId>>,
}

impl AddressSpace for ProcessSpace<'_> {
    fn code(&self, address: u64) -> Mapped<'_> {
        match self.places.place(self.pid, address) {
            Place::Image { id, offset } => match self.modules.get(&id) {
                Some(Unwindable::Module(module)) => match module.address_of(offset) {
                    Some(in_file) => {
                        Mapped::Module { module: &**module, id: id.0, bias: address.wrapping_sub(in_file) }
                    }
                    None => Mapped::NoFile,
                },
                Some(_) => Mapped::NoFile,
                None => {
                    self.missing.set(Some(id));
                    Mapped::NoFile
                }
            },
            Place::Jit => Mapped::Jit,
            Place::Nothing => Mapped::Nothing,
        }
    }

    fn bytes(&self, address: u64) -> Option<[u8; CODE_BYTES]> {
        self.code.read(self.pid, address)
    }
}

fn status(end: UnwindEnd) -> StackStatus {
    match end {
        UnwindEnd::Complete => StackStatus::Complete,
        UnwindEnd::TooDeep => StackStatus::TooDeep,
        UnwindEnd::Cut => StackStatus::Cut,
        UnwindEnd::NotResident => StackStatus::NotResident,
        UnwindEnd::NoUnwindInfo => StackStatus::NoUnwindInfo,
        UnwindEnd::BadMemory => StackStatus::BadMemory,
        UnwindEnd::NoFile => StackStatus::NoFile,
        UnwindEnd::NoMapping => StackStatus::NoMapping,
        UnwindEnd::Jit => StackStatus::Jit,
        UnwindEnd::OtherStack => StackStatus::OtherStack,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::tests::{MODULE, PROGRAM, TEXT, kernel};
    use super::super::taken::DroppedStacks;
    use super::*;
    use crate::mappings::{Tracker, TrackerConfig};

    fn reader() -> RuleReader {
        crate::foreign::rules().unwrap()
    }

    fn unwinding() -> Unwinding {
        let (tracker, _) =
            Tracker::open(&TrackerConfig { sideband: false, exec_watch: false, ..TrackerConfig::default() }, reader());
        Unwinding::new((Places::new(tracker), reader()), kernel(), None, None)
    }

    /// Takes a stack of these addresses in the kernel.
    fn take(unwinding: &mut Unwinding, ts: u64, addresses: &[u64]) -> StackBatch {
        let kernel: Vec<u8> = addresses.iter().flat_map(|address| address.to_ne_bytes()).collect();
        let stack = wire::Stack { ts, of: StackOf::Syscall as u8, ..wire::Stack::default() };
        let mut taken = StackBatch::default();
        unwinding.one(&StackParts { stack, kernel: &kernel, user: &[] }, &mut taken);
        taken
    }

    #[test]
    fn only_stacks_with_a_user_part_look_for_mappings() {
        let mut unwinding = unwinding();
        let pid = std::process::id();
        let mut code = |user: u8| {
            let stack = wire::Stack { here_pid: pid, user, of: StackOf::Syscall as u8, ..wire::Stack::default() };
            unwinding.one(&StackParts { stack, kernel: &[], user: &[] }, &mut StackBatch::default());
            unwinding.places.place(pid, take as *const () as u64)
        };
        assert_eq!(code(0), Place::Nothing);
        assert!(matches!(code(stack_user::ADDRESSES), Place::Image { .. }));
    }

    #[test]
    fn stacks_with_the_same_frames_share_them() {
        let mut unwinding = unwinding();
        let mut chain = |addresses: &[u64]| {
            let stack = take(&mut unwinding, 1, addresses).stacks.pop().unwrap();
            assert_eq!((stack.status, stack.user), (StackStatus::Absent, None));
            stack.kernel.unwrap()
        };
        let (a, b) = ([TEXT + 0x3010, TEXT + 0x4010], [TEXT + 0x3020, TEXT + 0x4010]);
        let chains = [chain(&a), chain(&b), chain(&a)];
        assert_eq!(chains[0].frames().iter().map(|frame| frame.offset).collect::<Vec<_>>(), [0x3010, 0x4010]);
        assert_eq!(chains[0].address(), chains[2].address());
        assert_ne!(chains[0], chains[1]);
        // they are forgotten when there are too many, which changes nothing but where they are
        (0..MAX_CHAIN_FRAMES as u64).for_each(|i| drop(chain(&[TEXT + 0x3001 + i])));
        let again = chain(&a);
        assert_eq!(again, chains[0]);
        assert_ne!(again.address(), chains[0].address());
    }

    #[test]
    fn with_too_many_frames_held_stacks_are_given_up_and_counted() {
        let mut unwinding = unwinding();
        let depth = MAX_FRAMES_HELD as u64 / 8;
        let addresses = |turn: u64| (0..depth).map(|i| TEXT + 0x3001 + turn + i).collect::<Vec<_>>();
        let mut held: Vec<StackBatch> = (0..8).map(|turn| take(&mut unwinding, turn, &addresses(turn))).collect();
        assert!(held.iter().all(|taken| taken.given_up.count == 0 && taken.stacks[0].kernel.is_some()));
        let late = take(&mut unwinding, 77, &addresses(100));
        assert_eq!(late.given_up, DroppedStacks { count: 1, first: 77, last: 77 });
        assert_eq!((late.stacks[0].status, &late.stacks[0].kernel), (StackStatus::Late, &None));
        // with room again it goes on
        held.clear();
        let taken = take(&mut unwinding, 78, &addresses(100));
        assert_eq!((taken.given_up.count, taken.stacks[0].status), (0, StackStatus::Absent));
    }

    #[test]
    fn frames_of_the_tracing_lead_no_stack_but_a_samples() {
        let mut unwinding = unwinding();
        let addresses =
            [TEXT + 0x1010, PROGRAM + 0x20, TEXT + 0x2010, TEXT + 0x3010, MODULE + 0x110, TEXT + 0x2020, TEXT + 0x4010];
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_ne_bytes()).collect();
        let mut frames = |leading| {
            let mut taken = StackBatch::default();
            unwinding.kernel_frames(&bytes, leading, &mut taken);
            let chain = unwinding.take_chain().unwrap().unwrap();
            chain.frames().iter().map(|frame| (frame.offset, frame.flags)).collect::<Vec<_>>()
        };
        // the one further out stays: something that was traced called it
        assert_eq!(frames(true), [(0x3010, 0), (0x110, 0), (0x2020, 0), (0x4010, 0)]);
        let sampled = frames(false);
        assert_eq!((sampled.len(), sampled[0]), (7, (0x1010, FRAME_EXACT)));
    }
}

//! Files that are broken or made to hurt. The functions must return, within their bounds; what they return is not the point.

mod traced;

use std::fs;
use std::path::{Path, PathBuf};

use systape_unwind::{
    AddressSpace, MappedCode, Module, ModuleLimits, Registers, StackCopy, UnwindEnd, Unwinder, exercise,
};
use traced::{LIMITS, Space, Stop, Traced, compile};

/// xorshift64*; a fixed seed makes a failure come again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// A stack that a real program had.
struct Snapshot {
    registers: Registers,
    base: u64,
    bytes: Vec<u8>,
}

/// Stacks on the way through walk.c.
fn snapshots(program: &Path) -> (Space, Vec<Snapshot>) {
    let traced = Traced::start(program, &[]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGTRAP));
    let mut snapshots = Vec::new();
    let space = traced.space();
    for i in 0..3000 {
        if !matches!(traced.step(0), Stop::Signal(_)) {
            break;
        }
        if i % 60 == 0 {
            let registers = traced.registers();
            let (base, bytes, _) = traced.stack(&space, &registers, 32 << 10);
            snapshots.push(Snapshot { registers, base, bytes });
        }
    }
    assert!(snapshots.len() >= 30, "{}", snapshots.len());
    (space, snapshots)
}

/// The space with another file in the place of one.
struct Replaced<'a> {
    space: &'a Space,
    path: PathBuf,
    module: Module,
}

impl AddressSpace for Replaced<'_> {
    fn code(&self, address: u64) -> MappedCode<'_> {
        match self.space.code(address) {
            MappedCode::Module { id, bias, .. } if self.space.path(address) == Some(&self.path) => {
                MappedCode::Module { module: &self.module, id, bias }
            }
            code => code,
        }
    }
}

/// Where in a file the parts are that matter.
fn parts(elf: &[u8]) -> Vec<std::ops::Range<usize>> {
    use object::{Object, ObjectSection};
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(elf).unwrap();
    let mut parts = vec![0..64, 64..64 + 13 * 56];
    parts.push(elf.len() - 64 * file.sections().count().min(40)..elf.len());
    for name in [".eh_frame", ".eh_frame", ".eh_frame", ".eh_frame_hdr", ".eh_frame_hdr", ".note.gnu.build-id"] {
        if let Some((start, size)) = file.section_by_name(name).and_then(|s| s.file_range()) {
            parts.push(start as usize..(start + size) as usize);
        }
    }
    parts
}

fn mutate(elf: &mut Vec<u8>, parts: &[std::ops::Range<usize>], random: &mut Random) {
    const HARD: [u64; 12] = [
        0,
        1,
        0x7f,
        0xff,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff0,
        0xffff_ffff,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    for _ in 0..=random.below(6) {
        let part = parts[random.below(parts.len())].clone();
        let at = part.start + random.below(part.len());
        match random.below(8) {
            0..=2 => elf[at] = random.next() as u8,
            3 => elf[at] ^= 1 << random.below(8),
            4 | 5 => {
                let (at, value) = (at & !3, HARD[random.below(HARD.len())].to_le_bytes());
                let length = if random.below(2) == 0 { 4 } else { 8 };
                let length = length.min(elf.len() - at);
                elf[at..at + length].copy_from_slice(&value[..length]);
            }
            6 => {
                let from = part.start + random.below(part.len());
                let length = random.below(64).min(elf.len() - from).min(elf.len() - at);
                elf.copy_within(from..from + length, at);
            }
            _ if random.below(20) == 0 => {
                elf.truncate(at.max(64 + 14 * 56));
                return;
            }
            _ => elf[at] = elf[at].wrapping_add(1),
        }
    }
}

fn unwind_with_mutated(space: &Space, snapshots: &[Snapshot], path: &Path, rounds: usize, seed: u64) {
    let original = fs::read(path).unwrap();
    let parts = parts(&original);
    let mut random = Random(seed);
    let (mut opened, mut complete, mut other) = (0, 0, 0);
    for _ in 0..rounds {
        let mut bytes = original.clone();
        // A cut takes the parts behind it away.
        mutate(&mut bytes, &parts, &mut random);
        let Ok(module) = Module::from_bytes(&bytes, LIMITS) else { continue };
        opened += 1;
        let space = Replaced { space, path: path.to_owned(), module };
        let mut unwinder = Unwinder::new(256);
        for snapshot in snapshots {
            let stack = StackCopy {
                base: snapshot.base,
                bytes: &snapshot.bytes,
                absent: 0,
                cut: false,
                in_call: false,
                entry: 0,
            };
            let mut frames = Vec::new();
            let end = unwinder.unwind(&space, &snapshot.registers, &stack, 100, &mut frames);
            assert!((1..=100).contains(&frames.len()));
            if end == UnwindEnd::Complete { complete += 1 } else { other += 1 }
        }
        assert!(space.module.memory() <= 8 * bytes.len() + 4096, "{} of {}", space.module.memory(), bytes.len());
    }
    eprintln!("{path:?}: {opened} of {rounds} opened, {complete} stacks complete, {other} not");
    assert!(opened > rounds / 4 && complete > 0 && other > 0, "mutations that say something");
}

#[test]
fn mutated_files_with_real_stacks() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "walk.c", &["-O2", "-Wl,-z,lazy"], dir.path()).unwrap();
    let (space, snapshots) = snapshots(&program);
    unwind_with_mutated(&space, &snapshots, &program, 6000, 1);
    let libc = space.paths().find(|p| p.to_string_lossy().contains("libc.so")).unwrap().to_owned();
    unwind_with_mutated(&space, &snapshots, &libc, 300, 2);
}

#[test]
fn mutated_files_with_random_stacks() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "walk.c", &["-O2"], dir.path()).unwrap();
    let original = fs::read(program).unwrap();
    let parts = parts(&original);
    let mut random = Random(3);
    for _ in 0..4000 {
        let mut elf = original.clone();
        mutate(&mut elf, &parts, &mut random);
        // Words near the file's code and the stack itself, so that something is found.
        let base = 0x7ffc_0000_0000 + (random.next() & 0xff8);
        let mut word = || match random.below(4) {
            0 => random.next(),
            1 => 0x10_0000_0000 + 0x1000 + random.next() % 0x1000,
            2 => base + random.next() % 0x800,
            _ => random.next() % 16,
        };
        let mut words: Vec<u64> = (0..17).map(|_| word()).collect();
        words[7] = base;
        words[16] = 0x10_0000_1000 + word() % 0x1000;
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.push(0);
        bytes.extend((0..256).flat_map(|_| word().to_le_bytes()));
        exercise(&elf, &bytes);
    }
}

/// A file that has an `.eh_frame` at address 0x1000 and nothing else.
fn elf_with(eh_frame: &[u8]) -> Vec<u8> {
    let names = b"\0.eh_frame\0.shstrtab\0";
    let (frame_at, names_at) = (0x1000usize, 0x1000 + eh_frame.len());
    let sections_at = (names_at + names.len()).next_multiple_of(8);
    let mut elf = vec![0; sections_at];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let put16 = |elf: &mut [u8], at: usize, v: u16| elf[at..at + 2].copy_from_slice(&v.to_le_bytes());
    let put64 = |elf: &mut [u8], at: usize, v: usize| elf[at..at + 8].copy_from_slice(&(v as u64).to_le_bytes());
    put16(&mut elf, 18, 62);
    put64(&mut elf, 40, sections_at);
    put16(&mut elf, 58, 64);
    put16(&mut elf, 60, 3);
    put16(&mut elf, 62, 2);
    elf[frame_at..names_at].copy_from_slice(eh_frame);
    elf[names_at..names_at + names.len()].copy_from_slice(names);
    for (name, kind, address, offset, size) in
        [(0u32, 0u32, 0, 0, 0), (1, 1, frame_at, frame_at, eh_frame.len()), (11, 3, 0, names_at, names.len())]
    {
        elf.extend(name.to_le_bytes());
        elf.extend(kind.to_le_bytes());
        for field in [0, address, offset, size, 0, 0, 0] {
            elf.extend((field as u64).to_le_bytes());
        }
    }
    elf
}

fn entry(id: u32, content: &[u8]) -> Vec<u8> {
    let mut entry = ((content.len() + 4) as u32).to_le_bytes().to_vec();
    entry.extend(id.to_le_bytes());
    entry.extend(content);
    entry
}

/// Version 1, code and data alignment 1 and -8, return address in 16, absolute addresses; then `instructions`.
fn cie(instructions: &[u8]) -> Vec<u8> {
    entry(0, &[&[1, 0, 1, 0x78, 16][..], instructions].concat())
}

/// An FDE for [start, start + size) of the CIE at offset 0.
fn fde(at: usize, start: u64, size: u64, instructions: &[u8]) -> Vec<u8> {
    entry(at as u32 + 4, &[&start.to_le_bytes()[..], &size.to_le_bytes(), instructions].concat())
}

/// CFA = rsp + 8, return address there.
const NORMAL: &[u8] = &[0x0c, 7, 8, 0x90, 1];

struct One(Module);

impl AddressSpace for One {
    fn code(&self, address: u64) -> MappedCode<'_> {
        if address < 0x10_0000 { MappedCode::Module { module: &self.0, id: 1, bias: 0 } } else { MappedCode::Nothing }
    }
}

/// Unwinds at 0x5000 with a stack of 64 words, each of them 0x5001.
fn unwind_one(eh_frame: &[u8], limit: usize) -> (usize, UnwindEnd) {
    let space = One(Module::from_bytes(&elf_with(eh_frame), LIMITS).unwrap());
    let bytes: Vec<u8> = (0..64).flat_map(|_| 0x5001u64.to_le_bytes()).collect();
    let mut registers = Registers::default();
    (registers.0[7], registers.0[16]) = (0x7ffc_0000_0000, 0x5000);
    let stack = StackCopy { base: registers.0[7], bytes: &bytes, absent: 0, cut: false, in_call: false, entry: 0 };
    let mut frames = Vec::new();
    let end = Unwinder::new(16).unwind(&space, &registers, &stack, limit, &mut frames);
    (frames.len(), end)
}

fn with_fde(cie_instructions: &[u8], instructions: &[u8]) -> Vec<u8> {
    let mut section = cie(cie_instructions);
    section.extend(fde(section.len(), 0x5000, 0x100, instructions));
    section
}

#[test]
fn a_handmade_section_works() {
    // 64 words of return addresses, then the copy ends.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[]), 100), (65, UnwindEnd::BadMemory));
    assert_eq!(unwind_one(&with_fde(NORMAL, &[]), 10), (10, UnwindEnd::TooDeep));
    // The return address is undefined.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x07, 16]), 10), (1, UnwindEnd::Complete));
    // DWARF numbers above 16 are no registers here; as CFA they make no sense.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x05, 0xff, 0x7f, 1, 0x05, 40, 1]), 10), (10, UnwindEnd::TooDeep));
    assert_eq!(unwind_one(&with_fde(&[0x0c, 17, 8, 0x90, 1], &[]), 10), (1, UnwindEnd::BadMemory));
    // Return address = the register 60000.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x09, 16, 0xe0, 0xd4, 3]), 10), (1, UnwindEnd::BadMemory));
}

#[test]
fn the_stack_pointer_must_grow() {
    // CFA = rsp, return address above it: an instruction that ran may, once.
    let stay = with_fde(&[0x0c, 7, 0, 0x11, 16, 0x7f], &[]);
    assert_eq!(unwind_one(&stay, 100), (2, UnwindEnd::BadMemory));
    // CFA = rsp - 8.
    assert_eq!(unwind_one(&with_fde(&[0x12, 7, 1, 0x11, 16, 0x7f], &[]), 100), (1, UnwindEnd::BadMemory));
}

#[test]
fn expressions_that_do_not_end() {
    // CFA = an expression that jumps to itself; one that duplicates for ever; one that divides by zero; one that ends nowhere.
    for expression in
        [&[0x2f, 0xfd, 0xff][..], &[0x77, 8, 0x12, 0x2f, 0xfc, 0xff], &[0x30, 0x30, 0x1b], &[], &[0x06], &[0x08]]
    {
        let rule = [&[0x0f, expression.len() as u8][..], expression].concat();
        assert_eq!(unwind_one(&with_fde(NORMAL, &rule), 100), (1, UnwindEnd::BadMemory), "{expression:x?}");
    }
    // A good one in each frame: all frames.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x0f, 3, 0x77, 4, 0x23]), 100), (1, UnwindEnd::BadMemory));
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x0f, 4, 0x77, 4, 0x23, 4]), 20), (20, UnwindEnd::TooDeep));
}

#[test]
fn rules_without_measure() {
    // A megabyte of nothing is more than a stack may cost.
    assert_eq!(unwind_one(&with_fde(NORMAL, &vec![0; 1 << 20]), 100), (1, UnwindEnd::BadMemory));
    // remember_state without end.
    assert_eq!(unwind_one(&with_fde(NORMAL, &[0x0a; 1000]), 100), (1, UnwindEnd::BadMemory));
    // A rule for every number there is.
    let many: Vec<u8> = (0..200u16).flat_map(|r| [0x05, r as u8 | 0x80, (r >> 7) as u8, 1]).collect();
    assert_eq!(unwind_one(&with_fde(NORMAL, &many), 100), (1, UnwindEnd::BadMemory));
    // A CIE with an augmentation string of a megabyte, and many FDEs of it.
    let mut section = entry(0, &[&[1][..], &vec![b'S'; 1 << 20], &[0, 1, 0x78, 16], NORMAL].concat());
    for i in 0..20_000 {
        section.extend(fde(section.len(), 0x5000 + i, 1, &[]));
    }
    assert_eq!(unwind_one(&section, 100), (1, UnwindEnd::NoUnwindInfo));
}

#[test]
fn pointers_to_nowhere() {
    // The FDE is its own CIE; its CIE is before the section; behind it; another FDE.
    let good = with_fde(NORMAL, &[]);
    let fde_at = cie(NORMAL).len();
    for pointer in [4u32, 0x7fff_ffff, u32::MAX, 1, 0xffff_ff00] {
        let mut section = good.clone();
        section[fde_at + 4..fde_at + 8].copy_from_slice(&pointer.to_le_bytes());
        assert_eq!(unwind_one(&section, 100), (1, UnwindEnd::NoUnwindInfo), "{pointer:#x}");
    }
    // Lengths that leave the section, in 32 and 64 bits.
    for length in [0xffff_fff0u32, 0xffff_ffff, 0x7fff_ffff, 0x1000] {
        let mut section = good.clone();
        section[fde_at..fde_at + 4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(unwind_one(&section, 100), (1, UnwindEnd::NoUnwindInfo), "{length:#x}");
    }
}

#[test]
fn files_that_are_refused() {
    let refused = |bytes: &[u8]| Module::from_bytes(bytes, LIMITS).unwrap_err().to_string();
    assert!(refused(b"").contains("shorter"));
    assert!(refused(&[0; 100]).contains("not an ELF"));
    let good = elf_with(&with_fde(NORMAL, &[]));
    let patched = |at: usize, value: u8| {
        let mut elf = good.clone();
        elf[at] = value;
        elf
    };
    assert!(refused(&patched(5, 2)).contains("little-endian"));
    assert!(refused(&patched(4, 1)).contains("x32"));
    assert!(refused(&patched(18, 3)).contains("machine"));
    let mut i386 = patched(4, 1);
    i386[18] = 3;
    assert!(refused(&i386).contains("32-bit"));
    // Section headers behind the end.
    assert!(refused(&patched(46, 0x7f)).contains("headers"));
    let small = ModuleLimits { unwind_bytes: 16 };
    assert!(Module::from_bytes(&good, small).unwrap_err().to_string().contains("over the limit of 16"));
}

#[test]
fn devices_and_directories_are_refused() {
    for path in ["/dev/zero", "/tmp"] {
        let file = fs::File::open(path).unwrap();
        assert!(Module::open(&file, LIMITS).unwrap_err().to_string().contains("regular"), "{path}");
    }
}

//! Every way a stack can end, from the real stack of depth.c.

mod traced;

use std::path::PathBuf;

use systape_unwind::{AddressSpace, Found, MappedCode, Registers, StackCopy, UnwindEnd, Unwinder};
use traced::{Space, Stop, Traced, compile};

const DEPTH: usize = 100;

struct Deep {
    _dir: tempfile::TempDir,
    program: PathBuf,
    space: Space,
    registers: Registers,
    base: u64,
    bytes: Vec<u8>,
}

fn deep(flags: &[&str]) -> Deep {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "depth.c", flags, dir.path()).unwrap();
    let traced = Traced::start(&program, &[&DEPTH.to_string()]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGTRAP));
    let space = traced.space();
    let registers = traced.registers();
    let (base, bytes, cut) = traced.stack(&space, &registers, traced::COPY);
    assert!(!cut && bytes.len() > 12 << 10, "{} bytes", bytes.len());
    Deep { _dir: dir, program, space, registers, base, bytes }
}

impl Deep {
    fn unwind_in(&self, space: &dyn AddressSpace, bytes: &[u8], absent: u64, cut: bool) -> (Vec<Found>, UnwindEnd) {
        let mut frames = Vec::new();
        let stack = StackCopy { base: self.base, bytes, absent, cut, in_call: false, entry: 0 };
        let end = Unwinder::new(4096).unwind(space, &self.registers, &stack, 200, &mut frames);
        (frames, end)
    }

    fn names(&self, frames: &[Found]) -> Vec<String> {
        frames.iter().map(|f| self.space.name(&self.program, f.address)).collect()
    }

    fn whole(&self) -> Vec<Found> {
        let (frames, end) = self.unwind_in(&self.space, &self.bytes, 0, false);
        assert_eq!(end, UnwindEnd::Complete);
        frames
    }
}

/// The program's file is not what it is.
struct As<'a, F: Fn(u64) -> Option<MappedCode<'a>>>(&'a Space, F);

impl<'a, F: Fn(u64) -> Option<MappedCode<'a>>> AddressSpace for As<'a, F> {
    fn code(&self, address: u64) -> MappedCode<'_> {
        self.1(address).unwrap_or_else(|| self.0.code(address))
    }
}

#[test]
fn complete() {
    let deep = deep(&["-O2"]);
    let frames = deep.whole();
    let names = deep.names(&frames);
    let mut want: Vec<_> = (0..=DEPTH).map(|i| if i % 2 == 0 { "even" } else { "odd" }).collect();
    want.push("main");
    assert_eq!(names[..want.len()], want);
    assert_eq!(names.last().unwrap(), "_start");
    assert!(frames[0].exact && frames[1..].iter().all(|f| !f.exact));
    assert!(frames.iter().all(|f| !f.signal && !f.guessed));
}

#[test]
fn too_deep() {
    let deep = deep(&["-O2"]);
    let whole = deep.whole();
    let stack = StackCopy { base: deep.base, bytes: &deep.bytes, absent: 0, cut: false, in_call: false, entry: 0 };
    for limit in [0, 1, 2, whole.len() - 1] {
        let mut frames = vec![whole[3]];
        let end = Unwinder::new(64).unwind(&deep.space, &deep.registers, &stack, limit, &mut frames);
        assert_eq!(end, UnwindEnd::TooDeep);
        assert_eq!(frames[1..], whole[..limit], "appended");
    }
    let mut frames = Vec::new();
    let end = Unwinder::new(64).unwind(&deep.space, &deep.registers, &stack, whole.len(), &mut frames);
    assert_eq!((frames, end), (whole, UnwindEnd::Complete));
}

#[test]
fn cut_and_absent() {
    let deep = deep(&["-O2"]);
    let whole = deep.whole();
    let short = &deep.bytes[..8 << 10];
    let (frames, end) = deep.unwind_in(&deep.space, short, 0, true);
    assert_eq!(end, UnwindEnd::Cut);
    assert!(frames.len() > 10 && frames.len() < whole.len());
    assert_eq!(frames[..], whole[..frames.len()]);
    // That is all there is of the stack, and yet it goes on: not a cut.
    assert_eq!(deep.unwind_in(&deep.space, short, 0, false), (frames, UnwindEnd::BadMemory));

    let (frames, end) = deep.unwind_in(&deep.space, &deep.bytes, 0b100, false);
    assert_eq!(end, UnwindEnd::NotResident);
    assert!(frames.len() > 10 && frames.len() < whole.len());
    assert_eq!(frames[..], whole[..frames.len()]);
}

#[test]
fn by_frame_pointers() {
    let deep = deep(&["-O2", "-fno-omit-frame-pointer", "-fno-shrink-wrap"]);
    let whole = deep.whole();
    let is_program = |address| deep.space.path(address) == Some(&deep.program);
    for no_rules in [|| MappedCode::NoFile, || MappedCode::Jit] {
        let space = As(&deep.space, |a| is_program(a).then(no_rules));
        let (frames, end) = deep.unwind_in(&space, &deep.bytes, 0, false);
        // From main on libc's rules lead to _start, which is the program's.
        let addresses = |frames: &[Found]| frames.iter().map(|f| f.address).collect::<Vec<_>>();
        assert_eq!(addresses(&frames), addresses(&whole), "{end:?}");
        assert!(frames[1..=DEPTH].iter().all(|f| f.guessed && !f.exact));
        assert!(!frames.last().unwrap().guessed);
        assert_eq!(end, UnwindEnd::Complete, "argc and argv stand at the stack pointer of _start");
    }
}

#[test]
fn without_frame_pointers() {
    let deep = deep(&["-O2"]);
    let is_program = |address| deep.space.path(address) == Some(&deep.program);
    for (no_rules, want) in [(|| MappedCode::NoFile, UnwindEnd::NoFile), (|| MappedCode::Jit, UnwindEnd::Jit)]
        as [(fn() -> MappedCode<'static>, UnwindEnd); 2]
    {
        let space = As(&deep.space, |a| is_program(a).then(no_rules));
        let (frames, end) = deep.unwind_in(&space, &deep.bytes, 0, false);
        assert_eq!((frames.len(), end), (1, want));
    }
    // The caller's code is gone.
    let first = deep.registers.0[16];
    let space = As(&deep.space, |a| (is_program(a) && a != first).then_some(MappedCode::Nothing));
    let (frames, end) = deep.unwind_in(&space, &deep.bytes, 0, false);
    assert_eq!((frames.len(), end), (2, UnwindEnd::NoMapping));
}

/// Every other function is made at run time: the rest goes by its rules.
#[test]
fn rules_again_behind_code_made_at_run_time() {
    let deep = deep(&["-O2", "-fno-omit-frame-pointer", "-fno-shrink-wrap"]);
    let whole = deep.whole();
    let made = |address| deep.space.name(&deep.program, address) == "odd";
    let space = As(&deep.space, |a| made(a).then_some(MappedCode::Jit));
    let (frames, end) = deep.unwind_in(&space, &deep.bytes, 0, false);
    let addresses = |frames: &[Found]| frames.iter().map(|f| f.address).collect::<Vec<_>>();
    assert_eq!((addresses(&frames), end), (addresses(&whole), UnwindEnd::Complete));
    let guessed: Vec<bool> = frames[1..].iter().map(|f| f.guessed).collect();
    let after_made: Vec<bool> = deep.names(&whole).iter().map(|name| name == "odd").collect();
    assert_eq!(guessed, after_made[..after_made.len() - 1], "those alone whose callee has no rules");
    assert_eq!(guessed.iter().filter(|guessed| **guessed).count(), DEPTH / 2);
}

/// Code made at run time uses rbp for what it likes.
#[test]
fn what_is_no_chain_of_frame_pointers_becomes_no_frame() {
    let deep = deep(&["-O2"]);
    let caller = deep.whole()[1].address;
    let name = deep.space.name(&deep.program, caller);
    let begins = (0..4096).map(|back| caller - back).take_while(|a| deep.space.name(&deep.program, *a) == name).last();
    let begins = begins.expect("the caller is in a function");
    let unwind = |rbp: u64, saved: u64, address: u64| {
        let (mut registers, mut bytes) = (deep.registers, deep.bytes.clone());
        registers.0[6] = rbp;
        if let Some(at) = rbp.checked_sub(deep.base).map(|at| at as usize).filter(|at| at + 16 <= bytes.len()) {
            bytes[at..at + 8].copy_from_slice(&saved.to_ne_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&address.to_ne_bytes());
        }
        let first = registers.0[16];
        let space = As(&deep.space, |a| (a == first).then_some(MappedCode::Jit));
        let stack = StackCopy { base: deep.base, bytes: &bytes, absent: 0, cut: false, in_call: false, entry: 0 };
        let mut frames = Vec::new();
        let end = Unwinder::new(64).unwind(&space, &registers, &stack, 200, &mut frames);
        (frames.len(), end)
    };
    let inside = deep.base + 64;
    let top = deep.base + deep.bytes.len() as u64;
    let nowhere = (1, UnwindEnd::Jit);
    assert_eq!(unwind(0x1234_5678, 0, caller), nowhere, "on no stack");
    assert_eq!(unwind(deep.base - 8, 0, caller), nowhere, "below the stack pointer");
    assert_eq!(unwind(top - 8, 0, caller), nowhere, "at the end of the copy");
    assert_eq!(unwind(inside + 1, 0, caller), nowhere, "not aligned");
    assert_eq!(unwind(inside, inside + 64, inside), nowhere, "a pointer to data");
    assert_eq!(unwind(inside, inside + 64, begins), nowhere, "a pointer to a function");
    // and what looks like one is one
    assert!(unwind(inside, inside + 64, caller).0 > 1);
}

#[test]
fn a_file_without_rules() {
    let deep = deep(&["-O2", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-Wl,--strip-all"]);
    // The rules of crt1.o are there, so the word at the stack pointer is tried, and it is none.
    let (frames, end) = deep.unwind_in(&deep.space, &deep.bytes, 0, false);
    assert_eq!((frames.len(), end), (1, UnwindEnd::NoUnwindInfo));
}

#[test]
fn a_call_through_a_null_pointer() {
    let deep = deep(&["-O2"]);
    let whole = deep.whole();
    let mut registers = deep.registers;
    registers.0[16] = 0;
    registers.0[7] -= 8;
    let bytes = [&whole[0].address.to_le_bytes()[..], &deep.bytes].concat();
    let stack = StackCopy { base: registers.0[7], bytes: &bytes, absent: 0, cut: false, in_call: false, entry: 0 };
    let mut frames = Vec::new();
    let end = Unwinder::new(64).unwind(&deep.space, &registers, &stack, 200, &mut frames);
    assert_eq!((frames.len(), end), (whole.len() + 1, UnwindEnd::Complete));
    assert!(frames[1].guessed && !frames[1].exact);
    assert_eq!(frames[2..], whole[1..]);
}

#[test]
fn rules_are_forgotten() {
    let deep = deep(&["-O2"]);
    let whole = deep.whole();
    let stack = StackCopy { base: deep.base, bytes: &deep.bytes, absent: 0, cut: false, in_call: false, entry: 0 };
    let mut unwinder = Unwinder::new(4096);
    let mut frames = Vec::new();
    assert_eq!(unwinder.unwind(&deep.space, &deep.registers, &stack, 200, &mut frames), UnwindEnd::Complete);
    // The id of the program is given to libc: remembered rules would lead astray, forgotten ones say there are none.
    let id = |path: &str| {
        let address = deep.space.start_of(path);
        let MappedCode::Module { id, .. } = deep.space.code(address) else { panic!("{path}") };
        id
    };
    let program = id(&deep.program.to_string_lossy());
    let libc = deep.space.paths().find(|p| p.to_string_lossy().contains("libc.so")).unwrap().to_owned();
    let MappedCode::Module { module, .. } = deep.space.code(deep.space.start_of(&libc.to_string_lossy())) else {
        panic!()
    };
    let space = As(&deep.space, |a| match deep.space.code(a) {
        MappedCode::Module { id, bias, .. } if id == program => Some(MappedCode::Module { module, id, bias }),
        _ => None,
    });
    frames.clear();
    assert_eq!(unwinder.unwind(&space, &deep.registers, &stack, 200, &mut frames), UnwindEnd::Complete, "remembered");
    unwinder.forget(program);
    frames.clear();
    assert_eq!(unwinder.unwind(&space, &deep.registers, &stack, 200, &mut frames), UnwindEnd::NoUnwindInfo);
    assert_eq!(frames[..], whole[..1]);
}

/// A trampoline without rules (musl, Go): here one whose file is not there.
#[test]
fn a_signal_frame_without_rules() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "signal.c", &["-O2"], dir.path()).unwrap();
    let traced = Traced::start(&program, &[]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGUSR1));
    let space = traced.space();
    let (interrupted, _) = traced.unwind(&mut Unwinder::new(64), &space);
    assert_eq!(traced.step(libc::SIGUSR1), Stop::Signal(libc::SIGTRAP));
    let registers = traced.registers();
    let trampoline = traced.word(registers.0[7]);
    let (base, bytes, _) = traced.stack(&space, &registers, traced::COPY);
    let stack = StackCopy { base, bytes: &bytes, absent: 0, cut: false, in_call: false, entry: 0 };
    let space = As(&space, |a| (trampoline - 1..trampoline + 9).contains(&a).then_some(MappedCode::NoFile));
    let mut frames = Vec::new();
    let end = Unwinder::new(64).unwind(&space, &registers, &stack, 200, &mut frames);
    assert_eq!(end, UnwindEnd::Complete);
    let signal = Found { address: trampoline, exact: false, signal: true, guessed: false };
    assert_eq!(frames[1], signal);
    assert_eq!(frames[2..], interrupted);
}

#[test]
fn addresses() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&["-O2"][..], &["-O2", "-fuse-ld=gold"], &["-no-pie", "-Wl,-z,noseparate-code"]] {
        let program = compile("cc", "depth.c", flags, dir.path()).unwrap();
        let bytes = std::fs::read(&program).unwrap();
        let module = systape_unwind::Module::open(&std::fs::File::open(&program).unwrap(), traced::LIMITS).unwrap();
        assert!(module.memory() >= 100 && module.memory() < bytes.len());
        use object::{Object, ObjectSection};
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
        for name in [".text", ".init", ".plt", ".fini"] {
            let Some(section) = file.section_by_name(name) else { continue };
            let (offset, size) = section.file_range().unwrap();
            assert_eq!(module.address_of(offset), Some(section.address()), "{name} {flags:?}");
            assert_eq!(module.address_of(offset + size - 1), Some(section.address() + size - 1), "{name} {flags:?}");
        }
        assert_eq!(module.address_of(1 << 40), None);
    }
}

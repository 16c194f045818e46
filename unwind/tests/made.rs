//! Through code made at run time that has neither rules nor a frame pointer, by what its instructions say.

mod traced;

use systape_unwind::{AddressSpace, CODE_BYTES, Found, MappedCode, StackCopy, UnwindEnd, Unwinder};
use traced::{Space, Stop, Traced, compile};

/// The space, with memory that `read` gives.
struct Readable<'a, R: Fn(u64) -> Option<[u8; CODE_BYTES]>>(&'a Space, R);

impl<R: Fn(u64) -> Option<[u8; CODE_BYTES]>> AddressSpace for Readable<'_, R> {
    fn code(&self, address: u64) -> MappedCode<'_> {
        self.0.code(address)
    }

    fn bytes(&self, address: u64) -> Option<[u8; CODE_BYTES]> {
        (self.1)(address)
    }
}

/// The frames at the breakpoint behind code of this shape, with their names; `change` is given the bytes read at an address.
fn frames(
    shape: &str,
    change: impl Fn(&Space, u64, [u8; CODE_BYTES]) -> Option<[u8; CODE_BYTES]>,
) -> (Vec<String>, Vec<Found>, UnwindEnd) {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "made.c", &["-O2", "-fomit-frame-pointer"], dir.path()).unwrap();
    let traced = Traced::start(&program, &[shape]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGTRAP));
    let (space, registers) = (traced.space(), traced.registers());
    let (base, bytes, cut) = traced.stack(&space, &registers, traced::COPY);
    let stack = StackCopy { base, bytes: &bytes, absent: 0, cut, in_call: false, entry: 0 };
    let readable = Readable(&space, |address| {
        let bytes = traced.read(address, CODE_BYTES).try_into().ok()?;
        change(&space, address, bytes)
    });
    let mut frames = Vec::new();
    let end = Unwinder::new(4096).unwind(&readable, &registers, &stack, 100, &mut frames);
    let names = frames.iter().map(|f| match space.code(f.address - 1) {
        MappedCode::Jit => "made".into(),
        _ => space.name(&program, f.address),
    });
    (names.collect(), frames, end)
}

#[test]
fn the_end_of_the_function_says_who_called() {
    for shape in ["trampoline", "keeps"] {
        let (names, frames, end) = frames(shape, |_, _, bytes| Some(bytes));
        assert_eq!(names[..5], ["inner", "made", "middle", "outer", "main"], "{shape}");
        assert_eq!((names.last().unwrap().as_str(), end), ("_start", UnwindEnd::Complete), "{shape}");
        let guessed: Vec<usize> = (0..frames.len()).filter(|i| frames[*i].guessed).collect();
        assert_eq!(guessed, [2], "{shape}: rules again from the caller on");
    }
}

/// A return address of an earlier call stands where a trampoline has its own.
#[test]
fn what_looks_like_a_return_address_is_none() {
    let (names, _, end) = frames("goes on", |_, _, bytes| Some(bytes));
    assert_eq!((names, end), (vec!["inner".into(), "made".into()], UnwindEnd::Jit));
}

#[test]
fn without_the_bytes_it_ends() {
    for shape in ["trampoline", "keeps"] {
        let (names, _, end) = frames(shape, |_, _, _| None);
        assert_eq!((names, end), (vec!["inner".into(), "made".into()], UnwindEnd::Jit), "{shape}");
    }
}

/// The instructions lead to an address that no call stands before.
#[test]
fn code_that_was_replaced() {
    let no_call = |space: &Space, address: u64, bytes: [u8; CODE_BYTES]| {
        Some(if matches!(space.code(address), MappedCode::Jit) { bytes } else { [0x90; CODE_BYTES] })
    };
    let (names, _, end) = frames("trampoline", no_call);
    assert_eq!((names, end), (vec!["inner".into(), "made".into()], UnwindEnd::Jit));
}

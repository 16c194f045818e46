//! Places of a function: in each file that its option names.

use anyhow::Result;

use super::Place;
use super::files::{Binary, Files};
use super::spec::ProbeSpec;
use crate::foreign::FactReader;

/// Most return instructions of a function that are probed: each takes the kernel a moment to attach.
const MOST_RETURNS: usize = 256;
/// The first byte of `push %rbp`, `push %rbx` and the like, with or without a prefix.
const PUSHES: std::ops::RangeInclusive<u8> = 0x50..=0x57;
/// `endbr64`: the kernel has to step through it, which costs ten times what the probe does.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// All places of the function in the files of this name.
///
/// # Errors
/// A sentence: there is no such file, or no such function in it.
pub(super) fn places(files: &mut Files, name: &str, spec: &ProbeSpec) -> Result<Vec<Place>> {
    files.look_into(name, |binary, facts| place(binary, facts, &spec.function, spec.result.is_some()))
}

fn place(binary: &Binary, facts: &mut FactReader, function: &str, needs_returns: bool) -> Result<Place, String> {
    let found = facts.ask(binary.whose(), |reader, limits| reader.function(binary.file(), function, limits))?;
    // with the stack pointer as at the entry
    let pushes = match found.code.get(4..) {
        Some([first, ..]) if PUSHES.contains(first) => true,
        Some([0x41, second, ..]) => PUSHES.contains(second),
        _ => false,
    };
    let skip = if pushes && found.code.starts_with(&ENDBR) { 4 } else { 0 };
    let returns = if needs_returns && found.unwinds { found.returns } else { Vec::new() };
    if returns.len() > MOST_RETURNS {
        return Err(format!("{function} has {} return instructions, more than are followed", returns.len()));
    }
    if needs_returns && found.unwinds && returns.is_empty() {
        return Err(format!("{function} has no return instruction: leave '->' out"));
    }
    Ok(Place { binary: binary.clone(), offset: found.offset, entry: found.offset + skip, returns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_entered_behind_its_landing_pad() {
        let spec = ProbeSpec::parse("libc.so.6:getaddrinfo").unwrap();
        let mut files = Files::default();
        let mut places = |spec: &ProbeSpec| places(&mut files, &spec.file, spec);
        let [place] = &places(&spec).unwrap()[..] else { panic!("one") };
        assert!([0, 4].contains(&(place.entry - place.offset)), "{place:?}");
        let none = ProbeSpec::parse("libc.so.6:no_such_function").unwrap();
        assert!(places(&none).unwrap_err().to_string().contains("it has no function 'no_such_function'"));
    }
}

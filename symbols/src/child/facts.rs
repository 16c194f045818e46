//! Answers to questions about a whole file, which is mapped: a file that is cut short meanwhile ends this process, and
//! names in it take no memory.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use super::failed;
use crate::ident::ident;
use crate::wire::{self, In, Out};
use crate::{function, static_probes};

/// A file in memory, for reading.
struct Mapped {
    at: *mut libc::c_void,
    len: usize,
}

impl Mapped {
    fn new(file: &File) -> Result<Self, String> {
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if !meta.is_file() {
            return Err("it is no regular file".into());
        }
        let len = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        if len == 0 {
            return Err("it is empty".into());
        }
        // SAFETY: a new mapping, of which nothing else knows.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(format!("it cannot be mapped: {}", std::io::Error::last_os_error()));
        }
        Ok(Self { at, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for reading, until it is dropped. Who writes to the file meanwhile changes what is read, as with any
        // file; nothing is checked once and used twice but by bounds of this length.
        unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), self.len) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping made above; no slice of it outlives this.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

/// The answer; None = the request is invalid.
pub(super) fn answer(kind: u8, input: &mut In<'_>, fd: Option<OwnedFd>) -> Option<Out> {
    let file = File::from(fd?);
    if kind == wire::IDENT {
        let found = ident(&file);
        let mut out = Out::new(wire::OK);
        out.u8(found.elf.into());
        out.bytes(&found.build_id[..found.build_id.len().min(wire::LONGEST_ID)]);
        return Some(out);
    }
    let mapped = Mapped::new(&file);
    let mapped = match &mapped {
        Ok(mapped) => mapped.bytes(),
        Err(why) => return Some(failed(why)),
    };
    let answer = match kind {
        wire::FUNCTION => function_start(mapped, input)?,
        wire::SONAME => Ok(soname(mapped)),
        wire::IS_STATIC => {
            let mut out = Out::new(wire::OK);
            out.u8(function::is_static(mapped).into());
            Ok(out)
        }
        wire::PROBES => probes(mapped, input.u32()?),
        wire::ADDRESSES => addresses(mapped, input)?,
        _ => return None,
    };
    Some(answer.unwrap_or_else(|why| failed(&why)))
}

fn function_start(mapped: &[u8], input: &mut In<'_>) -> Option<Result<Out, String>> {
    let name = input.bytes(wire::LONGEST_STRING)?;
    Some(function::find_function(mapped, name).map(|found| {
        let mut out = Out::new(wire::OK);
        out.u64(found.offset);
        out.u8(found.unwinds.into());
        out.bytes(&found.code[..found.code.len().min(wire::MOST_CODE)]);
        let returns = &found.returns[..found.returns.len().min(wire::MOST_OFFSETS)];
        out.u32(returns.len() as u32);
        returns.iter().for_each(|at| out.u64(*at));
        out
    }))
}

fn soname(mapped: &[u8]) -> Out {
    let mut out = Out::new(wire::OK);
    match function::soname(mapped).filter(|name| name.len() <= wire::LONGEST_STRING) {
        Some(name) => {
            out.u8(1);
            out.bytes(name);
        }
        None => out.u8(0),
    }
    out
}

/// Those from number `from` on, as many as an answer has room for.
fn probes(mapped: &[u8], from: u32) -> Result<Out, String> {
    let all = static_probes::static_probes(mapped)?;
    let mut out = Out::new(wire::OK);
    out.u32(all.len() as u32);
    let at = out.0.len();
    out.u32(0);
    let mut fit = 0u32;
    for probe in all.iter().skip(from as usize) {
        let before = out.0.len();
        out.static_probe(probe);
        if out.0.len() > wire::LONGEST_ANSWER {
            out.0.truncate(before);
            break;
        }
        fit += 1;
    }
    out.0[at..at + 4].copy_from_slice(&fit.to_ne_bytes());
    Ok(out)
}

fn addresses(mapped: &[u8], input: &mut In<'_>) -> Option<Result<Out, String>> {
    let n = input.count(wire::MOST_NAMES)?;
    let names = (0..n).map(|_| input.bytes(wire::LONGEST_STRING)).collect::<Option<Vec<_>>>()?;
    Some(static_probes::symbol_addresses(mapped, &names).map(|found| {
        let mut out = Out::new(wire::OK);
        for address in found {
            out.u8(address.is_some().into());
            address.iter().for_each(|address| out.u64(*address));
        }
        out
    }))
}

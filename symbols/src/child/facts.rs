//! Answers to questions about a whole file, which is mapped: names in it take no memory.

use std::fs::File;
use std::os::fd::OwnedFd;

use super::failed;
use super::mapped::MappedFile;
use crate::executed::Executed;
use crate::ident::ident;
use crate::wire::{self, MessageIn, MessageOut};
use crate::{function, static_probes};

/// The answer; None = the request is invalid.
pub(super) fn answer(kind: u8, input: &mut MessageIn<'_>, fd: Option<OwnedFd>) -> Option<MessageOut> {
    let file = File::from(fd?);
    if kind == wire::IDENT {
        let found = ident(&file);
        let mut out = MessageOut::new(wire::OK);
        out.u8(found.elf.into());
        out.bytes(&found.build_id[..found.build_id.len().min(wire::LONGEST_ID)]);
        return Some(out);
    }
    if kind == wire::EXECUTED {
        return Some(executed(&file));
    }
    let mapped = MappedFile::new(&file);
    let mapped = match &mapped {
        Ok(mapped) => mapped.bytes(),
        Err(why) => return Some(failed(why)),
    };
    let answer = match kind {
        wire::FUNCTION => function_start(mapped, input)?,
        wire::SONAME => Ok(soname(mapped)),
        wire::IS_STATIC => {
            let mut out = MessageOut::new(wire::OK);
            out.u8(function::is_static(mapped).into());
            Ok(out)
        }
        wire::PROBES => probes(mapped, input.u32()?),
        wire::ADDRESSES => addresses(mapped, input)?,
        _ => return None,
    };
    Some(answer.unwrap_or_else(|why| failed(&why)))
}

fn executed(file: &File) -> MessageOut {
    let (kind, name) = match Executed::read(file) {
        Some(Executed::Script(name)) => (0, name),
        Some(Executed::Elf(Some(name))) => (1, name),
        Some(Executed::Elf(None)) => (2, Vec::new()),
        Some(Executed::OtherElf) => (3, Vec::new()),
        Some(Executed::Other) => (4, Vec::new()),
        None => return failed("what it asks for is not in its first bytes"),
    };
    let mut out = MessageOut::new(wire::OK);
    out.u8(kind);
    out.bytes(&name);
    out
}

fn function_start(mapped: &[u8], input: &mut MessageIn<'_>) -> Option<Result<MessageOut, String>> {
    let name = input.bytes(wire::LONGEST_STRING)?;
    Some(function::find_function(mapped, name).map(|found| {
        let mut out = MessageOut::new(wire::OK);
        out.u64(found.offset);
        out.u8(found.unwinds.into());
        out.bytes(&found.code[..found.code.len().min(wire::MOST_CODE)]);
        let returns = &found.returns[..found.returns.len().min(wire::MOST_OFFSETS)];
        out.u32(returns.len() as u32);
        returns.iter().for_each(|at| out.u64(*at));
        out
    }))
}

fn soname(mapped: &[u8]) -> MessageOut {
    let mut out = MessageOut::new(wire::OK);
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
fn probes(mapped: &[u8], from: u32) -> Result<MessageOut, String> {
    let all = static_probes::static_probes(mapped)?;
    let mut out = MessageOut::new(wire::OK);
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

fn addresses(mapped: &[u8], input: &mut MessageIn<'_>) -> Option<Result<MessageOut, String>> {
    let n = input.count(wire::MOST_NAMES)?;
    let names = (0..n).map(|_| input.bytes(wire::LONGEST_STRING)).collect::<Option<Vec<_>>>()?;
    Some(static_probes::symbol_addresses(mapped, &names).map(|found| {
        let mut out = MessageOut::new(wire::OK);
        for address in found {
            out.u8(address.is_some().into());
            address.iter().for_each(|address| out.u64(*address));
        }
        out
    }))
}

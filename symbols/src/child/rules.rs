//! Unwind rules of files, which stay open for many questions: each file has a number.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;

use systape_unwind::{Module, ModuleLimits, Registers, RuleSource, StackCopy};

use super::{failed, limits};
use crate::wire::{self, MessageIn, MessageOut};

/// After so many questions there is more CPU time: each of them is bounded.
const QUESTIONS: u32 = 4096;

/// The files with a number.
#[derive(Default)]
pub(super) struct Modules {
    modules: HashMap<u32, Module>,
    questions: u32,
}

impl Modules {
    /// The answer; None = the request is invalid.
    pub(super) fn answer(
        &mut self,
        kind: u8,
        input: &mut MessageIn<'_>,
        fd: Option<OwnedFd>,
        cpu: u32,
    ) -> Option<MessageOut> {
        self.questions += 1;
        if kind == wire::UNWIND || self.questions >= QUESTIONS {
            self.questions = 0;
            limits::more_cpu(cpu);
        }
        match kind {
            wire::UNWIND => {
                let (number, unwind_bytes) = (input.u32()?, input.u64()?);
                Some(self.open(number, &File::from(fd?), ModuleLimits { unwind_bytes }))
            }
            wire::FACTS => {
                let (module, address, mut budget) = self.asked(input)?;
                let facts = module.facts_of_row(address, &mut budget);
                let mut out = MessageOut::new(wire::OK);
                out.u64(budget);
                out.u8(facts.is_some().into());
                if let Some((facts, row)) = facts {
                    let (first, end) = row.unwrap_or_default();
                    out.raw(&facts.to_bytes());
                    out.u64(first);
                    out.u64(end);
                }
                Some(out)
            }
            wire::STEP => {
                let (module, address, mut budget) = self.asked(input)?;
                let registers = Registers::from_bytes(input.raw()?);
                let (base, entry, absent) = (input.u64()?, input.u64()?, input.u64()?);
                let (cut, in_call) = (input.u8()? != 0, input.u8()? != 0);
                let bytes = input.bytes(wire::MOST_STACK)?;
                let stack = StackCopy { base, bytes, absent, cut, in_call, entry };
                let stepped = module.step(address, &registers, &stack, &mut budget);
                let mut out = MessageOut::new(wire::OK);
                out.u64(budget);
                out.raw(&stepped.to_bytes());
                Some(out)
            }
            wire::FORGET => {
                self.modules = HashMap::new();
                limits::give_memory_back();
                Some(MessageOut::new(wire::OK))
            }
            _ => None,
        }
    }

    fn open(&mut self, number: u32, file: &File, most: ModuleLimits) -> MessageOut {
        self.modules.remove(&number);
        let module = match Module::open(file, most) {
            Ok(module) => module,
            Err(why) => return failed(&why.to_string()),
        };
        let mut out = MessageOut::new(wire::OK);
        out.u8(module.has_rules().into());
        out.u64(module.memory() as u64);
        out.bytes(&module.segments().to_bytes());
        self.modules.insert(number, module);
        out
    }

    /// A file, an address of it, and what the answer may cost.
    fn asked(&self, input: &mut MessageIn<'_>) -> Option<(&Module, u64, u64)> {
        let module = self.modules.get(&input.u32()?)?;
        Some((module, input.u64()?, input.u64()?))
    }
}

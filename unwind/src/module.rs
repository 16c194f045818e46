//! The parts of an ELF file needed for unwinding.

use std::fs::File;

use crate::cfi::{Cfi, CfiContext, NoRules, Rules};
use crate::elf::{self, FileSource, Source, UnwindSections};
use crate::evaluate::evaluate;
use crate::limits::{ModuleError, ModuleLimits};
use crate::registers::Registers;
use crate::rules::{Facts, Known, RuleSource, Stepped};
use crate::segments::Segments;
use crate::stack::{StackCopy, UnwindEnd};

/// An ELF file's unwind information, owned: the file may change or vanish afterwards.
///
/// It has the headers, the build id, `.eh_frame` with its search table, and `.debug_frame` (left out beyond the limit),
/// which is used where `.eh_frame` has no rules. A file without section headers is read by its program headers. A file
/// without unwind information is a module too: it has a build id and addresses.
#[derive(Debug)]
pub struct Module {
    segments: Segments,
    /// `.eh_frame`, then `.debug_frame`.
    cfi: Vec<Cfi>,
}

impl Module {
    /// Reads the needed parts by pread (a mapped file that is cut short would raise SIGBUS).
    ///
    /// # Errors
    /// Not an ELF file of this machine (32-bit files included), too large, or invalid.
    pub fn open(file: &File, limits: ModuleLimits) -> Result<Self, ModuleError> {
        Self::read(&FileSource::new(file)?, limits)
    }

    /// Opens, as [`Self::open`] does, an image in memory as the kernel maps it (the vDSO: its memory is its file).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: &[u8], limits: ModuleLimits) -> Result<Self, ModuleError> {
        Self::read(&bytes, limits)
    }

    fn read(source: &impl Source, limits: ModuleLimits) -> Result<Self, ModuleError> {
        let UnwindSections { segments, eh_frame, eh_frame_hdr, debug_frame } = elf::parse(source, limits)?;
        let eh_frame = eh_frame.map(|section| Cfi::eh_frame(section, eh_frame_hdr));
        let cfi = eh_frame.into_iter().chain(debug_frame.map(Cfi::debug_frame)).collect();
        Ok(Self { segments: Segments(segments), cfi })
    }

    /// Where the parts of the file are in its own addresses.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Address of an offset, by [`Segments::address_of`].
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// Bytes of memory used.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.segments.memory()
            + self.cfi.capacity() * size_of::<Cfi>()
            + self.cfi.iter().map(Cfi::memory).sum::<usize>()
    }

    /// [`RuleSource::facts`], and the addresses, those between the first and the second, for which these are the same, but that no function
    /// begins there; None = not known of others.
    pub fn facts_of_row(&self, address: u64, budget: &mut u64) -> Option<(Facts, Option<(u64, u64)>)> {
        let mut context = Box::default();
        let (known, span) = match self.rules(address, &mut context, budget) {
            // of two sections each has functions of its own
            Ok(rules) => (Known::of(&rules), Some(rules.span).filter(|_| self.cfi.len() == 1)),
            Err(missing) => (Known::of_missing(&missing)?, None),
        };
        let any = |test: fn(&Cfi, u64) -> bool| self.cfi.iter().any(|cfi| test(cfi, address));
        Some((Facts { known, begins: any(Cfi::begins_at), covers: any(Cfi::covers) }, span))
    }

    /// The rules at an address of the file.
    fn rules<'a>(&'a self, address: u64, context: &'a mut CfiContext, budget: &mut u64) -> Result<Rules<'a>, NoRules> {
        match self.cfi.as_slice() {
            [] => Err(NoRules::NoFde),
            [only] => only.rules(address, context, budget),
            [first, second, ..] => if first.covers(address) { first } else { second }.rules(address, context, budget),
        }
    }
}

impl RuleSource for Module {
    fn has_rules(&self) -> bool {
        !self.cfi.is_empty()
    }

    fn facts(&self, address: u64, budget: &mut u64) -> Option<Facts> {
        self.facts_of_row(address, budget).map(|(facts, _)| facts)
    }

    fn step(&self, address: u64, registers: &Registers, stack: &StackCopy<'_>, budget: &mut u64) -> Stepped {
        let mut context = Box::default();
        match self.rules(address, &mut context, budget) {
            Ok(rules) => {
                let signal = rules.signal;
                Stepped { caller: evaluate(&rules, registers, stack, budget), signal }
            }
            Err(_) => Stepped { caller: Err(UnwindEnd::BadMemory), signal: false },
        }
    }
}

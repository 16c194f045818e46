//! From an address to its row of unwind rules.
//!
//! `.eh_frame` is a list of CIEs (common parts of many functions) and FDEs (one per function). `.eh_frame_hdr` is a
//! table sorted by address, made by the linker, to find an FDE. If that table is missing, or contradicts itself, an
//! index is built from the list once, at the first lookup.

use std::sync::OnceLock;

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindOffset, UnwindSection, UnwindTableRow, Vendor,
};

use crate::bytes::{i32_at, u32_at};
use crate::eh_frame::{LoadedBytes, eh_frame_address, entry_length};
use crate::numbers::MAX_RULES;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Longest CIE accepted; real ones have 20 to 60 bytes.
const MAX_CIE: u64 = 1024;
/// Longest FDE accepted; the longest of gcc 12's cc1 has 20,064 bytes, of LLVM 14 2,388.
const MAX_FDE: u64 = 64 << 10;
/// Bytes of an `.eh_frame_hdr` before its table, in the one layout that linkers write.
const HDR_TABLE: u64 = 12;
/// DW_EH_PE_datarel | DW_EH_PE_sdata4: 4 bytes each, counted from the header's own address.
const TABLE_ENCODING: u8 = 0x3b;

/// Whose own operations rules may have: of arm64 the one that says that the return address is signed.
const VENDOR: Vendor = if cfg!(target_arch = "aarch64") { Vendor::AArch64 } else { Vendor::Default };

/// Memory for the evaluation of one function's rules. Fixed, so that hostile rules end.
#[derive(Debug)]
pub(crate) struct RuleStorage;

impl UnwindContextStorage<usize> for RuleStorage {
    type Rules = [(Register, RegisterRule<usize>); MAX_RULES];
    /// Nested DW_CFA_remember_state; compilers nest one or two.
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

pub(crate) type CfiContext = UnwindContext<usize, RuleStorage>;

/// The rules at an address.
pub(crate) struct Rules<'a> {
    pub(crate) row: &'a UnwindTableRow<usize, RuleStorage>,
    /// The expressions of `row` are offsets into it.
    pub(crate) section: &'a [u8],
    /// The column of the return address.
    pub(crate) return_address: Register,
    /// 'S' augmentation: a signal handler returns to this function.
    pub(crate) signal: bool,
    /// Range of all addresses, from the first to before the second, of the one function that has these rules.
    pub(crate) span: (u64, u64),
}

/// Why there are no rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRules {
    /// The function has none.
    NoFde,
    /// Invalid rules.
    Bad,
    /// Rules whose lookup would take more work than allowed for one stack.
    Budget,
}

/// A section of unwind information.
#[derive(Debug)]
pub(crate) struct Cfi {
    section: LoadedBytes,
    kind: Kind,
    /// The linker's search table: pairs of (function, FDE), 4 bytes each.
    hdr: Option<LoadedBytes>,
    index: OnceLock<Vec<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Eh,
    Debug,
}

impl Cfi {
    pub(crate) fn eh_frame(section: LoadedBytes, hdr: Option<LoadedBytes>) -> Self {
        let hdr = hdr.filter(|hdr| table_is_sane(hdr, &section));
        Self { section, kind: Kind::Eh, hdr, index: OnceLock::new() }
    }

    pub(crate) fn debug_frame(bytes: Vec<u8>) -> Self {
        Self { section: LoadedBytes { address: 0, bytes }, kind: Kind::Debug, hdr: None, index: OnceLock::new() }
    }

    pub(crate) fn memory(&self) -> usize {
        self.section.bytes.capacity()
            + self.hdr.as_ref().map_or(0, |h| h.bytes.capacity())
            + self.index.get().map_or(0, |i| i.capacity() * size_of::<(u64, u32)>())
    }

    /// The rules at `address`. At most `budget` bytes of entries may be evaluated; those evaluated are subtracted.
    pub(crate) fn rules<'a>(
        &'a self,
        address: u64,
        context: &'a mut CfiContext,
        budget: &mut u64,
    ) -> Result<Rules<'a>, NoRules> {
        match self.kind {
            Kind::Eh => self.rules_in(&self.eh(), address, context, budget),
            Kind::Debug => self.rules_in(&self.debug(), address, context, budget),
        }
    }

    /// Whether a function begins at `address`.
    pub(crate) fn begins_at(&self, address: u64) -> bool {
        self.function(address).is_some_and(|(start, _)| start == address)
    }

    /// Whether `address` is in a function with rules.
    pub(crate) fn covers(&self, address: u64) -> bool {
        self.function(address).is_some_and(|(start, end)| (start..end).contains(&address))
    }

    /// First address and end of the only function that can contain `address`.
    fn function(&self, address: u64) -> Option<(u64, u64)> {
        let (offset, _) = self.find(address)?;
        match self.kind {
            Kind::Eh => self.fde(&self.eh(), offset).map(|f| (f.initial_address(), f.end_address())),
            Kind::Debug => self.fde(&self.debug(), offset).map(|f| (f.initial_address(), f.end_address())),
        }
    }

    fn eh(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.section.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(VENDOR);
        section
    }

    fn debug(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.section.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(VENDOR);
        section
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default().set_eh_frame(self.section.address)
    }

    fn rules_in<'a, S: UnwindSection<Slice<'a>>>(
        &'a self,
        section: &S,
        address: u64,
        context: &'a mut CfiContext,
        budget: &mut u64,
    ) -> Result<Rules<'a>, NoRules> {
        let (offset, next) = self.find(address).ok_or(NoRules::NoFde)?;
        let fde = self.fde(section, offset).ok_or(NoRules::Bad)?;
        if !fde.contains(address) {
            return Err(NoRules::NoFde);
        }
        if fde.cie().address_size() != 8 || fde.entry_len() as u64 > MAX_FDE {
            return Err(NoRules::Bad);
        }
        let cost = (fde.entry_len() + fde.cie().entry_len()) as u64;
        *budget = budget.checked_sub(cost).ok_or(NoRules::Budget)?;
        let (return_address, signal) = (fde.cie().return_address_register(), fde.is_signal_trampoline());
        let row = fde.unwind_info_for_address(section, &self.bases(), context, address).map_err(|_| NoRules::Bad)?;
        let span = (row.start_address(), row.end_address().min(next));
        Ok(Rules { row, section: &self.section.bytes, return_address, signal, span })
    }

    fn fde<'a, S: UnwindSection<Slice<'a>>>(
        &'a self,
        section: &S,
        offset: u32,
    ) -> Option<gimli::FrameDescriptionEntry<Slice<'a>>> {
        let bases = self.bases();
        let partial = section.partial_fde_from_offset(&bases, S::Offset::from(offset as usize)).ok()?;
        // An augmentation string may be as long as its CIE, and is read for each FDE.
        let (length, _) = entry_length(&self.section.bytes, UnwindOffset::into(partial.cie_offset()) as u64)?;
        if length > MAX_CIE {
            return None;
        }
        partial.parse(S::cie_from_offset).ok()
    }

    /// Offset of the only FDE that can contain `address`, and where the next one begins.
    fn find(&self, address: u64) -> Option<(u32, u64)> {
        match &self.hdr {
            Some(hdr) => find_in_table(hdr, &self.section, address),
            None => {
                let index = self.index.get_or_init(|| match self.kind {
                    Kind::Eh => self.build_index(&self.eh()),
                    Kind::Debug => self.build_index(&self.debug()),
                });
                let after = index.partition_point(|(start, _)| *start <= address);
                let next = index.get(after).map_or(u64::MAX, |(start, _)| *start);
                index.get(after.checked_sub(1)?).map(|(_, offset)| (*offset, next))
            }
        }
    }

    /// (first address, offset) of every readable FDE, sorted. An entry has at least 17 bytes, so the index is no larger
    /// than the section.
    fn build_index<'a, S: UnwindSection<Slice<'a>>>(&'a self, section: &S) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        let mut offset = 0;
        // CIEs are parsed again for each FDE. In a real file that is less than the file itself.
        let mut budget = 4 * self.section.bytes.len() as u64 + 65536;
        while let Some((length, next)) = entry_length(&self.section.bytes, offset) {
            if length == 0 && matches!(self.kind, Kind::Eh) {
                break;
            }
            if length >= 13
                && let Some(fde) = self.fde(section, offset as u32)
            {
                let cost = fde.cie().entry_len() as u64 + length;
                // Functions that the linker left out begin at 0.
                if fde.len() > 0 && fde.initial_address() != 0 {
                    found.push((fde.initial_address(), offset as u32));
                }
                match budget.checked_sub(cost) {
                    Some(rest) => budget = rest,
                    None => break,
                }
            }
            offset = next;
        }
        found.sort_unstable();
        found.dedup_by_key(|(start, _)| *start);
        found.shrink_to_fit();
        found
    }
}

/// The table as linkers write it: its count fits, it is sorted, and it refers to this `.eh_frame`.
fn table_is_sane(hdr: &LoadedBytes, section: &LoadedBytes) -> bool {
    let bytes = &hdr.bytes;
    let header_is = eh_frame_address(hdr) == Some(section.address)
        && bytes.get(1).is_some_and(|e| matches!(e & 0x0f, 0x03 | 0x0b))
        && bytes.get(2) == Some(&0x03)
        && bytes.get(3) == Some(&TABLE_ENCODING);
    let Some(table) = header_is.then(|| table(hdr)).flatten() else { return false };
    let starts = table.chunks_exact(8).map(|pair| i32_at(pair, 0));
    !table.is_empty() && starts.is_sorted()
}

fn table(hdr: &LoadedBytes) -> Option<&[u8]> {
    let count = u32_at(&hdr.bytes, 8)? as usize;
    hdr.bytes.get(HDR_TABLE as usize..)?.get(..count.checked_mul(8)?)
}

fn find_in_table(hdr: &LoadedBytes, section: &LoadedBytes, address: u64) -> Option<(u32, u64)> {
    let table = table(hdr)?;
    let relative = address.wrapping_sub(hdr.address) as i64;
    let start = |i: usize| i32_at(table, i as u64 * 8).map_or(i64::MAX, i64::from);
    let (mut low, mut high) = (0, table.len() / 8);
    while low < high {
        let middle = low.midpoint(high);
        if start(middle) <= relative {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let fde = i64::from(i32_at(table, low.checked_sub(1)? as u64 * 8 + 4)?);
    let fde = hdr.address.wrapping_add(fde as u64).checked_sub(section.address)?;
    let next = i32_at(table, low as u64 * 8).map_or(u64::MAX, |next| hdr.address.wrapping_add(i64::from(next) as u64));
    Some((u32::try_from(fde).ok()?, next))
}

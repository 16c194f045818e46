//! Reads from a stack copy, and the reason when there is nothing to read.

const PAGE: u64 = 4096;
/// Above a cut copy the same stack continues at most this far; beyond is another stack. The default limit of a stack is
/// 8 MiB.
const SAME_STACK: u64 = 64 << 20;
/// No stack is below: pages that the kernel never lets a process map.
const LOWEST: u64 = 65536;
/// User addresses end here, with five levels of page tables.
const HIGHEST: u64 = 1 << 56;

/// A copy of the stack from the stack pointer upwards.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Bit i set: the i-th page (the first may begin in mid-page; pages are 4096 bytes of address space) could not be read, its bytes mean nothing.
    pub absent: u64,
    /// The stack continues above: it was larger than the copy's limit.
    pub cut: bool,
    /// The instruction pointer is behind the instruction that entered the kernel, like a return address behind its
    /// call.
    pub in_call: bool,
    /// The stack pointer with which the process began; 0 = not known.
    pub entry: u64,
}

/// Why a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindEnd {
    /// The outermost frame was reached.
    Complete,
    /// More frames than requested.
    TooDeep,
    /// The copy ends here, the stack does not.
    Cut,
    /// A page of it could not be read.
    NotResident,
    /// No unwind information, and frame pointers do not help.
    NoUnwindInfo,
    /// The unwind information or the stack is invalid.
    BadMemory,
    /// A file that could not be opened.
    NoFile,
    /// No mapping.
    NoMapping,
    /// Code made at run time, and frame pointers do not help.
    Jit,
    /// A stack that continues on another one.
    OtherStack,
}

impl UnwindEnd {
    const ALL: [Self; 10] = [
        Self::Complete,
        Self::TooDeep,
        Self::Cut,
        Self::NotResident,
        Self::NoUnwindInfo,
        Self::BadMemory,
        Self::NoFile,
        Self::NoMapping,
        Self::Jit,
        Self::OtherStack,
    ];

    /// Number of the end, for another process.
    pub(crate) fn number(self) -> u8 {
        Self::ALL.iter().position(|end| *end == self).map_or(u8::MAX, |at| at as u8)
    }

    /// Reads what [`Self::number`] gave.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl StackCopy<'_> {
    /// First address above the copy.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    /// The 8 bytes at `address`.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Result<u64, UnwindEnd> {
        let within = address.wrapping_sub(self.base);
        let bytes = usize::try_from(within).ok().and_then(|at| self.bytes.get(at..)?.first_chunk::<8>());
        let Some(bytes) = bytes else { return Err(self.outside(address)) };
        if self.absent != 0 && (self.is_absent(address) || self.is_absent(address.wrapping_add(7))) {
            return Err(UnwindEnd::NotResident);
        }
        Ok(u64::from_le_bytes(*bytes))
    }

    /// The `size` bytes (1 to 8) at `address`, zero-extended.
    pub(crate) fn value(&self, address: u64, size: u8) -> Result<u64, UnwindEnd> {
        if !(1..=8).contains(&size) {
            return Err(UnwindEnd::BadMemory);
        }
        let length = usize::from(size);
        let within = usize::try_from(address.wrapping_sub(self.base)).ok();
        let bytes = within.and_then(|at| self.bytes.get(at..)?.get(..length));
        let Some(bytes) = bytes else { return Err(self.outside(address)) };
        if self.is_absent(address) || self.is_absent(address.wrapping_add(u64::from(size) - 1)) {
            return Err(UnwindEnd::NotResident);
        }
        let mut value = [0; 8];
        value[..length].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(value))
    }

    fn is_absent(&self, address: u64) -> bool {
        // A hostile copy may lie across the end of the address space.
        let page = (self.base % PAGE).saturating_add(address.wrapping_sub(self.base)) / PAGE;
        page < 64 && self.absent & (1 << page) != 0
    }

    /// Why there are no bytes at an address outside the copy.
    fn outside(&self, address: u64) -> UnwindEnd {
        let end = self.end();
        if self.cut && address >= end.saturating_sub(7) && address.wrapping_sub(self.base) < SAME_STACK {
            return UnwindEnd::Cut;
        }
        let far = if address < self.base { self.base - address } else { address.saturating_sub(end) };
        if far >= PAGE && address.is_multiple_of(8) && (LOWEST..HIGHEST).contains(&address) {
            UnwindEnd::OtherStack
        } else {
            UnwindEnd::BadMemory
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffc_0000_0f00;

    fn copy(bytes: &[u8], absent: u64, cut: bool) -> StackCopy<'_> {
        StackCopy { base: BASE, bytes, absent, cut, in_call: false, entry: 0 }
    }

    #[test]
    fn reads_stay_inside() {
        let bytes: Vec<u8> = (0..=255).cycle().take(0x2000).collect();
        let stack = copy(&bytes, 0, false);
        assert_eq!(stack.word(BASE), Ok(0x0706_0504_0302_0100));
        assert_eq!(stack.word(BASE + 0x1ff8), Ok(0xfffe_fdfc_fbfa_f9f8));
        assert_eq!(stack.value(BASE + 3, 2), Ok(0x0403));
        assert_eq!(stack.word(BASE + 0x1ff9), Err(UnwindEnd::BadMemory));
        assert_eq!(stack.word(BASE - 8), Err(UnwindEnd::BadMemory));
        assert_eq!(stack.word(u64::MAX), Err(UnwindEnd::BadMemory));
        assert_eq!(stack.word(0), Err(UnwindEnd::BadMemory));
        assert_eq!(stack.word(BASE - 0x10_0000), Err(UnwindEnd::OtherStack));
        assert_eq!(stack.word(BASE + 0x10_0000), Err(UnwindEnd::OtherStack));
        assert_eq!(stack.value(BASE, 0), Err(UnwindEnd::BadMemory));
        assert_eq!(stack.value(BASE, 9), Err(UnwindEnd::BadMemory));
    }

    #[test]
    fn above_a_cut_copy_is_cut() {
        let bytes = [0; 0x2000];
        let stack = copy(&bytes, 0, true);
        assert_eq!(stack.word(BASE + 0x1ffc), Err(UnwindEnd::Cut));
        assert_eq!(stack.word(BASE + 0x2000), Err(UnwindEnd::Cut));
        assert_eq!(stack.word(BASE + (1 << 30)), Err(UnwindEnd::OtherStack));
        assert_eq!(stack.word(BASE - 0x2000), Err(UnwindEnd::OtherStack));
    }

    #[test]
    fn absent_pages_count_from_the_first_page_of_the_copy() {
        let bytes = [0; 0x3000];
        let stack = copy(&bytes, 0b10, false);
        assert_eq!(stack.word(BASE + 0xf8), Ok(0));
        assert_eq!(stack.word(BASE + 0xfc), Err(UnwindEnd::NotResident), "its second half is on the page");
        assert_eq!(stack.word(BASE + 0x100), Err(UnwindEnd::NotResident));
        assert_eq!(stack.word(BASE + 0x10f8), Err(UnwindEnd::NotResident));
        assert_eq!(stack.word(BASE + 0x1100), Ok(0));
    }
}

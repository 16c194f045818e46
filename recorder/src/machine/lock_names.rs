//! Names of locks: variables of the kernel and its modules, from /proc/kallsyms.

use std::fs;

/// The kernel's image and its modules are above this; below are addresses of what is allocated, and of
/// variables of CPUs, which are distances.
const LOWEST: u64 = if cfg!(target_arch = "aarch64") { 0xffff_8000_0000_0000 } else { 0xffff_ffff_8000_0000 };
/// On arm64 what vmalloc gives is among image and modules.
const ALONE: bool = cfg!(not(target_arch = "aarch64"));
/// Of the last variable of a module the end is not in the list.
const FARTHEST: u64 = 1 << 16;

/// Variables by address; none if the kernel hides its addresses.
#[derive(Debug, Default)]
pub struct LockNames {
    /// Address, and place and length of the name in `names`; a length of 0: it is no variable.
    symbols: Vec<(u64, u32, u16)>,
    names: Vec<u8>,
}

impl LockNames {
    /// Reads the names of the running kernel.
    pub(crate) fn read() -> Self {
        fs::read("/proc/kallsyms").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &[u8]) -> Self {
        let mut this = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
            let (Some(address), Some([kind]), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let address = str::from_utf8(address).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
            let Some(address) = address.filter(|address| *address >= LOWEST) else { continue };
            let (Ok(at), Ok(len)) = (u32::try_from(this.names.len()), u16::try_from(name.len())) else { continue };
            let is_variable = matches!(kind, b'd' | b'D' | b'b' | b'B');
            if is_variable {
                this.names.extend_from_slice(name);
            }
            this.symbols.push((address, at, if is_variable { len } else { 0 }));
        }
        // of several names at one place a variable's, the first in the list
        this.symbols.sort_by_key(|(address, _, len)| (*address, *len == 0));
        this.symbols.dedup_by_key(|(address, ..)| *address);
        this
    }

    /// The variable at `address`, or that it is in: with the distance, as `inode_hash+0x8`; None = it is not in one.
    pub(crate) fn find(&self, address: u64) -> Option<Vec<u8>> {
        let after = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (start, at, len) = *self.symbols[..after].last()?;
        let name = self.names.get(at as usize..)?.get(..len.into()).filter(|name| !name.is_empty())?;
        let within = address - start;
        if within > FARTHEST && (!ALONE || after == self.symbols.len()) {
            return None;
        }
        let mut name = name.to_vec();
        if within > 0 {
            name.extend_from_slice(format!("+{within:#x}").as_bytes());
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_named_by_its_variable() {
        let names = LockNames::parse(
            b"0000000000000000 A fixed_percpu_data\n0000000000034000 A runqueues\nffffffff81000000 T _text\n\
            ffffffff82000000 D tasklist_lock\nffffffff82000040 t a_function\nffffffff83000000 b inode_table\n\
            ffffffff83000000 B __bss_part\nffffffff83001000 B _end\nffffffffc0001000 d pool_lock\t[loop]\n",
        );
        let find = |address| names.find(address).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(find(0xffff_ffff_8200_0000).as_deref(), Some("tasklist_lock"));
        assert_eq!(find(0xffff_ffff_8300_0010).as_deref(), Some("inode_table+0x10"));
        assert_eq!(find(0xffff_ffff_c000_1000).as_deref(), Some("pool_lock"));
        // code, memory that was allocated, variables of CPUs, what is behind all
        for other in [0xffff_ffff_8200_0044, 0xffff_8881_0000_0000, 0x34010, 0xffff_ffff_c010_0000] {
            assert_eq!(find(other), None, "{other:x}");
        }
        assert_eq!(LockNames::parse(b"0000000000000000 D tasklist_lock\n").find(0), None, "hidden");
    }
}

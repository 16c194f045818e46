//! Entries of interrupts into the kernel: code behind them has nothing to do with the interrupted task.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// The range of the entry code of interrupts (x86-64: `asm_common_interrupt` to the last `asm_sysvec_`), from
/// /proc/kallsyms. None if the kernel hides its addresses, or has this code in an unknown layout.
pub(crate) fn of_interrupts() -> Option<(u64, u64)> {
    let file = File::open("/proc/kallsyms").ok()?;
    range(BufReader::new(file).lines().map_while(Result::ok))
}

/// Whether a symbol is an entry of interrupts. Those of exceptions (`asm_exc_`) run for the task.
fn is_entry(name: &str) -> bool {
    matches!(name, "asm_common_interrupt" | "asm_spurious_interrupt") || name.starts_with("asm_sysvec_")
}

/// Most lines read: the list is in the order of addresses, and entry code comes early in it.
fn range(lines: impl Iterator<Item = String>) -> Option<(u64, u64)> {
    let mut from = None;
    for line in lines {
        let mut fields = line.split(' ');
        let (Some(address), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let address = u64::from_str_radix(address, 16).ok()?;
        match (from, is_entry(name)) {
            (None, true) if address == 0 => return None,
            (None, true) => from = Some(address),
            (Some(from), false) => return Some((from, address)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(u64, u64)> {
        range(text.lines().map(str::to_owned))
    }

    #[test]
    fn the_range_ends_with_the_first_other_symbol() {
        let text = "0000000000000000 A fixed_percpu_data\nffffffff81000d10 T asm_exc_double_fault\n\
            ffffffff81000d40 T asm_common_interrupt\nffffffff81000d80 T asm_spurious_interrupt\n\
            ffffffff81000f50 T asm_sysvec_kvm_asyncpf_interrupt\nffffffff81001270 T asm_load_gs_index\n\
            ffffffff810015b0 T asm_exc_nmi\n";
        assert_eq!(parse(text), Some((0xffff_ffff_8100_0d40, 0xffff_ffff_8100_1270)));
        let hidden = text.replace("ffffffff81000d40", "0000000000000000");
        assert_eq!(parse(&hidden), None, "addresses are hidden");
        assert_eq!(parse("ffffffff81000080 T entry_SYSCALL_64\n"), None);
    }
}

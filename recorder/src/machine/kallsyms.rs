//! Symbols of the running kernel that matter to the programs, from one reading of /proc/kallsyms.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// A function, or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelSymbol {
    /// Name of the symbol without what the compiler adds to it (`.llvm.123`).
    pub name: String,
    /// Address of the symbol.
    pub from: u64,
    /// That of the next; equal to `from` for a module's.
    pub to: u64,
}

/// Symbols that were wanted, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedSymbols {
    found: Vec<KernelSymbol>,
    /// The kernel hides its addresses.
    hidden: bool,
}

impl WantedSymbols {
    /// Reads the symbols of the running kernel whose names are `wanted`.
    pub(crate) fn read(wanted: impl Fn(&str) -> bool) -> Self {
        let file = File::open("/proc/kallsyms").ok();
        file.map(|file| Self::parse(BufReader::new(file), wanted)).unwrap_or_default()
    }

    /// Picks the wanted symbols of a list by address, as /proc/kallsyms is, with modules at its end.
    pub(crate) fn parse(mut list: impl BufRead, wanted: impl Fn(&str) -> bool) -> Self {
        let mut all = Self::default();
        let mut line = String::new();
        while list.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            all.add(line.trim_end(), &wanted);
            line.clear();
        }
        all
    }

    fn add(&mut self, line: &str, wanted: impl Fn(&str) -> bool) {
        let mut fields = line.split([' ', '\t']);
        let (Some(address), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next()) else { return };
        let (Ok(address), in_module) = (u64::from_str_radix(address, 16), fields.next().is_some()) else { return };
        // those that end with this one; several names may begin at one place
        for open in self.found.iter_mut().rev().take_while(|open| open.to == 0).filter(|open| open.from != address) {
            open.to = if in_module { open.from } else { address };
        }
        let name = name.split(".llvm.").next().unwrap_or_default();
        if wanted(name) {
            // variables of CPUs begin at 0, others do not
            self.hidden |= address == 0;
            let to = if in_module { address } else { 0 };
            self.found.push(KernelSymbol { name: name.to_owned(), from: address, to });
        }
    }

    /// All of them, in the order of their addresses; none if the kernel hides these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KernelSymbol> {
        self.found.iter().filter(|_| !self.hidden)
    }

    /// Whether there is one of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|symbol| symbol.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\nffffffff81e63ec0 t process_backlog.llvm.77\n\
        ffffffff81e64000 t napi_watchdog\nffffffff81e64100 t xlog_bio_end_io\nffffffff81e64100 t alias\n\
        ffffffffc0001000 t xfs_buf_bio_end_io\t[xfs]\nffffffffc0001200 t xfs_more\t[xfs]\n";

    fn wanted(name: &str) -> bool {
        name == "process_backlog" || name.ends_with("_bio_end_io")
    }

    #[test]
    fn a_function_ends_with_the_next() {
        let all: Vec<KernelSymbol> = WantedSymbols::parse(KERNEL.as_bytes(), wanted).iter().cloned().collect();
        let symbol = |name: &str, from, to| KernelSymbol { name: name.to_owned(), from, to };
        let expected = [
            symbol("process_backlog", 0xffff_ffff_81e6_3ec0, 0xffff_ffff_81e6_4000),
            symbol("xlog_bio_end_io", 0xffff_ffff_81e6_4100, 0xffff_ffff_81e6_4100),
            symbol("xfs_buf_bio_end_io", 0xffff_ffff_c000_1000, 0xffff_ffff_c000_1000),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn hidden_addresses_are_none() {
        let hidden: String = KERNEL.lines().map(|line| format!("0000000000000000{}\n", &line[16..])).collect();
        let hidden = WantedSymbols::parse(hidden.as_bytes(), wanted);
        assert_eq!((hidden.iter().count(), hidden.has("process_backlog"), hidden.has("_text")), (0, true, false));
    }
}

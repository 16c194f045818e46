//! Addresses in the kernel: their image, module or program, and which belong to the tracing itself.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{Mapping, MappingKind};
use systape_symbols::Kallsyms;

/// The kernel's functions between an event and our program, whose frames begin every stack.
const TRACING: [&str; 8] = [
    "bpf_get_stack",
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
    "__bpf_prog_",
    "bpf_trampoline_",
    "perf_trace_",
    "trace_call_bpf",
];
/// Most distinct addresses remembered.
const MAX_KNOWN: usize = 1 << 16;

/// Place of an address.
#[derive(Clone, Debug)]
pub(crate) struct KernelPlace {
    /// The image.
    pub mapping: Arc<Mapping>,
    /// The offset in it.
    pub offset: u64,
    /// Whether it belongs to the tracing, not to the traced task.
    pub tracing: bool,
}

/// Finds places.
#[derive(Debug)]
pub(crate) struct Kernel {
    symbols: Option<Arc<Kallsyms>>,
    image: Arc<Mapping>,
    text: u64,
    /// Address ranges of modules.
    modules: FxHashMap<String, u64>,
    mappings: FxHashMap<String, Arc<Mapping>>,
    known: FxHashMap<u64, KernelPlace>,
}

impl Kernel {
    /// Makes one of the contents of /proc/kallsyms; None = nothing.
    pub(crate) fn new(symbols: Option<Arc<Kallsyms>>) -> Self {
        let modules = if symbols.is_some() { systape_symbols::modules() } else { Vec::new() };
        let modules = modules.into_iter().map(|module| (module.name, module.address)).collect();
        Self::with_modules(symbols, modules)
    }

    /// Makes one as [`Self::new`] does, with modules at these addresses.
    pub(super) fn with_modules(symbols: Option<Arc<Kallsyms>>, modules: FxHashMap<String, u64>) -> Self {
        let build_id = systape_symbols::kernel_build_id().unwrap_or_default();
        let image = Mapping { kind: MappingKind::Kernel, build_id, path: b"[kernel]".to_vec(), upid: 0 };
        let text = symbols.as_ref().and_then(|s| s.text_base()).unwrap_or(0);
        Self {
            symbols,
            image: Arc::new(image),
            text,
            modules,
            mappings: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    /// The place of `address`.
    pub(crate) fn place(&mut self, address: u64) -> KernelPlace {
        if let Some(place) = self.known.get(&address) {
            return place.clone();
        }
        let place = self.find(address);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, place.clone());
        place
    }

    fn find(&mut self, address: u64) -> KernelPlace {
        let image = |offset| KernelPlace { mapping: Arc::clone(&self.image), offset, tracing: false };
        let Some(symbols) = self.symbols.clone() else {
            // an address alone would tell where this kernel lies in memory, and nothing else
            return image(0);
        };
        // inside the function, although a return address may lie behind its last instruction
        let Some((name, within, module)) = symbols.lookup(address.saturating_sub(1)) else {
            return image(address.saturating_sub(self.text));
        };
        let within = within + 1;
        let tracing = TRACING.iter().any(|prefix| name.starts_with(prefix)) || module == Some("bpf");
        match module {
            None => KernelPlace { tracing, ..image(address.saturating_sub(self.text)) },
            Some("bpf") => {
                let mapping = self.mapping(MappingKind::Bpf, name, Vec::new);
                KernelPlace { mapping, offset: within, tracing }
            }
            Some(module) => {
                let base = self.modules.get(module).copied().unwrap_or(address - within);
                let mapping = self.mapping(MappingKind::Module, module, || {
                    systape_symbols::module_build_id(module).unwrap_or_default()
                });
                KernelPlace { mapping, offset: address.saturating_sub(base), tracing }
            }
        }
    }

    fn mapping(&mut self, kind: MappingKind, name: &str, build_id: impl FnOnce() -> Vec<u8>) -> Arc<Mapping> {
        if let Some(mapping) = self.mappings.get(name) {
            return Arc::clone(mapping);
        }
        let mapping = Arc::new(Mapping { kind, build_id: build_id(), path: name.as_bytes().to_vec(), upid: 0 });
        self.mappings.insert(name.to_owned(), Arc::clone(&mapping));
        mapping
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const TEXT: u64 = 0xffff_ffff_8100_0000;
    pub(in super::super) const MODULE: u64 = 0xffff_ffff_c000_0000;
    pub(in super::super) const PROGRAM: u64 = 0xffff_ffff_c100_0000;

    /// A kernel of a few functions, a module and a BPF program.
    pub(in super::super) fn kernel() -> Kernel {
        let functions = [
            (TEXT, "_text", ""),
            (TEXT, "_stext", ""),
            (TEXT + 0x1000, "bpf_get_stack_raw_tp", ""),
            (TEXT + 0x2000, "bpf_trace_run2", ""),
            (TEXT + 0x3000, "do_syscall_64", ""),
            (TEXT + 0x4000, "entry_SYSCALL_64", ""),
            (TEXT + 0x5000, "_etext", ""),
            (MODULE + 0x100, "fuse_read", "\t[fuse]"),
            (MODULE + 0x200, "fuse_write", "\t[fuse]"),
            (PROGRAM, "bpf_prog_0123_take_stack", "\t[bpf]"),
        ];
        let text: String = functions.iter().map(|(at, name, module)| format!("{at:x} T {name}{module}\n")).collect();
        let symbols = Kallsyms::parse(text.as_bytes()).unwrap();
        Kernel::with_modules(Some(Arc::new(symbols)), [("fuse".to_owned(), MODULE)].into_iter().collect())
    }

    #[test]
    fn offsets_count_from_the_start_of_what_holds_them() {
        let mut kernel = kernel();
        let mut place = |address| {
            let place = kernel.place(address);
            (place.mapping.kind, String::from_utf8(place.mapping.path.clone()).unwrap(), place.offset, place.tracing)
        };
        assert_eq!(place(TEXT + 0x3010), (MappingKind::Kernel, "[kernel]".into(), 0x3010, false));
        // both functions of the module count from its load address
        assert_eq!(place(MODULE + 0x110), (MappingKind::Module, "fuse".into(), 0x110, false));
        assert_eq!(place(MODULE + 0x210), (MappingKind::Module, "fuse".into(), 0x210, false));
        assert_eq!(place(PROGRAM + 0x20), (MappingKind::Bpf, "bpf_prog_0123_take_stack".into(), 0x20, true));
        assert!(place(TEXT + 0x1010).3);
        // a call that does not return may be a function's last instruction: the address is the next function's first
        assert_eq!(place(TEXT + 0x3000), (MappingKind::Kernel, "[kernel]".into(), 0x3000, true));
        assert_eq!(place(MODULE + 0x200), (MappingKind::Module, "fuse".into(), 0x200, false));
        // no function, and no kernel at all
        assert_eq!(place(TEXT + 0x9_0000).0, MappingKind::Kernel);
        assert_eq!(place(0).0, MappingKind::Kernel);
    }

    #[test]
    fn without_names_addresses_are_not_told() {
        let mut kernel = Kernel::with_modules(None, FxHashMap::default());
        let place = kernel.place(TEXT + 0x3010);
        assert_eq!((place.mapping.kind, place.offset, place.tracing), (MappingKind::Kernel, 0, false));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut kernel = kernel();
        (0..MAX_KNOWN as u64 + 10).for_each(|i| drop(kernel.place(TEXT + i)));
        assert!(kernel.known.len() <= MAX_KNOWN);
        assert!(Arc::ptr_eq(&kernel.place(MODULE + 0x110).mapping, &kernel.place(MODULE + 0x210).mapping));
    }
}

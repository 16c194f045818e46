//! Addresses in the kernel: which image, module or program they are in, and which are of the tracing itself.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{Mapping, MappingKind};
use systape_symbols::Kallsyms;

/// What the kernel runs between an event and our program: frames of it lead every stack.
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
/// Distinct addresses remembered.
const MAX_KNOWN: usize = 1 << 16;

/// Where an address lies.
#[derive(Clone, Debug)]
pub struct Place {
    /// The image.
    pub mapping: Arc<Mapping>,
    /// Where in it.
    pub offset: u64,
    /// It belongs to the tracing, not to what was traced.
    pub tracing: bool,
}

/// Finds places.
#[derive(Debug)]
pub struct Kernel {
    symbols: Option<Arc<Kallsyms>>,
    image: Arc<Mapping>,
    text: u64,
    /// Where modules lie.
    modules: FxHashMap<String, u64>,
    mappings: FxHashMap<String, Arc<Mapping>>,
    known: FxHashMap<u64, Place>,
}

impl Kernel {
    /// Works with what /proc/kallsyms shows; None = nothing.
    pub fn new(symbols: Option<Arc<Kallsyms>>) -> Self {
        let build_id = systape_symbols::kernel_build_id().unwrap_or_default();
        let image = Mapping { kind: MappingKind::Kernel, build_id, path: b"[kernel]".to_vec(), upid: 0 };
        let text = symbols.as_ref().and_then(|s| s.text_base()).unwrap_or(0);
        let modules = if symbols.is_some() { systape_symbols::modules() } else { Vec::new() };
        let modules = modules.into_iter().map(|module| (module.name, module.address)).collect();
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
    pub fn place(&mut self, address: u64) -> Place {
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

    fn find(&mut self, address: u64) -> Place {
        let image = |offset| Place { mapping: Arc::clone(&self.image), offset, tracing: false };
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
            None => Place { tracing, ..image(address.saturating_sub(self.text)) },
            Some("bpf") => {
                let mapping = self.mapping(MappingKind::Bpf, name, Vec::new);
                Place { mapping, offset: within, tracing }
            }
            Some(module) => {
                let base = self.modules.get(module).copied().unwrap_or(address - within);
                let mapping = self.mapping(MappingKind::Module, module, || {
                    systape_symbols::module_build_id(module).unwrap_or_default()
                });
                Place { mapping, offset: address.saturating_sub(base), tracing }
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

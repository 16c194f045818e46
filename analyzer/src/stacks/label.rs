//! What frames are called.

use systape_format::model::{FRAME_SIGNAL, Frame, Function, Mapping, MappingKind};

use super::names::Names;
use crate::render::words::escaped;

/// One function on a stack, or what stands for missing ones; escaped for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Name, `[0x1a2b]`, `[signal]`, `[stack ends: …]`.
    pub name: String,
    /// Path or name of what it is in; empty for what stands for missing frames.
    pub module: String,
    /// Of the kernel.
    pub kernel: bool,
    /// Inlined into its caller.
    pub inlined: bool,
}

impl Label {
    /// What stands for frames that are not there.
    pub fn mark(name: String) -> Self {
        Self { name, module: String::new(), kernel: false, inlined: false }
    }

    /// As perf prints it within a tree.
    pub fn in_tree(&self) -> String {
        if self.inlined {
            format!("{} (inlined)", self.name)
        } else if self.unnamed() {
            format!("{} ({})", self.name, self.module)
        } else {
            self.name.clone()
        }
    }

    /// As perf prints it in a list: `main (/bin/app)`.
    pub fn in_list(&self) -> String {
        match (self.inlined, self.module.is_empty()) {
            (true, _) => format!("{} (inlined)", self.name),
            (false, true) => self.name.clone(),
            (false, false) => format!("{} ({})", self.name, self.module),
        }
    }

    /// perf's `Shared Object`: the file without its directories.
    pub fn object(&self) -> &str {
        match self.module.rsplit_once('/') {
            _ if self.module.is_empty() => "-",
            Some((_, file)) if !file.is_empty() => file,
            _ => &self.module,
        }
    }

    /// perf's letter before a symbol.
    pub fn letter(&self) -> &'static str {
        if self.kernel { "[k]" } else { "[.]" }
    }

    fn unnamed(&self) -> bool {
        !self.module.is_empty() && self.name.starts_with("[0x")
    }
}

/// Whether code there runs in the kernel.
pub fn in_kernel(mapping: &Mapping) -> bool {
    matches!(mapping.kind, MappingKind::Kernel | MappingKind::Module | MappingKind::Bpf)
}

/// Path or name of a mapping, not escaped.
pub fn module(mapping: &Mapping) -> &[u8] {
    if !mapping.path.is_empty() {
        return &mapping.path;
    }
    match mapping.kind {
        MappingKind::Kernel => b"[kernel]",
        MappingKind::Module => b"[module]",
        MappingKind::Vdso => b"[vdso]",
        MappingKind::Jit => b"[jit]",
        MappingKind::Bpf => b"[bpf]",
        MappingKind::Unknown | MappingKind::Elf => b"[unknown]",
    }
}

/// A function of a frame, not escaped.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// None = no name.
    pub function: Option<&'a Function>,
    /// Inlined into the next one.
    pub inlined: bool,
}

/// The functions of a frame, the innermost inlined one first; one without a name if there is none.
pub fn functions<'a>(
    names: &'a Names,
    mapping: Option<u32>,
    frame: &Frame,
) -> impl Iterator<Item = Named<'a>> + use<'a> {
    let functions = names.at(mapping, frame);
    let last = functions.len().saturating_sub(1);
    let nameless = functions.is_empty().then_some(Named { function: None, inlined: false });
    let named = functions.iter().enumerate();
    let named = named.map(move |(at, function)| Named { function: Some(function), inlined: at < last });
    nameless.into_iter().chain(named)
}

/// The label of one of the functions of a frame.
pub fn label(mapping: &Mapping, frame: &Frame, named: Named<'_>) -> Label {
    let name = match named.function.filter(|function| !function.name.is_empty()) {
        Some(function) => escaped(&function.name),
        None if frame.flags & FRAME_SIGNAL != 0 => "[signal]".to_owned(),
        None => format!("[{:#x}]", frame.offset),
    };
    Label { name, module: escaped(module(mapping)), kernel: in_kernel(mapping), inlined: named.inlined }
}

//! The vDSO: code that the kernel maps into every process. All 64-bit processes of a machine have the same one, so ours
//! is enough.

use std::slice;

use systape_format::model::{Mapping, MappingKind};

use super::proc_maps;
use crate::foreign;

/// Most bytes copied; it has two pages or so.
const BYTES_MAX: u64 = 1 << 20;

/// A copy of the vDSO of this process, as it is mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vdso {
    /// Bytes of the image; empty = there is none.
    pub image: Vec<u8>,
    /// The tape's mapping for it.
    pub mapping: Mapping,
}

impl Vdso {
    /// Copies it.
    pub(crate) fn of_this_process() -> Self {
        let image = image().unwrap_or_default();
        let build_id = foreign::build_id_of_own(&image);
        Self { image, mapping: Mapping { kind: MappingKind::Vdso, build_id, path: b"[vdso]".to_vec(), upid: 0 } }
    }
}

fn image() -> Option<Vec<u8>> {
    // SAFETY: getauxval reads a table of this process that does not change.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let maps = proc_maps::read(std::process::id()).ok()?;
    let found = maps.into_iter().find(|m| m.path == b"[vdso]" && m.start == start)?;
    let length = found.end.saturating_sub(found.start).min(BYTES_MAX) as usize;
    // SAFETY: the kernel has mapped these bytes, readable, for as long as this process lives, and nothing writes to them.
    Some(unsafe { slice::from_raw_parts(start as *const u8, length) }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_elf_image_with_a_build_id() {
        let vdso = Vdso::of_this_process();
        assert!(vdso.image.starts_with(b"\x7fELF"));
        assert_eq!(vdso.mapping.build_id.len(), 20);
    }
}

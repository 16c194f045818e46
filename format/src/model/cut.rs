//! Limits on values that may be long.

use super::Mapping;

/// A captured value, argv or path longer than this is cut and marked truncated: no single value can fill a block.
pub const MAX_VALUE: usize = 1 << 20;
/// Bytes kept of a mapping's path and build id, and of a source file's name: the kernel's PATH_MAX.
pub const MAX_PATH: usize = 4096;

/// Cuts a mapping to the format's limits.
pub(crate) fn cut_mapping(mapping: &Mapping) -> Mapping {
    let head = |bytes: &[u8]| bytes.get(..MAX_PATH).unwrap_or(bytes).to_vec();
    Mapping { build_id: head(&mapping.build_id), path: head(&mapping.path), ..*mapping }
}

//! The machine that is recorded: the one that `record` is compiled for.

use systape_abi::Abi;

/// ABI of its calls.
pub(crate) const ABI: Abi = if cfg!(target_arch = "aarch64") { Abi::Aarch64 } else { Abi::X86_64 };
/// ABI of the second table of calls, of 32-bit programs. On arm64 there are none: the programs count those calls as lost (ABI_NONE).
pub(crate) const ABI_32: Abi = Abi::I386;
/// Where Debian has libraries of the machine.
pub(crate) const LIBRARIES: [&str; 2] = if cfg!(target_arch = "aarch64") {
    ["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
} else {
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"]
};
/// The C library of Alpine.
pub(crate) const MUSL: &str =
    if cfg!(target_arch = "aarch64") { "ld-musl-aarch64.so.1" } else { "ld-musl-x86_64.so.1" };
/// Whether the programs know an interrupt by the kernel's entry code. On arm64 the task says that it runs one.
pub(crate) const KNOWS_ENTRIES: bool = cfg!(not(target_arch = "aarch64"));

//! What a frame without rules shows on the machine whose stacks are unwound.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(target_arch = "aarch64"))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::CODE_BYTES;
#[cfg(not(target_arch = "aarch64"))]
pub use x86_64::CODE_BYTES;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{ends_with_call, follow, interrupted, is_new_thread, leaf_return};
#[cfg(not(target_arch = "aarch64"))]
pub(crate) use x86_64::{ends_with_call, follow, interrupted, is_new_thread, leaf_return};

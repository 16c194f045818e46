//! Numbers of the machine whose stacks are unwound: the one that this is compiled for.
//!
//! A recording is unwound where it was made. Where none is made (WebAssembly) it is x86-64, which is then used by nobody.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(target_arch = "aarch64"))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::REGISTERS;
#[cfg(not(target_arch = "aarch64"))]
pub use x86_64::REGISTERS;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    CALLEE_SAVED, ELF_MACHINE, FP, IP, LAST_BREG, LINK, MAX_RULES, NAME, PAGE, RETURN_ADDRESS, SIGNAL_FRAME, SP, strip,
};
#[cfg(not(target_arch = "aarch64"))]
pub(crate) use x86_64::{
    CALLEE_SAVED, ELF_MACHINE, FP, IP, LAST_BREG, LINK, MAX_RULES, NAME, PAGE, RETURN_ADDRESS, SIGNAL_FRAME, SP, strip,
};

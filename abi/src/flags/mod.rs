//! Values with names: sets of flags and enumerations, and how they are written.
//!
//! One macro makes the tables, because a name and its value then stand in one place: `[general: A = 1, B = 2]` has values that tests
//! compare with that module of `linux-raw-sys`, `[uapi "linux/x.h": A = 1]` one that this crate lacks or that differs between x86 and
//! arm64 (`linux-raw-sys` follows the machine this is compiled for, a tape does not), with the header it was read in.

mod files;
mod format;
mod ioctls;
mod memory;
mod misc;
mod mounts;
mod net;
mod parse;
mod process;
mod time;

use crate::uapi::{AF_INET, AF_INET6, AF_NETLINK};

pub(crate) use files::*;
pub(crate) use ioctls::*;
pub(crate) use memory::*;
pub(crate) use misc::*;
pub(crate) use mounts::*;
pub(crate) use net::*;
pub(crate) use process::*;
pub(crate) use time::*;

/// The names of the values one argument takes.
#[derive(Debug)]
#[non_exhaustive]
pub struct FlagSet {
    /// `(value, name)`. Names of several bits come before those of their parts; the first name of a value wins.
    pub bits: &'static [(u64, &'static str)],
    /// How a value is made of them.
    pub how: FlagForm,
    /// What perf leaves off the names, e.g. `O_`; may be empty.
    pub prefix: &'static str,
    /// Whether the kernel reads all 64 bits of the register. Otherwise the argument is an `int` and the upper half, which may hold
    /// anything, is not looked at.
    pub wide: bool,
}

/// How a value is made of the entries of a [`FlagSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlagForm {
    /// A union of entries; an entry of value 0 is what an empty union is called.
    Bits,
    /// Exactly one entry.
    Enum,
    /// One entry within `mask`, and a union of entries outside it.
    Mixed {
        /// The bits that hold the single entry.
        mask: u64,
    },
    /// `clone`: a signal number in the low byte, and a union of entries.
    Clone,
    /// A union of entries, with file permissions in the low nine bits.
    ModeAndBits,
    /// One entry, or the parts of an `_IOC` number.
    Ioctl,
}

/// How names are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlagStyle {
    /// Keep the prefix, as strace does: `O_RDONLY|O_CLOEXEC`. Otherwise perf's `RDONLY|CLOEXEC`.
    pub prefix: bool,
}

impl FlagStyle {
    /// Names without prefix, as perf trace prints them.
    pub const PERF: Self = Self { prefix: false };
    /// Full names, as strace and our JSON print them.
    pub const FULL: Self = Self { prefix: true };
}

/// The names of clock ids, for an argument of kind [`ArgKind::ClockId`](crate::ArgKind::ClockId).
pub fn clock_flags() -> &'static FlagSet {
    &CLOCK
}

/// The names of the flags of `open`.
pub fn open_flags(abi: crate::Abi) -> &'static FlagSet {
    if abi == crate::Abi::Aarch64 { &OPEN_ARM64 } else { &OPEN }
}

/// The names of the protocols of one address `family`, for an argument of kind [`ArgKind::SockProto`](crate::ArgKind::SockProto);
/// `None` for a family whose protocols have no names here (0, the usual one, is best printed as a number then).
pub fn protocol_flags(family: u64) -> Option<&'static FlagSet> {
    match u16::try_from(family as u32) {
        Ok(AF_INET | AF_INET6) => Some(&IPPROTO),
        Ok(AF_NETLINK) => Some(&NETLINK),
        _ => None,
    }
}

/// The names of the options of one socket `level`, for an argument of kind [`ArgKind::SockOpt`](crate::ArgKind::SockOpt); `None`
/// for a level whose options this version does not name.
pub fn sockopt_flags(level: u64) -> Option<&'static FlagSet> {
    match level as u32 {
        0 => Some(&IP),
        1 => Some(&SO),
        6 => Some(&TCP),
        41 => Some(&IPV6),
        _ => None,
    }
}

/// A slice of `(value, name)` from sections, see the head of this module.
macro_rules! pairs {
    ([$($done:tt)*]) => { &[$($done)*] };
    ([$($done:tt)*] [uapi $header:literal: $($name:ident = $value:literal),+ $(,)?] $($rest:tt)*) => {
        $crate::flags::pairs!([$($done)* $(($value, stringify!($name)),)+] $($rest)*)
    };
    ([$($done:tt)*] [$module:ident: $($name:ident = $value:literal),+ $(,)?] $($rest:tt)*) => {
        $crate::flags::pairs!([$($done)* $(($crate::uapi::compared!($module::$name = $value), stringify!($name)),)+] $($rest)*)
    };
}

/// Statics of type [`FlagSet`]: `NAME: how, "PREFIX_"; sections`, with `wide` after `how` for arguments of 64 bits.
macro_rules! flag_sets {
    ($($(#[$doc:meta])* $name:ident: $how:expr $(, $wide:ident)?, $prefix:literal; $([$($section:tt)*])+)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: $crate::flags::FlagSet = $crate::flags::FlagSet {
                bits: $crate::flags::pairs!([] $([$($section)*])+),
                how: $how,
                prefix: $prefix,
                wide: $crate::flags::flag_sets!(@wide $($wide)?),
            };
        )*
        /// Every set of this file, for the checks all sets must pass.
        #[cfg(test)]
        pub(super) static ALL: &[(&str, &$crate::flags::FlagSet)] = &[$((stringify!($name), &$name)),*];
    };
    (@wide) => { false };
    (@wide wide) => { true };
}
use {flag_sets, pairs};

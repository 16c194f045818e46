//! Facts of the machine and its tasks, read from /proc, /sys and /etc, each read with a bound, and with a deadline where it may
//! hang. Nothing is loaded or traced here.

pub(crate) mod addresses;
pub(crate) mod bounded;
pub(crate) mod called;
pub(crate) mod cgroup_limits;
pub(crate) mod cgroups;
pub(crate) mod containers;
pub(crate) mod devices;
pub(crate) mod entries;
pub(crate) mod environ;
pub(crate) mod kallsyms;
pub(crate) mod kin;
pub(crate) mod limits;
pub mod lock_names;
pub(crate) mod mounts;
pub(crate) mod patient;
pub(crate) mod system;

//! What the end-to-end tests share. They run `record` and `analyze` as a user would and depend on no crate of systape:
//! the truth comes from outside, from workloads that make a known number of calls, from strace and from /proc.
//!
//! The binaries are those in `SYSTAPE_BIN_DIR`, or in the target directory of the test itself; the tests do not build
//! them (`scripts/test.sh` does). A test that loads BPF programs needs root: without, it prints `SKIPPED: needs root`
//! and passes, unless `SYSTAPE_REQUIRE_BPF=1` is set; as root it never skips.

pub mod blocks;
pub mod call;
pub mod damage;
pub mod disk;
pub mod elf;
pub mod facts;
pub mod lab;
pub mod more;
pub mod probes;
pub mod rows;
pub mod sockets;
pub mod stacks;
pub mod strace;

pub use call::Call;
pub use lab::{Background, Lab, Run};

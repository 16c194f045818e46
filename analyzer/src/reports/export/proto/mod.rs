//! Messages of other programs' files, generated from analyzer/proto (tests/current.rs).

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    reason = "generated; a whole trace is only read by tests"
)]

pub(crate) mod perfetto {
    include!("perfetto.rs");
}
pub(crate) mod profile {
    include!("profile.rs");
}

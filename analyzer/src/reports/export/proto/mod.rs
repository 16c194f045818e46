//! Messages of other programs' files, generated from analyzer/proto (tests/current.rs).

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]

pub(crate) mod perfetto {
    include!("perfetto.rs");
}
pub(crate) mod profile {
    include!("profile.rs");
}

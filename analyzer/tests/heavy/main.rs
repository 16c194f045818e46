//! Tests that ask very many questions, of the library with the release profile: without optimization they take ten minutes instead of two.
//! They are run where they are named (`scripts/test.sh`, `cargo test --release -p systape-analyzer --test heavy`), `cargo test` leaves them out.

#[path = "../common/mod.rs"]
mod common;

mod cut;
mod losses;
mod misses;
#[cfg(target_os = "linux")]
mod mutated;
mod repair;
mod spill;

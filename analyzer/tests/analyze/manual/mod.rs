//! The manual: its sentences are short and plain, its links lead somewhere, the commands that it shows are taken by the programs, and what
//! stands below them is what `analyze` prints. `UPDATE_GOLDEN=1 cargo test --workspace --test analyze manual::` prints the answers anew.
//! Commands of `record` are tried in recorder/tests/manual.rs.

mod answers;
mod links;
mod pages;
mod prose;
mod reference;

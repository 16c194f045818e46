//! Rows and tapes made by code: the same in each run, and as large as one wants. Nothing is measured here; `bench` and the
//! benches of single layers (`benches/`) do that.

pub mod synth;

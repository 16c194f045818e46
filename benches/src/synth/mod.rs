//! Made-up recordings, in the shape in which a recorder has them before it fills segments.
//!
//! [`dd`] is one thread that reads and writes a byte in turn. [`SynthWorld`] is a machine: processes come and go, most calls are short, some
//! wait for seconds, somebody is killed now and then. [`tape`] writes a world down.

mod dd;
mod names;
mod people;
mod rng;
mod sleepers;
pub mod tape;
mod window;
mod world;

pub use dd::dd;
pub use window::{Row, SynthWindow};
pub use world::{Plan, SynthWorld};

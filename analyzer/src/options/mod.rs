//! Options that several reports take as their own.

pub mod sort;
pub mod stacks;

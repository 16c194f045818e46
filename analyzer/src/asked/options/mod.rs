//! Options that several reports take as their own.

pub mod stacks;

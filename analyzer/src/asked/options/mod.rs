//! Options that several reports take as their own.

pub(crate) mod idle;
pub(crate) mod stacks;

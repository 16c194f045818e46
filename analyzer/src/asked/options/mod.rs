//! Options that several reports take as their own.

pub(crate) mod stacks;

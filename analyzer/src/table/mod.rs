//! The middle: which rows count ([`filter`]), reading segments ([`scan`], [`load`]), sums by keys ([`group`]), what is missing
//! ([`loss`]), all of them bound to one tape ([`question`]).

pub mod call_files;
pub mod calls;
pub mod families;
pub mod filter;
pub mod group;
pub mod load;
pub mod loss;
pub mod picked;
pub mod question;
pub mod scan;
pub mod stream;

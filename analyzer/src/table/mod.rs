//! The middle: which rows count ([`filter`]), what calls moved ([`moved`]), reading segments ([`scan`], [`load`]), sums by keys ([`group`]), what is missing
//! ([`loss`]), all of them bound to one tape ([`question`]).

pub(crate) mod call_files;
pub(crate) mod calls;
pub(crate) mod empty_path;
pub(crate) mod families;
pub(crate) mod filter;
pub(crate) mod fired;
pub(crate) mod group;
pub(crate) mod in_cgroup;
pub(crate) mod kin;
pub(crate) mod load;
pub(crate) mod loss;
pub(crate) mod moved;
pub(crate) mod picked;
pub(crate) mod question;
pub(crate) mod scan;
pub(crate) mod stream;

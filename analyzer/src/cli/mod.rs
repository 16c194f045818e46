//! From a command line to an answer: which view is meant ([`parse`], [`views`]), then running it ([`run`]).

pub(crate) mod answer;
pub(crate) mod beside;
pub(crate) mod card;
pub(crate) mod follow;
pub(crate) mod generate;
pub(crate) mod habits;
#[cfg(unix)]
pub(crate) mod mcp;
pub(crate) mod nothing;
#[cfg(unix)]
pub(crate) mod open;
pub(crate) mod operands;
pub(crate) mod parse;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod several;
pub(crate) mod views;

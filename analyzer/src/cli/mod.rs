//! From a command line to an answer: which view is meant ([`parse`], [`views`]), then running it ([`run`]).

pub mod generate;
pub mod habits;
pub mod nothing;
pub mod operands;
pub mod parse;
pub mod run;
pub mod sandbox;
pub mod views;

//! The work behind `analyze`: read a tape, answer a question about it as text, JSON or CSV.
//!
//! Storeys, imports only point down (tests/storeys.rs): values ([`num`], [`words`], [`clock`], [`open`] ...); the table in the middle:
//! [`filter`] (which rows count), [`scan`] and [`load`] (reading segments), [`loss`] (what is missing), [`question`] (all of them, bound to
//! one tape), [`group`] (sums by keys), [`stream`] (a listing in order with bounded memory); [`render`] (values as text, JSON, CSV); state machines: [`processes`],
//! [`signals`], [`runs`], [`net`], [`block`], [`paths`], [`stacks`], [`summary`]; [`lines`] and [`events`] (rows of the listing); what was asked: [`args`]
//! as typed, [`config`] settled, [`config::view`] what a view is; one file a report in [`reports`], with its [`config::view::View`]; [`views`]
//! lists them; [`habits`] (what is typed by habit) and [`cli`] read the command line, [`run`] opens the tape ([`spool`]: from a pipe) and calls one of them; [`nothing`] says why an answer is empty.
//!
//! Nothing of the machine `analyze` runs on is looked at (no /proc, /sys, locale, timezone): the same tape gives the same
//! bytes everywhere; [`sandbox`] gives up what is not needed for that. Recording, and the layout of tapes, are left to `systape-format` and the recorder.

#![allow(unreachable_pub, reason = "a program: its tests are the only other crate that names anything here")]

pub mod args;
pub mod block;
pub mod call_files;
pub mod calls;
pub mod cli;
pub mod clock;
pub mod config;
pub mod devices;
pub mod events;
pub mod families;
pub mod filter;
pub mod generate;
pub mod glob;
pub mod group;
pub mod habits;
pub mod lines;
pub mod load;
pub mod loss;
pub mod net;
pub mod nothing;
pub mod num;
pub mod open;
pub mod operands;
pub mod options;
pub mod output;
pub mod paths;
pub mod picked;
pub mod processes;
pub mod progress;
pub mod question;
pub mod render;
pub mod reports;
pub mod run;
pub mod runs;
pub mod sandbox;
pub mod say;
pub mod scan;
pub mod signals;
pub mod sort;
pub mod spool;
pub mod stacks;
pub mod stream;
pub mod summary;
pub mod timespec;
pub mod views;
pub mod words;

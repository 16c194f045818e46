//! Tests of `analyze` and of its library on tapes: one program, so that it is compiled and linked once and its tests run beside each other.
//! Those that need the release profile are another program (`heavy`, beside this one), as is `current.rs`, which needs no `analyze`.

#[path = "../common/mod.rs"]
mod common;
mod sources;

mod across;
mod arrow;
mod asleep;
mod block_net;
mod clock;
mod color;
mod completions;
#[cfg(target_os = "linux")]
mod debuginfod;
mod diff;
mod expect;
mod filters;
mod firefox;
mod first_sentences;
mod follow;
mod frames;
mod gaps;
mod golden;
mod habits;
mod held;
mod import;
mod ledger;
mod life;
mod lines;
mod list;
mod looks;
mod machines;
mod manual;
mod marks;
mod mcp;
mod messages;
mod moved;
mod names;
mod net_udp;
mod nothing;
mod open;
mod options;
mod plain;
mod plain_words;
mod random;
mod rank;
mod rate;
mod report;
mod report_browser;
#[cfg(target_os = "linux")]
mod sandbox;
mod sched;
mod schema;
mod several;
mod spool;
mod stacks;
mod storeys;
mod tables;
mod tapes;
mod terminal;
mod top;
mod tui;
mod why;

//! Connections, put together from changes of sockets' states, and what was sent by UDP, which has none.

pub mod accepts;
pub mod connection;
pub mod counts;
pub mod tracker;
pub mod udp;
pub mod words;

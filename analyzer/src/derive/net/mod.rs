//! Connections, put together from changes of sockets' states.

pub mod accepts;
pub mod connection;
pub mod tracker;
pub mod words;

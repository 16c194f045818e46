//! Connections, put together from changes of sockets' states.

pub mod connection;
pub mod line;
pub mod tracker;
pub mod words;

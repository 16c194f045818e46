//! Connections, put together from changes of sockets' states.

pub(crate) mod accepts;
pub(crate) mod connection;
pub(crate) mod counts;
pub(crate) mod tracker;
pub(crate) mod words;

//! Connections, put together from changes of sockets' states, and what was sent by UDP, which has none.

pub(crate) mod accepts;
pub(crate) mod connection;
pub(crate) mod counts;
pub(crate) mod tracker;
pub(crate) mod udp;
pub(crate) mod words;

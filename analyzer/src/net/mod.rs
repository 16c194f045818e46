//! Connections put together from changes of sockets' states.

//! Open files of processes: which file each descriptor is, now and a moment ago, and the names of files and sockets.

pub(crate) mod fds;
pub(crate) mod names;
pub(crate) mod sockets;

//! What calls do with the contents of files: which open, read and write, and which argument is the file.

use super::SyscallDesc;

/// What a call does with the contents of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentIo {
    /// Nothing, or only its name, attributes and state.
    #[default]
    None,
    /// Opens the file that its path, or its handle, names.
    Open,
    /// Reads from the descriptor in this argument; returns how many bytes.
    Read(u8),
    /// Writes to the descriptor in this argument; returns how many bytes.
    Write(u8),
    /// Reads from the one and writes to the other; returns how many bytes.
    Copy {
        /// Argument that is read from.
        from: u8,
        /// Argument that is written to.
        to: u8,
    },
    /// Takes messages from the socket in this argument; returns how many messages, not bytes.
    ReadMessages(u8),
    /// Sends messages through the socket in this argument; returns how many messages, not bytes.
    WriteMessages(u8),
    /// Returns a number of bytes that are no file's contents, or of which it is not known which way they went.
    Other,
}

impl ContentIo {
    /// Whether a successful call moves bytes.
    pub fn moves_bytes(self) -> bool {
        !matches!(self, Self::None | Self::Open)
    }

    /// Whether a successful call returns how many messages it moved, so that the number of bytes is not known.
    pub fn counts_messages(self) -> bool {
        matches!(self, Self::ReadMessages(_) | Self::WriteMessages(_))
    }

    /// The argument that is read from.
    pub fn reads(self) -> Option<usize> {
        match self {
            Self::Read(from) | Self::ReadMessages(from) | Self::Copy { from, .. } => Some(from.into()),
            _ => None,
        }
    }

    /// The argument that is written to.
    pub fn writes(self) -> Option<usize> {
        match self {
            Self::Write(to) | Self::WriteMessages(to) | Self::Copy { to, .. } => Some(to.into()),
            _ => None,
        }
    }
}

impl SyscallDesc {
    /// Whether the call takes away the name of a file.
    pub fn removes(&self) -> bool {
        matches!(self.name, "unlink" | "unlinkat")
    }

    /// What the call does with the contents of files.
    pub fn io(&self) -> ContentIo {
        match self.name {
            "open" | "openat" | "openat2" | "creat" | "open_by_handle_at" => ContentIo::Open,
            "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recv" | "recvfrom" | "recvmsg" => ContentIo::Read(0),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "send" | "sendto" | "sendmsg" => {
                ContentIo::Write(0)
            }
            "recvmmsg" | "recvmmsg_time64" => ContentIo::ReadMessages(0),
            "sendmmsg" => ContentIo::WriteMessages(0),
            "sendfile" | "sendfile64" => ContentIo::Copy { from: 1, to: 0 },
            "splice" | "copy_file_range" => ContentIo::Copy { from: 0, to: 2 },
            "tee" => ContentIo::Copy { from: 0, to: 1 },
            "vmsplice" | "process_vm_readv" | "process_vm_writev" | "getrandom" | "mq_timedreceive" | "msgrcv"
            | "getdents64" => ContentIo::Other,
            _ => ContentIo::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArgKind, every};
    use super::*;

    #[test]
    fn what_is_read_and_written_is_a_descriptor() {
        let mut found = 0;
        for desc in every() {
            let io = desc.io();
            for at in [io.reads(), io.writes()].into_iter().flatten() {
                assert!(matches!(desc.args[at].kind, ArgKind::Fd), "{}: argument {at}", desc.name);
                // a tape names the first two
                assert!(desc.fd_args().contains(&Some(at)), "{}: argument {at}", desc.name);
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn bytes_of_a_call_that_opens_are_a_descriptor() {
        let opens = || every().filter(|desc| desc.io() == ContentIo::Open);
        assert!(opens().all(|desc| desc.ret == super::super::RetKind::Fd));
        assert!(opens().all(|desc| desc.fd_args()[1].is_none()), "the tape has what was opened in that place");
        assert!(!ContentIo::Open.moves_bytes() && ContentIo::Other.moves_bytes() && !ContentIo::None.moves_bytes());
    }

    #[test]
    fn calls_for_several_messages_return_their_number() {
        let many: Vec<_> = every().filter(|desc| desc.io().counts_messages()).map(|desc| desc.name).collect();
        assert!(
            many.contains(&"recvmmsg") && many.contains(&"recvmmsg_time64") && many.contains(&"sendmmsg"),
            "{many:?}"
        );
        assert!(many.iter().all(|name| name.contains("mmsg")), "{many:?}");
    }
}

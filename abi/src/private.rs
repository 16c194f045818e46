//! Class of captured user memory, for redaction.

use crate::uapi::AF_UNIX;
use crate::{Abi, ArgKind, describe};

/// Number of a captured value that is no argument's: what was at the futex that a call waits for.
pub const FUTEX_WORDS: u8 = 6;

/// The class of the captured value of argument `arg` of a call, as schemas/trace.capnp names classes: `path`, `string`,
/// `command`, `address`, or `none` for structures with only numbers.
///
/// A value that looks like a path is one: the address of a local socket, and any string with a slash in it. So is a
/// value of an unknown call: its contents are not known, so every level takes it out.
pub fn captured_class(abi: Abi, nr: u32, arg: u8, bytes: &[u8]) -> &'static str {
    let Some(desc) = describe(abi, nr) else { return "path" };
    if arg == FUTEX_WORDS && desc.args.iter().any(|arg| matches!(arg.kind, ArgKind::Futex)) {
        return "none";
    }
    let Some(desc) = desc.args.get(usize::from(arg)) else { return "path" };
    match desc.kind {
        ArgKind::Path | ArgKind::FileName => "path",
        ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } => match bytes.first_chunk::<2>() {
            Some(family) if u16::from_le_bytes(*family) != AF_UNIX => "address",
            _ => "path",
        },
        ArgKind::Argv | ArgKind::Envp => "command",
        ArgKind::OpenHow { .. } | ArgKind::CloneArgs { .. } | ArgKind::FdPair => "none",
        // only numbers, pointers of the program among them: of an epoll event, of a handler of signals
        ArgKind::In(_) | ArgKind::Out(_) | ArgKind::InOut(_) | ArgKind::Left(_) => "none",
        _ if bytes.contains(&b'/') => "path",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let class = |name: &str, arg, bytes: &[u8]| {
            captured_class(Abi::X86_64, crate::number(Abi::X86_64, name).unwrap(), arg, bytes)
        };
        assert_eq!(class("openat", 1, b"plain"), "path");
        assert_eq!(class("execve", 0, b"/bin/ls"), "path");
        // names of files are paths without a slash too
        assert_eq!(class("symlink", 0, b"target"), "path");
        assert_eq!(class("symlinkat", 0, b"target"), "path");
        assert_eq!(class("mount", 0, b"server:export"), "path");
        assert_eq!(class("mount", 2, b"ext4"), "string");
        assert_eq!(class("mq_open", 0, b"queue"), "path");
        assert_eq!(class("mq_unlink", 0, b"queue"), "path");
        assert_eq!(class("execve", 1, b"ls\0-l"), "command");
        assert_eq!(class("connect", 1, &[2, 0, 0, 80, 127, 0, 0, 1]), "address");
        assert_eq!(class("connect", 1, &[10, 0, 0, 80]), "address");
        assert_eq!(class("connect", 1, b"\x01\0/run/socket"), "path");
        assert_eq!(class("connect", 1, b"\x01"), "path");
        assert_eq!(class("memfd_create", 0, b"name"), "string");
        assert_eq!(class("memfd_create", 0, b"/a/name"), "path");
        assert_eq!(class("pipe2", 0, &[3, 0, 0, 0, 4, 0, 0, 0]), "none");
        assert_eq!(captured_class(Abi::X86_64, 100_000, 0, b"x"), "path");
        assert_eq!(class("openat", 9, b"x"), "path");
        assert_eq!((class("futex", FUTEX_WORDS, b"\x02/"), class("openat", FUTEX_WORDS, b"x")), ("none", "path"));
    }

    /// Every string argument other than paths. A string argument added to the tables must be added here too, after a
    /// check of its contents.
    #[rustfmt::skip]
    const STRINGS: [(&str, &str); 9] = [
        ("add_key", "_type _description"), ("request_key", "_type _description _callout_info"),
        ("delete_module", "name_user"), ("init_module", "uargs"), ("finit_module", "uargs"), ("kexec_file_load", "cmdline_ptr"),
        ("memfd_create", "uname"), ("fsopen", "_fs_name"), ("fsconfig", "_key"),
    ];

    #[test]
    fn no_string_that_names_a_file_counts_as_a_plain_one() {
        for desc in crate::desc::every() {
            for arg in desc.args.iter().filter(|arg| matches!(arg.kind, ArgKind::Str)) {
                let listed =
                    STRINGS.iter().any(|(name, args)| *name == desc.name && args.split(' ').any(|a| a == arg.name));
                let attribute = desc.name.contains("xattr") && arg.name == "name";
                let file_system = desc.name == "mount" && arg.name == "type";
                assert!(
                    listed || attribute || file_system,
                    "{}: {} is a string: does it name a file?",
                    desc.name,
                    arg.name
                );
            }
        }
    }
}

//! The full path of what a call names: the directory it is relative to, and the name the program gave.
//!
//! Lines that show the directory itself ask [`cwds`]. [`names`] says what a call is on, as far as its row tells; a name that is relative to the current directory waits for [`dirs`], which
//! follows the current directories of all processes, and [`feed`] gives it what happened in order of time.
//!
//! Paths are put together as the program named them: `..` and symbolic links are not followed, and a directory that was renamed later
//! keeps the name it had. They are those of the process's own root. What is not certain is not known: after a loss, after `chroot`,
//! `unshare`, `setns` and `pivot_root`, after a `chdir` whose path is not on the tape, and while another thread changes the directory.

pub mod aliases;
pub mod cwds;
pub mod dirs;
pub mod feed;
pub mod history;
pub mod names;
pub mod pick;

/// Longer paths are not put together: a program that goes back and forth by `..` would make one without end.
const LONGEST: usize = 2 * 4096;

/// `name` in the directory `base`; None: there is no such path, because `base` is none, or it is too long.
///
/// A directory that is gone has ` (deleted)` behind its name; one outside of the process's root begins with no `/`.
pub fn join(base: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    if name.starts_with(b"/") {
        return Some(name.to_vec());
    }
    if !base.starts_with(b"/") || base.ends_with(b" (deleted)") || base.len() + name.len() > LONGEST {
        return None;
    }
    let mut name = name;
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
        while let Some(rest) = name.strip_prefix(b"/") {
            name = rest;
        }
    }
    if name.is_empty() || name == b"." {
        return Some(base.to_vec());
    }
    let between: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
    Some([base, between, name].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_together_as_they_are() {
        let join =
            |base: &str, name: &str| join(base.as_bytes(), name.as_bytes()).map(|p| String::from_utf8(p).unwrap());
        assert_eq!(join("/a/b", "c").unwrap(), "/a/b/c");
        assert_eq!(join("/", "c").unwrap(), "/c");
        assert_eq!(join("/a", "./c/./d").unwrap(), "/a/c/./d");
        assert_eq!(join("/a", ".//c").unwrap(), "/a/c");
        assert_eq!(join("/a", "../c").unwrap(), "/a/../c", "what .. is only the machine knew");
        assert_eq!(join("/a", "c\nd").unwrap(), "/a/c\nd");
        assert_eq!((join("/a", ".").unwrap(), join("/a", "./").unwrap()), ("/a".into(), "/a".into()));
        assert_eq!(join("/a (deleted)", "c"), None, "a file cannot be there");
        assert_eq!(join("/a (deleted)", "/c").unwrap(), "/c");
        assert_eq!(join("(unreachable)/a", "c"), None);
        assert_eq!(join("", "c"), None);
        assert_eq!(join("<redacted 3>", "c"), None);
        assert_eq!(join(&format!("/{}", "a/../".repeat(2000)), "a"), None, "without end");
    }
}

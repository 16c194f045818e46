//! What `--version` prints: the version, and of what it was built.

use std::sync::{LazyLock, OnceLock};

/// The commit of this source, where `git archive` has put it (.gitattributes): a clone has the placeholder.
const ARCHIVED: &str = "$Format:%H$";

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

static BUILT_FROM: OnceLock<&str> = OnceLock::new();

/// Says which commit this program was built from, before anything asks for its [`version`]: what the Makefile found, if it built it. It is
/// said by programs, since a library that had it would be compiled anew, and all above it, at each commit.
pub fn built_from(revision: Option<&'static str>) {
    if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
        // what was said first stays
        let _ = BUILT_FROM.set(revision);
    }
}

/// The version of all programs, the revision of its source if that is known, and what is built into it:
/// `0.1.0 (1a2b3c4d5e6f, static, x86_64)`.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let revision = BUILT_FROM.get().copied().or_else(|| archived(ARCHIVED));
        let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
        let parts: Vec<&str> = revision.into_iter().chain([linked, std::env::consts::ARCH]).collect();
        format!("{} ({})", env!("CARGO_PKG_VERSION"), parts.join(", "))
    });
    &VERSION
}

/// The first digits of the commit that `git archive` wrote; None = it did not.
fn archived(text: &str) -> Option<&str> {
    text.get(..DIGITS).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_what_is_built_in() {
        built_from(None);
        built_from(Some(""));
        built_from(Some("0123456789ab+"));
        built_from(Some("another"));
        let version = version();
        assert!(version.starts_with(concat!(env!("CARGO_PKG_VERSION"), " (0123456789ab+, ")), "{version}");
        assert!(version.ends_with(&format!(", {})", std::env::consts::ARCH)), "{version}");
    }

    #[test]
    fn an_archive_of_git_has_its_commit() {
        assert_eq!(archived("c0ef51daff00112233445566778899aabbccddee"), Some("c0ef51daff00"));
        assert_eq!(archived(concat!("$", "Format:%H$")), None, "a clone");
        assert_eq!(archived(""), None);
    }
}

//! What `--version` prints: the version, and of what it was built.

use std::sync::LazyLock;

/// The version of all programs, the revision of its source if a package was made of it, and what is built into it:
/// `0.1.0 (1a2b3c4d5e6f, static, x86_64)`.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        // set by the Makefile for packages: a program that is worked on is of no revision
        let revision = option_env!("SYSTAPE_REVISION").filter(|revision| !revision.is_empty());
        let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
        let parts: Vec<&str> = revision.into_iter().chain([linked, std::env::consts::ARCH]).collect();
        format!("{} ({})", env!("CARGO_PKG_VERSION"), parts.join(", "))
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_names_what_is_built_in() {
        let version = super::version();
        assert!(
            version.starts_with(env!("CARGO_PKG_VERSION")) && version.contains(std::env::consts::ARCH),
            "{version}"
        );
    }
}

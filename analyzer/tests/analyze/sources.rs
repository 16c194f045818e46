//! The sources of the workspace's crates, for tests that read them.

use std::path::{Path, PathBuf};

/// Whether an item exists only in tests.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    let tests =
        |a: &syn::Attribute| a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"));
    attributes.iter().any(tests)
}

/// The `.rs` files below `dir`.
fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The sources of a crate: each file's path below `src`, and its text. Tests in files of their own are left out.
pub(crate) fn source_files(name: &str) -> Vec<(PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let mut found = Vec::new();
    files(&src, &mut found);
    found.retain(|file| file.file_stem().is_some_and(|stem| stem != "tests"));
    found.sort();
    let read = |file: PathBuf| (file.strip_prefix(&src).unwrap().to_owned(), std::fs::read_to_string(&file).unwrap());
    found.into_iter().map(read).collect()
}

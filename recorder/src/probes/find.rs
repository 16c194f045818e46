//! Files with a function: a path as it is, a library where the loader looks, a program in PATH.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use systape_symbols::{find_function, open_regular};

use super::Place;
use super::spec::Spec;

/// Where libraries are, besides what /etc/ld.so.conf.d names.
const DIRS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib",
    "/usr/lib",
];

/// Most return instructions of a function that are probed: each takes the kernel a moment to attach.
const MOST_RETURNS: usize = 256;
/// The first byte of `push %rbp`, `push %rbx` and the like, with or without a prefix.
const PUSHES: std::ops::RangeInclusive<u8> = 0x50..=0x57;
/// `endbr64`: the kernel has to step through it, which costs ten times what the probe does.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// All places of the function.
///
/// # Errors
/// A sentence: there is no such file, or no such function in it.
pub(super) fn places(spec: &Spec) -> Result<Vec<Place>> {
    let files = files(&spec.file)?;
    let (mut places, mut why) = (Vec::new(), String::new());
    for file in files {
        match place(&file, &spec.function, spec.result.is_some()) {
            Ok(place) => places.push(place),
            Err(error) => why = format!("{}: {error}", file.display()),
        }
    }
    if places.is_empty() {
        bail!("{why}");
    }
    Ok(places)
}

fn place(path: &Path, function: &str, needs_returns: bool) -> Result<Place, String> {
    let file = open_regular(path).map_err(|error| error.to_string())?.ok_or("it is no regular file")?;
    let found = find_function(&file, function)?;
    // with the stack pointer as at the entry
    let pushes = match found.code.get(4..) {
        Some([first, ..]) if PUSHES.contains(first) => true,
        Some([0x41, second, ..]) => PUSHES.contains(second),
        _ => false,
    };
    let skip = if pushes && found.code.starts_with(&ENDBR) { 4 } else { 0 };
    let returns = if needs_returns && found.unwinds { found.returns } else { Vec::new() };
    if returns.len() > MOST_RETURNS {
        return Err(format!("{function} has {} return instructions, more than are followed", returns.len()));
    }
    if needs_returns && found.unwinds && returns.is_empty() {
        return Err(format!("{function} has no return instruction: leave '->' out"));
    }
    Ok(Place { file: path.to_owned(), offset: found.offset, entry: found.offset + skip, returns })
}

/// The files that `name` stands for, each once.
pub(super) fn files(name: &str) -> Result<Vec<PathBuf>> {
    if name.contains('/') {
        return match fs::canonicalize(name) {
            Ok(path) => Ok(vec![path]),
            Err(error) => bail!("{error}"),
        };
    }
    let in_path = env::var_os("PATH").unwrap_or_default();
    let dirs = DIRS.iter().map(PathBuf::from).chain(configured());
    let dirs: Vec<PathBuf> =
        if is_library(name) { dirs.collect() } else { env::split_paths(&in_path).chain(dirs).collect() };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for path in dirs.iter().map(|dir| dir.join(name)) {
        if let Some(meta) = fs::metadata(&path).ok().filter(fs::Metadata::is_file)
            && seen.insert((meta.dev(), meta.ino()))
        {
            found.push(path);
        }
        if !found.is_empty() && !is_library(name) {
            break;
        }
    }
    if found.is_empty() {
        let what = if is_library(name) { "library" } else { "program or library" };
        bail!("there is no {what} {name} where this machine looks for them: write its path");
    }
    Ok(found)
}

fn is_library(name: &str) -> bool {
    name.contains(".so")
}

/// Directories of /etc/ld.so.conf.d.
fn configured() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/etc/ld.so.conf.d") else { return Vec::new() };
    let texts = entries.flatten().take(256).filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::trim).map(PathBuf::from).collect::<Vec<_>>());
    lines.filter(|line| line.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_programs_are_found_once() {
        let libc = files("libc.so.6").unwrap();
        assert_eq!(libc.len(), 1, "{libc:?}: /lib is a link to /usr/lib, or there is one of them only");
        assert_eq!(files("sh").unwrap().len(), 1);
        let error = files("libnone.so.9").unwrap_err().to_string();
        assert!(error.contains("no library libnone.so.9"), "{error}");
        assert!(files("./none/none").unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn a_function_is_entered_behind_its_landing_pad() {
        let spec = Spec::parse("libc.so.6:getaddrinfo").unwrap();
        let [place] = &places(&spec).unwrap()[..] else { panic!("one") };
        assert!([0, 4].contains(&(place.entry - place.offset)), "{place:?}");
        let none = Spec::parse("libc.so.6:no_such_function").unwrap();
        assert!(places(&none).unwrap_err().to_string().contains("it has no function 'no_such_function'"));
    }
}

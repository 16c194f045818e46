//! Targets whose calls of library functions cannot be seen, because they use no library.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use systape_abi::plain;

use super::{Files, Probe};

/// Notes about those of the command and of the processes `ids` that are linked statically, if functions of libraries are to be recorded.
pub(crate) fn unseen(probes: &[Arc<Probe>], command: Option<&OsStr>, ids: &[u32], files: &mut Files) -> Vec<String> {
    let mut libraries: Vec<&str> = probes
        .iter()
        .flat_map(|probe| &probe.places)
        .filter_map(|place| place.binary.path.file_name()?.to_str())
        .filter(|name| name.contains(".so"))
        .collect();
    libraries.sort_unstable();
    libraries.dedup();
    if libraries.is_empty() {
        return Vec::new();
    }
    let of_command = command.and_then(|name| files.named(name.to_str()?).ok()?.into_iter().next().map(|one| one.path));
    let named = |id: &u32| {
        let path = PathBuf::from(format!("/proc/{id}/exe"));
        let name = fs::read_link(&path).unwrap_or_else(|_| path.clone());
        (path, format!("{} ({id})", name.display()))
    };
    let of_command = of_command.map(|path| (path.clone(), path.display().to_string()));
    let programs = of_command.into_iter().chain(ids.iter().map(named));
    let notes = programs.filter(|(path, _)| files.is_static(path)).map(|(_, name)| {
        format!(
            "{} is linked statically: it does not use {}, and calls of its own code are not seen",
            plain(&name),
            libraries.join(", ")
        )
    });
    notes.collect()
}

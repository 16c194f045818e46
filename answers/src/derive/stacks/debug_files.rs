//! Names that the tape lacks, from files with symbols, found by build id (`--debug-dir`, `--debuginfod`).

use std::path::PathBuf;

use anyhow::Result;
use systape_format::reader::Tape;

use super::names::Names;
use super::places::Places;
use crate::values::debuginfod;

/// The hidden first argument with which `analyze` starts itself to read untrusted files.
pub const READER: &str = "__read-symbols";

/// The names in `tape` and in files of `dirs`, which are read for `places` only.
///
/// # Errors
/// One of `dirs` is not a directory.
pub fn find(
    tape: &Tape,
    places: impl FnOnce() -> Places,
    dirs: &[PathBuf],
    findings: &mut Vec<String>,
) -> Result<Names> {
    let mut names = Names::read(tape, findings);
    if !dirs.is_empty() || debuginfod::is_on() {
        improve(&mut names, &places(), dirs)?;
    }
    Ok(names)
}

/// Improves `names` of `places` from files in `dirs` and those that servers have.
///
/// # Errors
/// One of `dirs` is not a directory.
#[cfg(target_os = "linux")]
fn improve(names: &mut Names, places: &Places, dirs: &[PathBuf]) -> Result<()> {
    use systape_format::model::MappingKind;
    use systape_symbols::{DebugDirs, File, Resolver};

    use crate::values::say::complain;
    use std::collections::BTreeMap;
    use std::os::fd::AsFd as _;
    use systape_events::values::words::escaped;

    if let Some(dir) = dirs.iter().find(|dir| !dir.is_dir()) {
        anyhow::bail!("--debug-dir {}: there is no such directory", dir.display());
    }
    // not current_exe: the file may have been replaced since
    let reader = vec!["/proc/self/exe".into(), READER.into()];
    let mut resolver = Resolver::new(reader, dirs.to_vec());
    let mut found = DebugDirs::new(dirs.to_vec());
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (mapping, offsets) in places.iter().filter(|(mapping, _)| mapping.kind == MappingKind::Elf) {
        let id = names.mapping(mapping);
        let mut wanted: Vec<u64> = offsets.iter().copied().filter(|offset| !names.has_lines(id, *offset)).collect();
        wanted.sort_unstable();
        if wanted.is_empty() {
            continue;
        }
        // a file that is there is better than one to wait for
        let there = if dirs.is_empty() { None } else { found.find(&mapping.build_id) };
        let fetched = there.map_or_else(|| debuginfod::file(&mapping.build_id), |path| Ok(Some(path)));
        let path = match fetched {
            Ok(Some(path)) => path,
            Ok(None) => continue,
            Err(why) => {
                failures.entry(why).or_default().push(escaped(&mapping.path));
                continue;
            }
        };
        let answer = std::fs::File::open(&path).map_err(|error| error.to_string()).and_then(|file| {
            let file = File { fd: file.as_fd(), path: &path, build_id: &mapping.build_id };
            resolver.look_up(&file, &wanted)
        });
        match answer {
            Ok(functions) => {
                let answers = wanted.iter().zip(functions);
                answers.for_each(|(offset, functions)| names.improve(mapping, *offset, functions));
            }
            Err(why) => complain(&format!("no names from {} for {}: {why}", path.display(), escaped(&mapping.path))),
        }
    }
    for (why, files) in failures {
        let more = if files.len() > 1 { format!(" and {} files more", files.len() - 1) } else { String::new() };
        complain(&format!("no names for {}{more}: {why}", files[0]));
    }
    Ok(())
}

/// Improves `names` of `places` from files in `dirs`.
///
/// # Errors
/// There are `dirs`, which are supported only on Linux.
#[cfg(not(target_os = "linux"))]
fn improve(_names: &mut Names, _places: &Places, dirs: &[PathBuf]) -> Result<()> {
    if !dirs.is_empty() {
        anyhow::bail!("--debug-dir: files with symbols are read on Linux only");
    }
    Ok(())
}

//! Files that hold tapes in another form: the command that reads them as they are.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use systape_format::Error;

use crate::asked::config::Config;
use crate::asked::config::view::Operands;
use systape_answers::values::spool::STDIN;
use systape_events::values::words::shell;

/// Most files of an archive that are looked at.
const MOST: usize = 10_000;
/// Bytes of a header of tar, and of what follows it the unit.
const TAR: u64 = 512;

/// Puts `file` and what was asked into what an error of opening it says to do instead: a command that can be copied.
pub(crate) fn exact(mut error: anyhow::Error, file: &Path, config: &Config) -> anyhow::Error {
    if let Some(Error::Other(other)) = error.downcast_mut::<Error>() {
        other.instead = command(&other.instead, file, config).into();
    }
    error
}

/// `general`, which names `FILE` and a bare `analyze -`, of `file` and the report that was asked.
fn command(general: &str, file: &Path, config: &Config) -> String {
    let quoted = shell(&[file.as_os_str().as_encoded_bytes().to_vec()]);
    let Some(reads) = general.strip_suffix(" | analyze -") else { return general.replace("FILE", &quoted) };
    let report = match config.view.name {
        "" => String::new(),
        "summary" => " -s".to_owned(),
        "with-summary" => " -S".to_owned(),
        name => format!(" {name}"),
    };
    let piped = config.view.operands == Operands::Tape && config.view.name != "fds";
    if file == Path::new(STDIN) {
        return match reads.split_once(" FILE") {
            // what reads standard input by itself
            Some((program, "")) if !program.starts_with("unzip") && !program.starts_with("7z") => {
                match program.strip_suffix("-xOf") {
                    Some(tar) => format!("... | {tar}-xOf - | analyze{report} -"),
                    None => format!("... | {program} | analyze{report} -"),
                }
            }
            _ => "save it to a file first and name that".to_owned(),
        };
    }
    // how many tapes are in a compressed archive is not known, and tar knows how it is compressed
    let packed = is_tar(file) && !reads.starts_with("tar");
    let (tapes, of_tar) = (tapes(file), packed || reads.starts_with("tar"));
    let extract = if of_tar { format!("tar -xf {quoted}") } else { format!("unzip {quoted}") };
    let into = if of_tar { "-C" } else { "-d" };
    let all = || format!("mkdir tapes && {extract} {into} tapes && analyze{report} tapes");
    match &tapes[..] {
        _ if packed && !piped => format!("{extract}, then name one of its tapes"),
        [_, _, ..] if !piped => format!("{extract}, then name one of its tapes"),
        _ if packed => all(),
        [_, _, ..] => all(),
        one => {
            let member = one.first().map(|name| format!(" {}", shell(std::slice::from_ref(name)))).unwrap_or_default();
            let reads = format!("{}{member}", reads.replace("FILE", &quoted));
            let stem = file.file_stem().map(|stem| stem.as_encoded_bytes().to_vec()).unwrap_or_default();
            let stem = if stem.ends_with(b".tape") { stem } else { [&stem[..], b".tape"].concat() };
            match piped {
                true => format!("{reads} | analyze{report} -"),
                false => format!("{reads} > {0}, then name {0}", shell(&[stem])),
            }
        }
    }
}

/// Whether a compressed file holds an archive of tar, by its name: tar finds out how it is compressed.
fn is_tar(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.as_encoded_bytes().to_ascii_lowercase()).unwrap_or_default();
    let ends = |end: &&str| name.ends_with(end.as_bytes());
    [".tgz", ".txz", ".tzst", ".tbz2"].iter().any(ends) || {
        let stem = name.rsplitn(2, |byte| *byte == b'.').nth(1).unwrap_or_default();
        stem.ends_with(b".tar")
    }
}

/// Names of the tapes in an archive; of a single file that is called otherwise its name. Empty: it is none, or compressed.
fn tapes(file: &Path) -> Vec<Vec<u8>> {
    let names =
        File::open(file).ok().and_then(|mut file| in_tar(&mut file).or_else(|| in_zip(&mut file))).unwrap_or_default();
    let tapes: Vec<Vec<u8>> = names.iter().filter(|name| name.ends_with(b".tape")).cloned().collect();
    if tapes.is_empty() && names.len() == 1 { names } else { tapes }
}

/// Names of the files in an archive of tar, up to the first that is not understood.
fn in_tar(file: &mut File) -> Option<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    let mut at = 0;
    for _ in 0..MOST {
        let mut header = [0; TAR as usize];
        file.seek(SeekFrom::Start(at)).ok()?;
        if file.read_exact(&mut header).is_err() || &header[257..262] != b"ustar" {
            break;
        }
        let text = |range: std::ops::Range<usize>| {
            let field = &header[range];
            field[..field.iter().position(|byte| *byte == 0).unwrap_or(field.len())].to_vec()
        };
        let size = text(124..136);
        let size = u64::from_str_radix(std::str::from_utf8(&size).ok()?.trim(), 8).ok()?;
        if matches!(header[156], 0 | b'0') {
            // POSIX has the beginning of a long name elsewhere; GNU something else
            let prefix = if &header[257..263] == b"ustar\0" { text(345..500) } else { Vec::new() };
            let name = if prefix.is_empty() { text(0..100) } else { [&prefix[..], b"/", &text(0..100)].concat() };
            names.push(name);
        }
        at = at.checked_add(TAR)?.checked_add(size.checked_next_multiple_of(TAR)?)?;
    }
    (!names.is_empty()).then_some(names)
}

/// Names of the files in an archive of zip, by the directory at its end.
fn in_zip(file: &mut File) -> Option<Vec<Vec<u8>>> {
    let len = file.seek(SeekFrom::End(0)).ok()?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(len.saturating_sub(66_000))).ok()?;
    file.take(66_000).read_to_end(&mut end).ok()?;
    let last = end.windows(4).rposition(|four| four == b"PK\x05\x06")?;
    let number = |bytes: &[u8], at: usize, len: usize| {
        let field = bytes.get(at..at + len)?;
        Some(field.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let mut directory = Vec::new();
    file.seek(SeekFrom::Start(number(&end, last + 16, 4)? as u64)).ok()?;
    file.take(1 << 20).read_to_end(&mut directory).ok()?;
    let (mut names, mut at) = (Vec::new(), 0);
    while names.len() < MOST && directory.get(at..at + 4) == Some(b"PK\x01\x02") {
        let (name, extra, comment) =
            (number(&directory, at + 28, 2)?, number(&directory, at + 30, 2)?, number(&directory, at + 32, 2)?);
        let text = directory.get(at + 46..at + 46 + name)?;
        if !text.ends_with(b"/") {
            names.push(text.to_vec());
        }
        at += 46 + name + extra + comment;
    }
    Some(names)
}

//! Values of options that are something else by habit.

use std::ffi::OsStr;

/// Options whose value is checked here, as what is typed after them by habit is something else: ids, and the sentence.
const VALUES: &[(&str, &str)] = &[
    ("pids", "-p takes numbers of processes, such as 2214; --comm=NAME chooses by name"),
    ("tids", "-t takes numbers of threads, such as 2215; --clock wall prints times of day (strace -t)"),
    ("wakers", "--wakers takes the number of a process, such as 2214"),
    ("cpus", "-C takes CPUs, such as 0-3,7; the listing with the summary is -S (strace -C)"),
];

/// Whether it is a list of numbers.
fn is_numbers(text: &str) -> bool {
    text.split(',').all(|number| number.trim().parse::<u32>().is_ok())
}

/// Whether it is a list of CPUs.
pub(super) fn is_cpus(text: &str) -> bool {
    text.split(',')
        .all(|part| part.split('-').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())))
}

/// Refuses a value that the option `id` cannot have.
pub(super) fn check(id: &str, value: &OsStr) -> Result<(), String> {
    let Some((_, sentence)) = VALUES.iter().find(|(option, _)| *option == id) else { return Ok(()) };
    let text = value.to_str().unwrap_or_default();
    let fits = if id == "cpus" { is_cpus(text) } else { is_numbers(text) };
    if fits {
        Ok(())
    } else {
        Err(format!("'{}': {sentence}", crate::values::words::escaped(value.as_encoded_bytes())))
    }
}

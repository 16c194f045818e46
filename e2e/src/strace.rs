//! Runs strace and reads what it writes with `-f -qq -xx`: strings are pairs of hex digits, so no argument can be
//! mistaken for syntax, and calls cut by another thread's are joined again.

use std::collections::HashMap;
use std::fs;

use crate::call::from_hex;
use crate::lab::{Lab, run};

/// Errors the program never saw: the kernel restarts the call.
const RESTARTS: [&str; 4] = ["ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ERESTART_RESTARTBLOCK"];

/// One call.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Thread.
    pub tid: i64,
    /// Name.
    pub name: String,
    /// Arguments, as printed, without the parentheses.
    pub args: String,
    /// Return value; `None`: `?`.
    pub ret: Option<i64>,
    /// Name of the error.
    pub errno: Option<String>,
    /// What it prints behind the return value: words of the error, what the call left in its arguments.
    pub rest: String,
}

impl Traced {
    /// Arguments, split at the commas between them.
    pub fn split(&self) -> Vec<&str> {
        let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
        for (i, c) in self.args.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(self.args[start..i].trim());
                    start = i + 1;
                }
                _ => {}
            }
        }
        parts.push(self.args[start..].trim());
        parts
    }

    /// Bytes of a string argument; `None` when it is none (a pointer, NULL).
    pub fn bytes(&self, index: usize) -> Option<Vec<u8>> {
        string(self.split().get(index)?)
    }
}

/// Bytes of a string as `-xx` prints it.
#[must_use]
pub fn string(printed: &str) -> Option<Vec<u8>> {
    let digits = printed.strip_prefix('"')?.trim_end_matches("...").strip_suffix('"')?;
    Some(from_hex(&digits.replace("\\x", "")))
}

/// Runs `command` under strace and gives every call, in order of its end.
#[track_caller]
pub fn trace(lab: &Lab, options: &[&str], command: &[&str]) -> Vec<Traced> {
    let out = lab.file("strace.out");
    let mut strace = lab.command("strace");
    strace
        .args(["-f", "-qq", "-xx", "-s", "4096", "-e", "signal=none", "-o", &out])
        .args(options)
        .arg("--")
        .args(command);
    run(&mut strace);
    parse(&fs::read_to_string(&out).expect("strace's output"))
}

/// Number of calls and errors by name, as `strace -c -f` counts them.
#[track_caller]
pub fn count(lab: &Lab, command: &[&str]) -> HashMap<String, (u64, u64)> {
    let out = lab.file("strace.count");
    run(lab.command("strace").args(["-c", "-f", "-qq", "-U", "name,calls,errors", "-o", &out, "--"]).args(command))
        .expect(0);
    let text = fs::read_to_string(&out).expect("strace's output");
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?.to_owned();
        let calls = fields.next()?.parse().ok()?;
        Some((name, (calls, fields.next().map_or(0, |errors| errors.parse().expect("errors")))))
    };
    text.lines().filter_map(row).filter(|(name, _)| name != "total").collect()
}

/// Reads strace's output.
///
/// # Panics
/// On a line that is none of strace's.
#[must_use]
pub fn parse(text: &str) -> Vec<Traced> {
    let mut begun: HashMap<i64, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let (tid, rest) = line.split_once(' ').unwrap_or_else(|| panic!("strace: {line}"));
        let (tid, rest) = (tid.parse().unwrap_or_else(|_| panic!("strace: {line}")), rest.trim());
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(tid, start.trim_end().to_owned());
            continue;
        }
        let whole = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (_, end) = resumed.split_once(" resumed>").unwrap_or_else(|| panic!("strace: {line}"));
                let start =
                    begun.remove(&tid).unwrap_or_else(|| panic!("strace resumes what it did not begin: {line}"));
                start + end
            }
            None => rest.to_owned(),
        };
        calls.push(call(tid, &whole).unwrap_or_else(|| panic!("strace: {line}")));
    }
    // killed inside, or by another thread's exec
    for (tid, start) in begun {
        let (name, args) = start.split_once('(').unwrap_or_else(|| panic!("strace: {start}"));
        calls.push(Traced { tid, name: name.into(), args: args.into(), ret: None, errno: None, rest: String::new() });
    }
    calls
}

fn call(tid: i64, line: &str) -> Option<Traced> {
    let (head, result) = line.rsplit_once(" = ")?;
    let (name, args) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let mut words = result.split_whitespace();
    let value = words.next()?;
    let ret = match (value, value.strip_prefix("0x")) {
        ("?", _) => None,
        (_, Some(hex)) => Some(u64::from_str_radix(hex, 16).ok()?.cast_signed()),
        (octal, _) if name == "umask" => Some(i64::from_str_radix(octal, 8).ok()?),
        // with -y the file of a descriptor comes after it
        (decimal, _) => Some(decimal.split('<').next()?.parse().ok()?),
    };
    let error = words.next().filter(|w| w.starts_with('E') && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    let errno = error.filter(|e| ret == Some(-1) || RESTARTS.contains(e)).map(str::to_owned);
    let rest = result.trim_start().split_once(' ').map_or("", |(_, rest)| rest.trim());
    Some(Traced { tid, name: name.into(), args: args.into(), ret, errno, rest: rest.into() })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn calls_are_read_and_joined() {
        let text = "7 openat(AT_FDCWD, \"\\x2f\\x61\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
                    7 read(3,  <unfinished ...>\n\
                    8 umask(022)                        = 077\n\
                    7 <... read resumed>\"\\x41\", 5)    = 1\n\
                    8 wait4(-1, 0x7, 0, NULL) = ? ERESTARTSYS (To be restarted)\n\
                    8 +++ exited with 0 +++\n";
        let calls = parse(text);
        assert_eq!((calls[0].bytes(1), calls[0].errno.as_deref()), (Some(b"/a".to_vec()), Some("ENOENT")));
        assert_eq!((calls[1].name.as_str(), calls[1].ret), ("umask", Some(0o77)));
        assert_eq!((calls[2].split(), calls[2].ret), (vec!["3", "\"\\x41\"", "5"], Some(1)));
        assert_eq!((calls[3].ret, calls[3].errno.as_deref()), (None, Some("ERESTARTSYS")));
        assert_eq!(calls.len(), 4);
    }
}

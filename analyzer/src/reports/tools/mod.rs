//! Reports by the names of bcc's tools: text has exactly the columns of the tool, JSON and CSV the rows of the report that reads the same. They
//! only lay out what that report collects.

pub(crate) mod execsnoop;
pub(crate) mod opensnoop;
pub(crate) mod statsnoop;

use super::files::lines::Listed;
use crate::values::words::escaped;

/// Heading of the tools that list calls on paths.
const HEAD_OF_PATHS: [&str; 5] = ["PID", "COMM", "FD", "ERR", "PATH"];

/// Their line; the first column is `width` wide.
fn columns_of_paths(time: &str, width: usize, [pid, comm, fd, errno, path]: [&str; 5]) -> Vec<u8> {
    timed(time, &format!("{pid:<width$} {comm:<16} {fd:>4} {errno:>3} {path}\n")).into_bytes()
}

/// What stands below their heading; `ret`: what the call returned, where it succeeded.
fn cells_of_path(call: Listed, ret: Option<i64>, cwd: Option<&[u8]>) -> [String; 5] {
    // what did not return has neither
    let (fd, errno) = match (ret, call.errno) {
        (Some(ret), _) => (ret.to_string(), "0".to_owned()),
        (None, Some(errno)) => ("-1".to_owned(), errno.to_string()),
        (None, None) => ("?".to_owned(), "?".to_owned()),
    };
    let [file, _] = call.files;
    // an empty path, or none at all, is about what was opened before
    let given = call.given.filter(|given| !given.is_empty());
    let path = match (given, file.and_then(|place| place.path(cwd))) {
        (Some(given), _) => format!("{}{}", escaped(&given), if call.cut { "..." } else { "" }),
        (None, Some(file)) => escaped(&file),
        (None, None) => "?".to_owned(),
    };
    [call.task.pid.to_string(), escaped(&call.task.comm), fd, errno, path]
}

/// `cells` behind the time, if times were asked for.
fn timed(time: &str, cells: &str) -> String {
    if time.is_empty() { cells.to_owned() } else { format!("{time} {cells}") }
}

//! Reports by the names of bcc's tools: text has exactly the columns of the tool, JSON and CSV the rows of the report that reads the same. They
//! only lay out what that report collects.

pub(crate) mod execsnoop;
pub(crate) mod opensnoop;
mod paths;
pub(crate) mod statsnoop;

/// `cells` behind the time, if times were asked for.
fn timed(time: &str, cells: &str) -> String {
    if time.is_empty() { cells.to_owned() } else { format!("{time} {cells}") }
}

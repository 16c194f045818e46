//! Reports by the names of bcc's tools: text has exactly the columns of the tool, JSON and CSV the rows of the report that reads the same. They
//! only lay out what that report collects.

use anyhow::Result;

use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

pub(crate) mod biolatency;
pub(crate) mod biosnoop;
pub(crate) mod execsnoop;
pub(crate) mod filetop;
pub(crate) mod gethostlatency;
pub(crate) mod killsnoop;
pub(crate) mod offcputime;
pub(crate) mod opensnoop;
mod paths;
pub(crate) mod statsnoop;
pub(crate) mod syscount;
pub(crate) mod tcplife;

/// Refuses an option that is about columns, if it was given and there are none.
fn text_only(config: &Config, given: bool, option: &str) -> Result<()> {
    let given = given && config.format != Format::Text;
    refuse(&[(given, option)], "JSON and CSV have all columns")
}

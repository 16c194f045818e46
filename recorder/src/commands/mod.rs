//! Commands of the program besides the recording itself: how words become options, requests to a running recorder, generated
//! pages, and the process that opens files of users.

pub mod ask;
pub mod cli;
pub mod generate;
pub mod opening;

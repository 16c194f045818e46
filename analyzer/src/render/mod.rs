//! From values to text, JSON and CSV: what is the same for all reports.

pub mod csv;
pub mod form;
pub mod json;
pub mod loghist;
pub mod record;
pub mod table;

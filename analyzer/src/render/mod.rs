//! From values to text, JSON and CSV: common to all reports.

pub mod by;
pub mod cell;
pub mod csv;
pub mod form;
pub mod json;
pub mod keys;
pub mod loghist;
pub mod mark;
pub mod rank;
pub mod row;
pub mod sink;
pub mod stamp;
pub mod table;

//! From values to text, JSON and CSV: common to all reports.

pub(crate) mod by;
pub(crate) mod cell;
pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod form;
pub(crate) mod heat;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod label;
pub(crate) mod loghist;
pub(crate) mod mark;
pub(crate) mod out;
pub(crate) mod paint;
pub(crate) mod rank;
pub(crate) mod row;
pub(crate) mod sink;
pub(crate) mod spark;
pub(crate) mod stamp;
pub(crate) mod table;

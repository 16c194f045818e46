//! From values to text, JSON and CSV: common to all reports.

pub mod by;
pub mod cell;
pub mod columns;
pub mod csv;
pub mod fields;
pub mod form;
pub mod heat;
pub mod json;
pub mod keys;
pub mod label;
pub mod loghist;
pub mod mark;
pub mod out;
pub mod paint;
pub mod rank;
pub mod row;
pub mod sink;
pub mod spark;
pub mod stamp;
pub mod table;
pub mod xml;

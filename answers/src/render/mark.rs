//! The mark before a number that is not exact, in text. JSON and CSV have columns for it (`x_at_least`, `x_of_known`).

/// Mark before a lower bound.
pub const AT_LEAST: &str = ">=";
/// Mark before an upper bound.
pub const AT_MOST: &str = "<=";
/// Mark before a number that may be higher or lower.
pub const ABOUT: &str = "~";

/// The mark of a lower bound if `more`.
pub fn at_least(more: bool) -> &'static str {
    if more { AT_LEAST } else { "" }
}

/// The mark of an upper bound if `less`.
pub fn at_most(less: bool) -> &'static str {
    if less { AT_MOST } else { "" }
}

/// The mark of a number that may be higher or lower if `either`.
pub fn about(either: bool) -> &'static str {
    if either { ABOUT } else { "" }
}

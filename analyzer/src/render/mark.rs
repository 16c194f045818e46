//! What stands before a number of text that is not exact. JSON and CSV have columns for it (`x_at_least`, `x_of_known`).

/// Before a number that may be greater.
pub const AT_LEAST: &str = ">=";
/// Before a number that may be less.
pub const AT_MOST: &str = "<=";
/// Before a number that may be either.
pub const ABOUT: &str = "~";

/// Before a number that may be greater if `more`.
pub fn at_least(more: bool) -> &'static str {
    if more { AT_LEAST } else { "" }
}

/// Before a number that may be less if `less`.
pub fn at_most(less: bool) -> &'static str {
    if less { AT_MOST } else { "" }
}

/// Before a number that may be greater or less if `either`.
pub fn about(either: bool) -> &'static str {
    if either { ABOUT } else { "" }
}

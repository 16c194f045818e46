//! `--sort`: one option of the listing and of sums of calls, which have no value of it in common.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use systape_answers::derive::summary::column::Column;

/// Order of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListingOrder {
    /// Calls by their starts.
    #[default]
    Start,
    /// Calls by their ends.
    End,
}

/// What `--sort` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The order of the listing.
    Listing(ListingOrder),
    /// The column by which the summary is sorted.
    Sums(Column),
}

impl ValueEnum for Sort {
    fn value_variants<'a>() -> &'a [Self] {
        use Column::{Avg, Calls, Errors, Max, P50, P99, Total};
        &[
            Self::Listing(ListingOrder::Start),
            Self::Listing(ListingOrder::End),
            Self::Sums(Calls),
            Self::Sums(Errors),
            Self::Sums(Total),
            Self::Sums(Avg),
            Self::Sums(Max),
            Self::Sums(P50),
            Self::Sums(P99),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Listing(order) => order.to_possible_value(),
            Self::Sums(column) => column.to_possible_value(),
        }
    }
}

//! The error of a question that is wrong.

use systape_events::filter::{ScopeError, UnplacedTime};

/// The question was wrong, as only the tape shows: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);

impl BadUsage {
    /// Whether `error` is one, or a time that the tape has not.
    pub fn is(error: &anyhow::Error) -> bool {
        let time = |error: &ScopeError| matches!(error, ScopeError::Time(_));
        error.is::<Self>() || error.is::<UnplacedTime>() || error.downcast_ref().is_some_and(time)
    }
}

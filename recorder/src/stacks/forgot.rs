//! Names of places in code are forgotten when they take too much room; then every place is reported anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often names were forgotten. Who remembers which places it reported compares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgot(Arc<AtomicU64>);

impl Forgot {
    /// Whether names were forgotten since `seen`, which is brought up to date.
    pub(crate) fn since(&self, seen: &mut u64) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        std::mem::replace(seen, now) != now
    }

    /// Notes that names were forgotten once more.
    pub(crate) fn again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

//! The least cost of a finding.

/// Findings that cost less are not worth a line, ns.
const LEAST: u64 = 30_000_000;
/// Nor those that cost less than this part of the time looked at: one thousandth.
const PART: u64 = 1_000;

/// Costs below it are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Least cost, ns.
    pub ns: u64,
    /// Whether it was asked for, so that nothing else hides a finding.
    pub asked: bool,
}

impl Floor {
    /// The one of an answer about `length` ns, or the one asked for.
    pub fn of(length: u64, asked: Option<u64>) -> Self {
        Self { ns: asked.unwrap_or(LEAST.max(length / PART)), asked: asked.is_some() }
    }

    /// Whether `ns` is worth a line.
    pub fn passes(self, ns: u64) -> bool {
        ns >= self.ns && ns > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tapes_have_a_higher_floor() {
        assert_eq!(Floor::of(1_000_000_000, None).ns, 30_000_000);
        assert_eq!(Floor::of(600_000_000_000, None).ns, 600_000_000);
        assert!(Floor::of(600_000_000_000, Some(0)).passes(1) && !Floor::of(9, Some(0)).passes(0));
        assert!(!Floor::of(1_000_000_000, None).passes(29_999_999));
    }
}

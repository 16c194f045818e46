//! One cost out of what two rules say.

use super::saved::Range;

/// Rules agree when they differ by less than this part, in percent ...
const APART: u64 = 25;
/// ... or by less than this, ns.
const NEAR: u64 = 20_000_000;

/// A cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Time in ns; of a range the least.
    pub ns: u64,
    /// The most, where rules differ.
    pub hi: Option<u64>,
}

/// The cost of which re-timing says `saved` and the path `inside`. `only`: only re-timing knows, because threads of the path sleep until fixed
/// times, own code between the calls goes with them, or several ends were waited for.
pub fn cost(saved: Range, inside: u64, only: bool) -> Cost {
    let likely = inside.clamp(saved.lo.min(saved.hi), saved.hi.max(saved.lo));
    let (least, most) = if only { (likely, likely) } else { (likely.min(inside), likely.max(inside)) };
    // who of several children was waited for is not known
    let most = if saved.most > saved.hi && apart(most, saved.most) { saved.most } else { most };
    match apart(least, most) {
        false => Cost { ns: likely, hi: None },
        true => Cost { ns: least, hi: Some(most) },
    }
}

/// Whether `most` is so much more that it is another figure.
fn apart(least: u64, most: u64) -> bool {
    most.saturating_sub(least) > NEAR.max(most / 100 * APART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_figure_where_rules_agree_and_a_range_where_not() {
        let ms = |lo: u64, hi: u64| Range { lo: lo * 1_000_000, hi: hi * 1_000_000, most: hi * 1_000_000 };
        let one = |ms: u64| Cost { ns: ms * 1_000_000, hi: None };
        let range = |lo: u64, hi: u64| Cost { ns: lo * 1_000_000, hi: Some(hi * 1_000_000) };
        assert_eq!(cost(ms(210, 210), 200_000_000, false), one(210));
        assert_eq!(cost(ms(90, 900), 850_000_000, false), one(850), "the wait for a CPU inside goes too");
        assert_eq!(cost(ms(230, 230), 820_000_000, false), range(230, 820));
        assert_eq!(cost(ms(0, 0), 610_000_000, true), one(0));
        assert_eq!(cost(ms(0, 0), 15_000_000, false), one(0));
        let perhaps = Range { most: 2_980_000_000, ..ms(2, 2) };
        assert_eq!(cost(perhaps, 2_000_000, false), range(2, 2980), "if the other child was not waited for");
    }
}

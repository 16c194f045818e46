//! Stretches of time cut into slices.

/// The slices of `width` ns, from 0 on, that the time `from` to `to` is in, with how much of it.
pub(super) fn pieces((from, to): (u64, u64), width: u64) -> impl Iterator<Item = (u64, u64)> {
    let width = width.max(1);
    let mut at = from;
    std::iter::from_fn(move || {
        if at >= to {
            return None;
        }
        let slice = at / width;
        let end = (slice + 1).saturating_mul(width).min(to);
        let piece = (slice, end - at);
        // the last slice that there can be has no end
        at = end.max(at + 1);
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_in_the_slices_it_is_spent_in() {
        let all = |span| pieces(span, 10).collect::<Vec<_>>();
        assert_eq!(all((5, 25)), [(0, 5), (1, 10), (2, 5)]);
        assert_eq!((all((10, 20)), all((7, 7))), (vec![(1, 10)], vec![]));
        assert_eq!(pieces((u64::MAX - 1, u64::MAX), u64::MAX).collect::<Vec<_>>(), [(0, 1)]);
    }
}

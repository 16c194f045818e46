//! Numbers side by side as a line of blocks.

/// From few to the most of the line; none is blank.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A character for each of `counts`, as high as its share of the highest. What is not 0 is never blank.
pub fn line(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0);
    let block = |count: u64| match count {
        0 => ' ',
        // 1 to 8 eighths, rounded up
        count => BLOCKS[(u128::from(count) * 8).div_ceil(u128::from(most)) as usize - 1],
    };
    counts.iter().map(|count| block(*count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_high_as_the_share() {
        assert_eq!(line(&[0, 1, 8, 4, 5, u64::MAX / u64::MAX]), " ▁█▄▅▁");
        assert_eq!(line(&[1, u64::MAX, 0]), "▁█ ");
        assert_eq!((line(&[]), line(&[0, 0]), line(&[3, 3])), (String::new(), "  ".to_owned(), "██".to_owned()));
    }
}

//! A filter of process ids without false negatives.

use xxhash_rust::xxh3::xxh3_64;

/// Bits of a pid in the filter: four 11-bit pieces of the hash of its 4 little-endian bytes.
fn bloom_bits(pid: u32) -> impl Iterator<Item = (usize, u8)> {
    let hash = xxh3_64(&pid.to_le_bytes());
    (0..4).map(move |i| {
        let bit = (hash >> (11 * i)) as usize & 2047;
        (bit / 8, 1 << (bit % 8))
    })
}

/// The filter of `pids`.
pub(crate) fn pid_bloom(pids: &[u32]) -> Box<[u8; 256]> {
    let mut bloom = Box::new([0u8; 256]);
    for (byte, mask) in pids.iter().flat_map(|&pid| bloom_bits(pid)) {
        bloom[byte] |= mask;
    }
    bloom
}

/// Whether the filter may hold `pid`. False is certain.
pub(crate) fn pid_in_bloom(bloom: &[u8; 256], pid: u32) -> bool {
    bloom_bits(pid).all(|(byte, mask)| bloom[byte] & mask != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_has_no_false_no() {
        let pids: Vec<u32> = (1..200).map(|i| i * 37).collect();
        let bloom = pid_bloom(&pids);
        assert!(pids.iter().all(|&pid| pid_in_bloom(&bloom, pid)));
        let wrong = (100_000..101_000).filter(|&pid| pid_in_bloom(&bloom, pid)).count();
        assert!(wrong < 100, "{wrong} of 1000 strangers");
    }
}

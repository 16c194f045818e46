//! Numbers without a pattern that are the same in each run.

/// splitmix64: a good number from any seed, neighbours included.
#[derive(Clone, Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    /// Numbers that belong to `of`, and to its `n`th part.
    pub(super) fn of(of: u64, n: u64) -> Self {
        Self(mix(of.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ n))
    }

    /// The next.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Below `n`, which must not be 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// From 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal: half are below `median`; `sigma` is that of the logarithm.
    pub(super) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        // Irwin and Hall: a sum of 12 is near enough to a normal number
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        median * (sigma * normal).exp()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! Times of a trace: CLOCK_BOOTTIME, which Perfetto counts in.

use systape_format::model::ClockSample;

use super::super::proto::perfetto::ClockSnapshot;
use super::super::proto::perfetto::clock_snapshot::Clock;
use super::super::proto::perfetto::trace_packet::Data;
use super::packets::Packets;

const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;

/// Least difference of two samples that is sleep, ns: they are read one clock after the other.
const MARGIN: u64 = 1_000_000;

/// Makes BOOTTIME of CLOCK_MONOTONIC. They differ by the time that the machine slept, so the difference changes at samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Boot {
    /// Samples in order of time, with BOOTTIME as it is taken to be: the same difference as before unless the machine slept.
    samples: Vec<ClockSample>,
    /// Added to the times of another machine than the first, so that equal times of day are equal.
    shift: i64,
}

impl Boot {
    /// Makes clocks of these samples, in any order. Without any, MONOTONIC is taken for BOOTTIME.
    pub(super) fn new(samples: impl IntoIterator<Item = ClockSample>) -> Self {
        let mut samples: Vec<_> = samples.into_iter().filter(|sample| sample.boottime != 0).collect();
        samples.sort_unstable_by_key(|sample| sample.monotonic);
        samples.dedup_by_key(|sample| sample.monotonic);
        let slept = |sample: &ClockSample| sample.boottime.wrapping_sub(sample.monotonic);
        let mut before = samples.first().map_or(0, slept);
        for sample in &mut samples {
            if slept(sample).abs_diff(before) < MARGIN + sample.width {
                sample.boottime = sample.monotonic.wrapping_add(before);
            }
            before = slept(sample);
        }
        Self { samples, shift: 0 }
    }

    /// Time of day at BOOTTIME 0, ns since 1970, by the first sample; 0: not known.
    pub(super) fn booted(&self) -> u64 {
        self.samples.first().map_or(0, |sample| sample.realtime.saturating_sub(sample.boottime))
    }

    /// Puts them on the clock of `first`, another machine's: by their times of day.
    pub(super) fn beside(self, first: &Self) -> Self {
        let shift = self.booted().wrapping_sub(first.booted()).cast_signed();
        Self { shift, ..self }
    }

    /// Puts them beside others as `other`, which is of the same machine.
    pub(super) fn with(self, other: &Self) -> Self {
        Self { shift: other.shift, ..self }
    }

    /// BOOTTIME at `ts`.
    pub(super) fn at(&self, ts: u64) -> u64 {
        let after = self.samples.partition_point(|sample| sample.monotonic <= ts);
        let sample = self.samples.get(after.saturating_sub(1));
        let slept = sample.map_or(0, |sample| sample.boottime.wrapping_sub(sample.monotonic));
        ts.wrapping_add(slept).wrapping_add_signed(self.shift)
    }

    /// A snapshot of the clocks for each sample. Of another machine than the first MONOTONIC is left out: it has no place on that
    /// one's clock.
    pub(super) fn write(&self, packets: &mut Packets) {
        for sample in &self.samples {
            let clock = |clock_id, timestamp| Clock { clock_id, timestamp };
            let boot = sample.boottime.wrapping_add_signed(self.shift);
            let mut clocks = vec![clock(BOOTTIME, boot), clock(REALTIME, sample.realtime)];
            if self.shift == 0 {
                clocks.push(clock(MONOTONIC, sample.monotonic));
            }
            let snapshot = ClockSnapshot { clocks, primary_trace_clock: BOOTTIME };
            packets.add(boot, Data::ClockSnapshot(snapshot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(monotonic: u64, boottime: u64, realtime: u64) -> ClockSample {
        ClockSample { monotonic, boottime, realtime, width: 0 }
    }

    #[test]
    fn sleep_is_added_from_the_sample_that_shows_it() {
        const MS: u64 = 1_000_000;
        let boot = Boot::new([sample(100, 150, 1000), sample(200, 260, 1100), sample(300, 350 + 9 * MS, 1200)]);
        assert_eq!([50, 100, 200, 299, 300].map(|ts| boot.at(ts)), [100, 150, 250, 349, 350 + 9 * MS]);
        assert_eq!(Boot::default().at(7), 7);
    }

    #[test]
    fn equal_times_of_day_are_equal() {
        let first = Boot::new([sample(100, 100, 10_000)]);
        let other = Boot::new([sample(5_000, 6_000, 10_050)]).beside(&first);
        assert_eq!((first.at(150), other.at(5_000)), (150, 150));
        assert_eq!(Boot::new([sample(1, 1, 9)]).with(&other).shift, other.shift);
    }
}

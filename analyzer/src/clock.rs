//! Real time: from the tape's clock samples to RFC 3339 in UTC, and back.
//!
//! A tape counts CLOCK_MONOTONIC. Its session, its checkpoints and its end each hold a sample of MONOTONIC and REALTIME
//! together; between two samples real time is interpolated, outside them it runs on at one ns per ns. No timezone file
//! is read: output is UTC on every machine.

use systape_format::model::ClockSample;

/// Maps CLOCK_MONOTONIC to real time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Sorted by monotonic; without duplicates.
    samples: Vec<ClockSample>,
}

impl Clock {
    /// A clock through `samples`, in any order; samples that were never taken (0) are left out.
    pub fn new(samples: impl IntoIterator<Item = ClockSample>) -> Self {
        let mut samples: Vec<_> = samples.into_iter().filter(|s| s.realtime != 0).collect();
        samples.sort_unstable_by_key(|s| s.monotonic);
        samples.dedup_by_key(|s| s.monotonic);
        Self { samples }
    }

    /// ns since 1970 at `ts`; None when the tape has no sample at all.
    pub fn real(&self, ts: u64) -> Option<i64> {
        let after = self.samples.partition_point(|s| s.monotonic <= ts);
        let at = |s: &ClockSample| (i128::from(s.monotonic), i128::from(s.realtime));
        let real = match (after.checked_sub(1).map(|i| at(&self.samples[i])), self.samples.get(after).map(at)) {
            (Some((m0, r0)), Some((m1, r1))) => r0 + (i128::from(ts) - m0) * (r1 - r0) / (m1 - m0),
            (Some((m, r)), None) | (None, Some((m, r))) => r + i128::from(ts) - m,
            (None, None) => return None,
        };
        i64::try_from(real).ok()
    }

    /// The CLOCK_MONOTONIC time at which real time was `real`; where a step makes that ambiguous, the first such time.
    pub fn monotonic(&self, real: i64) -> Option<u64> {
        let real = i128::from(real);
        let first = self.samples.first()?;
        for pair in self.samples.windows(2) {
            let (m0, r0, m1, r1) = (
                i128::from(pair[0].monotonic),
                i128::from(pair[0].realtime),
                i128::from(pair[1].monotonic),
                i128::from(pair[1].realtime),
            );
            if (r0..r1).contains(&real) {
                return u64::try_from(m0 + (real - r0) * (m1 - m0) / (r1 - r0)).ok();
            }
        }
        let base = if real < i128::from(first.realtime) { first } else { self.samples.last()? };
        let ts = i128::from(base.monotonic) + real - i128::from(base.realtime);
        Some(u64::try_from(ts.max(0)).unwrap_or(u64::MAX))
    }

    /// The largest step of real time between two samples, ns: by how much it moved more (or less) than CLOCK_MONOTONIC did.
    pub fn largest_step(&self) -> i64 {
        let steps = self.samples.windows(2).map(|pair| {
            let real = i128::from(pair[1].realtime) - i128::from(pair[0].realtime);
            real - (i128::from(pair[1].monotonic) - i128::from(pair[0].monotonic))
        });
        steps.max_by_key(|step| step.unsigned_abs()).map_or(0, |step| i64::try_from(step).unwrap_or(i64::MAX))
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }
}

const DAY: i64 = 86_400;

/// Appends `real` (ns since 1970) as RFC 3339 in UTC with nanoseconds: `2026-11-21T05:48:19.000000000Z`.
pub fn write_rfc3339(out: &mut Vec<u8>, real: i64) {
    let (seconds, ns) = (real.div_euclid(1_000_000_000), real.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    let put = |out: &mut Vec<u8>, value: i64, width: usize, after: u8| {
        crate::render::num::padded(out, value.unsigned_abs(), width, b'0');
        out.push(after);
    };
    put(out, year, 4, b'-');
    put(out, month, 2, b'-');
    put(out, day, 2, b'T');
    put(out, second / 3600, 2, b':');
    put(out, second / 60 % 60, 2, b':');
    put(out, second % 60, 2, b'.');
    put(out, ns, 9, b'Z');
}

/// `real` as RFC 3339, see [`write_rfc3339`].
pub fn rfc3339(real: i64) -> String {
    let mut out = Vec::with_capacity(30);
    write_rfc3339(&mut out, real);
    String::from_utf8_lossy(&out).into_owned()
}

/// ns since 1970 of an RFC 3339 time with `Z` or an offset; a time without either is UTC. None when it is not one.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.split('-');
    let mut number = |digits: usize| date.next().filter(|d| d.len() == digits).and_then(plain);
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if date.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset) = split_offset(time)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.split(':').map(|part| if part.len() == 2 { plain(part) } else { None });
    let (hour, minute, second) = (time.next()??, time.next()??, time.next().unwrap_or(Some(0))?);
    if time.next().is_some() || hour > 23 || minute > 59 || second > 60 || fraction.len() > 9 {
        return None;
    }
    let ns = if fraction.is_empty() { 0 } else { plain(fraction)? * 10_i64.pow(9 - fraction.len() as u32) };
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Cuts `Z`, `+01:00` or `-0130` off a time: (time, offset in seconds).
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let digits: String = time[at + 1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 {
        return None;
    }
    let value = plain(&digits)?;
    let seconds = value / 100 * 3600 + value % 100 * 60;
    Some((&time[..at], if time.as_bytes()[at] == b'-' { -seconds } else { seconds }))
}

fn plain(digits: &str) -> Option<i64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Days since 1970 to (year, month, day); Howard Hinnant's `civil_from_days` (howardhinnant.github.io/date_algorithms.html).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The other way round; same source.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let yoe = year.rem_euclid(400);
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(monotonic: u64, realtime: u64) -> ClockSample {
        ClockSample { monotonic, realtime, ..ClockSample::default() }
    }

    #[test]
    fn known_times() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(rfc3339(951_782_400_000_000_000), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(parse_rfc3339("2026-11-21T05:48:19.5Z"), Some(1_795_240_099_500_000_000));
        assert_eq!(parse_rfc3339("2026-11-21T06:48:19.5+01:00"), Some(1_795_240_099_500_000_000));
        for text in [
            "2026-02-30T00:00:00Z",
            "2026-1-1T00:00:00Z",
            "2026-01-01",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00+1",
            "T",
            "99999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_round_trips() {
        for days in (-800_000..800_000).step_by(17) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
    }

    #[test]
    fn interpolates_between_samples_and_runs_on_outside() {
        let clock = Clock::new([sample(2000, 1_002_500), sample(1000, 1_001_000)]);
        assert_eq!(clock.real(1000), Some(1_001_000));
        assert_eq!(clock.real(1500), Some(1_001_750));
        assert_eq!(clock.real(500), Some(1_000_500));
        assert_eq!(clock.real(2100), Some(1_002_600));
        assert_eq!(clock.monotonic(1_001_750), Some(1500));
        assert_eq!(clock.monotonic(1_002_600), Some(2100));
        assert_eq!(clock.monotonic(1_000_500), Some(500));
        assert_eq!(clock.largest_step(), 500);
        assert_eq!(Clock::default().real(5), None);
    }
}

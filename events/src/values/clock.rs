//! Real time: from the tape's clock samples to RFC 3339 in UTC, and back.
//!
//! A tape counts CLOCK_MONOTONIC. Its session, its checkpoints and its end each have a sample of MONOTONIC and REALTIME
//! together. Between two samples whose difference is within a clock's drift, real time is interpolated; outside of all
//! samples it advances one ns per ns. With a larger difference the clock was set in between (or the machine slept), at
//! a time that the tape does not have: up to it the old setting applies, after it the new one, so a time in between has
//! two possible values. No timezone file is read: output is UTC on every machine.

use systape_format::model::ClockSample;

/// Largest drift of a running clock against CLOCK_MONOTONIC: adjtimex(2) lets NTP slew by 500 ppm.
const DRIFT: i128 = 2_000;
/// Largest difference of two samples regardless of their distance, ns.
const MARGIN: i128 = 1_000_000;

/// A real time, ns since 1970. If the clock may or may not have been set before it, both possible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// The earlier one.
    pub first: i64,
    /// The later one; the same when it is known.
    pub last: i64,
}

impl Real {
    /// A time that is known.
    pub fn known(real: i64) -> Self {
        Self { first: real, last: real }
    }

    /// Distance of the two, ns; None: they are equal.
    pub fn uncertain(self) -> Option<u64> {
        (self.first != self.last).then(|| self.last.abs_diff(self.first))
    }
}

/// The time between two samples.
#[derive(Clone, Copy, Debug)]
struct ClockStretch {
    /// (monotonic, real) of the two samples.
    from: (i128, i128),
    to: (i128, i128),
    /// The clock was set in between.
    stepped: bool,
}

impl ClockStretch {
    fn new(from: &ClockSample, to: &ClockSample) -> Self {
        let at = |s: &ClockSample| (i128::from(s.monotonic), i128::from(s.realtime));
        let (a, b) = (at(from), at(to));
        let length = b.0 - a.0;
        let moved = b.1 - a.1 - length;
        let may = length / DRIFT + i128::from(from.width) + i128::from(to.width) + MARGIN;
        Self { from: a, to: b, stepped: moved.abs() > may }
    }

    /// Earliest and latest real time at `ts`, which lies in it.
    fn real(&self, ts: i128) -> (i128, i128) {
        let ((m0, r0), (m1, r1)) = (self.from, self.to);
        if ts == m0 {
            return (r0, r0);
        }
        if !self.stepped {
            let real = r0 + (ts - m0) * (r1 - r0) / (m1 - m0);
            return (real, real);
        }
        let (old, new) = (r0 + ts - m0, r1 - (m1 - ts));
        (old.min(new), old.max(new))
    }

    /// The time at which real time may reach `real` in it for the first time; None: not in it.
    fn reaches(&self, real: i128) -> Option<i128> {
        let ((m0, r0), (m1, r1)) = (self.from, self.to);
        if real <= r0 {
            return Some(m0);
        }
        if !self.stepped {
            // the first ns at which [`Self::real`] is as late
            return (real < r1).then(|| m0 + ceil((real - r0) * (m1 - m0), r1 - r0));
        }
        let begin = r0.max(r1 - (m1 - m0));
        // at the sample itself it is known
        match m0 + (real - begin).max(1) {
            ts if ts < m1 => Some(ts),
            // at the latest when the new setting holds for certain
            _ => (real <= r1).then_some(m1),
        }
    }

    /// The time until which it may be before `real` in it, if it is not at its end; None: it never is.
    fn leaves(&self, real: i128) -> Option<i128> {
        let ((m0, r0), (m1, r1)) = (self.from, self.to);
        if !self.stepped {
            return (r0 < real).then(|| self.reaches(real).unwrap_or(m1));
        }
        // by the old setting, or by the new one
        let ts = (m0 + real - r0).max(m1 + real - r1).min(m1);
        (ts > m0).then_some(ts)
    }
}

/// `a / b`, rounded up; both positive.
fn ceil(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}

/// Maps CLOCK_MONOTONIC to real time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Sorted by monotonic; without duplicates.
    samples: Vec<ClockSample>,
}

impl Clock {
    /// A clock through `samples`, in any order; samples that were never taken (0) are ignored.
    pub fn new(samples: impl IntoIterator<Item = ClockSample>) -> Self {
        let mut samples: Vec<_> = samples.into_iter().filter(|s| s.realtime != 0).collect();
        samples.sort_unstable_by_key(|s| s.monotonic);
        samples.dedup_by_key(|s| s.monotonic);
        Self { samples }
    }

    /// The interval that begins with the last sample at or before `ts`; None before the first and after the last one.
    fn stretch(&self, ts: u64) -> Option<ClockStretch> {
        let after = self.samples.partition_point(|s| s.monotonic <= ts);
        Some(ClockStretch::new(self.samples.get(after.checked_sub(1)?)?, self.samples.get(after)?))
    }

    /// Real time at `ts`; None when the tape has no sample at all.
    pub fn real(&self, ts: u64) -> Option<Real> {
        let (first, last) = match self.stretch(ts) {
            Some(stretch) => stretch.real(i128::from(ts)),
            None => {
                let before = self.samples.first().filter(|first| ts < first.monotonic);
                let sample = before.or_else(|| self.samples.last())?;
                let real = i128::from(sample.realtime) + i128::from(ts) - i128::from(sample.monotonic);
                (real, real)
            }
        };
        Some(Real { first: i64::try_from(first).ok()?, last: i64::try_from(last).ok()? })
    }

    /// The time from which the clock may have shown `real` or more, and the time from which it certainly did and never
    /// again less, CLOCK_MONOTONIC: the same unless the clock was set. If it was set back it may have shown `real` twice.
    pub fn monotonic(&self, real: i64) -> Option<(u64, u64)> {
        let real = i128::from(real);
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let on = |sample: &ClockSample| i128::from(sample.monotonic) + real - i128::from(sample.realtime);
        let mut stretches = self.samples.windows(2).map(|pair| ClockStretch::new(&pair[0], &pair[1]));
        let begin = match real < i128::from(first.realtime) {
            true => on(first),
            false => stretches
                .clone()
                .find_map(|stretch| stretch.reaches(real))
                .unwrap_or_else(|| on(last).max(last.monotonic.into())),
        };
        let end = match real > i128::from(last.realtime) {
            true => on(last),
            false => stretches
                .rfind(|stretch| stretch.leaves(real).is_some())
                .and_then(|stretch| stretch.leaves(real))
                .unwrap_or_else(|| on(first).min(first.monotonic.into())),
        };
        let ts = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX);
        Some((ts(begin), ts(end.max(begin))))
    }

    /// The largest step of real time between two samples, ns: the difference from the advance of CLOCK_MONOTONIC.
    pub fn largest_step(&self) -> i64 {
        let steps = self.samples.windows(2).map(|pair| {
            let real = i128::from(pair[1].realtime) - i128::from(pair[0].realtime);
            real - (i128::from(pair[1].monotonic) - i128::from(pair[0].monotonic))
        });
        steps.max_by_key(|step| step.unsigned_abs()).map_or(0, |step| i64::try_from(step).unwrap_or(i64::MAX))
    }

    /// Whether somebody set the clock between two samples.
    pub fn was_set(&self) -> bool {
        self.samples.windows(2).any(|pair| ClockStretch::new(&pair[0], &pair[1]).stepped)
    }

    /// The first and the last day (UTC, since 1970) that it may have been between `open` and `end`; None without samples.
    pub fn days(&self, open: u64, end: u64) -> Option<(i64, i64)> {
        let (open, end) = (self.real(open)?, self.real(end.max(open))?);
        Some((day_of(open.first.min(end.first)), day_of(open.last.max(end.last))))
    }

    /// How well it is known, in a few words.
    pub fn text(&self) -> String {
        let step = self.largest_step();
        match self.samples() {
            0 => "no clock sample: times of day are unknown".to_owned(),
            1 => "one clock sample".to_owned(),
            count => format!(
                "{count} clock samples, corrected by up to {}{}.{:03} ms",
                if step <= -1000 { "-" } else { "" },
                step.unsigned_abs() / 1_000_000,
                step.unsigned_abs() / 1000 % 1000
            ),
        }
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }
}

/// ns in a second.
const SECOND: i64 = 1_000_000_000;
/// Seconds in a day.
const DAY: i64 = 86_400;

fn put(out: &mut Vec<u8>, value: i64, width: usize, after: &[u8]) {
    crate::values::num::padded(out, value.unsigned_abs(), width, b'0');
    out.extend_from_slice(after);
}

/// Appends `2026-11-21T`.
fn write_date(out: &mut Vec<u8>, real: i64) {
    let (year, month, day) = civil_from_days(day_of(real));
    put(out, year, 4, b"-");
    put(out, month, 2, b"-");
    put(out, day, 2, b"T");
}

/// Appends `05:48:19.`.
fn write_time(out: &mut Vec<u8>, real: i64) {
    let second = real.div_euclid(SECOND).rem_euclid(DAY);
    put(out, second / 3600, 2, b":");
    put(out, second / 60 % 60, 2, b":");
    put(out, second % 60, 2, b".");
}

/// The day of `real`, days since 1970 in UTC.
pub fn day_of(real: i64) -> i64 {
    real.div_euclid(SECOND * DAY)
}

/// Appends `real` (ns since 1970) as RFC 3339 in UTC with nanoseconds: `2026-11-21T05:48:19.000000000Z`.
pub(crate) fn write_rfc3339(out: &mut Vec<u8>, real: i64) {
    write_date(out, real);
    write_time(out, real);
    put(out, real.rem_euclid(SECOND), 9, b"Z");
}

/// Appends `real` with microseconds: on that `day` the time alone (`05:48:19.000000`), otherwise as RFC 3339.
pub fn write_micros(out: &mut Vec<u8>, real: i64, day: Option<i64>) {
    let dated = day != Some(day_of(real));
    if dated {
        write_date(out, real);
    }
    write_time(out, real);
    put(out, real.rem_euclid(SECOND) / 1000, 6, if dated { b"Z" } else { b"" });
}

/// Appends `real` as RFC 3339, with two possible values as `FIRST/LAST`, the form of ISO 8601 for an interval.
pub fn write_real(out: &mut Vec<u8>, real: Real) {
    write_rfc3339(out, real.first);
    if real.first != real.last {
        out.push(b'/');
        write_rfc3339(out, real.last);
    }
}

/// `real` as RFC 3339, see [`write_real`].
pub fn rfc3339(real: Real) -> String {
    let mut out = Vec::with_capacity(30);
    write_real(&mut out, real);
    String::from_utf8_lossy(&out).into_owned()
}

/// Midnight (UTC) that begins a day written `2026-11-30`, ns since 1970; None: it is no day from 1970 on.
pub fn parse_date(text: &str) -> Option<u64> {
    u64::try_from(parse_rfc3339(&format!("{text}T00:00:00Z"))?).ok()
}

/// ns since 1970 of an RFC 3339 time with `Z` or an offset; a time without either is UTC. None when it is not one.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.split('-');
    let mut number = |digits: usize| date.next().filter(|d| d.len() == digits).and_then(plain);
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if date.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    let (time, offset) = split_offset(time)?;
    (days * DAY - offset).checked_mul(SECOND)?.checked_add(plain_daytime(time)?)
}

/// ns since midnight of a time of day in UTC, `05:48:19.5` or `05:48Z`. None when it is not one.
pub(crate) fn parse_daytime(text: &str) -> Option<i64> {
    plain_daytime(text.strip_suffix(['Z', 'z']).unwrap_or(text))
}

/// ns since midnight of `05:48`, `05:48:19` or `05:48:19.5`.
fn plain_daytime(time: &str) -> Option<i64> {
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let mut time = time.split(':').map(|part| if part.len() == 2 { plain(part) } else { None });
    let (hour, minute, second) = (time.next()??, time.next()??, time.next().unwrap_or(Some(0))?);
    if time.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let ns = match fraction {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) => plain(digits)? * 10_i64.pow(9 - digits.len() as u32),
        Some(_) => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * SECOND + ns)
}

/// ns of `day` (UTC, since 1970) at `daytime` ns.
pub(crate) fn on_day(day: i64, daytime: i64) -> i64 {
    day.saturating_mul(DAY * SECOND).saturating_add(daytime)
}

/// Splits `Z`, `+01:00` or `-0130` off a time: (time, offset in seconds).
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

/// The inverse; same source.
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

    fn known(real: i64) -> Real {
        Real { first: real, last: real }
    }

    const S: u64 = 1_000_000_000;

    /// 60 s in which the clock was set by `step` seconds at an unknown time.
    fn stepped(step: i64) -> Clock {
        let sample = |at: u64, by: i64| sample(at * S, ((1_000_000 + at).wrapping_add_signed(by)) * S);
        Clock::new([sample(100, 0), sample(160, 0), sample(220, step), sample(280, step)])
    }

    #[test]
    fn a_step_is_not_interpolated() {
        let real = |s: i64| (1_000_000 + s) * S as i64;
        for step in [40, -40, 3600, -3600, 1] {
            let clock = stepped(step);
            for (at, by) in [(50, 0), (100, 0), (130, 0), (160, 0), (220, step), (250, step), (300, step)] {
                assert_eq!(clock.real(at * S), Some(known(real(at as i64 + by))), "{step}: {at}");
            }
            let both = [real(200), real(200 + step)];
            let got = clock.real(200 * S).unwrap();
            assert_eq!([got.first, got.last], [both[0].min(both[1]), both[0].max(both[1])]);
            assert_eq!(got.uncertain(), Some(step.unsigned_abs() * S));
            assert!(clock.was_set());
            assert!(rfc3339(got).contains("Z/1970"));
        }
        // drift within what NTP may do, over a minute: 500 ppm are 30 ms
        let clock = Clock::new(
            [sample(100 * S, 0), sample(160 * S, 60 * S + 29_000_000)]
                .map(|s| ClockSample { realtime: s.realtime + S, ..s }),
        );
        assert_eq!(clock.real(130 * S), Some(known(31 * S as i64 + 14_500_000)));
        assert!(!clock.was_set());
    }

    #[test]
    fn what_may_match_a_time_of_day_lies_between_both_placings() {
        let real = |s: i64| (1_000_000 + s) * S as i64;
        let at = |clock: &Clock, s: i64| clock.monotonic(real(s)).map(|(a, b)| (a / S, b / S)).unwrap();
        let forth = stepped(40);
        assert_eq!((at(&forth, 50), at(&forth, 130)), ((50, 50), (130, 130)));
        assert_eq!(at(&forth, 290), (250, 250));
        // it showed 1000190 at 190 by the old setting, or skipped it when it was set
        assert_eq!(at(&forth, 190), (160, 190));
        assert_eq!(at(&forth, 210), (170, 210));
        assert_eq!(at(&forth, 250), (210, 220));
        // an hour is skipped: whenever that was
        assert_eq!(at(&stepped(3600), 2000), (160, 220));
        let back = stepped(-40);
        assert_eq!(at(&back, 100), (100, 100), "never again");
        assert_eq!((at(&back, 130), at(&back, 150)), ((130, 170), (150, 190)));
        assert_eq!((at(&back, 170), at(&back, 181)), ((170, 210), (181, 221)));
        assert_eq!(at(&back, 230), (270, 270));
    }

    #[test]
    fn known_times() {
        assert_eq!(rfc3339(known(0)), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(known(-1)), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(rfc3339(known(951_782_400_000_000_000)), "2000-02-29T00:00:00.000000000Z");
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
        assert_eq!(clock.real(1000), Some(known(1_001_000)));
        assert_eq!(clock.real(1500), Some(known(1_001_750)));
        assert_eq!(clock.real(500), Some(known(1_000_500)));
        assert_eq!(clock.real(2100), Some(known(1_002_600)));
        assert_eq!(clock.monotonic(1_001_750), Some((1500, 1500)));
        assert_eq!(clock.monotonic(1_002_600), Some((2100, 2100)));
        assert_eq!(clock.monotonic(1_000_500), Some((500, 500)));
        assert_eq!(clock.largest_step(), 500);
        assert_eq!(Clock::default().real(5), None);
    }
}

//! Times and durations as users type them: `10`, `2.5ms`, `1.5,2`, `10%,20%`, `2026-11-21T05:48:19Z`,
//! `05:48:19`, `mono:1234.5`.
//!
//! Everything is integer arithmetic on nanoseconds: `0.1` is exactly 100 ms of a second, unlike in a float.

/// ns in a second.
pub const SECOND: u64 = 1_000_000_000;

const UNITS: [(&[&str], u64); 6] = [
    (&["ns", "nsec"], 1),
    (&["us", "µs", "usec"], 1_000),
    (&["ms", "msec"], 1_000_000),
    (&["s", "sec", "second", "seconds"], SECOND),
    (&["m", "min", "minute", "minutes"], 60 * SECOND),
    (&["h", "hour", "hours"], 3600 * SECOND),
];

/// Why a text is no time, or no range of times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text is no number with a unit.
    #[error("'{0}' is not a time (examples: 10, 2.5ms, 300us, 1s)")]
    NotATime(String),
    /// The unit is none.
    #[error("'{text}' is not a time: unknown unit '{unit}' (ns, us, ms, s, m, h)")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The unit in it.
        unit: String,
    },
    /// The percentage is over 100, or no number.
    #[error("'{0}' is not a percentage from 0% to 100%")]
    NotAPercentage(String),
    /// The text has a colon and is no time of day.
    #[error("'{0}' is not a time of day in UTC (example: 05:48:19.5)")]
    NotADaytime(String),
    /// The text looks like a date and is none.
    #[error("'{0}' is not an RFC 3339 time (example: 2026-11-21T05:48:19.5Z, or +01:00 instead of Z)")]
    NotRfc3339(String),
    /// The time is over 292 years.
    #[error("'{0}' is longer than a tape can be")]
    TooLong(String),
    /// An end of a range is wrong.
    #[error("--time '{text}'")]
    End {
        /// The whole range.
        text: String,
        /// What is wrong with the end.
        source: Box<Self>,
    },
    /// A range has more than two ends.
    #[error("--time '{0}': give FROM,TO")]
    ThreeEnds(String),
    /// A range has no end.
    #[error(
        "--time '{0}': give FROM,TO, FROM, or ,TO (seconds since the tape's start, 300ms, HH:MM:SS, RFC 3339, mono:SECONDS, N%)"
    )]
    NoEnd(String),
    /// A range ends before it begins.
    #[error("--time '{0}': it ends before it begins")]
    Backwards(String),
}

/// A text is no list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("-C '{0}' is not a list of CPUs (example: 0-3,7)")]
pub struct NotCpus(pub String);

/// One end of a `--time` range, not yet placed on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edge {
    /// ns since the tape's start; negative: before it.
    Offset(i64),
    /// ns of CLOCK_MONOTONIC.
    Mono(u64),
    /// ns since midnight, UTC, of a day that the tape knows.
    Daytime(i64),
    /// ns since 1970, UTC.
    Real(i64),
    /// Part of the tape, in millionths.
    Part(u64),
}

impl Edge {
    /// Whether only the tape's clock samples say when it is.
    pub fn needs_clock(self) -> bool {
        matches!(self, Self::Real(_) | Self::Daytime(_))
    }
}

/// A duration: a number with an optional unit; a bare number counts in `bare` ns.
///
/// ```
/// # use systape_events::values::timespec::duration;
/// assert_eq!(duration("2.5", 1_000_000).unwrap(), 2_500_000);
/// assert_eq!(duration("300us", 1_000_000).unwrap(), 300_000);
/// assert!(duration("10 bananas", 1).is_err());
/// ```
///
/// # Errors
/// It is no time, or longer than 584 years.
pub fn duration(text: &str, bare: u64) -> Result<u64, TimeError> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" => bare,
        unit => {
            UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, ns)| *ns).ok_or_else(|| match digits {
                0 => TimeError::NotATime(text.to_owned()),
                _ => TimeError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned() },
            })?
        }
    };
    scaled(number, scale).ok_or_else(|| TimeError::NotATime(text.to_owned()))
}

/// `number × scale`, for a decimal number; None when it is not one or too large. Digits beyond the scale are cut off.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut below_one = 0_u128;
    for (place, digit) in fraction.chars().enumerate() {
        let digit = u128::from(digit.to_digit(10)?);
        // the 19th place of the largest unit is below a nanosecond
        if place < 18 {
            below_one += digit * 10_u128.pow(17 - place as u32);
        }
    }
    let below_one = below_one * u128::from(scale) / 10_u128.pow(18);
    whole.checked_mul(scale)?.checked_add(u64::try_from(below_one).ok()?)
}

/// A time since the start of the tape, ns, as `--time` takes it: `1.500000001`.
pub fn time_word(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A `--time` value: `FROM,TO`, where either may be left out (`5,` or `,5`); a lone value is FROM.
///
/// # Errors
/// It is no time, or ends before it begins.
pub fn range(text: &str) -> Result<(Option<Edge>, Option<Edge>), TimeError> {
    let (from, to) = text.split_once(',').unwrap_or((text, ""));
    if to.contains(',') {
        return Err(TimeError::ThreeEnds(text.to_owned()));
    }
    let optional = |part: &str| {
        let part = part.trim();
        let end = (!part.is_empty()).then(|| edge(part)).transpose();
        end.map_err(|source| TimeError::End { text: text.to_owned(), source: Box::new(source) })
    };
    // of a time that may be one of two, as reports print it, all that may be meant
    let first = from.split('/').next().unwrap_or_default();
    let last = to.rsplit('/').next().unwrap_or_default();
    let (from, to) = (optional(first)?, optional(last)?);
    if from.is_none() && to.is_none() {
        return Err(TimeError::NoEnd(text.to_owned()));
    }
    let backwards = match (&from, &to) {
        (Some(Edge::Part(from)), Some(Edge::Part(to))) => from > to,
        (Some(Edge::Offset(from)), Some(Edge::Offset(to))) => from > to,
        (Some(Edge::Mono(from)), Some(Edge::Mono(to))) => from > to,
        (Some(Edge::Real(from)), Some(Edge::Real(to))) => from > to,
        _ => false,
    };
    if backwards {
        return Err(TimeError::Backwards(text.to_owned()));
    }
    Ok((from, to))
}

/// One end of a `--time` range.
///
/// # Errors
/// It is no time.
pub fn edge(text: &str) -> Result<Edge, TimeError> {
    if let Some(percent) = text.strip_suffix('%') {
        let part = scaled(percent, 10_000).filter(|part| *part <= 1_000_000);
        return part.map(Edge::Part).ok_or_else(|| TimeError::NotAPercentage(text.to_owned()));
    }
    if let Some(mono) = text.strip_prefix("mono:") {
        return duration(mono, SECOND).map(Edge::Mono);
    }
    if let Some(before) = text.strip_prefix('-') {
        return Ok(Edge::Offset(-offset(before)?));
    }
    if text.contains(':') && !text.contains(['-', 'T', 't']) {
        return crate::values::clock::parse_daytime(text)
            .map(Edge::Daytime)
            .ok_or_else(|| TimeError::NotADaytime(text.to_owned()));
    }
    if text.contains('-') || text.contains('T') {
        return crate::values::clock::parse_rfc3339(text)
            .map(Edge::Real)
            .ok_or_else(|| TimeError::NotRfc3339(text.to_owned()));
    }
    offset(text).map(Edge::Offset)
}

/// ns that fit what a tape lasts.
fn offset(text: &str) -> Result<i64, TimeError> {
    i64::try_from(duration(text, SECOND)?).map_err(|_| TimeError::TooLong(text.to_owned()))
}

/// A CPU list: `0-3,7`.
///
/// # Errors
/// It is none.
pub fn cpu_list(text: &str) -> Result<Vec<u32>, NotCpus> {
    let bad = || NotCpus(text.to_owned());
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| bad())?;
        let last: u32 = last.trim().parse().map_err(|_| bad())?;
        // more CPUs than any kernel has would only be a typo, and must not eat memory
        if last < first || last > 65_535 {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_typed() {
        assert_eq!((time_word(1_500_000_001), time_word(-20)), ("1.500000001".into(), "-0.000000020".into()));
    }

    #[test]
    fn durations() {
        for (text, ns) in
            [("10", 10_000_000), ("2.5", 2_500_000), ("0.001", 1_000), (".5", 500_000), ("3us", 3_000), ("3µs", 3_000)]
        {
            assert_eq!(duration(text, 1_000_000).unwrap(), ns, "{text}");
        }
        assert_eq!(duration("1m", 1).unwrap(), 60 * SECOND);
        assert_eq!(duration("1.204", SECOND).unwrap(), 1_204_000_000);
        for text in ["", ".", "-1", "1e3", "ten", "5 parsecs", "99999999999999999999", "18446744073709551615s", "1.2.3"]
        {
            assert!(duration(text, 1_000_000).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("1.5,2").unwrap(), (Some(Edge::Offset(1_500_000_000)), Some(Edge::Offset(2_000_000_000))));
        assert_eq!(range("300ms,").unwrap(), (Some(Edge::Offset(300_000_000)), None));
        assert_eq!(range(",10%").unwrap(), (None, Some(Edge::Part(100_000))));
        assert_eq!(range("12.5%,100%").unwrap(), (Some(Edge::Part(125_000)), Some(Edge::Part(1_000_000))));
        assert_eq!(range("1970-01-01T00:00:01Z").unwrap(), (Some(Edge::Real(1_000_000_000)), None));
        for text in ["", ",", "1,2,3", "101%", "2026-13-01T00:00:00Z", "x", "mono:2,mono:1", "--1", "-"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_as_reports_print_them() {
        let day = |h: i64, m: i64, ms: i64| Edge::Daytime(((h * 60 + m) * 60_000 + ms) * 1_000_000);
        assert_eq!(edge("-0.002ms").unwrap(), Edge::Offset(-2_000));
        assert_eq!(edge("mono:1000.5").unwrap(), Edge::Mono(1_000_500_000_000));
        assert_eq!(edge("mono:1000012.345ms").unwrap(), Edge::Mono(1_000_012_345_000));
        assert_eq!(edge("05:48:19.012").unwrap(), day(5, 48, 19_012));
        assert_eq!((edge("23:59").unwrap(), edge("00:00:00Z").unwrap()), (day(23, 59, 0), day(0, 0, 0)));
        // of one of two times the first as FROM, the last as TO
        let both = "05:00:00/06:00:00";
        assert_eq!(range(&format!("{both},{both}")).unwrap(), (Some(day(5, 0, 0)), Some(day(6, 0, 0))));
        for text in
            ["mono:", "mono:-1", "24:00:00", "5:48:19", "05:60:00", "05:48:19.", "05:48:1x", "12:00:00+01:00:00"]
        {
            assert!(edge(text).is_err(), "{text}");
        }
        assert!(edge("25:00:00").unwrap_err().to_string().contains("time of day in UTC"));
    }

    #[test]
    fn cpus() {
        assert_eq!(cpu_list("0-2,7,1").unwrap(), [0, 1, 2, 7]);
        for text in ["", "3-1", "a", "0-4294967295", "1,"] {
            assert!(cpu_list(text).is_err(), "{text}");
        }
    }
}

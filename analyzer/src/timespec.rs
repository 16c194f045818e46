//! Times and durations as users type them: `10`, `2.5ms`, `1.5,2`, `10%,20%`, `2026-11-21T05:48:19Z`.
//!
//! Everything is integer arithmetic on nanoseconds: `0.1` is exactly 100 ms of a second, unlike in a float.

use anyhow::{Context, Result, anyhow, bail};

/// ns in a second.
pub const SECOND: u64 = 1_000_000_000;

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// One end of a `--time` range, not yet placed on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// ns since the tape's start.
    Offset(u64),
    /// ns since 1970, UTC.
    Real(i64),
    /// Part of the tape, in millionths.
    Part(u64),
}

/// A duration: a number with an optional unit; a bare number counts in `bare` ns.
///
/// ```
/// # use systape_analyzer::timespec::duration;
/// assert_eq!(duration("2.5", 1_000_000).unwrap(), 2_500_000);
/// assert_eq!(duration("300us", 1_000_000).unwrap(), 300_000);
/// assert!(duration("10 bananas", 1).is_err());
/// ```
pub fn duration(text: &str, bare: u64) -> Result<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" => bare,
        unit => UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, ns)| *ns)
            .with_context(|| format!("'{text}' is not a time: unknown unit '{unit}' (ns, us, ms, s, m, h)"))?,
    };
    scaled(number, scale).ok_or_else(|| anyhow!("'{text}' is not a time (examples: 10, 2.5ms, 300us, 1s)"))
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

/// A `--time` value: `FROM,TO`, where either may be left out (`5,` or `,5`); a lone value is FROM.
pub fn range(text: &str) -> Result<(Option<Edge>, Option<Edge>)> {
    let (from, to) = text.split_once(',').unwrap_or((text, ""));
    if to.contains(',') {
        bail!("--time '{text}': give FROM,TO");
    }
    let optional = |part: &str| -> Result<Option<Edge>> {
        let part = part.trim();
        if part.is_empty() { Ok(None) } else { edge(part).map(Some).with_context(|| format!("--time '{text}'")) }
    };
    let (from, to) = (optional(from)?, optional(to)?);
    if from.is_none() && to.is_none() {
        bail!("--time '{text}': give FROM,TO, FROM, or ,TO (seconds since the tape's start, 300ms, RFC 3339, N%)");
    }
    let backwards = match (&from, &to) {
        (Some(Edge::Part(from)), Some(Edge::Part(to))) => from > to,
        (Some(Edge::Offset(from)), Some(Edge::Offset(to))) => from > to,
        (Some(Edge::Real(from)), Some(Edge::Real(to))) => from > to,
        _ => false,
    };
    if backwards {
        bail!("--time '{text}': it ends before it begins");
    }
    Ok((from, to))
}

/// One end of a `--time` range.
pub fn edge(text: &str) -> Result<Edge> {
    if let Some(percent) = text.strip_suffix('%') {
        let part = scaled(percent, 10_000).filter(|part| *part <= 1_000_000);
        return part.map(Edge::Part).ok_or_else(|| anyhow!("'{text}' is not a percentage from 0% to 100%"));
    }
    if text.contains('-') || text.contains('T') {
        return crate::clock::parse_rfc3339(text).map(Edge::Real).ok_or_else(|| {
            anyhow!("'{text}' is not an RFC 3339 time (example: 2026-11-21T05:48:19.5Z, or +01:00 instead of Z)")
        });
    }
    duration(text, SECOND).map(Edge::Offset)
}

/// A CPU list: `0-3,7`.
pub fn cpu_list(text: &str) -> Result<Vec<u32>> {
    let bad = || anyhow!("-C '{text}' is not a list of CPUs (example: 0-3,7)");
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
        assert_eq!(range("1.5,2").unwrap(), (Some(Edge::Offset(1_500_000_000)), Some(Edge::Offset(2 * SECOND))));
        assert_eq!(range("300ms,").unwrap(), (Some(Edge::Offset(300_000_000)), None));
        assert_eq!(range(",10%").unwrap(), (None, Some(Edge::Part(100_000))));
        assert_eq!(range("12.5%,100%").unwrap(), (Some(Edge::Part(125_000)), Some(Edge::Part(1_000_000))));
        assert_eq!(range("1970-01-01T00:00:01Z").unwrap(), (Some(Edge::Real(1_000_000_000)), None));
        for text in ["", ",", "1,2,3", "101%", "2026-13-01T00:00:00Z", "x"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus() {
        assert_eq!(cpu_list("0-2,7,1").unwrap(), [0, 1, 2, 7]);
        for text in ["", "3-1", "a", "0-4294967295", "1,"] {
            assert!(cpu_list(text).is_err(), "{text}");
        }
    }
}

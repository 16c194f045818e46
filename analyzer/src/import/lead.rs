//! What stands in front of a line of strace: whose it is, and when.

use systape_events::values::words::escaped;

/// What stands in front of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineLead {
    /// The thread: `[pid N]`, or the first column of `-f -o FILE`.
    pub tid: Option<u32>,
    /// Name of the thread, as `-Y` writes it.
    pub comm: Option<Vec<u8>>,
    /// The time.
    pub time: Option<LineTime>,
}

/// The time in front of a line, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTime {
    /// Time since 1970, `-ttt`.
    Epoch(u64),
    /// Time since midnight of some day, `-t` (whole seconds) or `-tt`.
    Day {
        /// The time.
        ns: u64,
        /// Whether there is no fraction.
        whole: bool,
    },
    /// Time since the line before, `-r`.
    Relative(u64),
}

/// Seconds below which a bare number is time since the line before: 3 years. The log would be of 1973 else.
const RELATIVE: u64 = 100_000_000;
/// Greatest thread id (PID_MAX_LIMIT).
const MAX_TID: u64 = 1 << 22;

/// Splits a line into what stands in front and the rest.
pub(super) fn split(line: &[u8]) -> (LineLead, &[u8]) {
    let mut lead = LineLead::default();
    let mut rest = line;
    if let Some((tid, comm, after)) = bracketed(rest) {
        (lead.tid, lead.comm, rest) = (Some(tid), comm, after);
    } else if let Some((tid, comm, after)) = column(rest) {
        (lead.tid, lead.comm, rest) = (Some(tid), comm, after);
    }
    if let Some((time, after)) = time(rest) {
        lead.time = Some(time);
        rest = after;
        // -tt -r: the time since the line before in parentheses
        if let Some(inner) = rest.strip_prefix(b"(+")
            && let Some(end) = inner.iter().position(|byte| *byte == b')')
            && inner[..end].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'.'))
        {
            rest = inner[end + 1..].trim_ascii_start();
        }
    }
    // -i, -n: the instruction pointer, the call's number
    while let Some(after) = number_in_brackets(rest) {
        rest = after;
    }
    (lead, rest)
}

/// A thread's number, its name if there is one, and what is behind them.
type LeadingThread<'l> = (u32, Option<Vec<u8>>, &'l [u8]);

/// `[pid 17] `, `[pid 17<name>] `.
fn bracketed(line: &[u8]) -> Option<LeadingThread<'_>> {
    let inner = line.strip_prefix(b"[pid")?.trim_ascii_start();
    let (tid, after) = number(inner)?;
    let (comm, after) = comm(after);
    Some((u32::try_from(tid).ok().filter(|_| tid <= MAX_TID)?, comm, after.strip_prefix(b"]")?.trim_ascii_start()))
}

/// `17    `, `17<name> `.
fn column(line: &[u8]) -> Option<LeadingThread<'_>> {
    let (tid, after) = number(line).filter(|(tid, _)| (1..=MAX_TID).contains(tid))?;
    let (comm, after) = comm(after);
    after.starts_with(b" ").then(|| (tid as u32, comm, after.trim_ascii_start()))
}

/// A thread's name behind its number.
fn comm(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let Some(inner) = text.strip_prefix(b"<") else { return (None, text) };
    // a name has at most 15 bytes, each perhaps as four letters, and may have the sign itself
    let most = inner.len().min(15 * 4 + 1);
    match inner[..most].windows(2).position(|two| two == b"> " || two == b">]") {
        Some(end) => (Some(super::text::unescaped(&inner[..end])), &inner[end + 1..]),
        None => (None, text),
    }
}

/// Digits, and what is behind them.
pub(super) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let digits = std::str::from_utf8(&text[..end]).ok()?;
    Some((digits.parse().ok()?, &text[end..]))
}

/// A fraction `.123456` of at most nine digits as ns; 0 without one.
fn fraction(text: &[u8]) -> Option<(u64, bool, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, false, text)) };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let (value, _) = number(&digits[..end]).filter(|_| (1..=9).contains(&end))?;
    Some((value * 10_u64.pow(9 - end as u32), true, &digits[end..]))
}

fn time(text: &[u8]) -> Option<(LineTime, &[u8])> {
    let padded = text.starts_with(b" ");
    let (first, rest) = number(text.trim_ascii_start())?;
    if let Some(minutes) = rest.strip_prefix(b":") {
        let (minute, rest) = number(minutes)?;
        let (second, rest) = number(rest.strip_prefix(b":")?)?;
        // a leap second is 60
        if first > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (ns, exact, rest) = fraction(rest)?;
        let ns = ((first * 60 + minute) * 60 + second) * 1_000_000_000 + ns;
        return Some((LineTime::Day { ns, whole: !exact }, after_space(rest)?));
    }
    let (ns, exact, rest) = fraction(rest)?;
    if !exact && (first < RELATIVE || padded) {
        return None;
    }
    let total = first.checked_mul(1_000_000_000)?.checked_add(ns)?;
    // beyond 2262 no time of day is shown
    let rest = after_space(rest).filter(|_| i64::try_from(total).is_ok())?;
    Some((if first < RELATIVE { LineTime::Relative(total) } else { LineTime::Epoch(total) }, rest))
}

fn after_space(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b" ").map(<[u8]>::trim_ascii_start)
}

/// `[00007f...] `, `[  59] `: what is behind it.
fn number_in_brackets(text: &[u8]) -> Option<&[u8]> {
    let inner = text.strip_prefix(b"[")?;
    let end = inner.iter().position(|byte| *byte == b']')?;
    let digits = inner[..end].trim_ascii();
    let fits = !digits.is_empty() && digits.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'?');
    if fits { after_space(&inner[end + 1..]) } else { None }
}

/// The beginning of a line, for a message.
pub(super) fn shown(line: &[u8]) -> String {
    const MOST: usize = 60;
    if line.len() <= MOST { escaped(line) } else { format!("{}...", escaped(&line[..MOST])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(line: &str) -> (Option<u32>, Option<LineTime>, String) {
        let (lead, rest) = split(line.as_bytes());
        (lead.tid, lead.time, String::from_utf8_lossy(rest).into_owned())
    }

    #[test]
    fn each_form_of_pid_and_time_is_read() {
        use LineTime::{Day, Epoch, Relative};
        let epoch = Some(Epoch(1_796_068_175_277_731_000));
        let f = || "f()".to_owned();
        assert_eq!(lead("18070 1796068175.277731 f()"), (Some(18070), epoch, f()));
        assert_eq!(lead("[pid  1807] 1796068175.277731 f()"), (Some(1807), epoch, f()));
        assert_eq!(lead("1796068175.277731 f()"), (None, epoch, f()));
        assert_eq!(lead("1796068175 f()"), (None, Some(Epoch(1_796_068_175_000_000_000)), f()));
        assert_eq!(lead("7 1796068175.000000001 f()"), (Some(7), Some(Epoch(1_796_068_175_000_000_001)), f()));
        assert_eq!(lead("7 23:59:59.5 f()").1, Some(Day { ns: 86_399_500_000_000, whole: false }));
        assert_eq!(lead("23:59:59 f()"), (None, Some(Day { ns: 86_399_000_000_000, whole: true }), f()));
        assert_eq!(lead("     0.000123 f()"), (None, Some(Relative(123_000)), f()));
        assert_eq!(lead("7      0.000123 f()"), (Some(7), Some(Relative(123_000)), f()));
        assert_eq!(lead("23:59:59 (+     0.000010) f()").2, f());
        assert_eq!(lead("1796068175.277731 [00007f12ab34cd56] [  59] f()").2, f());
        assert_eq!(lead("f()"), (None, None, f()));
        assert_eq!(lead("12 monkeys").0, Some(12));
        assert_eq!(lead("99999999999999999999 f()").0, None);
        let (named, rest) = split(b"7<a b> 1796068175.0 f()");
        assert_eq!((named.tid, named.comm, rest), (Some(7), Some(b"a b".to_vec()), &b"f()"[..]));
        assert_eq!(split(b"[pid 7<x>y>] f()").0.comm, Some(b"x>y".to_vec()));
    }
}

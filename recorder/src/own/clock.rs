//! The clocks of the recorded machine. In a time namespace a process reads others (time_namespaces(7)), which BPF and perf do not have:
//! what it adds to them is taken off.

use std::fs;
use std::sync::LazyLock;

use systape_format::model::ClockSample;

/// What the time namespace of this process adds to CLOCK_MONOTONIC and CLOCK_BOOTTIME, ns.
static OFFSETS: LazyLock<[i64; 2]> = LazyLock::new(|| {
    // a kernel without them has no such file
    fs::read_to_string("/proc/self/timens_offsets").map_or([0; 2], |text| offsets(&text))
});

/// The offsets in the text of timens_offsets: a line for each clock, with its name or (before 5.7) number, seconds and ns.
fn offsets(text: &str) -> [i64; 2] {
    let of = |names: [&str; 2]| {
        text.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|word| names.contains(word))?;
            let mut number = || words.next()?.parse::<i64>().ok();
            Some(number()?.saturating_mul(1_000_000_000).saturating_add(number()?))
        })
    };
    [["monotonic", "1"], ["boottime", "7"]].map(|names| of(names).unwrap_or(0))
}

/// Whether the clocks of this process are the machine's, or known to differ by what. Not if it has made a time namespace for its children
/// without being in it: the offsets that it can read are theirs.
pub(crate) fn is_known() -> bool {
    let namespace = |name| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    namespace("time") == namespace("time_for_children")
}

/// Whether this is a time namespace with clocks of its own.
pub(crate) fn in_time_namespace() -> bool {
    *OFFSETS != [0; 2]
}

/// Nanoseconds of one clock.
fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: ts is a valid timespec to write to; clock ids used here exist on every supported kernel.
    unsafe { libc::clock_gettime(clock, &raw mut ts) };
    (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)
}

/// CLOCK_MONOTONIC of the machine now, ns: the clock of bpf_ktime_get_ns.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC).wrapping_sub(OFFSETS[0].cast_unsigned())
}

/// CLOCK_BOOTTIME of the machine now, ns.
fn boottime() -> u64 {
    read(libc::CLOCK_BOOTTIME).wrapping_sub(OFFSETS[1].cast_unsigned())
}

/// CPU time of this process so far, ns.
pub(crate) fn self_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread so far, ns.
pub(crate) fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The three clocks read together; the narrowest of a few tries, because a preemption between two reads widens one.
pub(crate) fn sample() -> ClockSample {
    (0..5)
        .map(|_| {
            let first = monotonic();
            let boottime = boottime();
            let realtime = read(libc::CLOCK_REALTIME);
            let last = monotonic();
            ClockSample { monotonic: first + (last - first) / 2, boottime, realtime, width: last - first }
        })
        .min_by_key(|s| s.width)
        .unwrap_or_default()
}

/// The earliest that CLOCK_REALTIME may have shown at `ts` of CLOCK_MONOTONIC, unless somebody has set it since: how much of the time
/// that the machine was suspended came later is not known.
pub(crate) fn earliest_realtime(ts: u64, now: &ClockSample) -> u64 {
    now.realtime.saturating_sub(now.boottime.saturating_sub(ts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_time_may_have_come_later() {
        let now = ClockSample { monotonic: 500, boottime: 700, realtime: 10_000, width: 0 };
        assert_eq!(earliest_realtime(400, &now), 9_700);
        assert_eq!(earliest_realtime(400, &ClockSample { boottime: 500, ..now }), 9_900);
    }

    #[test]
    fn offsets_are_read_by_the_name_of_their_clock() {
        let text = "monotonic      500000         7\nboottime     -1000000 999999999\n";
        assert_eq!(offsets(text), [500_000_000_000_007, -999_999_000_000_001]);
        assert_eq!(offsets("7 3 0\n1 2 5\n"), [2_000_000_005, 3_000_000_000]);
        assert_eq!([offsets(""), offsets("monotonic x 0\nboottime 9223372036854775807 1")], [[0, 0], [0, i64::MAX]]);
    }
}

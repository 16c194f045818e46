//! The clocks of the recorded machine.

use systape_format::model::ClockSample;

/// Nanoseconds of one clock.
fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: ts is a valid timespec to write to; clock ids used here exist on every supported kernel.
    unsafe { libc::clock_gettime(clock, &raw mut ts) };
    (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)
}

/// CLOCK_MONOTONIC now, ns: the clock of bpf_ktime_get_ns.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
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
            let boottime = read(libc::CLOCK_BOOTTIME);
            let realtime = read(libc::CLOCK_REALTIME);
            let last = monotonic();
            ClockSample { monotonic: first + (last - first) / 2, boottime, realtime, width: last - first }
        })
        .min_by_key(|s| s.width)
        .unwrap_or_default()
}

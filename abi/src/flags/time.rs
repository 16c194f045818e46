//! Flags of signals, clocks and timers.

use super::{How, flag_sets};

flag_sets! {
    /// How `rt_sigprocmask` changes the mask.
    SIG_HOW: How::Enum, "SIG_";
    [general: SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK]

    /// Clock ids; negative ones are of a process, thread or descriptor and print as numbers.
    CLOCK: How::Enum, "CLOCK_";
    [general: CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW,
        CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM,
        CLOCK_SGI_CYCLE, CLOCK_TAI]

    /// Flags of `clock_nanosleep` and `timer_settime`.
    TIMER: How::Bits, "TIMER_";
    [general: TIMER_ABSTIME]

    /// Interval timers.
    ITIMER: How::Enum, "ITIMER_";
    [general: ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF]
}

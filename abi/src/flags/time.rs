//! Flags of signals, clocks and timers.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// How `rt_sigprocmask` changes the mask.
    SIG_HOW: FlagForm::Enum, "SIG_";
    [general: SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2]

    /// `sa_flags` of `rt_sigaction`.
    SA: FlagForm::Bits, wide, "SA_";
    [uapi "arch/x86/include/uapi/asm/signal.h": SA_RESTORER = 0x4000000, SA_ONSTACK = 0x8000000, SA_RESTART = 0x10000000,
        SA_NODEFER = 0x40000000, SA_RESETHAND = 0x80000000, SA_SIGINFO = 4, SA_NOCLDSTOP = 1, SA_NOCLDWAIT = 2]
    [uapi "asm-generic/signal-defs.h": SA_UNSUPPORTED = 0x400, SA_EXPOSE_TAGBITS = 0x800]

    /// Clock ids; negative ones are of a process, thread or descriptor and print as numbers.
    CLOCK: FlagForm::Enum, "CLOCK_";
    [general: CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_PROCESS_CPUTIME_ID = 2, CLOCK_THREAD_CPUTIME_ID = 3,
        CLOCK_MONOTONIC_RAW = 4, CLOCK_REALTIME_COARSE = 5, CLOCK_MONOTONIC_COARSE = 6, CLOCK_BOOTTIME = 7,
        CLOCK_REALTIME_ALARM = 8, CLOCK_BOOTTIME_ALARM = 9, CLOCK_SGI_CYCLE = 10, CLOCK_TAI = 11]

    /// Flags of `clock_nanosleep` and `timer_settime`.
    TIMER: FlagForm::Bits, "TIMER_";
    [general: TIMER_ABSTIME = 1]

    /// Interval timers.
    ITIMER: FlagForm::Enum, "ITIMER_";
    [general: ITIMER_REAL = 0, ITIMER_VIRTUAL = 1, ITIMER_PROF = 2]
}

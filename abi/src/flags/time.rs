//! Flags of signals, clocks and timers.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// How `rt_sigprocmask` changes the mask.
    SIG_HOW: FlagForm::Enum, "SIG_";
    [general: SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK]

    /// `sa_flags` of `rt_sigaction`.
    SA: FlagForm::Bits, wide, "SA_";
    [uapi "arch/x86/include/uapi/asm/signal.h": SA_RESTORER = 0x4000000, SA_ONSTACK = 0x8000000, SA_RESTART = 0x10000000,
        SA_NODEFER = 0x40000000, SA_RESETHAND = 0x80000000, SA_SIGINFO = 4, SA_NOCLDSTOP = 1, SA_NOCLDWAIT = 2]
    [uapi "asm-generic/signal-defs.h": SA_UNSUPPORTED = 0x400, SA_EXPOSE_TAGBITS = 0x800]

    /// Clock ids; negative ones are of a process, thread or descriptor and print as numbers.
    CLOCK: FlagForm::Enum, "CLOCK_";
    [general: CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW,
        CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM,
        CLOCK_SGI_CYCLE, CLOCK_TAI]

    /// Flags of `clock_nanosleep` and `timer_settime`.
    TIMER: FlagForm::Bits, "TIMER_";
    [general: TIMER_ABSTIME]

    /// Interval timers.
    ITIMER: FlagForm::Enum, "ITIMER_";
    [general: ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF]
}

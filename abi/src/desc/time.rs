//! Clocks and timers.

use super::calls;
use crate::flags::{ITIMER, TFD_CREATE, TFD_SETTIME, TIMER};

calls! {
    nanosleep(rqtp: Timespec, rmtp: TimespecOut) -> Int;
    getitimer(which: Flags(&ITIMER), value: Ptr) -> Int;
    alarm(seconds: UInt) -> Int;
    setitimer(which: Flags(&ITIMER), value: Ptr, ovalue: Ptr) -> Int;
    gettimeofday(tv: Ptr, tz: Ptr) -> Int;
    times(tbuf: Ptr) -> Int;
    adjtimex(txc_p: Ptr) -> Int;
    settimeofday(tv: Ptr, tz: Ptr) -> Int;
    time(tloc: Ptr) -> Int;
    timer_create(which_clock: ClockId, timer_event_spec: Ptr, created_timer_id: Ptr) -> Int;
    timer_settime(timer_id: Int, flags: Flags(&TIMER), new_setting: Ptr, old_setting: Ptr) -> Int;
    timer_gettime(timer_id: Int, setting: Ptr) -> Int;
    timer_getoverrun(timer_id: Int) -> Int;
    timer_delete(timer_id: Int) -> Int;
    clock_settime(which_clock: ClockId, tp: Timespec) -> Int;
    clock_gettime(which_clock: ClockId, tp: TimespecOut) -> Int;
    clock_getres(which_clock: ClockId, tp: TimespecOut) -> Int;
    clock_nanosleep(which_clock: ClockId, flags: Flags(&TIMER), rqtp: Timespec, rmtp: TimespecOut) -> Int;
    timerfd_create(clockid: ClockId, flags: Flags(&TFD_CREATE)) -> Fd, NewFd;
    timerfd_settime(ufd: Fd, flags: Flags(&TFD_SETTIME), utmr: Ptr, otmr: Ptr) -> Int;
    timerfd_gettime(ufd: Fd, otmr: Ptr) -> Int;
    clock_adjtime(which_clock: ClockId, utx: Ptr) -> Int;
}

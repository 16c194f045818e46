//! Clocks and timers.

use super::calls;
use super::structs::Struct::{Itimerspec, Itimerval, Timespec, Timeval};
use crate::flags::{ITIMER, TFD_CREATE, TFD_SETTIME, TIMER};

calls! {
    nanosleep(rqtp: In(Timespec), rmtp: Left(Timespec)) -> Int;
    getitimer(which: Flags(&ITIMER), value: Out(Itimerval)) -> Int;
    alarm(seconds: UInt) -> Int;
    setitimer(which: Flags(&ITIMER), value: In(Itimerval), ovalue: Out(Itimerval)) -> Int;
    gettimeofday(tv: Out(Timeval), tz: Ptr) -> Int;
    times(tbuf: Ptr) -> Int;
    adjtimex(txc_p: Ptr) -> Int;
    settimeofday(tv: In(Timeval), tz: Ptr) -> Int;
    time(tloc: Ptr) -> Int;
    timer_create(which_clock: ClockId, timer_event_spec: Ptr, created_timer_id: Ptr) -> Int;
    timer_settime(timer_id: Int, flags: Flags(&TIMER), new_setting: In(Itimerspec), old_setting: Out(Itimerspec)) -> Int;
    timer_gettime(timer_id: Int, setting: Out(Itimerspec)) -> Int;
    timer_getoverrun(timer_id: Int) -> Int;
    timer_delete(timer_id: Int) -> Int;
    clock_settime(which_clock: ClockId, tp: In(Timespec)) -> Int;
    clock_gettime(which_clock: ClockId, tp: Out(Timespec)) -> Int;
    clock_getres(which_clock: ClockId, tp: Out(Timespec)) -> Int;
    clock_nanosleep(which_clock: ClockId, flags: Flags(&TIMER), rqtp: In(Timespec), rmtp: Left(Timespec)) -> Int;
    timerfd_create(clockid: ClockId, flags: Flags(&TFD_CREATE)) -> Fd, NewFd;
    timerfd_settime(ufd: Fd, flags: Flags(&TFD_SETTIME), utmr: In(Itimerspec), otmr: Out(Itimerspec)) -> Int;
    timerfd_gettime(ufd: Fd, otmr: Out(Itimerspec)) -> Int;
    clock_adjtime(which_clock: ClockId, utx: Ptr) -> Int;
}

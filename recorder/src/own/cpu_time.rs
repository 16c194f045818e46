//! CPU time of this process by thread, living and ended.
//!
//! A thread's time is gone with the thread, so each one made by [`counted`] adds it up as it ends.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::own::clock;

/// Name of a thread that is already in the sums.
const ENDED: &str = "ended";

/// Ended threads, by name. Names are few, threads may be many.
static SUMS: Mutex<BTreeMap<&'static str, Sum>> = Mutex::new(BTreeMap::new());

/// CPU time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadCpu {
    /// Time in user mode.
    pub user: u64,
    /// Time in the kernel.
    pub system: u64,
}

impl ThreadCpu {
    /// Time of the calling thread.
    pub(crate) fn of_thread() -> Self {
        Self::new(clock::thread_cpu(), usage(libc::RUSAGE_THREAD).system)
    }

    /// Of this process, including ended threads.
    fn of_process() -> Self {
        Self::new(clock::self_cpu(), usage(libc::RUSAGE_SELF).system)
    }

    /// `total` is exact; the kernel divides it by sampling, and getrusage lags by up to a tick.
    pub(crate) fn new(total: u64, system: u64) -> Self {
        let system = system.min(total);
        Self { user: total - system, system }
    }

    pub(crate) fn total(self) -> u64 {
        self.user + self.system
    }

    fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self { user: self.user.saturating_sub(other.user), system: self.system.saturating_sub(other.system) }
    }
}

/// Time as getrusage divides it.
pub(crate) fn usage(who: libc::c_int) -> ThreadCpu {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: raw is a valid rusage to write to; zeroed bytes are a value of it too, should the call fail.
    let raw = unsafe {
        libc::getrusage(who, raw.as_mut_ptr());
        raw.assume_init()
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ThreadCpu { user: ns(raw.ru_utime), system: ns(raw.ru_stime) }
}

/// Threads of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Threads that had it.
    pub threads: u32,
    /// Time of all of them.
    pub cpu: ThreadCpu,
}

impl Sum {
    fn add(&mut self, cpu: ThreadCpu) {
        self.threads += 1;
        self.cpu.add(cpu);
    }
}

/// Adds up the calling thread when it ends, for any reason.
struct AtEnd(&'static str);

impl Drop for AtEnd {
    fn drop(&mut self) {
        // under the lock: whoever reads the sums sees the thread either there or alive, under its name
        let mut sums = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
        sums.entry(self.0).or_default().add(ThreadCpu::of_thread());
        fs::write("/proc/thread-self/comm", ENDED).ok();
    }
}

/// Runs a thread called `name`, so that its time stays known.
pub(crate) fn counted<T>(name: &'static str, run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _end = AtEnd(name);
        run()
    }
}

/// Name of the main thread in the table.
pub(crate) const MAIN: &str = "main";

/// CPU time of threads by name, living and ended, and of all of them.
pub(crate) fn all_threads() -> (BTreeMap<String, Sum>, ThreadCpu) {
    let ended = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sums: BTreeMap<String, Sum> = ended.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
    let own = std::process::id().to_string();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        if task.file_name().as_encoded_bytes() == own.as_bytes() {
            continue;
        }
        let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if let Some(cpu) = living(&task.path()).filter(|_| comm.trim_end() != ENDED) {
            sums.entry(comm.trim_end().to_owned()).or_default().add(cpu);
        }
    }
    sums.entry(MAIN.to_owned()).or_default().add(ThreadCpu::of_thread());
    (sums, ThreadCpu::of_process())
}

/// CPU time of another living thread. The kernel reports its sum in ns, its system part only in ticks.
fn living(task: &Path) -> Option<ThreadCpu> {
    let schedstat = fs::read_to_string(task.join("schedstat")).ok()?;
    let total: u64 = schedstat.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    Some(split(total, &stat, ticks_per_second()))
}

/// `total` ns, divided as the ticks in a line of /proc/PID/stat are (user is field 14, system 15).
fn split(total: u64, stat: &str, ticks_per_second: u64) -> ThreadCpu {
    // the name, in parentheses, may hold anything
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 = after.split_whitespace().nth(12).and_then(|field| field.parse().ok()).unwrap_or(0);
    ThreadCpu::new(total, ticks.saturating_mul(1_000_000_000 / ticks_per_second))
}

fn ticks_per_second() -> u64 {
    // SAFETY: no memory is touched.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).clamp(1, 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_thread_outlives_it() {
        let busy = counted("busy", || {
            let until = std::time::Instant::now() + std::time::Duration::from_millis(30);
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
            ThreadCpu::of_thread()
        });
        let own = std::thread::spawn(busy).join().unwrap();
        let sum = all_threads().0["busy"];
        assert_eq!(sum.threads, 1);
        assert!(own.total() > 0 && sum.cpu.total() >= own.total(), "{own:?} {sum:?}");
    }

    #[test]
    fn a_thread_that_dies_counts_too() {
        let dies = counted("dies", || panic!("on purpose"));
        assert!(std::thread::spawn(dies).join().is_err());
        assert_eq!(all_threads().0["dies"].threads, 1);
    }

    #[test]
    fn ticks_divide_the_sum() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 10 0 0 0 30 20 0 0 20 0 1 0 5 0 0";
        assert_eq!(split(600_000_000, stat, 100), ThreadCpu { user: 400_000_000, system: 200_000_000 });
        assert_eq!(split(100_000_000, stat, 100), ThreadCpu { user: 0, system: 100_000_000 }, "never more than all");
        assert_eq!(split(5, "", 100), ThreadCpu { user: 5, system: 0 });
    }
}

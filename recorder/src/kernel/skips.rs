//! Runs of BPF programs that the kernel skipped because the program was interrupted by itself on one CPU, or since 7.0 because another
//! task was preempted in it (preemption.rs).
//!
//! A skipped run leaves no data about its event; the kernel counts them per program (recursion_misses, since 5.12:
//! ed9ae9a9a5d1; 0 before). Runs for tasks that are not recorded count too, so the number is an upper bound.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use libbpf_rs::Object;
use libbpf_rs::libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info};
use systape_format::model::Family;

use crate::kernel::programs;
use crate::own::clock;

/// Time between two reads: one is a system call per program.
const PERIOD: Duration = Duration::from_millis(500);

/// Runs of one family's programs that were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The family.
    pub family: Family,
    /// Upper bound of the number.
    pub count: u64,
    /// Time after which it was skipped.
    pub first: u64,
    /// Time before which it was skipped.
    pub last: u64,
}

#[derive(Debug)]
struct Watched {
    family: Family,
    fd: OwnedFd,
    seen: u64,
    /// It is a second program: a run of it that is skipped is missed only if the first one's was skipped too.
    second: bool,
}

/// The counters of all loaded programs.
#[derive(Debug)]
pub(crate) struct Skips {
    programs: Vec<Watched>,
    /// Added to each counter after the start: for tests, because no test can make the kernel skip a run.
    more: u64,
    looked: Instant,
    looked_ts: u64,
    seconds: Pending,
}

/// Skipped runs of second programs, until the first one is known to have run: that shows when the task next enters or
/// leaves a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    skipped: u64,
    reported: u64,
    /// At the last read.
    before: u64,
}

impl Pending {
    /// Missing runs: those pending since the last read, or at the end all; `harmless`: out of all skipped ones.
    fn take(&mut self, new: u64, harmless: u64, last: bool) -> u64 {
        self.skipped += new;
        let pending = self.skipped.saturating_sub(harmless).saturating_sub(self.reported);
        let missing = if last { pending } else { pending.min(self.before) };
        self.reported += missing;
        self.before = pending - missing;
        missing
    }
}

impl Skips {
    /// Watches the programs of `object`; runs skipped until now do not count. Each counter is `more` greater from now
    /// on than the kernel's.
    pub(crate) fn new(object: &Object, more: u64) -> Self {
        let is_loaded = |program: &libbpf_rs::Program<'_>| program.as_fd().as_raw_fd() >= 0;
        let has = |name: &str| object.progs().any(|program| program.name() == name && is_loaded(&program));
        // what a first program was skipped for the second does: only runs of that are missing
        let stood_in_for = |name: &str| has(&format!("{name}_again"));
        let loaded = object.progs().filter(is_loaded);
        let watch = |program: libbpf_rs::Program<'_>| -> Option<Watched> {
            let name = program.name().to_str()?;
            let family = programs::find(name)?.skipped().filter(|_| !stood_in_for(name))?;
            let fd = program.as_fd().try_clone_to_owned().ok()?;
            let seen = misses(&fd);
            Some(Watched { family, fd, seen, second: name.ends_with("_again") })
        };
        let programs = loaded.filter_map(watch).collect();
        let seconds = Pending::default();
        Self { programs, more, looked: Instant::now(), looked_ts: clock::monotonic(), seconds }
    }

    /// Runs skipped since the last read; reads now and then unless `last`. `harmless`: all skipped runs of second
    /// programs until now whose first had run.
    pub(crate) fn take(&mut self, last: bool, harmless: u64) -> Vec<Skipped> {
        if !last && self.looked.elapsed() < PERIOD {
            return Vec::new();
        }
        let now = clock::monotonic();
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut seconds = 0;
        for program in &mut self.programs {
            let count = misses(&program.fd) + self.more;
            let new = count.saturating_sub(std::mem::replace(&mut program.seen, count));
            match program.second {
                true => seconds += new,
                false => add(&mut skipped, program.family, new, (self.looked_ts, now)),
            }
        }
        let missing = self.seconds.take(seconds, harmless, last);
        // pending since the look before
        let from = self.looked_ts.saturating_sub(PERIOD.as_nanos() as u64 * 2);
        add(&mut skipped, Family::Syscall, missing, (from, now));
        (self.looked, self.looked_ts) = (Instant::now(), now);
        skipped
    }
}

fn add(skipped: &mut Vec<Skipped>, family: Family, count: u64, (first, last): (u64, u64)) {
    if count == 0 {
        return;
    }
    match skipped.iter_mut().find(|s| s.family == family) {
        Some(known) => {
            known.count += count;
            known.first = known.first.min(first);
        }
        None => skipped.push(Skipped { family, count, first, last }),
    }
}

fn misses(fd: &OwnedFd) -> u64 {
    program_info(fd.as_raw_fd()).map_or(0, |info| info.recursion_misses)
}

/// The kernel's count for the program behind `fd`; None when that is no program.
pub(crate) fn program_info(fd: RawFd) -> Option<bpf_prog_info> {
    let mut info = bpf_prog_info::default();
    let mut len = size_of::<bpf_prog_info>() as u32;
    // SAFETY: info is a zeroed bpf_prog_info of `len` bytes, which asks for no arrays.
    let error = unsafe { bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut len) };
    (error == 0).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_programs_count_when_the_first_did_not_run_either() {
        let mut pending = Pending::default();
        // two were skipped, of which one is known to be harmless, and at the next look both
        assert_eq!(pending.take(2, 1, false), 0);
        assert_eq!(pending.take(0, 2, false), 0);
        // one stays
        assert_eq!(pending.take(3, 4, false), 0);
        assert_eq!(pending.take(5, 4, false), 1);
        assert_eq!(pending.take(0, 9, false), 0);
        // at the end nothing more will show
        assert_eq!(pending.take(2, 9, true), 2);
        assert_eq!(pending.take(0, 9, true), 0);
    }
}

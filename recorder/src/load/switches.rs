//! Variables in shared memory, between the programs and the recorder while it runs.

use std::os::fd::AsFd;
use std::ptr;

use anyhow::{Context, Result};
use systape_bpf::wire::Snap;
use systape_bpf::{walk, window};

use super::Programs;
use crate::kernel::iterate::{iterate, open_iterator};
use crate::kernel::registers::{self, Known};
use crate::own::forced::{CheckedLedger, Poisoned};

impl Programs {
    /// Lets the kernel side note the recorder's ids, before any program runs that needs them: in a container no file
    /// has them.
    pub(super) fn note_self(&mut self) -> Result<()> {
        let link = self.skel.progs.walk_tasks.attach().context("cannot attach the task iterator")?;
        self.set_walk(walk::SELF);
        let walk = open_iterator(link.as_fd())?;
        let known = registers::read_known(walk.as_fd()).context("cannot walk the tasks")?;
        self.set_walk(walk::READ);
        // it would record itself
        anyhow::ensure!(self.own_pid() != 0, "the task iterator did not see this process");
        self.check_registers(&known);
        Ok(())
    }

    /// Programs that read wrong registers of a task must read none.
    fn check_registers(&mut self, known: &Known) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        // SAFETY: as in open_window; written by the walk.
        let read = unsafe { ptr::read_volatile(&raw const bss.own_regs) };
        if known.agrees(&read) {
            return;
        }
        // SAFETY: as in open_window.
        unsafe { ptr::write_volatile(&raw mut bss.regs_at, 0) };
        self.notes.push(registers::UNKNOWN.into());
    }

    /// Whether the programs know the place of tasks' registers.
    pub(crate) fn knows_registers(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.regs_at) } != 0)
    }

    /// This process's pid on the machine.
    pub(crate) fn own_pid(&self) -> u32 {
        // SAFETY: as in open_window; written by the kernel side.
        self.skel.maps.bss_data.as_deref().map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.own_tgid) })
    }

    /// The recorder's child `pid` is the recorded command; its others work for it, and are not looked at.
    pub(crate) fn set_command(&mut self, pid: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.own_command, pid) };
        }
    }

    /// Whether ids here differ from the machine's: this is not its first pid namespace.
    pub(crate) fn is_nested(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.own_level) } > 0)
    }

    /// Whether the ledger is checked: then it is read without pauses.
    pub(crate) fn checks_ledger(&self) -> bool {
        self.skel.maps.rodata_data.is_some_and(|options| options.ledger_check)
    }

    /// The rings were polled: every process has its quota again.
    pub(crate) fn looked(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.looks, bss.looks.wrapping_add(1)) };
        }
    }

    /// Expected calls, sum and sizes of the ledger; only with --force ledger-check.
    pub(crate) fn checked(&self, poisoned: Poisoned) -> Option<CheckedLedger> {
        let bss = self.skel.maps.bss_data.as_deref()?;
        Some(CheckedLedger {
            calls: bss.checked_calls,
            sum: bss.checked_sum,
            sizes: bss.checked_sizes.to_vec(),
            poisoned,
        })
    }

    /// Starts the recording; returns the first time of events.
    fn open_window(&mut self) -> u64 {
        let now = crate::own::clock::monotonic();
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: bss is the map's memory, mapped for as long as the skeleton lives; volatile because the programs
            // read it at the same time.
            unsafe {
                ptr::write_volatile(&raw mut bss.window_open_ts, now);
                std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
                ptr::write_volatile(&raw mut bss.window, window::OPEN);
            }
        }
        now
    }

    /// No new calls from here on; open ones are still recorded when they end.
    pub(crate) fn close_window(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.window, window::DRAINING) };
        }
    }

    /// Marks the tasks to record. What they fork from here on is marked too.
    pub(crate) fn mark(&mut self) -> Result<()> {
        self.set_walk(walk::MARK);
        self.walker()?.walk()?;
        self.set_walk(walk::READ);
        Ok(())
    }

    /// Opens the window, and returns its time and one record per task with its state then. With marks set before, no
    /// call of a target after the opening is missed.
    pub(crate) fn start(&mut self) -> Result<(u64, Vec<Snap>)> {
        let walker = self.walker()?;
        if let Some(files) = &self.skel.links.walk_files {
            let files = files.as_fd().try_clone_to_owned()?;
            self.set_walk(walk::FILES);
            walker.walk()?;
            self.set_walk(walk::READ);
            iterate(files.as_fd()).context("cannot walk the open files")?;
        }
        let opened = self.open_window();
        self.set_walk(walk::CALLS);
        let snaps = walker.walk();
        self.set_walk(walk::READ);
        Ok((opened, snaps?))
    }

    /// Purpose of the next walk.
    fn set_walk(&mut self, mode: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.walk_mode, mode) };
        }
    }

    /// Skipped runs of second programs without loss, until now.
    pub(crate) fn harmless_skips(&self) -> u64 {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.harmless_skips) })
    }
}

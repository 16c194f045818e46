//! What the programs and the recorder tell each other while it runs: variables in memory of both.

use std::os::fd::AsFd;
use std::ptr;

use anyhow::{Context, Result};
use systape_bpf::wire::Snap;
use systape_bpf::{walk, window};

use super::Programs;
use crate::forced::{Checked, Poisoned};
use crate::iterate::{iterate, open_iterator};
use crate::registers::{self, Known};

impl Programs {
    /// Has the kernel side note who the recorder is, before any program runs that must know: in a container no file tells.
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

    /// Programs that read something else than a task's registers are to read none.
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

    /// Whether the programs know where tasks' registers are.
    pub(crate) fn knows_registers(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.regs_at) } != 0)
    }

    /// This process's id on the machine.
    pub(crate) fn own_pid(&self) -> u32 {
        // SAFETY: as in open_window; written by the kernel side.
        self.skel.maps.bss_data.as_deref().map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.own_tgid) })
    }

    /// Whether ids here are not the machine's: this is not its first pid namespace.
    pub(crate) fn is_nested(&self) -> bool {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.is_some_and(|bss| unsafe { ptr::read_volatile(&raw const bss.own_level) } > 0)
    }

    /// Whether the ledger is checked: then it is read back to back.
    pub(crate) fn checks_ledger(&self) -> bool {
        self.skel.maps.rodata_data.is_some_and(|options| options.ledger_check)
    }

    /// The rings were looked at: every process has its share of them again.
    pub(crate) fn looked(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.looks, bss.looks.wrapping_add(1)) };
        }
    }

    /// With --force ledger-check: calls, their sum and sizes that the ledger must come to.
    pub(crate) fn checked(&self, poisoned: Poisoned) -> Option<Checked> {
        let bss = self.skel.maps.bss_data.as_deref()?;
        Some(Checked { calls: bss.checked_calls, sum: bss.checked_sum, sizes: bss.checked_sizes.to_vec(), poisoned })
    }

    /// Starts the recording; the time given is the first one events may have.
    fn open_window(&mut self) -> u64 {
        let now = crate::clock::monotonic();
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: bss is the map's memory, mapped for as long as the skeleton lives; volatile because the programs
            // read it at the same time.
            unsafe {
                ptr::write_volatile(&raw mut bss.window_open_ts, now);
                ptr::write_volatile(&raw mut bss.window, window::OPEN);
            }
        }
        now
    }

    /// No new calls from here on; those that are open are still recorded when they end.
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

    /// Opens the window, and tells what every task was doing then: the time of the opening, and one record per task.
    /// Marked before, no call of a target's after the opening is missed.
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

    /// What the next walk is for.
    fn set_walk(&mut self, mode: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in open_window.
            unsafe { ptr::write_volatile(&raw mut bss.walk_mode, mode) };
        }
    }

    /// Skipped runs of second programs that cost nothing, until now.
    pub(crate) fn harmless_skips(&self) -> u64 {
        let bss = self.skel.maps.bss_data.as_deref();
        // SAFETY: as in own_pid.
        bss.map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.harmless_skips) })
    }
}

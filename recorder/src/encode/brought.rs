//! Which task each CPU was last brought to by a switch.

/// Whom the last switch of a CPU brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brought {
    /// Its process; 0 = it is not recorded, or is none.
    pub pid: u32,
    /// When, CLOCK_MONOTONIC ns.
    pub ts: u64,
}

/// [`Brought`] of each CPU.
#[derive(Debug, Default)]
pub(super) struct BroughtTo(Vec<Brought>);

impl BroughtTo {
    /// CPU numbers from here on are damage.
    const CPUS: usize = 1 << 16;

    /// What the CPU had before `by`.
    pub(super) fn replace(&mut self, cpu: u32, by: Brought) -> Brought {
        let cpu = cpu as usize;
        if cpu >= Self::CPUS {
            return Brought::default();
        }
        if cpu >= self.0.len() {
            self.0.resize(cpu + 1, Brought::default());
        }
        std::mem::replace(&mut self.0[cpu], by)
    }
}

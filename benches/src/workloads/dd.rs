//! dd torture: two syscalls a block that do next to nothing. The most a tracer of syscalls can cost.

use std::process::Command;

use super::{CostRelation, Workload, time};

/// A million syscalls.
pub(super) const WORKLOAD: Workload = Workload {
    name: "dd",
    title: "dd: the smallest calls there are",
    text: |n| format!("dd if=/dev/zero of=/dev/null bs=1 count={n}"),
    unit: "blocks",
    cost: CostRelation::Added,
    full: 512_000,
    quick: 51_200,
    short: 25_600,
    least_rounds: 15,
    pinned: false,
    read: true,
    needs: &[],
    prepare: |_, _| Ok(None),
    run: |_, n| time(n, Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=1"]).arg(format!("count={n}"))),
};

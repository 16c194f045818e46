//! What a cut leaves out of session, checkpoints and names: what nothing in it refers to.

use std::collections::HashSet;

use super::lives::Lives;
use crate::cgroups::container;
use crate::model::{Appeared, Checkpoint, Container, FdTable, Session, Symbols};
use crate::rows::Places;

/// Leaves out users, cgroups and containers.
pub(super) fn session(session: &mut Session, lives: &Lives) {
    session.users.retain(|(uid, _)| lives.users().contains(uid));
    cgroups(&mut session.cgroups, &mut session.containers, lives);
}

/// Leaves out cgroups and containers that appeared during the recording.
pub(super) fn appeared(appeared: &mut Appeared, lives: &Lives) {
    cgroups(&mut appeared.cgroups, &mut appeared.containers, lives);
}

fn cgroups(cgroups: &mut Vec<(u64, Vec<u8>)>, containers: &mut Vec<Container>, lives: &Lives) {
    cgroups.retain(|(id, _)| lives.cgroups().contains(id));
    let id = |path: &[u8]| container(&String::from_utf8_lossy(path)).map(str::to_owned);
    let named: HashSet<String> = cgroups.iter().filter_map(|(_, path)| id(path)).collect();
    containers.retain(|container| named.contains(&*String::from_utf8_lossy(&container.id)));
}

/// Leaves out the processes of a checkpoint that do not matter.
pub(super) fn checkpoint(checkpoint: &mut Checkpoint, lives: &Lives) {
    let kept: HashSet<u32> = checkpoint.tasks.iter().filter(|task| lives.matters(task)).map(|task| task.utid).collect();
    checkpoint.tasks.retain(|task| lives.matters(task));
    let of_thread = |table: &FdTable| table.thread != 0 && kept.contains(&table.thread);
    checkpoint.fd_tables.retain(|table| lives.upid_matters(table.upid) || of_thread(table));
    checkpoint.commands.retain(|line| lives.upid_matters(line.upid));
    checkpoint.in_flight.retain(|call| kept.contains(&call.utid));
    checkpoint.run.retain(|run| kept.contains(&run.utid));
}

/// Leaves out names of places that no stack has. False: nothing is left.
pub(super) fn symbols(symbols: &mut Symbols, places: &Places) -> bool {
    let used: Vec<_> = symbols.mappings.iter().map(|mapping| places.get(mapping)).collect();
    let mut numbers = vec![0; used.len()];
    let mut next = 0;
    for (number, used) in numbers.iter_mut().zip(&used) {
        *number = next;
        next += u32::from(used.is_some());
    }
    let at = |mapping: u32| used.get(mapping as usize).copied().flatten();
    symbols.symbols.retain(|symbol| at(symbol.mapping).is_some_and(|offsets| offsets.contains(&symbol.offset)));
    symbols.failures.retain(|(mapping, _)| at(*mapping).is_some());
    symbols.symbols.iter_mut().for_each(|symbol| symbol.mapping = numbers[symbol.mapping as usize]);
    symbols.failures.iter_mut().for_each(|(mapping, _)| *mapping = numbers[*mapping as usize]);
    let mut kept = used.iter().map(Option::is_some);
    symbols.mappings.retain(|_| kept.next().unwrap_or(false));
    !(symbols.symbols.is_empty() && symbols.failures.is_empty())
}

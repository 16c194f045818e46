//! Processes that the freezer of a control group held: whoever lets them go on wakes them from a write to its file.

use std::collections::BTreeMap;

use crate::reports::traced::Traced;
use systape_answers::derive::cost::pattern::{CausePattern, Files, PatternTime};
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::runs::keys::Place;
use systape_answers::derive::why::finding::{Finding, Severity, Who};
use systape_answers::derive::why::floor::Floor;
use systape_events::values::words::escaped;

/// Name of the rule.
const RULE: &str = "stopped";

/// The files of cgroup v1 and v2 that freeze and thaw a group.
const FREEZERS: [&[u8]; 2] = [b"/freezer.state", b"/cgroup.freeze"];

/// Waits that one writer ended.
#[derive(Default)]
struct Waits {
    count: u64,
    ns: u64,
    max: u64,
    span: Option<(u64, u64)>,
    time: Vec<CausePattern>,
}

/// Waits of the path that ended when a group was thawed.
pub(super) fn find(traced: &Traced, threads: &[Logged], floor: Floor) -> Vec<Finding> {
    let mut found: BTreeMap<(Who, Who, Vec<u8>), Waits> = BTreeMap::new();
    let path = traced.path.handovers.iter().zip(&traced.waits).zip(&traced.wakes);
    for ((wait, spent), wake) in path.filter(|((wait, _), _)| !wait.made) {
        let who = |id: u32, ts: u64| {
            let task = threads.get(id as usize)?.task_at(ts)?;
            Some(Who { comm: task.comm.clone(), pid: Some(task.pid) })
        };
        let Some(group) = wake.calls.iter().find_map(|of| traced.names.name(of.file).and_then(group)) else { continue };
        let (Some(waiter), Some(by)) = (who(wait.thread, wait.from), who(wait.by, wait.to)) else { continue };
        let call = match spent.most().map(|most| most.place) {
            Some(Place::Call(call)) => traced.calls[&call].clone(),
            _ => String::new(),
        };
        let waits = found.entry((waiter.clone(), by, group.to_vec())).or_default();
        let ns = wait.to - wait.from;
        (waits.count, waits.ns, waits.max) = (waits.count + 1, waits.ns + ns, waits.max.max(ns));
        let (first, last) = waits.span.unwrap_or((wait.from, wait.to));
        waits.span = Some((first.min(wait.from), last.max(wait.to)));
        let time = PatternTime::In { call, files: Files::Any, loops: false };
        let span = Some((wait.from, wait.to));
        // frozen asleep in a call, or on its way
        let pattern = |time| CausePattern { comm: waiter.comm.clone(), pid: waiter.pid, parent: None, time, span };
        waits.time.extend([time, PatternTime::Stopped].map(pattern));
    }
    let dear = found.into_iter().filter(|(_, waits)| floor.passes(waits.ns));
    dear.map(|((who, by, group), waits)| finding(who, by, group, waits)).collect()
}

/// The group whose freezer `file` is.
fn group(file: &[u8]) -> Option<&[u8]> {
    FREEZERS.iter().find_map(|end| file.strip_suffix(*end)).filter(|group| !group.is_empty())
}

fn finding(who: Who, by: Who, group: Vec<u8>, waits: Waits) -> Finding {
    let pid = by.pid.unwrap_or(0);
    Finding {
        rule: RULE,
        class: Severity::Time,
        cost: Some(waits.ns),
        time: waits.time,
        processes: 1,
        count: waits.count,
        max: Some(waits.max),
        span: waits.span,
        text: format!(
            "was frozen {{count}} times with the control group {}, until {} {pid} thawed it, the longest {{max}}",
            escaped(&group),
            escaped(&by.comm)
        ),
        command: format!("states --by tid,state,syscall -p {}", who.pid.unwrap_or(0)),
        object: group,
        who,
        by: Some(by),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_by_their_freezers() {
        assert_eq!(group(b"/sys/fs/cgroup/freezer/db/freezer.state"), Some(&b"/sys/fs/cgroup/freezer/db"[..]));
        assert_eq!(group(b"/sys/fs/cgroup/db.slice/cgroup.freeze"), Some(&b"/sys/fs/cgroup/db.slice"[..]));
        assert_eq!(group(b"/sys/fs/cgroup/db.slice/cgroup.procs"), None);
        assert_eq!(group(b"/cgroup.freeze"), None);
    }
}

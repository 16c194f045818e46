//! Processes that died of a signal, and who sent it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::super::cpu::wider;
use super::super::finding::{Finding, Severity};
use super::super::limits::Limits;
use super::{Death, Inputs, WhyRule, command};
use crate::derive::signals::via;
use systape_abi::signo::{SIGABRT, SIGKILL};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "death",
    finds: "a process that died of a signal, with its sender; one that the OOM killer chose",
    limits: "any. A SIGTERM, SIGINT, SIGHUP and the like is a notice, none where it came from the parent or the process itself; SIGPIPE is none",
    needs: &[],
    judge,
};

/// SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS beside SIGABRT and SIGKILL: something broke.
fn broke(sig: u32) -> bool {
    matches!(sig, SIGABRT | SIGKILL | 4 | 5 | 7 | 8 | 11 | 24 | 25 | 31)
}

fn judge(inputs: &Inputs) -> Vec<Finding> {
    const SIGPIPE: u32 = 13;
    let worth = |death: &&Death| death.sig != SIGPIPE && (broke(death.sig) || !death.by_family);
    // processes of one name that one sender ended the same way are one cause
    let mut causes: BTreeMap<(Vec<u8>, String), Finding> = BTreeMap::new();
    for death in inputs.deaths.iter().filter(worth) {
        let one = finding(death, &inputs.limits);
        match causes.entry((one.who.comm.clone(), one.text.clone())) {
            Entry::Vacant(place) => {
                place.insert(one);
            }
            Entry::Occupied(mut known) => join(known.get_mut(), &one),
        }
    }
    causes.into_values().collect()
}

/// Adds the death of another process of its name, of the same cause.
fn join(all: &mut Finding, one: &Finding) {
    all.processes += one.processes;
    all.count += one.count;
    all.who.pid = all.who.pid.filter(|pid| Some(*pid) == one.who.pid);
    all.span = one.span.map_or(all.span, |(first, last)| wider(all.span, first, last));
    all.command = format!("kills {}", command::task(&all.who));
}

fn finding(death: &Death, limits: &Limits) -> Finding {
    let name = via::name(death.sig);
    let by = match &death.sender {
        Some((comm, pid)) if !death.oom && Some(*pid) != death.who.pid => {
            format!(", sent by {} {pid} via {}", escaped(comm), death.via)
        }
        _ if death.oom => {
            let limit = death.who.pid.and_then(|pid| limits.oom(pid));
            limit.map_or_else(String::new, |limit| format!(" for {limit}"))
        }
        _ if death.by_itself => format!(", sent by itself via {}", death.via),
        _ if death.via == "unknown" => "; who sent it is not known".to_owned(),
        _ => format!(" via {}", death.via),
    };
    let maybe = if death.maybe { "perhaps " } else { "" };
    let what = if death.oom { "killed by the OOM killer".to_owned() } else { format!("died {maybe}of {name}") };
    Finding {
        rule: RULE.name,
        class: if broke(death.sig) { Severity::Broken } else { Severity::Notice },
        who: death.who.clone(),
        processes: 1,
        object: name.into_bytes(),
        count: 1,
        span: Some((death.ts, death.ts)),
        text: format!("{what}{by}"),
        command: format!("kills {}", command::task(&death.who)),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::*;

    #[test]
    fn deaths_have_senders() {
        let death = |sig, by_family| Death {
            who: Who { comm: b"app".to_vec(), pid: Some(7) },
            sig,
            sender: Some((b"sh".to_vec(), 9)),
            by_family,
            via: "kill",
            ..Death::default()
        };
        let found = |death| judge(&Inputs { deaths: vec![death], ..Inputs::none() });
        let killed = found(death(9, true));
        assert_eq!(
            (killed[0].text.as_str(), killed[0].class),
            ("died of SIGKILL, sent by sh 9 via kill", Severity::Broken)
        );
        assert_eq!(found(death(15, false))[0].class, Severity::Notice);
        assert_eq!((found(death(15, true)), found(death(13, false))), (vec![], vec![]));
        let own = Death { sender: Some((b"app".to_vec(), 7)), by_itself: true, ..death(6, true) };
        assert_eq!(found(own.clone())[0].text, "died of SIGABRT, sent by itself via kill");
        assert_eq!(found(Death { via: "fault", by_itself: false, ..own })[0].text, "died of SIGABRT via fault");
        assert_eq!(found(Death { oom: true, ..death(9, false) })[0].text, "killed by the OOM killer");
    }

    #[test]
    fn one_sender_is_one_line() {
        let death = |pid, by, ts| Death {
            who: Who { comm: b"app".to_vec(), pid: Some(pid) },
            sig: 9,
            sender: Some((b"sh".to_vec(), by)),
            via: "kill",
            ts,
            ..Death::default()
        };
        let found =
            judge(&Inputs { deaths: vec![death(7, 1, 70), death(8, 1, 50), death(9, 2, 60)], ..Inputs::none() });
        let told: Vec<_> =
            found.iter().map(|one| (one.who.pid, one.processes, one.span, one.command.as_str())).collect();
        assert_eq!(told, [(None, 2, Some((50, 70)), "kills --comm=app"), (Some(9), 1, Some((60, 60)), "kills -p 9")]);
    }
}

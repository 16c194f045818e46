//! Attempts that fail and are made again after a sleep: a server that does not listen yet, a lock file of another program.

use std::collections::BTreeSet;

use super::super::finding::{Finding, wall};
use super::super::talk::For;
use super::super::talk::together::{Talked, Together, together};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::{errno_text, escaped};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "retries",
    finds: "sleeps of a thread between attempts that failed: to connect to one address, to open, make, lock or look for one file",
    limits: "a thread that sleeps, or waits for a program that does, for half of the time between two attempts; looking for a file counts once it has ended; their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let errno = |one: &Talked| match one.what {
        For::Retry(_, errno) => Some(errno),
        _ => None,
    };
    let errnos: BTreeSet<u16> = inputs.talked.iter().filter_map(errno).collect();
    let mut found = Vec::new();
    for errno in errnos {
        let rows = together(&inputs.talked, |one| match &one.what {
            For::Retry(to, of) if *of == errno => Some(to.to_vec()),
            _ => None,
        });
        let dear = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
        found.extend(dear.map(|(tried, row)| finding(tried, errno, &row)));
    }
    found
}

fn finding(tried: (Vec<u8>, String, Vec<u8>), errno: u16, row: &Together) -> Finding {
    let found = super::waited(&RULE, tried, row);
    let (call, on, why) = (&found.call, escaped(&found.object), errno_text(errno));
    Finding {
        errno,
        text: format!(
            "tried {{count}} times again after a sleep: {call} of {on} failed ({why}), the longest pause {{max}}"
        ),
        command: format!("-e {call} --failure {}", command::task(&found.who)),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn pauses_between_attempts_are_found() {
        let found = |one| judge(&Inputs { talked: vec![one], ..Inputs::none() });
        let refused = found(talked("connect", For::Retry(b"10.0.0.2:80".as_slice().into(), 111), 9, 900_000_000));
        assert_eq!((refused[0].cost, refused[0].errno), (Some(900_000_000), 111), "the sleeps are its cost");
        assert_eq!(
            refused[0].text,
            "tried {count} times again after a sleep: connect of 10.0.0.2:80 failed (ECONNREFUSED), the longest pause {max}"
        );
        assert_eq!(
            found(talked("openat", For::Retry(b"/run/x".as_slice().into(), 17), 1, 9_000_000)),
            [],
            "below the floor"
        );
    }
}

//! Pipes whose other end is slow: who waits is only the carrier, the other end's work is the root.

use super::super::finding::{Finding, wall};
use super::super::talk::For;
use super::super::talk::Way;
use super::super::talk::together::{Talked, Together, together};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "pipes",
    finds: "waits for the other end of a pipe: for room in it, or of a pipeline for something to read from standard input; the process at the other end is named",
    limits: "waits of 1 ms; their sum is above the floor; reads only where the one process at the other end did something for half of that time, sleeps left out",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let mut found = Vec::new();
    for way in [Way::In, Way::Out] {
        let rows = together(&inputs.talked, |one| waited(one, way));
        let dear = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
        found.extend(dear.map(|(waited, row)| finding(waited, &row, way)));
    }
    found
}

/// The pipe that was waited for in that direction.
fn waited(one: &Talked, direction: Way) -> Option<Vec<u8>> {
    let For::Pipe(name, way) = &one.what else { return None };
    // who waits to read may wait for work; who waits for room has some
    let counts = direction == Way::Out || (one.other.is_some() && !one.rests());
    (*way == direction && counts).then(|| name.to_vec())
}

fn finding(waited: (Vec<u8>, String, Vec<u8>), row: &Together, way: Way) -> Finding {
    let found = super::waited(&RULE, waited, row);
    let (call, name) = (&found.call, escaped(&found.object));
    let other = row.other.as_ref().map(|other| format!("{}{}", escaped(&other.comm), super::pid(other)));
    let other = other.unwrap_or_else(|| "its other end".to_owned());
    let what = match way {
        Way::In => format!("for {other} to write to {name}"),
        Way::Out => format!("for {other} to read from {name}, which was full"),
    };
    Finding {
        text: format!("waited {{count}} times in {call} {what}, the longest {{max}}"),
        command: format!("-e {call} {}", command::task(&found.who)),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn the_process_at_the_other_end_is_named() {
        let found = |call, way, other| {
            let one = Talked { other, ..talked(call, For::Pipe(b"pipe:[7]".as_slice().into(), way), 9, 900_000_000) };
            judge(&Inputs { talked: vec![one], ..Inputs::none() })
        };
        let other = |busy| Some((Who { comm: b"gzip".to_vec(), pid: Some(9) }, busy));
        let full = found("write", Way::Out, other(800_000_000));
        assert_eq!(
            full[0].text,
            "waited {count} times in write for gzip 9 to read from pipe:[7], which was full, the longest {max}"
        );
        assert_eq!(full[0].by.as_ref().and_then(|by| by.pid), Some(9));
        assert!(found("write", Way::Out, None)[0].text.contains("for its other end to read"));
        assert!(found("read", Way::In, other(800_000_000))[0].text.contains("for gzip 9 to write to pipe:[7]"));
        assert_eq!(found("read", Way::In, other(8_000_000)), [], "it had nothing to write");
        assert_eq!(found("read", Way::In, None), [], "who would write is not known");
    }
}

//! Segments of TCP connections that were sent again.

use super::super::finding::{Finding, Severity};
use super::{Inputs, WhyRule};
use systape_events::values::words::escaped;

/// Fewer are those of any network.
const SEGMENTS: u64 = 5;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "retransmits",
    finds: "segments of TCP connections that were sent again, by the other end's address",
    limits: "5 segments",
    needs: &[systape_format::model::Family::Net],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let many = inputs.peers.iter().filter(|(_, again)| again.segments >= SEGMENTS);
    many.map(|(peer, again)| Finding {
        rule: RULE.name,
        class: Severity::Notice,
        object: peer.clone(),
        count: again.segments,
        span: again.span,
        text: format!("{{count}} segments to {} were sent again", escaped(peer)),
        command: "-e socket:retransmit".to_owned(),
        ..Finding::default()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Again;
    use super::*;

    #[test]
    fn some_are_normal() {
        let peer = |segments| (b"10.0.0.2:80".to_vec(), Again { segments, span: None });
        let found = judge(&Inputs { peers: vec![peer(4), peer(5)], ..Inputs::none() });
        assert_eq!((found.len(), found[0].text.as_str()), (1, "{count} segments to 10.0.0.2:80 were sent again"));
    }
}

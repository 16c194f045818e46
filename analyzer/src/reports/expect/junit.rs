//! JudgedExpectation expectations as JUnit's XML, which CI systems show.

use std::fmt::Write as _;

use super::judge::{ExpectationOutcome, JudgedExpectation};
use systape_answers::render::xml::escaped;

/// The file; `tape`: its name.
pub(super) fn of(tape: &str, judged: &[JudgedExpectation<'_>]) -> String {
    let count = |outcome: &ExpectationOutcome| judged.iter().filter(|judged| judged.outcome == *outcome).count();
    let (failures, errors) = (count(&ExpectationOutcome::Fails), count(&ExpectationOutcome::NotKnown));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">\n",
        escaped(tape),
        judged.len()
    );
    for JudgedExpectation { of, outcome, found, why } in judged {
        let _ = write!(xml, "<testcase classname=\"analyze assert\" name=\"{}\"", escaped(&of.name));
        let element = match outcome {
            ExpectationOutcome::Holds => {
                xml.push_str("/>\n");
                continue;
            }
            ExpectationOutcome::Fails => "failure",
            ExpectationOutcome::NotKnown => "error",
        };
        let found = found.as_deref().or(why.as_deref()).unwrap_or("not known");
        let _ = writeln!(
            xml,
            ">\n<{element} message=\"{}\">{}\nanalyze {}</{element}>\n</testcase>",
            escaped(&format!("expected {}, found {found}", of.condition())),
            escaped(why.as_deref().unwrap_or("")),
            escaped(&of.command()),
        );
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

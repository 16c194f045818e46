//! Links of the manual: each leads to a file of the repository, and to a heading of it if it names one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::manual::pages::{pages, root};

/// Pages beside the manual whose links are looked at, too.
const BESIDE: [&str; 6] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "schemas/CHANGES.md",
    "testdata/guides/README.md",
];

/// Targets of links and pictures outside code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with("    ") {
            continue;
        }
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        found.extend(plain.split("](").skip(1).filter_map(|rest| Some((at + 1, rest.split_once(')')?.0.to_owned()))));
    }
    found
}

/// What a link to a heading of `text` says, as GitHub and mdBook make it; ids that stand in the page, too.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if fenced {
            continue;
        }
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            anchors.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
        anchors.extend(line.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    anchors
}

#[test]
fn links_lead_somewhere() {
    let beside = BESIDE.map(|name| (name.to_owned(), fs::read_to_string(root().join(name)).unwrap()));
    let all = pages().into_iter().map(|page| (page.name, page.text)).chain(beside);
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for (name, text) in all {
        for (line, target) in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            looked += 1;
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let place = Path::new(&name).parent().unwrap().join(file);
            let path = if file.is_empty() { root().join(&name) } else { root().join(&place) };
            if !path.exists() {
                wrong.push(format!("{name}:{line}: {target}: there is no such file"));
            } else if !heading.is_empty() && !anchors(&fs::read_to_string(&path).unwrap()).contains(heading) {
                wrong.push(format!("{name}:{line}: {target}: there is no such heading"));
            }
        }
    }
    assert!(looked > 200 && wrong.is_empty(), "{looked} links\n{}", wrong.join("\n"));
}

/// Who reads the book finds every page in its list.
#[test]
fn the_list_of_the_site_has_every_page() {
    let list = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = targets(&list).into_iter().map(|(_, target)| format!("docs/{target}")).collect();
    let there = pages()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| !["README.md", "docs/SUMMARY.md"].contains(&name.as_str()));
    assert_eq!(listed, there.collect::<BTreeSet<_>>());
}

#[test]
fn headings_are_called_as_links_call_them() {
    let of = |text: &str| anchors(text).into_iter().next().unwrap();
    assert_eq!(of("## How exact a number is"), "how-exact-a-number-is");
    assert_eq!(of("### Keys of `--by`"), "keys-of---by");
    assert_eq!(targets("a [b](c.md) `[x](y)` ![d](e.png)").len(), 2);
}

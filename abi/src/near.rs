//! Known names similar to a misspelt one.

/// Longest name that is compared: it must not cost its length times that of all names.
const LONGEST: usize = 64;
/// Most suggested names.
const MOST: usize = 3;

/// Shortest name in which a wrong letter makes no other word, as `date` of `rate`.
const LONG: usize = 8;

/// Edit distance: insertions and deletions of a byte and exchanges of two neighbours count 1, a replacement `replacement`. Time grows with the
/// product of the lengths.
fn distance(a: &[u8], b: &[u8], replacement: usize) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + replacement * usize::from(a[i] != b[j]);
            let least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            let exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            row.push(if exchanged { least.min(before[j - 1] + 1) } else { least });
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// How far a name may be away from `name`. Few mistype the first letter: `clock` is no `block` and no `locks`.
fn limit(name: &[u8], known: &[u8]) -> usize {
    if name.first() == known.first() { ((name.len() + 1) / 3).clamp(1, 3) } else { 1 }
}

/// Words that other programs take, and for those of each row what to type here.
pub type Habits = [(&'static [&'static str], &'static str)];

/// What `habits` have for `word`.
pub fn instead_of(habits: &Habits, word: &str) -> Option<&'static str> {
    habits.iter().find(|(words, _)| words.contains(&word)).map(|(_, text)| *text)
}

/// Up to three of `known` similar to `name`, the nearest first: at most a third of its length away, and at most three edits.
/// Upper case counts as lower case.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let lower = name.to_ascii_lowercase();
    let near = known.into_iter().filter_map(|known| {
        let replacement = if lower.len() < LONG { 2 } else { 1 };
        let distance = distance(lower.as_bytes(), known.as_bytes(), replacement);
        (distance <= limit(lower.as_bytes(), known.as_bytes())).then_some((distance, known))
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance(b"openat", b"openat", 2), 0);
        assert_eq!(distance(b"opennat", b"openat", 2), 1);
        assert_eq!(distance(b"", b"abc", 2), 3);
        assert_eq!(distance(b"abc", b"", 2), 3);
        assert_eq!(distance(b"kitten", b"sitting", 2), 5);
        assert_eq!(distance(b"raed", b"read", 2), 1);
        assert_eq!(distance(b"ba", b"abc", 2), 2);
    }

    #[test]
    fn few_names_are_near() {
        let known = ["for", "freq", "failure", "format"];
        assert_eq!(nearest("fro", known), ["for"]);
        assert_eq!(nearest("FORMTA", known)[0], "format");
        assert!(nearest("nothing-like-it", known).is_empty());
        assert!(nearest("", known).is_empty());
        let far = [("caller", "tables"), ("grep", "tree"), ("trace", "rate"), ("tree", "freq"), ("port", "sort")];
        let others = [
            ("clock", "block"),
            ("date", "rate"),
            ("get", "net"),
            ("host", "hist"),
            ("import", "export"),
            ("clock", "locks"),
        ];
        for (far, known) in far.into_iter().chain(others) {
            assert!(nearest(far, [known]).is_empty(), "{far}");
        }
        for (near, known) in
            [("coumt", "count"), ("raed", "read"), ("hwy", "why"), ("ills", "kills"), ("locs", "locks")]
        {
            assert_eq!(nearest(near, [known]), [known]);
        }
        assert!(nearest(&"x".repeat(100_000), known).is_empty());
        assert_eq!(nearest("ab", ["abc", "abd", "abe", "abf"]).len(), 3);
    }
}

//! Shell-like patterns on bytes: `*`, `?`, everything else itself.

/// Whether all of `text` matches `pattern`. Linear in practice: only the last `*` is ever tried again.
///
/// ```
/// # use systape_events::values::glob::matches;
/// assert!(matches(b"kwork*", b"kworker/0:1"));
/// assert!(!matches(b"ssh", b"sshd"));
/// ```
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("?", "", false),
            ("??", "ab", true),
            ("*.so", "libc.so", true),
            ("a", "b", false),
            ("a*a", "a", false),
            ("***", "x", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}

//! Text in XML.

/// Text in an element or an attribute; letters for which XML has no place, and those that act on a terminal, are U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_what_it_stands_in() {
        assert_eq!(escaped("a<b>&\"'\u{1b}[0m\u{ffff}"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}[0m\u{fffd}");
    }
}

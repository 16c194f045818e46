//! Text in XML.

/// What stands for a letter that would be markup, in XML and in HTML; None: it stands for itself.
pub fn entity(letter: char) -> Option<&'static str> {
    Some(match letter {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        _ => return None,
    })
}

/// Text in an element or an attribute; letters for which XML has no place, and those that act on a terminal, are U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match (entity(letter), letter) {
            (Some(entity), _) => out.push_str(entity),
            (None, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            (None, letter) if letter.is_control() && letter != '\n' => out.push('\u{fffd}'),
            (None, letter) => out.push(letter),
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

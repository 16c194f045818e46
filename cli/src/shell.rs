//! Lines as they are typed at a shell.

/// The words of `line` as a shell has them: quotes hold spaces together and are taken away. Nothing else is special.
pub fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => all.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    all.extend((!word.is_empty()).then_some(word));
    all
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_hold_spaces() {
        assert_eq!(words("record  'ls | wc -l' -o \"a b\".tape "), ["record", "ls | wc -l", "-o", "a b.tape"]);
        assert!(words("").is_empty());
    }
}

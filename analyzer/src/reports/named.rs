//! Values of keys that mean the same in several tapes: by name, without what is of one boot.

use systape_answers::keys::RowKeys;
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_events::group::by::GroupKey;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// Of several tapes, before the other columns; `top` has those of these that `--by` names:
    pub TAPES = "tapes" {
        host: Str key [Host] "name of the machine that was recorded; null: not known"
        tape: Str key [Path] "path of the file, as named or found"
    }
}

/// One value of the keys, as its tape has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    /// A text for each key.
    pub texts: Vec<String>,
    /// A cell for each of its columns.
    pub cells: Vec<Cell<'static>>,
}

/// What makes keys of two tapes equal: the JSON of each key's value, or its text if that is null.
pub(crate) type Identity = Vec<Vec<u8>>;

/// Bytes that a key takes in memory, roughly.
pub(crate) fn bytes(identity: &Identity, named: &Named) -> usize {
    const BESIDE: usize = 48;
    let identity = identity.iter().map(|part| BESIDE + part.len());
    let texts = named.texts.iter().map(|text| BESIDE + text.len());
    // a cell has no more text than its text
    let cells = named.cells.len() * (size_of::<Cell<'_>>() + BESIDE);
    identity.chain(texts.clone()).chain(texts).sum::<usize>() + cells
}

/// Identity and names of a key: the same key in another tape has the same identity.
pub(crate) fn identify(by: &[GroupKey], keys: &RowKeys<'_>) -> (Identity, Named) {
    let text = |by: &GroupKey| {
        let text = keys.text(*by);
        without_number(text.as_bytes()).map(escaped).unwrap_or(text)
    };
    let texts: Vec<String> = by.iter().map(text).collect();
    let (mut identity, mut cells) = (Identity::new(), Vec::new());
    let columns = by::columns(by);
    by::each(by, |key, name| {
        let cell = anonymous(keys.cell(key, name));
        if by::is_value(key, name) || name == "syscall" {
            let mut part = Vec::new();
            match (cell.is_null(), columns.get(cells.len())) {
                (false, Some(column)) => cell.json(column.ty, &mut part),
                // no JSON begins with it
                _ => part.extend(
                    by.iter().position(|by| *by == key).map(|at| format!("?{}", texts[at])).unwrap_or_default().bytes(),
                ),
            }
            identity.push(part);
        }
        cells.push(cell.into_owned());
    });
    (identity, Named { texts, cells })
}

/// A cell without the number of a pipe or socket.
fn anonymous(cell: Cell<'_>) -> Cell<'_> {
    match &cell {
        Cell::Text(text) => without_number(text).map(|kind| Cell::from(kind.to_vec())).unwrap_or(cell),
        _ => cell,
    }
}

/// `pipe` of `pipe:[4711]`, and `/tmp/#` of `/tmp/#4711 (deleted)`, a file without a name (O_TMPFILE): the kernel numbers these anew each time, so
/// no other tape has the same. None: it is no such name.
fn without_number(name: &[u8]) -> Option<&[u8]> {
    if let Some(number) = name.strip_suffix(b" (deleted)") {
        let (before, number) = number.split_at(number.iter().rposition(|byte| *byte == b'#')? + 1);
        let plain = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        return (plain && before.ends_with(b"/#")).then_some(before);
    }
    let at = name.windows(2).position(|two| two == b":[")?;
    let (kind, rest) = name.split_at(at);
    let number = rest.strip_prefix(b":[")?.strip_suffix(b"]")?;
    let plain = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    (plain && [&b"pipe"[..], b"socket"].contains(&kind)).then_some(kind)
}

impl Named {
    /// What both tapes say of the same key.
    pub(crate) fn agreed(&self, other: &Self) -> Self {
        let both = |(one, other): (&Cell<'static>, &Cell<'static>)| if one == other { one.clone() } else { Cell::Null };
        Self { texts: self.texts.clone(), cells: self.cells.iter().zip(&other.cells).map(both).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_boot_are_left_out() {
        assert_eq!(without_number(b"pipe:[4711]"), Some(&b"pipe"[..]));
        assert_eq!(without_number(b"socket:[1]"), Some(&b"socket"[..]));
        assert_eq!(without_number(b"/tmp/#17 (deleted)"), Some(&b"/tmp/#"[..]));
        for whole in [
            "/a/b#1 (deleted)",
            "/a/#x (deleted)",
            "/a/#1",
            "/a (deleted)",
            "pipe:[]",
            "pipe:[4a]",
            "/tmp/pipe:[4]",
            "pipe:[4]x",
            "anon_inode:[eventpoll]",
            "UNIX:[/run/a]",
            "",
        ] {
            assert_eq!(without_number(whole.as_bytes()), None, "{whole}");
        }
    }

    #[test]
    fn what_the_tapes_say_differently_of_a_key_is_null() {
        let named = |id: u32| Named { texts: vec!["/a".to_owned()], cells: vec![Cell::from("/a"), Cell::from(id)] };
        assert_eq!(named(7).agreed(&named(7)), named(7));
        assert_eq!(named(7).agreed(&named(8)).cells, [Cell::from("/a"), Cell::Null]);
    }
}

//! Environment variables that `--env` keeps of each process.

use anyhow::{Result, bail};
use systape_bpf::wire::Environ;

/// Most variables.
const MOST: usize = 16;
/// Most bytes of a value; a longer one is not known.
const MOST_VALUE: usize = 256;
/// Most bytes of an environment that are read; variables behind them are not known.
pub(crate) const MOST_BYTES: usize = 128 << 10;

/// Names of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironKeys(Vec<String>);

impl EnvironKeys {
    /// The names as typed.
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut keys: Vec<String> = Vec::new();
        for word in words {
            if word.contains('=') {
                bail!("--env takes names of variables to keep; to set one for the command: env {word} record ...");
            }
            if word.is_empty() || word.contains('\0') {
                bail!("--env {word}: give names of environment variables, such as JOB_ID,USER");
            }
            if !keys.contains(word) {
                keys.push(word.clone());
            }
        }
        if keys.len() > MOST {
            bail!("--env: {} variables; a tape takes {MOST}", keys.len());
        }
        Ok(Self(keys))
    }

    /// Whether none is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The variables of an environment, as a task has them on a tape. `whole`: `block` has all of it.
    pub(crate) fn kept(&self, block: &[u8], whole: bool) -> Vec<u8> {
        let entries = || block.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        // a program may write something else there, such as its title (setproctitle)
        let sound = whole && entries().all(|entry| entry.contains(&b'='));
        let mut kept = Vec::new();
        for key in self.names() {
            let value = entries().find_map(|entry| entry.strip_prefix(key.as_bytes())?.strip_prefix(b"="));
            // the last one may be cut
            match value.filter(|value| value.len() <= MOST_VALUE && (whole || !block.ends_with(value))) {
                Some(value) => {
                    [key.as_bytes(), b"=", value, b"\0"].iter().for_each(|part| kept.extend_from_slice(part))
                }
                None if sound && value.is_none() => {}
                None => [key.as_bytes(), b"\0"].iter().for_each(|part| kept.extend_from_slice(part)),
            }
        }
        if kept.is_empty() && !self.is_empty() {
            kept.push(0);
        }
        kept
    }
}

/// The environment of a program that starts, of which records have parts.
#[derive(Debug, Default)]
pub(crate) struct EnvironParts {
    bytes: Vec<u8>,
    /// Of what exec.
    of: (u32, u64, u32),
}

impl EnvironParts {
    /// Adds a part. Returns the environment and whether it is all of it, with the last part; None: more is to come, or a
    /// part was lost.
    pub(crate) fn add(&mut self, record: &Environ, bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
        let of = (record.id.tid, record.id.start, record.full);
        if record.offset == 0 {
            (self.bytes, self.of) = (Vec::new(), of);
        }
        let at = record.offset as usize;
        if self.of != of || self.bytes.len() != at || at + bytes.len() > MOST_BYTES {
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        let whole = self.bytes.len() == record.full as usize;
        (whole || record.last != 0).then(|| (std::mem::take(&mut self.bytes), whole))
    }
}

#[cfg(test)]
mod tests {
    use systape_bpf::wire::Ident;

    use super::*;

    fn keys(words: &str) -> EnvironKeys {
        EnvironKeys::parse(&words.split(',').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn variables_are_set_or_not_or_not_known() {
        let of = |block: &str, whole| {
            let kept = keys("JOB,A").kept(block.as_bytes(), whole);
            String::from_utf8(kept).unwrap().replace('\0', "|")
        };
        assert_eq!(of("X=1\0JOB=7\0A=\0JOB=8\0", true), "JOB=7|A=|");
        assert_eq!(of("X=1\0JOBS=7\0", true), "|");
        assert_eq!(of("", true), "|");
        assert_eq!(of("A=1\0X=1\0", false), "JOB|A=1|");
        // cut in its value
        assert_eq!(of("A=1\0JOB=12", false), "JOB|A=1|");
        assert_eq!(of("nginx: worker process\0\0\0", true), "JOB|A|");
        assert_eq!(of(&format!("JOB={}\0", "7".repeat(257)), true), "JOB|");
        assert_eq!(EnvironKeys::default().kept(b"A=1\0", true), b"");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for words in [vec!["A=1".to_owned()], vec![String::new()], (0..17).map(|n| format!("K{n}")).collect()] {
            EnvironKeys::parse(&words).unwrap_err();
        }
        assert_eq!(keys("A,B,A"), EnvironKeys(vec!["A".into(), "B".into()]));
    }

    #[test]
    fn parts_are_put_together() {
        let id = Ident { tid: 7, ..Ident::default() };
        let part = |offset, last| Environ { id, offset, full: 6, last, ..Environ::default() };
        let mut parts = EnvironParts::default();
        assert_eq!(parts.add(&part(0, 0), b"A=1\0"), None);
        assert_eq!(parts.add(&part(4, 1), b"B="), Some((b"A=1\0B=".to_vec(), true)));
        // one is missing
        assert_eq!(parts.add(&part(4, 1), b"B="), None);
        // the programs send no more
        assert_eq!(parts.add(&part(0, 1), b"A=1\0"), Some((b"A=1\0".to_vec(), false)));
        // of another process
        assert_eq!(parts.add(&part(0, 0), b"A=1\0"), None);
        let other = Environ { id: Ident { tid: 8, ..id }, ..part(4, 1) };
        assert_eq!(parts.add(&other, b"B="), None);
    }
}

//! Lines of a log, of bounded length. A log is untrusted: a line that is longer is cut, and its rest is passed over.

use std::io::{self, BufRead};

/// Most bytes of a line: strace's own are far below, with `-s` of some hundred thousand.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Reads the lines of one file.
#[derive(Debug)]
pub(super) struct LogLines<R> {
    input: R,
    line: Vec<u8>,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// A newline ended it.
    Newline,
    /// The file ended.
    File,
    /// The line is longer than [`MAX_LINE`].
    TooLong,
}

impl<R: BufRead> LogLines<R> {
    /// The lines of `input`.
    pub(super) fn new(input: R) -> Self {
        Self { input, line: Vec::new() }
    }

    /// The next line without its end; None: there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<(&[u8], LineEnd)>> {
        self.line.clear();
        let mut end = LineEnd::File;
        let mut any = false;
        loop {
            let bytes = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                break;
            }
            any = true;
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..newline.unwrap_or(bytes.len())];
            let room = MAX_LINE - self.line.len();
            if part.len() > room {
                end = LineEnd::TooLong;
            }
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(newline.is_some());
            self.input.consume(used);
            if newline.is_some() {
                if end == LineEnd::File {
                    end = LineEnd::Newline;
                }
                break;
            }
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(any.then_some((&*self.line, end)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(text: &[u8], capacity: usize) -> Vec<(Vec<u8>, LineEnd)> {
        let mut lines = LogLines::new(BufReader::with_capacity(capacity, text));
        let mut all = Vec::new();
        while let Some((line, end)) = lines.next().unwrap() {
            all.push((line.to_vec(), end));
        }
        all
    }

    #[test]
    fn lines_end_by_newlines_or_the_file() {
        for capacity in [1, 3, 100] {
            let lines = all(b"one\r\n\ntwo", capacity);
            let text: Vec<&[u8]> = lines.iter().map(|(line, _)| &**line).collect();
            assert_eq!(text, [b"one".as_slice(), b"", b"two"]);
            assert_eq!(lines[2].1, LineEnd::File);
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        let mut text = vec![b'a'; MAX_LINE + 5];
        text.extend_from_slice(b"\nb\n");
        let lines = all(&text, 4096);
        assert_eq!((lines[0].0.len(), lines[0].1), (MAX_LINE, LineEnd::TooLong));
        assert_eq!(lines[1], (b"b".to_vec(), LineEnd::Newline));
    }
}

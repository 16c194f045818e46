//! Columns of texts as Arrow has them, made of what the other side sends: the number of a text for each row, and each text once.

use std::iter;

use systape_analyzer::frames::NONE;
use systape_analyzer::frames::arrow::code_width;

use crate::check::ReceivedColumn;
use crate::wire::AlignedBytes;

/// Most bytes of a text that stand in its view.
const INLINE: usize = 12;

/// What a column of texts is in Arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrowTexts {
    /// The texts of all rows, one after the other, and where each ends: every program knows it.
    Whole,
    /// For each row 16 bytes: a short text, or where a long one is. polars has it so inside.
    Views,
}

/// The number of each row's text; all bits: NULL.
#[derive(Clone, Copy)]
enum RowCodes<'d> {
    Bytes(&'d [u8]),
    Shorts(&'d [[u8; 2]]),
    Ints(&'d [[u8; 4]]),
}

/// A column of texts that was received and checked.
pub(crate) struct CodedTexts<'d> {
    rows: usize,
    nulls: usize,
    codes: RowCodes<'d>,
    ends: &'d [[u8; 4]],
    bytes: &'d [u8],
}

/// Buffers of a column for whoever takes it.
pub(crate) struct MadeTexts {
    /// Which rows are not NULL, a bit for each; None: all.
    pub(crate) valid: Option<AlignedBytes>,
    /// Where the texts end, or their views.
    pub(crate) places: AlignedBytes,
    /// The texts, if they are not those that were received.
    pub(crate) bytes: Option<AlignedBytes>,
}

impl<'d> CodedTexts<'d> {
    /// The texts of `column` among `data`.
    pub(crate) fn new(column: &ReceivedColumn, data: &'d AlignedBytes) -> Self {
        let of = |buffer: usize| {
            let (from, len) = column.buffers.get(buffer).copied().flatten().unwrap_or_default();
            &data.bytes()[from..from + len]
        };
        let (codes, ends) = (of(0), of(1).as_chunks().0);
        let codes = match code_width(ends.len().saturating_sub(1)) {
            1 => RowCodes::Bytes(&codes[..column.rows]),
            2 => RowCodes::Shorts(&codes.as_chunks().0[..column.rows]),
            _ => RowCodes::Ints(&codes.as_chunks().0[..column.rows]),
        };
        Self { rows: column.rows, nulls: column.nulls, codes, ends, bytes: of(2) }
    }

    /// Passes the number of each row's text, [`NONE`] for NULL.
    fn each(&self, mut each: impl FnMut(u32)) {
        match self.codes {
            RowCodes::Bytes(codes) => {
                codes.iter().for_each(|code| each(if *code == u8::MAX { NONE } else { (*code).into() }))
            }
            RowCodes::Shorts(codes) => codes.iter().for_each(|code| {
                let code = u16::from_le_bytes(*code);
                each(if code == u16::MAX { NONE } else { code.into() });
            }),
            RowCodes::Ints(codes) => codes.iter().for_each(|code| each(u32::from_le_bytes(*code))),
        }
    }

    fn code(&self, row: usize) -> Option<usize> {
        let code = match self.codes {
            RowCodes::Bytes(codes) => u32::from(*codes.get(row)?),
            RowCodes::Shorts(codes) => u16::from_le_bytes(*codes.get(row)?).into(),
            RowCodes::Ints(codes) => u32::from_le_bytes(*codes.get(row)?),
        };
        // what is no text is NULL
        Some(code as usize).filter(|code| code + 1 < self.ends.len())
    }

    fn end(&self, text: usize) -> usize {
        self.ends.get(text).map_or(0, |end| u32::from_le_bytes(*end) as usize)
    }

    fn all(&self) -> impl Iterator<Item = &'d [u8]> + '_ {
        (0..self.ends.len().saturating_sub(1)).map(|text| &self.bytes[self.end(text)..self.end(text + 1)])
    }

    /// The text of a row; None: it is NULL.
    pub(crate) fn text(&self, row: usize) -> Option<&'d [u8]> {
        let code = self.code(row)?;
        Some(&self.bytes[self.end(code)..self.end(code + 1)])
    }

    fn valid(&self) -> Option<AlignedBytes> {
        let mut bits = AlignedBytes::zeroed((self.nulls > 0).then(|| self.rows.div_ceil(8))?);
        let (bytes, mut row) = (bits.bytes_mut(), 0);
        self.each(|code| {
            bytes[row / 8] |= u8::from(code != NONE) << (row % 8);
            row += 1;
        });
        Some(bits)
    }

    /// The column as Arrow has it.
    ///
    /// # Errors
    /// It has more than 2 GiB of text.
    pub(crate) fn made(&self, form: ArrowTexts) -> Result<MadeTexts, String> {
        match form {
            ArrowTexts::Whole => self.whole(),
            ArrowTexts::Views => Ok(self.views()),
        }
    }

    fn whole(&self) -> Result<MadeTexts, String> {
        let lengths: Vec<usize> = self.all().map(<[u8]>::len).collect();
        let length = |code: u32| lengths.get(code as usize).copied().unwrap_or(0);
        let mut total = 0_usize;
        self.each(|code| total = total.saturating_add(length(code)));
        if i32::try_from(total).is_err() {
            return Err("rows with more than 2 GiB of text: polars takes them".to_owned());
        }
        let (mut ends, mut bytes) = (AlignedBytes::zeroed(4 * (self.rows + 1)), AlignedBytes::zeroed(total));
        let (places, mut rest, mut end) = (ends.bytes_mut().as_chunks_mut().0, bytes.bytes_mut(), 0_u32);
        for (row, place) in places[1..].iter_mut().enumerate() {
            let text = self.text(row).unwrap_or_default();
            let (room, behind) = rest.split_at_mut(text.len());
            room.copy_from_slice(text);
            rest = behind;
            end += text.len() as u32;
            *place = end.to_le_bytes();
        }
        Ok(MadeTexts { valid: self.valid(), places: ends, bytes: Some(bytes) })
    }

    fn views(&self) -> MadeTexts {
        let view = |(text, from): (&[u8], usize)| {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            if text.len() <= INLINE {
                view[4..4 + text.len()].copy_from_slice(text);
            } else {
                // its head, the first of the buffers, where in that
                view[4..8].copy_from_slice(&text[..4]);
                view[12..].copy_from_slice(&(from as u32).to_le_bytes());
            }
            view
        };
        let starts = (0..).map(|text| self.end(text));
        // behind them what stands for NULL
        let views: Vec<[u8; 16]> = self.all().zip(starts).map(view).chain(iter::once([0; 16])).collect();
        let last = views.len() - 1;
        let of = |code: usize| views[code.min(last)];
        // NULL is behind the texts, however wide it is
        let places = match self.codes {
            RowCodes::Bytes(codes) => AlignedBytes::of_views(codes, |code| of((*code).into())),
            RowCodes::Shorts(codes) => AlignedBytes::of_views(codes, |code| of(u16::from_le_bytes(*code).into())),
            RowCodes::Ints(codes) => AlignedBytes::of_views(codes, |code| of(u32::from_le_bytes(*code) as usize)),
        };
        MadeTexts { valid: self.valid(), places, bytes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column of these rows: codes at 0, ends and bytes behind them.
    fn column(codes: &[u8], texts: &[&str]) -> (ReceivedColumn, AlignedBytes) {
        let mut data = AlignedBytes::zeroed(64 * 4);
        let bytes = data.bytes_mut();
        let mut end = 0;
        bytes[..codes.len()].copy_from_slice(codes);
        for (at, text) in texts.iter().enumerate() {
            bytes[128 + end..128 + end + text.len()].copy_from_slice(text.as_bytes());
            end += text.len();
            bytes[64 + 4 * (at + 1)..64 + 4 * (at + 2)].copy_from_slice(&(end as u32).to_le_bytes());
        }
        let nulls = codes.iter().filter(|code| **code == u8::MAX).count();
        let buffers = vec![Some((0, codes.len())), Some((64, 4 * (texts.len() + 1))), Some((128, end))];
        (ReceivedColumn { rows: codes.len(), nulls, buffers, children: Vec::new() }, data)
    }

    #[test]
    fn texts_are_whole_or_views() {
        let (column, data) = column(&[1, u8::MAX, 0, 1], &["short", "longer than twelve"]);
        let texts = CodedTexts::new(&column, &data);
        assert_eq!((texts.text(0), texts.text(1)), (Some(&b"longer than twelve"[..]), None));
        let whole = texts.made(ArrowTexts::Whole).unwrap();
        assert_eq!(whole.bytes.unwrap().bytes(), b"longer than twelveshortlonger than twelve");
        let ends: Vec<u32> = whole.places.bytes().as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        assert_eq!((ends, whole.valid.unwrap().bytes()), (vec![0, 18, 18, 23, 41], &[0b1101][..]));
        let views = texts.made(ArrowTexts::Views).unwrap();
        let (views, _) = views.places.bytes().as_chunks::<16>();
        assert_eq!(views[0], *b"\x12\0\0\0long\0\0\0\0\x05\0\0\0");
        assert_eq!(views[1..3], [[0; 16], *b"\x05\0\0\0short\0\0\0\0\0\0\0"]);
        assert_eq!(views[0], views[3]);
    }

    #[test]
    fn texts_that_arrow_cannot_hold_are_an_error() {
        let long = "x".repeat(120);
        let (column, data) = column(&[0; 16], &[&long]);
        let many = CodedTexts::new(&column, &data);
        assert!(many.made(ArrowTexts::Whole).is_ok());
        let all = vec![0; (i32::MAX as usize) / 120 + 1];
        let too_many = CodedTexts { codes: RowCodes::Bytes(&all), rows: all.len(), ..many };
        assert!(too_many.made(ArrowTexts::Whole).is_err());
    }

    #[test]
    fn codes_of_every_width_are_the_same_texts() {
        let (column, data) = column(&[1, u8::MAX, 0], &["a", "bc"]);
        let bytes = CodedTexts::new(&column, &data);
        let wide = |codes: RowCodes<'static>| CodedTexts { codes, ..CodedTexts::new(&column, &data) };
        let shorts = wide(RowCodes::Shorts(&[[1, 0], [255, 255], [0, 0]]));
        let ints = wide(RowCodes::Ints(&[[1, 0, 0, 0], [255; 4], [0; 4]]));
        for texts in [bytes, shorts, ints] {
            assert_eq!([0, 1, 2, 3].map(|row| texts.text(row)), [Some(&b"bc"[..]), None, Some(b"a"), None]);
            let whole = texts.made(ArrowTexts::Whole).unwrap();
            assert_eq!((whole.bytes.unwrap().bytes(), whole.valid.unwrap().bytes()), (&b"bca"[..], &[0b101][..]));
            let views = texts.made(ArrowTexts::Views).unwrap();
            assert_eq!(views.places.bytes().as_chunks::<16>().0[1], [0; 16]);
            assert_eq!(views.places.bytes()[..6], *b"\x02\0\0\0bc");
        }
    }
}

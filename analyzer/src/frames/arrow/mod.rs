//! Rows as Arrow's IPC format, which pyarrow, polars, DuckDB, R and Julia read: a stream, or a file that can be read from any place.
//!
//! The format is written here, because the seven types of columns need little of it, and the crates for all of it would take longer to
//! build than the rest of `analyze`. Nothing is compressed, and no column is a dictionary: each batch of rows stands for itself. A
//! message is a length, a FlatBuffer ([`flat`]) that says what follows, and that.

mod columns;
mod flat;
mod schema;

use std::io::{self, Write};

use anyhow::{Result, bail};

pub use self::columns::{BatchBody, BatchColumn, TextForm};
use self::flat::FlatField::{Absent, Byte, Long, Pointer, Short};
use self::flat::{FlatMessage, PointerGap};
pub use self::schema::ArrowFacts;
use super::FrameField;
use super::picks::RowPicks;
pub use systape_events::values::columns::code_width;

/// What stands before and behind a file, padded to eight bytes before it.
const MAGIC: &[u8; 8] = b"ARROW1\0\0";
/// The version of the format, 1.0 and later.
const VERSION: i16 = 4;
/// What stands before each message.
const CONTINUES: [u8; 4] = [0xff; 4];
/// Kinds of messages.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowForm {
    /// Messages, one after the other: can be read while it is written.
    Stream,
    /// A stream with a list of its batches behind it.
    File,
}

/// Writes rows as messages of Arrow.
pub struct ArrowWriter<'f, W> {
    out: W,
    form: ArrowForm,
    fields: Vec<&'f FrameField>,
    facts: Vec<(&'static str, String)>,
    /// Bytes that were written.
    at: u64,
    /// Of each batch its place and the lengths of its two parts.
    blocks: Vec<[i64; 3]>,
}

impl<'f, W: Write> ArrowWriter<'f, W> {
    /// Begins with the schema of `fields`; `facts` stand beside that.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, form: ArrowForm, fields: &[&'f FrameField], facts: &ArrowFacts) -> io::Result<Self> {
        let mut writer = Self { out, form, fields: fields.to_vec(), facts: facts.to_vec(), at: 0, blocks: Vec::new() };
        if form == ArrowForm::File {
            writer.put(MAGIC)?;
        }
        let (message, ()) = message(SCHEMA, 0, |message, gap| schema::schema(message, gap, fields, facts));
        writer.message(&message)?;
        Ok(writer)
    }

    /// Writes rows, as one batch.
    ///
    /// # Errors
    /// They cannot be written, or have more than 2 GiB of text in one column.
    pub fn rows(&mut self, picks: &RowPicks<'_>) -> Result<()> {
        let columns = BatchColumn::in_order(self.fields.iter().map(|field| field.kind));
        let BatchBody { bytes, nodes, buffers } = BatchBody::new(columns, picks, TextForm::Whole)?;
        let (message, ()) = message(RECORD_BATCH, bytes.len(), |message, gap| {
            let fields = [Long(picks.len() as i64), Pointer, Pointer];
            let [of_nodes, of_buffers] = message.table(gap, &fields);
            message.longs(of_nodes, &nodes);
            message.longs(of_buffers, &buffers);
        });
        let at = self.at;
        let length = self.message(&message)?;
        self.put(&bytes)?;
        if self.form == ArrowForm::File {
            let Ok(place) = i64::try_from(at) else { bail!("the file is too long") };
            self.blocks.push([place, length as i64, bytes.len() as i64]);
        }
        Ok(())
    }

    /// Ends the stream or the file, behind which `facts` stand, and returns where it was written to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self, facts: &ArrowFacts) -> io::Result<W> {
        self.put(&CONTINUES)?;
        self.put(&0_u32.to_le_bytes())?;
        if self.form == ArrowForm::File {
            let (mut footer, root) = FlatMessage::new();
            let fields = [Short(VERSION), Pointer, Pointer, Pointer, Pointer];
            let [schema, dictionaries, batches, about] = footer.table(root, &fields);
            schema::schema(&mut footer, schema, &self.fields, &self.facts);
            footer.longs::<3>(dictionaries, &[]);
            footer.longs(batches, &self.blocks);
            schema::write_facts(&mut footer, about, facts);
            let footer = footer.bytes();
            self.put(&footer)?;
            self.put(&(footer.len() as i32).to_le_bytes())?;
            self.put(&MAGIC[..6])?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the head of a message; its length.
    fn message(&mut self, message: &[u8]) -> io::Result<usize> {
        self.put(&CONTINUES)?;
        self.put(&(message.len() as i32).to_le_bytes())?;
        self.put(message)?;
        Ok(message.len() + 8)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// The head of a message of this kind, of which `write` writes what is special; `body`: the number of bytes behind it.
fn message<T>(kind: u8, body: usize, write: impl FnOnce(&mut FlatMessage, PointerGap) -> T) -> (Vec<u8>, T) {
    let (mut message, root) = FlatMessage::new();
    let [header] = message.table(root, &[Short(VERSION), Byte(kind), Pointer, Long(body as i64), Absent]);
    let written = write(&mut message, header);
    (message.bytes(), written)
}

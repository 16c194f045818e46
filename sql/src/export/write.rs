//! Files of rows: Parquet, JSON, CSV.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use systape_analyzer::frames::Table;

use super::place::{PartialFile, Place};
use crate::out::{AnswerWriter, Form};

/// Rows of a row group.
pub(crate) const GROUP: usize = 262_144;
/// Rows of a file.
const FILE: usize = 16 * GROUP;

/// Form of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEnding {
    /// Files of Parquet.
    Parquet,
    /// One object a line.
    Json,
    /// One row a line.
    Csv,
}

impl FileEnding {
    /// How their names end.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// An open file.
enum Open {
    Parquet(Box<ArrowWriter<File>>),
    Lines(AnswerWriter<BufWriter<File>>),
}

/// Writes the rows of a table of a tape.
pub(crate) struct TableWriter {
    place: Place,
    ending: FileEnding,
    schema: SchemaRef,
    properties: WriterProperties,
    open: Option<(PartialFile, Open)>,
    /// Whole files but for what stands at their end.
    rows: usize,
}

impl TableWriter {
    /// Makes a writer to `place`. There is one file at least.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(place: Place, ending: FileEnding, schema: &SchemaRef, table: &Table) -> Result<Self> {
        // nested columns count as their parts: the map is none that rows are sorted by
        let leaf =
            |at: usize| -> usize {
                let before = &schema.fields()[..at];
                before
                    .iter()
                    .map(|field| {
                        if matches!(field.data_type(), datafusion::arrow::datatypes::DataType::Map(..)) { 2 } else { 1 }
                    })
                    .sum()
            };
        let sorted = schema
            .index_of("rel_ns")
            .ok()
            .map(|at| vec![SortingColumn { column_idx: leaf(at) as i32, descending: false, nulls_first: false }]);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(GROUP))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_sorting_columns(sorted)
            .set_created_by(format!("systape analyze-sql {}", env!("CARGO_PKG_VERSION")))
            .build();
        debug_assert!(!table.fields.is_empty());
        let mut writer = Self { place, ending, schema: Arc::clone(schema), properties, open: None, rows: 0 };
        writer.begin()?;
        Ok(writer)
    }

    fn begin(&mut self) -> Result<()> {
        let begun = self.place.next()?;
        let file = begun.file()?;
        let open = match self.ending {
            FileEnding::Parquet => {
                let options =
                    ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
                Open::Parquet(Box::new(ArrowWriter::try_new_with_options(file, Arc::clone(&self.schema), options)?))
            }
            FileEnding::Json | FileEnding::Csv => {
                let form = if self.ending == FileEnding::Json { Form::Json } else { Form::Csv };
                let mut out = AnswerWriter::new(form, BufWriter::with_capacity(1 << 18, file));
                out.begin(&self.schema)?;
                Open::Lines(out)
            }
        };
        self.open = Some((begun, open));
        self.rows = 0;
        Ok(())
    }

    /// More rows.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            if self.rows == FILE {
                self.close(&[])?;
                self.begin()?;
            }
            let fits = rest.num_rows().min(FILE - self.rows);
            let part = rest.slice(0, fits);
            rest = rest.slice(fits, rest.num_rows() - fits);
            self.rows += fits;
            match &mut self.open {
                Some((_, Open::Parquet(writer))) => writer.write(&part).context("cannot write")?,
                Some((_, Open::Lines(out))) => out.batch(&part)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Ends the open file with these `facts` in its metadata.
    fn close(&mut self, facts: &[(&str, String)]) -> Result<()> {
        let Some((begun, open)) = self.open.take() else { return Ok(()) };
        match open {
            Open::Parquet(mut writer) => {
                for (key, value) in facts {
                    writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
                }
                writer.close().context("cannot write")?;
            }
            Open::Lines(mut out) => out.flush()?,
        }
        begun.end()
    }

    /// Ends the last file, and removes those that the tape left before.
    ///
    /// # Errors
    /// They cannot be written or removed.
    pub(crate) fn end(mut self, facts: &[(&str, String)]) -> Result<()> {
        self.close(facts)?;
        self.place.tidy()
    }
}

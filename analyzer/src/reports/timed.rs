//! Rows of single events in order of their times, and what is missing between them.

use std::io;
use std::ops::ControlFlow;

use systape_format::table::TableDef;

use super::{Context, losses};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::columns::{Layout, Lines};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::values::say::Shown;
use systape_events::loss::Loss;
use systape_events::stream::{Merger, Part};

/// Events that are collected before they are written.
const MANY: usize = 1 << 10;

/// An answer of such rows.
pub(super) struct Timed<'o, 'r> {
    lines: Lines,
    merger: Merger<&'o mut Out<'r>>,
    part: Part,
    shown: Shown,
    /// Whoever takes the rows as values wants no more.
    enough: bool,
}

impl<'o, 'r> Timed<'o, 'r> {
    /// Begins an answer of rows of `table` with the heading; text is in the columns of `layout`, without one it has the heading
    /// `own`. What is missing is that of `loss`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(
        context: &Context<'_>,
        loss: &Loss,
        (table, layout): (&TableDef, Option<&'static Layout>),
        own: impl FnOnce() -> Vec<u8>,
        out: &'o mut Out<'r>,
    ) -> io::Result<Self> {
        let lines = out.writer(table, layout.map(|layout| context.stamped(layout)));
        out.head(&lines.head(own))?;
        let values = out.taker().is_some();
        if values {
            out.rows(&LOSSES, Judgement::Each, losses::rows(context, loss))?;
        }
        let mut merger = Merger::new(out, context.config.max_events);
        if !values {
            losses::push(context, loss, &mut merger);
        }
        let shown = context.config.shown.clone();
        shown.rows(0);
        Ok(Self { lines, merger, part: Part::default(), shown, enough: false })
    }

    /// Adds an event at `at`, behind those before it: text as `own` writes it, else its `row`.
    pub(super) fn event<'a>(&mut self, at: u64, own: impl FnOnce(&mut Vec<u8>), row: impl FnOnce() -> Row<'a>) {
        let wanted = self.wants();
        let has_line = match self.merger.out().taker() {
            Some(taker) => {
                self.enough |= wanted && taker.row(row()).is_break();
                true
            }
            None => self.lines.line(&mut self.part.bytes, own, row),
        };
        if has_line {
            self.part.end_line(at);
        }
    }

    /// Whether more events are wanted.
    pub(super) fn wants(&self) -> bool {
        !self.enough && (self.part.marks.len() as u64) < self.merger.left()
    }

    /// Writes the events so far, behind which there are none before them, if they are many. Break: no more are wanted.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn write_many(&mut self) -> io::Result<ControlFlow<()>> {
        match self.part.marks.len() < MANY && self.wants() {
            true => Ok(ControlFlow::Continue(())),
            false => self.write(),
        }
    }

    /// Writes the events so far, behind which there are none before them. Break: no more are wanted.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn write(&mut self) -> io::Result<ControlFlow<()>> {
        self.shown.rows(self.part.marks.len());
        self.merger.part(&self.part)?;
        self.part.bytes.clear();
        self.part.marks.clear();
        Ok(if self.wants() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn end(mut self) -> io::Result<()> {
        let _flow = self.write()?;
        self.merger.finish()
    }
}

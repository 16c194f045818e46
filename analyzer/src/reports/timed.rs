//! Rows of single events in order of their times, and what is missing between them.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use super::{Context, losses};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::columns::Lines;
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_events::loss::Loss;
use systape_events::stream::{Merger, Part};

/// An answer of such rows.
pub(super) struct Timed<'o, 'r> {
    lines: Lines<'static>,
    merger: Merger<&'o mut Out<'r>>,
    part: Part,
    /// Whoever takes the rows as values wants no more.
    enough: bool,
}

impl<'o, 'r> Timed<'o, 'r> {
    /// Begins with the heading, of text with `own`; what is missing is that of `loss`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(
        context: &Context<'_>,
        loss: &Loss,
        lines: Lines<'static>,
        own: impl FnOnce() -> Vec<u8>,
        out: &'o mut Out<'r>,
    ) -> io::Result<Self> {
        out.write_all(&lines.head(own))?;
        let values = out.taker().is_some();
        if values {
            out.rows(&LOSSES, Judgement::Each, losses::rows(context, loss))?;
        }
        let mut merger = Merger::new(out, context.config.max_events);
        if !values {
            losses::push(context, loss, &mut merger);
        }
        Ok(Self { lines, merger, part: Part::default(), enough: false })
    }

    /// Adds an event at `at`, behind those before it: text as `own` writes it, else its `row`. False: it has no line.
    pub(super) fn event<'a>(&mut self, at: u64, own: impl FnOnce(&mut Vec<u8>), row: impl FnOnce() -> Row<'a>) -> bool {
        let wanted = !self.enough && (self.part.marks.len() as u64) < self.merger.left();
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
        has_line
    }

    /// Writes the events so far, behind which there are none before them. Break: no more are wanted.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn write(&mut self) -> io::Result<ControlFlow<()>> {
        self.merger.part(&self.part)?;
        self.part = Part::default();
        let more = self.merger.left() > 0 && !self.enough;
        Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.merger.finish()
    }
}

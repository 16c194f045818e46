//! Columns of lines of text, and which of them a terminal has room for: those that are declared to leave first are left out, paths and
//! names are shortened in their middle, numbers never. Where there is no terminal lines are as long as they are.

use crate::values::fit::{cells, command_line, is_number, middle};
use crate::values::output;

/// What a column that may be shortened keeps before another one leaves, unless it is declared to keep less.
pub(crate) const FAIR: usize = 16;
/// What a column keeps that takes what is left.
const REST: usize = 20;
/// What one keeps when no more can leave.
pub(crate) const LEAST: usize = 12;

/// A column: how wide it is, and what becomes of it on a narrow terminal.
#[derive(Clone, Copy, Debug)]
pub struct TextColumn {
    /// The column's name, which is told if it is left out.
    pub heading: &'static str,
    /// Least cells.
    width: usize,
    right: bool,
    /// The cells to which its texts may be shortened; None: they are numbers.
    least: Option<usize>,
    /// Its texts are command lines.
    commands: bool,
    leaves: u8,
}

impl TextColumn {
    /// A column aligned left, at least so wide.
    pub const fn left(heading: &'static str, width: usize) -> Self {
        Self { heading, width, right: false, least: None, commands: false, leaves: 0 }
    }

    /// A column aligned right.
    pub const fn right(heading: &'static str, width: usize) -> Self {
        Self { right: true, ..Self::left(heading, width) }
    }

    /// Has its texts shortened: they are no numbers.
    pub const fn shortens(self) -> Self {
        self.shortens_to(LEAST)
    }

    /// Has its texts shortened, to so many cells at least.
    pub const fn shortens_to(self, least: usize) -> Self {
        Self { least: Some(least), ..self }
    }

    /// Has its texts shortened as command lines: their programs stay.
    pub const fn commands(self) -> Self {
        Self { commands: true, ..self.shortens() }
    }

    /// Has it left out, the one with 1 first.
    pub const fn leaves(self, order: u8) -> Self {
        Self { leaves: order, ..self }
    }
}

/// What a column needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Cells of its widest text.
    pub(crate) all: usize,
    /// The cells to which texts may be shortened; None: they are numbers.
    pub(crate) least: Option<usize>,
    /// The cells to which texts are shortened before a column leaves.
    pub(crate) fair: usize,
    /// When it leaves: the lowest first; None: never.
    pub(crate) leaves: Option<usize>,
}

impl Want {
    /// What it takes where a text is shortened to `cap` cells.
    fn at_most(&self, cap: usize) -> usize {
        self.least.map_or(self.all, |least| self.all.min(cap.max(least)))
    }

    /// What it takes before a column leaves.
    fn fair(&self) -> usize {
        self.at_most(self.fair)
    }
}

/// The width of each column on a line of `room` cells with `gap` cells between columns; None: it is left out. The widths are more than
/// the room if nothing helps.
pub(crate) fn widths(wants: &[Want], gap: usize, room: usize) -> Vec<Option<usize>> {
    let mut kept = vec![true; wants.len()];
    let sum = |kept: &[bool], width: &dyn Fn(&Want) -> usize| {
        let widths = wants.iter().zip(kept).filter(|(_, kept)| **kept).map(|(want, _)| width(want) + gap);
        widths.sum::<usize>().saturating_sub(gap)
    };
    // first what is long is shortened, then columns leave
    while sum(&kept, &Want::fair) > room {
        let leaving = (0..wants.len()).filter(|at| kept[*at] && wants[*at].leaves.is_some());
        let Some(next) = leaving.min_by_key(|at| wants[*at].leaves) else { break };
        kept[next] = false;
    }
    // the longest lose first
    let most = wants.iter().map(|want| want.all).max().unwrap_or(0);
    let cap = (1..=most).rev().find(|cap| sum(&kept, &|want| want.at_most(*cap)) <= room).unwrap_or(1);
    wants.iter().zip(kept).map(|(want, kept)| kept.then(|| want.at_most(cap))).collect()
}

/// Cells that `text` needs at least: a number, an address, and a number in brackets at the end (`app[4711]`) stay whole.
pub(super) fn least(text: &str) -> usize {
    if is_number(text) {
        return cells(text);
    }
    let number = text.strip_suffix(']').and_then(|_| text.rfind('[')).map_or(0, |at| text.len() - at);
    LEAST.max(number + 4)
}

/// Lines with the same columns.
#[derive(Debug)]
pub struct TextColumns {
    /// The text of the first column, if that is a time, which is filled up already.
    time: Option<String>,
    /// The columns, and whether the terminal has room for them.
    fields: Vec<(TextColumn, bool)>,
    /// Between two columns.
    gap: &'static str,
    room: Option<usize>,
}

impl TextColumns {
    /// Lines of `fields`, with `gap` between two.
    pub fn new(fields: impl IntoIterator<Item = TextColumn>, gap: &'static str) -> Self {
        Self::in_room(None, fields, gap, output::room())
    }

    /// Lines of `fields` with one blank between two, behind `time`, which is a time or its heading; empty: there is none.
    pub fn timed(time: String, fields: impl IntoIterator<Item = TextColumn>) -> Self {
        Self::in_room(Some(time).filter(|time| !time.is_empty()), fields, " ", output::room())
    }

    fn in_room(
        time: Option<String>,
        fields: impl IntoIterator<Item = TextColumn>,
        gap: &'static str,
        room: Option<usize>,
    ) -> Self {
        let first = time.as_ref().map(|time| TextColumn::left("", cells(time)));
        let fields: Vec<TextColumn> = first.into_iter().chain(fields).collect();
        let want = |field: &TextColumn| Want {
            // one that takes what is left
            all: if field.width == 0 && field.least.is_some() { REST } else { field.width },
            least: field.least.map(|least| if field.width == 0 { REST } else { least }),
            fair: field.least.filter(|least| *least < LEAST).unwrap_or(FAIR),
            leaves: (field.leaves > 0).then_some(field.leaves.into()),
        };
        let wants: Vec<Want> = fields.iter().map(want).collect();
        let widths = room.map(|room| widths(&wants, cells(gap), room));
        let kept = |at: usize| widths.as_ref().is_none_or(|widths| widths[at].is_some());
        let width = |at: usize, field: &TextColumn| match widths.as_ref().and_then(|widths| widths[at]) {
            Some(width) if field.width > 0 => width,
            _ => field.width,
        };
        let fields = fields.into_iter().enumerate();
        let fields = fields.map(|(at, field)| (TextColumn { width: width(at, &field), ..field }, kept(at))).collect();
        Self { time, fields, gap, room }
    }

    /// The line of headings; what was left out is told at the end.
    pub fn head(&self) -> String {
        self.fields.iter().filter(|(_, kept)| !kept).for_each(|(field, _)| output::leave_out(field.heading));
        let headings = self.fields.iter().skip(usize::from(self.time.is_some())).map(|(field, _)| field.heading);
        self.line(&headings.collect::<Vec<_>>())
    }

    /// The line of one text for each column behind the time.
    pub fn line<S: AsRef<str>>(&self, texts: &[S]) -> String {
        let texts: Vec<&str> = self.time.as_deref().into_iter().chain(texts.iter().map(AsRef::as_ref)).collect();
        debug_assert_eq!(self.fields.len(), texts.len());
        let kept = self.fields.iter().zip(texts).filter(|((_, kept), _)| *kept);
        let columns: Vec<(&TextColumn, &str)> = kept.map(|((field, _), text)| (field, text)).collect();
        let mut widths: Vec<usize> = columns.iter().map(|(field, text)| cells(text).max(field.width)).collect();
        if let Some(room) = self.room {
            self.shorten(&columns, &mut widths, room);
        }
        let mut line = String::new();
        for (at, ((field, text), width)) in columns.iter().zip(&widths).enumerate() {
            line.push_str(if at > 0 { self.gap } else { "" });
            let cut = if field.commands { command_line } else { middle };
            put(&mut line, &cut(text, *width, output::cut_mark()), *width, field.right);
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// The line of texts that are as wide as they are to be: headings of several lines.
    pub fn raw<S: AsRef<str>>(&self, texts: &[S]) -> String {
        let kept = self.fields.iter().zip(texts).filter(|((_, kept), _)| *kept).map(|(_, text)| text.as_ref());
        kept.collect::<Vec<_>>().join(self.gap).trim_end().to_owned()
    }

    /// Takes from the widest columns what is too much.
    fn shorten(&self, columns: &[(&TextColumn, &str)], widths: &mut [usize], room: usize) {
        let gaps = cells(self.gap) * widths.len().saturating_sub(1);
        // not below the width of the column: what stands behind it would leave its own
        let leasts: Vec<Option<usize>> =
            columns.iter().map(|(field, text)| Some(field.least?.max(least(text)).max(field.width))).collect();
        let much = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
        let spare = |at: usize| widths[at].saturating_sub(leasts[at].unwrap_or(widths[at]));
        // where the last text comes on a line of its own all the same, the others have all of the room
        let Some(last) = widths.len().checked_sub(1) else { return };
        let own_line = leasts[last].is_none() && (0..last).map(spare).sum::<usize>() < much;
        let room = if own_line { room + widths[last] + cells(self.gap) } else { room };
        loop {
            let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
            let may = (0..widths.len()).filter(|at| leasts[*at].is_some_and(|least| widths[*at] > least));
            let Some(widest) = may.max_by_key(|at| widths[*at]).filter(|_| over > 0) else { return };
            // no further than the next one at first
            let next = (0..widths.len()).filter(|at| *at != widest && leasts[*at].is_some()).map(|at| widths[at]);
            let next = next.filter(|next| *next < widths[widest]).max().unwrap_or(0);
            widths[widest] = widths[widest].saturating_sub(over).max(next).max(leasts[widest].unwrap_or(LEAST));
        }
    }
}

/// Appends `text`, filled up to `width` cells.
pub(super) fn put(line: &mut String, text: &str, width: usize, right: bool) {
    let fill = " ".repeat(width.saturating_sub(cells(text)));
    let (before, after) = if right { (fill.as_str(), "") } else { ("", fill.as_str()) };
    line.extend([before, text, after]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [TextColumn; 3] = [
        TextColumn::left("COMM", 15).shortens(),
        TextColumn::right("QUEUED", 8).leaves(1),
        TextColumn::left("FILE", 0).shortens(),
    ];

    fn line(room: Option<usize>, texts: [&str; 3]) -> String {
        TextColumns::in_room(Some("0.000100".to_owned()), FIELDS, " ", room).line(&texts)
    }

    #[test]
    fn all_stay_where_there_is_room() {
        let texts = ["app", "12.5", "/srv/data/deep/down/in/a/file"];
        let all = "0.000100 app                 12.5 /srv/data/deep/down/in/a/file";
        assert_eq!(line(None, texts), all);
        assert_eq!(line(Some(cells(all)), texts), all);
        assert_eq!(TextColumns::in_room(None, FIELDS, " ", None).head(), "COMM              QUEUED FILE");
    }

    #[test]
    fn a_path_is_shortened_and_a_column_leaves() {
        let texts = ["app", "12.5", "/srv/data/deep/down/in/a/file"];
        assert_eq!(line(Some(58), texts), "0.000100 app                 12.5 /srv/data/de…n/in/a/file");
        assert_eq!(line(Some(50), texts), "0.000100 app             /srv/data/de…wn/in/a/file");
        for room in 40..70 {
            let got = line(Some(room), texts);
            assert!(cells(&got) <= room && got.starts_with("0.000100 app"), "{room}: {got}");
        }
    }

    #[test]
    fn columns_stay_below_their_headings() {
        let fields = || FIELDS.into_iter().chain([TextColumn::left("", 0)]);
        let columns = || TextColumns::in_room(None, fields(), " ", Some(60));
        let at = columns().head().find("FILE").unwrap();
        let line = columns().line(&["sh", "1", "sleep", "(/usr/local/sbin/a/long/one/sleep: ENOENT)"]);
        assert_eq!(line.find("sleep"), Some(at), "{line}");
    }

    #[test]
    fn the_number_of_a_task_stays() {
        let got = line(Some(40), ["kworker/u8:3-flush-254:0[1234567/1234568]", "1", "/x"]);
        assert_eq!(got, "0.000100 kworker/u8…[1234567/1234568] /x");
    }

    #[test]
    fn the_longest_lose_first_and_numbers_nothing() {
        let word = |all| Want { all, least: Some(LEAST), fair: FAIR, leaves: None };
        let number = |all, leaves| Want { all, least: None, fair: FAIR, leaves };
        let all = [number(10, None), word(40), word(14), number(9, Some(1))];
        assert_eq!(widths(&all, 2, 100), [Some(10), Some(40), Some(14), Some(9)]);
        assert_eq!(widths(&all, 2, 69), [Some(10), Some(30), Some(14), Some(9)]);
        assert_eq!(widths(&all, 2, 55), [Some(10), Some(16), Some(14), Some(9)], "shortened before another leaves");
        assert_eq!(widths(&all, 2, 54), [Some(10), Some(26), Some(14), None]);
        assert_eq!(widths(&all, 2, 40), [Some(10), Some(13), Some(13), None]);
        assert_eq!(widths(&all, 2, 10), [Some(10), Some(12), Some(12), None], "nothing helps");
        assert!(widths(&[], 2, 10).is_empty());
    }
}

//! Limits on a ranking: the busiest rows first, and the number of the others.

use crate::render::form::Format;
use crate::values::output;

/// Default number of rows of a ranking in text.
pub const TOP: usize = 40;

/// The option of a ranking.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Rank {
    /// Rows to print; 0: all [default: 40 in text, on a terminal what its screen holds; all in JSON and CSV]
    #[arg(long = "top", value_name = "N")]
    top: Option<usize>,
}

impl Rank {
    /// `top` rows; 0: all.
    pub fn of(top: usize) -> Self {
        Self { top: Some(top) }
    }

    /// Most rows printed of an answer as `format`; `max_events`: the limit of that option, or none.
    pub fn limit(self, format: Format, max_events: u64) -> usize {
        let most = usize::try_from(max_events).unwrap_or(usize::MAX);
        match self.top {
            Some(0) => most,
            Some(top) => most.min(top),
            None if format == Format::Text && max_events == u64::MAX => on_screen(TOP),
            None => most,
        }
    }

    /// Whether a number of rows was asked for.
    pub fn given(self) -> bool {
        self.top.is_some()
    }

    /// Whether all rows are requested.
    pub fn all(self) -> bool {
        self.top == Some(0)
    }
}

/// Default number of rows of a ranking whose first rows are the answer.
const FEW: usize = 20;

/// The option of such a ranking.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Few {
    /// Rows to print; 0: all [default: 20 in text, on a terminal what its screen holds; all in JSON and CSV]
    #[arg(long = "top", value_name = "N")]
    top: Option<usize>,
}

impl Few {
    /// Whether the option was given.
    pub fn given(self) -> bool {
        self.top.is_some()
    }

    /// Most rows printed of an answer as `format`.
    pub fn limit(self, format: Format) -> usize {
        let top = self.top.or((format == Format::Text).then(|| on_screen(FEW)));
        Rank { top }.limit(format, u64::MAX)
    }

    /// Most rows printed of an answer whose rows take `each` lines, with `others` beside them.
    pub fn limit_of(self, format: Format, each: usize, others: usize) -> usize {
        const LEAST: usize = 3;
        let limit = self.limit(format);
        match output::screen() {
            Some(screen) if self.top.is_none() && format == Format::Text => {
                limit.min((screen.saturating_sub(others) / each.max(1)).max(LEAST))
            }
            _ => limit,
        }
    }

    /// Whether all rows are requested.
    pub fn all(self) -> bool {
        self.top == Some(0)
    }
}

/// Number of `rows` that a screen has room for beside a few lines above and below them; all of them where there is no terminal.
fn on_screen(rows: usize) -> usize {
    /// Headings, losses, what is left out, and the shell's own lines.
    const OTHERS: usize = 7;
    const LEAST: usize = 5;
    output::screen().map_or(rows, |screen| rows.min(screen.saturating_sub(OTHERS).max(LEAST)))
}

/// The line below a ranking of `rows` of which `limit` are printed; None: all are.
pub fn more(rows: usize, limit: usize) -> Option<String> {
    let more = rows.saturating_sub(limit);
    (more > 0).then(|| format!("and {more} more (--top 0)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_says_so() {
        let limit = |top, format, max_events| Rank { top }.limit(format, max_events);
        assert_eq!(limit(None, Format::Text, u64::MAX), TOP);
        assert_eq!(limit(None, Format::Json, u64::MAX), usize::MAX);
        assert_eq!(limit(Some(0), Format::Text, u64::MAX), usize::MAX);
        assert_eq!(limit(Some(7), Format::Csv, u64::MAX), 7);
        assert_eq!((limit(None, Format::Text, 90), limit(Some(7), Format::Text, 3)), (90, 3));
        let few = |top, format| Few { top }.limit(format);
        assert_eq!((few(None, Format::Text), few(None, Format::Json), few(Some(3), Format::Csv)), (FEW, usize::MAX, 3));
        assert_eq!((few(Some(0), Format::Text), few(Some(0), Format::Json)), (usize::MAX, usize::MAX));
        assert_eq!((more(41, 40), more(40, 40)), (Some("and 1 more (--top 0)".into()), None));
    }
}

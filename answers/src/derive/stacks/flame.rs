//! Flame graphs, drawn by the crate inferno.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{Direction, Options, from_lines};

use super::folded::frame;
use super::graph::StackRoot;
use super::weight::Metric;

/// Texts and colours of a picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Heading of the picture.
    pub title: String,
    /// Line below it.
    pub subtitle: Option<String>,
    /// Unit of widths.
    pub metric: Metric,
    /// Waiting time: blue, as off-CPU graphs are.
    pub waiting: bool,
    /// Innermost functions first: drawn from the top down.
    pub order: StackRoot,
    /// Name of the root frame below all stacks.
    pub root: String,
}

impl Picture {
    fn options(&self) -> Options<'static> {
        let mut options = Options::default();
        options.title.clone_from(&self.title);
        options.subtitle.clone_from(&self.subtitle);
        options.colors = Palette::Basic(if self.waiting { BasicPalette::Io } else { BasicPalette::Hot });
        // the same tape gives the same bytes
        options.deterministic = true;
        options.no_sort = false;
        if self.order == StackRoot::Callee {
            options.direction = Direction::Inverted;
        }
        (options.count_name, options.factor) = match self.metric {
            Metric::Count => ("events".to_owned(), 1.0),
            Metric::Time => ("ms".to_owned(), 1e-6),
            Metric::Bytes => ("bytes".to_owned(), 1.0),
        };
        options
    }

    /// Draws folded stacks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn draw(&self, folded: &[(String, u64)], out: impl Write) -> Result<()> {
        let root = frame(&self.root);
        self.lines(folded.iter().map(|(stack, weight)| format!("{root};{stack} {weight}")).collect(), out)
    }

    /// Draws the stacks of the second of two tapes, coloured by their difference from the first: red is more, blue
    /// less. Stacks that only the first has stand beside them, above a frame `gone`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn difference(&self, both: &[(String, u64, u64)], gone: &str, out: impl Write) -> Result<()> {
        let (root, gone) = (frame(&self.root), frame(gone));
        let line = |(stack, before, after): &(String, u64, u64)| match after {
            // widths are of the second number, and colours of how it differs from the first: as wide as it was, and that much less
            0 => format!("{gone};{stack} {} {before}", before.saturating_mul(2)),
            _ => format!("{root};{stack} {before} {after}"),
        };
        self.lines(both.iter().map(line).collect(), out)
    }

    fn lines(&self, lines: Vec<String>, out: impl Write) -> Result<()> {
        if lines.is_empty() {
            bail!("there is nothing to draw: no stack passes");
        }
        let mut options = self.options();
        from_lines(&mut options, lines.iter().map(String::as_str), out).context("cannot draw the flame graph")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(metric: Metric) -> Picture {
        Picture {
            title: "a < b".into(),
            subtitle: None,
            metric,
            waiting: true,
            order: StackRoot::Caller,
            root: "a;c 7".into(),
        }
    }

    #[test]
    fn a_picture_has_every_function_and_is_always_the_same() {
        let folded = [("app;main;read_[k]".to_owned(), 3), ("app;main;op<int> x".to_owned(), 1)];
        let draw = |metric| {
            let mut out = Vec::new();
            picture(metric).draw(&folded, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = draw(Metric::Count);
        for part in [
            "a:c_7 (4 events, 100.00%)",
            "a &lt; b",
            "main (4 events, 100.00%)",
            "read (3 events, 75.00%)",
            "op&lt;int&gt; x (1 events",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text, draw(Metric::Count));
        assert!(picture(Metric::Time).draw(&[], Vec::new()).is_err());
    }

    #[test]
    fn a_difference_says_how_much() {
        let mut out = Vec::new();
        let both = [("a;b".into(), 10, 5), ("a;c".into(), 0, 5), ("a;d".into(), 10, 0)];
        picture(Metric::Count).difference(&both, "gone", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            "b (5 events, 25.00%; -25.00%)",
            "c (5 events, 25.00%; +25.00%)",
            "d (10 events, 50.00%; -50.00%)",
            "gone (10",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

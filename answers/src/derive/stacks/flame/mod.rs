//! Flame graphs: a picture in SVG, whose script looks at parts and searches.
//!
//! A frame is as wide as its weight. Stacks stand in order of their text, so the same stacks give the same bytes.

mod svg;
mod tree;

use std::io::Write;

use anyhow::{Context as _, Result, bail};

use self::tree::Weighted;
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
    /// Draws folded stacks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn draw(&self, folded: &[(String, u64)], out: impl Write) -> Result<()> {
        let root = frame(&self.root);
        let of = |(stack, weight): &(String, u64)| Weighted {
            stack: format!("{root};{stack}"),
            weight: *weight,
            difference: None,
        };
        self.stacks(folded.iter().map(of).collect(), out)
    }

    /// Draws the stacks of the second of two tapes, coloured by their difference from the first: red is more, blue
    /// less. Stacks that only the first has stand beside them, above a frame `gone`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn difference(&self, both: &[(String, u64, u64)], gone: &str, out: impl Write) -> Result<()> {
        let (root, gone) = (frame(&self.root), frame(gone));
        let of = |(stack, before, after): &(String, u64, u64)| {
            // what is gone is as wide as it was, and less by all of it
            let (root, weight) = if *after == 0 { (&gone, *before) } else { (&root, *after) };
            let difference = Some(i128::from(*after) - i128::from(*before));
            Weighted { stack: format!("{root};{stack}"), weight, difference }
        };
        self.stacks(both.iter().map(of).collect(), out)
    }

    fn stacks(&self, stacks: Vec<Weighted>, mut out: impl Write) -> Result<()> {
        if stacks.iter().all(|stack| stack.weight == 0) {
            bail!("there is nothing to draw: no stack passes");
        }
        out.write_all(svg::of(self, &tree::frames(stacks)).as_bytes()).context("cannot write the flame graph")
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

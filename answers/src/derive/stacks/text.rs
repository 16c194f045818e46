//! A call graph in the layout of `perf report --stdio -g`.

use std::io::{self, Write};

use super::graph::{Graph, StackRoot};
use super::weight::percent;
use crate::render::fields::{FAIR, LEAST, Want, widths};
use crate::values::fit::middle;
use crate::values::output::{cut_mark, line, room, within};
use systape_events::values::words::named;

/// Indentation of a branch in columns.
const INDENT: &str = "          ";

/// Options of the text.
#[derive(Clone, Copy, Debug)]
pub struct StackTextOptions<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Direction of the tree.
    pub order: StackRoot,
    /// Functions below this percentage of the total are left out.
    pub min_percent: f64,
    /// Most functions of a stack.
    pub max_depth: usize,
    /// Most roots.
    pub roots: usize,
}

/// The branches left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Number of branches below the least percentage (or past the last root).
    pub light: u64,
    /// Weight of the stacks.
    pub weight: u64,
    /// Number of branches deeper than the limit.
    pub deep: u64,
}

impl StackTextOptions<'_> {
    /// Prints the graph; each stack occurs once, below its root.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, out: &mut impl Write) -> io::Result<Left> {
        let mut left = Left::default();
        let mut shown = Vec::new();
        for (comm, root) in self.graph.roots() {
            if shown.len() < self.roots && self.heavy(root) {
                shown.push((named(&self.graph.comms[comm as usize]), root));
            } else {
                self.leave(root, &mut left);
            }
        }
        let width = |heading: &str, text: &dyn Fn(&(String, u32)) -> usize| {
            shown.iter().map(text).max().unwrap_or(0).max(heading.len())
        };
        let command = width("Command", &|(comm, _)| comm.chars().count());
        let object = width("Shared Object", &|(_, root)| self.graph.label(*root).object().chars().count());
        let symbol = width("Symbol", &|(_, root)| self.graph.label(*root).symbol().chars().count());
        let columns = match self.order {
            StackRoot::Caller => ["Children      Self", "........  ........"],
            StackRoot::Callee => ["Overhead", "........"],
        };
        // on a terminal the symbol has what the others leave
        let lead = columns[0].len() + 2;
        let wants = [command, object, symbol].map(|all| Want { all, least: Some(LEAST), fair: FAIR, leaves: None });
        let fitting = room().map(|room| widths(&wants, 2, room.saturating_sub(lead + 2)));
        let [command, object, symbol] = match fitting.as_deref() {
            Some([Some(command), Some(object), Some(symbol)]) => [*command, *object, *symbol],
            _ => [command, object, symbol],
        };
        let dots = |width| ".".repeat(width);
        let head = middle("Shared Object", object, cut_mark());
        line(out, &format!("# {}  {:command$}  {head:object$}  Symbol", columns[0], "Command"))?;
        line(out, &format!("# {}  {}  {}  {}", columns[1], dots(command), dots(object), dots(symbol)))?;
        line(out, "#")?;
        for (comm, root) in &shown {
            let node = &self.graph.nodes[*root as usize];
            let own = match self.order {
                StackRoot::Caller => format!("  {:>8}", self.percent(node.own.of(self.graph.metric))),
                StackRoot::Callee => String::new(),
            };
            let total = self.percent(node.total.of(self.graph.metric));
            let label = self.graph.label(*root);
            let (object_text, symbol_text) = (label.object(), label.symbol());
            let (from, symbol) = (middle(&object_text, object, cut_mark()), middle(&symbol_text, symbol, cut_mark()));
            let comm = middle(comm, command, cut_mark());
            let text = format!("  {total:>8}{own}  {comm:command$}  {from:object$}  {symbol}");
            line(out, text.trim_end())?;
            self.tree(out, *root, &mut left)?;
            line(out, "")?;
        }
        Ok(left)
    }

    /// `12.34%`.
    fn percent(&self, part: u64) -> String {
        format!("{:.2}%", percent(part, self.graph.total()))
    }

    fn heavy(&self, at: u32) -> bool {
        let weight = self.graph.nodes[at as usize].total.of(self.graph.metric);
        percent(weight, self.graph.total()) >= self.min_percent
    }

    fn leave(&self, at: u32, left: &mut Left) {
        left.light += 1;
        left.weight = left.weight.saturating_add(self.graph.nodes[at as usize].total.of(self.graph.metric));
    }

    /// The tree below a root's line; none below a root without other functions.
    fn tree(&self, out: &mut impl Write, root: u32, left: &mut Left) -> io::Result<()> {
        let mut prefix = " ".repeat(12);
        if self.graph.nodes[root as usize].children.is_empty() {
            return Ok(());
        }
        line(out, &format!("{prefix}|"))?;
        line(out, &format!("{prefix}---{}", within(&self.graph.label(root).in_tree(), prefix.len() + 3)))?;
        prefix.push_str("   ");
        self.below(out, root, &mut prefix, 1, left)
    }

    fn below(
        &self,
        out: &mut impl Write,
        at: u32,
        prefix: &mut String,
        mut depth: usize,
        left: &mut Left,
    ) -> io::Result<()> {
        let mut node = &self.graph.nodes[at as usize];
        let weight = node.total.of(self.graph.metric);
        // a chain: what calls one function only, and does nothing itself
        while let [only] = node.children[..]
            && self.graph.nodes[only as usize].total.of(self.graph.metric) == weight
            && self.graph.nodes[only as usize].total.count == node.total.count
            && depth < self.max_depth
        {
            line(out, &format!("{prefix}{}", within(&self.graph.label(only).in_tree(), prefix.len())))?;
            node = &self.graph.nodes[only as usize];
            depth += 1;
        }
        if depth >= self.max_depth {
            left.deep += node.children.len() as u64;
            return Ok(());
        }
        let heavy: Vec<u32> = node.children.iter().copied().filter(|child| self.heavy(*child)).collect();
        node.children.iter().filter(|child| !heavy.contains(child)).for_each(|child| self.leave(*child, left));
        let begin = prefix.len();
        for (nth, child) in heavy.iter().enumerate() {
            let last = nth + 1 == heavy.len();
            line(out, &format!("{prefix}|"))?;
            let total = self.percent(self.graph.nodes[*child as usize].total.of(self.graph.metric));
            let stem = if last { ' ' } else { '|' };
            let stem_len = prefix.len() + 5 + total.len();
            line(out, &format!("{prefix}{stem}--{total}--{}", within(&self.graph.label(*child).in_tree(), stem_len)))?;
            prefix.push(stem);
            prefix.push_str(INDENT);
            self.below(out, *child, prefix, depth + 1, left)?;
            prefix.truncate(begin);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::stacks::graph::tests::{names, stacked};
    use crate::derive::stacks::weight::Metric;
    use systape_format::model::StackStatus::{Complete, Lost};

    fn print(order: StackRoot, min_percent: f64, max_depth: usize) -> (String, Left) {
        let stacked = stacked(&[
            ("app", &[10, 20, 1000], Complete, 60),
            ("app", &[10, 20, 1000, 2000], Complete, 20),
            ("app", &[10, 30], Complete, 10),
            ("app", &[10, 50], Complete, 1),
            ("job", &[], Lost, 9),
        ]);
        let graph = Graph::new(&stacked, &names(), order, Metric::Count);
        let mut out = Vec::new();
        let left = StackTextOptions { graph: &graph, order, min_percent, max_depth, roots: usize::MAX }
            .print(&mut out)
            .unwrap();
        (String::from_utf8(out).unwrap(), left)
    }

    #[test]
    fn callers_first() {
        let (text, left) = print(StackRoot::Caller, 2.0, usize::MAX);
        let expected = "\
# Children      Self  Command  Shared Object  Symbol
# ........  ........  .......  .............  ..................................................
#
    91.00%     0.00%  app      app            [.] main
            |
            ---main
               inner (inlined)
               |
               |--80.00%--work
               |          sys_read
               |          |
               |           --20.00%--vfs_read
               |
                --10.00%--other

     9.00%     9.00%  job      -                  [no stack: lost, no buffer or stack ring full]

";
        assert_eq!(text, expected);
        assert_eq!(left, Left { light: 1, weight: 1, deep: 0 });
    }

    #[test]
    fn callees_first() {
        let (text, left) = print(StackRoot::Callee, 10.0, usize::MAX);
        let expected = "\
# Overhead  Command  Shared Object  Symbol
# ........  .......  .............  ............
#
    60.00%  app      [kernel]       [k] sys_read
            |
            ---sys_read
               work
               inner (inlined)
               main

    20.00%  app      [kernel]       [k] vfs_read
            |
            ---vfs_read
               sys_read
               work
               inner (inlined)
               main

    10.00%  app      app            [.] other
            |
            ---other
               inner (inlined)
               main

";
        assert_eq!(text, expected);
        assert_eq!(left, Left { light: 2, weight: 10, deep: 0 });
    }

    #[test]
    fn what_is_deeper_is_counted() {
        let (text, left) = print(StackRoot::Caller, 0.0, 3);
        assert!(text.contains("--80.00%--work\n") && !text.contains("sys_read"), "{text}");
        assert_eq!(left, Left { light: 0, weight: 0, deep: 1 });
    }
}

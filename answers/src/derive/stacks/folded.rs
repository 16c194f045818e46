//! A call graph as folded stacks: `comm;outermost;…;innermost weight`, the input of flame graph tools.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::graph::Graph;
use super::label::Label;
use systape_events::values::words::named;

/// Calls `then` with the name of the threads, the nodes from the outermost on and the weight of each stack; stacks are cut after
/// `max_depth` functions.
pub fn each(graph: &Graph, max_depth: usize, mut then: impl FnMut(&[u8], &[u32], u64)) {
    // (node, depth)
    let mut waiting: Vec<(u32, usize)> = Vec::new();
    let mut nodes = Vec::new();
    for thread in &graph.nodes[0].children {
        let thread = &graph.nodes[*thread as usize];
        let comm = &graph.comms[thread.label as usize];
        waiting.extend(thread.children.iter().map(|root| (*root, 1)));
        while let Some((at, depth)) = waiting.pop() {
            let node = &graph.nodes[at as usize];
            nodes.truncate(depth - 1);
            nodes.push(at);
            let deep = depth >= max_depth;
            let weight = if deep { node.total } else { node.own }.of(graph.metric);
            if weight > 0 {
                then(comm, &nodes, weight);
            }
            if !deep {
                waiting.extend(node.children.iter().map(|child| (*child, depth + 1)));
            }
        }
    }
}

/// Weights by folded stack, in order of the text; stacks are cut after `max_depth` functions.
pub fn fold(graph: &Graph, max_depth: usize) -> Vec<(String, u64)> {
    let mut folded: Vec<(String, u64)> = Vec::new();
    each(graph, max_depth, |comm, nodes, weight| {
        let mut text = frame(&named(comm));
        for at in nodes {
            text.push(';');
            text.push_str(&of_label(graph.label(*at)));
        }
        folded.push((text, weight));
    });
    // a name in both kernel and user space, or escaped alike, must not be two lines
    folded.sort();
    folded.dedup_by(|b, a| {
        let same = a.0 == b.0;
        a.1 = if same { a.1.saturating_add(b.1) } else { a.1 };
        same
    });
    folded
}

/// `name`, `name_[k]` in the kernel.
fn of_label(label: &Label) -> String {
    let plain = Label { inlined: false, ..label.clone() };
    let mut text = frame(&plain.in_tree());
    if label.kernel {
        text.push_str("_[k]");
    }
    text
}

/// A name without frame separators, and without a number after a space, which would be read as the weight.
pub fn frame(name: &str) -> String {
    let name = name.replace(';', ":");
    let number = name.rsplit(' ').next().is_some_and(|word| word.parse::<f64>().is_ok());
    if number { name.replace(' ', "_") } else { name }
}

/// Prints one stack a line.
///
/// # Errors
/// They cannot be written.
pub fn print(out: &mut impl Write, folded: &[(String, u64)]) -> io::Result<()> {
    folded.iter().try_for_each(|(stack, weight)| writeln!(out, "{stack} {weight}"))
}

/// The stacks of two tapes with the weight in each, in order of the text.
pub fn both(before: Vec<(String, u64)>, after: Vec<(String, u64)>) -> Vec<(String, u64, u64)> {
    let mut weights: FxHashMap<String, (u64, u64)> = FxHashMap::default();
    before.into_iter().for_each(|(stack, weight)| weights.entry(stack).or_default().0 = weight);
    after.into_iter().for_each(|(stack, weight)| weights.entry(stack).or_default().1 = weight);
    let mut both: Vec<_> = weights.into_iter().map(|(stack, (before, after))| (stack, before, after)).collect();
    both.sort();
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::stacks::graph::tests::{names, stacked};
    use crate::derive::stacks::graph::{Graph, StackRoot};
    use crate::derive::stacks::weight::Metric;
    use systape_format::model::StackStatus::{Complete, Lost};

    #[test]
    fn stacks_on_one_line() {
        let stacked = stacked(&[
            ("my 7", &[10, 20, 1000], Complete, 60),
            ("my 7", &[10, 20, 1000, 2000], Complete, 20),
            ("my 7", &[10, 50], Complete, 1),
            ("a;b", &[], Lost, 9),
        ]);
        let graph = Graph::new(&stacked, &names(), StackRoot::Caller, Metric::Count);
        let text = |depth| {
            let mut out = Vec::new();
            print(&mut out, &fold(&graph, depth)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(usize::MAX),
            "a:b;[no stack: lost, no buffer or stack ring full] 9\n\
             my_7;main;inner;[0x32] (/app) 1\n\
             my_7;main;inner;work;sys_read_[k] 60\n\
             my_7;main;inner;work;sys_read_[k];vfs_read_[k] 20\n"
        );
        assert_eq!(text(2), "a:b;[no stack: lost, no buffer or stack ring full] 9\nmy_7;main;inner 81\n");
    }

    #[test]
    fn two_tapes_side_by_side() {
        let list = |stacks: &[(&str, u64)]| stacks.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect();
        let both = both(list(&[("a;b", 1), ("a;c", 2)]), list(&[("a;c", 5), ("a;d", 7)]));
        assert_eq!(both, [("a;b".into(), 1, 0), ("a;c".into(), 2, 5), ("a;d".into(), 0, 7)]);
    }
}

//! A call graph: weights by name, from callers to callees or the other way round.

use rustc_hash::FxHashMap;

use super::ending::StackEnding;
use super::forest::{Forest, MAX_FRAMES, NONE};
use super::interner::Interner;
use super::label::{self, Label};
use super::names::Names;
use super::weight::{Metric, Weight};
use systape_events::values::order::InOrder as _;

/// A stack in a [`Forest`], its end, and its thread's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Node of the innermost user frame; [`NONE`].
    pub user: u32,
    /// Node of the innermost kernel frame; [`NONE`].
    pub kernel: u32,
    /// How the user part ends.
    pub ending: StackEnding,
    /// Number of the thread's name.
    pub comm: u32,
}

/// Weights by stack, before names are looked up.
#[derive(Debug, Default)]
pub struct Stacked {
    /// The stacks.
    pub forest: Forest,
    /// Names of threads.
    pub comms: Interner<Vec<u8>>,
    /// Weights by key.
    pub sums: FxHashMap<Key, Weight>,
}

impl Stacked {
    /// Adds to a stack.
    pub fn add(&mut self, key: Key, weight: Weight) {
        *self.sums.entry(key).or_default() += weight;
    }

    /// Adds to the one stack of idle waits.
    pub fn add_idle(&mut self, weight: Weight) {
        let comm = self.comms.id(&b"[idle waits]".to_vec());
        self.add(Key { user: NONE, kernel: NONE, ending: StackEnding::Idle, comm }, weight);
    }

    /// The sum of all weights.
    pub fn total(&self) -> Weight {
        let mut total = Weight::default();
        self.sums.values().for_each(|weight| total += *weight);
        total
    }

    /// Events by the end of their stacks; `true`: without any frame.
    pub fn endings(&self) -> Vec<((StackEnding, bool), u64)> {
        let mut endings: FxHashMap<(StackEnding, bool), u64> = FxHashMap::default();
        for (key, weight) in &self.sums {
            *endings.entry((key.ending, key.user == NONE && key.kernel == NONE)).or_default() += weight.count;
        }
        let mut endings: Vec<_> = endings.into_iter().collect();
        endings.order_by_key(|(ending, count)| (std::cmp::Reverse(*count), *ending));
        endings
    }
}

/// Which end of a stack is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackRoot {
    /// The outermost caller.
    #[default]
    Caller,
    /// The innermost function.
    Callee,
}

/// A function, called from (or calling) those above it.
#[derive(Clone, Debug, Default)]
pub struct GraphNode {
    /// Number of its label; in the first level of a thread's name.
    pub label: u32,
    /// Weight of all stacks through it.
    pub total: Weight,
    /// Weight of the stacks that end with it.
    pub own: Weight,
    /// Children, heaviest first.
    pub children: Vec<u32>,
}

/// Weights by name.
#[derive(Debug)]
pub struct Graph {
    /// The metric of the percentages.
    pub metric: Metric,
    /// Names of functions.
    pub labels: Interner<Label>,
    /// Names of threads.
    pub comms: Vec<Vec<u8>>,
    /// The first node is the root of everything, its children are threads by name, theirs the roots of stacks.
    pub nodes: Vec<GraphNode>,
}

impl Graph {
    /// Looks up the names of `stacked` and adds up by them.
    pub fn new(stacked: &Stacked, names: &Names, order: StackRoot, metric: Metric) -> Self {
        let mut paths = GraphPaths::new(stacked, names);
        let mut graph = Self {
            metric,
            labels: Interner::default(),
            comms: stacked.comms.values().to_vec(),
            nodes: vec![GraphNode::default()],
        };
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut path = Vec::new();
        for (key, weight) in &stacked.sums {
            paths.path(key, &mut graph.labels, &mut path);
            if order == StackRoot::Caller {
                path.reverse();
            }
            graph.nodes[0].total += *weight;
            let mut at = 0;
            for label in std::iter::once(key.comm).chain(path.iter().copied()) {
                let nodes = &mut graph.nodes;
                let child = *ids.entry((at, label)).or_insert_with(|| {
                    let id = nodes.len() as u32;
                    nodes.push(GraphNode { label, ..GraphNode::default() });
                    nodes[at as usize].children.push(id);
                    id
                });
                nodes[child as usize].total += *weight;
                at = child;
            }
            graph.nodes[at as usize].own += *weight;
        }
        graph.sort();
        graph
    }

    fn sort(&mut self) {
        for at in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[at].children);
            children.order_by(|a, b| {
                let weight = |at: &u32| self.nodes[*at as usize].total;
                let heavier = weight(b).of(self.metric).cmp(&weight(a).of(self.metric));
                let more = || weight(b).count.cmp(&weight(a).count);
                heavier.then_with(more).then_with(|| self.name(at == 0, *a).cmp(&self.name(at == 0, *b)))
            });
            self.nodes[at].children = children;
        }
    }

    /// Sort key of children of equal weight, because the order of first use depends on chance.
    fn name(&self, thread: bool, at: u32) -> (Option<&Label>, Option<&[u8]>) {
        let label = self.nodes[at as usize].label;
        if thread { (None, Some(&self.comms[label as usize])) } else { (Some(self.label(at)), None) }
    }

    /// The label of a node of the second level or below.
    pub fn label(&self, at: u32) -> &Label {
        &self.labels.values()[self.nodes[at as usize].label as usize]
    }

    /// The weight of everything.
    pub fn total(&self) -> u64 {
        self.nodes[0].total.of(self.metric)
    }

    /// The roots of stacks with the number of their thread's name, heaviest first.
    pub fn roots(&self) -> Vec<(u32, u32)> {
        let threads = self.nodes[0].children.iter().map(|at| &self.nodes[*at as usize]);
        let mut roots: Vec<(u32, u32)> =
            threads.flat_map(|thread| thread.children.iter().map(|root| (thread.label, *root))).collect();
        // the sort is stable: equal roots stay in the order of their threads
        roots.order_by_key(|(_, root)| std::cmp::Reverse(self.nodes[*root as usize].total.of(self.metric)));
        roots
    }
}

/// Turns stacks into labels.
struct GraphPaths<'a> {
    stacked: &'a Stacked,
    names: &'a Names,
    /// The number of each mapping of the forest in `names`.
    mappings: Vec<Option<u32>>,
    /// Labels of each frame of the forest, the innermost inlined function first; empty = not looked up yet.
    frames: Vec<Vec<u32>>,
    found: Vec<u32>,
}

impl<'a> GraphPaths<'a> {
    fn new(stacked: &'a Stacked, names: &'a Names) -> Self {
        let forest = &stacked.forest;
        let mappings = forest.mappings().values().iter().map(|mapping| names.mapping(mapping)).collect();
        Self { stacked, names, mappings, frames: vec![Vec::new(); forest.frames().len()], found: Vec::new() }
    }

    /// The labels of a stack, the innermost first; a pseudo frame for missing ones is last. Never empty.
    fn path(&mut self, key: &Key, labels: &mut Interner<Label>, into: &mut Vec<u32>) {
        into.clear();
        self.found.clear();
        let forest = &self.stacked.forest;
        let whole = forest.frames_from(key.kernel, &mut self.found) && forest.frames_from(key.user, &mut self.found);
        for frame in &self.found {
            if self.frames[*frame as usize].is_empty() {
                self.frames[*frame as usize] = self.labels(*frame, labels);
            }
            into.extend(&self.frames[*frame as usize]);
        }
        let limit = 2 * MAX_FRAMES;
        let ending = if whole && into.len() <= limit { key.ending } else { StackEnding::TooLong };
        into.truncate(limit);
        if let Some(mark) = ending.mark(into.is_empty()) {
            into.push(labels.id(&Label::mark(mark)));
        }
    }

    fn labels(&self, at: u32, labels: &mut Interner<Label>) -> Vec<u32> {
        let forest = &self.stacked.forest;
        let frame = &forest.frames()[at as usize];
        let mapping = &forest.mappings().values()[frame.mapping as usize];
        let found = label::labels(self.names, self.mappings[frame.mapping as usize], mapping, frame);
        found.iter().map(|(_, label)| labels.id(label)).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::derive::stacks::forest::Graft;
    use crate::derive::stacks::text::StackTextOptions;
    use proptest::prelude::*;
    use systape_format::model::{Frame, Function, Mapping, MappingKind, Node as Stored, StackStatus, Stacks};

    /// User code of /app at offsets 10, 20, …, kernel code at 1000, …; the offset's first digit names the function.
    pub(crate) fn stacked(stacks: &[(&str, &[u64], StackStatus, u64)]) -> Stacked {
        let mut stored = Stacks {
            mappings: vec![
                Mapping { kind: MappingKind::Elf, path: b"/app".to_vec(), ..Mapping::default() },
                Mapping { kind: MappingKind::Kernel, path: b"[kernel]".to_vec(), ..Mapping::default() },
            ],
            ..Stacks::default()
        };
        let mut all = Stacked::default();
        let mut keys = Vec::new();
        for (comm, offsets, status, count) in stacks {
            let mut leaf = [None, None];
            for offset in *offsets {
                let kernel = usize::from(*offset >= 1000);
                stored.frames.push(Frame { mapping: kernel as u32, offset: *offset, flags: 1 });
                stored.nodes.push(Stored { parent: leaf[kernel], frame: stored.frames.len() as u32 - 1 });
                leaf[kernel] = Some(stored.nodes.len() as u32 - 1);
            }
            keys.push((*comm, leaf, *status, *count));
        }
        let mut graft = Graft::new(&stored);
        for (comm, leaf, status, count) in keys {
            let key = Key {
                user: graft.node(&stored, &mut all.forest, leaf[0]),
                kernel: graft.node(&stored, &mut all.forest, leaf[1]),
                ending: StackEnding::Status(status),
                comm: all.comms.id(&comm.as_bytes().to_vec()),
            };
            all.add(key, Weight { count, time: 10 * count, ..Weight::default() });
        }
        all
    }

    /// Names for these: 10 is `inner` inlined into `main`, 20 `work`, 30 `other`, 1000 `sys_read`, 2000 `vfs_read`.
    pub(crate) fn names() -> Names {
        let mut names = Names::default();
        let app = Mapping { kind: MappingKind::Elf, path: b"/app".to_vec(), ..Mapping::default() };
        let kernel = Mapping { kind: MappingKind::Kernel, path: b"[kernel]".to_vec(), ..Mapping::default() };
        let functions = |names: &[&str]| {
            names.iter().map(|name| Function { name: (*name).into(), ..Function::default() }).collect()
        };
        names.improve(&app, 10, functions(&["inner", "main"]));
        names.improve(&app, 20, functions(&["work"]));
        names.improve(&app, 30, functions(&["other"]));
        names.improve(&kernel, 1000, functions(&["sys_read"]));
        names.improve(&kernel, 2000, functions(&["vfs_read"]));
        names
    }

    /// Every path with what ends there.
    fn paths(graph: &Graph) -> Vec<String> {
        fn below(graph: &Graph, at: u32, prefix: &str, into: &mut Vec<String>) {
            let node = &graph.nodes[at as usize];
            let text = format!("{prefix};{}", graph.label(at).in_tree());
            if node.own.count > 0 {
                into.push(format!("{text} {}", node.own.count));
            }
            node.children.iter().for_each(|child| below(graph, *child, &text, into));
        }
        let mut into = Vec::new();
        for (comm, root) in graph.roots() {
            below(graph, root, &String::from_utf8_lossy(&graph.comms[comm as usize]), &mut into);
        }
        into
    }

    #[test]
    fn user_callers_call_the_kernel() {
        use StackStatus::{Complete, Cut, Lost};
        let stacked = stacked(&[
            ("app", &[10, 20, 1000], Complete, 5),
            ("app", &[10, 20, 1000, 2000], Complete, 2),
            ("app", &[20], Cut, 1),
            ("job", &[], Lost, 3),
            ("job", &[99], Complete, 4),
        ]);
        let caller = Graph::new(&stacked, &names(), StackRoot::Caller, Metric::Count);
        assert_eq!(caller.total(), 15);
        assert_eq!(
            paths(&caller),
            [
                "app;main;inner (inlined);work;sys_read 5",
                "app;main;inner (inlined);work;sys_read;vfs_read 2",
                "job;[0x63] (/app) 4",
                "job;[no stack: lost, no buffer or stack ring full] 3",
                "app;[stack ends: larger than what was copied of it];work 1",
            ]
        );
        let callee = Graph::new(&stacked, &names(), StackRoot::Callee, Metric::Count);
        assert_eq!(
            paths(&callee),
            [
                "app;sys_read;work;inner (inlined);main 5",
                "job;[0x63] (/app) 4",
                "job;[no stack: lost, no buffer or stack ring full] 3",
                "app;vfs_read;sys_read;work;inner (inlined);main 2",
                "app;work;[stack ends: larger than what was copied of it] 1",
            ]
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_counted_twice(
            stacks in prop::collection::vec((0..3_usize, prop::collection::vec(1..6_u64, 0..7), 0..4_u8, 1..50_u64), 0..40),
        ) {
            const COMMS: [&str; 3] = ["a", "b", ""];
            const ENDS: [StackStatus; 4] =
                [StackStatus::Complete, StackStatus::Cut, StackStatus::Absent, StackStatus::FramePointers];
            // 40 and 50 have no names, 1000 is the kernel's
            let places = |path: &[u64]| path.iter().map(|at| [10, 20, 40, 50, 1000][*at as usize - 1]).collect::<Vec<_>>();
            let paths: Vec<_> = stacks.iter().map(|stack| places(&stack.1)).collect();
            let listed: Vec<_> = stacks
                .iter()
                .zip(&paths)
                .map(|(stack, path)| (COMMS[stack.0], path.as_slice(), ENDS[usize::from(stack.2)], stack.3))
                .collect();
            let stacked = stacked(&listed);
            let all: u64 = stacks.iter().map(|stack| stack.3).sum();
            for order in [StackRoot::Caller, StackRoot::Callee] {
                let graph = Graph::new(&stacked, &names(), order, Metric::Count);
                prop_assert_eq!(graph.total(), all);
                prop_assert_eq!(graph.nodes.iter().map(|node| node.own.count).sum::<u64>(), all);
                prop_assert_eq!(graph.roots().iter().map(|root| graph.nodes[root.1 as usize].total.count).sum::<u64>(), all);
                for node in &graph.nodes {
                    let below: u64 = node.children.iter().map(|at| graph.nodes[*at as usize].total.count).sum();
                    prop_assert_eq!(node.total.count, below + node.own.count);
                }
                for depth in [1, 2, usize::MAX] {
                    let folded = crate::derive::stacks::folded::fold(&graph, depth);
                    prop_assert_eq!(folded.iter().map(|stack| stack.1).sum::<u64>(), all);
                }
                let mut out = Vec::new();
                let view = StackTextOptions { graph: &graph, order, min_percent: 5.0, max_depth: usize::MAX, roots: usize::MAX };
                let left = view.print(&mut out).unwrap();
                prop_assert!(left.weight <= all);
            }
        }
    }

    #[test]
    fn totals_of_children_and_own_weights_add_up() {
        let stacked = stacked(&[
            ("app", &[10, 20], StackStatus::Complete, 5),
            ("app", &[10], StackStatus::Complete, 2),
            ("app", &[10, 30], StackStatus::FramePointers, 1),
        ]);
        let graph = Graph::new(&stacked, &names(), StackRoot::Caller, Metric::Time);
        for node in &graph.nodes {
            let below: u64 = node.children.iter().map(|at| graph.nodes[*at as usize].total.time).sum();
            assert_eq!(node.total.time, below + node.own.time);
        }
        assert_eq!(graph.total(), 80);
    }
}

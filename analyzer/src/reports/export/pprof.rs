//! `analyze export pprof`: the sums of `analyze callgraph` as a file that `go tool pprof` opens.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;
use systape_format::reader::Tape;

use super::proto::profile::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::{made, named_file, not_text};
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Reads, TASKS, View};
use crate::asked::options::stacks::SymbolPlaces;
use crate::reports::callgraph::{Sums, answer_elsewhere};
use systape_answers::derive::stacks::graph::Graph;
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::of::Of;
use systape_answers::derive::stacks::weight::{Metric, Weight};
use systape_answers::render::out::Out;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::say::Verdict;
use systape_events::question::clock;
use systape_events::values::words::{escaped, named, shell};

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "export pprof",
    about: "Stacks added up, as a file for go tool pprof",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze export pprof -o cpu.pb.gz", "what ran on the CPUs: go tool pprof -top cpu.pb.gz"),
        ("analyze export pprof --of offcpu -o off.pb.gz", "where threads left the CPU, by time"),
    ],
    check: |config| {
        let own: Options = config.own()?;
        not_text(config)?;
        if config.is_of_many() {
            bail!("a profile is of one tape: export one at a time (go tool pprof adds up the profiles it is given)");
        }
        named_file(own.output).map(drop)
    },
    reads: |config| -> Result<Reads> { config.own::<Options>()?.names.reads() },
    run: AnswerFn::Writes { make: |config| made(config, config.own::<Options>()?.output), run, tells_damage: false },
    ..View::PLAIN
};

#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Whose stacks: cpu syscall offcpu block signal wakeup, or a table that has stacks [default: the first of these the tape has]
    #[arg(long, value_parser = Of::parse, value_name = "EVENTS", help_heading = "Stacks")]
    of: Option<Of>,

    /// The value that pprof shows first
    #[arg(long, value_enum, value_name = "METRIC", help_heading = "Stacks")]
    metric: Option<Metric>,

    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    names: SymbolPlaces,
}

fn run(config: &Config, tape: &Tape, file: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let file = named_file(file)?;
    answer_elsewhere(
        config,
        tape,
        (own.of, own.metric),
        own.names,
        |sums| {
            let mut out = GzEncoder::new(Vec::new(), Compression::default());
            out.write_all(&profile(sums, tape).encode_to_vec())?;
            let bytes = out.finish()?;
            file.replace(&bytes).with_context(|| format!("cannot write {}", file.path().display()))
        },
        out,
    )
}

/// The profile of `sums`.
fn profile(sums: &Sums<'_>, tape: &Tape) -> Profile {
    let (session, graph) = (tape.session(), sums.graph);
    let mut made = ProfileBuilder::default();
    // a stack has a value of each
    let metrics = [Metric::Count, Metric::Time, Metric::Bytes].map(|metric| (metric, sums.of.has(metric)));
    let metrics: Vec<Metric> = metrics.into_iter().filter(|(_, has)| *has).map(|(metric, _)| metric).collect();
    for metric in &metrics {
        let unit = match metric {
            Metric::Count => "count",
            Metric::Time => "nanoseconds",
            Metric::Bytes => "bytes",
        };
        let (r#type, unit) = (made.text(metric.name().to_owned()), made.text(unit.to_owned()));
        made.profile.sample_type.push(ValueType { r#type, unit });
    }
    made.samples(graph, &metrics);
    made.main_first(session.target.strip_prefix("command "));
    let title = format!("{}: {}", sums.of.words(), sums.total);
    for comment in
        [title, format!("recorded by: {}", shell(&session.arguments))].into_iter().chain(sums.notes.iter().cloned())
    {
        let comment = made.text(comment);
        made.profile.comment.push(comment);
    }
    made.profile.default_sample_type = made.text(graph.metric.name().to_owned());
    made.profile.time_nanos = clock(tape).real(session.window_open).map_or(0, |real| real.first);
    let length = tape.complete_until().saturating_sub(session.window_open);
    made.profile.duration_nanos = i64::try_from(length).unwrap_or(i64::MAX);
    if *sums.of == Of::Cpu && session.stacks.frequency > 0 {
        let (r#type, unit) = (made.text("cpu".to_owned()), made.text("nanoseconds".to_owned()));
        made.profile.period_type = Some(ValueType { r#type, unit });
        made.profile.period = 1_000_000_000 / i64::from(session.stacks.frequency);
    }
    made.profile
}

/// A profile being made.
#[derive(Debug)]
struct ProfileBuilder {
    profile: Profile,
    texts: HashMap<String, i64>,
    /// By number of the label.
    locations: HashMap<u32, u64>,
    mappings: HashMap<Vec<u8>, u64>,
    /// How much there is of stacks that are in a file at all, in the graph's metric.
    within: HashMap<u64, u64>,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        let profile = Profile { string_table: vec![String::new()], ..Profile::default() };
        let texts = HashMap::from([(String::new(), 0)]);
        Self { profile, texts, locations: HashMap::new(), mappings: HashMap::new(), within: HashMap::new() }
    }
}

impl ProfileBuilder {
    fn text(&mut self, text: String) -> i64 {
        let table = &mut self.profile.string_table;
        *self.texts.entry(text).or_insert_with_key(|text| {
            table.push(text.clone());
            table.len() as i64 - 1
        })
    }

    /// The file of a function; 0: it has none.
    fn mapping(&mut self, module: &[u8]) -> u64 {
        if module.is_empty() {
            return 0;
        }
        if let Some(id) = self.mappings.get(module) {
            return *id;
        }
        let filename = self.text(escaped(module));
        let id = self.profile.mapping.len() as u64 + 1;
        self.profile.mapping.push(Mapping { id, filename, has_functions: true });
        self.mappings.insert(module.to_vec(), id);
        id
    }

    /// The place of a label: a function, or what stands for missing ones.
    fn location(&mut self, graph: &Graph, at: u32) -> u64 {
        let number = graph.nodes[at as usize].label;
        if let Some(id) = self.locations.get(&number) {
            return *id;
        }
        let label: &label::Label = graph.label(at);
        let name = self.text(label.in_tree());
        let mapping_id = self.mapping(&label.module);
        let id = self.profile.location.len() as u64 + 1;
        self.profile.function.push(Function { id, name });
        self.profile.location.push(Location { id, mapping_id, line: vec![Line { function_id: id }] });
        self.locations.insert(number, id);
        id
    }

    /// Puts the file first that pprof takes for the program: of the recorded `command`, or else that with most in it which is no library.
    fn main_first(&mut self, command: Option<&str>) {
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let command = command.and_then(|line| line.split(' ').next()).map(last);
        let rank = |mapping: &Mapping| {
            let name = &self.profile.string_table[mapping.filename as usize];
            let file = last(name);
            let is_program = name.starts_with('/') && !file.ends_with(".so") && !file.contains(".so.");
            is_program.then(|| (command.as_ref() == Some(&file), self.within.get(&mapping.id).copied().unwrap_or(0)))
        };
        let ranked = self.profile.mapping.iter().map(rank).enumerate().filter_map(|(at, rank)| Some((rank?, at)));
        // of equal ones the first that was met
        if let Some((_, at)) = ranked.max_by_key(|(rank, at)| (*rank, std::cmp::Reverse(*at))) {
            self.profile.mapping[..=at].rotate_right(1);
        }
    }

    /// A sample for each path on which stacks end.
    fn samples(&mut self, graph: &Graph, metrics: &[Metric]) {
        let key = self.text("thread".to_owned());
        for thread in &graph.nodes[0].children {
            let thread = &graph.nodes[*thread as usize];
            let comm = self.text(named(&graph.comms[thread.label as usize]));
            let mut path: Vec<u64> = Vec::new();
            let mut waiting: Vec<(u32, usize)> = thread.children.iter().map(|root| (*root, 0)).collect();
            while let Some((at, depth)) = waiting.pop() {
                path.truncate(depth);
                path.push(self.location(graph, at));
                let node = &graph.nodes[at as usize];
                if node.own != Weight::default() {
                    let mut files: Vec<u64> =
                        path.iter().map(|id| self.profile.location[*id as usize - 1].mapping_id).collect();
                    files.sort_unstable();
                    files.dedup();
                    let own = node.own.of(graph.metric);
                    files.into_iter().for_each(|file| *self.within.entry(file).or_default() += own);
                    let value = |metric: &Metric| i64::try_from(node.own.of(*metric)).unwrap_or(i64::MAX);
                    self.profile.sample.push(Sample {
                        location_id: path.iter().rev().copied().collect(),
                        value: metrics.iter().map(value).collect(),
                        label: vec![Label { key, str: comm }],
                    });
                }
                waiting.extend(node.children.iter().map(|child| (*child, depth + 1)));
            }
        }
    }
}

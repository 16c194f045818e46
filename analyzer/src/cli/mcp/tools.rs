//! The tools: which report each asks, and which options of that report are its arguments. What an argument is called, what it takes and what
//! is said of it comes from the option's own declaration. Options that read or write other files, start programs or are about text
//! for people are no arguments.

use std::any::TypeId;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::gathered::MOST_ROWS;
use crate::asked::config::view::View;
use crate::cli::parse;
use crate::cli::views;

/// Most values of a list.
const MOST_VALUES: usize = 64;
/// Most bytes of a value.
const LONGEST_VALUE: usize = 4096;
/// Most bytes of a query.
const LONGEST_QUERY: usize = 64 << 10;

/// What a tool asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// The names of the tapes.
    Tapes,
    /// A report about a tape: its words.
    Report(&'static str),
    /// A report about two tapes, or two stretches of one.
    TwoTapes(&'static str),
    /// A query about a tape.
    Query,
    /// The schema of a report's rows.
    Schema,
}

/// The declaration of a tool.
#[derive(Debug)]
struct ToolDef {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    asks: ToolKind,
    /// Options of the report that are arguments, by their ids.
    takes: &'static [&'static [&'static str]],
}

/// Which threads.
const TASKS: &[&str] = &["pids", "tree", "tids", "users", "comm", "cgroups", "units", "containers", "pods"];
/// Which calls.
const CALLS: &[&str] = &["events", "duration", "failure", "paths", "cpus"];

const TOOLS: &[ToolDef] = &[
    ToolDef {
        name: "list",
        title: "Tapes",
        about: "The tapes that can be asked: a row each with its name (column 'tape'), host, start, length, events, loss and size. \
                The other tools take that name.",
        asks: ToolKind::Tapes,
        takes: &[],
    },
    ToolDef {
        name: "info",
        title: "What is on a tape",
        about: "What was recorded, where, when and how, and what is missing: families of events, options of the recording, losses by cause.",
        asks: ToolKind::Report("info"),
        takes: &[],
    },
    ToolDef {
        name: "why",
        title: "Why was it slow, what broke",
        about: "Findings, the worst first: what was slow and what broke, each with what it cost and the command that shows it. Ask this \
                first, then a second tool about what it names. With 'when': what began, ended, rose or fell, and when.",
        asks: ToolKind::Report("why"),
        takes: &[TASKS, &["time", "floor", "when"]],
    },
    ToolDef {
        name: "path",
        title: "Where the time of a thread went",
        about: "The critical path of one thread or process, or of the recorded command: stretch by stretch what it did or waited for, \
                across the threads that it waited for. 'sums' adds it up by cause; 'without' says how long it would have taken without one.",
        asks: ToolKind::Report("path"),
        takes: &[&["pids", "tids", "time", "sums", "without"]],
    },
    ToolDef {
        name: "top",
        title: "Which has most calls or time",
        about: "Which process, file, directory, peer, error and the like has most calls or most of their time, with shares. 'by' takes \
                keys as pid, tid, comm, uid, syscall, file, dir, ext, peer, port, errno, cgroup, container, unit, pod, cpu, second. \
                With 'event' of another family (sched:sched_switch) it ranks those events.",
        asks: ToolKind::Report("top"),
        takes: &[&["by", "metric"], TASKS, CALLS, &["time", "value"]],
    },
    ToolDef {
        name: "summary",
        title: "Calls, errors and times",
        about: "Calls, errors and times (total, average, p50, p99, longest) by thread and syscall, or by the keys of 'by'.",
        asks: ToolKind::Report("summary"),
        takes: &[&["by", "sort", "errno_summary", "summary_mode"], TASKS, CALLS, &["time"]],
    },
    ToolDef {
        name: "calls",
        title: "Calls one by one",
        about: "Every syscall in order of its start, with arguments, result and time; events of other families that 'event' names stand \
                between them. A tape has millions: choose some by event, duration, failure, path, pid or time.",
        asks: ToolKind::Report(""),
        takes: &[TASKS, CALLS, &["time"]],
    },
    ToolDef {
        name: "kills",
        title: "Who sent which signal",
        about: "Signals that ended or stopped a process: who sent them to whom, and what came of it, also kills by the kernel when memory \
                is short. 'all' has every signal.",
        asks: ToolKind::Report("kills"),
        takes: &[TASKS, &["time", "signal", "all"]],
    },
    ToolDef {
        name: "requests",
        title: "How long servers took to answer",
        about: "Exchanges on connections, a request and its answer each: how many, how long (p50, p90, p99, longest), by server and \
                program. 'client' looks from the end that connected; 'slowest' lists the slowest one by one, with 'where' where the \
                time of each went.",
        asks: ToolKind::Report("requests"),
        takes: &[&["by", "client", "port", "slowest", "budget"], TASKS, &["time"]],
    },
    ToolDef {
        name: "stays",
        title: "What threads were in",
        about: "Of a tape of looks at all threads (record --sample), which has no calls one by one: how long threads were in which call, \
                on which file or lock, or ran, each with the range that chance leaves. 'longest' lists the longest stays.",
        asks: ToolKind::Report("stays"),
        takes: &[&["by", "longest"], TASKS, &["time"]],
    },
    ToolDef {
        name: "diff",
        title: "What changed",
        about: "What differs between two tapes ('tape' and 'other'), or between two stretches of one ('before' and 'after'): CPU time, \
                waits, I/O, and calls by a key. 'changed' in a row says whether chance explains the difference.",
        asks: ToolKind::TwoTapes("diff"),
        takes: &[&["before", "after", "per", "by"], TASKS, CALLS, &["time"]],
    },
    ToolDef {
        name: "sql",
        title: "A query in SQL",
        about: "One SELECT (or WITH ... SELECT) over the tables of a tape: syscalls, processes, sched, kills, gaps and others. Without a \
                query it lists the tables; with 'table' the columns of that table. Table gaps has what is lost.",
        asks: ToolKind::Query,
        takes: &[],
    },
    ToolDef {
        name: "schema",
        title: "Columns of a report",
        about: "What the rows of a report may hold, as JSON Schema, one row for each kind of row: what each column means, its unit, and \
                which columns may be bounds. Without a report it lists their names.",
        asks: ToolKind::Schema,
        takes: &[],
    },
];

/// Arguments that make an answer smaller, in the order in which they are proposed.
const NARROWING: [&str; 12] =
    ["time", "event", "duration", "failure", "path", "pid", "tid", "comm", "signal", "without", "cpus", "by"];

/// What is said of options whose help is about how they are typed, by their ids.
const SAID: &[(&str, &str)] = &[
    ("comm", "Only threads of these names (globs allowed, `!` leaves out)"),
    ("tree", "With pid: the processes below them too"),
    (
        "events",
        "Only these calls: names, globs, groups (file, network, ...), `!` leaves out. Other events as family:event, such as sched:*",
    ),
    ("by", "Keys that are added up by"),
    ("pids", "Only these processes, by number"),
    ("tids", "Only these threads, by number"),
];

/// What an argument holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentKind {
    /// True or false.
    Flag,
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// Some texts.
    Texts,
    /// Some whole numbers.
    Numbers,
}

/// An argument of a tool that is an option of its report.
#[derive(Debug)]
struct ToolArgument {
    name: String,
    option: String,
    kind: ArgumentKind,
    about: String,
    /// The values that there are; empty: any.
    values: Vec<String>,
}

/// A tool, with its arguments.
#[derive(Debug)]
pub(super) struct Tool {
    def: &'static ToolDef,
    arguments: Vec<ToolArgument>,
}

/// The arguments of a call that are right in form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolArguments {
    /// The tape.
    pub tape: Option<String>,
    /// The second tape.
    pub other: Option<String>,
    /// The query.
    pub query: Option<String>,
    /// The table whose columns are asked for.
    pub table: Option<String>,
    /// The report whose schema is asked for.
    pub report: Option<String>,
    /// Which of its kinds of rows, counted from 1.
    pub kind: Option<usize>,
    /// Most rows.
    pub limit: Option<usize>,
    /// Options of the report, as typed.
    pub words: Vec<String>,
}

/// All tools.
pub(super) fn tools() -> Vec<Tool> {
    TOOLS.iter().map(Tool::of).collect()
}

impl Tool {
    fn of(def: &'static ToolDef) -> Self {
        let arguments = match def.asks {
            ToolKind::Report(name) | ToolKind::TwoTapes(name) => {
                let command = parse::union(view(name));
                let ids = def.takes.iter().copied().flatten();
                ids.filter_map(|id| command.get_arguments().find(|arg| arg.get_id() == id).map(ToolArgument::of))
                    .collect()
            }
            ToolKind::Tapes | ToolKind::Query | ToolKind::Schema => Vec::new(),
        };
        Self { def, arguments }
    }

    /// Name of the tool.
    pub(super) fn name(&self) -> &'static str {
        self.def.name
    }

    /// What the tool asks.
    pub(super) fn asks(&self) -> ToolKind {
        self.def.asks
    }

    /// The arguments that make an answer smaller, in words.
    pub(super) fn narrowing(&self) -> String {
        if self.def.asks == ToolKind::Query {
            return "narrow by WHERE, GROUP BY or LIMIT in 'query'".to_owned();
        }
        let known = |name: &&str| self.arguments.iter().any(|argument| argument.name == **name);
        let names: Vec<&str> = NARROWING.iter().copied().filter(known).collect();
        match (names.is_empty(), self.def.asks) {
            (false, _) => format!("narrow by {}", names.join(", ")),
            (true, ToolKind::Tapes) => "start the server with fewer tapes".to_owned(),
            (true, _) => "ask analyze on a command line".to_owned(),
        }
    }

    /// The tool as `tools/list` has it.
    pub(super) fn listed(&self) -> Value {
        let ToolDef { name, title, about, .. } = self.def;
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut text = |name: &str, about: &str| {
            properties.insert(name.to_owned(), json!({"type": "string", "description": about}));
        };
        let of_tape = "Name of the tape, as 'list' has it; may be left out if there is one tape only";
        match self.def.asks {
            ToolKind::Tapes => {}
            ToolKind::Report(_) => text("tape", of_tape),
            ToolKind::TwoTapes(_) => {
                text("tape", of_tape);
                text("other", "Name of the later tape; without it 'before' and 'after' are stretches of the one");
            }
            ToolKind::Query => {
                text("tape", of_tape);
                text("query", "One SELECT, or WITH ... SELECT");
                text("table", "Name of a table whose columns are asked for, instead of a query");
            }
            ToolKind::Schema => {
                text("report", "Name of a report: why, top, summary, calls, kills, path, diff, info, list");
                let kind = json!({"type": "integer", "minimum": 1, "description": "Which of its kinds of rows"});
                properties.insert("kind".to_owned(), kind);
            }
        }
        for argument in &self.arguments {
            properties.insert(argument.name.clone(), argument.schema());
        }
        let most = format!("Most rows of the answer [default: {MOST_ROWS}, which is the most]");
        let limit = json!({"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "description": most});
        properties.insert("limit".to_owned(), limit);
        if let ToolKind::TwoTapes(_) = self.def.asks {
            required.push("tape");
        }
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let hints = json!({
            "title": title,
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false,
        });
        json!({"name": name, "title": title, "description": about, "inputSchema": schema, "annotations": hints})
    }

    /// Reads the `arguments` of a call.
    ///
    /// # Errors
    /// One is none of the tool's, or not of its type.
    pub(super) fn read(&self, arguments: &Map<String, Value>) -> Result<ToolArguments, String> {
        let mut given = ToolArguments::default();
        let asks = self.def.asks;
        for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
            let place = match (name.as_str(), asks) {
                ("tape", ToolKind::Report(_) | ToolKind::TwoTapes(_) | ToolKind::Query) => &mut given.tape,
                ("other", ToolKind::TwoTapes(_)) => &mut given.other,
                ("query", ToolKind::Query) => &mut given.query,
                ("table", ToolKind::Query) => &mut given.table,
                ("report", ToolKind::Schema) => &mut given.report,
                ("limit", _) | ("kind", ToolKind::Schema) => {
                    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
                    let number = number.filter(|number| (1..=MOST_ROWS).contains(number));
                    let number = number.ok_or_else(|| format!("'{name}' is a number from 1 to {MOST_ROWS}"))?;
                    *(if name == "limit" { &mut given.limit } else { &mut given.kind }) = Some(number);
                    continue;
                }
                (name, _) => {
                    let argument = self.arguments.iter().find(|argument| argument.name == name);
                    argument.ok_or_else(|| self.unknown(name))?.add(value, &mut given.words)?;
                    continue;
                }
            };
            let most = if name == "query" { LONGEST_QUERY } else { LONGEST_VALUE };
            let text = value.as_str().filter(|text| text.len() <= most);
            *place = Some(text.ok_or_else(|| format!("'{name}' is a text of at most {most} bytes"))?.to_owned());
        }
        if matches!(asks, ToolKind::TwoTapes(_)) && given.tape.is_none() {
            return Err("'tape' says which tape".to_owned());
        }
        if given.query.is_some() && given.table.is_some() {
            return Err("'query' and 'table' are two questions: ask one of them".to_owned());
        }
        Ok(given)
    }

    fn unknown(&self, name: &str) -> String {
        let schema = &self.listed()["inputSchema"]["properties"];
        let known: Vec<&str> = schema.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let near = systape_abi::nearest(name, known.iter().copied());
        let near = near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        format!("'{}' takes no argument of that name, it takes {}{near}", self.def.name, known.join(", "))
    }
}

/// The view of that name.
pub(super) fn view(name: &str) -> &'static View {
    views::VIEWS.iter().find(|view| view.name == name).unwrap_or(&views::VIEWS[0])
}

impl ToolArgument {
    fn of(arg: &Arg) -> Self {
        let option = arg.get_long().unwrap_or_default().to_owned();
        let number = |parser: &ValueParser| {
            [TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<usize>()].iter().any(|id| parser.type_id() == *id)
        };
        let kind = match (arg.get_action(), number(arg.get_value_parser())) {
            (ArgAction::SetTrue, _) => ArgumentKind::Flag,
            (ArgAction::Append, true) => ArgumentKind::Numbers,
            (ArgAction::Append, false) => ArgumentKind::Texts,
            (_, true) => ArgumentKind::Number,
            (_, false) => ArgumentKind::Text,
        };
        let values = match kind {
            ArgumentKind::Flag => Vec::new(),
            _ => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        };
        let said = SAID.iter().find(|(id, _)| arg.get_id() == *id).map(|(_, said)| (*said).to_owned());
        let help = || arg.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
        let about = said.unwrap_or_else(help);
        Self { name: option.replace('-', "_"), option, kind, about, values }
    }

    fn schema(&self) -> Value {
        let mut one = match self.kind {
            ArgumentKind::Flag => json!({"type": "boolean"}),
            ArgumentKind::Number | ArgumentKind::Numbers => json!({"type": "integer", "minimum": 0}),
            ArgumentKind::Text | ArgumentKind::Texts => json!({"type": "string"}),
        };
        if !self.values.is_empty() {
            one["enum"] = self.values.clone().into();
        }
        let mut schema = match self.kind {
            ArgumentKind::Numbers | ArgumentKind::Texts => {
                json!({"type": "array", "items": one, "maxItems": MOST_VALUES})
            }
            _ => one,
        };
        schema["description"] = self.about.clone().into();
        schema
    }

    /// Adds the words of `value`. One value stands for a list of one.
    fn add(&self, value: &Value, words: &mut Vec<String>) -> Result<(), String> {
        let wrong = || {
            let what = match self.kind {
                ArgumentKind::Flag => "true or false",
                ArgumentKind::Text => "a text",
                ArgumentKind::Number => "a whole number",
                ArgumentKind::Texts => "a list of texts",
                ArgumentKind::Numbers => "a list of whole numbers",
            };
            format!("'{}' is {what}", self.name)
        };
        let values = match (self.kind, value) {
            (ArgumentKind::Flag, Value::Bool(is)) => {
                words.extend(is.then(|| format!("--{}", self.option)));
                return Ok(());
            }
            (ArgumentKind::Texts | ArgumentKind::Numbers, Value::Array(values)) => values.iter().collect(),
            (ArgumentKind::Flag, _) => return Err(wrong()),
            (_, value) => vec![value],
        };
        if values.len() > MOST_VALUES {
            return Err(format!("'{}' takes at most {MOST_VALUES} values", self.name));
        }
        for value in values {
            let text = match (self.kind, value) {
                (ArgumentKind::Number | ArgumentKind::Numbers, Value::Number(number)) if number.is_u64() => {
                    number.to_string()
                }
                // a time or a user may be written as a number
                (ArgumentKind::Text | ArgumentKind::Texts, Value::Number(number)) => number.to_string(),
                (ArgumentKind::Text | ArgumentKind::Texts, Value::String(text)) if text.len() <= LONGEST_VALUE => {
                    text.clone()
                }
                _ => return Err(wrong()),
            };
            // one word: a value is never an option
            words.push(format!("--{}={text}", self.option));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn tool(name: &str) -> Tool {
        tools().into_iter().find(|tool| tool.name() == name).unwrap()
    }

    fn read(name: &str, arguments: Value) -> Result<ToolArguments, String> {
        tool(name).read(arguments.as_object().unwrap())
    }

    #[test]
    fn every_argument_is_an_option_that_its_report_takes() {
        for tool in tools() {
            let (ToolKind::Report(name) | ToolKind::TwoTapes(name)) = tool.asks() else { continue };
            assert_eq!(view(name).name, name);
            let ids: Vec<&str> = tool.def.takes.iter().copied().flatten().copied().collect();
            assert!(ids.iter().all(|id| view(name).takes(id)), "{name}: {ids:?}");
            assert_eq!(
                (ids.len(), ids.iter().collect::<BTreeSet<_>>().len()),
                (tool.arguments.len(), ids.len()),
                "{name}"
            );
            assert!(tool.arguments.iter().all(|argument| !argument.about.is_empty() && !argument.name.is_empty()));
        }
    }

    #[test]
    fn no_argument_reads_or_writes_a_file_or_starts_a_program() {
        let names: BTreeSet<String> =
            tools().iter().flat_map(|tool| &tool.arguments).map(|argument| argument.option.clone()).collect();
        for other in
            ["input", "output", "debug-dir", "debuginfod", "svg", "folded", "format", "memory", "no-sandbox", "help"]
        {
            assert!(!names.contains(other), "{other}");
        }
        assert!(names.len() > 20, "{names:?}");
    }

    #[test]
    fn a_value_is_never_an_option() {
        let given =
            read("calls", json!({"event": ["-o", "--help"], "comm": "-i", "pid": [1, 2], "failure": true, "time": 5}));
        let words = ["--comm=-i", "--event=-o", "--event=--help", "--failure", "--pid=1", "--pid=2", "--time=5"];
        assert_eq!(given.unwrap().words, words);
        assert_eq!(read("calls", json!({"failure": false, "limit": 7, "tape": null})).unwrap().words, [""; 0]);
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for (name, arguments, why) in [
            ("top", json!({"memory": "1G"}), "'top' takes no argument of that name, it takes by, "),
            ("top", json!({"bye": "comm"}), "did you mean 'by'?"),
            ("top", json!({"pid": "1; rm"}), "'pid' is a list of whole numbers"),
            ("top", json!({"pid": [-1]}), "'pid' is a list of whole numbers"),
            ("top", json!({"pid": [1.5]}), "'pid' is a list of whole numbers"),
            ("top", json!({"failure": "yes"}), "'failure' is true or false"),
            ("top", json!({"time": ["1,2"]}), "'time' is a text"),
            ("top", json!({"time": "x".repeat(LONGEST_VALUE + 1)}), "'time' is a text"),
            ("top", json!({"by": vec!["x"; MOST_VALUES + 1]}), "at most 64 values"),
            ("top", json!({"limit": 201}), "'limit' is a number from 1 to 200"),
            ("top", json!({"limit": 0}), "'limit' is a number from 1 to 200"),
            ("top", json!({"tape": 5}), "'tape' is a text of at most 4096 bytes"),
            ("diff", json!({}), "'tape' says which tape"),
            ("list", json!({"tape": "x"}), "'list' takes no argument of that name"),
            ("sql", json!({"query": "SELECT 1", "table": "calls"}), "ask one of them"),
        ] {
            let got = read(name, arguments.clone()).unwrap_err();
            assert!(got.contains(why), "{name} {arguments}: {got}");
        }
    }

    #[test]
    fn what_narrows_is_named() {
        assert_eq!(tool("why").narrowing(), "narrow by time, pid, tid, comm");
        assert!(tool("calls").narrowing().starts_with("narrow by time, event, duration, failure, path, pid"));
        assert!(tool("sql").narrowing().contains("LIMIT"));
    }

    #[test]
    fn a_listed_tool_says_what_it_takes() {
        let top = tool("top").listed();
        let schema = &top["inputSchema"]["properties"];
        assert_eq!(schema["pid"]["items"]["type"], "integer");
        assert_eq!(schema["failure"]["type"], "boolean");
        assert!(schema["metric"]["enum"].as_array().unwrap().contains(&"p99".into()));
        assert_eq!((&top["annotations"]["readOnlyHint"], &schema["limit"]["maximum"]), (&true.into(), &200.into()));
        for tool in tools() {
            let listed = tool.listed();
            assert!(listed["description"].as_str().unwrap().ends_with('.'), "{listed}");
        }
    }
}

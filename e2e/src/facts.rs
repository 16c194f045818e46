//! What the workload `kills` says it did and saw, and whether `analyze kills` says the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::process::CommandExt;

use serde_json::{Value, json};

use crate::more::FREESTANDING;
use crate::{Background, Lab, Run};

/// Processes that make calls as fast as they can until the test is over.
pub struct Flood(Background);

impl Flood {
    /// Starts one for each of the `n` CPUs.
    #[must_use]
    pub fn start(lab: &Lab, n: usize) -> Self {
        let flood = lab.cc("flood", &FREESTANDING);
        let mut command = lab.command(flood);
        // a group of its own, since the children outlive their parent
        command.args([&n.to_string(), "900000000000"]).process_group(0);
        Self(Background::start(command))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // SAFETY: kill has no memory effects; the group's leader has not been waited for, so the id is its.
        unsafe { libc::kill(-self.0.pid(), libc::SIGKILL) };
    }
}

/// A signal that was sent, and who the two were then.
struct Sent {
    case: String,
    signal: i64,
    sender: Option<Value>,
    target: Value,
    expect: Value,
}

/// What the workload said.
pub struct Facts {
    sent: Vec<Sent>,
    /// Process → what wait said of it.
    ends: HashMap<i64, i64>,
    /// Case → first and last moment, and how long it took.
    times: HashMap<String, Value>,
    /// Case, process and signal that was not sent to it.
    silent: Vec<(String, i64, i64)>,
}

impl Facts {
    /// Reads the workload's output.
    ///
    /// # Panics
    /// On a line that is none of its.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let mut facts = Self { sent: Vec::new(), ends: HashMap::new(), times: HashMap::new(), silent: Vec::new() };
        let mut who: HashMap<(i64, i64), Value> = HashMap::new();
        for line in run.json() {
            let number = |key: &str| line[key].as_i64().unwrap_or_else(|| panic!("no {key}: {line}"));
            let case = line["case"].as_str().expect("case").to_owned();
            match line["is"].as_str() {
                Some("process") => {
                    who.insert((number("pid"), number("tid")), line);
                }
                Some("sent") => {
                    let find = |side: &Value| {
                        let id = (side[0].as_i64().expect("pid"), side[1].as_i64().expect("tid"));
                        who.get(&id).unwrap_or_else(|| panic!("nobody said who {id:?} is: {line}")).clone()
                    };
                    let sender = (!line["sender"].is_null()).then(|| find(&line["sender"]));
                    let (target, signal) = (find(&line["target"]), number("signal"));
                    facts.sent.push(Sent { case, signal, sender, target, expect: line["expect"].clone() });
                }
                Some("time") => {
                    facts.times.insert(case, line);
                }
                Some("end") => {
                    facts.ends.insert(number("pid"), number("status"));
                }
                Some("silent") => facts.silent.push((case, number("pid"), number("signal"))),
                _ => panic!("no fact: {line}"),
            }
        }
        facts
    }

    /// Number of signals that were sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Fails unless the report has every signal, once, and says of each what was so.
    #[track_caller]
    pub fn check(&self, records: &[Value]) {
        let wrong = self.differences(records);
        assert!(wrong.is_empty(), "{} of {} signals:\n{}", wrong.len(), self.len(), wrong.join("\n"));
    }

    /// What the report says otherwise.
    fn differences(&self, records: &[Value]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen: HashMap<(i64, i64), usize> = HashMap::new();
        let mut acts: BTreeMap<(&str, i64), Vec<i64>> = BTreeMap::new();
        for sent in &self.sent {
            let pid = sent.target["pid"].as_i64().expect("pid");
            let of_target = |r: &&Value| r["target"]["pid"] == pid && r["signal"] == sent.signal;
            let found: Vec<&Value> = records.iter().filter(of_target).collect();
            let twins = self.sent.iter().filter(|s| s.signal == sent.signal && s.target["pid"] == pid).count();
            let what = format!("{}: signal {} to {pid}", sent.case, sent.signal);
            // signals of the same number to the same process are in order
            let at = seen.entry((pid, sent.signal)).or_default();
            if found.len() != twins {
                let all: Vec<String> = found.iter().map(|record| short(record)).collect();
                wrong.push(format!("{what}: {} records, not {twins}\n    {}", found.len(), all.join("\n    ")));
                continue;
            }
            let record = found[*at];
            *at += 1;
            let differences = self.compare(sent, record);
            if !differences.is_empty() {
                wrong.push(format!("{what}: {}\n    {}", differences.join("; "), short(record)));
            }
            if sent.expect["act"] == "one" {
                let act = record["act"].as_i64().expect("act");
                acts.entry((&sent.case, sent.signal)).or_default().push(act);
                let alone = found.len() == 1 && records.iter().filter(|r| r["act"] == act).count() == 1;
                if alone {
                    wrong.push(format!("{what}: an act of its own\n    {}", short(record)));
                }
            } else if let [other, ..] =
                &records.iter().filter(|r| r["act"] == record["act"] && *r != record).collect::<Vec<_>>()[..]
            {
                wrong.push(format!("{what}: one act with\n    {}", short(other)));
            }
        }
        for ((case, signal), acts) in acts {
            if acts.iter().collect::<BTreeSet<_>>().len() != 1 {
                wrong.push(format!("{case}: signal {signal}: acts {acts:?}, not one"));
            }
        }
        for (case, pid, signal) in &self.silent {
            let found = records.iter().filter(|r| r["target"]["pid"] == *pid && r["signal"] == *signal);
            wrong.extend(found.map(|r| format!("{case}: nobody sent it\n    {}", short(r))));
        }
        wrong.extend(self.causes(records));
        wrong
    }

    /// Who died by a signal died of one.
    fn causes(&self, records: &[Value]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (pid, status) in &self.ends {
            let ours: Vec<_> = records.iter().filter(|r| r["target"]["pid"] == *pid).collect();
            let causes = ours.iter().filter(|r| r["outcome"]["cause"] != false).count();
            if causes != usize::from(status & 0x7f != 0) && !ours.is_empty() {
                wrong.push(format!("{pid}: status {status:#x}, but {causes} causes of its end"));
            }
        }
        wrong
    }

    fn compare(&self, sent: &Sent, record: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let adopted = sent.expect["adopted"] == true;
        match (&sent.sender, &record["sender"]) {
            (None, Value::Null) => {}
            (Some(sender), Value::Object(_)) => party("sender", sender, &record["sender"], false, true, &mut wrong),
            (expected, found) => wrong.push(format!("sender {found}, not {expected:?}")),
        }
        party("target", &sent.target, &record["target"], adopted, !record["result"].is_null(), &mut wrong);
        for (path, expected) in sent.expect.as_object().expect("object") {
            if path == "act" || path == "adopted" {
                continue;
            }
            let found = path.split('.').fold(record, |value, key| &value[key]);
            if !fits(expected, found) {
                wrong.push(format!("{path} {found}, not {expected}"));
            }
        }
        self.compare_outcome(sent, record, &mut wrong);
        wrong
    }

    fn compare_outcome(&self, sent: &Sent, record: &Value, wrong: &mut Vec<String>) {
        let outcome = &record["outcome"];
        let status = self.ends[&sent.target["pid"].as_i64().expect("pid")];
        let (signal, code) = if status & 0x7f == 0 { (None, Some(status >> 8)) } else { (Some(status & 0x7f), None) };
        let end = json!({
            "exited": true, "exit_signal": signal, "exit_code": code, "core_dumped": status & 0x80 != 0,
        });
        for (key, expected) in end.as_object().expect("object") {
            if outcome[key] != *expected {
                wrong.push(format!("outcome.{key} {}, not {expected}", outcome[key]));
            }
        }
        let time = &self.times[&sent.case];
        let latency = &outcome["latency_ns"];
        if !latency.as_i64().is_some_and(|ns| (0..=time["ns"].as_i64().expect("ns")).contains(&ns))
            // nobody was seen to send it, or it came to a process that had ended
            && !record["result"].is_null()
            && record["result"] != "ignored"
        {
            wrong.push(format!("latency {latency} of a case that took {} ns", time["ns"]));
        }
        let at = record["time"].as_str().unwrap_or("?");
        if !(time["from"].as_str().expect("from")..=time["to"].as_str().expect("to")).contains(&at) {
            wrong.push(format!("time {at}, not between {} and {}", time["from"], time["to"]));
        }
    }
}

/// A record for a message.
fn short(record: &Value) -> String {
    let mut record = record.clone();
    for side in ["sender", "target"] {
        record[side].as_object_mut().map(|side| side.remove("ancestors"));
    }
    record.to_string()
}

/// Any of several; a range of bytes, `23M..64M`; or the very value.
fn fits(expected: &Value, found: &Value) -> bool {
    if let Value::Array(any) = expected {
        return any.contains(found);
    }
    let range = expected.as_str().and_then(|text| text.split_once("M..")?.1.strip_suffix('M').map(|_| text));
    match range {
        None => expected == found,
        Some(text) => {
            let number = |text: &str| text.parse::<u64>().expect("number");
            let (low, high) = text.trim_end_matches('M').split_once("M..").expect("range");
            let bytes = found.as_str().and_then(|text| text.parse::<u64>().ok());
            bytes.is_some_and(|bytes| (number(low) << 20..=number(high) << 20).contains(&bytes))
        }
    }
}

/// Compares one side of a signal; `adopted`: it has another parent by then than when the workload looked; `seen`: there was an
/// event that says all of it.
fn party(side: &str, truth: &Value, found: &Value, adopted: bool, seen: bool, wrong: &mut Vec<String>) {
    for key in ["pid", "tid", "ns_pid", "uid", "comm", "exe", "cmdline"] {
        if truth[key] != found[key] {
            wrong.push(format!("{side}.{key} {}, not {}", found[key], truth[key]));
        }
    }
    // nothing told who was above a process that was sent no signal: init may be missing among those the tape knows
    let kept = |pid: i64| seen || pid != 1;
    let pair = |pid: &Value, comm: &Value| (pid.as_i64().expect("pid"), comm.as_str().map(str::to_owned));
    let above = found["ancestors"].as_array().expect("ancestors").iter().map(|a| pair(&a["pid"], &a["comm"]));
    let above: Vec<_> = above.filter(|(pid, _)| kept(*pid)).collect();
    let parents = truth["ancestors"].as_array().expect("ancestors").iter().map(|a| pair(&a[0], &a[1]));
    let parents: Vec<_> = parents.filter(|(pid, _)| kept(*pid)).collect();
    if above != parents && !adopted {
        wrong.push(format!("{side}.ancestors {above:?}, not {parents:?}"));
    }
}

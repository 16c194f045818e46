//! Functions of the running kernel: which there are, and which of them may be probed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Result, bail, ensure};
use systape_abi::{glob_matches, nearest};

/// The number of the kind of perf event that a kprobe is; absent = the kernel has none.
pub(crate) const EVENT_TYPE: &str = "/sys/bus/event_source/devices/kprobe/type";
/// What ftrace can follow: functions that are not listed are `notrace`, and kprobes on them are refused.
const TRACEABLE: [&str; 2] =
    ["/sys/kernel/tracing/available_filter_functions", "/sys/kernel/debug/tracing/available_filter_functions"];
/// What kprobes may not be put on, by the kernel's own list.
const BLACKLIST: &str = "/sys/kernel/debug/kprobes/blacklist";
/// Most functions that one pattern records: a tape takes two tables of each.
const MOST_MATCHES: usize = 24;
/// Most of each list that is kept: a kernel has some 100,000 functions.
const MOST_LINES: usize = 1 << 20;
/// Most names that a message lists.
const MOST_LISTED: usize = 5;

/// Functions that the recorder's own programs run while they hold a lock: a program that runs there and wants the same lock waits for
/// itself (kernel/bpf/queue_stack_maps.c, ringbuf.c, hashtab.c, bpf_lru_list.c). Nothing but the lock itself is called in between.
const LOCKED: [&str; 13] = [
    "*spin_lock*",
    "*spin_unlock*",
    "*spin_trylock*",
    "*qspinlock*",
    "*bpf*",
    "*htab_*",
    "*queue_map*",
    "*queue_stack_map*",
    "*pcpu_freelist*",
    "*lookup_elem_raw*",
    "*lookup_nulls_elem*",
    "*kmalloc_nolock*",
    "jhash*",
];

/// Functions of the kernel that can be probed.
#[derive(Debug, Default)]
pub(super) struct KernelFunctions {
    /// Functions by name, and how many have it.
    functions: HashMap<String, u32>,
    /// None: not known.
    traceable: Option<HashSet<String>>,
    blacklist: HashSet<String>,
}

impl KernelFunctions {
    /// Reads those of the running kernel.
    ///
    /// # Errors
    /// A sentence: it has no kprobes, or does not say what functions it has.
    pub(super) fn read() -> Result<Self> {
        if !Path::new(EVENT_TYPE).exists() {
            bail!(
                "this kernel has no probes of its functions: there is no {EVENT_TYPE} (CONFIG_KPROBES and CONFIG_KPROBE_EVENTS are off). Its tracepoints can be \
                 recorded: -e CATEGORY:NAME; functions of programs and libraries: --uprobe"
            );
        }
        let mut functions = HashMap::new();
        for line in lines("/proc/kallsyms") {
            if let Some(name) = function(&line) {
                *functions.entry(name.to_owned()).or_default() += 1;
            }
        }
        ensure!(!functions.is_empty(), "/proc/kallsyms, which lists the kernel's functions, has none");
        let first = |line: &String| line.split_ascii_whitespace().next().map(str::to_owned);
        let traceable: Option<HashSet<String>> = TRACEABLE
            .iter()
            .map(|path| lines(path).filter_map(|line| first(&line)).collect::<HashSet<String>>())
            .find(|names| !names.is_empty());
        // lines are `FROM-TO NAME`
        let blacklist =
            lines(BLACKLIST).filter_map(|line| Some(line.split_ascii_whitespace().nth(1)?.to_owned())).collect();
        Ok(Self { functions, traceable, blacklist })
    }

    /// The functions that `asked` names, and a note about those that are left out.
    ///
    /// # Errors
    /// A sentence: there is no such function, or none that may be probed, or too many.
    pub(super) fn find(&self, asked: &str) -> Result<(Vec<String>, Option<String>)> {
        if !asked.contains(['*', '?', '[']) {
            if let Some(why) = self.refusal(asked) {
                bail!("{why}");
            }
            return Ok((vec![asked.to_owned()], None));
        }
        let mut names: Vec<&String> = self.functions.keys().filter(|name| glob_matches(asked, name)).collect();
        ensure!(!names.is_empty(), "this kernel has no function with such a name");
        names.sort_unstable();
        let (refused, taken): (Vec<&String>, Vec<&String>) =
            names.into_iter().partition(|name| self.refusal(name).is_some());
        if let (Some(first), true) = (refused.first(), taken.is_empty()) {
            bail!(
                "none of the {} that match can be recorded. {}",
                refused.len(),
                self.refusal(first).unwrap_or_default()
            );
        }
        ensure!(
            taken.len() <= MOST_MATCHES,
            "{} functions match ({}, ...); {MOST_MATCHES} can be recorded at once, two tables of a tape each",
            taken.len(),
            listed(&taken)
        );
        let note = (!refused.is_empty()).then(|| {
            let more = if refused.len() > MOST_LISTED { ", ..." } else { "" };
            format!(
                "{} that match are not recorded, because the kernel or record allows no probe there: {}{more}",
                refused.len(),
                listed(&refused)
            )
        });
        Ok((taken.into_iter().cloned().collect(), note))
    }

    /// Why no probe is put on a function; None = it may be.
    fn refusal(&self, name: &str) -> Option<String> {
        let Some(times) = self.functions.get(name) else { return Some(self.no_such(name)) };
        let safe = !LOCKED.iter().any(|pattern| glob_matches(pattern, name));
        if !safe {
            return Some(format!(
                "{name} is used by the programs of record itself while they hold a lock: a probe there could stop the machine"
            ));
        }
        if self.blacklist.contains(name) {
            return Some(format!("the kernel allows no probe on {name}: it is in {BLACKLIST}"));
        }
        if self.traceable.as_ref().is_some_and(|names| !names.contains(name)) {
            return Some(format!(
                "the kernel allows no probe on {name}: it is built without a place for one (notrace, __init or assembly; available_filter_functions of tracefs lists the others)"
            ));
        }
        (*times > 1)
            .then(|| format!("{times} functions of this kernel are called {name}, and which is meant cannot be said"))
    }

    fn no_such(&self, name: &str) -> String {
        // parts of a function that the compiler split off, or made for one of its callers
        let mut parts: Vec<&String> = self
            .functions
            .keys()
            .filter(|other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
            .collect();
        parts.sort_unstable();
        if !parts.is_empty() {
            return format!(
                "this kernel has no function {name} of its own: the compiler made {} of it",
                listed(&parts)
            );
        }
        // the function of a system call
        let call = format!("__x64_{name}");
        if self.functions.contains_key(&call) {
            return format!(
                "this kernel has no function {name}; the call is {call}, whose argument is the registers; '-e {}' records calls",
                name.trim_start_matches("sys_")
            );
        }
        let near = nearest(name, self.functions.keys().map(String::as_str));
        let near = match near[..] {
            [] => String::new(),
            _ => format!("; the nearest are {}", near.join(", ")),
        };
        format!("this kernel has no function {name}, or the compiler put it into its callers (inlined){near}")
    }
}

fn listed(names: &[&String]) -> String {
    names.iter().take(MOST_LISTED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn lines(path: &str) -> impl Iterator<Item = String> {
    let file = File::open(path).ok().map(BufReader::new);
    file.into_iter().flat_map(|file| file.lines().map_while(Result::ok)).take(MOST_LINES)
}

/// The function of a line of kallsyms: `ffffffff81000000 T name [module]`. Programs of BPF are none of the kernel's.
fn function(line: &str) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (kind, name, module) = (fields.next()?, fields.next()?, fields.next());
    let is_code = matches!(kind, "t" | "T" | "w" | "W");
    (is_code && module != Some("[bpf]") && !name.starts_with("__pfx_")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> KernelFunctions {
        let names =
            ["do_unlinkat", "do_exit", "vfs_read", "vfs_readv", "vfs_write", "notrace_one", "listed", "_raw_spin_lock"];
        let mut functions: HashMap<String, u32> = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
        functions.insert("twice".to_owned(), 2);
        functions.insert("split.isra.0".to_owned(), 1);
        functions.insert("__x64_sys_openat".to_owned(), 1);
        functions.extend((0..30).map(|at| (format!("many_{at:02}"), 1)));
        let traceable = functions.keys().filter(|name| *name != "notrace_one").cloned().collect();
        KernelFunctions { functions, traceable: Some(traceable), blacklist: HashSet::from(["listed".to_owned()]) }
    }

    #[test]
    fn lines_of_the_list() {
        assert_eq!(function("ffffffff81000000 T do_exit"), Some("do_exit"));
        assert_eq!(function("0000000000000000 t ext4_free\t[ext4]"), Some("ext4_free"));
        assert_eq!(function("ffffffffc0000000 t bpf_prog_6deef7357e7b4530_main\t[bpf]"), None);
        assert_eq!(function("ffffffff81000000 t __pfx_do_exit"), None);
        assert_eq!(function("ffffffff82000000 D jiffies"), None);
        assert_eq!(function(""), None);
    }

    #[test]
    fn names_and_patterns() {
        let found = |asked| kernel().find(asked).unwrap();
        assert_eq!(found("do_exit"), (vec!["do_exit".to_owned()], None));
        assert_eq!(found("vfs_*").0, ["vfs_read", "vfs_readv", "vfs_write"]);
        let (functions, note) = found("[ntd][ow]*");
        assert_eq!(functions, ["do_exit", "do_unlinkat"]);
        assert!(note.is_some_and(|note| note.starts_with("2 that match") && note.ends_with("notrace_one, twice")));
    }

    #[test]
    fn refusals_say_why() {
        let error = |asked: &str| kernel().find(asked).unwrap_err().to_string();
        assert!(error("do_unlinkta").contains("the nearest are do_unlinkat"), "{}", error("do_unlinkta"));
        assert!(error("zzzzzzzzzz").ends_with("(inlined)"));
        assert!(error("split").contains("the compiler made split.isra.0 of it"));
        assert!(
            error("sys_openat").contains("the call is __x64_sys_openat") && error("sys_openat").contains("'-e openat'")
        );
        assert!(error("notrace_one").contains("notrace"));
        assert!(error("listed").contains("it is in /sys/kernel/debug/kprobes/blacklist"));
        assert!(error("twice").contains("2 functions of this kernel are called twice"));
        assert!(error("_raw_spin_lock").contains("while they hold a lock"));
        assert!(
            error("many_*").contains("30 functions match (many_00, many_01, many_02, many_03, many_04, ...); 24 can")
        );
        assert!(error("none_*").contains("no function with such a name"));
        assert!(
            error("list*").contains("none of the 1 that match can be recorded. the kernel allows no probe on listed")
        );
    }
}

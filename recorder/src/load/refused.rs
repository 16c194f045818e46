//! What the kernel, or libbpf on its behalf, refused to load or attach, and why: from libbpf's messages.

/// Longest reason, bytes.
const LONGEST: usize = 200;

/// Beginnings of libbpf's lines about a program that fails the whole load.
const FAILURES: [&str; 2] = ["BPF program load failed", "failed to "];

/// One refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The program that was refused; None: something else was (a map, the object).
    pub program: Option<String>,
    /// The kernel's reason in a few words; empty = none was given.
    pub reason: String,
    /// The refused thing is task storage, which tracing programs have since 5.12.
    pub of_task_storage: bool,
}

impl Refusal {
    /// Reads libbpf's warnings of one attempt.
    pub(crate) fn read(said: &str) -> Self {
        let program = said.lines().rev().find_map(failed_program).map(str::to_owned);
        let reason = reason(said);
        // an error number alone: libbpf says -EINVAL or, with older ones, Invalid argument
        let reason = cut(reason.strip_prefix('-').filter(|name| name.starts_with('E')).unwrap_or(&reason));
        // the type of map is 5.11; on 5.11 the verifier refuses its helpers
        let of_task_storage = said.contains("map 'task_states': failed to create")
            || ["bpf_task_storage_get", "bpf_get_current_task_btf"].iter().any(|helper| reason.contains(helper));
        Self { program, reason, of_task_storage }
    }

    /// The refusal in words: what, and why.
    pub(crate) fn text(&self) -> String {
        let what = match &self.program {
            Some(program) => format!("the kernel refused the program {program}"),
            None => "the kernel refused the programs".to_owned(),
        };
        if self.reason.is_empty() { what } else { format!("{what}: {}", self.reason) }
    }
}

/// The program that failed according to a line of libbpf.
fn failed_program(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("prog '")?;
    let (name, what) = rest.split_once("': ")?;
    FAILURES.iter().any(|failure| what.starts_with(failure)).then_some(name)
}

/// The line with the reason, the most specific first.
fn reason(said: &str) -> String {
    let from = |words: &str| said.lines().find_map(|line| line.find(words).map(|at| line[at..].trim().to_owned()));
    from("failed to resolve CO-RE relocation")
        .or_else(|| from("failed to find kernel BTF type"))
        .or_else(|| verdict(said))
        .or_else(|| after(said, "BPF program load failed: "))
        .or_else(|| after(said, "failed to create: "))
        .or_else(|| after(said, "failed to auto-attach: "))
        .or_else(|| {
            said.lines().rev().find_map(|line| line.contains("failed to attach").then(|| line.trim().to_owned()))
        })
        .unwrap_or_default()
}

/// The verifier's last message before its figures.
fn verdict(said: &str) -> Option<String> {
    const FIGURES: [&str; 5] = ["processed ", "verification time", "stack depth", "max_states", "-- "];
    let (_, log) = said.split_once("-- BEGIN PROG LOAD LOG --")?;
    let (log, _) = log.split_once("-- END PROG LOAD LOG --")?;
    let mut lines = log.lines().map(str::trim).rev();
    let line = lines.find(|line| !line.is_empty() && !FIGURES.iter().any(|figure| line.starts_with(figure)))?;
    Some(line.to_owned())
}

fn after(said: &str, words: &str) -> Option<String> {
    said.lines().find_map(|line| line.split_once(words)).map(|(_, rest)| rest.trim().to_owned())
}

/// At most [`LONGEST`] bytes of it.
fn cut(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(said: &str) -> (Option<String>, String, bool) {
        let refusal = Refusal::read(said);
        (refusal.program, refusal.reason, refusal.of_task_storage)
    }

    /// libbpf 1.7's message about block_io_start on Linux 7.2.
    #[test]
    fn a_field_that_is_gone() {
        let said = "libbpf: prog 'block_io_start': BPF program load failed: -EINVAL\n\
            libbpf: prog 'block_io_start': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n; head = BPF_CORE_READ(page, compound_head); @ block.bpf.h:75\n\
            190: <invalid CO-RE relocation>\nfailed to resolve CO-RE relocation <byte_off> [65] struct page.compound_head (0:1 @ offset 8)\n\
            processed 163 insns (limit 1000000) max_states_per_insn 0 total_states 14 peak_states 14 mark_read 7\n-- END PROG LOAD LOG --\n\
            libbpf: prog 'block_io_start': failed to load: -EINVAL\nlibbpf: failed to load object 'systape_bpf'\n";
        let (program, reason, storage) = read(said);
        assert_eq!(program.as_deref(), Some("block_io_start"));
        assert_eq!(
            reason,
            "failed to resolve CO-RE relocation <byte_off> [65] struct page.compound_head (0:1 @ offset 8)"
        );
        assert!(!storage);
    }

    #[test]
    fn what_the_verifier_says_last() {
        let said = "libbpf: prog 'sys_enter': BPF program load failed: Permission denied\n\
            libbpf: prog 'sys_enter': -- BEGIN PROG LOAD LOG --\n12: (79) r1 = *(u64 *)(r6 +0)\nR6 invalid mem access 'scalar'\n\
            verification time 812 usec\nstack depth 96\nprocessed 13 insns\n-- END PROG LOAD LOG --\n\
            libbpf: prog 'sys_enter': failed to load: -13\n";
        assert_eq!(read(said), (Some("sys_enter".into()), "R6 invalid mem access 'scalar'".into(), false));
        // without a log: refused before the verifier looked
        let said =
            "libbpf: prog 'net': BPF program load failed: Invalid argument\nlibbpf: prog 'net': failed to load: -22\n";
        assert_eq!(read(said), (Some("net".into()), "Invalid argument".into(), false));
        let long = format!("libbpf: prog 'a': BPF program load failed: {}\n", "ä".repeat(300));
        assert!(read(&long).1.len() < 210);
    }

    #[test]
    fn tracepoints_that_are_gone() {
        let said = "libbpf: prog 'a': failed to find kernel BTF type ID of 'btf_trace_gone': -ESRCH\n\
            libbpf: prog 'a': failed to prepare load attributes: -ESRCH\nlibbpf: prog 'a': failed to load: -ESRCH\n";
        let reason = "failed to find kernel BTF type ID of 'btf_trace_gone': -ESRCH";
        assert_eq!(read(said), (Some("a".into()), reason.into(), false));
    }

    #[test]
    fn programs_that_cannot_be_attached() {
        let said = "libbpf: prog 'b': failed to attach: -EBUSY\nlibbpf: prog 'b': failed to auto-attach: -EBUSY\n";
        assert_eq!(read(said), (Some("b".into()), "EBUSY".into(), false));
        let said = "libbpf: prog 'walk_files': failed to attach to iterator: -EINVAL\n";
        let reason = "libbpf: prog 'walk_files': failed to attach to iterator: -EINVAL";
        assert_eq!(read(said), (Some("walk_files".into()), reason.into(), false));
        assert_eq!(Refusal::read(said).text(), format!("the kernel refused the program walk_files: {reason}"));
    }

    #[test]
    fn task_storage() {
        let said =
            "libbpf: map 'task_states': failed to create: -EINVAL\nlibbpf: failed to load object 'systape_bpf'\n";
        assert_eq!(read(said), (None, "EINVAL".into(), true));
        let said = "libbpf: prog 'sys_enter': BPF program load failed: -EINVAL\n\
            libbpf: prog 'sys_enter': -- BEGIN PROG LOAD LOG --\nunknown func bpf_task_storage_get#156\n\
            processed 60 insns\n-- END PROG LOAD LOG --\nlibbpf: prog 'sys_enter': failed to load: -22\n";
        assert!(Refusal::read(said).of_task_storage);
        // a log that only shows a call of it says nothing about it
        let said =
            said.replace("unknown func bpf_task_storage_get#156", "7: (85) call bpf_task_storage_get#156\nR1 !read_ok");
        assert_eq!(read(&said), (Some("sys_enter".into()), "R1 !read_ok".into(), false));
        assert_eq!(read(""), (None, String::new(), false));
    }
}

//! Takes facts about people and machines out of a tape: while recording, or from an existing one ([`redact`]).
//!
//! It goes by the class of each text or bytes field in schemas/trace.capnp ([`Class`]). A [`Level`] takes out some
//! classes. A field taken out becomes [`PLACEHOLDER`]; an unknown one stays unknown. No length and no count of words
//! remains, and equal values cannot be distinguished, with two exceptions that answers depend on: cgroups keep their
//! id, and files without a build id get a number.
//!
//! Numbers stay: times, results, numeric arguments, ids of users and processes, inodes. So counts, durations and trees
//! do not change. Strings are not parsed: a path in a command line goes with the command line.

mod copy;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::{
    Appeared, ByteStatus, Call, Checkpoint, Class, Container, FD_FIRST, Family, Mapping, MappingKind, NetState,
    ProcessEvent, SECOND_VALUE, Session, SignalEvent, Symbols, Task,
};
use crate::segment::SegmentData;
use crate::sockets;
use crate::strings::Strings;
use crate::table::Type;
use crate::tables::TableRows;

pub(crate) use copy::{block, known};

/// Replaces a field that was taken out.
pub const PLACEHOLDER: &[u8] = b"<redacted>";
/// The same as text.
const WORD: &str = "<redacted>";

/// Files without a build id that keep a number each; any more lose their names of functions.
const MOST_FILES: usize = 65_536;

/// Which classes are taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Only paths.
    Paths,
    /// Paths, and texts passed to programs: strings and command lines.
    Strings,
    /// Every class.
    All,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Paths, Self::Strings, Self::All];

    /// The level's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Strings => "strings",
            Self::All => "all",
        }
    }

    /// Whether fields of `class` are taken out.
    pub fn takes(self, class: Class) -> bool {
        let least = match class {
            Class::Path => Self::Paths,
            Class::String | Class::Command => Self::Strings,
            Class::Comm | Class::Address | Class::Host | Class::User => Self::All,
        };
        self >= least
    }
}

/// The class of captured user memory, from its call, argument and bytes. None = it reveals nothing.
pub(crate) type Classify = fn(Call, u8, &[u8]) -> Option<Class>;

/// Takes out the classes of a level. One for a whole tape, shared by all threads that write it.
#[derive(Debug)]
pub struct Redactor {
    level: Level,
    classify: Classify,
    /// Numbers of files without a build id, so that their names of functions do not mix.
    files: Mutex<HashMap<Mapping, usize>>,
}

impl Redactor {
    /// `classify` returns the class of captured memory, which this crate does not know.
    pub fn new(level: Level, classify: Classify) -> Self {
        Self { level, classify, files: Mutex::default() }
    }

    fn takes(&self, class: Class) -> bool {
        self.level.takes(class)
    }

    /// Takes `bytes` out if `class` is one of the level's.
    fn bytes(&self, class: Class, bytes: &mut Vec<u8>) {
        if self.takes(class) && !bytes.is_empty() && !is_placeholder(bytes) {
            *bytes = PLACEHOLDER.to_vec();
        }
    }

    fn text(&self, class: Class, text: &mut String) {
        if self.takes(class) && !text.is_empty() {
            WORD.clone_into(text);
        }
    }

    /// Bytes that carry their length and a status.
    fn value(&self, class: Class, bytes: &mut Vec<u8>, status: &mut ByteStatus, full: &mut u64) {
        let nothing = bytes.is_empty() && !status.is_whole();
        if self.takes(class) && !nothing && *status != ByteStatus::Redacted {
            (*bytes, *status, *full) = (PLACEHOLDER.to_vec(), ByteStatus::Redacted, 0);
        }
    }

    /// The session; notes which classes are taken out.
    pub fn session(&self, session: &mut Session) {
        self.text(Class::Host, &mut session.boot_id);
        self.bytes(Class::Host, &mut session.hostname);
        if self.takes(Class::Host) {
            session.machine_id_hash = 0;
        }
        if self.takes(Class::Command) {
            session.arguments = own_arguments(&session.arguments);
        }
        session.target = self.target(&session.target);
        // filters of tracepoints may hold paths and any other text
        session.selection.iter_mut().for_each(|words| *words = without_texts(words));
        if self.takes(Class::User) {
            // their numbers are what is left to print
            session.users.clear();
        }
        self.cgroups(&mut session.cgroups);
        self.containers(&mut session.containers);
        self.labels(&mut session.labels);
        session.redacted.extend(Class::ALL.into_iter().filter(|class| self.takes(*class)));
        session.redacted.sort_unstable();
        session.redacted.dedup();
    }

    /// Paths of cgroups, which keep their numbers.
    pub(crate) fn cgroups(&self, cgroups: &mut [(u64, Vec<u8>)]) {
        if self.takes(Class::Path) {
            cgroups.iter_mut().for_each(|(id, path)| *path = numbered(*id));
        }
    }

    /// What appeared during the recording.
    pub(crate) fn appeared(&self, appeared: &mut Appeared) {
        self.cgroups(&mut appeared.cgroups);
        self.containers(&mut appeared.containers);
    }

    /// Without the cgroup's path nothing tells whose they are.
    fn containers(&self, containers: &mut Vec<Container>) {
        if self.takes(Class::Path) {
            containers.clear();
        }
    }

    /// Labels keep their keys.
    fn labels(&self, labels: &mut [Vec<u8>]) {
        for label in labels.iter_mut().filter(|_| self.takes(Class::Command)) {
            let end = label.iter().position(|byte| *byte == b'=').map_or(label.len(), |at| at + 1);
            label.truncate(end);
            label.extend_from_slice(PLACEHOLDER);
        }
    }

    /// The target in words: reports read the numbers in it.
    fn target(&self, target: &str) -> String {
        for head in ["command ", "system-wide during "] {
            if target.starts_with(head) {
                return if self.takes(Class::Command) { format!("{head}{WORD}") } else { target.to_owned() };
            }
        }
        let mut parts = Vec::new();
        let mut rest = target;
        while !rest.is_empty() {
            let (part, after) = rest.split_once(", ").unwrap_or((rest, ""));
            let (kind, value) = part.split_once(' ').unwrap_or((part, ""));
            let numbers = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
            match kind {
                "pid" | "tid" | "uid" if numbers => parts.push(part.to_owned()),
                "system-wide" if value.is_empty() => parts.push(part.to_owned()),
                // a name may hold a comma, so nothing behind it can be told from it
                "comm" if !self.takes(Class::Comm) && !rest.contains(", cgroup ") => {
                    parts.push(rest.to_owned());
                    break;
                }
                "comm" => {
                    parts.push(format!("comm {WORD}"));
                    break;
                }
                "cgroup" if !self.takes(Class::Path) => {
                    parts.push(rest.to_owned());
                    break;
                }
                "cgroup" => {
                    parts.push(format!("cgroup {WORD}"));
                    break;
                }
                _ if !self.takes(Class::Command) => {
                    parts.push(rest.to_owned());
                    break;
                }
                _ => {
                    parts.push(WORD.to_owned());
                    break;
                }
            }
            rest = after;
        }
        parts.join(", ")
    }

    /// Strings of a table's rows; those of a column without a known class go at every level. A string used only by
    /// columns that stay is kept; all strings taken out become one.
    pub(crate) fn table(&self, table: &mut TableRows) {
        let stays = |class: Option<Class>| class.is_some_and(|class| !self.takes(class));
        let columns = table.def.columns.iter().skip(1).zip(&mut table.columns);
        let mut kept: Vec<Vec<u8>> = Vec::new();
        // old code and whether it stays → new code
        let mut codes: HashMap<(u64, bool), u64> = HashMap::new();
        for (column, values) in columns.filter(|(column, _)| column.ty == Type::Str) {
            let stay = stays(column.class);
            for value in values.iter_mut().filter(|value| **value != 0) {
                let old = if stay { *value } else { u64::MAX };
                *value = *codes.entry((old, stay)).or_insert_with(|| {
                    let bytes = usize::try_from(*value - 1).ok().and_then(|at| table.strings.get(at));
                    kept.push(if stay { bytes.cloned().unwrap_or_default() } else { PLACEHOLDER.to_vec() });
                    kept.len() as u64
                });
            }
        }
        table.strings = kept;
    }

    /// A task.
    pub(crate) fn task(&self, task: &mut Task) {
        self.bytes(Class::Comm, &mut task.comm);
        self.bytes(Class::Path, &mut task.exe);
        self.bytes(Class::Command, &mut task.env);
    }

    /// Names of descriptors: those that replace them, and the new number of each for [`renumber`]. Names that the kernel
    /// numbers (`socket:[17]`) stay.
    pub(crate) fn fd_names<'a>(&self, names: impl Iterator<Item = &'a [u8]>) -> (Strings, Vec<u32>) {
        let takes = self.takes(Class::Path);
        let mut kept = Strings::default();
        let mut taken = None;
        let mut keep = |name: &[u8]| {
            kept.push(name);
            kept.len() as u32 - 1 + FD_FIRST
        };
        // all that are taken out become one: the tape does not say any more which are equal
        let number = |name: &[u8]| {
            if !takes || name.is_empty() || !self.takes_file(name) {
                keep(name)
            } else {
                *taken.get_or_insert_with(|| keep(PLACEHOLDER))
            }
        };
        let numbers = names.map(number).collect();
        (kept, numbers)
    }

    /// Whether the name of a descriptor is taken out.
    fn takes_file(&self, name: &[u8]) -> bool {
        file_class(name).is_some_and(|class| self.takes(class))
    }

    /// Captured memory of `call`; `arg` as in [`Captured`](crate::model::Captured).
    pub(crate) fn captured(&self, call: Call, arg: u8, bytes: &mut Vec<u8>, status: &mut ByteStatus, full: &mut u64) {
        if let Some(class) = (self.classify)(call, arg & !SECOND_VALUE, bytes) {
            // the field they are all in is of class string
            let class = if self.takes(Class::String) && class == Class::Command { Class::String } else { class };
            self.value(class, bytes, status, full);
        }
    }

    /// An event of process life.
    pub(crate) fn process(&self, event: &mut ProcessEvent) {
        self.bytes(Class::Path, &mut event.path);
        if !event.argv.is_empty() {
            self.value(Class::Command, &mut event.argv, &mut event.argv_status, &mut event.argv_full);
        }
        self.bytes(Class::Comm, &mut event.comm);
    }

    /// A signal.
    pub(crate) fn signal(&self, signal: &mut SignalEvent) {
        if self.takes_file(&signal.call_path) {
            self.bytes(Class::Path, &mut signal.call_path);
        }
        if !signal.argv.is_empty() {
            self.value(Class::Command, &mut signal.argv, &mut signal.argv_status, &mut signal.argv_full);
        }
        for ancestor in signal.sender_ancestors.iter_mut().chain(&mut signal.target_ancestors) {
            self.bytes(Class::Comm, &mut ancestor.comm);
        }
    }

    /// A socket's change of state.
    pub(crate) fn net(&self, net: &mut NetState) {
        self.bytes(Class::Address, &mut net.saddr);
        self.bytes(Class::Address, &mut net.daddr);
        if self.takes(Class::Address) {
            (net.sport, net.dport) = (0, 0);
        }
    }

    /// The mapping of code. A build id stays: it identifies the program for a reader who has the program.
    pub(crate) fn mapping(&self, mapping: &mut Mapping) {
        let made_up = mapping.path == b"[kernel]" || mapping.path == b"[vdso]";
        if !self.takes(Class::Path) || mapping.path.is_empty() || made_up || is_placeholder(&mapping.path) {
            return;
        }
        if !mapping.build_id.is_empty() {
            mapping.path = PLACEHOLDER.to_vec();
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match files.get(mapping) {
            Some(&number) => Some(number),
            None if files.len() < MOST_FILES => {
                let number = files.len() + 1;
                files.insert(mapping.clone(), number);
                Some(number)
            }
            None => None,
        };
        mapping.path = number.map_or_else(|| PLACEHOLDER.to_vec(), |number| numbered(number as u64));
    }

    /// Names of functions stay, except a JIT compiler's: they are strings of the program, often with paths in them.
    pub fn symbols(&self, symbols: &mut Symbols) {
        symbols.mappings.iter_mut().for_each(|mapping| self.mapping(mapping));
        symbols.failures.iter_mut().for_each(|(_, why)| self.text(Class::Path, why));
        let mappings = &symbols.mappings;
        if self.takes(Class::Path) {
            // files that have no number any more cannot be told apart
            symbols.symbols.retain(|symbol| {
                let mapping = mappings.get(symbol.mapping as usize);
                mapping.is_none_or(|m| !m.build_id.is_empty() || m.path != PLACEHOLDER)
            });
        }
        for symbol in &mut symbols.symbols {
            let jit = mappings.get(symbol.mapping as usize).is_some_and(|mapping| mapping.kind == MappingKind::Jit);
            for function in &mut symbol.functions {
                self.bytes(Class::Path, &mut function.file);
                if jit {
                    let class = if function.name.contains(&b'/') { Class::Path } else { Class::String };
                    self.bytes(class, &mut function.name);
                }
            }
        }
    }

    /// A checkpoint.
    pub fn checkpoint(&self, checkpoint: &mut Checkpoint) {
        checkpoint.tasks.iter_mut().for_each(|task| self.task(task));
        for table in &mut checkpoint.fd_tables {
            self.bytes(Class::Path, &mut table.cwd);
            for fd in table.fds.iter_mut().filter(|fd| self.takes_file(&fd.path)) {
                self.bytes(Class::Path, &mut fd.path);
            }
        }
        if self.takes(Class::Command) {
            for command in checkpoint.commands.iter_mut().filter(|command| !command.argv.is_empty()) {
                (command.argv, command.full) = (PLACEHOLDER.to_vec(), PLACEHOLDER.len() as u64);
            }
        }
    }

    /// A segment that is not encoded yet.
    pub fn segment(&self, data: &mut SegmentData) {
        data.tasks.iter_mut().for_each(|task| self.task(task));
        let (names, numbers) = self.fd_names(data.fd_names.iter());
        data.fd_names = names;
        renumber(data.fd.iter_mut().chain(&mut data.fd2), &numbers);
        let mut bytes = Vec::new();
        for value in &mut data.values {
            let mut own = data.bytes.get(value.at..value.at + value.len).unwrap_or_default().to_vec();
            let call = data.call.get(value.row as usize).and_then(|&call| data.calls.get(call as usize));
            self.captured(call.copied().unwrap_or_default(), value.arg, &mut own, &mut value.status, &mut value.full);
            (value.at, value.len) = (bytes.len(), own.len());
            bytes.extend_from_slice(&own);
        }
        data.bytes = bytes;
        data.processes.iter_mut().for_each(|event| self.process(event));
        data.signals.iter_mut().for_each(|signal| self.signal(signal));
        data.nets.iter_mut().for_each(|net| self.net(net));
        data.stacks.mappings.iter_mut().for_each(|mapping| self.mapping(mapping));
        data.tables.iter_mut().for_each(|table| self.table(table));
        self.appeared(&mut data.appeared);
    }
}

fn numbered(number: u64) -> Vec<u8> {
    format!("<redacted {number}>").into_bytes()
}

/// Whether it was taken out before.
fn is_placeholder(bytes: &[u8]) -> bool {
    let number = bytes.strip_prefix(b"<redacted ").and_then(|rest| rest.strip_suffix(b">"));
    bytes == PLACEHOLDER || number.is_some_and(|n| (1..=20).contains(&n.len()) && n.iter().all(u8::is_ascii_digit))
}

/// What the name of a descriptor reveals: addresses (`TCP:[10.0.0.1:80]`), or a path, which a socket may have too
/// (`UNIX:[17,"/run/x"]`). None: the kernel numbers it (`pipe:[17]`, `socket:[17]`, `UNIX:[17->18]`), or it is
/// `anon_inode:[eventfd]` and the like.
fn file_class(name: &[u8]) -> Option<Class> {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if let Some((word, inside)) = sockets::split(name) {
        let mut ends = inside.splitn(2, |&byte| byte == b'>').map(|end| end.strip_suffix(b"-").unwrap_or(end));
        return match word {
            _ if ends.all(is_number) => None,
            b"NETLINK" => None,
            b"UNIX" | b"UNIX-STREAM" | b"socket" => Some(Class::Path),
            _ => Some(Class::Address),
        };
    }
    let pipe = name.strip_prefix(b"pipe:[").and_then(|rest| rest.strip_suffix(b"]"));
    let kernels = pipe.is_some_and(is_number) || (name.starts_with(b"anon_inode:") && !name.contains(&b'/'));
    (!kernels).then_some(Class::Path)
}

/// An `-e` expression without what stands in quotes there.
fn without_texts(words: &[u8]) -> Vec<u8> {
    let (mut out, mut quote) = (Vec::with_capacity(words.len()), None);
    for byte in words.iter().copied() {
        match quote {
            Some(open) if byte != open => continue,
            Some(_) => quote = None,
            None if matches!(byte, b'"' | b'\'') => {
                quote = Some(byte);
                out.extend([byte, b'.', b'.', b'.']);
                continue;
            }
            None => {}
        }
        out.push(byte);
    }
    out
}

/// Options of `record` whose values are numbers, times or sizes.
const NUMBERS: [&[u8]; 23] = [
    b"--after",
    b"--buffer",
    b"--cooldown",
    b"--delay",
    b"--disk",
    b"--duration",
    b"--flush",
    b"--for",
    b"--freq",
    b"--keep",
    b"--keep-free",
    b"--last",
    b"--max-size",
    b"--max-tapes",
    b"--mmap-pages",
    b"--names-for",
    b"--rotate",
    b"--stacks-min",
    b"--string-size",
    b"-D",
    b"-F",
    b"-m",
    b"-s",
];

/// Whether `value` may stay behind `option`, which may be one of the recorded command: a number (`99`, `1.5s`, `64M`), or names of
/// families.
fn is_plain(option: &[u8], value: &[u8]) -> bool {
    let option = option.strip_suffix(b"=").unwrap_or(option);
    let unit = value.iter().skip_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let number = value.first().is_some_and(u8::is_ascii_digit) && unit.clone().count() <= 3;
    let family = |word: &[u8]| Family::ALL.iter().any(|family| family.name().as_bytes() == word);
    (NUMBERS.contains(&option) && number && unit.clone().all(|byte| byte.is_ascii_alphabetic() || *byte == b'%'))
        || (option == b"--families" && value.split(|byte| *byte == b',').all(family))
}

/// `record`'s own command line: the options, because reports read them, and values that are no secrets.
fn own_arguments(arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut kept = Vec::new();
    let mut option: &[u8] = b"";
    for argument in arguments {
        let name = match argument.as_slice() {
            [b'-', b'-', rest @ ..] if !rest.is_empty() => {
                let end = argument.iter().position(|&byte| byte == b'=').unwrap_or(argument.len());
                let plain = argument[..end].iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-') && end <= 24;
                plain.then(|| &argument[..end + usize::from(end < argument.len())])
            }
            [b'-', letter, ..] if letter.is_ascii_alphabetic() => Some(&argument[..2]),
            _ => None,
        };
        match name {
            Some(name) if name.len() == argument.len() => kept.push(name.to_vec()),
            Some(name) if is_plain(name, &argument[name.len()..]) => kept.push(argument.clone()),
            Some(name) => kept.push([name, PLACEHOLDER].concat()),
            None if is_plain(option, argument) => kept.push(argument.clone()),
            // values, the command behind `--`, and record's own path
            None if kept.last().is_some_and(|last| last == PLACEHOLDER) => {}
            None => kept.push(PLACEHOLDER.to_vec()),
        }
        if argument == b"--" {
            break;
        }
        // a value is that of the option right before it
        option = name.filter(|name| name.len() == argument.len()).unwrap_or_default();
    }
    kept
}

/// Gives descriptors the new numbers of their names; those without one stay.
fn renumber<'a>(fds: impl Iterator<Item = &'a mut u32>, numbers: &[u32]) {
    for fd in fds {
        if let Some(number) = fd.checked_sub(FD_FIRST).and_then(|i| numbers.get(i as usize)) {
            *fd = *number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_filters_are_hidden_at_any_level() {
        let hidden = |words: &str| {
            let mut session = Session { selection: vec![words.as_bytes().to_vec()], ..Session::default() };
            let redactor = Redactor::new(Level::Paths, |_, _, _| None);
            redactor.session(&mut session);
            // a second time nothing changes
            let once = session.selection.clone();
            redactor.session(&mut session);
            assert_eq!(session.selection, once);
            String::from_utf8(once[0].clone()).unwrap()
        };
        let shown = hidden("a:b/name ~ \"/home/x'*\" && n == 3/,read,c:d/x=='y'/");
        assert_eq!(shown, "a:b/name ~ \"...\" && n == 3/,read,c:d/x=='...'/");
        assert_eq!(hidden("a:b/x=='y"), "a:b/x=='...");
        assert_eq!(hidden("!futex"), "!futex");
    }

    #[test]
    fn names_of_files_reveal_what_is_in_them() {
        for name in [
            "pipe:[17]",
            "socket:[17]",
            "TCP:[17]",
            "UNIX:[17->18]",
            "NETLINK:[ROUTE:712]",
            "anon_inode:[eventfd]",
            "PING:[3]",
        ] {
            assert_eq!(file_class(name.as_bytes()), None, "{name}");
        }
        for name in ["TCP:[10.0.0.1:80]", "UDPv6:[[::1]:53->[::1]:54]", "TCP:[1.1.1.1:2->1.1.1.1:3]"] {
            assert_eq!(file_class(name.as_bytes()), Some(Class::Address), "{name}");
        }
        for name in [
            "/etc/passwd",
            "/a:[1]",
            "UNIX:[17,\"/run/x\"]",
            "UNIX-STREAM:[17->18,@\"x\"]",
            "anon_inode:/x",
            "",
            "pipe:[]",
            "pipe:[1->]",
            "secret:[17]",
        ] {
            assert_eq!(file_class(name.as_bytes()), Some(Class::Path), "{name}");
        }
    }
}

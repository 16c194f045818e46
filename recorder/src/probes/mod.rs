//! Functions that `--uprobe`, `--probe` and `--kprobe` ask for, and static probes that `--usdt` does: where they are, and their tables.

pub(crate) mod files;
mod find;
mod kernel;
mod mounted;
mod operand;
mod spec;
mod unseen;
mod usdt;

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use systape_bpf::{probe, wire};
use systape_format::class::Class;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::{CPU, MAX_TABLE_NAME};

use crate::kernel::native;

pub(crate) use files::{Binary, Files};
pub(crate) use kernel::EVENT_TYPE as KPROBE_TYPE;
use spec::ProbeSpec;
pub(crate) use spec::{Kind, Parameter};
pub(crate) use unseen::unseen;
pub(crate) use usdt::{Static, Usdt, find_static};

/// Sets of functions by name: those of a set that a machine does not have are left out.
const SETS: [(&str, &[&str]); 2] = [
    (
        "dns",
        &[
            "libc.so.6:getaddrinfo(host=string,service=string)->int",
            "libc.so.6:gethostbyname(host=string)->ptr",
            "libc.so.6:gethostbyname2(host=string,family=int)->ptr",
        ],
    ),
    (
        "tls",
        &[
            "libssl.so.3:SSL_do_handshake(ssl=ptr)->int",
            "libssl.so.3:SSL_read(ssl=ptr,buf=ptr,num=int)->int",
            "libssl.so.3:SSL_write(ssl=ptr,buf=ptr,num=int)->int",
            "libssl.so.3:SSL_read_ex(ssl=ptr,buf=ptr,num=ulong,read=*ulong)->bool",
            "libssl.so.3:SSL_write_ex(ssl=ptr,buf=ptr,num=ulong,written=*ulong)->bool",
            "libgnutls.so.30:gnutls_handshake(session=ptr)->int",
            "libgnutls.so.30:gnutls_record_recv(session=ptr,data=ptr,size=ulong)->long",
            "libgnutls.so.30:gnutls_record_send(session=ptr,data=ptr,size=ulong)->long",
        ],
    ),
];

/// The C library of most systems.
const LIBC: &str = "libc.so.6";
/// That of Alpine.
const MUSL: &str = native::MUSL;

/// A place to attach to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub binary: Binary,
    /// Offset of the function's first byte from the file's beginning.
    pub offset: u64,
    /// Offset of the instruction at which its entry is seen, if no other is needed there.
    pub entry: u64,
    /// Offsets of its return instructions. Empty: the kernel puts its own code in place of the return address, which is cheaper,
    /// and which nothing that unwinds the stack gets across.
    pub returns: Vec<u64>,
}

/// A function to record.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Places of the function in files.
    pub(crate) places: Vec<Place>,
    /// Name of the function in the kernel, if it is there; `places` is empty then.
    pub(crate) kernel: Option<String>,
    pub(crate) parameters: Vec<Parameter>,
    /// Kind of its result; None: only its entries are recorded.
    pub(crate) result: Option<Kind>,
    /// Table of its calls, without a result of its entries.
    pub(crate) def: Arc<TableDef>,
    /// Entries without a return, and returns without an entry.
    pub(crate) unpaired: Arc<TableDef>,
}

impl Probe {
    /// Number for the program at a return instruction, where the return address is still on the stack.
    pub(crate) fn cookie_of_return(&self, number: usize) -> u64 {
        self.cookie(number) | 1 << 24
    }

    /// What the programs have to know of it; `number` is that of its records, from 1 on.
    pub(crate) fn cookie(&self, number: usize) -> u64 {
        let bits = |is: fn(Kind) -> bool, from: usize| {
            let all = self.parameters.iter().map(|parameter| parameter.kind).enumerate();
            // the result's bit is behind those of six arguments
            let all = all.chain(self.result.map(|kind| (6, kind)));
            all.filter(|(_, kind)| is(*kind)).fold(0, |bits, (at, _)| bits | 1 << (from + at))
        };
        let strings = bits(Kind::is_string, 16) | bits(|kind| kind == Kind::UserString, 32);
        let returns = u64::from(self.result.is_some()) << 23 | self.behind();
        let kernel = u64::from(self.kernel.is_some()) << 30;
        number as u64 & u64::from(!probe::RETURNED) | strings | returns | kernel
    }

    /// Bits for the argument that points to a number to read at the return.
    fn behind(&self) -> u64 {
        let Some(at) = self.parameters.iter().position(|parameter| parameter.behind) else { return 0 };
        let wide = self.parameters.get(at).is_some_and(|one| !matches!(one.kind, Kind::Int | Kind::Uint));
        (at as u64 + 1) << 25 | u64::from(wide) << 28 | u64::from(self.result == Some(Kind::Bool)) << 29
    }

    /// Of files.
    fn new(spec: &ProbeSpec, category: &str, places: Vec<Place>) -> Result<Self> {
        let file = places.first().map(|place| place.binary.path.display().to_string()).unwrap_or_default();
        Self::declared(spec, (category, &file, &spec.function), "--uprobe", places)
    }

    /// Of the kernel.
    fn of_kernel(spec: &ProbeSpec, function: &str) -> Result<Self> {
        let probe = Self::declared(spec, ("kprobe", "the kernel", function), "--kprobe", Vec::new())?;
        Ok(Self { kernel: Some(function.to_owned()), ..probe })
    }

    fn declared(
        spec: &ProbeSpec,
        (category, file, function): (&str, &str, &str),
        option: &str,
        places: Vec<Place>,
    ) -> Result<Self> {
        let name = table_name(category, function);
        let own = |name: &'static str, ty: Type, doc: &'static str| ColumnDef::stored(name, ty, None, doc);
        let returns = spec.result.is_some();
        let when = if returns { "when it returned" } else { "when it was called" };
        let mut columns = own_columns(when, "who called it", "where it was called");
        if returns {
            columns.push(own("dur_ns", Type::Duration, "how long it took"));
        }
        for parameter in &spec.parameters {
            if columns.iter().any(|column| column.name == parameter.name)
                || ["ret", "stack", "unread"].contains(&&*parameter.name)
            {
                bail!("{option}: an argument of {function} cannot be called '{}': name it otherwise", parameter.name);
            }
            columns.push(parameter.kind.column(parameter.name.clone(), "argument"));
        }
        if let Some(kind) = spec.result.filter(|kind| *kind != Kind::Void) {
            columns.push(kind.column("ret".to_owned(), "result"));
        }
        if spec.parameters.iter().any(|parameter| parameter.behind) {
            columns.push(own("unread", Type::Unread, "whether what an argument points to could not be read"));
        }
        columns.push(own("stack", Type::Stack, "the functions that called it"));
        let doc: String = format!("A call of {function} of {file}.");
        let doc = doc.chars().filter(char::is_ascii).take(256).collect::<String>();
        let def = TableDef { name: name.clone().into(), doc: doc.into(), columns: columns.into() };
        let unpaired = TableDef {
            name: format!("{name}.unpaired").into(),
            doc: format!("A call of {} of which only one end was seen.", table_name("", function)).into(),
            columns: vec![
                own("ts", Type::Time, "when it was known: of an entry, when the thread or the recording ended or became another program"),
                own("task", Type::Task, "who called it"),
                own("age_ns", Type::Duration, "how long ago that end was"),
                ColumnDef::stored("end", Type::Str, None, "entry: left without a return (longjmp, an exception, exec, the thread's end), still inside, or deeper than the kernel follows; return: entered before the recording or before a fork; lost: records in between were"),
                ColumnDef::stored("values", Type::Str, Some(Class::String), "arguments of an entry, result of a return"),
            ]
            .into(),
        };
        Ok(Self {
            places,
            kernel: None,
            parameters: spec.parameters.clone(),
            result: spec.result,
            def: Arc::new(def),
            unpaired: Arc::new(unpaired),
        })
    }

    /// The text of a record's values, for tables of unpaired ends.
    pub(crate) fn text(&self, values: &ProbeValues<'_>, returned: bool) -> String {
        let one = |name: &str, kind: Kind, at: usize| match values.get(at, kind) {
            Value::Text(Some(text)) => {
                let mut inside = String::new();
                systape_abi::escape(text, &mut inside);
                format!("{name}\"{inside}\"")
            }
            Value::Text(None) | Value::Unknown => format!("{name}?"),
            Value::Number(number) => format!("{name}{}", kind.text(number)),
        };
        if returned {
            return self
                .result
                .filter(|kind| *kind != Kind::Void)
                .map_or_else(String::new, |kind| one("ret=", kind, 0));
        }
        let named = self.parameters.iter().enumerate();
        let parts = named.map(|(at, p)| match p.behind {
            true => format!("{}=?", p.name),
            false => one(&format!("{}=", p.name), p.kind, at),
        });
        let parts: Vec<String> = parts.collect();
        parts.join(", ")
    }
}

/// The first columns of each table.
fn own_columns(when: &'static str, who: &'static str, cpu: &'static str) -> Vec<ColumnDef> {
    let own = |name: &'static str, ty: Type, doc: &'static str| ColumnDef::stored(name, ty, None, doc);
    vec![own("ts", Type::Time, when), own("task", Type::Task, who), own(CPU, Type::Int, cpu)]
}

/// A name that a tape takes.
fn table_name(category: &str, function: &str) -> String {
    const SUFFIX: usize = ".unpaired".len();
    let kept: String = function.chars().filter(char::is_ascii_graphic).collect();
    let most = MAX_TABLE_NAME - SUFFIX - category.len() - 1;
    let kept: String = kept.chars().take(most).collect();
    if category.is_empty() { kept } else { format!("{category}:{kept}") }
}

/// A value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    /// A string; None: it could not be read.
    Text(Option<&'a [u8]>),
    /// A value that could not be read.
    Unknown,
}

/// The values of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeValues<'a> {
    raw: &'a [u64],
    lens: &'a [u16],
    /// A bit for each that could not be read.
    unknown: u16,
    strings: &'a [u8],
}

impl<'a> ProbeValues<'a> {
    /// `strings`: what follows the record.
    pub(crate) fn new(record: &'a wire::Probe, strings: &'a [u8]) -> Self {
        Self { raw: &record.values, lens: &record.lens, unknown: 0, strings }
    }

    /// Values of a record of a static probe.
    pub(crate) fn of_static(record: &'a wire::Static, strings: &'a [u8]) -> Self {
        Self { raw: &record.values, lens: &record.lens, unknown: record.unknown, strings }
    }

    /// The number that an argument points to, at a return.
    pub(crate) fn behind(&self, kind: Kind) -> Value<'a> {
        match (self.lens.get(1), self.raw.get(1)) {
            (Some(len), Some(raw)) if *len != probe::NO_STRING => Value::Number(kind.widened(*raw)),
            _ => Value::Unknown,
        }
    }

    /// The value of argument `at`.
    pub(crate) fn get(&self, at: usize, kind: Kind) -> Value<'a> {
        if self.unknown >> at & 1 != 0 {
            return Value::Unknown;
        }
        let raw = self.raw.get(at).copied().unwrap_or(0);
        if !kind.is_string() {
            return Value::Number(kind.widened(raw));
        }
        let len = |at: usize| self.lens.get(at).filter(|len| **len != probe::NO_STRING).map(|len| usize::from(*len));
        let before: usize = (0..at).filter_map(len).sum();
        Value::Text(len(at).and_then(|len| self.strings.get(before..before + len)))
    }
}

/// The probes that options ask for, and notes about those that are left out.
///
/// # Errors
/// A sentence about the option that asks for what there is not.
pub(crate) fn find(
    uprobes: &[String],
    sets: &[String],
    kprobes: &[String],
    files: &mut Files,
) -> Result<(Vec<Arc<Probe>>, Vec<String>)> {
    let (mut probes, mut notes): (Vec<Arc<Probe>>, Vec<String>) = (Vec::new(), Vec::new());
    for text in uprobes {
        let spec = ProbeSpec::parse(text).with_context(|| format!("--uprobe '{text}'"))?;
        let places = find::places(files, &spec.file, &spec).with_context(|| format!("--uprobe '{text}'"))?;
        add(&mut probes, Probe::new(&spec, "uprobe", places)?)?;
    }
    for set in sets {
        let Some((name, functions)) = SETS.iter().find(|(name, _)| name == set) else {
            let names: Vec<&str> = SETS.iter().map(|(name, _)| *name).collect();
            bail!("--probe {set}: there are {}", names.join(" and "));
        };
        let mut left_out: Vec<String> = Vec::new();
        let before = probes.len();
        for text in *functions {
            let spec = ProbeSpec::parse(text)?;
            match places_of_set(files, &spec) {
                Ok(places) => add(&mut probes, Probe::new(&spec, name, places)?)?,
                Err(error) => left_out.push(format!("{}: {error:#}", spec.function)),
            }
        }
        if probes.len() == before {
            bail!("--probe {set}: {}", left_out.join("; "));
        }
        notes.extend(left_out.into_iter().map(|why| format!("--probe {set} is without {why}")));
    }
    let specs = kprobes
        .iter()
        .map(|text| Ok((text, ProbeSpec::parse_kernel(text).with_context(|| format!("--kprobe '{text}'"))?)))
        .collect::<Result<Vec<_>>>()?;
    if let Some((text, _)) = specs.first() {
        let kernel = kernel::KernelFunctions::read().with_context(|| format!("--kprobe '{text}'"))?;
        for (text, spec) in &specs {
            let (functions, note) = kernel.find(&spec.function).with_context(|| format!("--kprobe '{text}'"))?;
            notes.extend(note.map(|note| format!("--kprobe '{text}': {note}")));
            functions.iter().try_for_each(|function| add(&mut probes, Probe::of_kernel(spec, function)?))?;
        }
    }
    Ok((probes, notes))
}

/// Those of a function of a set: what libc has, musl's may have too.
fn places_of_set(files: &mut Files, spec: &ProbeSpec) -> Result<Vec<Place>> {
    let found = find::places(files, &spec.file, spec);
    if spec.file != LIBC {
        return found;
    }
    match (found, find::places(files, MUSL, spec)) {
        (Ok(found), Ok(more)) => Ok(found.into_iter().chain(more).collect()),
        (Err(_), Ok(found)) => Ok(found),
        (found, Err(_)) => found,
    }
}

fn add(probes: &mut Vec<Arc<Probe>>, probe: Probe) -> Result<()> {
    if probes.iter().any(|other| other.def.name == probe.def.name) {
        bail!("{} is asked for twice", probe.def.name);
    }
    probes.push(Arc::new(probe));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe_of(text: &str) -> Probe {
        Probe::new(&ProbeSpec::parse(text).unwrap(), "uprobe", Vec::new()).unwrap()
    }

    #[test]
    fn sets_are_understood() {
        for text in SETS.iter().flat_map(|(_, functions)| *functions) {
            let probe = probe_of(text);
            assert!(probe.result.is_some() && !probe.parameters.is_empty(), "{text}");
        }
        let error = find(&[], &["smtp".to_owned()], &[], &mut Files::default()).unwrap_err().to_string();
        assert_eq!(error, "--probe smtp: there are dns and tls");
    }

    #[test]
    fn the_program_is_told_what_is_a_string() {
        assert_eq!(probe_of("libc.so.6:getenv(name=string)->string").cookie(3), 3 | 1 << 16 | 1 << 22 | 1 << 23);
        assert_eq!(probe_of("libc.so.6:f(a=int,b=string)").cookie(1), 1 | 1 << 17);
        assert_eq!(probe_of("x:f(int,*ulong)->bool").cookie(1), 1 | 1 << 23 | 2 << 25 | 1 << 28 | 1 << 29);
        assert_eq!(probe_of("x:f(a=*int)->int").cookie(1), 1 | 1 << 23 | 1 << 25);
        let spec = ProbeSpec::parse_kernel("f(string,ustring)->ustring").unwrap();
        let kernel = Probe::of_kernel(&spec, "f").unwrap();
        let strings = 1 << 16 | 1 << 17 | 1 << 22 | 1 << 33 | 1 << 38;
        assert_eq!((kernel.cookie(2), &*kernel.def.name), (2 | 1 << 23 | 1 << 30 | strings, "kprobe:f"));
    }

    #[test]
    fn values_are_as_declared() {
        let probe = probe_of("x:f(a=string,n=int,b=string,p=ptr)->int");
        let mut record = wire::Probe { values: [1, 0xffff_fffe, 2, 255, 0, 0], ..wire::Probe::default() };
        record.lens = [3, probe::NO_STRING, probe::NO_STRING, 0, 0, 0];
        let values = ProbeValues::new(&record, b"a\"b");
        assert_eq!(probe.text(&values, false), r#"a="a\"b", n=-2, b=?, p=0xff"#);
        assert_eq!(probe_of("x:f(a=int,n=*int)->int").text(&values, false), "a=1, n=?");
        assert_eq!(values.behind(Kind::Int), Value::Unknown);
        record.lens[1] = 4;
        assert_eq!(ProbeValues::new(&record, b"").behind(Kind::Int), Value::Number((-2i64).cast_unsigned()));
        record.values[0] = 0xffff_ffff;
        assert_eq!(probe.text(&ProbeValues::new(&record, b""), true), "ret=-1");
    }

    #[test]
    fn long_names_fit_a_table() {
        let probe = probe_of(&format!("x:{}", "f".repeat(300)));
        assert!(probe.unpaired.name.len() <= MAX_TABLE_NAME && probe.unpaired.name.ends_with(".unpaired"));
    }
}

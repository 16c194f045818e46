//! Static probes that `--usdt` asks for: their places, where the arguments are at each, and the table of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use systape_abi::{glob_matches, nearest, plain};
use systape_bpf::wire;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_symbols::StaticProbe;

use super::spec::{Kind, Parameter, own_name, parameters};
use super::{Binary, Files, operand, own_columns, table_name};
use crate::foreign::FactReader;

/// Most arguments of a probe.
const MOST_ARGUMENTS: usize = wire::Operands { of: [BLANK; 12] }.of.len();
const BLANK: wire::Operand =
    wire::Operand { value: 0, kind: 0, size: 0, is_signed: 0, is_string: 0, base: 0, index: 0, shift: 0, pad: 0 };
/// Most places of all probes: each takes the kernel a moment to attach, and two descriptors.
const MOST_PLACES: usize = 512;
/// Most symbols that are looked for in a file.
const MOST_SYMBOLS: usize = 256;
/// Most probes that are listed when none is the one.
const MOST_LISTED: usize = 12;

/// A place to attach to.
#[derive(Clone, Debug)]
pub(crate) struct StaticPlace {
    pub binary: Binary,
    /// Offset of its instruction from the file's beginning.
    pub offset: u64,
    /// Offset of the counter of its listeners from the file's beginning; 0 = it has none.
    pub semaphore: u64,
    /// Index in [`Usdt::operands`].
    pub operands: usize,
}

/// A static probe to record.
#[derive(Clone, Debug)]
pub struct Static {
    pub(crate) places: Vec<StaticPlace>,
    /// Kinds of the arguments that are recorded.
    pub(crate) kinds: Vec<Kind>,
    pub(crate) def: Arc<TableDef>,
}

impl Static {
    /// What the program has to know of a place; `number` is that of the probe's records, from 1 on.
    pub(crate) fn cookie(number: usize, place: &StaticPlace) -> u64 {
        number as u64 | (place.operands as u64) << 16
    }
}

/// All static probes to record.
#[derive(Clone, Debug, Default)]
pub struct Usdt {
    pub(crate) probes: Vec<Arc<Static>>,
    /// Where arguments are, for places with the same.
    pub(crate) operands: Vec<wire::Operands>,
}

/// `FILE:PROVIDER:NAME` or `FILE:NAME`, and what is in parentheses behind it.
#[derive(Debug, PartialEq, Eq)]
struct UsdtSpec {
    file: String,
    provider: String,
    name: String,
    /// None: all arguments, as the probe declares them.
    parameters: Option<Vec<Parameter>>,
}

impl UsdtSpec {
    fn parse(text: &str) -> Result<Self> {
        let (place, parameters) = match text.trim().strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((place, list)) => (place, Some(parameters(list)?)),
            None if text.contains("->") => bail!("a static probe has no return: leave '->' out"),
            None if text.contains(['(', ')']) => bail!("write it as FILE:PROVIDER:NAME(NAME=TYPE,...)"),
            None => (text.trim(), None),
        };
        // bpftrace's word for the kind of probe
        let place = place.strip_prefix("usdt:").unwrap_or(place);
        let parts = place.rsplit_once(':').map(|(rest, name)| match rest.rsplit_once(':') {
            Some((file, provider)) => (file, provider, name),
            None => (rest, "*", name),
        });
        let Some((file, provider, name)) = parts.filter(|(a, b, c)| ![a, b, c].iter().any(|part| part.is_empty()))
        else {
            bail!("write it as FILE:PROVIDER:NAME, such as python3:python:function__entry or ./program:*:*");
        };
        let (file, provider, name) = (file.to_owned(), provider.to_owned(), name.to_owned());
        Ok(Self { file, provider, name, parameters })
    }

    fn matches(&self, probe: &StaticProbe) -> bool {
        glob_matches(&self.provider, &probe.provider) && glob_matches(&self.name, &probe.name)
    }
}

/// A file's probe that was asked for, and what was.
#[derive(Clone)]
struct Found<'a> {
    spec: &'a UsdtSpec,
    binary: Binary,
    probe: StaticProbe,
    /// Addresses of symbols in its file that arguments are given by.
    symbols: Arc<HashMap<String, u64>>,
}

/// The static probes of the options, and notes about arguments that are not read.
///
/// # Errors
/// A sentence about the option that asks for what there is not.
pub(crate) fn find_static(options: &[String], files: &mut Files) -> Result<(Usdt, Vec<String>)> {
    let (mut usdt, mut notes) = (Usdt::default(), Vec::new());
    for text in options {
        let context = || format!("--usdt '{text}'");
        let spec = UsdtSpec::parse(text).with_context(context)?;
        let mut by_name: BTreeMap<(String, String), Vec<Found<'_>>> = BTreeMap::new();
        for found in places(files, &spec).with_context(context)? {
            by_name.entry((found.probe.provider.clone(), found.probe.name.clone())).or_default().push(found);
        }
        if spec.parameters.is_some() && by_name.len() > 1 {
            bail!("{}: {} probes match: arguments can be listed for one", context(), by_name.len());
        }
        for ((provider, name), found) in by_name {
            let name = format!("{provider}:{name}");
            let probe = usdt.probe(&name, &found, &mut notes).with_context(context)?;
            ensure!(
                usdt.probes.iter().all(|other| other.def.name != probe.def.name),
                "--usdt: {name} is asked for twice"
            );
            usdt.probes.push(Arc::new(probe));
        }
    }
    let places: usize = usdt.probes.iter().map(|probe| probe.places.len()).sum();
    ensure!(places <= MOST_PLACES, "--usdt: {places} places; {MOST_PLACES} can be recorded at once");
    Ok((usdt, notes))
}

/// Each place that an option names.
fn places<'a>(files: &mut Files, spec: &'a UsdtSpec) -> Result<Vec<Found<'a>>> {
    Ok(files.look_into(&spec.file, |binary, facts| places_in(spec, binary, facts))?.concat())
}

fn places_in<'a>(spec: &'a UsdtSpec, binary: &Binary, facts: &mut FactReader) -> Result<Vec<Found<'a>>, String> {
    let (file, whose) = (binary.file(), binary.whose());
    let all = facts.ask(whose, |reader, limits| reader.static_probes(file, limits))?;
    let mut chosen: Vec<StaticProbe> = all.iter().filter(|probe| spec.matches(probe)).cloned().collect();
    if chosen.is_empty() {
        return Err(none_such(spec, &all));
    }
    // an inlined function may be described twice
    chosen.sort_by(|a, b| (a.offset, &a.provider, &a.name).cmp(&(b.offset, &b.provider, &b.name)));
    chosen.dedup_by(|a, b| (a.offset, &a.provider, &a.name) == (b.offset, &b.provider, &b.name));
    let mut symbols: Vec<&str> =
        chosen.iter().flat_map(|probe| operand::split(&probe.arguments)).filter_map(operand::symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols.truncate(MOST_SYMBOLS);
    let symbols = match symbols[..] {
        [] => HashMap::new(),
        _ => facts.ask(whose, |reader, limits| reader.symbol_addresses(file, &symbols, limits))?,
    };
    let symbols = Arc::new(symbols);
    let found = |probe| Found { spec, binary: binary.clone(), probe, symbols: Arc::clone(&symbols) };
    Ok(chosen.into_iter().map(found).collect())
}

/// What to say if none of `all` is asked for.
fn none_such(spec: &UsdtSpec, all: &[StaticProbe]) -> String {
    // they go to a terminal
    let full = |probe: &StaticProbe| plain(&format!("{}:{}", probe.provider, probe.name)).into_owned();
    let mut names: Vec<String> = all.iter().map(full).collect();
    names.sort_unstable();
    names.dedup();
    let asked = if spec.provider == "*" { spec.name.clone() } else { format!("{}:{}", spec.provider, spec.name) };
    let bare = |name: &str| name.split_once(':').map_or(String::new(), |(_, name)| name.to_owned());
    let bares: Vec<String> = names.iter().map(|name| bare(name)).collect();
    let near = nearest(&asked, names.iter().map(String::as_str));
    let near = if near.is_empty() { nearest(&spec.name, bares.iter().map(String::as_str)) } else { near };
    let (what, listed): (&str, Vec<&str>) = match near[..] {
        [] => ("it has", names.iter().map(String::as_str).take(MOST_LISTED).collect()),
        _ => ("the nearest are", near),
    };
    let more = if what == "it has" && names.len() > MOST_LISTED { ", ..." } else { "" };
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    format!("it has no static probe '{asked}'; {what} {listed}{more}")
}

impl Usdt {
    /// One probe of all its places.
    fn probe(&mut self, name: &str, found: &[Found<'_>], notes: &mut Vec<String>) -> Result<Static> {
        let Some(first) = found.first() else { bail!("it has no place") };
        let spec = first.spec;
        let most = |found: &Found<'_>| operand::split(&found.probe.arguments).count();
        let declared = found.iter().map(most).max().unwrap_or(0);
        let parameters = match &spec.parameters {
            Some(listed) if listed.len() > declared => {
                bail!("it has {declared} arguments, {} are listed", listed.len())
            }
            Some(listed) => listed.clone(),
            None => (0..declared)
                .map(|at| Parameter { name: own_name(at), kind: kind_of(found, at), behind: false })
                .collect(),
        };
        let taken = parameters.len().min(MOST_ARGUMENTS);
        if taken < parameters.len() {
            notes.push(format!("--usdt {name}: {taken} of {} arguments are recorded", parameters.len()));
        }
        let parameters = parameters.get(..taken).unwrap_or_default();
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        let mut places = Vec::new();
        for one in found {
            let operands = one.operands(parameters, &mut unread);
            let operands = self.index(operands);
            let semaphore = one.probe.semaphore.unwrap_or(0);
            places.push(StaticPlace { binary: one.binary.clone(), offset: one.probe.offset, semaphore, operands });
        }
        for (argument, times) in unread {
            let places = if found.len() > 1 { format!(" at {times} of {} places", found.len()) } else { String::new() };
            notes.push(format!("--usdt {name}: the argument {} is not read{places}", plain(argument)));
        }
        let mut columns = own_columns("when it was reached", "who reached it", "where it was reached");
        for parameter in parameters {
            if parameter.behind {
                bail!("'{}': a static probe has no return at which '*' is read", parameter.name);
            }
            if columns.iter().any(|column| column.name == parameter.name)
                || ["stack", "unread"].contains(&&*parameter.name)
            {
                bail!("an argument cannot be called '{}': name it otherwise", parameter.name);
            }
            columns.push(parameter.kind.column(parameter.name.clone(), "argument"));
        }
        columns.push(ColumnDef::stored("unread", Type::Unread, None, "which arguments could not be read"));
        columns.push(ColumnDef::stored("stack", Type::Stack, None, "the functions in which it is"));
        let doc = format!("The static probe {name} of {}.", first.binary.path.display());
        let doc: String = doc.chars().filter(char::is_ascii).take(256).collect();
        let def = TableDef { name: table_name("usdt", name).into(), doc: doc.into(), columns: columns.into() };
        Ok(Static { places, kinds: parameters.iter().map(|parameter| parameter.kind).collect(), def: Arc::new(def) })
    }

    /// The index of these operands, which many places share.
    fn index(&mut self, operands: wire::Operands) -> usize {
        let same = |a: &wire::Operand, b: &wire::Operand| {
            (a.value, a.kind, a.size, a.is_signed, a.is_string, a.base, a.index, a.shift)
                == (b.value, b.kind, b.size, b.is_signed, b.is_string, b.base, b.index, b.shift)
        };
        let known = self.operands.iter().position(|known| known.of.iter().zip(&operands.of).all(|(a, b)| same(a, b)));
        known.unwrap_or_else(|| {
            self.operands.push(operands);
            self.operands.len() - 1
        })
    }
}

impl Found<'_> {
    /// For the programs; adds to `unread` those that are there and cannot be read.
    fn operands<'b>(&'b self, parameters: &[Parameter], unread: &mut BTreeMap<&'b str, usize>) -> wire::Operands {
        let mut operands = wire::Operands { of: [BLANK; MOST_ARGUMENTS] };
        let declared = operand::split(&self.probe.arguments);
        for ((into, argument), parameter) in operands.of.iter_mut().zip(declared).zip(parameters) {
            let from_here = |name: &str| {
                let address = self.symbols.get(name)?;
                Some(address.wrapping_sub(self.probe.address).cast_signed())
            };
            match operand::parse(argument, from_here) {
                Some(found) => *into = wire::Operand { is_string: (parameter.kind == Kind::String).into(), ..found },
                None => *unread.entry(argument).or_default() += 1,
            }
        }
        operands
    }
}

/// The type of an argument without one, by its size and sign at all places.
fn kind_of(found: &[Found<'_>], at: usize) -> Kind {
    let of_place = |one: &Found<'_>| operand::size(operand::split(&one.probe.arguments).nth(at)?);
    let sizes: Vec<(u8, bool)> = found.iter().filter_map(of_place).collect();
    match (sizes.contains(&(8, false)), sizes.iter().any(|(_, signed)| *signed)) {
        // most are addresses
        (true, _) => Kind::Hex,
        (false, true) => Kind::Long,
        (false, false) => Kind::Uint,
    }
}

#[cfg(test)]
mod tests {
    use systape_format::tables::CPU;

    use super::*;

    fn probe(arguments: &str) -> StaticProbe {
        let name = |name: &str| name.to_owned();
        StaticProbe {
            provider: name("p"),
            name: name("n"),
            offset: 1,
            address: 1,
            semaphore: None,
            arguments: name(arguments),
        }
    }

    fn of_places(option: &str, arguments: &[&str]) -> Result<(Static, Usdt, Vec<String>)> {
        let spec = UsdtSpec::parse(option)?;
        let place = |arguments: &&str| Found {
            spec: &spec,
            binary: Binary::of_nothing(),
            probe: probe(arguments),
            symbols: Arc::default(),
        };
        let found: Vec<Found<'_>> = arguments.iter().map(place).collect();
        let (mut usdt, mut notes) = (Usdt::default(), Vec::new());
        let one = usdt.probe("p:n", &found, &mut notes)?;
        Ok((one, usdt, notes))
    }

    #[test]
    fn parts_are_told_apart() {
        let spec = UsdtSpec::parse("/opt/a b:c/lib.so:p:n( n = int, string )").unwrap();
        assert_eq!((&*spec.file, &*spec.provider, &*spec.name), ("/opt/a b:c/lib.so", "p", "n"));
        assert_eq!(spec.parameters.unwrap().len(), 2);
        let spec = UsdtSpec::parse("usdt:python3:audit").unwrap();
        assert_eq!((&*spec.file, &*spec.provider, &*spec.name, spec.parameters), ("python3", "*", "audit", None));
        for (text, says) in [
            ("audit", "FILE:PROVIDER:NAME"),
            ("f:p:", "FILE:PROVIDER:NAME"),
            ("f:p:n->int", "has no return"),
            ("f:p:n(a=int", "(NAME=TYPE,...)"),
            ("f:p:n(a=*word)", "'word' is no type"),
            ("f:p:n(a=word)", "'word' is no type"),
        ] {
            let error = UsdtSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn types_are_those_of_all_places() {
        let (one, usdt, notes) = of_places(
            "f:p:n",
            &["-4@%edi 8@%rsi 4@$1 2@%ax", "-4@$-1 8@$0 4@%eax -8@%rax", "-4@%edi 8@%rsi 4@$1 2@%ax"],
        )
        .unwrap();
        assert_eq!(one.kinds, [Kind::Long, Kind::Hex, Kind::Uint, Kind::Long]);
        let names: Vec<&str> = one.def.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["ts", "task", CPU, "arg0", "arg1", "arg2", "arg3", "unread", "stack"]);
        assert_eq!((&*one.def.name, usdt.operands.len(), notes), ("usdt:p:n", 2, Vec::<String>::new()));
        let indices: Vec<usize> = one.places.iter().map(|place| place.operands).collect();
        assert_eq!(indices, [0, 1, 0]);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let (one, usdt, notes) = of_places("f:p:n", &["8@%rax 8f@%xmm0", "8@%rax 8@%rbx"]).unwrap();
        assert_eq!(one.kinds.len(), 2);
        assert_eq!(notes, ["--usdt p:n: the argument 8f@%xmm0 is not read at 1 of 2 places"]);
        assert_eq!(usdt.operands.iter().map(|one| one.of[1].kind).collect::<Vec<_>>(), [0, 2]);
        let (one, _, notes) = of_places("f:p:n", &["4@$1 ".repeat(14).trim()]).unwrap();
        assert_eq!((one.kinds.len(), &*notes), (12, &["--usdt p:n: 12 of 14 arguments are recorded".to_owned()][..]));
    }

    #[test]
    fn listed_arguments_are_those_recorded() {
        let (one, usdt, _) = of_places("f:p:n(path=string)", &["8@%rax 8@%rbx"]).unwrap();
        assert_eq!((&*one.kinds, &*one.def.columns[3].name), (&[Kind::String][..], "path"));
        assert_eq!((usdt.operands[0].of[0].is_string, usdt.operands[0].of[1].kind), (1, 0));
        let error = |option| of_places(option, &["8@%rax"]).unwrap_err().to_string();
        assert!(error("f:p:n(int,int)").contains("it has 1 arguments, 2 are listed"));
        assert!(error("f:p:n(stack=int)").contains("name it otherwise"));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let all = ["function__entry", "function__return", "line"]
            .map(|name| StaticProbe { name: name.to_owned(), ..probe("") });
        let says = |text| none_such(&UsdtSpec::parse(text).unwrap(), &all);
        assert_eq!(
            says("f:p:function_entry"),
            "it has no static probe 'p:function_entry'; the nearest are p:function__entry"
        );
        assert_eq!(says("f:postgres:lien"), "it has no static probe 'postgres:lien'; the nearest are line");
        assert_eq!(says("f:zzz"), "it has no static probe 'zzz'; it has p:function__entry, p:function__return, p:line");
    }
}

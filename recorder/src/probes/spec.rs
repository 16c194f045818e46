//! What `--uprobe` is written as: `FILE:FUNCTION[(NAME=TYPE,...)][->TYPE]`, and `--kprobe` without `FILE:`.

use anyhow::{Result, bail};
use systape_format::class::Class;
use systape_format::table::{ColumnDef, Type};

/// Most arguments: those that the calling convention passes in registers.
const MOST: usize = 6;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Uint,
    Long,
    Ulong,
    Hex,
    Bool,
    /// A string in the memory of the program; of a function of the kernel in the kernel's.
    String,
    /// A string, for a function of the kernel, in the memory of the process that it works for.
    UserString,
    /// No result.
    Void,
}

const KINDS: [(&str, Kind); 10] = [
    ("int", Kind::Int),
    ("uint", Kind::Uint),
    ("long", Kind::Long),
    ("ulong", Kind::Ulong),
    ("hex", Kind::Hex),
    ("ptr", Kind::Hex),
    ("bool", Kind::Bool),
    ("string", Kind::String),
    ("ustring", Kind::UserString),
    ("void", Kind::Void),
];

impl Kind {
    fn parse(text: &str) -> Result<Self> {
        match KINDS.iter().find(|(name, _)| *name == text) {
            Some((_, kind)) => Ok(*kind),
            None => {
                let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                bail!("'{text}' is no type: there are {}", names.join(", "))
            }
        }
    }

    /// The register's bits as 64 bits of this type: what is above the type's size may be anything.
    pub(crate) fn widened(self, raw: u64) -> u64 {
        match self {
            Self::Int => i64::from(raw as i32).cast_unsigned(),
            Self::Uint => u64::from(raw as u32),
            Self::Bool => u64::from(raw as u8 != 0),
            _ => raw,
        }
    }

    pub(crate) fn text(self, value: u64) -> String {
        match self {
            Self::Int | Self::Long => value.cast_signed().to_string(),
            Self::Hex => format!("{value:#x}"),
            Self::Bool => (value != 0).to_string(),
            _ => value.to_string(),
        }
    }

    pub(crate) fn is_string(self) -> bool {
        matches!(self, Self::String | Self::UserString)
    }

    /// A column of this type.
    pub(crate) fn column(self, name: String, doc: &'static str) -> ColumnDef {
        let ty = match self {
            Self::Int | Self::Uint | Self::Long => Type::Int,
            Self::Ulong | Self::Void => Type::Wide,
            Self::Hex => Type::Hex,
            Self::Bool => Type::Flag,
            Self::String | Self::UserString => Type::Str,
        };
        ColumnDef::stored(name, ty, (ty == Type::Str).then_some(Class::String), doc)
    }
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub kind: Kind,
    /// Whether it points to the value, which is read when the call returns.
    pub behind: bool,
}

/// An option's text, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeSpec {
    /// A path, or the name of a library or a program; empty: the kernel.
    pub file: String,
    /// Name of the function; of the kernel perhaps a pattern.
    pub function: String,
    pub parameters: Vec<Parameter>,
    /// Kind of its result; None: its return is not asked for.
    pub result: Option<Kind>,
}

impl ProbeSpec {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (place, parameters, result) = parts(text, "FILE:FUNCTION")?;
        let Some((file, function)) = place.rsplit_once(':').filter(|(file, name)| !file.is_empty() && !name.is_empty())
        else {
            bail!("write it as FILE:FUNCTION, such as libc.so.6:getaddrinfo or ./program:main")
        };
        if parameters.iter().map(|parameter| parameter.kind).chain(result).any(|kind| kind == Kind::UserString) {
            bail!("'ustring' is of --kprobe: all that a program points to is its own memory, write 'string'");
        }
        Ok(Self { file: file.to_owned(), function: function.to_owned(), parameters, result })
    }

    /// Parses the text of a probe of a function of the kernel.
    pub(crate) fn parse_kernel(text: &str) -> Result<Self> {
        let (place, parameters, result) = parts(text, "FUNCTION")?;
        // bpftrace's word for the kind of probe
        let function = place.strip_prefix("kprobe:").unwrap_or(place);
        if let Some((function, offset)) = function.split_once('+') {
            bail!("the entry of a function is recorded, no place in it: leave '+{offset}' out behind {function}");
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$*?[]-".contains(c);
        if function.is_empty() || !function.chars().all(is_part) {
            bail!("write it as FUNCTION, such as do_unlinkat or 'vfs_*'; the name alone, also of a module's");
        }
        Ok(Self { file: String::new(), function: function.to_owned(), parameters, result })
    }
}

/// What stands before the arguments, these, and the result's type; `place`: how the first is written.
fn parts<'a>(text: &'a str, place: &str) -> Result<(&'a str, Vec<Parameter>, Option<Kind>)> {
    let (head, result) = match text.rsplit_once("->") {
        Some((head, result)) => (head, Some(Kind::parse(result.trim())?)),
        None => (text, None),
    };
    let (before, parameters) = match head.trim().strip_suffix(')').and_then(|head| head.split_once('(')) {
        Some((before, parameters)) => (before, parameters),
        None if head.contains(['(', ')']) => bail!("write it as {place}(NAME=TYPE,...)->TYPE"),
        None => (head.trim(), ""),
    };
    let parameters = self::parameters(parameters)?;
    let mut behind = parameters.iter().filter(|parameter| parameter.behind);
    if let Some(parameter) = behind.next()
        && (result.is_none() || behind.next().is_some())
    {
        bail!("'{}' is read when the call returns: write '->TYPE', and one '*' only", parameter.name);
    }
    if parameters.len() > MOST {
        bail!("{} arguments: {MOST} are passed in registers, and no others are read", parameters.len());
    }
    Ok((before.trim(), parameters, result))
}

/// The arguments of a list between parentheses.
pub(super) fn parameters(list: &str) -> Result<Vec<Parameter>> {
    let listed = list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
    listed.enumerate().map(|(at, text)| parameter(at, text)).collect()
}

/// The name of an argument without one.
pub(super) fn own_name(at: usize) -> String {
    format!("arg{at}")
}

fn parameter(at: usize, text: &str) -> Result<Parameter> {
    let (name, kind) = match text.split_once('=') {
        Some((name, kind)) => (name.trim().to_owned(), kind.trim()),
        None => (own_name(at), text),
    };
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if name.is_empty() || name.len() > 32 || !is_name(&name) {
        bail!("'{name}': an argument's name is 1 to 32 letters, digits and '_'");
    }
    let (kind, behind) = kind.strip_prefix('*').map_or((kind, false), |kind| (kind.trim(), true));
    match Kind::parse(kind)? {
        Kind::Void => bail!("argument '{name}' cannot be void"),
        Kind::String | Kind::UserString | Kind::Bool if behind => {
            bail!("argument '{name}': '*' stands before int, uint, long, ulong, hex and ptr")
        }
        kind => Ok(Parameter { name, kind, behind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let spec = ProbeSpec::parse("/opt/a b:c/lib.so:f( n = int, string )->void").unwrap();
        assert_eq!((&*spec.file, &*spec.function, spec.result), ("/opt/a b:c/lib.so", "f", Some(Kind::Void)));
        let parameter = |name: &str, kind| Parameter { name: name.to_owned(), kind, behind: false };
        assert_eq!(spec.parameters, [parameter("n", Kind::Int), parameter("arg1", Kind::String)]);
        let plain = ProbeSpec::parse("sh:main").unwrap();
        assert_eq!((plain.parameters.len(), plain.result), (0, None));
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text| ProbeSpec::parse(text).unwrap_err().to_string();
        assert!(error("getaddrinfo").contains("FILE:FUNCTION"));
        assert!(error("x:f(a=int").contains("FILE:FUNCTION(NAME=TYPE,...)->TYPE"));
        assert!(error("x:f(a=integer)").contains("'integer' is no type: there are int, uint"));
        assert!(error("x:f(a=void)").contains("cannot be void"));
        assert!(error("x:f(int,int,int,int,int,int,int)").contains("7 arguments"));
        assert!(error("x:f(a=*int)").contains("'a' is read when the call returns"));
        assert!(error("x:f(a=*int,b=*int)->int").contains("one '*' only"));
        assert!(error("x:f(a=*string)->int").contains("'*' stands before int"));
        assert!(error("x:f(a-b=int)").contains("an argument's name"));
    }

    #[test]
    fn functions_of_the_kernel() {
        let spec = ProbeSpec::parse_kernel("kprobe:do_unlinkat(dir=int, name=ustring)->int").unwrap();
        assert_eq!((&*spec.file, &*spec.function, spec.result), ("", "do_unlinkat", Some(Kind::Int)));
        assert_eq!(spec.parameters.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::Int, Kind::UserString]);
        assert_eq!(ProbeSpec::parse_kernel("vfs_*").unwrap().function, "vfs_*");
        let error = |text| ProbeSpec::parse_kernel(text).unwrap_err().to_string();
        assert!(error("vmlinux:do_exit").contains("such as do_unlinkat"));
        assert!(error("do_exit+0x10").contains("leave '+0x10' out behind do_exit"));
        assert!(error("f(a=int").contains("write it as FUNCTION(NAME=TYPE,...)->TYPE"));
        assert!(ProbeSpec::parse("x:f(a=ustring)").unwrap_err().to_string().contains("is of --kprobe"));
    }

    #[test]
    fn bits_above_a_type_do_not_count() {
        let dirty = 0xdead_beef_0000_0000u64;
        assert_eq!(Kind::Int.widened(dirty | 0xffff_ffff).cast_signed(), -1);
        assert_eq!(
            (Kind::Uint.widened(dirty | 7), Kind::Bool.widened(dirty | 0x100), Kind::Ulong.widened(dirty)),
            (7, 0, dirty)
        );
    }
}

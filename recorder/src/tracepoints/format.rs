//! Formats of tracepoints, as the files `format` of tracefs describe them: which bytes of an event's record are which
//! field.

use std::fmt::Write as _;

use systape_format::table::Type;

/// Meaning of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One number.
    Number,
    /// An address.
    Pointer,
    /// Text up to a NUL byte.
    Text,
    /// Numbers of so many bytes each, one after the other.
    Array(usize),
}

/// Place of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Bytes in the fixed part.
    Fixed,
    /// Where a word in the fixed part says (`__data_loc`).
    Located,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracepointField {
    /// Name of the field.
    pub name: String,
    /// Type of the field in C, as the file has it.
    pub declared: String,
    /// First byte of the field, or of the word that says where it is.
    pub offset: usize,
    /// Bytes there.
    pub size: usize,
    /// Whether its numbers have a sign.
    pub signed: bool,
    /// The meaning of its bytes.
    pub kind: Kind,
    /// Where they are.
    pub place: Place,
    /// Names of its numbers, where the kernel prints these; in order of the numbers.
    pub names: Vec<(u64, String)>,
}

/// The fields of a format file but for those that all tracepoints have, in their order; None = it is no such file.
pub(crate) fn parse(text: &str) -> Option<Vec<TracepointField>> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("field"));
    let mut fields = lines.map(field).collect::<Option<Vec<TracepointField>>>()?;
    fields.retain(|field| !field.name.starts_with("common_") && field.size > 0);
    let printed = text.lines().find_map(|line| line.strip_prefix("print fmt:")).unwrap_or_default();
    for field in fields.iter_mut().filter(|field| field.kind == Kind::Number) {
        field.names = names(printed, &field.name);
    }
    Some(fields)
}

/// The names that `__print_symbolic(REC->name, { 2, "A" }, { 3, "B" })` gives to the numbers of a field: those that stand for one
/// number each, which is written as one.
fn names(printed: &str, name: &str) -> Vec<(u64, String)> {
    let Some((_, list)) = printed.split_once(&format!("__print_symbolic(REC->{name},")) else { return Vec::new() };
    let (mut rest, mut names) = (list, Vec::new());
    while let Some(entry) = rest.trim_start_matches([' ', ',']).strip_prefix('{') {
        let Some((number, more)) = entry.split_once(',') else { break };
        let Some((text, more)) = more.trim_start().strip_prefix('"').and_then(|more| more.split_once('"')) else {
            break;
        };
        let Some((_, behind)) = more.split_once('}').filter(|(between, _)| between.trim().is_empty()) else { break };
        if let Some(number) = literal(number.trim()) {
            names.push((number, text.to_owned()));
        }
        rest = behind;
    }
    names.sort_by_key(|(number, _)| *number);
    // of two names for one number the kernel prints the first
    names.dedup_by_key(|(number, _)| *number);
    names
}

/// A number as C writes it.
fn literal(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse::<i64>().ok().map(i64::cast_unsigned),
    }
}

/// `field:__data_loc char[] name; offset:8; size:4; signed:0;`, with tabs between.
fn field(line: &str) -> Option<TracepointField> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?.split_once(':')?.1.trim();
    let mut number = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix(':')?.parse::<usize>().ok();
    let (offset, size) = (number("offset")?, number("size")?);
    let signed = number("signed").unwrap_or(0) != 0;
    let (place, rest) = match declaration.split_once(' ') {
        Some(("__data_loc", rest)) => (Place::Located, rest),
        _ => (Place::Fixed, declaration),
    };
    // `char name[16]` and `char[] name`
    let (base, name) = rest.rsplit_once(' ')?;
    let bare = |word: &str| word.split('[').next().unwrap_or_default().trim().to_owned();
    let is_array = rest.contains('[');
    let (base, name) = (bare(base), bare(name));
    let kind = match (is_array, element(&base)) {
        (true, None) => Kind::Text,
        (true, Some(each)) => Kind::Array(each),
        (false, _) if base.contains('*') || name.starts_with('*') => Kind::Pointer,
        (false, _) => Kind::Number,
    };
    let name = name.trim_start_matches('*').to_owned();
    Some(TracepointField {
        name,
        declared: declaration.to_owned(),
        offset,
        size,
        signed,
        kind,
        place,
        names: Vec::new(),
    })
}

/// Bytes of an element of an array of this type; None: of char.
fn element(base: &str) -> Option<usize> {
    let base = base.trim_start_matches("const ");
    Some(match base {
        "char" => return None,
        "u8" | "__u8" | "s8" | "unsigned char" | "uint8_t" | "bool" => 1,
        "u16" | "__u16" | "s16" | "unsigned short" | "short" | "uint16_t" | "__be16" => 2,
        "u32" | "__u32" | "s32" | "int" | "unsigned int" | "unsigned" | "uint32_t" | "__be32" | "dev_t" => 4,
        _ if base.contains("64") || base.contains("long") || base.contains('*') => 8,
        // of a size that only the kernel knows: byte by byte
        _ => 1,
    })
}

/// A field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number, a negative one as its two's complement.
    Number(u64),
    /// Bytes of a text, or an array in hexadecimal.
    Text(Vec<u8>),
}

impl TracepointField {
    /// The type of its column.
    pub(crate) fn ty(&self) -> Type {
        match self.kind {
            Kind::Text | Kind::Array(_) => Type::Str,
            Kind::Pointer => Type::Hex,
            Kind::Number if !self.names.is_empty() => Type::Str,
            Kind::Number if self.size == 8 && !self.signed => Type::Wide,
            Kind::Number => Type::Int,
        }
    }

    /// The least and the greatest number that it may be.
    pub(crate) fn range(&self) -> (i128, i128) {
        let bits = 8 * self.size as u32;
        match self.signed {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        }
    }

    /// Value of the field in `record` as the kernel would print it: the name of a number that has one; None = the record ends before.
    pub(crate) fn told(&self, record: &[u8]) -> Option<Value> {
        let value = self.value(record)?;
        let Value::Number(number) = value else { return Some(value) };
        if self.names.is_empty() {
            return Some(value);
        }
        let named = self.names.binary_search_by_key(&number, |(number, _)| *number).ok();
        Some(Value::Text(match named {
            Some(at) => self.names[at].1.clone().into_bytes(),
            None if self.signed => number.cast_signed().to_string().into_bytes(),
            None => number.to_string().into_bytes(),
        }))
    }

    /// Value of the field in `record`; None = the record ends before.
    pub(crate) fn value(&self, record: &[u8]) -> Option<Value> {
        let bytes = match self.place {
            Place::Fixed => record.get(self.offset..)?.get(..self.size)?,
            Place::Located => {
                let word = number(record.get(self.offset..)?.get(..4)?, false)?;
                record.get((word & 0xffff) as usize..)?.get(..(word >> 16) as usize)?
            }
        };
        Some(match self.kind {
            Kind::Number | Kind::Pointer => Value::Number(number(bytes, self.signed)?),
            Kind::Text => Value::Text(bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()),
            Kind::Array(each) => Value::Text(hexadecimal(bytes, each).into_bytes()),
        })
    }
}

/// An array of numbers of `each` bytes: bytes as `7f000001`, others as `0x7,0xff`.
fn hexadecimal(bytes: &[u8], each: usize) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for number in bytes.chunks_exact(each).filter_map(|bytes| number(bytes, false)) {
        let written = match each {
            1 => write!(text, "{number:02x}"),
            _ if text.is_empty() => write!(text, "{number:#x}"),
            _ => write!(text, ",{number:#x}"),
        };
        written.expect("a string takes all");
    }
    text
}

/// The number in 1, 2, 4 or 8 bytes; None = it has another size.
fn number(bytes: &[u8], signed: bool) -> Option<u64> {
    let wide = match *bytes {
        [a] if signed => i64::from(a.cast_signed()).cast_unsigned(),
        [a] => u64::from(a),
        [a, b] if signed => i64::from(i16::from_ne_bytes([a, b])).cast_unsigned(),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] if signed => i64::from(i32::from_ne_bytes([a, b, c, d])).cast_unsigned(),
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        _ => u64::from_ne_bytes(*bytes.first_chunk::<8>().filter(|_| bytes.len() == 8)?),
    };
    Some(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: example\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:short code;\toffset:28;\tsize:2;\tsigned:1;\n\
        \tfield:const void * where;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:__u8 saddr[4];\toffset:40;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc u32[] sizes;\toffset:44;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long args[];\toffset:48;\tsize:0;\tsigned:0;\n\n\
        print fmt: \"%s field:\", REC->comm\n";

    #[test]
    fn fields_are_read_where_the_format_says() {
        let fields = parse(TEXT).unwrap();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["comm", "path", "code", "where", "saddr", "sizes"]);
        let mut record = vec![0u8; 48];
        record[8..12].copy_from_slice(b"dd\0x");
        record[24..28].copy_from_slice(&(48u32 | 5 << 16).to_ne_bytes());
        record[28..30].copy_from_slice(&(-3i16).to_ne_bytes());
        record[32..40].copy_from_slice(&0xffff_8000_0000_0000u64.to_ne_bytes());
        record[40..44].copy_from_slice(&[127, 0, 0, 1]);
        record[44..48].copy_from_slice(&(56u32 | 8 << 16).to_ne_bytes());
        record.extend(b"/tmp\0\0\0\0");
        record.extend([7u32, 255].map(u32::to_ne_bytes).concat());
        let values: Vec<Option<Value>> = fields.iter().map(|field| field.value(&record)).collect();
        let text = |text: &str| Some(Value::Text(text.into()));
        assert_eq!(values[..2], [text("dd"), text("/tmp")]);
        assert_eq!(values[2..4].to_vec(), [-3i64 as u64, 0xffff_8000_0000_0000].map(|n| Some(Value::Number(n))));
        assert_eq!(values[4..], [text("7f000001"), text("0x7,0xff")]);
        let types: Vec<Type> = fields.iter().map(TracepointField::ty).collect();
        assert_eq!(types, [Type::Str, Type::Str, Type::Int, Type::Hex, Type::Str, Type::Str]);
    }

    #[test]
    fn numbers_have_the_names_that_the_kernel_prints() {
        let text = "\tfield:enum skb_drop_reason reason;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:int state;\toffset:12;\tsize:4;\tsigned:1;\n\
            \tfield:int mode;\toffset:16;\tsize:4;\tsigned:1;\n\
            \tfield:int bits;\toffset:20;\tsize:4;\tsigned:1;\n\n\
            print fmt: \"reason: %s %s %s\", __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 0x3, \"NO_SOCKET\" }, \
            { 3, \"SECOND\" }), REC->state ? __print_symbolic(REC->state, { -1, \"GONE\" }, {1,\"UP\"}) : \"?\", \
            __print_symbolic(REC->mode, { HRTIMER_MODE_ABS, \"ABS\" }), __print_symbolic(REC->bits & 3, { 1, \"ONE\" })\n";
        let fields = parse(text).unwrap();
        assert_eq!(
            fields.iter().map(TracepointField::ty).collect::<Vec<_>>(),
            [Type::Str, Type::Str, Type::Int, Type::Int]
        );
        let told = |numbers: [i32; 4]| -> Vec<Value> {
            let record: Vec<u8> = [0, 0].into_iter().chain(numbers).flat_map(i32::to_ne_bytes).collect();
            fields.iter().map(|field| field.told(&record).unwrap()).collect()
        };
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(told([3, -1, 1, 1]), [text("NO_SOCKET"), text("GONE"), Value::Number(1), Value::Number(1)]);
        assert_eq!(told([200, 1, 0, 3])[..2], [text("200"), text("UP")]);
        assert_eq!(told([2, -7, 0, 3])[..2], [text("NOT_SPECIFIED"), text("-7")]);
    }

    #[test]
    fn what_is_cut_is_not_known() {
        let fields = parse(TEXT).unwrap();
        let mut record = vec![0u8; 48];
        record[24..28].copy_from_slice(&(48u32 | 5 << 16).to_ne_bytes());
        assert_eq!(fields[1].value(&record), None, "the text lies behind the end");
        assert_eq!(fields[3].value(&record[..36]), None);
        assert_eq!(fields[0].value(&record), Some(Value::Text(Vec::new())));
    }

    #[test]
    fn other_files_are_none() {
        assert_eq!(parse("field:broken"), None);
        assert_eq!(parse("field:int a; offset:x; size:4; signed:1;"), None);
        assert_eq!(parse(""), Some(Vec::new()));
    }
}

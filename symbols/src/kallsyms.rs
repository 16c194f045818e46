//! Names of functions in the kernel, its modules and BPF programs, from /proc/kallsyms.

use std::collections::HashMap;
use std::fs;

/// Code of a BPF program or a trampoline has no size in the list: an address this far behind a symbol is not in it.
const FARTHEST: u64 = 1 << 20;

/// A loaded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// Name of the module.
    pub name: String,
    /// Load address of the module; 0 when the kernel hides it.
    pub address: u64,
    /// Bytes, all parts together.
    pub size: u64,
}

/// Loaded modules, from /proc/modules; none when the kernel has no modules.
pub fn modules() -> Vec<KernelModule> {
    parse_modules(&fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Lines of name, size, reference count, users, state, address.
fn parse_modules(text: &str) -> Vec<KernelModule> {
    let line = |line: &str| {
        let mut fields = line.split(' ');
        let (name, size, address) = (fields.next()?, fields.next()?.parse().ok()?, fields.nth(3)?);
        let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
        Some(KernelModule { name: name.to_owned(), address, size })
    };
    text.lines().filter_map(line).collect()
}

/// Functions of the running kernel.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// For each symbol: index of its module and length of its name (u16 each, little-endian), name.
    arena: Vec<u8>,
    /// Address and place in the arena; sorted by address, one for each.
    functions: Vec<(u64, u32)>,
    /// Names of modules, `bpf` and the like; 0 is the kernel.
    modules: Vec<String>,
    text_base: Option<u64>,
    /// Address ranges of the kernel's own code; empty = not known.
    text: Vec<(u64, u64)>,
}

impl Kallsyms {
    /// Reads /proc/kallsyms.
    ///
    /// # Errors
    /// Why there are no names, in words.
    pub fn read() -> Result<Self, String> {
        let text = fs::read("/proc/kallsyms").map_err(|error| format!("cannot read /proc/kallsyms: {error}"))?;
        Self::parse(&text)
    }

    /// Parses the text of /proc/kallsyms: lines of address, type, name and, for modules, `[module]`.
    ///
    /// # Errors
    /// Why there are no names, in words.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut this = Self { modules: vec![String::new()], ..Self::default() };
        let mut ids: HashMap<Vec<u8>, u16> = HashMap::new();
        let mut marks: HashMap<&[u8], u64> = HashMap::new();
        let mut hidden = false;
        // Address, how good the name is, place in the arena.
        let mut found: Vec<(u64, (u8, u8, u8), u32)> = Vec::with_capacity(text.len() / 80);
        for line in text.split(|b| *b == b'\n') {
            let Some((address, kind, name, module)) = parse_line(line) else { continue };
            if address == 0 {
                hidden = true;
                continue;
            }
            if module.is_none() && MARKS.contains(&name) {
                marks.insert(name, address);
            }
            if !matches!(kind, b't' | b'T' | b'w' | b'W') {
                continue;
            }
            let id = match module {
                None => 0,
                Some(module) => match ids.get(module) {
                    Some(id) => *id,
                    None => {
                        let Ok(id) = u16::try_from(this.modules.len()) else { continue };
                        this.modules.push(String::from_utf8_lossy(module).into_owned());
                        ids.insert(module.to_vec(), id);
                        id
                    }
                },
            };
            let (Ok(at), Ok(len)) = (u32::try_from(this.arena.len()), u16::try_from(name.len())) else { continue };
            this.arena.extend_from_slice(&id.to_le_bytes());
            this.arena.extend_from_slice(&len.to_le_bytes());
            this.arena.extend_from_slice(name);
            found.push((address, goodness(kind, name), at));
        }
        if found.is_empty() {
            return Err(if hidden {
                "the kernel hides its addresses: CAP_SYSLOG, and kernel.kptr_restrict below 2, are needed".into()
            } else {
                "/proc/kallsyms has no functions".into()
            });
        }
        found.sort_unstable();
        found.dedup_by_key(|(address, ..)| *address);
        this.functions = found.into_iter().map(|(address, _, at)| (address, at)).collect();
        let mark = |name: &str| marks.get(name.as_bytes()).copied();
        this.text_base = mark("_text");
        let ranges = [(mark("_stext"), mark("_etext")), (mark("_sinittext"), mark("_einittext"))];
        if ranges[0].0.is_some() && ranges[0].1.is_some() {
            this.text = ranges.into_iter().filter_map(|(start, end)| Some((start?, end?))).collect();
        }
        Ok(this)
    }

    /// The address of `_text`, which kernel frames count from; None when it is not in the list.
    pub fn text_base(&self) -> Option<u64> {
        self.text_base
    }

    /// Functions known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// The function at an address: its name, the distance from its start, and its module (`bpf` for BPF programs); None
    /// as module = the kernel.
    ///
    /// Sizes are not in the list: a function reaches to the next one. The caller checks with [`modules`] that an
    /// address is inside a module.
    pub fn lookup(&self, address: u64) -> Option<(&str, u64, Option<&str>)> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, at) = *self.functions[..after].last()?;
        let entry = self.arena.get(at as usize..)?;
        let (header, names) = entry.split_first_chunk::<4>()?;
        let id = u16::from_le_bytes([header[0], header[1]]);
        let name = names.get(..usize::from(u16::from_le_bytes([header[2], header[3]])))?;
        let offset = address - start;
        let within = |range: &(u64, u64)| range.0 <= address && address < range.1;
        let reaches = if id > 0 { offset < FARTHEST } else { self.text.is_empty() || self.text.iter().any(within) };
        if !reaches {
            return None;
        }
        let module = self.modules.get(usize::from(id)).filter(|_| id > 0).map(String::as_str);
        Some((std::str::from_utf8(name).ok()?, offset, module))
    }
}

/// Symbols at the bounds of the kernel's code.
const MARKS: [&[u8]; 5] = [b"_text", b"_stext", b"_etext", b"_sinittext", b"_einittext"];

/// Among names of one address the least wins: not a mark, global, few underscores before it.
fn goodness(kind: u8, name: &[u8]) -> (u8, u8, u8) {
    let rank = match kind {
        b'T' => 0,
        b'W' | b'w' => 1,
        _ => 2,
    };
    let underscores = name.iter().take_while(|b| **b == b'_').count();
    (u8::from(MARKS.contains(&name)), rank, underscores.min(255) as u8)
}

type Line<'a> = (u64, u8, &'a [u8], Option<&'a [u8]>);

fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let space = line.iter().position(|b| *b == b' ')?;
    let mut address = 0u64;
    if space > 16 {
        return None;
    }
    for digit in &line[..space] {
        address = address << 4 | u64::from(char::from(*digit).to_digit(16)?);
    }
    let [kind, b' ', rest @ ..] = &line[space + 1..] else { return None };
    let (name, module) = match rest.iter().position(|b| *b == b'\t') {
        Some(tab) => (&rest[..tab], rest[tab + 1..].strip_prefix(b"[")?.strip_suffix(b"]")),
        None => (rest, None),
    };
    (!name.is_empty()).then_some((address, *kind, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000100 t local_alias
ffffffff81000100 T __global
ffffffff81000100 T global
ffffffff81000180 d data
ffffffff81000200 W weak
ffffffff81001000 T _etext
ffffffff82000000 D _sdata
ffffffffc0000000 t mod_init\t[ext4]
ffffffffc0000040 t mod_work\t[ext4]
ffffffffc0100000 t bpf_prog_0123456789abcdef_trace\t[bpf]
garbage
";

    #[test]
    fn functions_modules_and_what_lies_outside() {
        let k = Kallsyms::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(k.text_base(), Some(0xffff_ffff_8100_0000));
        for (address, expected) in [
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0004, Some(("startup", 4, None))),
            (0xffff_ffff_8100_0100, Some(("global", 0, None))),
            // data does not end a function
            (0xffff_ffff_8100_0190, Some(("global", 0x90, None))),
            (0xffff_ffff_8100_0fff, Some(("weak", 0xdff, None))),
            (0xffff_ffff_8100_1000, None),
            (0xffff_ffff_8200_0000, None),
            (0xffff_ffff_c000_003f, Some(("mod_init", 0x3f, Some("ext4")))),
            (0xffff_ffff_c010_0010, Some(("bpf_prog_0123456789abcdef_trace", 0x10, Some("bpf")))),
            (0xffff_ffff_d000_0000, None),
        ] {
            assert_eq!(k.lookup(address), expected, "{address:x}");
        }
    }

    #[test]
    fn hidden_addresses_are_said() {
        let why = Kallsyms::parse(b"0000000000000000 T _text\n0000000000000000 t f\n").unwrap_err();
        assert!(why.contains("CAP_SYSLOG"), "{why}");
        assert!(Kallsyms::parse(b"").is_err());
    }

    #[test]
    fn module_lines() {
        let text =
            "ext4 1134592 1 - Live 0xffffffffc0a00000\nnf_nat 61440 2 nft,xt, Live 0xffffffffc0900000 (OE)\nbad\n";
        assert_eq!(
            parse_modules(text),
            [
                KernelModule { name: "ext4".into(), address: 0xffff_ffff_c0a0_0000, size: 1_134_592 },
                KernelModule { name: "nf_nat".into(), address: 0xffff_ffff_c090_0000, size: 61_440 },
            ]
        );
    }

    /// Every function of this kernel by its own address, against a plain scan; where the kernel tells.
    #[test]
    fn this_kernel() {
        // programs that others load and unload are in it too: the same before and behind
        let stable = std::iter::repeat_with(|| {
            let text = || fs::read_to_string("/proc/kallsyms").unwrap();
            (text(), Kallsyms::read(), text())
        })
        .take(100)
        .find(|(before, _, after)| before == after);
        let (text, kallsyms, _) = stable.expect("a while without a change");
        let Ok(kallsyms) = kallsyms else { return };
        let mut names: HashMap<u64, Vec<&str>> = HashMap::new();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            names.entry(u64::from_str_radix(address, 16).unwrap()).or_default().push(name);
        }
        assert_eq!(kallsyms.len(), names.len());
        let etext = kallsyms.text.first().map(|range| range.1);
        let mut seen = 0;
        for (address, names) in names.into_iter().filter(|(address, _)| Some(*address) != etext) {
            if let Some((name, offset, _)) = kallsyms.lookup(address) {
                assert!(names.contains(&name) && offset == 0, "{address:x} {name}");
                seen += 1;
            }
        }
        assert!(seen * 10 > kallsyms.len() * 9, "{seen} of {}", kallsyms.len());
    }
}

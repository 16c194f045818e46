//! Names as programmers wrote them.
//!
//! Only names with the beginning of a mangled one are changed: a C function may be called `h`, which is also how C++
//! mangles `unsigned char`.

use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name, mangled or not, in bytes. A longer one is cut and ends in `...`.
pub(crate) const LONGEST: usize = 4096;

/// The demangled form of a C++ (`_Z`) or Rust (`_R`, `_ZN…17h…E`) name, C++ with parameters, Rust without the hash; any other name as it is,
/// without a symbol version (`@@GLIBC_2.34`). At most 4,096 bytes.
pub fn demangle(name: &str) -> String {
    let name = without_version(name);
    // Demangling work grows with the name's length; names this long are of no use to a reader.
    if name.len() > 4 * LONGEST {
        return cut(name);
    }
    let demangled = if name.starts_with("_R") || is_rust_legacy(name) {
        rustc_demangle::try_demangle(name)
            .ok()
            .and_then(|symbol| bounded(|out| fmt::write(out, format_args!("{symbol:#}"))))
    } else if name.starts_with("_Z") {
        cpp(name)
    } else {
        None
    };
    match demangled {
        Some(demangled) if !demangled.is_empty() => cut(&demangled),
        _ => cut(name),
    }
}

fn cpp(name: &str) -> Option<String> {
    let symbol = Symbol::new(name).ok()?;
    // cpp_demangle 0.5 takes the first parameter of a constructor that is a template for the type it returns. Without parameters it is right.
    let constructor_template = ["C1I", "C2I", "C3I", "C4I", "C5I"].iter().any(|it| name.contains(it));
    let options = DemangleOptions::default();
    let options = if constructor_template { options.no_params() } else { options };
    bounded(|out| symbol.structured_demangle(out, &options))
}

/// `_ZN`, then identifiers of which the last is `h` and 16 hexadecimal digits, then `E`, then maybe a suffix of LLVM's.
fn is_rust_legacy(name: &str) -> bool {
    let Some((before, hash)) = name.rsplit_once("17h") else { return false };
    let Some((hash, rest)) = hash.split_at_checked(16) else { return false };
    before.starts_with("_ZN")
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
        && rest.strip_prefix('E').is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
}

/// Newer linkers write `name@@VERSION` into .symtab.
fn without_version(name: &str) -> &str {
    match name.find('@') {
        Some(at) if at > 0 && name[at + 1..].starts_with(|c: char| c == '@' || c.is_ascii_uppercase()) => &name[..at],
        _ => name,
    }
}

fn cut(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let end = (0..=LONGEST - 3).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &name[..end])
}

/// A bounded string: substitutions can turn a short mangled name into gigabytes.
struct BoundedString(String);

impl fmt::Write for BoundedString {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.0.len() + s.len() > 4 * LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(s);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut BoundedString) -> fmt::Result) -> Option<String> {
    let mut out = BoundedString(String::new());
    write(&mut out).ok()?;
    Some(out.0)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_as_perf_prints_them() {
        for (mangled, expected) in [
            // C: one-letter names are C++ types, `_R` and `_Z` alone are nothing
            ("h", "h"),
            ("i", "i"),
            ("_Reset", "_Reset"),
            ("_Zebra", "_Zebra"),
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("old@GLIBC_2.2", "old"),
            ("foo.part.0", "foo.part.0"),
            // C++, as c++filt says
            ("_ZN2ns5Class6methodEi", "ns::Class::method(int)"),
            ("_ZNK2ns3BoxIiE3getEv", "ns::Box<int>::get() const"),
            ("_Z3maxIiET_S0_S0_", "int max<int>(int, int)"),
            ("_ZN2ns1AC4IiEEmT_", "ns::A::A<int>"),
            ("_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()"),
            ("_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"),
            // Rust: legacy and v0
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN3foo3bar17h0123456789abcdefE.llvm.123", "foo::bar"),
            (
                "_ZN63_$LT$core..iter..Map$LT$I$C$F$GT$$u20$as$u20$core..Iterator$GT$4fold17h1b3ff323a6600523E",
                "<core::iter::Map<I,F> as core::Iterator>::fold",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            // the same shape without a hash is C++
            ("_ZN3foo3barEv", "foo::bar()"),
        ] {
            assert_eq!(demangle(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn a_name_that_explodes_stays_mangled() {
        // Each S<n>_ repeats everything before it twice.
        let mut name = String::from("_Z1fI1aE");
        for _ in 0..60 {
            name.push_str("1bIS_S_E");
        }
        let mut pairs = String::from("_Z1f1aIiiE");
        for id in
            ["S_", "S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "S8_", "S9_", "SA_", "SB_", "SC_", "SD_"]
        {
            pairs.push_str(&format!("1pI{id}{id}E"));
        }
        for name in [name, pairs] {
            assert!(demangle(&name).len() <= super::LONGEST);
        }
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        let name = "é".repeat(5000);
        let cut = demangle(&name);
        assert!(cut.len() <= super::LONGEST && cut.ends_with("é..."));
    }
}

//! A type's name has one meaning: `grep` for it finds one declaration.
//!
//! The test counts the names of structs, enums, unions, traits and type aliases that are declared in more than one place of all crates
//! together. Their number may only fall: it has to be exactly [`MOST`], which is lowered by whoever renames one. Tests, generated code
//! and planted programs do not count.

use std::collections::BTreeMap;

use crate::sources::{is_test, source_files};
use syn::visit::Visit;

/// Names declared in more than one place.
const MOST: usize = 57;

/// Crates with names of their own; all of `schemas` is generated.
const CRATES: [&str; 12] =
    ["abi", "analyzer", "answers", "benches", "bpf", "cli", "events", "format", "recorder", "sql", "symbols", "unwind"];

/// Folders whose files are generated, or programs that are planted and measured.
const NOT_OURS: [&str; 2] = ["reports/export/proto/", "why/cases/"];

/// The names declared in one file.
#[derive(Default)]
struct Names(Vec<String>);

macro_rules! collect {
    ($($visit:ident: $item:ident),+) => {
        $(fn $visit(&mut self, item: &'ast syn::$item) {
            if !is_test(&item.attrs) {
                self.0.push(item.ident.to_string());
            }
        })+
    };
}

impl<'ast> Visit<'ast> for Names {
    collect! {
        visit_item_struct: ItemStruct, visit_item_enum: ItemEnum, visit_item_union: ItemUnion,
        visit_item_trait: ItemTrait, visit_item_type: ItemType
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

/// Names that are declared in more than one of `files`, or twice in one, with the files; those with the fewest first.
fn ambiguous(files: &[(String, String)]) -> Vec<(String, Vec<String>)> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in files {
        let mut names = Names::default();
        names.visit_file(&syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}")));
        for name in names.0 {
            places.entry(name).or_default().push(file.clone());
        }
    }
    let mut found: Vec<_> = places.into_iter().filter(|(_, places)| places.len() > 1).collect();
    found.sort_by_key(|(_, places)| places.len());
    found
}

#[test]
fn fewer_names_have_more_than_one_meaning() {
    let of_crate = |name: &&str| {
        let name = (*name).to_owned();
        source_files(&name).into_iter().map(move |(file, text)| (format!("{name}/src/{}", file.display()), text))
    };
    let is_ours = |(file, _): &(String, String)| !NOT_OURS.iter().any(|folder| file.contains(folder));
    let files: Vec<_> = CRATES.iter().flat_map(of_crate).filter(is_ours).collect();
    let found = ambiguous(&files);
    let list = || found.iter().map(|(name, files)| format!("{name}: {}\n", files.join(" "))).collect::<String>();
    assert!(found.len() <= MOST, "{} names are declared in more than one place, {MOST} were:\n{}", found.len(), list());
    assert_eq!(found.len(), MOST, "fewer names than before: lower MOST to {}", found.len());
}

/// The check can fail: a name in two files, and one twice in a file.
#[test]
fn a_second_declaration_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let calm = [
        file("a", "pub struct A; enum B { A } impl Iterator for A { type Item = B; }"),
        file("b", "trait C { type Item; } type D = u32; #[cfg(test)] mod tests { struct A; } #[cfg(test)] struct B;"),
    ];
    assert_eq!(ambiguous(&calm), Vec::new());
    let [first, second] = calm;
    let found =
        ambiguous(&[first, second, file("c", "fn f() { struct B; } mod m { union A { a: u8 } mod n { trait A {} } }")]);
    let names: Vec<_> = found.iter().map(|(name, files)| (name.as_str(), files.join(" "))).collect();
    assert_eq!(names, [("B", "a c".to_owned()), ("A", "a c c".to_owned())]);
}

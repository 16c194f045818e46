//! The first sentence of a public item's documentation names its noun or says what is done: rustdoc's lists show that sentence alone.
//!
//! A sentence fails that begins with a word which stands for something outside of it ("Its", "Those", "The same", "None"), with a
//! preposition ("Of the calling thread.", "By name."), with "See" ("See the module."), or that is a single word ("When."). So does a
//! sentence of a verb or a noun pass: "Bytes of a tape.", "Reads a tape.", "What a thread waits for.". Public is all that is not private
//! to its module: `pub(crate)` too, and variants of such enums and functions of such traits, but not options of command lines, whose
//! documentation is the text of `--help`. The number of sentences that fail may only
//! fall: it has to be exactly [`MOST`], which is lowered by whoever mends one.

use crate::sources::{is_test, source_files};
use syn::visit::Visit;

/// First sentences that fail, of each crate; all of `schemas` is generated.
const MOST: [(&str, usize); 12] = [
    ("abi", 0),
    ("cli", 0),
    ("format", 0),
    ("unwind", 0),
    ("symbols", 0),
    ("bpf", 0),
    ("recorder", 1),
    ("events", 0),
    ("answers", 0),
    ("analyzer", 1),
    ("sql", 1),
    ("benches", 61),
];

/// Folders whose files are generated, or programs that are planted and measured.
const NOT_OURS: [&str; 2] = ["reports/export/proto/", "why/cases/"];

/// Words that stand for something outside of their sentence, and "See".
const STAND_FOR: &str = "it its they their them those these none same such so likewise see he his themselves itself";

/// Words that need one before them.
const PREPOSITIONS: &str =
    "of by from for to in on at with without as after before behind beside under until since between per";

/// The first sentence of a doc comment, None if there is none.
fn first_sentence(attributes: &[syn::Attribute]) -> Option<String> {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let syn::Meta::NameValue(syn::MetaNameValue {
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }),
            ..
        }) = &attribute.meta
        else {
            continue;
        };
        let line = line.value();
        if line.trim().is_empty() {
            break;
        }
        text = [text.trim(), line.trim()].join(" ");
    }
    let text = text.trim();
    let end = [". ", "; "].iter().filter_map(|stop| text.find(stop)).min().unwrap_or(text.len());
    (!text.is_empty()).then(|| text[..end].trim_end_matches('.').to_owned())
}

/// Whether a sentence says nothing by itself.
fn says_nothing(sentence: &str) -> bool {
    let mut words =
        sentence.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    let first = words.next().unwrap_or_default();
    let second = words.next();
    let is_one_of = |list: &str, word: &str| list.split(' ').any(|one| one == word);
    second.is_none()
        || is_one_of(STAND_FOR, &first)
        || is_one_of(PREPOSITIONS, &first)
        || first == "the" && second.is_some_and(|second| second == "same")
}

/// Collects the first sentences of one file that say nothing.
#[derive(Default)]
struct Sentences(Vec<String>);

impl Sentences {
    fn check(&mut self, attributes: &[syn::Attribute]) {
        let is_option =
            |attribute: &syn::Attribute| ["arg", "command", "value"].iter().any(|of| attribute.path().is_ident(of));
        if attributes.iter().any(is_option) {
            return;
        }
        self.0.extend(first_sentence(attributes).filter(|sentence| says_nothing(sentence)));
    }

    fn check_public(&mut self, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        if !matches!(visibility, syn::Visibility::Inherited) && !is_test(attributes) {
            self.check(attributes);
        }
    }
}

macro_rules! check_public {
    ($($visit:ident: $item:ident),+) => {
        $(fn $visit(&mut self, item: &'ast syn::$item) {
            self.check_public(&item.vis, &item.attrs);
            syn::visit::$visit(self, item);
        })+
    };
}

impl<'ast> Visit<'ast> for Sentences {
    check_public! {
        visit_item_const: ItemConst, visit_item_fn: ItemFn, visit_item_static: ItemStatic, visit_item_struct: ItemStruct,
        visit_item_type: ItemType, visit_item_union: ItemUnion, visit_impl_item_const: ImplItemConst, visit_impl_item_fn: ImplItemFn,
        visit_field: Field
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.check_public(&item.vis, &item.attrs);
        if !matches!(item.vis, syn::Visibility::Inherited) {
            item.variants.iter().for_each(|variant| self.check(&variant.attrs));
        }
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.check_public(&item.vis, &item.attrs);
        for inside in &item.items {
            match inside {
                syn::TraitItem::Fn(function) if !matches!(item.vis, syn::Visibility::Inherited) => {
                    self.check(&function.attrs)
                }
                _ => {}
            }
        }
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

/// The first sentences of a file that say nothing.
fn found_in(text: &str) -> Vec<String> {
    let mut sentences = Sentences::default();
    sentences.visit_file(&syn::parse_file(text).unwrap());
    sentences.0
}

#[test]
fn first_sentences_name_their_noun() {
    let mut wrong = Vec::new();
    for (name, most) in MOST {
        let mut found = Vec::new();
        for (file, text) in source_files(name) {
            let file = file.display().to_string();
            if !NOT_OURS.iter().any(|folder| file.contains(folder)) {
                found.extend(found_in(&text).into_iter().map(|sentence| format!("{name}/src/{file}: {sentence}")));
            }
        }
        if found.len() > most {
            wrong.push(format!("{name}: {} say nothing, {most} did:\n{}", found.len(), found.join("\n")));
        } else if found.len() < most {
            wrong.push(format!("{name}: fewer say nothing than before: lower {most} in MOST to {}", found.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The check can fail: sentences that say nothing, and such that do.
#[test]
fn sentences_that_say_nothing_are_found() {
    let nothing = [
        "Its name.",
        "The same of a static probe.",
        "Of names the last counts.",
        "When.",
        "See the module.",
        "By name; sorted.",
    ];
    let something =
        ["Bytes of a tape.", "Reads a tape. It is closed.", "What a thread waits for.", "The names of it.", "A tape"];
    for (sentences, says) in [(nothing.as_slice(), false), (something.as_slice(), true)] {
        for sentence in sentences {
            let text = format!("pub struct A {{\n/// {sentence}\npub b: u8 }}");
            assert_eq!(found_in(&text).is_empty(), says, "{sentence}");
        }
    }
    let private = "/// Its.\nstruct A { /// Its.\n b: u8 } #[cfg(test)] mod tests { /// Its.\npub struct C; }";
    assert_eq!(found_in(private), Vec::<String>::new());
    let public = "/// Its.\npub enum A { /// Its.\nB }\npub trait C { /// Its.\nfn d(); }\nimpl E { /// Its.\npub(crate) fn f() {} }";
    assert_eq!(found_in(public).len(), 4);
}

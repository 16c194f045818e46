//! Imports point one way: in each crate only from a storey to those below it, and no files form a circle.
//!
//! It reads `use` lines and paths of the sources. Tests inside files are left out; a `mod.rs` (or `x.rs`) and the files below it count
//! as one where files are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::LazyLock;

use crate::sources::{is_test, source_files};
use syn::visit::Visit;

/// Each crate's folders and files, the lowest storey first.
const STOREYS: [(&str, &str); 14] = [
    (
        "abi",
        "abi condition errno numbers uapi flags iouring names near rest si_code signal signo tcp private value desc descriptors struct_text \
         plain select",
    ),
    ("cli", "control generate held options shell size stop terminal version"),
    ("schemas", "trace_capnp"),
    (
        "format",
        "cgroups class footer other sockets strings table tables families model kinds order tree header error column \
         source payload scan message info segment encode places reader writer exercise redact verify repair rows cut \
         merge",
    ),
    (
        "unwind",
        "bytes exercise limits numbers registers eh_frame stack machine cfi elf rules segments evaluate module unwinder",
    ),
    (
        "symbols",
        "deadline demangle executed function go kallsyms notes perf_map regular socket elf ident static_probes debug_dirs \
         wire child process carrier facts resolver rules exercise",
    ),
    ("bpf", "object wire"),
    (
        "recorder",
        "own machine kernel rings tape foreign mappings probes descriptors tracepoints options calls triggers stacks \
         flight escalation config ledger load looks tasks encode pipeline run commands",
    ),
    (
        "events",
        "values calls kin stream empty_path group in_cgroup picked filter loss families fired load question \
         call_files moved scan",
    ),
    ("answers", "values render derive catalogue lines keys calls"),
    ("analyzer", "import asked reports tui cli frames"),
    ("sql", "bounds columns exact headings out plan args check tables export pairs texts engine query"),
    ("e2e", "blocks call elf lab rows sockets disk more probes stacks strace damage facts"),
    (
        "benches",
        "floor measure process stats synth table tools mount pair section systems outcome page scale workloads inner why \
         args machine rounds stacks peers verdict digest reading",
    ),
];

/// A module's path from the crate's root.
type Module = Vec<String>;

/// What each module of a crate imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// What the modules of each crate import.
static IMPORTS: LazyLock<BTreeMap<&str, Imports>> =
    LazyLock::new(|| STOREYS.iter().map(|(name, _)| (*name, imports(&sources(name)))).collect());

/// Collects the paths of one file that begin with `crate`, `self` or `super`.
struct Paths<'a> {
    module: &'a [String],
    found: Vec<Module>,
}

impl Paths<'_> {
    fn add(&mut self, segments: &[String]) {
        let mut path = match segments.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.to_vec(),
            _ => return,
        };
        let mut rest = segments;
        while let [first, tail @ ..] = rest {
            match first.as_str() {
                "super" => drop(path.pop()),
                "self" | "crate" => {}
                _ => break,
            }
            rest = tail;
        }
        path.extend(rest.iter().cloned());
        self.found.push(path);
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Name(syn::UseName { ident }) | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                before.push(ident.to_string());
                self.add(before);
                before.pop();
            }
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            self.add(&segments);
        }
        syn::visit::visit_path(self, path);
    }
}

/// Every module of a crate whose sources are in `src`, with what it imports of the same crate; (name, text) of files instead for tests.
fn imports(sources: &[(Module, String)]) -> Imports {
    let known: BTreeSet<&Module> = sources.iter().map(|(module, _)| module).collect();
    let mut imports = Imports::new();
    for (module, text) in sources {
        let mut paths = Paths { module, found: Vec::new() };
        paths.visit_file(&syn::parse_file(text).unwrap_or_else(|error| panic!("{module:?}: {error}")));
        let targets = imports.entry(module.clone()).or_default();
        for mut path in paths.found {
            while !path.is_empty() && !known.contains(&path) {
                path.pop();
            }
            if path != *module {
                targets.insert(path);
            }
        }
    }
    imports
}

/// The modules of a crate and their text; tests in files of their own are left out.
fn sources(name: &str) -> Vec<(Module, String)> {
    let module = |file: &Path| {
        let mut module: Module = file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            module.pop();
        }
        module
    };
    source_files(name).into_iter().map(|(file, text)| (module(&file), text)).collect()
}

/// The same with modules down to `depth` only: 1 is the top level.
fn down_to(depth: usize, imports: &Imports) -> Imports {
    let cut = |module: &Module| module[..module.len().min(depth)].to_vec();
    let mut modules = Imports::new();
    for (from, targets) in imports.iter().filter(|(from, _)| !from.is_empty()) {
        let from = cut(from);
        let others = targets.iter().filter(|to| !to.is_empty()).map(cut).filter(|to| *to != from).collect::<Vec<_>>();
        modules.entry(from).or_default().extend(others);
    }
    modules
}

/// The same without imports between a module and those inside it.
fn between_files(imports: &Imports) -> Imports {
    let related = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let others = |(from, targets): (&Module, &BTreeSet<Module>)| {
        (from.clone(), targets.iter().filter(|to| !related(from, to)).cloned().collect())
    };
    imports.iter().map(others).collect()
}

/// Everything that `from` imports, and what that imports, and so on.
fn reached(imports: &Imports, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for to in imports.get(module).into_iter().flatten() {
            if reached.insert(to.clone()) {
                next.push(to);
            }
        }
    }
    reached
}

/// Sets of modules each of which reaches all others of its set.
fn circles(imports: &Imports) -> BTreeSet<Vec<String>> {
    let all: BTreeMap<&Module, BTreeSet<Module>> = imports.keys().map(|m| (m, reached(imports, m))).collect();
    let circle = |(from, reached): (&&Module, &BTreeSet<Module>)| {
        let mutual = reached.iter().filter(|to| all.get(to).is_some_and(|back| back.contains(*from)));
        let names: Vec<String> = mutual.map(|module| module.join("::")).collect();
        (names.len() > 1).then_some(names)
    };
    all.iter().filter_map(circle).collect()
}

/// Imports from a storey to one above it, modules that are on none, and storeys that no module is on.
fn up(imports: &Imports, storeys: &[&str]) -> Vec<String> {
    let storey = |module: &Module| storeys.iter().position(|storey| *storey == module[0]);
    let modules = down_to(1, imports);
    let is_there = |storey: &str| modules.keys().any(|module| module[0] == storey);
    let mut found: Vec<String> =
        storeys.iter().filter(|storey| !is_there(storey)).map(|storey| format!("{storey} is no module")).collect();
    for (from, targets) in modules {
        let Some(of) = storey(&from) else {
            found.push(format!("{} is on no storey", from[0]));
            continue;
        };
        let higher = targets.iter().filter(|to| storey(to).is_some_and(|storey| storey > of));
        found.extend(higher.map(|to| format!("{} -> {}", from[0], to[0])));
    }
    found
}

/// What `check` finds wrong in each crate.
fn in_each_crate<T: Debug>(check: impl Fn(&Imports, &[&str]) -> Vec<T>) -> Vec<String> {
    let wrong = |(name, storeys): &(&str, &str)| {
        let storeys: Vec<&str> = storeys.split_whitespace().collect();
        check(&IMPORTS[name], &storeys).into_iter().map(|found| format!("{name}: {found:?}")).collect::<Vec<_>>()
    };
    STOREYS.iter().flat_map(wrong).collect()
}

#[test]
fn each_crate_imports_only_what_is_below() {
    assert_eq!(in_each_crate(up), Vec::<String>::new());
}

#[test]
fn no_files_form_a_circle() {
    let found = in_each_crate(|imports, _| circles(&between_files(imports)).into_iter().collect());
    assert_eq!(found, Vec::<String>::new(), "circles of files");
    let found = in_each_crate(|imports, _| circles(&between_files(&down_to(2, imports))).into_iter().collect());
    assert_eq!(found, Vec::<String>::new(), "circles of modules inside a storey");
}

#[test]
fn the_recorder_s_front_page_lists_its_storeys() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/src/lib.rs")).unwrap();
    let listed: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("//! | [`")?.split_once('`').map(|(name, _)| name)).collect();
    let storeys = STOREYS.iter().find(|(name, _)| *name == "recorder").unwrap().1;
    assert_eq!(listed.join(" "), storeys);
}

/// These checks can fail: a circle, and an arrow up, put in on purpose.
#[test]
fn circles_and_arrows_up_are_found() {
    let source = |name: &str, text: &str| (name.split("::").map(str::to_owned).collect::<Module>(), text.to_owned());
    let calm = vec![
        source("low", "pub struct A; #[cfg(test)] mod tests { use crate::high::B; }"),
        source("high", "use crate::low::A; pub mod part;"),
        source("high::part", "use super::B; fn f() { crate::low::g() }"),
    ];
    let storeys = ["low", "high"];
    let check = |sources: &[(Module, String)]| {
        let imports = imports(sources);
        (circles(&down_to(1, &imports)).len(), circles(&between_files(&imports)).len(), up(&imports, &storeys))
    };
    assert_eq!(check(&calm), (0, 0, Vec::new()));

    let mut circle = calm.clone();
    circle[0].1 = "use std::fmt::{self, Write}; use super::{high::{part::P as Q}, low};".into();
    assert_eq!(check(&circle), (1, 1, vec!["low -> high".to_owned()]));

    let mut path = calm.clone();
    path[0].1 = "fn f() -> u32 { crate::high::f() }".into();
    assert_eq!(check(&path).2, ["low -> high"]);

    let mut homeless = calm;
    homeless.push(source("new", ""));
    assert_eq!(check(&homeless).2, ["new is on no storey"]);

    let nobody = [source("high", "")];
    assert_eq!(check(&nobody).2, ["low is no module"]);
}

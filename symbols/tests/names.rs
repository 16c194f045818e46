//! Our answers against addr2line's, for every instruction of some functions.

mod common;

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{addr2line, build_c, have, instructions, look_up, offsets, resolver, run, run_with};

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    common::be_the_child();
}

/// Paths of a source file can be written in many ways: `/a/./b`, `/a/c/../b`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What the demangler cannot read stays mangled (how much that may be, the caller says); of constructor templates it has no parameters.
fn as_ours(expected: &[common::Place], found: &[common::Place]) -> Vec<common::Place> {
    let as_ours = |(i, (name, file, line)): (usize, &common::Place)| match found.get(i) {
        Some((ours, ..))
            if ours.starts_with("_Z") || (ours.ends_with('>') && name.starts_with(&format!("{ours}("))) =>
        {
            (ours.clone(), file.clone(), *line)
        }
        _ => (name.clone(), file.clone(), *line),
    };
    expected.iter().enumerate().map(as_ours).collect()
}

fn compare(path: &Path, functions: &[&str]) -> Vec<Vec<common::Place>> {
    let addresses = instructions(path, functions);
    let expected = addr2line(path, &addresses);
    let found = look_up(&mut resolver(Vec::new()), path, &offsets(path, &addresses)).unwrap();
    let cleaned = |places: &[common::Place]| -> Vec<common::Place> {
        places.iter().map(|(name, file, line)| (name.clone(), clean(file), *line)).collect()
    };
    let second = LazyCell::new(|| common::llvm_addr2line(path, &addresses));
    for (i, ((address, expected), found)) in addresses.iter().zip(&expected).zip(&found).enumerate() {
        let expected = cleaned(&as_ours(expected, found));
        if cleaned(found) == expected {
            continue;
        }
        // binutils 2.40 knows nothing of what is inlined in some cold parts by clang.
        assert!(have("llvm-addr2line"), "{address:#x} in {}: {found:?}, but addr2line: {expected:?}", path.display());
        assert_eq!(cleaned(found), cleaned(&as_ours(&second[i], found)), "{address:#x} in {}", path.display());
    }
    found
}

#[test]
fn c_with_inlined_functions() {
    let dir = tempfile::tempdir().unwrap();
    for more in [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-no-pie"], &["-gz=zlib"]] {
        let path = build_c(dir.path(), more);
        let found = compare(&path, &["<outer>", "<local>", "<h>", "<main>"]);
        let names = common::names(&found);
        assert!(names.contains(&vec!["innermost", "middle", "outer"]), "{more:?}");
        assert!(names.contains(&vec!["h"]), "{more:?}");
    }
}

#[test]
fn lines_are_where_execution_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let addresses = instructions(&path, &["<outer>"]);
    let found = look_up(&mut resolver(Vec::new()), &path, &offsets(&path, &addresses)).unwrap();
    // Line 4 multiplies, in `innermost`, called from line 8 or 9 of `middle`, called from line 12 of `outer`.
    let lines: Vec<Vec<u32>> = found.iter().map(|places| places.iter().map(|place| place.2).collect()).collect();
    assert!(lines.contains(&vec![4, 8, 12]) && lines.contains(&vec![4, 9, 12]), "{lines:?}");
    // and line 14 calls it from `outer` itself
    assert!(lines.contains(&vec![4, 14]), "{lines:?}");
}

#[test]
fn cpp_templates_and_namespaces() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cpp.cc"), common::CPP).unwrap();
    let judge = have("llvm-addr2line");
    if !judge {
        eprintln!("SKIPPED: clang++'s code, which binutils' addr2line knows less of: there is no llvm-addr2line");
    }
    let compilers: Vec<&str> =
        ["g++", "clang++"].into_iter().filter(|compiler| have(compiler) && (judge || *compiler == "g++")).collect();
    if compilers.is_empty() {
        eprintln!("SKIPPED: there is no C++ compiler");
    }
    for compiler in compilers {
        run(compiler, &["-O2", "-g", "cpp.cc", "-o", "cpp"], dir.path());
        let path = dir.path().join("cpp");
        let found = compare(&path, &["ns::Box", "ns::Class", "ns::largest", "hidden", "<main>"]);
        let all: Vec<&str> = common::names(&found).concat();
        for name in [
            "ns::Box<long>::get(long) const",
            "ns::Class::method(int)",
            "ns::Class::inner(int)",
            "int ns::largest<int>(int, int)",
        ] {
            assert!(all.contains(&name), "{compiler}: {name}");
        }
        let distinct: BTreeSet<&str> = all.into_iter().collect();
        let mangled = distinct.iter().filter(|name| name.starts_with("_Z")).count();
        assert!(mangled * 20 <= distinct.len(), "{compiler}: {mangled} of {}", distinct.len());
    }
}

#[test]
fn rust_generics_and_closures() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("r.rs"), common::RUST).unwrap();
    for mangling in ["legacy", "v0"] {
        let mangling = format!("-Csymbol-mangling-version={mangling}");
        let arguments = ["-O", "-g", "--edition=2021", "-Zunstable-options", &mangling, "r.rs", "-o", "r"];
        run_with("rustc", &arguments, dir.path(), &[("RUSTC_BOOTSTRAP", "1")]);
        let path = dir.path().join("r");
        let found = compare(&path, &["r::sum", "Thing", "r::main"]);
        let all: Vec<&str> = common::names(&found).concat();
        assert!(all.contains(&"r::sum"), "{mangling} {all:?}");
        assert!(all.contains(&"r::deep::helper"), "{mangling}");
    }
}

const GO: &str = r#"package main

import "os"

//go:noinline
func hot(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += twice(i)
	}
	return sum
}

func twice(n int) int { return n*2 + n%7 }

type T struct{ n int }

//go:noinline
func (t *T) method() int { return hot(t.n) }

func main() { os.Exit((&T{3}).method()) }
"#;

/// A program without symbols has the names and lines of the one that has them.
#[test]
fn stripped_go() {
    if !have("go") {
        eprintln!("SKIPPED: there is no go");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("main.go"), GO).unwrap();
    let cache = [("GOCACHE", dir.path().join("cache")), ("HOME", dir.path().to_owned())];
    let cache = cache.each_ref().map(|(name, path)| (*name, path.to_str().unwrap()));
    let build = |more: &[&str]| {
        let mut arguments = vec!["build"];
        arguments.extend(more);
        arguments.push("main.go");
        run_with("go", &arguments, dir.path(), &cache);
    };
    build(&["-o", "whole"]);
    build(&["-o", "bare", "-ldflags", "-s -w"]);
    let [whole, bare] = ["whole", "bare"].map(|name| dir.path().join(name));
    let addresses = instructions(&whole, &["main.", "runtime.mallocgc>"]);
    let all = |path| look_up(&mut resolver(Vec::new()), path, &offsets(path, &addresses)).unwrap();
    // with both layouts alike, every place is the same
    assert_eq!(common::loads(&whole)[0], common::loads(&bare)[0]);
    let (expected, found) = (all(&whole), all(&bare));
    let mut lines = 0;
    for ((expected, found), address) in expected.iter().zip(&found).zip(&addresses) {
        let (outer, [place]) = (expected.last().unwrap(), &found[..]) else { panic!("{address:#x}: {found:?}") };
        assert_eq!(place.0, outer.0, "{address:#x}");
        if expected.len() == 1 && place.2 > 0 {
            assert_eq!((&place.1, place.2), (&outer.1, outer.2), "{address:#x}");
            lines += 1;
        } else {
            // whose line it is in what was inlined is not known
            assert_eq!((expected.len() > 1, place.2), (true, 0), "{address:#x}: {expected:?}");
        }
    }
    let names: BTreeSet<&str> = common::names(&found).concat().into_iter().collect();
    for name in ["main.hot", "main.(*T).method", "main.main", "runtime.mallocgc"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    assert!(lines > 100, "{lines}");
}

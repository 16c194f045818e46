//! Debug information kept apart from the program, and programs that are not where they were.

mod common;

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use common::{addr2line, build_c, build_id, have, instructions, look_up, offsets, places, resolver, run};
use systape_symbols::{DebugDirs, File};

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    common::be_the_child();
}

struct Program {
    dir: tempfile::TempDir,
    path: PathBuf,
    offsets: Vec<u64>,
    expected: Vec<Vec<common::Place>>,
}

impl Program {
    fn new(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = build_c(dir.path(), more);
        let addresses = instructions(&path, &["<outer>", "<local>", "<h>"]);
        let (offsets, expected) = (offsets(&path, &addresses), addr2line(&path, &addresses));
        Self { dir, path, offsets, expected }
    }

    fn in_dir(&self, program: &str, arguments: &[&str]) {
        run(program, arguments, self.dir.path());
    }

    fn at(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// `c.debug` has the debug information, `c` has nothing.
    fn split(&self) {
        self.in_dir("objcopy", &["--only-keep-debug", "c", "c.debug"]);
        self.in_dir("strip", &["-s", "c"]);
    }

    fn found(&self, debug_dirs: Vec<PathBuf>) -> Vec<Vec<common::Place>> {
        look_up(&mut resolver(debug_dirs), &self.path, &self.offsets).unwrap()
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn by_build_id() {
    let program = Program::new(&[]);
    program.split();
    assert!(program.found(Vec::new()).iter().all(Vec::is_empty), "a stripped program has no names");
    let id = hex(&build_id(&program.path));
    let to = program.at(&format!("dbg/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    fs::rename(program.at("c.debug"), &to).unwrap();
    assert_eq!(program.found(vec![program.at("dbg")]), program.expected);

    // Another program's file in its place is not taken.
    let other = Program::new(&["-DOTHER", "-O1"]);
    fs::copy(&other.path, &to).unwrap();
    assert_ne!(build_id(&other.path), build_id(&program.path));
    assert!(program.found(vec![program.at("dbg")]).iter().all(Vec::is_empty));
}

#[test]
fn by_debug_link() {
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let program = Program::new(&[id]);
        program.split();
        program.in_dir("objcopy", &["--add-gnu-debuglink=c.debug", "c"]);
        assert_eq!(program.found(Vec::new()), program.expected, "{id}: beside the program");
        let below: PathBuf = program.dir.path().components().skip(1).collect();
        let mut from = program.at("c.debug");
        for (to, dirs) in [
            (program.at(".debug/c.debug"), vec![]),
            (program.at(&format!("dbg/{}/c.debug", below.display())), vec![program.at("dbg")]),
        ] {
            fs::rename(&from, &to).unwrap();
            assert_eq!(program.found(dirs), program.expected, "{id}: {}", to.display());
            from = to;
        }
        // Right name, other contents.
        let other = Program::new(&["-O1", "-DOTHER", id]);
        fs::copy(&other.path, program.at("c.debug")).unwrap();
        assert!(program.found(Vec::new()).iter().all(Vec::is_empty), "{id}");
    }
}

#[test]
fn a_debug_link_is_a_name_not_a_path() {
    let program = Program::new(&["-Wl,--build-id=none"]);
    program.split();
    program.in_dir("objcopy", &["--add-gnu-debuglink=c.debug", "c"]);
    fs::rename(program.at("c.debug"), program.at("up/x")).unwrap();
    // The same length, and the checksum is right.
    let mut bytes = fs::read(&program.path).unwrap();
    let at = bytes.windows(8).rposition(|w| w == b"c.debug\0").unwrap();
    bytes[at..at + 8].copy_from_slice(b"./up/x\0\0");
    fs::write(&program.path, bytes).unwrap();
    assert!(program.found(Vec::new()).iter().all(Vec::is_empty));
}

#[test]
fn compressed_symbols_in_the_program() {
    let program = Program::new(&[]);
    // As distributions make it: a file with nothing but .symtab, compressed, in a section.
    program
        .in_dir("objcopy", &["-S", "--remove-section=.comment", "--keep-symbol=outer", "--keep-symbol=h", "c", "mini"]);
    program.in_dir("xz", &["-k", "mini"]);
    program.in_dir("strip", &["-s", "c"]);
    program.in_dir("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "c"]);
    let found = program.found(Vec::new());
    for (found, expected) in found.iter().zip(&program.expected) {
        let outermost = &expected.last().unwrap().0;
        let expected = if outermost == "local" { vec![] } else { vec![(outermost.clone(), String::new(), 0)] };
        assert_eq!(*found, expected);
    }
}

#[test]
fn a_deleted_file_by_its_descriptor() {
    let program = Program::new(&[]);
    let id = build_id(&program.path);
    let file = fs::File::open(&program.path).unwrap();
    fs::remove_file(&program.path).unwrap();
    let mut resolver = resolver(Vec::new());
    let request = File { fd: file.as_fd(), path: &program.path, build_id: &id };
    let found = resolver.look_up(&request, &program.offsets).unwrap();
    assert_eq!(found.iter().map(|f| places(f)).collect::<Vec<_>>(), program.expected);

    let request = File { fd: file.as_fd(), path: &program.path, build_id: &[1, 2, 3] };
    let why = resolver.look_up(&request, &program.offsets).unwrap_err();
    assert!(why.contains(&hex(&id)) && why.contains("010203"), "{why}");
}

#[test]
fn the_debug_file_alone() {
    let tools: [(&str, &[&str]); 3] = [
        ("objcopy", &["--only-keep-debug", "c", "c.debug"]),
        ("llvm-objcopy", &["--only-keep-debug", "c", "c.debug"]),
        ("eu-strip", &["-o", "stripped", "-f", "c.debug", "c"]),
    ];
    // rustc brings the linker of LLVM along.
    let sysroot = String::from_utf8(run("rustc", &["--print", "sysroot"], Path::new("/")).stdout).unwrap();
    let lld = PathBuf::from(sysroot.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    let with_lld = format!("-B{}", lld.display());
    let mut linkers: Vec<&[&str]> = vec![&[], &["-no-pie"], &["-Wl,-z,noseparate-code"], &["-static"]];
    let lld_arguments = [with_lld.as_str(), "-fuse-ld=lld"];
    if lld.join("ld.lld").exists() {
        linkers.push(&lld_arguments);
    } else {
        eprintln!("SKIPPED: lld");
    }
    if have("ld.gold") {
        linkers.push(&["-fuse-ld=gold"]);
    }
    for linker in linkers {
        for (tool, arguments) in &tools {
            // LLVM's cannot do a static glibc program ("Link field value 35 in section .rela.plt is not a symbol table").
            if !have(tool) || (*tool == "llvm-objcopy" && linker == ["-static"]) {
                eprintln!("SKIPPED: {tool} {linker:?}");
                continue;
            }
            let program = Program::new(linker);
            program.in_dir(tool, arguments);
            let id = build_id(&program.path);
            fs::rename(program.at("c.debug"), program.at("dbg/below/c.debug")).unwrap();
            fs::remove_file(&program.path).unwrap();
            let path = DebugDirs::new(vec![program.at("dbg")]).find(&id).unwrap();
            let found = look_up(&mut resolver(Vec::new()), &path, &program.offsets);
            assert_eq!(found.as_ref(), Ok(&program.expected), "{linker:?} {tool}");
            let why = look_up(&mut resolver(Vec::new()), &path, &[0]).unwrap_err();
            assert!(why.contains("of 1 offsets of the program 0 are code"), "{why}");
        }
    }
}

#[test]
fn debug_dirs_take_only_what_has_the_build_id() {
    let program = Program::new(&[]);
    program.in_dir("objcopy", &["--only-keep-debug", "c", "c.debug"]);
    let id = build_id(&program.path);
    let name = hex(&id);
    let dbg = program.at("dbg/x").parent().unwrap().to_owned();
    let find = |id: &[u8]| DebugDirs::new(vec![dbg.clone()]).find(id);
    assert_eq!(find(&id), None);
    // any file, one level down; the one with DWARF wins
    fs::copy(&program.path, program.at("dbg/one/program")).unwrap();
    run("strip", &["-s", program.at("dbg/one/program").to_str().unwrap()], Path::new("/"));
    assert_eq!(find(&id), Some(program.at("dbg/one/program")));
    fs::copy(program.at("c.debug"), program.at("dbg/one/zz.debug")).unwrap();
    assert_eq!(find(&id), Some(program.at("dbg/one/zz.debug")));
    // a wrong file under the right name does not count, a right one comes first
    for inside in ["usr/lib/debug/", ""] {
        let to = program.at(&format!("dbg/{inside}.build-id/{}/{}.debug", &name[..2], &name[2..]));
        fs::write(&to, "no ELF").unwrap();
        assert_ne!(find(&id), Some(to.clone()));
        fs::copy(program.at("c.debug"), &to).unwrap();
        assert_eq!(find(&id), Some(to));
    }
    assert_eq!((find(&[]), find(&[1]), find(&[1, 2])), (None, None, None));
    // a pipe does not hold it up
    run("mkfifo", &["dbg/pipe"], program.dir.path());
    assert_eq!(find(&[1, 2, 3]), None);
}

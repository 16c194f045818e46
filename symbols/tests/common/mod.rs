//! Programs to look names up in, and what binutils say about them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use systape_format::model::Function;
use systape_symbols::{File, Resolver, ResolverLimits};

pub const C: &str = r#"
#include <stdio.h>
static inline __attribute__((always_inline)) int innermost(int x) {
    volatile int y = x * 3;
    return y + 1;
}
static inline __attribute__((always_inline)) int middle(int x) {
    int a = innermost(x);
    return a + innermost(a + 5);
}
__attribute__((noinline)) int outer(int x) {
    int r = middle(x);
    if (r > 10)
        r += innermost(r);
    return r;
}
__attribute__((noinline)) int h(int x) { volatile int y = x; return y * y; }
static __attribute__((noinline)) int local(int x) { volatile int y = h(x); return y - 1; }
int main(int argc, char **argv) {
    printf("%d\n", outer(argc) + local(argc));
    return 0;
}
"#;

pub const CPP: &str = r#"
#include <cstdio>
#include <vector>
#include <string>
namespace ns {
template <typename T> struct Box {
    T value;
    __attribute__((noinline)) T get(T add) const { volatile T v = value; return v + add; }
};
class Class {
public:
    __attribute__((noinline)) int method(int x) { volatile int y = x; return y * 2 + inner(x); }
    static __attribute__((always_inline)) int inner(int x) { volatile int y = x; return y + 7; }
    __attribute__((noinline)) Class &operator+=(const std::vector<int> &v) { for (int i : v) sum += inner(i); return *this; }
    int sum = 0;
};
template <typename T> __attribute__((noinline)) T largest(T a, T b) { volatile T c = a; return c > b ? c : b; }
}
namespace { __attribute__((noinline)) int hidden(const char *s) { volatile int n = 0; while (*s++) n = n + 1; return n; } }
int main(int argc, char **argv) {
    ns::Box<long> box{argc};
    ns::Class c;
    c += std::vector<int>(argc, 3);
    std::string s(argc, 'x');
    auto lambda = [&](int k) __attribute__((noinline)) { volatile int y = k; return y + (int)s.size(); };
    printf("%ld %d %d %d %d %d\n", box.get(3), c.method(argc), ns::largest<int>(argc, 4), hidden(argv[0]), lambda(2), c.sum);
}
"#;

pub const RUST: &str = r#"
use std::fmt::Display;
mod deep {
    pub struct Thing<T>(pub T);
    impl<T: super::Display> Thing<T> {
        #[inline(never)]
        pub fn show(&self) -> String { format!("<{}>", helper(self.0.to_string())) }
    }
    #[inline(always)]
    fn helper(s: String) -> String { std::hint::black_box(s) + "!" }
}
#[inline(never)]
fn sum(of: &[u32]) -> u32 { of.iter().map(|x| std::hint::black_box(x) * 2).sum() }
fn main() {
    let many: Vec<u32> = std::env::args().map(|a| a.len() as u32).collect();
    println!("{} {}", deep::Thing(sum(&many)).show(), deep::Thing("s").show());
}
"#;

/// Called by the child that [`resolver`] starts: this very program, running one ignored test.
pub fn be_the_child() -> ! {
    let _ = systape_symbols::run_child();
    std::process::exit(0);
}

pub fn command() -> Vec<OsString> {
    let mut command = vec![std::env::current_exe().unwrap().into_os_string()];
    command.extend(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"].map(OsString::from));
    command
}

pub fn resolver(debug_dirs: Vec<PathBuf>) -> Resolver {
    Resolver::with_limits(command(), debug_dirs, ResolverLimits::default())
}

pub fn run(program: &str, arguments: &[&str], dir: &Path) -> Output {
    run_with(program, arguments, dir, &[])
}

pub fn run_with(program: &str, arguments: &[&str], dir: &Path, environment: &[(&str, &str)]) -> Output {
    let output = Command::new(program).args(arguments).current_dir(dir).envs(environment.iter().copied()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

pub fn have(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The C program in `dir`, with a build id and debug information.
pub fn build_c(dir: &Path, more: &[&str]) -> PathBuf {
    fs::write(dir.join("c.c"), C).unwrap();
    let mut arguments = vec!["-O2", "-g", "-Wl,--build-id", "c.c", "-o", "c"];
    arguments.extend(more);
    run("gcc", &arguments, dir);
    dir.join("c")
}

pub fn build_id(path: &Path) -> Vec<u8> {
    let output = run("readelf", &["-nW", path.to_str().unwrap()], Path::new("/"));
    let text = String::from_utf8(output.stdout).unwrap();
    let id = text.lines().find_map(|line| line.trim().split_once("Build ID: ")).unwrap().1;
    (0..id.len() / 2).map(|i| u8::from_str_radix(&id[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

/// PT_LOAD segments as readelf lists them: offset, address, size in the file.
pub fn loads(path: &Path) -> Vec<(u64, u64, u64)> {
    let text = String::from_utf8(run("readelf", &["-lW", path.to_str().unwrap()], Path::new("/")).stdout).unwrap();
    let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).unwrap();
    let fields = text.lines().filter_map(|line| line.trim().strip_prefix("LOAD"));
    fields
        .map(|line| line.split_whitespace().map(hex_or_zero(hex)).collect::<Vec<_>>())
        .map(|f| (f[0], f[1], f[3]))
        .collect()
}

fn hex_or_zero(hex: impl Fn(&str) -> u64) -> impl Fn(&str) -> u64 {
    move |field| if field.starts_with("0x") { hex(field) } else { 0 }
}

pub fn to_offset(loads: &[(u64, u64, u64)], address: u64) -> Option<u64> {
    let load = loads.iter().find(|(_, start, size)| (*start..start + size).contains(&address))?;
    Some(address - load.1 + load.0)
}

/// Addresses of all instructions in the functions whose demangled names have one of these in them.
pub fn instructions(path: &Path, of: &[&str]) -> Vec<u64> {
    let text = String::from_utf8_lossy(
        &run("objdump", &["-dC", "--no-show-raw-insn", path.to_str().unwrap()], Path::new("/")).stdout,
    )
    .into_owned();
    // Between functions there is padding, which addr2line gives to the function before.
    let table =
        String::from_utf8_lossy(&run("nm", &["-S", path.to_str().unwrap()], Path::new("/")).stdout).into_owned();
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let symbol = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let start = hex(fields[0])?;
        (fields.len() > 3).then(|| hex(fields[1]).map(|size| start..start + size)).flatten()
    };
    let ranges: Vec<_> = table.lines().filter_map(symbol).collect();
    let mut wanted = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.ends_with(">:") {
            wanted = of.iter().any(|name| line.contains(name));
        } else if let Some((address, _)) = line.split_once(":\t")
            && wanted
        {
            let address = u64::from_str_radix(address.trim(), 16).unwrap();
            found.extend(ranges.iter().any(|range| range.contains(&address)).then_some(address));
        }
    }
    assert!(!found.is_empty(), "no instructions of {of:?} in {}", path.display());
    found
}

/// A function's name, source file and line.
pub type Place = (String, String, u32);

/// What `addr2line -f -i -C` says, innermost first.
pub fn addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<Place>> {
    ask("addr2line", path, addresses)
}

/// What LLVM's says.
pub fn llvm_addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<Place>> {
    ask("llvm-addr2line", path, addresses)
}

fn ask(program: &str, path: &Path, addresses: &[u64]) -> Vec<Vec<Place>> {
    let dir = tempfile::tempdir().unwrap();
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    fs::write(dir.path().join("list"), list).unwrap();
    let output = Command::new(program)
        .args(["-a", "-f", "-i", "-C", "-e"])
        .arg(path)
        .stdin(fs::File::open(dir.path().join("list")).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all: Vec<Vec<Place>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (discriminator").next().unwrap();
        let (file, number) = place.rsplit_once(':').unwrap();
        let file = if file == "??" { "" } else { file };
        all.last_mut().unwrap().push((line.to_owned(), file.to_owned(), number.parse().unwrap_or(0)));
    }
    assert_eq!(all.len(), addresses.len());
    all
}

pub fn places(functions: &[Function]) -> Vec<Place> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    functions.iter().map(|f| (text(&f.name), text(&f.file), f.line)).collect()
}

pub fn look_up(resolver: &mut Resolver, path: &Path, offsets: &[u64]) -> Result<Vec<Vec<Place>>, String> {
    let file = fs::File::open(path).unwrap();
    let found = resolver.look_up(&File { fd: file.as_fd(), path, build_id: &[] }, offsets)?;
    Ok(found.iter().map(|functions| places(functions)).collect())
}

/// The offsets of addresses.
pub fn offsets(path: &Path, addresses: &[u64]) -> Vec<u64> {
    let loads = loads(path);
    addresses.iter().map(|address| to_offset(&loads, *address).unwrap()).collect()
}

/// Names only.
pub fn names(places: &[Vec<Place>]) -> Vec<Vec<&str>> {
    places.iter().map(|places| places.iter().map(|place| place.0.as_str()).collect()).collect()
}

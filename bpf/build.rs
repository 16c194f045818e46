//! Compiles `src/c/systape.bpf.c` with clang and generates the libbpf skeleton, and the lists that both sides share as Rust.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

/// zstd's level for the programs: the best, because they are compressed once.
const LEVEL: i32 = 22;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    // for arm64 the exchange and other atomic instructions that order memory (order.bpf.h), which its kernels know since 5.18; 5.10
    // has x86 alone
    let machine: &[&str] = match target.as_str() {
        "x86_64" => &["-D__TARGET_ARCH_x86"],
        "aarch64" => &["-D__TARGET_ARCH_arm64", "-mcpu=v3"],
        other => panic!("systape-bpf: there are no programs for {other}, only for x86_64 and aarch64"),
    };
    let object = out.join("systape.bpf.o");
    SkeletonBuilder::new()
        .source("src/c/systape.bpf.c")
        .obj(&object)
        .reference_obj(true)
        .clang_args([machine, &["-Wall", "-Werror", "-Isrc/c"]].concat())
        .build_and_generate(out.join("systape.skel.rs"))
        .unwrap_or_else(|e| {
            eprintln!(
                "systape-bpf: clang (14 or newer), libelf-dev and zlib1g-dev are needed to build the BPF programs"
            );
            panic!("{e:#}")
        });
    store(&object, &out.join("systape.skel.rs"));
    expand(Path::new("src/c/rust.h"), &out.join("lists.rs"));
    println!("cargo:rerun-if-changed=src/c");
}

/// Compresses the `object`, and has the `skeleton` ask for its bytes instead of having them.
fn store(object: &Path, skeleton: &Path) {
    let bytes = fs::read(object).expect("clang wrote the object");
    let stored = zstd::bulk::compress(&bytes, LEVEL).expect("bytes can be compressed");
    fs::write(object.with_extension("o.zst"), stored).expect("OUT_DIR can be written to");
    fs::write(object.with_extension("o.len"), bytes.len().to_string()).expect("OUT_DIR can be written to");
    let code = fs::read_to_string(skeleton).expect("the skeleton was generated");
    let (has, asks) = ("SkeletonConfigBuilder::new(&DATA)", "SkeletonConfigBuilder::new(crate::object::bytes())");
    let begin = code.find("#[unsafe(link_section").or_else(|| code.find("static DATA:"));
    let end = code.find("static DATA:").and_then(|at| Some(at + code[at..].find(';')? + 1));
    let end = end.and_then(|end| Some(end + code[end..].find(';')? + 1));
    let (Some(begin), Some(end), true) = (begin, end, code.contains(has)) else {
        panic!("libbpf-cargo generates another skeleton than this build script knows")
    };
    let code = format!("{}{}", &code[..begin], &code[end..]).replace(has, asks);
    fs::write(skeleton, code).expect("OUT_DIR can be written to");
}

/// Writes what the preprocessor makes of `from`: no macros but its own, and no lines about where something comes from.
fn expand(from: &Path, to: &Path) {
    let clang = Command::new("clang").args(["-E", "-P", "-undef", "-Werror", "-x", "c"]).arg(from).output();
    let expanded = clang.expect("clang runs: it has just compiled the programs");
    assert!(expanded.status.success(), "{}", String::from_utf8_lossy(&expanded.stderr));
    fs::write(to, expanded.stdout).expect("OUT_DIR can be written to");
}

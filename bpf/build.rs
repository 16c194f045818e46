//! Compiles `src/c/systape.bpf.c` with clang and generates the libbpf skeleton, and the lists that both sides share as Rust.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        _ => "x86",
    };
    SkeletonBuilder::new()
        .source("src/c/systape.bpf.c")
        .clang_args([format!("-D__TARGET_ARCH_{arch}"), "-Wall".into(), "-Werror".into(), "-Isrc/c".into()])
        .build_and_generate(out.join("systape.skel.rs"))
        .unwrap_or_else(|e| {
            eprintln!(
                "systape-bpf: clang (14 or newer), libelf-dev and zlib1g-dev are needed to build the BPF programs"
            );
            panic!("{e:#}")
        });
    expand(Path::new("src/c/rust.h"), &out.join("lists.rs"));
    println!("cargo:rerun-if-changed=src/c");
}

/// Writes what the preprocessor makes of `from`: no macros but its own, and no lines about where something comes from.
fn expand(from: &Path, to: &Path) {
    let clang = Command::new("clang").args(["-E", "-P", "-undef", "-Werror", "-x", "c"]).arg(from).output();
    let expanded = clang.expect("clang runs: it has just compiled the programs");
    assert!(expanded.status.success(), "{}", String::from_utf8_lossy(&expanded.stderr));
    fs::write(to, expanded.stdout).expect("OUT_DIR can be written to");
}

//! Compiles `src/c/systape.bpf.c` with clang and generates the libbpf skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("systape.skel.rs");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        _ => "x86",
    };
    SkeletonBuilder::new()
        .source("src/c/systape.bpf.c")
        .clang_args([format!("-D__TARGET_ARCH_{arch}"), "-Wall".into(), "-Werror".into(), "-Isrc/c".into()])
        .build_and_generate(&out)
        .unwrap_or_else(|e| {
            eprintln!(
                "systape-bpf: clang (14 or newer), libelf-dev and zlib1g-dev are needed to build the BPF programs"
            );
            panic!("{e:#}")
        });
    println!("cargo:rerun-if-changed=src/c");
}

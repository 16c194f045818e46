//! Compiles the two empty programs of the floor.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("floor.bpf.o");
    SkeletonBuilder::new().source("src/c/floor.bpf.c").obj(&out).build().unwrap_or_else(|e| {
        eprintln!("systape-benches: clang (14 or newer), libelf-dev and zlib1g-dev are needed");
        panic!("{e:#}")
    });
    println!("cargo:rerun-if-changed=src/c");
}

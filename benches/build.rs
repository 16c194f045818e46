//! Compiles the two programs of each floor.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in ["floor", "clock"] {
        let (source, object) = (format!("src/c/{name}.bpf.c"), out.join(format!("{name}.bpf.o")));
        SkeletonBuilder::new().source(source).obj(object).build().unwrap_or_else(|e| {
            eprintln!("systape-benches: clang (14 or newer), libelf-dev and zlib1g-dev are needed");
            panic!("{e:#}")
        });
    }
    println!("cargo:rerun-if-changed=src/c");
}

//! Regenerates `analyzer/src/reports/export/proto/*.rs` from `analyzer/proto/*.proto`:
//!
//!     cargo run -p systape-analyzer --example gen-protos
//!
//! Needs no `protoc`. The output is committed, so that building the crate needs nothing but cargo; the test
//! `generated_code_is_current` fails when it was forgotten.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = std::env::args_os().nth(1).map_or_else(|| here.join("src/reports/export/proto"), Into::into);
    let proto = here.join("proto");
    let files = protox::compile([proto.join("perfetto.proto"), proto.join("profile.proto")], [&proto])?;
    prost_build::Config::new().out_dir(&out).compile_fds(files)?;
    println!("wrote {}", out.display());
    Ok(())
}

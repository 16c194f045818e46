//! Regenerates `schemas/src/trace_capnp.rs` from `schemas/trace.capnp`:
//!
//!     cargo run -p systape-schema --example gen-schema
//!
//! Needs the C++ `capnp` compiler (Debian: `apt install capnproto`). The output is committed, so that building the
//! crate needs nothing but cargo; the test `generated_code_is_current` fails when it was forgotten.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    capnpc::CompilerCommand::new()
        .src_prefix(here)
        .file(here.join("trace.capnp"))
        .output_path(here.join("src"))
        .run()?;
    println!("wrote {}", here.join("src/trace_capnp.rs").display());
    Ok(())
}

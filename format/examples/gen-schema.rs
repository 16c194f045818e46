//! Regenerates `format/src/trace_capnp.rs` from `schemas/trace.capnp`:
//!
//!     cargo run -p systape-format --example gen-schema
//!
//! Run it right after changing the schema, before code uses what is new: the example is built with the crate.
//!
//! Needs the C++ `capnp` compiler (Debian: `apt install capnproto`). The output is committed, so that building this
//! crate needs nothing but cargo; the test `generated_code_is_current` fails when it was forgotten.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = crate_dir.join("../schemas");
    capnpc::CompilerCommand::new()
        .src_prefix(&schemas)
        .file(schemas.join("trace.capnp"))
        .output_path(crate_dir.join("src"))
        .run()?;
    println!("wrote {}", crate_dir.join("src/trace_capnp.rs").display());
    Ok(())
}

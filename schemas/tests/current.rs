//! The generated code belongs to the schema.

use std::path::Path;

#[test]
fn generated_code_is_current() {
    let found = std::process::Command::new("capnp").arg("--version").output();
    if !found.is_ok_and(|out| out.status.success()) {
        eprintln!("SKIPPED generated_code_is_current: no `capnp` compiler (apt install capnproto)");
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    capnpc::CompilerCommand::new()
        .src_prefix(here)
        .file(here.join("trace.capnp"))
        .output_path(dir.path())
        .run()
        .unwrap();
    // The head names the compiler's version, which may differ.
    let body = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|l| !l.starts_with("// capnp binary version")).collect::<Vec<_>>().join("\n")
    };
    assert!(
        body(&here.join("src/trace_capnp.rs")) == body(&dir.path().join("trace_capnp.rs")),
        "schemas/trace.capnp changed: run `cargo run -p systape-schema --example gen-schema`"
    );
}

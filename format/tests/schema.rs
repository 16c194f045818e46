//! The schema and the code generated from it.

use std::path::Path;

const CLASSES: [&str; 8] = ["path", "string", "comm", "address", "host", "user", "command", "none"];

fn schemas() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas")
}

/// Redaction works by class: a field without one would slip through.
#[test]
fn every_text_and_bytes_field_has_a_class() {
    let schema = std::fs::read_to_string(schemas().join("trace.capnp")).unwrap();
    let mut fields = 0;
    for line in schema.lines() {
        let code = line.split('#').next().unwrap_or_default();
        for field in code.split_inclusive(';') {
            let Some((_, ty)) = field.split_once(" :") else { continue };
            let ty = ty.trim_end_matches(';').trim();
            let is_text = ["Text", "Data", "List(Text)", "List(Data)"].iter().any(|t| ty.split(' ').next() == Some(t));
            if !is_text || code.starts_with("annotation") {
                continue;
            }
            fields += 1;
            let class = ty.split_once("$class(\"").and_then(|(_, rest)| rest.split_once("\")"));
            let class = class.map_or("", |(class, _)| class);
            assert!(CLASSES.contains(&class), "field without a class, or with an unknown one: {}", line.trim());
        }
    }
    assert!(fields >= 38, "only {fields} fields found: does this test still read the schema?");
}

#[test]
fn generated_code_is_current() {
    let found = std::process::Command::new("capnp").arg("--version").output();
    if !found.is_ok_and(|out| out.status.success()) {
        eprintln!("SKIPPED generated_code_is_current: no `capnp` compiler (apt install capnproto)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    capnpc::CompilerCommand::new()
        .src_prefix(schemas())
        .file(schemas().join("trace.capnp"))
        .output_path(dir.path())
        .run()
        .unwrap();
    // The head names the compiler's version, which may differ.
    let body = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|l| !l.starts_with("// capnp binary version")).collect::<Vec<_>>().join("\n")
    };
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trace_capnp.rs");
    assert!(
        body(&committed) == body(&dir.path().join("trace_capnp.rs")),
        "schemas/trace.capnp changed: run `cargo run -p systape-format --example gen-schema`"
    );
}

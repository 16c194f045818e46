//! The generated code of exported formats belongs to their `.proto` files.

use std::path::Path;

#[test]
fn generated_code_is_current() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (proto, dir) = (here.join("proto"), tempfile::tempdir().unwrap());
    let files = protox::compile([proto.join("perfetto.proto"), proto.join("profile.proto")], [&proto]).unwrap();
    prost_build::Config::new().out_dir(dir.path()).compile_fds(files).unwrap();
    for name in ["perfetto.rs", "profile.rs"] {
        let read = |dir: &Path| std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(
            read(&here.join("src/reports/export/proto")) == read(dir.path()),
            "analyzer/proto changed: run `cargo run -p systape-analyzer --example gen-protos`"
        );
    }
}

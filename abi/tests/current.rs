//! The lists of calls are those of the crate `syscalls`.

#[expect(dead_code, unreachable_pub, reason = "its main; its text is for this test")]
#[path = "../examples/gen-numbers.rs"]
mod generator;

#[test]
fn generated_code_is_current() {
    assert!(
        generator::text() == include_str!("../src/numbers.rs"),
        "`syscalls` or its corrections changed: run `cargo run -p systape-abi --example gen-numbers`"
    );
}

//! What publishes a record of a CPU's buffer: on arm64 an exchange, which the other side's load of the number is ordered with; on x86 a
//! plain store, as its CPUs keep the order of stores. No emulated machine shows a store that is seen too early, so the objects are looked at.
//!
//! The model of both sides is in the recorder (`recorder/src/rings/cpu_buffers.rs`).

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// Sections of the programs that fill these buffers.
const FILL: [&str; 3] = ["tp_btf/sys_exit", "tp_btf/sched_switch", "tp_btf/sched_waking"];
/// BPF_STX | BPF_DW | BPF_ATOMIC, and BPF_XCHG as its operation (include/uapi/linux/bpf.h).
const ATOMIC_64: u8 = 0xdb;
const EXCHANGE: u32 = 0xe1;
/// BPF_STX | BPF_W | BPF_ATOMIC; BPF_OR | BPF_FETCH: what an addition of nothing is compiled to.
const ATOMIC_32: u8 = 0xc3;
const OR_FETCH: u32 = 0x41;

/// The programs for a machine, compiled with these arguments, as build.rs does.
fn compile(to: &Path, arguments: &[&str]) -> Vec<u8> {
    let headers = to.join("bpf");
    fs::create_dir_all(&headers).unwrap();
    for (name, text) in libbpf_rs::libbpf_sys::API_HEADERS {
        fs::write(headers.join(name), text).unwrap();
    }
    let object = to.join("programs.o");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/c");
    let mut clang = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()));
    clang.args(["-g", "-O2", "-target", "bpf", "-Wall", "-Werror", "-c"]).args(arguments);
    clang.arg("-I").arg(&source).arg("-I").arg(to).arg("-o").arg(&object).arg(source.join("systape.bpf.c"));
    let made = clang.output().expect("clang runs: it compiled the programs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::read(object).unwrap()
}

/// How many instructions of a section have this code and this operation.
fn count(object: &[u8], section: &str, code: u8, operation: u32) -> usize {
    let file: ElfFile64<'_, object::Endianness> = ElfFile64::parse(object).unwrap();
    let bytes = file.section_by_name(section).unwrap_or_else(|| panic!("no section {section}")).data().unwrap();
    let (instructions, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty() && instructions.len() > 10, "{section}");
    let is_it = |one: &&[u8; 8]| one[0] == code && u32::from_le_bytes([one[4], one[5], one[6], one[7]]) == operation;
    instructions.iter().filter(is_it).count()
}

#[test]
fn arm64_publishes_by_an_exchange() {
    let dir = tempfile::tempdir().unwrap();
    let object = compile(dir.path(), &["-D__TARGET_ARCH_arm64", "-mcpu=v3"]);
    for section in FILL {
        assert_eq!(count(&object, section, ATOMIC_64, EXCHANGE), 1, "{section}");
    }
    // the calls in progress, for walks on other CPUs: both ways into them, and the walk
    assert_eq!(count(&object, "tp_btf/sys_enter", ATOMIC_32, OR_FETCH), 2);
    assert_eq!(count(&object, ".text", ATOMIC_32, OR_FETCH), 1);
    assert_eq!(count(&object, "iter/task", ATOMIC_32, OR_FETCH), 2);
}

#[test]
fn x86_publishes_by_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let object = compile(dir.path(), &["-D__TARGET_ARCH_x86"]);
    for section in FILL {
        assert_eq!(count(&object, section, ATOMIC_64, EXCHANGE), 0, "{section}: a locked instruction for each record");
    }
}

/// Registers have the names of their own machine alone: others do not compile.
#[test]
fn no_machine_has_the_registers_of_another() {
    let dir = tempfile::tempdir().unwrap();
    for (machine, register) in [("x86", "regs[0]"), ("arm64", "di"), ("x86", "syscallno"), ("arm64", "orig_ax")] {
        let source = dir.path().join("names.c");
        let text = format!("#include \"kernel.h\"\nunsigned long f(struct pt_regs *at) {{ return at->{register}; }}\n");
        fs::write(&source, text).unwrap();
        let machine = format!("-D__TARGET_ARCH_{machine}");
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/c");
        let mut clang = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()));
        clang.args(["-g", "-target", "bpf", "-fsyntax-only", &machine, "-I"]).arg(include).arg(source);
        let said = String::from_utf8(clang.output().expect("clang runs").stderr).unwrap();
        assert!(said.contains("no member named"), "{register}: {said}");
    }
}

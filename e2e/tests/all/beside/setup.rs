//! Building and installing. What `scripts/setup.sh` does about Rust before it installs anything else; apt and cargo are stand-ins that
//! write down what they are asked. Where `scripts/split-debug.sh` puts debug information.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A machine whose programs are this one's, but for cargo, rustc, sudo and those of apt.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    /// `candidate` is the version of the packages cargo-web and rustc-web that apt knows; installing them makes a cargo.
    fn new(candidate: &str) -> Self {
        let machine = Self { dir: tempfile::tempdir().expect("tempdir") };
        fs::create_dir(machine.path("bin")).expect("mkdir");
        fs::create_dir(machine.path("home")).expect("mkdir");
        for program in ["/usr/bin", "/bin"].iter().flat_map(|dir| fs::read_dir(dir).expect("read_dir").flatten()) {
            let name = program.file_name().into_string().unwrap_or_default();
            let ours = ["apt", "cargo", "rust", "sudo", "id"].iter().any(|prefix| match *prefix {
                "id" => name == "id",
                prefix => name.starts_with(prefix),
            });
            if !ours {
                symlink(program.path(), machine.path("bin").join(name)).ok();
            }
        }
        machine.program("id", "echo 0");
        machine.program(
            "apt-cache",
            &format!("[ \"$2\" = cargo-web ] && printf 'cargo-web:\\n  Installed: (none)\\n  Candidate: {candidate}\\n'; true"),
        );
        let asked = machine.path("asked");
        let cargo = machine.path("bin/cargo");
        machine.program(
            "apt-get",
            &format!(
                "echo \"$*\" >>{}; case \"$*\" in *cargo-web*) printf '#!/bin/sh\\necho cargo {candidate}\\n' >{cargo}; chmod +x {cargo};; esac",
                asked.display(),
                cargo = cargo.display(),
            ),
        );
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    fn setup(&self) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/setup.sh");
        let mut command = Command::new("/bin/bash");
        command.arg(script).arg("build").env_clear();
        command.env("PATH", self.path("bin")).env("HOME", self.path("home"));
        command.output().expect("setup.sh")
    }

    /// What apt-get was asked to install, a line for each time.
    fn installed(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.path("asked")).unwrap_or_default();
        asked.lines().filter(|line| line.contains("install")).map(str::to_owned).collect()
    }
}

/// setup.sh refuses, says these words, and installs nothing.
fn refuses(machine: &Machine, words: [&str; 2]) {
    let output = machine.setup();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(machine.installed(), Vec::<String>::new());
}

#[test]
fn without_a_cargo_nothing_is_installed_in_vain() {
    // as in Debian 12 without its security archive
    let machine = Machine::new("1.85.0+dfsg3-1~deb12u3");
    refuses(&machine, ["cargo is missing", "rustup.rs"]);
}

#[test]
fn a_cargo_that_is_too_old_is_said_before_anything_is_installed() {
    let machine = Machine::new("1.96.0+dfsg1-1~deb12u2");
    machine.program("cargo", "echo 'cargo 1.85.1 (d73d2caf9 2024-12-31)'");
    refuses(&machine, ["1.85.1", "cargo-web"]);
}

#[test]
fn the_distribution_s_rust_is_installed_if_it_is_new_enough() {
    let machine = Machine::new("1.96.0+dfsg1-1~deb12u2");
    let output = machine.setup();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let installed = machine.installed();
    assert!(installed.len() == 1 && installed[0].contains("cargo-web rustc-web"), "{installed:?}");
    assert!(installed[0].contains("--no-remove"), "{installed:?}");
    // there it is
    assert_eq!(machine.setup().status.code(), Some(0));
    assert_eq!(machine.installed().len(), 1);
}

#[test]
fn a_cargo_that_is_not_in_path_is_named() {
    let machine = Machine::new("1.96.0+dfsg1-1~deb12u2");
    fs::create_dir_all(machine.path("home/.cargo/bin")).expect("mkdir");
    symlink("/bin/true", machine.path("home/.cargo/bin/cargo")).expect("symlink");
    refuses(&machine, ["not in PATH", ".cargo/env"]);
}

#[test]
fn debug_information_lies_beside_the_program() {
    let dir = tempfile::tempdir().expect("tempdir");
    let program = dir.path().join("program");
    fs::write(dir.path().join("program.c"), "int answer(void) { return 42; }\nint main(void) { return answer(); }\n")
        .expect("write");
    let cc = Command::new("cc").args(["-g", "-o"]).arg(&program).arg(dir.path().join("program.c")).status();
    assert!(cc.expect("cc").success());
    let split = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/split-debug.sh");
        assert!(Command::new(script).arg(&program).status().expect("split-debug.sh").success());
        fs::read(&program).expect("program")
    };
    let sections = |file: &Path| {
        let output = Command::new("readelf").arg("-SW").arg(file).output().expect("readelf");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let small = split();
    let [main, beside] = [program.clone(), dir.path().join("program.debug")].map(|file| sections(&file));
    assert!(!main.contains(".debug_") && !main.contains(".symtab") && main.contains(".gnu_debuglink"), "{main}");
    assert!(beside.contains(".debug_line") && beside.contains(".symtab"), "{beside}");
    assert_eq!(Command::new(&program).status().expect("program").code(), Some(42));
    // once more changes neither
    assert_eq!(split(), small);
    assert_eq!(sections(&dir.path().join("program.debug")), beside);
}

//! A parallel build: many short processes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{CostRelation, Workload, time};
use crate::mount::Mounted;
use crate::tools::Need;

const MAKEFILE: &str = "\
OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))
program: $(OBJECTS)
\tcc -o $@ $(OBJECTS)
%.o: %.c
\tcc -O1 -c -o $@ $<
";

/// 60 files.
pub(super) const WORKLOAD: Workload = Workload {
    name: "build",
    title: "A parallel build",
    text: |n| format!("make -B -j2 of a C program of {n} files"),
    unit: "files",
    cost: CostRelation::Lost,
    full: 60,
    quick: 10,
    short: 10,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(&["make"], "make"), Need::new(&["cc"], "gcc")],
    prepare,
    run: |dir, n| time(n, Command::new("make").args(["-s", "-B", "-j2"]).current_dir(dir)),
};

fn prepare(dir: &Path, files: u64) -> Result<Option<Mounted>> {
    fs::write(dir.join("Makefile"), MAKEFILE)?;
    let mut main = String::from("#include <stdio.h>\n");
    for i in 0..files - 1 {
        fs::write(dir.join(format!("part{i}.c")), part(i))?;
        writeln!(main, "int part{i}(int);")?;
    }
    main += "int main(void)\n{\n\tint sum = 0;\n";
    (0..files - 1).try_for_each(|i| writeln!(main, "\tsum += part{i}(sum);"))?;
    main += "\tprintf(\"%d\\n\", sum);\n\treturn 0;\n}\n";
    fs::write(dir.join("main.c"), main)?;
    Ok(None)
}

/// Enough headers that the compiler opens some files, enough code that it does something.
fn part(i: u64) -> String {
    let mut text = String::new();
    for header in ["errno", "fcntl", "signal", "stdio", "stdlib", "string", "sys/socket", "sys/stat", "time", "unistd"]
    {
        text += &format!("#include <{header}.h>\n");
    }
    for f in 0..20 {
        text +=
            &format!("static int f{f}(int x)\n{{\n\tchar s[64];\n\n\tsnprintf(s, sizeof s, \"%d\", x * {});\n", f + 1);
        text += "\treturn (int)strlen(s) + atoi(s);\n}\n";
    }
    text += &format!("int part{i}(int x)\n{{\n");
    (0..20).for_each(|f| text += &format!("\tx += f{f}(x);\n"));
    text + "\treturn x;\n}\n"
}

//! Compares the tables with the running kernel: tracefs gives number and names of the arguments of every call it traces.

use std::fs;
use std::path::Path;

use super::describe_name;

/// Tracefs names calls after their functions, the syscall table sometimes differs.
fn table_name(function: &str) -> &str {
    match function {
        "newstat" => "stat",
        "newfstat" => "fstat",
        "newlstat" => "lstat",
        "newuname" => "uname",
        "sendfile64" => "sendfile",
        "umount" => "umount2",
        other => other,
    }
}

/// The names of the arguments in a `format` file: `\tfield:int dfd;\toffset:16;…`, after the common fields and `__syscall_nr`.
fn argument_names(format: &str) -> Vec<&str> {
    let fields = format.lines().filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next());
    let names = fields.filter_map(|field| field.rsplit([' ', '*']).next());
    // newer kernels append `__data_loc` fields such as `__filename_val` with the contents of strings
    names
        .skip_while(|name| *name != "__syscall_nr")
        .skip(1)
        .filter(|name| !(name.starts_with("__") && name.ends_with("_val")))
        .collect()
}

#[test]
fn arguments_are_those_of_the_running_kernel() {
    let root = Path::new("/sys/kernel/tracing/events/syscalls");
    let Ok(entries) = fs::read_dir(root) else {
        eprintln!(
            "SKIPPED: {} is not readable; run as root after `mount -t tracefs nodev /sys/kernel/tracing`",
            root.display()
        );
        return;
    };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in entries {
        let file = entry.unwrap().file_name();
        let Some(function) = file.to_str().unwrap().strip_prefix("sys_enter_") else {
            continue;
        };
        let format = fs::read_to_string(root.join(&file).join("format")).unwrap();
        let theirs = argument_names(&format);
        let Some(desc) = describe_name(table_name(function)) else {
            wrong.push(format!("{function}({}) is not described", theirs.join(", ")));
            continue;
        };
        let ours: Vec<&str> = desc.args.iter().map(|arg| arg.name).collect();
        if ours != theirs {
            wrong.push(format!("{function}: kernel ({}), table ({})", theirs.join(", "), ours.join(", ")));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 300, "only {seen} calls in tracefs");
}

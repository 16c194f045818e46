//! What programs, files and sockets are called.

/// Programs of ordinary processes.
const PROGRAMS: [&str; 12] = [
    "nginx",
    "postgres",
    "redis-server",
    "node",
    "java",
    "cc1",
    "make",
    "sh",
    "python3",
    "containerd",
    "sshd",
    "rsync",
];

/// Files of the made-up machine.
const FILES: u64 = 4000;

/// The program of an ordinary process.
pub(super) fn program(process: u32) -> &'static str {
    PROGRAMS[process as usize % PROGRAMS.len()]
}

/// What descriptor `fd` of a process stands for: a few sockets and pipes, else files.
pub(super) fn behind(process: u32, fd: u32) -> Vec<u8> {
    let id = u64::from(process) * 16 + u64::from(fd);
    match fd {
        0..=2 => b"/dev/null".to_vec(),
        3 | 4 => format!("socket:[{}]", 20_000 + id).into_bytes(),
        5 => format!("pipe:[{}]", 20_000 + id).into_bytes(),
        _ => file(id),
    }
}

/// A file's path.
pub(super) fn file(id: u64) -> Vec<u8> {
    let id = id % FILES;
    format!("/srv/data/shard{:02}/part-{id:05}.dat", id / 128).into_bytes()
}

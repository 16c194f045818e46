//! A tape on which descriptors come and go in two chunks: what was open before, copies, pipes, a fork, an exec; with variables of
//! environments.

use std::path::Path;

use systape_format::model::{
    ByteStatus, Checkpoint, Family, Fd, FdTable, Gap, ProcessEvent, ProcessKind, Session, Task,
};

use super::{BORN, OPEN, Row, Tape, US, session, task};

/// `AT_FDCWD`, `O_RDWR`, `O_CLOEXEC`.
const AT_FDCWD: u64 = 0xffff_ff9c;
const RDWR: u64 = 2;
const CLOEXEC: u64 = 0o2_000_000;

/// The forked child.
const CHILD: u32 = BORN;

fn with_env(tid: u32, env: &str) -> Task {
    Task { env: env.into(), ..task(tid) }
}

fn fd(fd: i32, path: &str, cloexec: bool) -> Fd {
    Fd { fd, path: path.into(), cloexec }
}

fn checkpoint(us: u64, tables: Vec<FdTable>) -> Checkpoint {
    Checkpoint {
        ts: OPEN + us * US,
        tasks: vec![with_env(100, "JOB=17\0STAGE\0"), with_env(101, "JOB=17\0STAGE\0")],
        fd_tables: tables,
        source: if us == 0 { "snapshot".into() } else { "tracked".into() },
        ..Checkpoint::default()
    }
}

fn open(tid: u32, start: u64, path: &'static str, flags: u64, ret: i64) -> Row<'static> {
    let captured = vec![(1, ByteStatus::Whole, path.len() as u64, path.as_bytes())];
    Row { tid, name: "openat", start, dur: 2, args: [AT_FDCWD, 1, flags, 0, 0, 0], ret, captured, ..Row::default() }
}

fn on(tid: u32, name: &'static str, start: u64, fd: u64, path: Option<&'static str>) -> Row<'static> {
    Row { tid, name, start, dur: 1, args: [fd, 0, 0, 0, 0, 0], path, ..Row::default() }
}

/// Writes it.
pub fn write(path: &Path, gaps: &[Gap]) {
    let session = Session {
        families: vec![Family::Syscall, Family::Process],
        env_keys: vec![b"JOB".to_vec(), b"STAGE".to_vec()],
        ..session()
    };
    let fds = vec![fd(0, "/dev/null", false), fd(1, "/var/log/app", false), fd(7, "TCP:[10.0.0.1:80]", true)];
    let start = vec![FdTable { upid: 1, complete: true, cwd: b"/srv".to_vec(), fds, ..FdTable::default() }];
    let mut tape = Tape::create_at(path, &session, &checkpoint(0, start));
    let pipe: &[u8] = &[5, 0, 0, 0, 6, 0, 0, 0];
    let rows = [
        open(100, 10, "/etc/passwd", CLOEXEC, 3),
        Row { ret: 9, ..on(100, "read", 20, 3, Some("/etc/passwd")) },
        // its name is never used
        open(101, 30, "data/cache", RDWR, 4),
        Row {
            captured: vec![(0, ByteStatus::Whole, 8, pipe)],
            args: [1, 0, 0, 0, 0, 0],
            ..on(100, "pipe2", 40, 0, None)
        },
        Row { args: [3, 9, 0, 0, 0, 0], ret: 9, ..on(100, "dup2", 50, 3, Some("/etc/passwd")) },
        on(100, "close", 60, 3, Some("/etc/passwd")),
        Row { ret: CHILD.into(), ..on(100, "fork", 70, 0, None) },
        // EBADF closes nothing, and neither does a dup2 that fails
        Row { errno: 9, ..on(100, "close", 80, 55, None) },
        Row { args: [55, 9, 0, 0, 0, 0], errno: 9, ..on(100, "dup2", 82, 55, None) },
    ];
    tape.segment_with(90, &rows, &[], |builder| {
        let (parent, child) = (builder.intern_task(&task(100)), builder.intern_task(&task(CHILD)));
        builder.push_process(ProcessEvent { parent, ..ProcessEvent::new(OPEN + 71 * US, ProcessKind::Fork, child) });
    });
    let rows = [
        // the other end's name names this one too
        Row { ret: 1, ..on(CHILD, "write", 100, 6, Some("pipe:[4711]")) },
        on(CHILD, "close", 110, 1, Some("/var/log/app")),
    ];
    tape.segment_with(190, &rows, gaps, |builder| {
        let old = builder.intern_task(&Task { comm: b"tool".to_vec(), ..task(CHILD) });
        let exec = ProcessEvent::new(OPEN + 120 * US, ProcessKind::Exec, old);
        builder.push_process(ProcessEvent { path: b"/bin/tool".to_vec(), ..exec });
        builder.intern_task(&Task {
            comm: b"tool".to_vec(),
            env: b"JOB=18\0STAGE=two words\0".to_vec(),
            ..task(CHILD)
        });
    });
    let fds = vec![
        fd(0, "/dev/null", false),
        fd(1, "/var/log/app", false),
        fd(4, "/srv/data/cache", false),
        fd(5, "pipe:[4711]", false),
        fd(6, "pipe:[4711]", false),
        fd(7, "TCP:[10.0.0.1:80]", true),
        fd(9, "/etc/passwd", false),
    ];
    let tables = vec![FdTable { upid: 1, complete: true, cwd: b"/srv".to_vec(), fds, ..FdTable::default() }];
    tape.again(&checkpoint(200, tables));
    tape.segment(300, &[on(100, "close", 210, 4, Some("/srv/data/cache")), on(100, "close", 220, 7, None)], &[]);
    tape.finish();
}

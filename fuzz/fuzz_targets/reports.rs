//! One report on a sealed tape: the fourth byte of the input says which one. What it prints goes nowhere.
#![no_main]

use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use systape_analyzer::run;

const REPORTS: [&str; 30] = [
    "",
    "--sort end --show-zeros --clone-child -T",
    "--format json",
    "--format csv",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph --format json",
    "-s --cpu --errno-summary",
    "-s --cpu --summary-mode process --format json",
    "-s --summary-mode cgroup --format csv",
    "info",
    "info --format json",
    "check",
    "block",
    "block --hist --by disk",
    "block --top --by cgroup,op,cause,disk --format json",
    "net",
    "net --events --format json",
    "kills -v --all",
    "kills -v --all --format json",
    "exec",
    "exec --tree --all",
    "exec --tree --all --format json",
    "sched timehist",
    "sched latency --by task",
    "runqlat --by cpu",
    "offcpu --by task,state,syscall,file",
    "offcpu --wakers 100",
    "states --by comm,state,syscall,user,cgroup",
    "states --at 0.0012",
    "callgraph --of syscall",
];

/// A file in memory for the tape; standard output goes to /dev/null, standard error stays the fuzzer's until then.
fn place() -> &'static (std::fs::File, OsString) {
    static PLACE: OnceLock<(std::fs::File, OsString)> = OnceLock::new();
    PLACE.get_or_init(|| {
        use std::os::fd::FromRawFd as _;
        let null = std::fs::File::options().write(true).open("/dev/null").expect("/dev/null");
        // SAFETY: both are open descriptors; memfd_create gives one of our own.
        let file = unsafe {
            libc::dup2(null.as_raw_fd(), 1);
            let fd = libc::memfd_create(c"tape".as_ptr(), 0);
            assert!(fd >= 0, "memfd_create");
            std::fs::File::from_raw_fd(fd)
        };
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        (file, path)
    })
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(tape) = systape_fuzz::tape_with(input) else { return };
    let (file, path) = place();
    file.set_len(0).expect("room");
    file.write_all_at(&tape, 0).expect("room");
    let report = REPORTS[usize::from(input[3]) % REPORTS.len()];
    let words = ["analyze"].into_iter().chain(report.split(' ')).filter(|word| !word.is_empty());
    run(words.map(OsString::from).chain([path.clone()]));
});

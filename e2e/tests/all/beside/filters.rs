//! `record --any`: which calls are stored, and that all others are still in every sum.

use std::collections::BTreeMap;
use std::fs;

use systape_e2e::{Call, Lab};

/// A program of calls whose numbers are primes: slow ones that succeed, fast ones that fail with ESRCH and with EBADF, fast ones that succeed.
const PROGRAM: &str = "import os, time
for i in range(23):
    try: os.getpgid(4000000 + i)
    except ProcessLookupError: pass
for i in range(37): os.getpgid(0)
for i in range(7):
    try: os.fsync(9999)
    except OSError: pass
for i in range(5): time.sleep(0.03)
";

/// Calls of each kind that the listing of a recording with `options` has, and those of the summary.
fn stored(lab: &Lab, options: &[&str]) -> (BTreeMap<String, usize>, BTreeMap<String, u64>) {
    let options = [&["-e", "getpgid,fsync,clock_nanosleep"], options].concat();
    lab.record("t.tape", &options, &["python3", "calls.py"]).expect(0);
    let mut listed = BTreeMap::new();
    // it says beside that only some calls are stored
    let lines = lab.analyze(&["t.tape", "--format", "json"]).expect(0).json();
    for call in lines.into_iter().filter(|line| line.get("syscall").is_some()).map(Call) {
        *listed.entry(format!("{} {}", call.name(), call.errno().unwrap_or("ok"))).or_default() += 1;
    }
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "--format", "json"]).expect(0).json();
    let sums = rows.iter().map(|row| {
        assert_eq!(row["calls_at_least"], false, "{row}");
        (row["syscall"].as_str().expect("syscall").to_owned(), row["calls"].as_u64().expect("calls"))
    });
    (listed, sums.collect())
}

fn map<N: Copy>(of: &[(&str, N)]) -> BTreeMap<String, N> {
    of.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

#[test]
fn one_of_several_filters_suffices_and_sums_stay_exact() {
    let Some(lab) = Lab::beside() else { return };
    fs::write(lab.path("calls.py"), PROGRAM).expect("script");
    let all = map(&[("getpgid", 60), ("fsync", 7), ("clock_nanosleep", 5)]);
    // a machine that is busy may make any call slow: what is not asked for must be far below the threshold
    let cases: [(&[&str], BTreeMap<String, usize>); 6] = [
        (&["--duration", "25", "--failure"], map(&[])),
        (
            &["--duration", "25", "--failure", "--any"],
            map(&[("getpgid ESRCH", 23), ("fsync EBADF", 7), ("clock_nanosleep ok", 5)]),
        ),
        (&["--duration", "25", "--errno", "EBADF", "--any"], map(&[("fsync EBADF", 7), ("clock_nanosleep ok", 5)])),
        (
            &["--slow", "clock_nanosleep=25ms", "--errno", "ESRCH", "--any"],
            map(&[("getpgid ESRCH", 23), ("clock_nanosleep ok", 5)]),
        ),
        (&["--errno", "!ESRCH"], map(&[("fsync EBADF", 7)])),
        (&["--failure", "--errno", "EBADF", "--any"], map(&[("getpgid ESRCH", 23), ("fsync EBADF", 7)])),
    ];
    for (options, expected) in cases {
        let (mut listed, sums) = stored(&lab, options);
        assert_eq!(sums, all, "{options:?}");
        // the one kind that a pause of the machine may add
        listed.remove("getpgid ok");
        assert_eq!(listed, expected, "{options:?}");
    }
    let refused = lab.record("t.tape", &["--failure", "--any"], &["true"]).expect(2);
    assert!(refused.stderr.contains("--any goes with two of"), "{}", refused.stderr);
}

//! Block I/O beside the kernel's own counters of a disk, bpftrace's latencies and what fio says it did: who is blamed,
//! what was merged, what failed, and disks on top of others.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;
use systape_e2e::disk::{Counts, Loop, has, skipped, under};
use systape_e2e::lab::run;
use systape_e2e::more::{Mounted, monotonic};
use systape_e2e::{Background, Lab};

const MIB: usize = 1 << 20;
const FAMILIES: [&str; 3] = ["-a", "--families", "process,block,io_uring"];

/// I/Os of a disk, in order of completion; with `filters`, only those.
#[track_caller]
fn ios(lab: &Lab, tape: &str, disk: &str, filters: &[&str]) -> Vec<Value> {
    let run = lab.analyze(&[&["block", tape, "--format", "json"], filters].concat()).expect(0);
    assert_eq!(run.complaints(), "");
    let mut lines = run.json();
    assert!(lines.iter().all(|line| line.get("lost").is_none()), "{lines:?}");
    lines.retain(|io| io["disk"] == disk);
    lines
}

fn num(io: &Value, key: &str) -> u64 {
    let value = &io[key];
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{key}: {io}"))
}

/// The kernel's counters, had it counted these.
fn counts(ios: &[Value]) -> Counts {
    let mut counts = Counts::default();
    for io in ios {
        match io["op"].as_str().expect("op") {
            "read" => (counts.reads, counts.read_bytes) = (counts.reads + 1, counts.read_bytes + num(io, "bytes")),
            "write" => {
                (counts.writes, counts.written_bytes) = (counts.writes + 1, counts.written_bytes + num(io, "bytes"));
            }
            "flush" => counts.flushes += 1,
            "discard" | "write_zeroes" => {}
            op => panic!("{op}: {io}"),
        }
        if matches!(io["op"].as_str(), Some("read" | "write")) {
            counts.merges += num(io, "merged");
        }
    }
    counts
}

/// I/Os of which no program saw the end, as the tape tells.
fn unseen(lab: &Lab, tape: &str) -> u64 {
    let info = lab.info(tape);
    let gaps = info["gaps"].as_array().expect("gaps");
    let of_block = gaps.iter().filter(|gap| gap["family"] == "block" && gap["cause"] == "hidden");
    of_block.map(|gap| num(gap, "count")).sum()
}

/// Records `script` system-wide and gives its I/Os on a disk, after comparing them with the kernel's counters, and what
/// CLOCK_MONOTONIC was before and after. Done again when others (udev) used the disk as recording began or ended, and
/// when the kernel ran no programs (1 of 60 runs on one machine).
#[track_caller]
fn counted(lab: &Lab, disk: &str, tape: &str, script: &str) -> (Vec<Value>, std::ops::Range<i64>) {
    let around =
        format!("cat /sys/block/{disk}/stat >before; ({script}); c=$?; cat /sys/block/{disk}/stat >after; exit $c");
    for _ in 0..5 {
        let (before, from) = (Counts::of(disk), monotonic());
        lab.record(tape, &FAMILIES, &["sh", "-c", &around]).expect(0);
        let (after, to) = (Counts::of(disk), monotonic());
        let inside = ["before", "after"].map(|name| Counts::parse(&fs::read_to_string(lab.path(name)).expect(name)));
        let unseen = unseen(lab, tape);
        if unseen > 0 {
            println!("no program saw the end of {unseen} I/Os; once more");
        } else if inside == [before, after] {
            lab.assert_whole(tape);
            let ios = ios(lab, tape, disk, &[]);
            let others =
                || ["fio.json", "bpftrace.out"].map(|name| fs::read_to_string(lab.path(name)).unwrap_or_default());
            let (seen, mut truth) = (counts(&ios), after.since(&before));
            // an empty write that only asks for a flush is a write to the kernel's counters, and no I/O on the tape
            let empty = truth.writes.saturating_sub(seen.writes);
            if empty <= truth.flushes {
                truth.writes -= empty;
            }
            assert_eq!(seen, truth, "tape, kernel; then what others say\n{}\n{}", lines(&ios), others().join("\n"));
            return (ios, from..to);
        }
    }
    panic!("{disk} is never quiet");
}

fn lines(ios: &[Value]) -> String {
    ios.iter().map(|io| format!("{io}\n")).collect()
}

/// Distinct values of a field of each I/O.
fn all<'a>(ios: &'a [Value], pointer: &str) -> Vec<&'a Value> {
    let mut values: Vec<&Value> = Vec::new();
    for io in ios {
        let value = io.pointer(pointer).unwrap_or(&Value::Null);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// What fio's report says of its reads or writes: operations, bytes.
fn fio(lab: &Lab, what: &str) -> (u64, u64) {
    let text = fs::read_to_string(lab.path("fio.json")).expect("fio.json");
    // notes may stand before it
    let report: Value = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("fio.json");
    let job = &report["jobs"][0];
    (num(&job[what], "total_ios"), num(&job[what], "io_bytes"))
}

/// Requests of a disk as bpftrace sees them: when each completed, its first sector, what it is, and its latency.
struct Tracer {
    _running: Background,
}

impl Tracer {
    fn start(lab: &Lab, disk: &Loop) -> Self {
        // not by rwbs: behind its end is what was in perf's buffer before, which bpftrace 0.17 takes into the key
        let probe = |event: &str| format!("tracepoint:block:block_rq_{event} /args->dev == {}/", disk.dev());
        let script = format!(
            r#"BEGIN {{ printf("ready\n"); }}
            {} {{ @issued[args->sector] = nsecs; }}
            {} {{ $t = nsecs; printf("%lld %lld %s %lld\n", $t, args->sector, args->rwbs, $t - @issued[args->sector]); }}
            END {{ clear(@issued); }}"#,
            probe("issue"),
            probe("complete"),
        );
        Self::run(lab, &script)
    }

    /// Each line: when a request was issued, and what it is.
    fn issues(lab: &Lab, disk: &Loop) -> Self {
        let script = format!(
            r#"BEGIN {{ printf("ready\n"); }}
            tracepoint:block:block_rq_issue /args->dev == {}/ {{ printf("%lld %s\n", nsecs, args->rwbs); }}"#,
            disk.dev()
        );
        Self::run(lab, &script)
    }

    fn run(lab: &Lab, script: &str) -> Self {
        fs::write(lab.path("script.bt"), script).expect("script");
        // it writes line by line to its standard output only
        let mut tracer =
            Background::start(lab.command("sh").args(["-c", "exec bpftrace -B line script.bt >bpftrace.out"]));
        lab.until("bpftrace", || {
            if let Some(run) = tracer.ended() {
                panic!("bpftrace ended: {run:?}");
            }
            fs::read_to_string(lab.path("bpftrace.out")).is_ok_and(|t| t.contains("ready\n"))
        });
        Self { _running: tracer }
    }

    /// How many were issued in `range`, by what `analyze` calls it; once there are `count`, or never will be.
    fn ops(self, lab: &Lab, range: &std::ops::Range<i64>, count: usize) -> BTreeMap<String, usize> {
        let mut ops: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..40 {
            ops.clear();
            for line in fs::read_to_string(lab.path("bpftrace.out")).expect("bpftrace.out").lines() {
                let Some((ts, kind)) = line.split_once(' ') else { continue };
                let Ok(ts) = ts.parse::<i64>() else { continue };
                let op = match kind.as_bytes() {
                    [b'F', b'F', ..] => "flush",
                    [b'W', ..] | [b'F', b'W', ..] => "write",
                    [b'D', ..] => "discard",
                    [b'R', ..] => "read",
                    _ => kind,
                };
                if range.contains(&ts) {
                    *ops.entry(op.to_owned()).or_default() += 1;
                }
            }
            if ops.values().sum::<usize>() == count {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        ops
    }

    /// Latencies of those that completed in `range`, by sector and kind, in order; once there are `count`, or never will be.
    /// Killed then, since bpftrace (0.17) now and then does not end by SIGINT.
    fn stop(self, lab: &Lab, range: &std::ops::Range<i64>, count: usize) -> BTreeMap<(u64, bool), Vec<i64>> {
        for last in 0..100 {
            let mut seen: BTreeMap<(u64, bool), Vec<i64>> = BTreeMap::new();
            for line in fs::read_to_string(lab.path("bpftrace.out")).expect("bpftrace.out").lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let [ts, sector, kind, latency] = words[..] else { continue };
                let Ok(latency) = latency.parse() else { continue };
                if range.contains(&ts.parse().expect("ns")) {
                    let key = (sector.parse().expect("sector"), kind.contains('R'));
                    seen.entry(key).or_default().push(latency);
                }
            }
            if last == 99 || seen.values().map(Vec::len).sum::<usize>() == count {
                return seen;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        unreachable!("returned at the last")
    }
}

/// Both saw the same requests, and as long as the work of one tracer beside the other and a noisy machine allow: half of
/// the latencies differ by less than 50 us, 95 % by less than 200 us or 10 %. `Err`: how they differ.
fn same_latencies(ios: &[Value], truth: &BTreeMap<(u64, bool), Vec<i64>>) -> Result<String, String> {
    let mut seen: BTreeMap<(u64, bool), Vec<i64>> = BTreeMap::new();
    for io in ios {
        let key = (num(io, "sector"), io["op"] == "read");
        seen.entry(key).or_default().push(io["dur_ns"].as_i64().unwrap_or_else(|| panic!("{io}")));
    }
    let number = |map: &BTreeMap<_, Vec<i64>>| map.values().map(Vec::len).sum::<usize>();
    for (key, latencies) in truth {
        let found = seen.get(key).map_or(0, Vec::len);
        assert!(found >= latencies.len(), "{key:?}: bpftrace saw {}, the tape has {found}", latencies.len());
    }
    // it misses those that complete while another program of its kind runs on that CPU
    if number(&seen) != number(truth) {
        return Err(format!("bpftrace saw {} of {}", number(truth), number(&seen)));
    }
    let pairs: Vec<(i64, i64)> = seen.into_values().flatten().zip(truth.values().flatten().copied()).collect();
    let mut differences: Vec<i64> = pairs.iter().map(|(tape, truth)| (tape - truth).abs()).collect();
    differences.sort_unstable();
    let at = |percent: usize| differences[(differences.len() - 1) * percent / 100];
    let near = pairs.iter().filter(|(tape, truth)| (tape - truth).abs() < 200_000.max(truth / 10)).count();
    let said = format!("ns: median {}, 99 % {}, largest {}; {near} of {} near", at(50), at(99), at(100), pairs.len());
    if at(50) < 50_000 && near * 100 >= pairs.len() * 95 { Ok(said) } else { Err(said) }
}

/// O_DIRECT reads and writes of one engine: the kernel's counters, fio's, bpftrace's latencies, and whom to blame.
fn direct(lab: &Lab, disk: &Loop, engine: &str) {
    let script = format!(
        "fio --name=job --filename={} --direct=1 --ioengine={engine} --iodepth=4 --rw=randrw --bssplit=4k/70:32k/30 --size=16m \
         --io_size=8m --output-format=json --output=fio.json",
        disk.path
    );
    let mut differences = Vec::new();
    for _ in 0..3 {
        let tracer = has("bpftrace").then(|| Tracer::start(lab, disk));
        let (ios, range) = counted(lab, &disk.name, "t.tape", &script);
        let truth = tracer.map(|tracer| tracer.stop(lab, &range, ios.len()));

        let sums = counts(&ios);
        assert_eq!((sums.read_bytes, sums.written_bytes), (fio(lab, "read").1, fio(lab, "write").1));
        let operations = fio(lab, "read").0 + fio(lab, "write").0;
        assert_eq!(ios.len() as u64 + sums.merges, operations);
        assert!(sums.reads > 100 && sums.writes > 100, "{sums:?}");
        assert_eq!(all(&ios, "/cause"), ["direct"], "{}", lines(&ios));
        assert_eq!((all(&ios, "/owner/pid").len(), all(&ios, "/layer")), (1, vec![&"request".into()]));
        for io in &ios {
            let comm = io["owner"]["comm"].as_str().expect("comm");
            // where a request would block, a worker thread of the process submits it
            assert!(comm == "fio" || engine == "io_uring" && comm.starts_with("iou-wrk"), "{io}");
            assert!(io["errno"].is_null() && io["queue_ns"].is_u64(), "{io}");
            assert_eq!(io["ts_ns"].as_i64().zip(io["issued_ns"].as_i64()).map(|(c, i)| c - i), io["dur_ns"].as_i64());
        }
        // and the longer ones are those that --duration selects
        let longer = ios.iter().filter(|io| io["dur_ns"].as_i64() > Some(40_000)).count();
        assert_eq!(self::ios(lab, "t.tape", &disk.name, &["--duration", "40us"]).len(), longer);

        if engine == "io_uring" {
            let summary = lab.analyze(&["-s", "t.tape", "--format", "json"]).expect(0).json();
            let rings: Vec<&Value> = summary.iter().filter(|row| row["kind"] == "io_uring").collect();
            let ops: BTreeMap<_, _> = rings.iter().map(|r| (r["op"].as_str().expect("op"), num(r, "count"))).collect();
            assert_eq!(ops, [("READ", fio(lab, "read").0), ("WRITE", fio(lab, "write").0)].into(), "{rings:?}");
            let pid = all(&ios, "/owner/pid")[0];
            assert!(
                rings.iter().all(|r| r["pid"] == *pid && r["comm"] == "fio" && r["count_at_least"] == false),
                "{rings:?}"
            );
        }
        let Some(truth) = truth else { return };
        match same_latencies(&ios, &truth) {
            Ok(said) => return println!("{engine}: latencies of tape and bpftrace differ, {said}"),
            Err(said) => differences.push(said),
        }
    }
    panic!("{engine}: latencies differ from bpftrace's: {differences:?}");
}

#[test]
fn direct_io_is_what_the_kernel_fio_and_bpftrace_say() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 32 * MIB) else { return };
    if has("fio") {
        direct(&lab, &disk, "libaio");
        direct(&lab, &disk, "io_uring");
    }
}

/// Whether a request is used again or idle at the end: an I/O without an end is told. Nothing makes the kernel leave out a
/// program at will; the program leaves out what it would have done.
#[test]
fn an_end_that_nobody_saw_is_told() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 32 * MIB) else { return };
    let script = format!("dd if={} of=/dev/null bs=4k count=1009 iflag=direct status=none", disk.path);
    let flags = [&FAMILIES[..], &["--force", "unseen-ios=10"]].concat();
    let before = Counts::of(&disk.name);
    lab.record("t.tape", &flags, &["sh", "-c", &script]).expect(0);
    let done = Counts::of(&disk.name).since(&before);
    assert!(done.reads >= 1009, "{done:?}");
    // of other disks there may be some more
    let info = lab.info("t.tape");
    assert_eq!(info["complete"], false, "{info}");
    let lines = lab.analyze(&["block", "t.tape", "--format", "json"]).expect(0).json();
    let stored = lines.iter().filter(|io| io["disk"].is_string()).count() as u64;
    let (missing, here) = (unseen(&lab, "t.tape"), lines.iter().filter(|io| io["disk"] == disk.name).count() as u64);
    assert!(missing >= done.reads - here && done.reads - here >= done.reads / 20, "{missing}, {here}, {done:?}");
    // every tenth, be it of this disk or another, and what the kernel itself hid; the program counts them without a lock, so of two
    // that end on two CPUs at once one may not count
    let left_out = (stored + missing).div_ceil(10);
    assert!((left_out - 2..left_out + 8).contains(&missing), "{stored} {missing}");
    let run = lab.analyze(&["block", "t.tape"]).expect(0);
    assert!((run.text() + &run.stderr).contains("the kernel skipped the probe"), "{}", run.stderr);
    lab.analyze(&["block", "t.tape", "--fail-on-loss"]).expect(3);
}

#[test]
fn written_back_is_blamed_on_who_dirtied() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 32 * MIB) else { return };
    if !has("fio") || !has("mkfs.ext4") {
        return;
    }
    let options = ["-q", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", &disk.path];
    run(lab.command("mkfs.ext4").args(options)).expect(0);
    let _mounted = Mounted::disk(&lab, "m", &disk.path);
    let dd = |name: &str, blocks: u32| format!("dd if=/dev/zero of=m/{name} bs=4k count={blocks} status=none");
    // the flusher must not write it before sync does: it waits 30 s
    run(lab.command("sh").args(["-c", &format!("sync; {}", dd("old", 499))])).expect(0);

    // a file that is made shorter and written is written back when it is closed: there must be none when this is done again;
    // the second sync keeps the two files apart: they may be neighbours on the disk, and pages of both in one request
    let script = format!(
        "rm -f m/new m/late; fio --name=w --filename=m/new --ioengine=psync --rw=write --bs=4k --size=2084864 --fallocate=none --output=/dev/null; \
         sync -f m; {}; sync -f m",
        dd("late", 101)
    );
    let (ios, _) = counted(&lab, &disk.name, "t.tape", &script);
    let of = |name: &str| -> Vec<Value> {
        let inode = fs::metadata(lab.path("m").join(name)).expect(name).ino().to_string();
        ios.iter().filter(|io| io["inode"] == inode && io["op"] == "write").cloned().collect()
    };
    let bytes = |ios: &[Value]| ios.iter().map(|io| num(io, "bytes")).sum::<u64>();
    for (name, writer, blocks) in [("new", "fio", 509), ("late", "dd", 101)] {
        let ios = of(name);
        assert_eq!(bytes(&ios), blocks * 4096, "{name}:\n{}", lines(&ios));
        assert_eq!((all(&ios, "/cause"), all(&ios, "/owner/comm")), (vec![&"dirtier".into()], vec![&writer.into()]));
        let origins = all(&ios, "/origin/comm");
        assert!(!origins.contains(&&writer.into()), "{name} was not written by who dirtied it: {origins:?}");
    }
    // dirtied before the recording: nobody was seen doing it, nobody is blamed
    let old = of("old");
    if old.is_empty() {
        skipped("file dirtied before the recording was written before it, too");
    } else {
        assert_eq!(bytes(&old), 499 * 4096, "{}", lines(&old));
        let owner = old.iter().find(|io| !io["owner"].is_null() || io["cause"] == "dirtier" || io["cause"] == "direct");
        assert_eq!(owner, None);
    }
    // who calls sync causes no write but that of the device's cache, which has no bytes
    let blamed = |io: &&Value| io["owner"]["comm"] == "sync" && num(io, "bytes") > 0;
    assert_eq!(ios.iter().find(blamed), None);

    let text = lab.analyze(&["block", "t.tape", "--comm=dd"]).expect(0).text();
    let of_dd: Vec<&str> = text.lines().filter(|line| line.contains(&disk.name)).collect();
    assert_eq!(of_dd.iter().filter(|line| line.contains(" dirtier")).count(), of("late").len(), "{text}");
}

/// A loop device on another, both made in the recording: named, and what goes through them to the disk below counts once. One that is
/// taken away at once may be gone when it is looked at: then it is said that it may count twice.
#[test]
fn devices_made_meanwhile_count_once() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::write(lab.path("image"), vec![0; 16 << 20]).expect("image");
    let script = |pause: &str| {
        format!(
            "d=$(losetup -f --show image) || exit 9; e=$(losetup -f --show $d) || exit 9; echo $d $e; {pause}
             dd if=/dev/zero of=$e bs=1M count=8 oflag=direct status=none; {pause} losetup -d $e; sync image; losetup -d $d"
        )
    };
    for pause in ["sleep 0.3;", ""] {
        let run = lab.record("t.tape", &["-a", "--families", "block"], &["sh", "-c", &script(pause)]);
        if run.status.code() == Some(9) {
            return skipped("no loop device can be made");
        }
        let said = run.text();
        let loops: Vec<&str> = said.split_whitespace().map(|path| path.trim_start_matches("/dev/")).collect();
        let sums = lab.analyze(&["block", "t.tape", "--top", "--by", "disk", "--format", "json"]).expect(0).json();
        let text = lab.analyze(&["block", "t.tape", "--top", "--by", "disk"]).expect(0).text();
        let mut maybe_twice = false;
        for name in &loops {
            let number = format!("7:{}", name.trim_start_matches("loop"));
            let row = sums.iter().find(|row| row["disk"] == **name || row["disk"] == *number);
            let row = row.unwrap_or_else(|| panic!("{name}: {sums:#?}"));
            assert_eq!(num(row, "written_bytes"), 8 << 20, "{row}");
            let (counted, known) = (&row["in_total"], row["disk"] == **name);
            match pause {
                "" => assert!(*counted == false || counted.is_null(), "{row}"),
                _ => assert!(known && *counted == false, "{row}"),
            }
            maybe_twice |= counted.is_null();
        }
        assert_eq!(maybe_twice, text.contains("came during the recording"), "{sums:#?} {text}");
    }
}

#[test]
fn who_dirtied_has_the_name_that_it_had_then() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 32 * MIB) else { return };
    if !has("mkfs.ext4") {
        return;
    }
    let options = ["-q", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", &disk.path];
    run(lab.command("mkfs.ext4").args(options)).expect(0);
    let _mounted = Mounted::disk(&lab, "m", &disk.path);
    // what it wrote goes to the disk when it is another program
    let writer = "import ctypes,os; ctypes.CDLL(None).prctl(15, b'writer-one', 0, 0, 0); \
                  f = os.open('m/file', os.O_RDWR | os.O_CREAT, 0o644); os.write(f, b'x' * (64 << 12)); os.close(f); \
                  os.execvp('sleep', ['sleep', '1000'])";
    let script = format!(
        "python3 -c \"{writer}\" & p=$!; until grep -q sleep /proc/$p/comm; do sleep 0.01; done; \
         sync -f m; kill $p; wait; :"
    );
    let (ios, _) = counted(&lab, &disk.name, "t.tape", &script);
    let inode = fs::metadata(lab.path("m/file")).expect("file").ino().to_string();
    let of = |ios: &[Value]| -> Vec<Value> {
        ios.iter().filter(|io| io["inode"] == inode && io["op"] == "write").cloned().collect()
    };
    let written = of(&ios);
    assert_eq!(written.iter().map(|io| num(io, "bytes")).sum::<u64>(), 64 << 12, "{}", lines(&ios));
    let of_all = (all(&written, "/cause"), all(&written, "/owner/comm"));
    assert_eq!(of_all, (vec![&"dirtier".into()], vec![&"writer-one".into()]));
    // filters and sums have the same name
    let asked =
        |words: &[&str]| lab.analyze(&[&["block", "t.tape", "--format", "json"], words].concat()).expect(0).json();
    assert_eq!(of(&asked(&["--comm=writer-one"])).len(), written.len());
    assert_eq!(of(&asked(&["--comm=sleep"])).len(), 0);
    let sums = asked(&["--by", "comm,disk", "--top"]);
    let its = |row: &&Value| row["comm"] == "writer-one" && row["disk"] == disk.name;
    let bytes = sums.iter().find(its).map(|row| num(row, "written_bytes"));
    assert_eq!(bytes, Some(64 << 12), "{sums:?}");
    // so do the listing and Perfetto's trace, in which an I/O has a begin and an end
    let listing = ["t.tape", "-e", "block:block_rq_complete", "--comm=writer-one", "--format", "json"];
    let listed = lab.analyze(&listing).expect(0).json();
    let its = |line: &&Value| line["args"]["disk"] == disk.name && line["args"]["rwbs"] == "W";
    assert_eq!(listed.iter().filter(its).count(), written.len(), "{listed:?}");
    lab.analyze(&["export", "perfetto", "t.tape", "-o", "t.pftrace"]).expect(0);
    let trace = fs::read(lab.path("t.pftrace")).expect("t.pftrace");
    let named = trace.windows(10).filter(|bytes| bytes == b"writer-one").count();
    assert!(named >= 2 * listed.len(), "{named} of {listed:?}");
    lab.analyze(&["redact", "t.tape", "r.tape", "--level", "all"]).expect(0);
    assert!(!String::from_utf8_lossy(&fs::read(lab.path("r.tape")).expect("r.tape")).contains("writer-one"));
    let redacted = lab.analyze(&["block", "r.tape", "--format", "json"]).expect(0).text();
    assert!(!redacted.contains("writer-one"), "{redacted}");
}

#[test]
fn merged_requests_say_so() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 32 * MIB) else { return };
    // buffered, in order: pages of 4 KiB become larger requests
    let (ios, _) =
        counted(&lab, &disk.name, "t.tape", &format!("dd if=/dev/zero of={} bs=4k count=509 conv=fsync", disk.path));
    let sums = counts(&ios);
    assert_eq!(sums.written_bytes, 509 * 4096);
    assert!(sums.merges > 0 && sums.writes < 509, "{sums:?}");
    // pages of the device itself are not followed: no guess
    let writes: Vec<Value> = ios.into_iter().filter(|io| io["op"] == "write" && num(io, "bytes") > 0).collect();
    assert_eq!(all(&writes, "/owner"), [&Value::Null], "{}", lines(&writes));
    let text = lab.analyze(&["block", "t.tape"]).expect(0).text();
    let merged = text.lines().filter(|l| l.contains(&disk.name) && l.ends_with(" merged")).count();
    assert_eq!(merged, writes.iter().filter(|io| num(io, "merged") > 0).count(), "{text}");

    if has("fio") {
        // submitted 16 at a time: the kernel merges what it likes, but every one is in a request
        let (ios, _) = counted(
            &lab,
            &disk.name,
            "t.tape",
            &format!(
                "fio --name=job --filename={} --direct=1 --ioengine=libaio --rw=write --bs=4k --size=2084864 --iodepth=16 \
                 --iodepth_batch_submit=16 --iodepth_batch_complete_min=16 --output=/dev/null",
                disk.path
            ),
        );
        let sums = counts(&ios);
        assert_eq!((sums.writes + sums.merges, sums.written_bytes), (509, 509 * 4096));
        assert!(sums.merges > 0, "{sums:?}");
    }
}

#[test]
fn a_disk_on_another_is_not_added_up() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(below) = under(&lab) else { return skipped("temporary directory is on no disk") };
    let Some(disk) = Loop::new(&lab, "image", 16 * MIB) else { return };
    let script = format!("dd if=/dev/zero of={} bs=64k count=37 oflag=direct status=none; sync image", disk.path);
    let (upper, _) = counted(&lab, &disk.name, "t.tape", &script);
    assert_eq!((counts(&upper).writes, counts(&upper).written_bytes), (37, 37 * 65536));
    assert_eq!(all(&upper, "/owner/comm"), ["dd"]);

    let sums = |by: &str| lab.analyze(&["block", "t.tape", "--top", "--by", by, "--format", "json"]).expect(0).json();
    let disks = sums("disk");
    let row = |name: &str| disks.iter().find(|row| row["disk"] == name).unwrap_or_else(|| panic!("{name}: {disks:?}"));
    assert_eq!((num(row(&disk.name), "ios"), &row(&disk.name)["in_total"]), (upper.len() as u64, &false.into()));
    assert_eq!(row(&disk.name)["share"], Value::Null);
    let text = lab.analyze(&["block", "t.tape", "--top"]).expect(0).text();
    let total: u64 = disks.iter().filter(|row| row["in_total"] == true).map(|row| num(row, "ios")).sum();
    let all_disks = text.lines().find(|line| line.starts_with("all disks ")).expect("all disks");
    assert_eq!(all_disks.split_whitespace().nth(2), Some(total.to_string().as_str()), "{text}");
    assert!(text.lines().any(|line| line.starts_with(&format!("{}: {} I/Os", disk.name, upper.len()))), "{text}");

    // the same bytes again, below: pages of the image, dirtied by a thread of the kernel for dd
    assert_eq!(row(&below)["in_total"], true);
    let inode = fs::metadata(lab.path("image")).expect("image").ino().to_string();
    let mut lower = ios(&lab, "t.tape", &below, &[]);
    lower.retain(|io| io["inode"] == inode && io["op"] == "write");
    assert_eq!(counts(&lower).written_bytes, 37 * 65536, "{}", lines(&lower));
    assert_eq!(all(&lower, "/owner"), [&Value::Null], "{}", lines(&lower));
}

#[test]
fn what_fails_says_why() {
    let Some(lab) = Lab::with_bpf() else { return };
    // a disk of 8 MiB over a file system with room for 1
    let _full = Mounted::tmpfs(&lab, "full", "1m");
    fs::File::create(lab.path("full/image")).expect("image").set_len(8 * MIB as u64).expect("sparse");
    let Some(disk) = Loop::over(&lab, &lab.path("full/image")) else { return };
    let program = format!(
        "import mmap, os
data, fd, failed = mmap.mmap(-1, 65536), os.open('{}', os.O_WRONLY | os.O_DIRECT), open('failed', 'w')
for i in range(128):
    try:
        os.pwrite(fd, data, i * 65536)
    except OSError as e:
        print(i * 128, e.errno, file=failed)",
        disk.path
    );
    fs::write(lab.path("write.py"), program).expect("write.py");
    let (ios, _) = counted(&lab, &disk.name, "t.tape", "python3 write.py");
    let (failed, fine): (Vec<&Value>, Vec<&Value>) = ios.iter().partition(|io| !io["errno"].is_null());
    let said: String = failed.iter().map(|io| format!("{} {}\n", num(io, "sector"), num(io, "errno_code"))).collect();
    assert_eq!(said, fs::read_to_string(lab.path("failed")).expect("failed"), "{}", lines(&ios));
    assert!((failed.len(), fine.len()) > (100, 10) && ios.len() == 128, "{}", lines(&ios));
    assert!(failed.iter().all(|io| io["errno"] == "ENOSPC" && io["owner"]["comm"] == "python3"), "{failed:?}");
    let listed = self::ios(&lab, "t.tape", &disk.name, &["--failure"]);
    assert_eq!(listed.iter().collect::<Vec<_>>(), failed);
    let text = lab.analyze(&["block", "t.tape", "--failure"]).expect(0).text();
    let said = text.lines().filter(|line| line.contains(&disk.name) && line.ends_with(" ENOSPC")).count();
    assert_eq!(said, failed.len(), "{text}");
}

/// A disk in memory, without requests.
struct Zram(String);

impl Zram {
    fn new(len: usize) -> Option<Self> {
        let Ok(number) = fs::read_to_string("/sys/class/zram-control/hot_add") else {
            skipped("no zram here");
            return None;
        };
        let zram = Self(format!("zram{}", number.trim()));
        fs::write(format!("/sys/block/{}/disksize", zram.0), len.to_string()).expect("disksize");
        Some(zram)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        fs::write(format!("/sys/block/{}/reset", self.0), "1").ok();
        fs::write("/sys/class/zram-control/hot_remove", self.0.trim_start_matches("zram")).ok();
    }
}

#[test]
fn a_disk_without_requests_is_followed_by_bio() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Zram::new(8 * MIB) else { return };
    let path = format!("/dev/{}", disk.0);
    let script = format!(
        "dd if=/dev/zero of={path} bs=8k count=101 oflag=direct; dd if={path} of=/dev/null bs=4k count=53 iflag=direct"
    );
    let (ios, _) = counted(&lab, &disk.0, "t.tape", &script);
    let sums = counts(&ios);
    assert_eq!((sums.writes, sums.written_bytes), (101, 101 * 8192), "{}", lines(&ios));
    assert_eq!((sums.reads, sums.read_bytes), (53, 53 * 4096), "{}", lines(&ios));
    assert_eq!((all(&ios, "/layer"), all(&ios, "/owner/comm")), (vec![&"bio".into()], vec![&"dd".into()]));
    for io in &ios {
        let whole = io["issued_ns"].is_null() && io["queue_ns"].is_null() && io["dur_ns"].as_i64() > Some(0);
        assert!(whole && io["cause"] == "direct", "{io}");
    }
}

/// Makes 40 writes and fsyncs: what a journal does, and what a disk's cache is flushed for. Several may be in one commit of the journal.
const FSYNCS: &str = "import os
fd = os.open('mnt/file', os.O_CREAT | os.O_RDWR)
for i in range(40):
    os.pwrite(fd, b'x' * 4096, i * 4096)
    os.fsync(fd)
os.close(fd)";

#[test]
fn journal_and_flushes_have_names_and_times() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("bpftrace") || !has("mkfs.ext4") {
        return skipped("bpftrace, mkfs.ext4");
    }
    let Some(disk) = Loop::new(&lab, "disk.img", 64 * MIB) else { return };
    run(lab.command("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &disk.path])).expect(0);
    let _mounted = Mounted::disk(&lab, "mnt", &disk.path);
    fs::write(lab.path("fsyncs.py"), FSYNCS).expect("fsyncs.py");
    let script = "rm -f mnt/file; sync; python3 fsyncs.py; dd if=mnt/file of=/dev/null iflag=direct bs=16k; dd if=/dev/zero of=mnt/gone \
                  bs=64k count=16 conv=fsync; rm mnt/gone; sync; fstrim mnt";
    let mut tried = Vec::new();
    let (ios, issued) = loop {
        let tracer = Tracer::issues(&lab, &disk);
        let (ios, range) = counted(&lab, &disk.name, "t.tape", script);
        let mut ops: BTreeMap<&str, usize> = BTreeMap::new();
        for io in &ios {
            *ops.entry(io["op"].as_str().expect("op")).or_default() += 1;
        }
        let ops: BTreeMap<String, usize> = ops.into_iter().map(|(op, n)| (op.to_owned(), n)).collect();
        let issued = tracer.ops(&lab, &range, ios.len());
        for (op, n) in &issued {
            assert!(ops.get(op).is_some_and(|ours| ours >= n), "bpftrace: {issued:?}, tape: {ops:?}");
        }
        // bpftrace misses those that are issued while another program of its kind runs on that CPU
        if issued == ops {
            break (ios, ops);
        }
        tried.push((issued, ops));
        assert!(tried.len() < 5, "bpftrace and the tape: {tried:?}");
    };
    for io in &ios {
        assert!(!io["dur_ns"].is_null() && !io["issued_ns"].is_null() && !io["queue_ns"].is_null(), "{io}");
        assert!(io["op"] != "write" || num(io, "bytes") > 0, "{io}");
    }
    assert!(
        issued["flush"] >= 40 && issued["write"] >= 60 && issued["discard"] > 0 && issued["read"] > 0,
        "{issued:?}"
    );
    // the journal's thread submits by itself; flushes are for it, or for who called fsync
    let of = |op: &str, cause: &str| ios.iter().filter(|io| io["op"] == op && io["cause"] == cause).collect::<Vec<_>>();
    let journal = of("write", "kthread");
    assert!(journal.len() >= 20, "{}", lines(&ios));
    for io in journal {
        assert!(io["owner"]["comm"].as_str().expect("comm").starts_with("jbd2/"), "{io}");
    }
    let flushes = of("flush", "flush");
    assert_eq!(flushes.len(), issued["flush"], "{}", lines(&ios));
    for io in flushes {
        let comm = io["owner"]["comm"].as_str().expect("comm");
        assert!(comm.starts_with("jbd2/") || ["python3", "sync", "dd", "fstrim"].contains(&comm), "{io}");
    }
}

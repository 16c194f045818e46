//! The file of a block I/O, by the file system's own map of what lies where (FIEMAP).

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::disk::{Loop, has};
use systape_e2e::lab::run;
use systape_e2e::more::Mounted;

const RECORD: [&str; 3] = ["-a", "--families", "block"];

/// Prints `PATH FIRST END` for each extent of each file below a directory, in sectors.
const EXTENTS: &str = r#"
import fcntl, os, struct, sys
for top, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(top, name)
        with open(path, 'rb') as file:
            head = struct.pack('=QQIIII', 0, 2**64 - 1, 0, 0, 1000, 0)
            room = bytearray(head + bytes(56 * 1000))
            fcntl.ioctl(file, 0xC020660B, room)
            for i in range(struct.unpack_from('=I', room, 20)[0]):
                _, physical, length = struct.unpack_from('=QQQ', room, 32 + 56 * i)
                print(path, physical // 512, (physical + length) // 512)
"#;

/// The extents of all files of a mounted file system.
fn extents(lab: &Lab, dir: &str) -> Vec<(String, u64, u64)> {
    let text = run(lab.command("python3").args(["-c", EXTENTS]).arg(lab.path(dir))).expect(0).text();
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).expect("a number");
    let extent = |line: &str| {
        let mut words = line.split(' ');
        (words.next().expect("a path").to_owned(), number(words.next()), number(words.next()))
    };
    text.lines().map(extent).collect()
}

/// Bytes written by what the map says and what the tape says: (path of the map, of the tape) -> bytes.
fn told(lab: &Lab, disk: &Loop, op: &str, extents: &[(String, u64, u64)]) -> BTreeMap<(String, String), u64> {
    let ios = lab.analyze(&["block", "t.tape", "--format", "json"]).expect(0).json();
    let mut told = BTreeMap::new();
    for io in ios.iter().filter(|io| io["disk"] == disk.name && io["op"] == op) {
        let number = |value: &Value| value.as_str().map_or(value.as_u64(), |text| text.parse().ok());
        let (sector, bytes) = (number(&io["sector"]).expect("a sector"), io["bytes"].as_u64().expect("bytes"));
        let end = sector + bytes / 512;
        let of: Vec<_> = extents.iter().filter(|(_, from, to)| *from < end && sector < *to).collect();
        let truth = match &of[..] {
            [] => "",
            [(path, ..), rest @ ..] if rest.iter().all(|(other, ..)| other == path) => path,
            _ => "several",
        };
        let said = io["file"].as_str().unwrap_or_default();
        *told.entry((truth.to_owned(), said.to_owned())).or_default() += bytes;
    }
    told
}

/// Files are those of the map: 95 % of their bytes are told, and none wrongly.
fn are_right(told: &BTreeMap<(String, String), u64>, least: u64, what: &str) {
    let (mut right, mut unknown) = (0, 0);
    for ((truth, said), bytes) in told {
        match (truth.as_str(), said.as_str()) {
            ("", "") | ("several", "") => {}
            (_, "") => unknown += bytes,
            (truth, said) => {
                assert_eq!(truth, said, "{what}: {told:?}");
                right += bytes;
            }
        }
    }
    assert!(right >= least && unknown <= right / 19, "{what}: {right} bytes of {least}, {unknown} unknown: {told:?}");
}

fn on(file_system: &[&str], dir: &str) {
    const MIB: u64 = 1 << 20;
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("fio") || !has(file_system[0]) {
        return;
    }
    let image = lab.path("image");
    fs::File::create(&image).and_then(|file| file.set_len(400 * MIB)).expect("image");
    let Some(disk) = Loop::over(&lab, &image) else { return };
    run(lab.command(file_system[0]).args(&file_system[1..]).arg(&disk.path)).expect(0);
    let _mounted = Mounted::disk(&lab, dir, &disk.path);
    let at = lab.path(dir);
    let fio = |name: &str, more: &str| {
        let at = at.display();
        format!(
            "fio --directory={at} --name={name} --nrfiles=20 --filesize=1m --size=20m {more} --output=fio.{name} && "
        )
    };
    let script = [
        fio("buffered", "--rw=write --bs=60k"),
        fio("direct", "--rw=randwrite --bs=16k --direct=1"),
        fio("uring", "--rw=randwrite --bs=8k --direct=1 --ioengine=io_uring --iodepth=8"),
        "sync; echo 1 > /proc/sys/vm/drop_caches; ".to_owned(),
        format!("cat {0}/direct* > /dev/null; dd if={0}/uring.0.0 of=/dev/null bs=64k iflag=direct", at.display()),
    ]
    .concat();
    lab.record("t.tape", &RECORD, &["sh", "-c", &script]).expect(0);
    let extents = extents(&lab, dir);
    assert!(extents.len() >= 60, "{extents:?}");
    are_right(&told(&lab, &disk, "write", &extents), 60 * MIB * 95 / 100, "written");
    are_right(&told(&lab, &disk, "read", &extents), 21 * MIB * 95 / 100, "read");
    // and the sums have them
    let top = lab.analyze(&["block", "t.tape", "--top", "--by", "disk,file", "--format", "json"]).expect(0).json();
    let name = at.join("direct.0.7").display().to_string();
    let of = |row: &&Value| row["disk"] == disk.name && row["file"] == name.as_str();
    assert_eq!(top.iter().find(of).expect("a row")["written_bytes"], MIB.to_string(), "{top:?}");
}

#[test]
fn files_on_ext4_are_those_of_its_map() {
    on(&["mkfs.ext4", "-q", "-F"], "ext4");
}

#[test]
fn files_on_xfs_are_those_of_its_map() {
    on(&["mkfs.xfs", "-q", "-f"], "xfs");
}

/// A name that changes, a file with two, one that is gone, and the same inode again.
#[test]
fn names_change() {
    let Some(lab) = Lab::with_bpf() else { return };
    let image = lab.path("image");
    fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("image");
    let Some(disk) = Loop::over(&lab, &image) else { return };
    run(lab.command("mkfs.ext4").args(["-q", "-F", &disk.path])).expect(0);
    let _mounted = Mounted::disk(&lab, "disk", &disk.path);
    let write =
        |file: &str, kib: u32| format!("dd if=/dev/zero of={file} bs=4k count={} conv=fsync,notrunc; ", kib / 4);
    let script = [
        "cd disk; mkdir -p 'a b'; ",
        &write("one", 4),
        "mv one 'a b/two'; ",
        &write("'a b/two'", 8),
        "ln 'a b/two' three; ",
        &write("three", 12),
        "rm three 'a b/two'; ",
        &write("four", 16),
        // it has no name when it is written
        "exec 5> five; rm five; dd if=/dev/zero of=/dev/fd/5 bs=4k count=5 conv=fsync",
    ]
    .concat();
    lab.record("t.tape", &RECORD, &["sh", "-c", &script]).expect(0);
    let ios = lab.analyze(&["block", "t.tape", "--format", "json"]).expect(0).json();
    let writes = ios.iter().filter(|io| io["disk"] == disk.name && io["op"] == "write" && io["holds"] == "file");
    let dir = lab.path("disk").display().to_string();
    let mut told: Vec<(String, u64, Option<u64>)> = Vec::new();
    for io in writes {
        let name = io["file"].as_str().map_or("", |name| name.strip_prefix(&dir).expect("below"));
        let (bytes, links) = (io["bytes"].as_u64().expect("bytes"), io["links"].as_u64());
        match told.last_mut() {
            // in two places of the disk
            Some(last) if last.0 == name && last.2 == links => last.1 += bytes,
            _ => told.push((name.to_owned(), bytes, links)),
        }
    }
    let last = told.last().expect("the last").clone();
    let of = |name: &str, bytes, links| (name.to_owned(), bytes, Some(links));
    let expected = [of("/one", 4096, 1), of("/a b/two", 8192, 1), of("/a b/two", 12288, 2), of("/four", 16384, 1)];
    let is_three = |(name, bytes, links): &(String, u64, Option<u64>)| {
        // either of its names
        let name = if name == "/three" { "/a b/two" } else { name };
        (name.to_owned(), *bytes, *links)
    };
    assert_eq!(told[..4].iter().map(is_three).collect::<Vec<_>>(), expected, "{told:?}");
    assert!(last.0.is_empty() || last.0 == "/five (deleted)", "{told:?}");
    assert_eq!(last.1, 20480, "{told:?}");
}

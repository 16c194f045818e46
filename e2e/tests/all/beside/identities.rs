//! Which file a name stands for (`file:identity`), against stat(2) of the same files on several file systems.

use std::collections::BTreeSet;

use serde_json::Value;
use systape_e2e::disk::has;
use systape_e2e::{Background, Lab, Run};

/// Opens files of ext4, tmpfs, overlayfs and a loop device's ext4, by several names, and prints what stat says of each: name, device, inode,
/// generation where the file system tells, links, type of the file system.
const OPENS: &str = r#"
import os, fcntl, struct, subprocess, sys
here = os.getcwd()
def run(*words): subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
def generation(fd):
    try: return struct.unpack('I', fcntl.ioctl(fd, 0x80087601, bytes(8))[:4])[0]
    except OSError: return None
def see(name, fs, flags=os.O_RDONLY, shown=None):
    fd = os.open(name, flags, 0o640)
    tell(fd, shown or here + '/' + name, fs)
    return fd
def tell(fd, name, fs):
    s = os.fstat(fd)
    print(name, os.major(s.st_dev) << 20 | os.minor(s.st_dev), s.st_ino, generation(fd), s.st_nlink, s.st_mode, fs)
for d in ['tmp', 'lower', 'upper', 'work', 'both', 'loop', 'bound']: os.mkdir(d)
kind = subprocess.run(['stat', '-f', '-c', '%T', '.'], check=True, capture_output=True, text=True).stdout.strip()
kind = 'ext4' if kind == 'ext2/ext3' else kind
run('mount', '-t', 'tmpfs', 'none', 'tmp')
run('mount', '--bind', 'tmp', 'bound')
open('lower/below', 'w').write('x')
run('mount', '-t', 'overlay', '-o', 'lowerdir=lower,upperdir=upper,workdir=work', 'none', 'both')
see('plain', kind, os.O_RDWR | os.O_CREAT)
see('.', kind, shown=here)
os.link('plain', 'another')
see('another', kind)
os.symlink('plain', 'symlink')
see('symlink', kind, shown=here + '/plain')
see('tmp/a', 'tmpfs', os.O_RDWR | os.O_CREAT)
see('bound/a', 'tmpfs')
see('both/new', 'overlay', os.O_RDWR | os.O_CREAT)
see('both/below', 'overlay')
gone = see('tmp/gone', 'tmpfs', os.O_RDWR | os.O_CREAT)
os.unlink('tmp/gone')
tell(os.dup(gone), here + '/tmp/gone (deleted)', 'tmpfs')
if len(sys.argv) > 1:
    open('image', 'w').truncate(16 << 20)
    run('mkfs.ext4', '-q', 'image')
    run('mount', '-o', 'loop', 'image', 'loop')
    see('loop/file', 'ext4', os.O_RDWR | os.O_CREAT)
os.chdir('/')
for d in ['loop', 'both', 'bound', 'tmp']: subprocess.run(['umount', '-l', here + '/' + d], stderr=subprocess.DEVNULL)
"#;

/// What stat printed, without the generation where it had none to tell.
fn truth(run: &Run) -> Vec<Vec<String>> {
    let text = run.text();
    let lines = text.lines().filter(|line| line.starts_with('/'));
    lines.map(|line| line.rsplitn(7, ' ').map(str::to_owned).collect::<Vec<_>>().into_iter().rev().collect()).collect()
}

fn identities(lab: &Lab, tape: &str) -> Vec<Value> {
    let rows = lab.analyze(&[tape, "-e", "file:identity", "--format", "json"]).expect(0).json();
    rows.into_iter().map(|row| row["args"].clone()).collect()
}

fn is(row: &Value, told: &[String]) -> bool {
    let [path, numbers @ .., fs] = told else { panic!("{told:?}") };
    let names = ["device", "inode", "generation", "links", "mode"];
    // directories get others below them
    let is_directory = row["mode"].as_u64().is_some_and(|mode| mode & 0o170_000 == 0o040_000);
    let left_out = |name: &str, number: &str| number == "None" || (name == "links" && is_directory);
    let same = |(name, number): (&str, &String)| {
        left_out(name, number) || number.parse::<u64>().is_ok_and(|number| row[name] == number)
    };
    row["path"] == **path && row["fstype"] == **fs && names.into_iter().zip(numbers).all(same)
}

#[test]
fn a_name_has_the_inode_that_stat_says() {
    let Some(lab) = Lab::beside() else { return };
    let with_loop = if has("mkfs.ext4") && has("losetup") { &["loop"][..] } else { &[] };
    let run = lab.record("t.tape", &[], &[&["unshare", "-m", "python3", "-c", OPENS], with_loop].concat()).expect(0);
    let (rows, told) = (identities(&lab, "t.tape"), truth(&run));
    assert!(told.len() >= 10, "{}", run.text());
    for told in &told {
        assert!(rows.iter().any(|row| is(row, told)), "{told:?} in {rows:#?}");
    }
    // a file system of a device says so, others do not
    let backed = |fs: &str| -> BTreeSet<String> {
        rows.iter().filter(|row| row["fstype"] == fs).map(|row| row["device_backed"].to_string()).collect()
    };
    assert_eq!([backed("ext4"), backed("tmpfs"), backed("overlay")], ["1", "0", "0"].map(|is| [is.into()].into()));
    // once for each name and file in a part of the tape
    let here = lab.dir().canonicalize().expect("directory").join("plain");
    let of_plain = rows.iter().filter(|row| row["path"].as_str() == here.to_str()).count();
    assert!((1..3).contains(&of_plain), "{of_plain}");
    // what was executed
    let python = rows.iter().filter(|row| row["path"].as_str().is_some_and(|path| path.ends_with("bin/python3")));
    assert!(python.count() >= 1, "{rows:#?}");
}

/// Opens a file, says so, and reads it when it is told to.
const HOLDS: &str = "
import os, sys
held = os.open('held', os.O_RDWR | os.O_CREAT)
s = os.fstat(held)
open('ready', 'w').write(f'{os.getpid()} {s.st_ino} {os.major(s.st_dev) << 20 | os.minor(s.st_dev)}')
os.open('go', os.O_RDONLY)
os.read(held, 1)
";

#[test]
fn what_was_open_before_the_recording_is_known_too() {
    let Some(lab) = Lab::beside() else { return };
    systape_e2e::lab::run(lab.command("mkfifo").arg(lab.path("go"))).expect(0);
    let program = Background::start(lab.command("python3").args(["-c", HOLDS]));
    let ready = lab.until_file("ready");
    let [pid, inode, device] = ready.split(' ').collect::<Vec<_>>()[..] else { panic!("{ready}") };
    let record = lab.attach("t.tape", &["-p", pid, "-e", "read"]);
    std::fs::write(lab.path("go"), "x").expect("a reader");
    program.wait().expect(0);
    record.stop(libc::SIGINT).expect(0);
    let rows = identities(&lab, "t.tape");
    let held = lab.dir().canonicalize().expect("directory").join("held");
    let found: Vec<_> = rows.iter().filter(|row| row["path"].as_str() == held.to_str()).collect();
    assert!(!found.is_empty(), "{rows:#?}");
    for row in found {
        assert_eq!([row["inode"].to_string(), row["device"].to_string()], [inode, device], "{row}");
    }
}

/// Removes files that are called `precious` in the directory `kept`, by other names; says of each what `kept/precious` was called then.
const REMOVES: &str = r#"
import os, sys
def make(name='kept/precious'):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600))
os.mkdir('kept'); os.symlink('kept', 'link')
make(); os.unlink('link/precious')                                                  # by a symbolic link
make(); os.link('kept/precious', 'other'); os.close(os.open('other', os.O_RDONLY)); os.unlink('other')  # by another name, 2 calls
os.unlink('kept/precious')
make(); os.rename('kept', 'moved'); os.unlink('moved/precious')                     # after its directory moved
os.rename('moved', 'kept')
make(); os.rename('kept/precious', 'away'); os.unlink('away')                       # after it moved itself, 2 calls
make(); make('new'); os.rename('new', 'kept/precious')                              # another in its place
os.unlink('kept/precious')
make('elsewhere'); os.unlink('elsewhere')                                           # something else
os.mkdir('far'); make('far/precious'); os.unlink('far/precious')                    # something else of that name
os.mkdir('kept/sub'); os.rename('kept', 'gone'); os.rmdir('gone/sub')
"#;

/// What calls that take away or change names of files did, of those on `path`: call, paths that it gave.
fn removals(lab: &Lab, path: &str) -> Vec<(String, Vec<String>)> {
    let calls =
        lab.analyze(&["-P", path, "-e", "unlink,rename,rmdir,link", "--format", "json", "t.tape"]).expect(0).json();
    let paths = |row: &Value| {
        let args = row["args"].as_object().expect("arguments");
        // as they stand in the call
        ["oldname", "pathname", "newname"]
            .iter()
            .filter_map(|name| Some(args.get(*name)?.as_str()?.to_owned()))
            .collect()
    };
    calls.iter().map(|row| (row["syscall"].as_str().expect("a name").to_owned(), paths(row))).collect()
}

fn removed_on(fs: &str, by_link: bool) {
    let Some(lab) = Lab::beside() else { return };
    let at = lab.path("at");
    std::fs::create_dir(&at).expect("a directory");
    let script = format!("mount -t {fs} none at 2>/dev/null; cd at; python3 -c '{}'", REMOVES.replace('\'', "\""));
    lab.record("t.tape", &[], &["unshare", "-m", "sh", "-c", &script]).expect(0);
    lab.assert_whole("t.tape");
    let here = at.canonicalize().expect("directory");
    let file = here.join("kept/precious").to_str().expect("UTF-8").to_owned();
    let call = |name: &str, paths: &[&str]| (name.to_owned(), paths.iter().map(|&path| path.to_owned()).collect());
    let mut expected = vec![
        call("unlink", &["link/precious"]),
        call("link", &["kept/precious", "other"]),
        call("unlink", &["other"]),
        call("unlink", &["kept/precious"]),
        call("unlink", &["moved/precious"]),
        call("rename", &["kept/precious", "away"]),
        call("unlink", &["away"]),
        call("rename", &["new", "kept/precious"]),
        call("unlink", &["kept/precious"]),
    ];
    if !by_link {
        expected.remove(0);
    }
    assert_eq!(removals(&lab, &file), expected);
    // what is not known to be another file is told of
    let run = lab.analyze(&["-P", &file, "-e", "unlink,rename,rmdir,link", "t.tape"]).expect(0);
    let note = "removal or renaming of a file of that name in another directory";
    let said = run.text() + &run.complaints();
    assert_eq!(said.contains(note), !by_link, "{said}");
    let line = said.lines().find(|line| line.contains("unlink(pathname: \"link/precious\")"));
    let named = line.map(|line| line.ends_with(&format!("= 0<{file}>")));
    assert_eq!(named, by_link.then_some(true), "{said}");
    let dir = here.join("kept/sub").to_str().expect("UTF-8").to_owned();
    let ours: Vec<_> = removals(&lab, &dir).into_iter().map(|(name, _)| name).collect();
    assert_eq!(ours, ["rmdir"], "after its directory moved");
}

#[test]
fn who_deleted_a_file_is_found_by_whatever_name_on_tmpfs() {
    removed_on("tmpfs", false);
}

#[test]
fn who_deleted_a_file_is_found_by_whatever_name_on_ext4() {
    if std::path::Path::new("/sys/kernel/tracing/events/ext4/ext4_unlink_enter").exists() {
        removed_on("nothing", true);
    }
}

/// Reads files that are not in the page cache, one of them through a mapping and one opened before the recording; says how many pages each has.
const READS: &str = r#"
import mmap, os, sys
def cold(name, pages):
    with open(name, 'wb') as file:
        file.write(b'x' * 4096 * pages)
        file.flush(); os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    print(os.path.realpath(name), pages)
sizes = {'one': 3, 'two': 5, 'mapped': 4, 'renamed': 7}
if sys.argv[1] == 'make':
    for name, pages in sizes.items(): cold(name, pages)
    sys.exit()
for name, pages in sizes.items():
    fd = os.open(name, os.O_RDONLY)
    if name == 'renamed':
        os.rename(name, 'by another name')
        fd = os.open('by another name', os.O_RDONLY)
    if name == 'mapped':
        map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        for page in range(pages): map[page * 4096]
    else:
        os.read(fd, pages * 4096)
"#;

#[test]
fn events_of_the_page_cache_have_the_names_of_files() {
    let Some(lab) = Lab::beside() else { return };
    let event = "filemap:mm_filemap_add_to_page_cache";
    let made = systape_e2e::lab::run(lab.command("python3").args(["-c", READS, "make"])).expect(0);
    lab.record("t.tape", &["-e", event], &["python3", "-c", READS, "read"]).expect(0);
    lab.assert_whole("t.tape");
    let rows = lab.analyze(&["t.tape", "-e", event, "--format", "json"]).expect(0).json();
    let top = lab
        .analyze(&["top", "t.tape", "-e", event, "--by", "file", "--top", "1000", "--format", "json"])
        .expect(0)
        .json();
    for line in made.text().lines() {
        let (path, pages) = line.rsplit_once(' ').expect("a path and a number");
        let path = path.replace("renamed", "by another name");
        let of_file: Vec<_> = rows.iter().map(|row| &row["args"]).filter(|args| args["file"] == *path).collect();
        let order = |args: &&Value| 1u64 << args["order"].as_u64().unwrap_or(0);
        let brought: u64 = of_file.iter().map(order).sum();
        assert_eq!(brought, pages.parse::<u64>().expect("a number"), "{path}: {rows:#?}");
        let counted: Vec<_> =
            top.iter().filter(|row| row["fields"]["file"] == *path).map(|row| row["count"].clone()).collect();
        assert_eq!(counted, [Value::from(of_file.len())], "{path}: {top:#?}");
    }
    // whose file is not known has its numbers
    let unknown = |row: &&Value| row["args"]["file"].as_str().is_none();
    assert_eq!(rows.iter().filter(unknown).count(), 0);
}

#[test]
fn a_cut_says_which_files_its_names_are() {
    let Some(lab) = Lab::beside() else { return };
    let program = "import os
os.open('a', os.O_RDWR | os.O_CREAT); os.link('a', 'b'); os.open('b', os.O_RDWR); os.unlink('b')";
    // one segment, which the cut has a part of
    lab.record("t.tape", &["--flush", "60s"], &["python3", "-c", program]).expect(0);
    let path = lab.dir().canonicalize().expect("directory").join("a");
    let of_a =
        |tape: &str| lab.analyze(&["-P", path.to_str().expect("UTF-8"), "-e", "=unlink", "--format", "json", tape]);
    let found = of_a("t.tape").expect(0).json();
    assert_eq!(found.len(), 1, "{found:?}");
    let from = format!("{}ns,", found[0]["ts_ns"].as_u64().expect("a time"));
    lab.analyze(&["cut", "t.tape", "cut.tape", "--time", &from]).expect(0);
    assert_eq!(of_a("cut.tape").expect(0).json().len(), 1);
}

#[test]
fn files_of_others_are_known_where_all_is_recorded() {
    let Some(lab) = Lab::with_bpf() else { return };
    std::fs::write(lab.path("theirs"), "x").expect("a file");
    let path = lab.dir().canonicalize().expect("directory").join("theirs");
    let record = lab.attach("t.tape", &["-a", "-e", "openat"]);
    systape_e2e::lab::run(lab.command("cat").arg(&path)).expect(0);
    record.stop(libc::SIGINT).expect(0);
    let rows = identities(&lab, "t.tape");
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).expect("metadata"));
    let of_path: Vec<_> = rows.iter().filter(|row| row["path"].as_str() == path.to_str()).collect();
    assert!(!of_path.is_empty() && of_path.iter().all(|row| row["inode"] == inode), "{of_path:?}");
}

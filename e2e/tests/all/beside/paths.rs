//! `analyze -P PATH` against `strace -P PATH` on the same commands, call by call.

use systape_e2e::{Lab, strace};

/// Opens a file by relative names, by its full path and by way of inherited and copied descriptors, and renames it; $1 is the directory
/// it is in.
const SCRIPT: &str = "cd \"$1\"; echo hi > one; cat one; cat \"$1/one\"; cat < one; cd e; cat ../one >&2; exec 5< \"$1/one\"; read line <&5; \
                      mv \"$1/one\" \"$1/two\"; cat \"$1/two\"; cd ..; rm two";

/// What a call did: its name, what it returned, its error.
type Did = (String, Option<i64>, Option<String>);

fn directory(lab: &Lab) -> String {
    std::fs::create_dir_all(lab.path("d/e")).expect("directories");
    lab.dir().canonicalize().expect("directory").join("d").to_str().expect("UTF-8").to_owned()
}

#[test]
fn calls_on_a_path_are_those_of_strace_and_relative_opens() {
    let (Some(lab), other) = (Lab::beside(), Lab::plain()) else { return };
    let here = directory(&lab);
    lab.record("t.tape", &[], &["sh", "-c", SCRIPT, "sh", &here]).expect(0);
    lab.assert_whole("t.tape");
    let there = directory(&other);
    for name in ["one", "two"] {
        let path = format!("{here}/{name}");
        let run = lab.analyze(&["-P", &path, "--format", "json", "t.tape"]).expect(0);
        let (mut relative, mut ours) = (0, Vec::<Did>::new());
        for row in run.json() {
            // strace compares paths as they are named, whatever they are relative to and lead to
            let given = row["args"]["filename"].as_str().or(row["args"]["pathname"].as_str());
            // and knows nothing of what the removed file was called before
            let moved = given == Some("two") && row["syscall"].as_str().is_some_and(|call| call.starts_with("unlink"));
            if moved || given.is_some_and(|given| given.trim_start_matches("../") == name) {
                relative += 1;
                continue;
            }
            let errno = row["errno"].as_str().map(str::to_owned);
            ours.push((row["syscall"].as_str().expect("a name").to_owned(), row["ret"].as_i64(), errno));
        }
        let traced = strace::trace(&other, &["-P", &format!("{there}/{name}")], &["sh", "-c", SCRIPT, "sh", &there]);
        let mut theirs: Vec<Did> = traced.into_iter().map(|call| (call.name, call.ret, call.errno)).collect();
        ours.sort();
        theirs.sort();
        assert!(ours.len() > 5 && relative > 0, "{name}: {relative} relative, {ours:?}");
        assert_eq!(ours, theirs, "{name}");
        // what is listed is what is counted
        let sums = lab.analyze(&["-s", "--summary-mode", "total", "-P", &path, "--format", "json", "t.tape"]).expect(0);
        let counted: u64 = sums.json().iter().map(|row| row["calls"].as_u64().unwrap_or(0)).sum();
        assert_eq!(counted, ours.len() as u64 + relative, "{name}");
    }
}

/// Goes about in processes, subshells and threads, by names and by a descriptor, and opens what is not there; $1 is the directory it is in.
const WALKS: &str = "cat a; cd \"$1\"; (cat b; cd e; cat c; (cd /; cat d); cat e) ; cat f; cd /absent; cat g; python3 -c '
import os, threading
def look(name):
    try: os.open(name, os.O_RDONLY)
    except OSError: pass
look(\"h\"); os.chdir(\"e\"); look(\"i\"); os.fchdir(os.open(\"/usr\", os.O_RDONLY)); look(\"j\"); os.chdir(\"lib\"); look(\"k\")
thread = threading.Thread(target=lambda: os.chdir(\"/\")); thread.start(); thread.join(); look(\"l\")
if os.fork() == 0:
    os.chdir(\"/usr\"); look(\"m\"); os._exit(0)
os.wait(); look(\"n\")
'; cat o";

#[test]
fn directories_in_the_listing_are_those_of_strace() {
    let (Some(lab), other) = (Lab::beside(), Lab::plain()) else { return };
    let here = directory(&lab);
    let command = ["sh", "-c", WALKS, "sh", &here];
    lab.record("t.tape", &[], &command).expect(1);
    lab.assert_whole("t.tape");
    let calls = lab.analyze(&["-y", "-e", "openat", "--format", "json", "t.tape"]).expect(0).json();
    let ours = calls.iter().filter(|row| row["args"]["dfd"]["text"] == "AT_FDCWD").filter_map(|row| {
        let name = row["args"]["filename"].as_str().filter(|name| !name.starts_with('/'))?;
        Some((name.to_owned(), row["args"]["dfd"]["path"].as_str().expect("a directory").to_owned()))
    });
    let mut ours: Vec<_> = ours.collect();
    let traced = strace::trace(&other, &["-y", "-e", "trace=openat"], &command);
    let theirs = traced.iter().filter_map(|call| {
        let words = call.split();
        let path = words[0].strip_prefix("AT_FDCWD<")?.strip_suffix('>')?;
        let text =
            |printed: &str| String::from_utf8(strace::string(&format!("\"{printed}\"")).expect("text")).expect("UTF-8");
        let name = text(words[1].trim_matches('"'));
        (!name.starts_with('/')).then(|| (name, text(path)))
    });
    let mut theirs: Vec<_> = theirs.collect();
    ours.sort();
    theirs.sort();
    assert!(ours.len() >= 15, "{ours:?}");
    // each begins in a directory of its own
    assert_eq!((&ours[0].0, &ours[1..]), (&theirs[0].0, &theirs[1..]));
}

/// Opens one file by five ways, and reads 50 bytes of it each time; and one that is not there.
const WAYS: &str = "
import os
os.mkdir('real')
os.symlink('real', 'link')
open('real/file', 'w').write('x' * 100)
for path in ['real/file', 'link/file', 'real/../real/file', os.getcwd() + '/link/file']:
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 50)
    again = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY) if path == 'real/file' else None
    if again is not None:
        os.read(again, 50)
try:
    os.open('link/none', os.O_RDONLY)
except OSError:
    pass
";

#[test]
fn an_open_is_of_the_file_that_was_opened_whatever_it_was_called() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["python3", "-c", WAYS]).expect(0);
    let here = lab.dir().canonicalize().expect("directory");
    let file = here.join("real/file").to_str().expect("UTF-8").to_owned();
    let rows = lab.analyze(&["files", "t.tape", "--format", "json"]).expect(0).json();
    let of = |end: &str| {
        rows.iter().filter(|row| row["file"].as_str().is_some_and(|file| file.ends_with(end))).collect::<Vec<_>>()
    };
    let all = of("/file");
    assert_eq!(all.len(), 1, "{all:?}");
    let numbers = ["opens", "reads", "writes"].map(|column| all[0][column].as_u64());
    assert_eq!((all[0]["file"].as_str(), numbers), (Some(&*file), [Some(6), Some(5), Some(1)]), "{all:?}");
    // there is none: as it was named
    let none = of("link/none");
    assert_eq!(none.iter().map(|row| row["errors"].as_u64()).collect::<Vec<_>>(), [Some(1)], "{none:?}");

    let opens = lab.analyze(&["files", "--opens", "t.tape", "--format", "json"]).expect(0).json();
    let given: Vec<_> =
        opens.iter().filter(|row| row["file"] == *file).map(|row| row["name"].as_str().expect("a name")).collect();
    let link = here.join("link/file");
    let link = link.to_str().expect("UTF-8");
    assert_eq!(given[..3], ["real/file", "real/file", "/proc/self/fd/3"], "{given:?}");
    assert_eq!(given[3..], ["link/file", "real/../real/file", link], "{given:?}");
    let run = lab.analyze(&["files", "--opens", "t.tape"]).expect(0);
    assert!(run.text().contains(&format!("{file} (opened as {link})\n")), "{}", run.text());

    // by either name
    let picked = |path: &str| {
        lab.analyze(&["files", "--opens", "-P", path, "t.tape", "--format", "json"]).expect(0).json().len()
    };
    assert_eq!((picked(&file), picked(link)), (6, 2));
}

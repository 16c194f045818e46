"""analyze export strace: a parser that is not ours reads every line, and real strace of the same programs writes the same.

The parser is stracetools' of PyPI. Where our lines and strace's differ beyond times, addresses and pids is listed in KNOWN, as
docs/guides/export.md says it.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ANALYZE = os.environ["ANALYZE"]
RECORD = os.environ.get("RECORD", "")

PROGRAMS = [
    "true",
    "ls -l /etc",
    "cat /etc/passwd",
    "sh -c 'exit 3'",
    "sh -c 'sleep 9 & kill -9 $!; sleep 0.2; wait'",
    "sh -c 'kill -SEGV $$'",
    "sh -c 'echo a | tr a b'",
    "dd if=/dev/zero of=/dev/null bs=4096 count=50",
    "find /etc/apt -name '*.list'",
    "grep -r nobody /etc/passwd /etc/group /nonexistent",
]

BUFFER = "contents of buffers, which are not recorded"
STRUCT = "structures that are not recorded"
ORDER = "order of flags"

# call → what of its arguments differs; docs/guides/export.md has the same
KNOWN = {
    "execve": "number of variables behind the environment",
    "fcntl": "names of what F_SETFD and F_SETFL set and F_GETFL returns",
    "fstatfs": STRUCT,
    "futex": "arguments that the operation does not take; _PRIVATE is FUTEX_PRIVATE_FLAG",
    "getdents64": "number of entries",
    "getrandom": BUFFER,
    "ioctl": STRUCT,
    "openat": ORDER,
    "pipe2": ORDER,
    "pread64": BUFFER,
    "read": BUFFER,
    "readlink": BUFFER,
    "rt_sigreturn": "signals that are blocked again",
    "rseq": "a number in hexadecimal",
    "sigaltstack": STRUCT,
    "socket": ORDER,
    "statfs": STRUCT,
    "statx": "AT_STATX_SYNC_AS_STAT, and most fields of its structure",
    "sysinfo": STRUCT,
    "uname": STRUCT,
    "write": BUFFER,
}


def parser():
    """stracetools' parser alone: the package also draws, with libraries of its own."""
    spec = importlib.util.find_spec("stracetools")
    path = Path(spec.submodule_search_locations[0], "parser.py")
    spec = importlib.util.spec_from_file_location("stracetools_parser", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.StraceParser()


def run(*words, check=True):
    done = subprocess.run(list(map(str, words)), capture_output=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout.decode()


def lines_are_read(text):
    """Number of events by kind, and the lines that the parser does not know."""
    reads, kinds, wrong = parser(), Counter(), []
    for line in text.splitlines():
        event = reads.parse_line(line)
        if event is None and line.endswith("<unfinished ...>"):
            # it is given back where it ends
            known = any(begun.raw_line.split() == line.split() for begun in reads.unfinished_calls.values())
            kinds["unfinished"] += known
            wrong += [] if known else [line]
        elif event is None:
            wrong.append(line)
        else:
            kinds[event.event_type.value] += 1
    return kinds, wrong


def joined(text):
    """(thread, call) in order: name, arguments, result, without times. What was unfinished is whole again."""
    begun, calls, others = {}, defaultdict(list), defaultdict(list)
    for line in text.splitlines():
        tid, _, rest = re.match(r"(\d+) +(\S+) (.*)", line).groups()
        if rest.startswith(("---", "+++")):
            others[tid].append(re.sub(r",? si_([us]time|pid)=\d+", "", rest))
            continue
        if rest.endswith("<unfinished ...>"):
            begun[tid] = rest.removesuffix(" <unfinished ...>")
            continue
        if again := re.match(r"<\.\.\. \S+ resumed>(.*)", rest):
            rest = begun.pop(tid) + again[1]
        name, args, result = re.match(r"(\w+)\((.*)\) += (.*)$", rest).groups()
        calls[tid].append((name, args, re.sub(r" <[\d.]+>$| <unavailable>$", "", result)))
    return list(calls.values()), list(others.values())


def shape(text):
    """Without addresses, pids and sizes that differ from run to run."""
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDR", text)
    return re.sub(r"\b\d{3,}\b", "N", text)


def signals(threads):
    """How often each signal and end came. A SIGCHLD that comes while one is pending is that one: which children's are one, chance says."""
    all_of_them = Counter(re.sub(r"[ ,]+", " ", shape(text)) for some in threads for text in some)
    return {text: 1 if "SIGCHLD" in text else times for text, times in all_of_them.items()}


def compared(program, differences):
    with tempfile.TemporaryDirectory() as scratch:
        tape, listing = Path(scratch, "t.tape"), Path(scratch, "t.strace")
        run(RECORD, "-q", "--families", "syscall,process,signal", "--structs", "all", "-o", tape, "--", "sh", "-c", f"exec {program}", check=False)
        run("strace", "-f", "-ttt", "-T", "-s", "4096", "-o", listing, "sh", "-c", f"exec {program}", check=False)
        ours = run(ANALYZE, "export", "strace", tape)
        kinds, wrong = lines_are_read(run(ANALYZE, "export", "strace", "--clock", "wall", tape))
        (mine, my_others), (theirs, their_others) = joined(ours), joined(listing.read_text())
    both = 0
    bad = [f"{program}: not read: {line[:200]}" for line in wrong]
    for a, b in zip(mine, theirs):
        for (name, args, result), (other, their_args, their_result) in zip(a, b):
            # two runs may differ in what they do
            if name != other:
                break
            both += 1
            # a kill cuts each run in another call
            if name not in ("exit", "exit_group") and "?" in (result, their_result):
                break
            if name not in KNOWN and shape(args) != shape(their_args):
                differences[name, "arguments"].append((args[:160], their_args[:160]))
            if name not in KNOWN and re.sub(r"^\d+", "N", shape(result)) != re.sub(r"^\d+", "N", shape(their_result)):
                differences[name, "result"].append((result[:80], their_result[:80]))
    mine, theirs = signals(my_others), signals(their_others)
    if mine != theirs:
        differences["signals", program].append((str(mine)[:300], str(theirs)[:300]))
    print(f"{program}: {dict(kinds)}; {both} calls beside strace's")
    if both < 20:
        bad.append(f"{program}: only {both} calls are the same as strace's")
    return bad


def main(tapes):
    bad, differences = [], defaultdict(list)
    for tape in tapes:
        kinds, wrong = lines_are_read(run(ANALYZE, "export", "strace", "--clock", "wall", tape))
        print(f"{Path(tape).name}: {dict(kinds)}")
        bad += [f"{tape}: not read: {line[:200]}" for line in wrong]
    for program in PROGRAMS if RECORD else []:
        bad += compared(program, differences)
    for (name, what), some in differences.items():
        bad.append(f"{name}, {what}: {some[0][0]} in ours, {some[0][1]} in strace's; {len(some)} such")
    for text in bad[:20]:
        print(f"WRONG: {text}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1:])

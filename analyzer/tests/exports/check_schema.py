"""Lines of JSON that analyze prints, held against the schemas that it prints of them."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

ANALYZE = os.environ["ANALYZE"]

# what each report is asked with besides --format json; without an entry: its own words
WORDS = {
    "listing": [""],
    "summary": ["-s", "-s --summary-mode thread", "-s -e 'read,sched:*'"],
    "with-summary": ["-S"],
    "top": ["top", "top --by file,errno,comm", "top -e sched:sched_switch --by cpu"],
    "block": ["block", "block --top", "block --hist"],
    "exec": ["exec", "exec --tree --all"],
    "files": ["files", "files --opens"],
    "kills": ["kills --all"],
    "net": ["net", "net --events", "net --by comm,peer", "net --udp"],
    "offcpu": ["offcpu", "offcpu --wakers 100"],
    "path": ["path", "path --sums", "path --without read"],
    "states": ["states", "states --at 50%", "states --at 90% --call-graph"],
    "tables": ["tables", "tables calls"],
    "why": ["why --expand", "why --when"],
    "fds": ["fds --at 50%"],
    "across": ["across", "across --slowest 5"],
}
# a log, of which the report makes a tape
LOG = Path(__file__).parents[3] / "testdata" / "strace" / "whole.log"
# two machines that were recorded at the same time
MACHINES = " ".join(str(Path(__file__).parents[3] / "testdata" / "guides" / name) for name in ["web.tape", "db.tape"])
# what writes a file, or is asked about two
NOT_HERE = {"repair", "redact", "cut", "merge", "list", "assert", "diff"}


def ask(words):
    got = subprocess.run(["sh", "-c", f"exec {ANALYZE} {words}"], capture_output=True)
    return got.returncode, got.stdout.decode(), got.stderr.decode()


def main(tapes):
    _, names, _ = ask("schema")
    reports = names.split("\n")[:-1]
    checked = {}
    for report in reports:
        status, text, error = ask(f"schema '{report}'")
        if status != 0:
            sys.exit(f"schema {report}: {error}")
        schema = json.loads(text)
        jsonschema.Draft202012Validator.check_schema(schema)
        if report in NOT_HERE:
            continue
        validator = jsonschema.Draft202012Validator(schema)
        for words in WORDS.get(report, [report]):
            for tape in {"import strace": [LOG], "across": [MACHINES]}.get(report, tapes):
                place = f"-i {tape}" if report == "tables" else tape
                if report == "import strace":
                    place = f"-o {tempfile.mkdtemp(prefix='schema')}/t.tape {tape}"
                status, out, error = ask(f"{words} --format json {place}")
                if status == 2:
                    sys.exit(f"analyze {words}: {error}")
                # many lines of a kind say no more than some
                for line in out.splitlines()[:200]:
                    row = json.loads(line)
                    wrong = jsonschema.exceptions.best_match(validator.iter_errors(row))
                    if wrong is not None:
                        sys.exit(f"WRONG: analyze {words} {tape}: {wrong.message} in {line[:300]}")
                    checked[report] = checked.get(report, 0) + 1
    silent = [report for report in reports if report not in checked and report not in NOT_HERE]
    # on tapes without look-ups, probes and variables there is nothing to hold against
    allowed = {"net", "gethostlatency", "probes", "env", "biosnoop", "biolatency", "tcplife", "locks"}
    # nor without exchanges and looks, of which there are tapes only where somebody may record
    if not any("fresh" in Path(tape).name for tape in tapes):
        allowed |= {"requests", "stays"}
    if set(silent) - allowed:
        sys.exit(f"WRONG: no line of {sorted(set(silent) - allowed)}")
    # a schema that holds for anything is none
    broken = json.loads(ask(f"-s --format json {tapes[0]}")[1].splitlines()[0])
    validator = jsonschema.Draft202012Validator(json.loads(ask("schema summary")[1]))
    for change in ({"calls": "many"}, {"unheard_of": 1}):
        if validator.is_valid({**broken, **change}):
            sys.exit(f"WRONG: the schema holds for {change}")
    print(f"schema: {sum(checked.values())} lines of {len(checked)} reports, {len(reports)} schemas")


main(sys.argv[1:])

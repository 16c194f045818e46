"""analyze mcp, asked by the official client: both ways to begin, every tool, and rows that are those of the command line."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

ANALYZE = os.environ["ANALYZE"]
HAS_SQL = (Path(ANALYZE).parent / "analyze-sql").exists()

# each tool: its arguments, and the same question as words
QUESTIONS = {
    "list": ({}, "list"),
    "info": ({}, "info"),
    "why": ({"floor": "0"}, "why --floor 0"),
    "path": ({}, "path"),
    "top": ({"by": ["comm", "syscall"], "metric": "calls"}, "top --by comm,syscall --metric calls"),
    "summary": ({"limit": 10}, "summary"),
    "calls": ({"failure": True}, "trace --failure"),
    "kills": ({"all": True}, "kills --all"),
    "requests": ({"by": ["comm"]}, "requests --by comm"),
    "stays": ({}, "stays"),
    "diff": ({"before": "0,50%", "after": "50%,100%"}, "diff --before 0,50% --after 50%,100%"),
    "sql": ({"query": "SELECT syscall, count(*) AS n FROM syscalls GROUP BY 1 ORDER BY 2 DESC, 1"}, None),
    "schema": ({"report": "why"}, None),
}


def analyze(words):
    return subprocess.run([ANALYZE, *words], capture_output=True, text=True)


def text_of(result):
    (content,) = result.content
    assert content.type == "text" and len(content.text.encode()) <= 16 << 10, content
    return json.loads(content.text)


async def ask(client, tool, tape):
    arguments, words = QUESTIONS[tool]
    if tool not in ("list", "schema"):
        arguments = {**arguments, "tape": tape}
    result = await client.call_tool(tool, arguments)
    answer = text_of(result)
    if tool == "sql" and not HAS_SQL:
        assert result.is_error and "analyze-sql" in answer["error"], answer
        return
    if tool == "sql":
        got = analyze(["sql", "--format", "json", arguments["query"], tape])
    elif words:
        got = analyze([*words.split(" "), "--format", "json", tape])
    else:
        got = None
    if got is not None and got.returncode != 0:
        assert result.is_error and answer["error"] in got.stderr, (answer, got.stderr)
        return
    assert not result.is_error, answer
    if got is not None:
        # losses of a listing stand beside its rows
        rows = [json.loads(line) for line in got.stdout.splitlines() if not line.startswith('{"lost":')]
        rows = rows[:-1] if tool == "sql" else rows
        shown = len(answer["rows"])
        assert answer["rows"] == rows[:shown], (tool, tape, answer)
        # of very many rows it counts ten thousand
        more = len(rows) - shown
        assert answer["more"] <= more if answer.get("more_at_least") else answer["more"] == more, (tool, tape, more, answer)
        assert shown > 0 or not rows, (tool, tape, answer)
    assert isinstance(answer["complete"], bool), answer


async def drive(mode, tape):
    server = StdioServerParameters(command=ANALYZE, args=["mcp", tape])
    async with Client(server, mode=mode, read_timeout_seconds=120) as client:
        version = client.protocol_version
        listed = await client.list_tools()
        names = [tool.name for tool in listed.tools]
        assert names == list(QUESTIONS), names
        for tool in listed.tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.annotations.read_only_hint and tool.description, tool
            jsonschema.validate(QUESTIONS[tool.name][0] if tool.name != "diff" else {"tape": tape}, tool.input_schema)
            await ask(client, tool.name, tape)
        refused = await client.call_tool("info", {"tape": "../" + tape})
        assert refused.is_error and "no tape of that name" in text_of(refused)["error"], refused
        for name, arguments in (("rm", {}), ("top", {"pid": "x"}), ("top", {"output": "x"})):
            try:
                await client.call_tool(name, arguments)
                sys.exit(f"{name} {arguments} was answered")
            except MCPError as error:
                assert error.error.code == -32602, error
    return version


def main(tapes):
    versions = set()
    for tape in tapes:
        for mode in ("legacy", "auto"):
            versions.add(asyncio.run(drive(mode, tape)))
    assert len(versions) == 2, versions
    print(f"mcp: {len(tapes)} tapes, {len(QUESTIONS)} tools, versions {', '.join(sorted(versions))}")


main(sys.argv[1:])

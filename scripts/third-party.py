#!/usr/bin/env python3
"""What is linked into a program, from cargo's own list: third-party.py licences|sbom PACKAGE...

In the directory of the workspace. licences: a text with each crate, its licence and the licence's words as its authors ship them, and those of the C libraries that static
programs have in them. sbom: the same list as CycloneDX 1.5 (JSON). Equal trees give equal output. An unknown licence or a missing text fails.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

TARGET = os.environ.get("TARGET", "x86_64-unknown-linux-gnu")
# in static programs beside what crates bring: Debian package, licence, who needs it
C_LIBRARIES = [
    ("libelf", "libelf-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later", {"systape-recorder"}),
    ("zlib", "zlib1g-dev", "Zlib", {"systape-recorder"}),
    ("glibc", "libc6-dev", "LGPL-2.1-or-later", {"systape-recorder", "systape-analyzer", "systape"}),
]
NAMES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def crates(roots):
    """Packages that are compiled into `roots`, without those that only build them."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"]
    data = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] in roots and package["source"] is None]
    if len(todo) != len(roots):
        sys.exit(f"third-party: no such package among {', '.join(roots)}")
    seen = set(todo)
    while todo:
        for dep in nodes[todo.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dep["dep_kinds"])
            proc_macro = any("proc-macro" in target["kind"] for target in packages[dep["pkg"]]["targets"])
            if linked and not proc_macro and dep["pkg"] not in seen:
                seen.add(dep["pkg"])
                todo.append(dep["pkg"])
    found = [packages[id] for id in seen if packages[id]["source"] is not None]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Files of a crate with words of a licence; also those of the C code in it."""
    root = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in sorted(root.iterdir()) if path.is_file() and NAMES.match(path.name)]
    files += [path for path in sorted(root.glob("*/")) if path.is_dir() and path.name.lower() in ("licenses", "license")]
    found = []
    for path in files:
        found += sorted(path.iterdir()) if path.is_dir() else [path]
    # sources of C libraries that a crate builds: zstd, libbpf
    for below in ("zstd", "libbpf", "vendor", "xz", "liblzma"):
        if (root / below).is_dir():
            found += [path for path in sorted((root / below).iterdir()) if path.is_file() and NAMES.match(path.name)]
    return [(path.relative_to(root), path.read_text(errors="replace")) for path in found if path.is_file()]


def licences(roots):
    print("What is linked into " + ", ".join(roots) + " besides their own code, and under which licence.\n")
    shared = {}
    for package in crates(roots):
        if not package["license"]:
            sys.exit(f"third-party: {package['name']}: no licence is declared")
        print(f"{package['name']} {package['version']}: {package['license']}")
        print(f"    {package['repository'] or 'https://crates.io/crates/' + package['name']}")
        for path, text in texts(package):
            # many ship the same words
            shared.setdefault("\n".join(line.rstrip() for line in text.strip().splitlines()), []).append(f"{package['name']} {path}")
    for name, debian, licence, users in C_LIBRARIES:
        if users & set(roots):
            path = pathlib.Path(f"/usr/share/doc/{debian}/copyright")
            if not path.is_file():
                sys.exit(f"third-party: {path} is missing: the words of {name}'s licence")
            print(f"{name} (in static programs): {licence}")
            shared.setdefault(path.read_text(errors="replace").strip(), []).append(f"{name}, as Debian ships it")
    print("\nThe LGPL lets you link the programs with another libelf or glibc: their source is in the repository, and `make dist` links them.")
    for text, users in sorted(shared.items(), key=lambda item: item[1]):
        print("\n" + "=" * 100 + "\n" + "; ".join(users) + "\n" + "-" * 100 + "\n" + text)


def sbom(roots):
    version = re.search(r'^\[workspace\.package\].*?^version = "(.*?)"', pathlib.Path("Cargo.toml").read_text(), re.M | re.S)[1]
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:cargo/{package['name']}@{package['version']}",
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}],
            "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        }
        for package in crates(roots)
    ]
    for name, _, licence, users in C_LIBRARIES:
        if users & set(roots):
            components.append({"type": "library", "bom-ref": f"pkg:generic/{name}", "name": name, "licenses": [{"expression": licence}]})
    refs = [component["bom-ref"] for component in components]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # of the contents: equal lists have equal numbers
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, "systape" + version + json.dumps(components, sort_keys=True))),
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "systape", "name": "systape", "version": version}},
        "components": components,
        "dependencies": [{"ref": "systape", "dependsOn": refs}],
    }
    print(json.dumps(bom, indent=1))


if len(sys.argv) < 3 or sys.argv[1] not in ("licences", "sbom"):
    sys.exit(__doc__)
{"licences": licences, "sbom": sbom}[sys.argv[1]](sys.argv[2:])

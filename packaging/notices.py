#!/usr/bin/env python3
"""Prints the notices of third parties: for each crate in the program its name, version, licence and authors, and the texts that come
with it, each once. `packaging/notices.py >NOTICES`, which `make deb` does; it reads what cargo has downloaded.
"""

import json
import os
import subprocess
import sys

NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def metadata():
    words = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def linked(all_of_it):
    """The crates that the program is linked from: not those that only build or test it."""
    nodes = {node["id"]: node for node in all_of_it["resolve"]["nodes"]}
    packages = {package["id"]: package for package in all_of_it["packages"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "sluice"]
    found = set()
    while waiting:
        crate = waiting.pop()
        if crate in found:
            continue
        found.add(crate)
        for other in nodes[crate]["deps"]:
            if any(kind["kind"] is None for kind in other["dep_kinds"]):
                waiting.append(other["pkg"])
    return sorted((packages[crate] for crate in found if packages[crate]["source"]), key=lambda crate: (crate["name"], crate["version"]))


def texts(crate):
    folder = os.path.dirname(crate["manifest_path"])
    for name in sorted(os.listdir(folder)):
        if name.upper().startswith(NAMES) and os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                yield name, file.read().strip()


def main():
    crates = linked(metadata())
    out = [f"Sluice contains these {len(crates)} works of others, each under its licence.", ""]
    seen = {}
    for crate in crates:
        out.append(f"{crate['name']} {crate['version']}: {crate['license'] or 'see its text'}")
        out.append(f"    {crate['repository'] or crate['homepage'] or 'https://crates.io/crates/' + crate['name']}")
        if crate["authors"]:
            out.append("    " + ", ".join(crate["authors"]))
        for name, text in texts(crate):
            number = seen.setdefault(text, (len(seen) + 1, name))[0]
            out.append(f"    {name}: text {number}")
    for text, (number, name) in seen.items():
        out += ["", "=" * 100, f"Text {number} ({name})", "=" * 100, text]
    sys.stdout.write("\n".join(out) + "\n")


main()

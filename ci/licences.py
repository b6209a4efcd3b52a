#!/usr/bin/env python3
"""Licences and sources of what the program is built from, as deny.toml allows them.

    ci/licences.py [FOLDER...]      of the workspaces in these folders, or in this one

`cargo deny check` says the same and takes three minutes to build; before a release it is asked for advisories as well. Ends with 1
and the crates in question.
"""

import json
import os
import re
import subprocess
import sys
import tomllib

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(os.path.join(root, "deny.toml"), "rb") as file:
        rules = tomllib.load(file)
    faults = set()
    for folder in sys.argv[1:] or ["."]:
        for target in rules["graph"]["targets"]:
            faults |= set(check(os.path.join(root, folder), target, rules["licenses"]))
    print("\n".join(sorted(faults)))
    sys.exit(1 if faults else 0)


def check(folder, target, rules):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    packages = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)["packages"]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        exceptions = [one["allow"] for one in rules["exceptions"] if one["crate"] == package["name"]]
        allowed = set(rules["allow"]).union(*exceptions)
        # A crate of ours has no source.
        if package["source"] not in (None, CRATES_IO):
            yield f"{name}: comes from {package['source']}"
        if not is_allowed(package["license"] or "", allowed):
            yield f"{name}: {package['license'] or 'no licence'}"


def is_allowed(expression, allowed):
    """Whether a licence expression (SPDX 2.3, annex D; `/` as older crates have it) can be met by licences that are allowed."""
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))

    def either():
        met = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0) if words else ""
        if word != "(":
            return word in allowed
        met = either()
        return words[:1] == [")"] and words.pop(0) == ")" and met

    met = either()
    return met and not words


assert is_allowed("(MIT OR GPL-3.0) AND A", {"MIT", "A"}) and is_allowed("X/MIT", {"MIT"})
assert not is_allowed("MIT AND GPL-3.0", {"MIT"}) and not is_allowed("", {"MIT"}) and not is_allowed("(MIT", {"MIT"})
main()

"""The file system under three loads.

| load | what is done |
|---|---|
| compile | a generated C project of 120 files is compiled and linked, one compiler after the other |
| postmark | as described for Postmark: 500 files of 4 kB to 1 MB are made; 5,000 transactions, each one that reads a file whole or appends to one, and one that makes or removes a file; then all are removed |
| read | a file of 1 GB of random bytes is read three times: for the first time by anybody, again, and again after the page cache was dropped |

Targets: the bare folder; `pass`, a mount that inspects nothing; and mounts with the signatures of the paper's recipe, by
their number. Each load of each target begins with a fresh folder. Seconds are those of the wall clock; the first round is
thrown away where there are several.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import signatures

SLUICE = os.environ.get("SLUICE") or os.path.join(os.path.dirname(__file__), "../../target/release/sluice")


def main():
    parser = argparse.ArgumentParser(prog="bench/avfs")
    parser.add_argument("--quick", action="store_true", help="a tenth of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--signatures", default="1024,19807,131072")
    parser.add_argument("--only", default="compile,postmark,read")
    args = parser.parse_args()
    scale = 10 if args.quick else 1
    folder = tempfile.mkdtemp(prefix="sluice-avfs.", dir="/var/tmp")
    try:
        targets = [("bare", None), ("pass", ["--pass-all"])]
        for count in [int(text) for text in args.signatures.split(",") if text]:
            database = os.path.join(folder, f"signatures-{count}")
            os.mkdir(database)
            signatures.write(database, count)
            options = ["--database", database, "--cache", os.path.join(folder, "cache")]
            targets.append((f"{count} signatures", options))
        project = make_project(os.path.join(folder, "project"), 120 // scale)
        loads = {
            "compile": lambda place: compile_project(project, place),
            "postmark": lambda place: postmark(place, 500 // scale, 5_000 // scale),
            "read": lambda place: read(place, (1 << 30) // scale),
        }
        results = {}
        for number in range(args.rounds):
            for target, options in targets:
                for load in args.only.split(","):
                    seconds = with_target(folder, options, loads[load])
                    for what, value in seconds.items():
                        results.setdefault(what, {}).setdefault(target, []).append(value)
                    print(number, target, load, {what: round(value, 2) for what, value in seconds.items()}, file=sys.stderr)
        show(results, [target for target, _ in targets])
    finally:
        shutil.rmtree(folder)


def show(results, targets):
    print("| load | " + " | ".join(targets) + " |")
    print("|---|" + "---:|" * len(targets))
    for what, rows in results.items():
        times = {target: statistics.median(values[1:] or values) for target, values in rows.items()}
        cells = [f"{times[target]:.2f} s (×{times[target] / times['bare']:.2f})" for target in targets]
        print(f"| {what} | " + " | ".join(cells) + " |")


def with_target(folder, options, load):
    """Runs a load in a fresh folder, mounted or not."""
    source, point = os.path.join(folder, "source"), os.path.join(folder, "point")
    os.mkdir(source)
    os.mkdir(point)
    server = None
    try:
        if options is None:
            return load(source)
        command = [SLUICE, "mount", *options, source, point]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if server.stdout.readline() != "mounted\n":
            raise SystemExit(server.stderr.read())
        return load(point)
    finally:
        if server:
            server.terminate()
            server.wait()
        os.rmdir(point)
        shutil.rmtree(source)


def make_project(folder, count):
    """C files with some hundred functions each; the same ones each time."""
    os.mkdir(folder)
    chance = random.Random(7)
    names = []
    for number in range(count):
        text = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
        for function in range(80):
            a, b, c = (chance.randrange(1, 9999) for _ in range(3))
            text.append(
                f"int f{number}_{function}(const char *s, int n) {{ int x = {a}; for (int i = 0; i < n; i++) "
                f"{{ x = x * {b} + s[i % {c}]; if (x % {a} == 0) x ^= (int)strlen(s); }} return x; }}"
            )
        names.append(f"part{number}.c")
        with open(os.path.join(folder, names[-1]), "w") as file:
            file.write("\n".join(text) + "\n")
    with open(os.path.join(folder, "main.c"), "w") as file:
        file.write("int main(void) { return 0; }\n")
    return folder


def compile_project(project, place):
    build = os.path.join(place, "build")
    started = time.monotonic()
    shutil.copytree(project, build)
    for name in sorted(os.listdir(build)):
        subprocess.run(["cc", "-O1", "-g", "-c", name], cwd=build, check=True)
    objects = [name for name in os.listdir(build) if name.endswith(".o")]
    subprocess.run(["cc", "-o", "program", *objects], cwd=build, check=True)
    subprocess.run(["./program"], cwd=build, check=True)
    return {"compile": time.monotonic() - started}


def postmark(place, files, transactions):
    chance = random.Random(11)
    content = random.Random(13).randbytes(1 << 20)
    number, names = 0, []

    def create():
        nonlocal number
        number += 1
        name = os.path.join(place, f"file{number}")
        with open(name, "wb", buffering=0) as file:
            file.write(content[: chance.randrange(4_000, 1_000_000)])
        names.append(name)

    started = time.monotonic()
    for _ in range(files):
        create()
    for _ in range(transactions):
        name = chance.choice(names)
        if chance.random() < 0.5:
            with open(name, "rb", buffering=0) as file:
                while file.read(64 << 10):
                    pass
        else:
            with open(name, "ab", buffering=0) as file:
                file.write(content[: chance.randrange(500, 10_000)])
        if chance.random() < 0.5:
            create()
        else:
            os.unlink(names.pop(chance.randrange(len(names))))
    for name in names:
        os.unlink(name)
    return {"postmark": time.monotonic() - started}


def read(place, size):
    # Written below, where nobody inspects it.
    below = os.path.join(os.path.dirname(place), "source", "large")
    content = random.Random(17).randbytes(1 << 20)
    with open(below, "wb") as file:
        for _ in range(size >> 20):
            file.write(content)
    seconds = {}
    for what in ["read 1 GB, never inspected", "read again", "read again, page cache dropped"]:
        if "dropped" in what:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("1")
        started = time.monotonic()
        with open(os.path.join(place, "large"), "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
        seconds[what] = time.monotonic() - started
    return seconds


main()

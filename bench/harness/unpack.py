"""bench/unpack: processor time of the decompressors, ours through the verb, beside libraries and tools.

Everything runs as a process of its own on the same file, one thread, its output thrown away; the figure is user and system
time, start included. Within a round all programs of a format run one behind the other, and ratios are taken within the
round, because what else the machine does then falls on all of them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from statistics import median

import machine
from archives import CASES, Missing, content_file

ROUNDS, QUICK_ROUNDS = 7, 3
CONTENT_BYTES, QUICK_CONTENT_BYTES = 24 << 20, 4 << 20
LIBRARY_AIM, GZIP_AIM, TOOL_AIM = 0.85, 1.0, 1.5


def main():
    parser = argparse.ArgumentParser(prog="bench/unpack", description="What the decompressors cost.")
    parser.add_argument("--quick", action="store_true", help="less content, fewer rounds")
    parser.add_argument("--rounds", type=int, help="how often everything runs")
    parser.add_argument("--format", type=lambda text: text.split(","), help="only formats that begin like one of these")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        content = content_file(folder, QUICK_CONTENT_BYTES if options.quick else CONTENT_BYTES)
        print(machine.describe(folder)[0])
        print(f"Content: {os.path.getsize(content) / 1e6:.0f} MB of programs, libraries and texts of this Debian\n")
        print("| input | MB | ours, MB/s | of the library's speed | tools: their time in ours | aims |")
        print("|---|---:|---:|---|---|---|")
        for case in CASES:
            if options.format and not any(case.name.startswith(name) for name in options.format):
                continue
            print(row(case, content, folder, options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def row(case, content, folder, rounds):
    """One row: the input made, all programs run, the ratios."""
    place = tempfile.mkdtemp(dir=folder)
    try:
        packed = case.make(content, place)
    except Missing as reason:
        return f"| {case.name} | - | not measured: {reason} | | | |"
    programs = {"ours": [os.environ["OPEN"], packed]}
    if case.library:
        programs[case.library] = [os.environ["OPEN"], "--library", case.library, packed]
    programs |= {tool: [word.replace("FILE", packed) for word in command.split()] for tool, command in case.tools.items()}
    told = int(subprocess.run(programs["ours"], check=True, capture_output=True, text=True).stdout)
    if told < case.told_min(content):
        sys.exit(f"bench/unpack: {case.name}: only {told} bytes came out")
    times = {name: [] for name in programs}
    for number in range(rounds):
        names = list(programs)
        for name in names[number % len(names):] + names[:number % len(names)]:
            times[name].append(seconds(programs[name], place))
    shutil.rmtree(place)
    return describe(case, told, times)


def seconds(command, place):
    """User and system time of one run."""
    with subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"bench/unpack: {' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def describe(case, told, times):
    ours = times["ours"]
    rates = [told / 1e6 / time for time in ours]
    library = "-"
    missed = []
    if case.library:
        ratios = [theirs / our for theirs, our in zip(times[case.library], ours)]
        library = f"{spread(ratios)} ({case.library})"
        if median(ratios) < LIBRARY_AIM:
            missed.append("library")
    tools = {tool: [our / theirs for our, theirs in zip(ours, times[tool])] for tool in case.tools}
    best = max((median(ratios) for ratios in tools.values()), default=0)
    if best > (GZIP_AIM if case.name == "gzip" else TOOL_AIM):
        missed.append("tool" if not case.library or case.name == "gzip" else "(tool)")
    told_tools = ", ".join(f"{tool} ×{spread(ratios)}" for tool, ratios in tools.items())
    verdict = "missed: " + ", ".join(missed) if missed else "met"
    return f"| {case.name} | {told / 1e6:.0f} | {spread(rates)} | {library} | {told_tools} | {verdict} |"


def spread(values):
    """Median, least and most."""
    digits = 0 if median(values) >= 20 else 2
    return f"{median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


if __name__ == "__main__":
    main()

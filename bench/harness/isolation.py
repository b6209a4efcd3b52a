"""bench/isolation: what it costs that mails are inspected in processes of their own.

Two Sluices that differ in nothing but `isolation` take turns on the same mails, and which is first turns from round to
round. A figure is the median over the rounds, with the quartiles in brackets; difference and ratio are medians of those
within each round, since the two of one round met the same load.
"""

import argparse
import os
import sys
from statistics import median, quantiles

import machine
import mails
import measures
import signatures
from load import Load
from measures import SENDERS, print_bench
from processes import memory_bytes, processor_seconds
from table import markdown
from targets import Target, start_sluice

SINK, PORTS = "127.0.0.1:19060", {"none": 19_061, "process": 19_062}
SETS = ("text4k", "exe1m")
# Mails of one cell with one sender, and with many; slow clients, and the seconds that each takes for its mail.
ALONE = {"text4k": 300, "exe1m": 40}
CROWD = {"text4k": 3_200, "exe1m": 160}
CLIENTS, CLIENT_SECONDS = 100, 5
# What the process may cost more than none: by figure and set of mails.
AIMS = {
    ("cpu", "text4k"): 0.04, ("cpu", "exe1m"): 0.3, ("latency", "text4k"): 0.3, ("latency", "exe1m"): 0.3,
    ("memory", "exe1m"): 8,
}
UNITS = {"cpu": "CPU ms a mail", "latency": "latency, ms", "rate": "mails/s", "memory": "KiB a client in DATA"}


def main():
    parser = argparse.ArgumentParser(prog="bench/isolation", description="What isolated inspections cost.")
    parser.add_argument("--quick", action="store_true", help="5 rounds in place of 15")
    parser.add_argument("--rounds", type=int, help="rounds")
    parser.add_argument("--set", type=lambda text: text.split(","), default=SETS, help=", ".join(mails.SETS))
    options = parser.parse_args()
    rounds = options.rounds or (5 if options.quick else 15)
    print_bench("bench/isolation", lambda folder: bench(folder, rounds, options.set))


def bench(folder, rounds, sets):
    for name in ("mails", "signatures", *PORTS):
        os.mkdir(f"{folder}/{name}")
    mails.write(f"{folder}/mails")
    signatures.write(f"{folder}/signatures")
    load = Load(os.environ["LOAD"], SINK)
    programs = [load]
    try:
        targets = []
        for isolation, port in PORTS.items():
            address = f"127.0.0.1:{port}"
            sluice = start_sluice(f"{folder}/{isolation}", address, SINK, f"{folder}/signatures", isolation=isolation)
            programs.append(sluice)
            targets.append(Target(isolation, port, [sluice]))
        tools = measures.Bench(load, f"{folder}/mails", 1.0, lambda: 60)
        busy = machine.Busy(lambda: processor_seconds(programs))
        figures = measure(tools, targets, rounds, sets)
        return "\n".join(["# bench/isolation", "", *machine.describe(folder)[:1], busy.describe(),
                          f"{rounds} rounds; median [quartiles]", "", table(figures)])
    finally:
        for program in reversed(programs):
            program.stop()


def measure(tools, targets, rounds, sets):
    """Figures by (what, set, senders), of each target one for each round."""
    figures = {}
    for target in targets:
        for name in sets:
            tools._run(target, name, mails=64, senders=SENDERS)
            tools._run(target, name, mails=4, wait="sink")
    for number in range(rounds):
        print(f"bench/isolation: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for name in sets:
            for cell in (alone, crowd):
                for target in targets[::-1] if number % 2 else targets:
                    for key, value in cell(tools, target, name).items():
                        figures.setdefault(key, {}).setdefault(target.name, []).append(value)
    for target in targets:
        idle = memory_bytes(target.programs)
        grown = tools.memory(target, "exe1m", CLIENTS, CLIENT_SECONDS, idle)
        figures.setdefault(("memory", "exe1m", CLIENTS), {})[target.name] = list(grown.values())
    return figures


def alone(tools, target, name):
    answer, seconds = tools._timed(target, name, mails=ALONE[name], wait="sink")
    return {("cpu", name, 1): 1e3 * seconds / ALONE[name], ("latency", name, 1): answer["latency_ms"]["median"]}


def crowd(tools, target, name):
    answer, seconds = tools._timed(target, name, mails=CROWD[name], senders=SENDERS)
    return {("cpu", name, SENDERS): 1e3 * seconds / CROWD[name], ("rate", name, SENDERS): answer["mails_s"],
            ("latency", name, SENDERS): answer["latency_ms"]["median"]}


def table(figures):
    rows = [["figure", "mail", "senders", "none", "process", "difference", "ratio", "aim"]]
    for (what, name, senders), values in sorted(figures.items()):
        none, process = values["none"], values["process"]
        pairs = list(zip(none, process))
        aim = AIMS.get((what, name)) if what != "latency" or senders == 1 else None
        rows.append([UNITS[what], name, str(senders), spread(none), spread(process),
                     spread([theirs - ours for ours, theirs in pairs]),
                     spread([theirs / ours for ours, theirs in pairs if ours > 0]),
                     f"<= {aim}" if aim else ""])
    return markdown(rows)


def spread(values):
    if len(values) < 2:
        return ", ".join(f"{value:.3f}" for value in values)
    low, _, high = quantiles(values, n=4)
    return f"{median(values):.3f} [{low:.3f}..{high:.3f}]"


if __name__ == "__main__":
    main()

"""bench/mail: Sluice beside the mail gateways of today. See bench/README.md for what the figures mean.

Starts the chosen paths, shows that each that should scan does, measures memory first (Postfix keeps the processes of
earlier load), then goes round all paths and sets, in an order that turns by one from round to round. Ends everything it
started, whatever happens, and never measures longer than its time allows.
"""

import argparse
import datetime
import os
import shutil
import sys
import tempfile
import time

import machine
import mails
import measures
import signatures
import sockets
import table
from load import Load
from processes import Failed, memory_bytes, processor_seconds, take_charge
from targets import NAMES, Targets

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMORY_SET = "gz1m"


class Plan:
    """How long and how often: two sizes of the same bench."""

    def __init__(self, options):
        quick = options.quick
        self.rounds = options.rounds or (3 if quick else 7)
        self.signatures = options.signatures
        self.mails = 5 if quick else 8
        self.throughput_seconds = 1.0 if quick else 2.5
        self.clients = [1, 200] if quick else [1, 10, 50, 100, 200]
        self.memory_rounds = 1 if quick else 2
        self.memory_seconds = 5 if quick else 7
        # Installing packages and compiling are not counted: they happen once, before this.
        self.end = time.monotonic() + (270 if quick else 1440)
        self.title = "bench/mail, quick" if quick else "bench/mail"

    def seconds_left(self):
        return self.end - time.monotonic()


def main():
    options = parse()
    take_charge()
    # Programs of other users have to reach their sockets and files below it.
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir=options.folder)
    os.chmod(folder, 0o755)
    try:
        report = bench(options, folder)
    except (Failed, OSError) as reason:
        sys.exit(f"bench/mail: {reason}")
    finally:
        if options.keep:
            print(f"left behind as asked: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(report)
    if options.save:
        save(report)


def parse():
    parser = argparse.ArgumentParser(prog="bench/mail", description="Sluice beside the mail gateways of today.")
    parser.add_argument("--quick", action="store_true", help="under 5 minutes instead of 25, and less certain figures")
    for option, known in (("--set", mails.SETS), ("--peers", NAMES)):
        parser.add_argument(option, type=names(known), default=known, metavar="NAME,...", help=", ".join(known))
    parser.add_argument("--rounds", type=int, help="rounds (quick 3, full 7, as far as time allows)")
    parser.add_argument("--signatures", type=int, default=signatures.COUNT, help=f"how many ({signatures.COUNT:,})")
    parser.add_argument("--save", action="store_true", help="write bench/results/mail-DATE.md too")
    parser.add_argument("--port-base", type=int, default=19_000, help="first of fourteen ports on loopback (19000)")
    parser.add_argument("--folder", default="/var/tmp", help="where queues and logs go meanwhile (/var/tmp)")
    parser.add_argument("--keep", action="store_true", help="leave that folder behind, to look at logs")
    return parser.parse_args()


def names(known):
    def read(text):
        chosen = text.split(",")
        unknown = set(chosen) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        return chosen
    return read


def bench(options, folder):
    """Runs everything and returns the report."""
    plan = Plan(options)
    ports = sockets.ports(options.port_base)
    say("writing mails and signatures")
    for name in ("mails", "signatures"):
        os.mkdir(f"{folder}/{name}")
    mails.write(f"{folder}/mails")
    signatures.write(f"{folder}/signatures", options.signatures)
    load = Load(os.environ["LOAD"], f"127.0.0.1:{ports['sink']}")
    targets = Targets(folder, ports, f"{folder}/signatures", load)
    try:
        say("starting " + ", ".join(options.peers))
        targets.start(options.peers)
        tools = measures.Bench(load, f"{folder}/mails", plan.throughput_seconds, plan.seconds_left)
        run = Run(plan, options.set, targets, tools)
        run.measure()
        return run.report(machine.describe(folder))
    finally:
        targets.stop()
        load.stop()


class Run:
    """One run of the bench: what was measured, and what went wrong."""

    def __init__(self, plan, sets, targets, bench):
        self.plan = plan
        self.sets = list(sets)
        self.targets = list(targets.targets)
        self.notes = targets.notes
        self.bench = bench
        self.results = table.Results()
        self.idle_bytes = {}
        programs = [bench.load, *targets.programs]
        self.busy = machine.Busy(lambda: processor_seconds(programs))

    def measure(self):
        """All of it, as far as time allows."""
        self.check()
        self.measure_memory()
        for target in list(self.targets):
            self.attempt(target, lambda target: self.bench.warm_up(target, self.sets), drop=True)
        longest = 0.0
        for number in range(self.plan.rounds):
            if self.plan.seconds_left() < longest:
                self.notes.append(f"time was up after {number} of {self.plan.rounds} rounds")
                return
            begun = time.monotonic()
            say(f"round {number + 1} of {self.plan.rounds}")
            self.round(number)
            self.busy.look()
            longest = max(longest, time.monotonic() - begun)
            if self.plan.seconds_left() < 0:
                self.notes.append(f"time was up within round {number + 1} of {self.plan.rounds}")
                return

    def check(self):
        """Leaves out what does not scan although it should."""
        for target in [target for target in self.targets if target.scans]:
            reason = self.bench.shows_that_it_scans(target)
            if reason:
                self.notes.append(f"{target.name} DOES NOT SCAN: {reason}")

    def measure_memory(self):
        """Growth for each of many slow clients; idle is what a target takes after a first mail."""
        targets = [target for target in self.targets if target.name != "sink"]
        for target in targets:
            self.attempt(target, lambda target: self.bench.latency(target, MEMORY_SET, 2), drop=True)
            self.idle_bytes[target.name] = memory_bytes(target.programs)
        for number in range(self.plan.memory_rounds):
            for clients in self.plan.clients:
                say(f"memory, {clients} slow clients")
                for target in turned(targets, number):
                    self.cell(MEMORY_SET, target, number, lambda target, name: self.bench.memory(
                        target, name, clients, self.plan.memory_seconds, self.idle_bytes[target.name]))

    def round(self, number):
        for name in self.sets:
            for measure in (lambda target, name: self.bench.latency(target, name, self.plan.mails),
                            lambda target, name: self.bench.paced(target, name, self.plan.mails),
                            self.bench.throughput):
                for target in turned(self.targets, number):
                    self.cell(name, target, number, measure)

    def cell(self, name, target, number, measure):
        if self.plan.seconds_left() < 0:
            return
        figures = self.attempt(target, lambda target: measure(target, name))
        self.results.add(name, target.name, number, figures or {})

    def attempt(self, target, measure, drop=False):
        """What `measure` returns; None and a note when it fails, and with `drop` the target's end."""
        try:
            return measure(target)
        except measures.Incomplete as reason:
            self.notes.append(f"left out of the medians: {reason}")
            if drop:
                self.targets.remove(target)
            return None

    def report(self, about):
        shown = [name for name in NAMES if name in {target.name for target in self.targets}]
        measured = [name for name in shown if name in self.idle_bytes]
        lines = [f"# {self.plan.title}", "", *about, self.busy.describe(),
                 f"{self.plan.signatures:,} signatures; median [least..most] of {self.results.rounds()} rounds; "
                 "×N: N times Sluice's figure", "",
                 table.speed(self.results, self.sets, shown), "",
                 table.memory(self.results, MEMORY_SET, measured, self.plan.clients, self.idle_bytes)]
        if self.notes:
            lines += ["", "Notes:", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)


def turned(items, by):
    """The items in an order that begins `by` places further on."""
    by %= max(1, len(items))
    return items[by:] + items[:by]


def save(report):
    path = f"{HERE}/results/mail-{datetime.date.today():%Y-%m-%d}.md"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(report + "\n")
    say(f"saved as {path}")


def say(what):
    print(f"bench/mail: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

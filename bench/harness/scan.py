"""bench/scan: the scanner experiment of the Avfs paper, with our engine, clamscan and libraries that search for strings.

Every figure is the processor time of one thread in a process of its own. The inputs are in memory before the clock
starts, but for clamscan, which reads them; its time is that of a run, less that of one on an empty file. What does not end in
the time it is given is stopped, and the figure is of what was scanned until then.
"""

import argparse
import glob
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

import machine
import start

SIZES = [1_024, 4_096, 19_807, 65_536, 131_072, 1_048_576]
OFFICIAL = 3_900_000
KINDS = ["tails", "code"]
INPUTS = ["random", "libraries", "tree"]
PEERS = ["clamscan", "aho-corasick", "daachorse", "vectorscan", "yara-x"]
ROUNDS = 3
TURNS = 5
MB = 1_000_000


class Plan:
    """How much is measured."""

    def __init__(self, quick):
        self.input_bytes = 96 * MB if quick else 1000 * MB
        self.files = 1_000 if quick else 8_000
        self.corpus_bytes = 256 * MB
        # Of one figure: seconds to scan, and to get ready.
        self.seconds = 1 if quick else 10
        self.ready_seconds = 25 if quick else 600
        # What the peers are asked.
        self.kinds = ["code"] if quick else KINDS
        self.inputs = ["libraries"] if quick else INPUTS


def main():
    parser = argparse.ArgumentParser(prog="bench/scan", description="Speed of signature engines by number of signatures.")
    parser.add_argument("--quick", action="store_true", help="smaller inputs; peers with one kind of bodies and one input")
    parser.add_argument("--signatures", type=start.counts, default=[*SIZES, OFFICIAL], help="sets of these sizes")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS, help="only these; `none` for none")
    parser.add_argument("--path", choices=["portable", "sse", "avx2", "avx512"], help="our instructions; all by default")
    parser.add_argument("--before", metavar="ENGINE", help="another build of our `engine`, measured by turns with this one")
    options = parser.parse_args()
    if options.path:
        os.environ["SLUICE_INSTRUCTIONS"] = options.path
    plan = Plan(options.quick)
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        print(machine.describe(folder)[0])
        inputs(folder, plan)
        bench = Bench(folder, plan, options.peers, options.before)
        for count in options.signatures:
            for kind in KINDS if count != OFFICIAL else ["official"]:
                bench.measure(count, kind)
        bench.print()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def inputs(folder, plan):
    """Two files to scan, a tree of small ones, and what signatures are cut from: other programs than those scanned."""
    paths = glob.glob("/usr/lib/*-linux-gnu/**/*.so*", recursive=True) + glob.glob("/usr/bin/*")
    paths = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    paths.sort(key=lambda path: hashlib.md5(path.encode()).digest())
    write(os.path.join(folder, "corpus"), paths[0::2], plan.corpus_bytes, again=False)
    write(os.path.join(folder, "libraries"), paths[1::2], plan.input_bytes, again=True)
    with open(os.path.join(folder, "random"), "wb") as file:
        for _ in range(plan.input_bytes // MB):
            file.write(os.urandom(MB))
    open(os.path.join(folder, "empty"), "wb").close()
    tree = os.path.join(folder, "tree")
    os.mkdir(tree)
    with open(os.path.join(folder, "libraries"), "rb") as libraries:
        for number in range(plan.files):
            with open(os.path.join(tree, f"{number:05}"), "wb") as file:
                file.write(libraries.read(1_000 + number * 7_919 % 31_000))


def write(path, sources, most, again):
    with open(path, "wb") as file:
        while file.tell() < most:
            for source in sources:
                with open(source, "rb") as one:
                    file.write(one.read(min(16 << 20, most - file.tell())))
            if not again:
                return


class Bench:
    """The figures, as they come in."""

    def __init__(self, folder, plan, peers, before):
        self.folder, self.plan, self.peers = folder, plan, [peer for peer in PEERS if peer in peers]
        self.speeds, self.sizes, self.given_up, self.ours = [], [], {}, {}
        self.before, self.turns = before, []

    def measure(self, count, kind):
        """One set of signatures: all inputs, all engines."""
        place = os.path.join(self.folder, f"{kind}-{count}")
        os.mkdir(place)
        sets = official(place, count) if kind == "official" else self.generated(place, kind, count)
        told = {name: engine("compile", path, path + ".compiled") for name, path in sets.items()}
        loads = {}
        if self.before:
            self.by_turns(sets.get("patterns", sets["all"]), count, kind)
        for name in INPUTS:
            cells = self.scan_ours(sets, name, kind)
            self.ours[count, kind, name] = cells[0]
            for peer in self.peers:
                cell, load = self.scan_peer(peer, sets["all"], name, kind)
                cells.append(cell)
                loads[peer] = loads.get(peer) or load
            self.speeds.append((f"{count:,}", kind, name, *cells))
            print(" | ".join(self.speeds[-1]), flush=True)
        self.sizes.append((f"{count:,}", kind, *self.size(told["all"], sets["all"]),
                           *(loads.get(peer) or "-" for peer in self.peers)))
        shutil.rmtree(place)

    def generated(self, place, kind, count):
        run(os.path.join(os.environ["SCANNERS"], "engine"), "generate", kind, str(count),
            os.path.join(self.folder, "corpus"), os.path.join(self.folder, "libraries"), place)
        return {"all": place}

    def by_turns(self, path, count, kind):
        """The build before and this one by turns: medians, least and most, and the median of the ratios."""
        own = os.path.join(os.environ["SCANNERS"], "engine")
        run(self.before, "compile", path, path + ".before")
        for name in INPUTS[:2]:
            each = []
            for _ in range(TURNS):
                told = [json.loads(run(program, "scan", file, os.path.join(self.folder, name), str(self.plan.seconds)))
                        for program, file in ((self.before, path + ".before"), (own, path + ".compiled"))]
                each.append([speed(one) for one in told])
            cells = [f"{statistics.median(all):.0f} ({min(all):.0f} to {max(all):.0f})" for all in zip(*each)]
            ratio = statistics.median(now / before for before, now in each)
            found = [f"{one['found']}" for one in told]
            self.turns.append((f"{count:,}", kind, name, *cells, f"{ratio:.2f}", *found))
            print(" | ".join(self.turns[-1]), flush=True)

    def scan_ours(self, sets, name, kind):
        """Patterns alone; with digests: those of the official set, or of every byte; and these of eight streams at once."""
        patterns, digests = sets.get("patterns", sets["all"]), kind != "official"
        ways = [[patterns], [sets["all"], *["md5"] * digests], [sets["all"], "md5-together" if digests else "together"]]
        cells = []
        for path, *more in ways:
            each = [engine("scan", path + ".compiled", os.path.join(self.folder, name), str(self.plan.seconds), *more)
                    for _ in range(ROUNDS)]
            cells.append(f"{statistics.median(map(speed, each)):.0f}")
        return cells

    def size(self, compiled, path):
        command = ["scan", path + ".compiled", os.path.join(self.folder, "libraries"), str(self.plan.seconds)]
        each = [engine(*command) for _ in range(ROUNDS)]
        used = engine(*command, "pages")["hot_kb"]
        load = 1000 * statistics.median(one["load_elapsed"] for one in each)
        return (f"{compiled['compile']:.1f}", f"{compiled['peak_kb'] / 1e3:.0f}", f"{compiled['file'] / 1e6:.1f}",
                f"{load:.0f}", f"{each[0]['mapped_kb'] / 1e3:.1f}", f"{used / 1e3:.1f}")

    def scan_peer(self, peer, path, name, kind):
        """Its speed and what it takes to get ready; or why there is none."""
        if (kind not in self.plan.kinds or name not in self.plan.inputs) and kind != "official":
            return "", None
        if kind == "official" and (peer != "clamscan" or name not in self.plan.inputs):
            return "-", None
        if peer in self.given_up:
            return "-", self.given_up[peer]
        try:
            told = self.clamscan(path, name) if peer == "clamscan" else self.library(peer, path, name)
        except subprocess.TimeoutExpired:
            self.given_up[peer] = f"> {self.plan.ready_seconds}"
            return "-", self.given_up[peer]
        except subprocess.CalledProcessError as failed:
            self.given_up[peer] = f"- ({failed.stderr.decode().strip().splitlines()[-1][:40]})"
            return "-", self.given_up[peer]
        rate = speed(told)
        return f"{rate:.{2 if rate < 1 else 1 if rate < 20 else 0}f}", f"{told['load']:.1f}"

    def library(self, peer, path, name):
        program = ["vectorscan"] if peer == "vectorscan" else ["peers", peer]
        program[0] = os.path.join(os.environ["SCANNERS"], program[0])
        told = run(*program, path, os.path.join(self.folder, name), str(self.plan.seconds), seconds=self.limit())
        return json.loads(told)

    def clamscan(self, path, name):
        """More and more of the input, until it takes the time that there is."""
        load = self.clamscan_seconds(path, os.path.join(self.folder, "empty"))
        whole = os.path.join(self.folder, name)
        if os.path.isdir(whole):
            took = self.clamscan_seconds(path, whole) - load
            return {"load": load, "bytes": sum(entry.stat().st_size for entry in os.scandir(whole)), "seconds": took}
        size, told = 250_000, None
        while True:
            head = os.path.join(self.folder, "head")
            with open(whole, "rb") as source, open(head, "wb") as file:
                file.write(source.read(size))
            try:
                took = max(self.clamscan_seconds(path, head) - load, 1e-3)
            except subprocess.TimeoutExpired:
                if told:
                    return told
                raise
            told = {"load": load, "bytes": size, "seconds": took}
            if took > self.plan.seconds or size >= self.plan.input_bytes:
                return told
            size = min(size * 4, self.plan.input_bytes)

    def clamscan_seconds(self, path, target):
        options = [f"--scan-{kind}=no" for kind in ("archive", "pe", "elf", "ole2", "pdf", "html", "mail", "swf")]
        limits = ["--max-filesize=4000M", "--max-scansize=4000M", "--max-scantime=0"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("clamscan", "--no-summary", "-r", "-i", *options, *limits, "-d", path, target, seconds=self.limit(), codes=(0, 1))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def limit(self):
        return self.plan.ready_seconds + 2 * self.plan.seconds

    def print(self):
        if self.turns:
            print("\nMB/s of one thread, by turns\n")
            table(["signatures", "bodies", "input", "before", "now", "ratio", "found before", "now"], self.turns)
        print("\nMB/s of one thread\n")
        table(["signatures", "bodies", "input", "Sluice", "with digests", "8 streams", *self.peers], self.speeds)
        print("\nTo get ready\n")
        table(["signatures", "bodies", "compile s", "memory MB", "file MB", "load ms", "mapped MB", "hot MB",
               *(f"{peer} s" for peer in self.peers)], self.sizes)
        for kind in KINDS:
            for name in INPUTS[:2]:
                few, many = (self.ours.get((count, kind, name)) for count in (SIZES[0], SIZES[4]))
                if few and many:
                    print(f"\nFrom 1,024 to 131,072 signatures, {kind}, {name}: {float(few) / float(many):.2f} times the time")


def official(place, count):
    """A set shaped like the official one, and its patterns alone."""
    start.write(place, count)
    patterns = place + "-patterns"
    os.mkdir(patterns)
    for kind in ("ndb", "ldb"):
        os.link(os.path.join(place, f"large.{kind}"), os.path.join(patterns, f"large.{kind}"))
    return {"all": place, "patterns": patterns}


def engine(*arguments):
    return json.loads(run(os.path.join(os.environ["SCANNERS"], "engine"), *arguments))


def speed(told):
    return told["bytes"] / 1e6 / max(told["seconds"], 1e-4)


def run(*command, seconds=None, codes=(0,)):
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, check=False)
    if told.returncode not in codes:
        raise subprocess.CalledProcessError(told.returncode, command, stderr=told.stderr or b"it failed")
    return told.stdout


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---:|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()

"""bench/start: compiling a large set of signatures, and starting with it.

The sets are shaped like ClamAV's official one of 2026: 85 % hashes, nearly all MD5, half of them of sections; the rest are
bodies of two to four parts of 10 to 200 bytes that begin like real code, most of them for Windows programs, one in ten
logical. The start is the whole life of `sluice scan` on an empty file, less that of one without signatures; the file is in
the page cache, as it is after it was compiled. What is mapped is told by /proc while a scan waits for its input.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

import signatures

SETS = [128_000, 1_000_000, 3_900_000]
STARTS = 9
TARGETS = [1] * 14 + [0, 0, 2, 3, 3, 4, 6, 7, 10, 12]


def main():
    parser = argparse.ArgumentParser(prog="bench/start", description="Start with a large compiled set of signatures.")
    parser.add_argument("--signatures", type=counts, default=SETS, help="sets of these sizes")
    parser.add_argument("--keep", help="a folder for the sets, which are left there")
    options = parser.parse_args()
    print("| signatures | text MB | file MB | compile s (CPU s) | start ms (median of %d) | mapped MB | touched kB |" % STARTS)
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in options.signatures:
        folder = os.path.join(options.keep, str(count)) if options.keep else tempfile.mkdtemp(dir="/var/tmp")
        os.makedirs(folder, exist_ok=True)
        try:
            print(row(count, folder), flush=True)
        finally:
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)


def counts(text):
    return [int(count) for count in text.split(",")]


def row(count, folder):
    texts, cache = os.path.join(folder, "signatures"), os.path.join(folder, "cache")
    if not os.path.exists(texts):
        os.mkdir(texts)
        write(texts, count)
    text = sum(os.path.getsize(os.path.join(texts, name)) for name in os.listdir(texts))
    shutil.rmtree(cache, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(run("database", "compile", "--json", texts, "--cache", cache))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    empty = os.path.join(folder, "empty")
    open(empty, "w").close()
    nothing = statistics.median(seconds("scan", "--cache", "none", empty) for _ in range(STARTS))
    whole = statistics.median(seconds("scan", "-d", texts, "--cache", cache, empty) for _ in range(STARTS))
    mapped, touched = memory("scan", "-d", texts, "--cache", cache, "-")
    return (
        f"| {told['signatures']:,} | {text / 1e6:.0f} | {told['bytes'] / 1e6:.0f} | {told['seconds']:.1f} ({cpu:.1f}) "
        f"| {1000 * (whole - nothing):.0f} | {mapped / 1e3:.0f} | {touched} |"
    )


def run(*arguments):
    return subprocess.run([os.environ["SLUICE"], *arguments], check=True, stdout=subprocess.PIPE).stdout


def seconds(*arguments):
    started = time.monotonic()
    run(*arguments)
    return time.monotonic() - started


def memory(*arguments):
    """Kilobytes that a scan has mapped of compiled files, and that it holds of its own."""
    scan = subprocess.Popen([os.environ["SLUICE"], *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    time.sleep(3)
    mapped, own, is_compiled = 0, 0, False
    with open(f"/proc/{scan.pid}/smaps") as file:
        for line in file:
            key, *rest = line.split()
            if not key.endswith(":"):
                is_compiled = line.rstrip().endswith(".sluicedb")
            elif key == "Size:" and is_compiled:
                mapped += int(rest[0])
            elif key == "Anonymous:":
                own += int(rest[0])
    scan.communicate(b"")
    return mapped, own


def write(folder, count):
    """Writes large.hdb, .hsb, .mdb, .ndb and .ldb to `folder`."""
    chance = random.Random(count)
    corpus = signatures._corpus()
    files = {kind: open(os.path.join(folder, "large." + kind), "w") for kind in ("hdb", "hsb", "mdb", "ndb", "ldb")}
    for index in range(count):
        kind, line = signature(index, chance, corpus)
        files[kind].write(line + "\n")
    for file in files.values():
        file.close()


def signature(index, chance, corpus):
    share = chance.random()
    name = f"{chance.choice(FAMILIES)}-{index}-0"
    if share < 0.42:
        return "hdb", f"{chance.getrandbits(128):032x}:{int(chance.lognormvariate(12, 2))}:{name}"
    if share < 0.84:
        return "mdb", f"{512 * chance.randint(1, 4000)}:{chance.getrandbits(128):032x}:{name}"
    if share < 0.85:
        return "hsb", f"{chance.getrandbits(256):064x}:{int(chance.lognormvariate(12, 2))}:{name}"
    parts = [part(chance, corpus) for _ in range(chance.choice((2, 3, 3, 4)))]
    target = chance.choice(TARGETS)
    if share < 0.865:
        expression = "&".join(str(number) for number in range(len(parts)))
        return "ldb", f"{name};Engine:81-255,Target:{target};{expression};{';'.join(parts)}"
    return "ndb", f"{name}:{target}:*:{'*'.join(parts)}"


def part(chance, corpus):
    length = max(10, min(200, int(chance.lognormvariate(3.4, 0.6))))
    real = 4 + chance.randrange(9)
    at = chance.randrange(len(corpus) - 256)
    return (corpus[at : at + real] + chance.randbytes(max(length - real, 4))).hex()


FAMILIES = [f"{system}.{kind}.{name}" for system in ("Win", "Win", "Win", "Unix", "Html", "Pdf", "Doc")
            for kind in ("Trojan", "Malware", "Downloader", "Packed", "Adware")
            for name in ("Agent", "Generic", "Zbot", "Bifrose", "Emotet", "Razy", "Ursu", "Fareit", "Dropper")]


if __name__ == "__main__":
    main()

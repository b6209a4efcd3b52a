"""bench/where: where the processor time of a mail goes.

One Sluice takes mails of a set while perf looks a few thousand times a second at what its processes do. What the kernel counts
as their processor time, without perf, is divided in the same shares. What a function is of is told by its name, so a program
whose functions are compiled into each other tells more of some: build it without LTO for finer shares.
"""

import argparse
import collections
import os
import re
import subprocess
import time

import machine
import mails
import measures
import signatures
from load import Load
from measures import SENDERS, print_bench
from processes import Failed
from table import markdown
from targets import Target, start_sluice

SINK, PORT = "127.0.0.1:19070", 19_071
MAILS, ROUNDS, SAMPLES_A_SECOND = 320, 3, 2999

# The first that fits a function's name. Whatever is in the kernel is a system call, but for what interrupts do.
PLACES = (
    ("system calls", r"^\[k\]"),
    ("SHA-256", r"sha256"),
    ("SHA-1", r"sha1"),
    ("MD5", r"md5|digest::vector::take"),
    ("digests, the batch", r"digest::"),
    ("patterns", r"pattern::|aho_corasick"),
    ("Base64", r"base64"),
    ("copies", r"mem(move|cpy|set)"),
    ("memory", r"_rjem|arena|allocx|jemalloc|jail::memory|__rust_|\bpac_|\bedata"),
    ("SMTP, lines and dots", r"proto::|memchr"),
    ("MIME and formats", r"mime::|unpack::|text::"),
    ("inspection", r"inspect::|scan::|stream::|jail::"),
    ("door", r"edge::|flow::|sluice::"),
    ("event loop, clocks, logs", r"tokio|mio|clock|tracing|std::time|Instant|future"),
    ("the rest", r""),
)


def main():
    parser = argparse.ArgumentParser(prog="bench/where", description="Where the processor time of a mail goes.")
    parser.add_argument("--set", default="exe1m", help=", ".join(mails.SETS))
    parser.add_argument("--senders", type=int, default=SENDERS, help=f"senders at once; {SENDERS}")
    parser.add_argument("--isolation", default="none", help="none, process; none")
    options = parser.parse_args()
    print_bench("bench/where", lambda folder: bench(folder, options))


def bench(folder, options):
    for name in ("mails", "signatures", "sluice"):
        os.mkdir(f"{folder}/{name}")
    mails.write(f"{folder}/mails")
    signatures.write(f"{folder}/signatures")
    load = Load(os.environ["LOAD"], SINK)
    programs = [load]
    try:
        address = f"127.0.0.1:{PORT}"
        sluice = start_sluice(
            f"{folder}/sluice", address, SINK, f"{folder}/signatures", isolation=options.isolation)
        programs.append(sluice)
        tools = measures.Bench(load, f"{folder}/mails", 1.0, lambda: 60)
        target = Target("sluice", PORT, [sluice])

        def send():
            crowd = {"senders": options.senders} if options.senders > 1 else {"wait": "sink"}
            _, seconds = tools._timed(target, options.set, mails=MAILS, **crowd)
            return 1e3 * seconds / MAILS

        send()
        costs = sorted(send() for _ in range(ROUNDS))
        shares = profile(f"{folder}/perf.data", sluice, send)
        return report(folder, options, costs, shares)
    finally:
        for program in reversed(programs):
            program.stop()


def profile(file, sluice, send):
    """The share of each place, and of its functions."""
    processes = subprocess.run(
        ["pgrep", "-d", ",", "-s", str(sluice.root.pid)], stdout=subprocess.PIPE, text=True).stdout.strip()
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_A_SECOND), "-o", file, "-p", processes],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    send()
    perf.send_signal(2)
    perf.wait()
    printed = subprocess.run(
        ["perf", "report", "-i", file, "--stdio", "--sort", "sym", "--percent-limit", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    shares = collections.defaultdict(collections.Counter)
    for share, name in re.findall(r"^\s+([\d.]+)%\s+(\[.\] .*?)\s*$", printed, re.M):
        place = next(place for place, names in PLACES if re.search(names, name))
        shares[place][name[4:]] += float(share)
    if not shares:
        raise Failed("perf saw nothing: is it allowed to (kernel.perf_event_paranoid)?")
    return shares


def report(folder, options, costs, shares):
    cost, total = costs[len(costs) // 2], sum(sum(functions.values()) for functions in shares.values())
    rows = [["what", "share, %", "microseconds a mail", "most of it"]]
    for place, functions in sorted(shares.items(), key=lambda one: -sum(one[1].values())):
        share = sum(functions.values()) / total
        most = ", ".join(name.split("::")[-1][:24] for name, _ in functions.most_common(2))
        rows.append([place, f"{100 * share:.1f}", f"{1e3 * cost * share:.0f}", most])
    head = (f"{options.set}, {options.senders} senders, isolation {options.isolation}: "
            f"{cost:.2f} [{costs[0]:.2f}..{costs[-1]:.2f}] ms of CPU a mail")
    return "\n".join(["# bench/where", "", *machine.describe(folder)[:1], head, "", markdown(rows)])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Differential test with Suricata: random conversations of HTTP and SMTP, and random rules with a random share of given ones.

    ci/intrusion.py [--rounds N] [--seed N] [--conversations N] [--rules N] [--keep FOLDER] [RULES...]

Each round makes a capture and a file of rules, and has both look. Numbers of alerts by connection and rule are compared. Of two kinds
of rules it is compared whether they alert at all: those on the stream alone, since here a match is told once for each turn, and those
that Suricata tells again where nothing is new, with negated contents alone in some buffer, or fields of a chunked response. SLUICE names the program (else
target/debug/sluice), SURICATA_ROOT a Debian with Suricata. `--keep` has the captures and rules of the differences.
It is no part of the gate: it takes Debian 13 besides. The last line is what was equal; the exit code is 1 below 99.9 %.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench/harness"))

import conversations  # noqa: E402
import suricata  # noqa: E402

SECONDS_MAX = 600
SID = re.compile(r"\bsid\s*:\s*(\d+)")


def given(paths):
    """Enabled rules of files, by number."""
    rules = {}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                number = SID.search(line)
                if line.startswith("alert ") and number:
                    rules[int(number.group(1))] = line.strip()
    return rules


def ours(program, rules, capture):
    command = [program, "ids", "check", "--rules", rules, "--pcap", capture]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def counts(rows):
    """Numbers of alerts by the client's end and the rule."""
    sums = collections.Counter()
    for row in rows:
        ends = (f"{row['src_ip']}:{row['src_port']}", f"{row['dest_ip']}:{row['dest_port']}")
        client = next(end for end in ends if end.startswith("203.0.113."))
        sums[client, row["alert"]["signature_id"]] += 1
    return sums


def is_counted(rule):
    """Whether both tell matches of a rule in the same number."""
    sections = re.split(r"\b(?:http|file|smtp)\.[\w.]+;", rule)[1:]
    is_told_again = rule.startswith("alert tcp") or "http.header;" in rule
    return not is_told_again and all(re.search(r'content:\s*"', section) for section in sections)


def round_of(seed, args, known, folder):
    """One round: how many pairs alerted, and those that differ."""
    rng = random.Random(seed)
    talks = [rng.choice([conversations.http, conversations.http, conversations.smtp])(rng) for _ in range(args.conversations)]
    made = {sid: conversations.rule(rng, sid, rng.choice(talks)) for sid in range(1, args.rules + 1)}
    made |= {sid: known[sid] for sid in rng.sample(sorted(known), min(len(known), args.rules))}
    capture = conversations.Capture(rng)
    for talk in talks:
        capture.add(talk)
    paths = [os.path.join(folder, f"{seed}.{end}") for end in ("rules", "pcap")]
    with open(paths[0], "w", encoding="utf-8") as file:
        file.writelines(f"{rule}\n" for rule in made.values())
    with open(paths[1], "wb") as file:
        file.write(capture.bytes())
    rows, said, _ = suricata.run(*paths)
    refused = {int(number) for line in said.splitlines() if "error parsing signature" in line for number in SID.findall(line)}
    theirs, mine = counts(rows), counts(ours(args.program, *paths))
    uncounted = {sid for sid, rule in made.items() if not is_counted(rule)}
    both = [pair for pair in theirs.keys() | mine.keys() if pair[1] not in refused]
    differ = [pair for pair in both if (min(theirs[pair], 1), min(mine[pair], 1)) != (1, 1)
              or theirs[pair] != mine[pair] and pair[1] not in uncounted]
    for client, sid in sorted(differ):
        print(f"{seed} {client} suricata {theirs[client, sid]} sluice {mine[client, sid]}: {made[sid]}")
    if not differ or not args.keep:
        for path in paths:
            os.remove(path)
    return len(both), len(differ), len(refused & made.keys())


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=150)
    parser.add_argument("--rules", type=int, default=400)
    parser.add_argument("--keep")
    parser.add_argument("given", nargs="*")
    args = parser.parse_args()
    args.program = os.environ.get("SLUICE", os.path.join(ROOT, "target/debug/sluice"))
    known = given(args.given)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        sums = [round_of(seed, args, known, folder) for seed in range(args.seed, args.seed + args.rounds)]
    both, differ, refused = (sum(column) for column in zip(*sums))
    share = 100 * (both - differ) / max(both, 1)
    print(f"{args.rounds} rounds: {both} alerts of a rule on a connection, {differ} differ, {share:.3f} % equal; "
          f"Suricata refused {refused} rules")
    return 0 if share >= 99.9 else 1


if __name__ == "__main__":
    sys.exit(main())

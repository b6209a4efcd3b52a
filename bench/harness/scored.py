"""bench/scored: what it costs behind SMTP that mails are scored.

Two Sluices with the same signatures, one of which has `[spam]` with the stock rules and without network, take turns on the same
mails; with `--peer` Postfix with Rspamd, which runs rules of its own and has clamd look for the same signatures, takes a third turn.
A figure is the median over the rounds, with the quartiles in brackets; differences are those within a round. Senders and sink run on
the same cores, so mails a second are also given as what the processor time of the gateway alone would let through.
"""

import argparse
import os
import pathlib
import sys

import machine
import mails
import measures
import signatures
from isolation import spread
from load import Load
from measures import SENDERS, print_bench
from processes import processor_seconds
from table import markdown
from targets import Target, Targets, start_sluice

SINK = 19_080
PORTS = {"plain": 19_081, "scored": 19_082}
PEER_PORTS = {"rspamd": 19_083, "sink": SINK, "dns": 19_084, "rspamd_milter": 19_085, "rspamd_normal": 19_086, "rspamd_controller": 19_087}
TEXTS = 1_600
TEXTS_A_ROUND_OF_PEER = 400
# Mails a round of the corpus.
CORPUS_MAX = 2_048
MAIL_BYTES_MAX = 512 << 10
MAILS_A_CONNECTION = 20


def main():
    parser = argparse.ArgumentParser(prog="bench/scored", description="What scored mails cost behind SMTP.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; 5")
    parser.add_argument("--senders", type=int, default=SENDERS, help=f"senders at once; {SENDERS}")
    parser.add_argument("--relayed", action="store_true",
                        help=f"as another mail server sends: {MAILS_A_CONNECTION} mails a connection, commands at once")
    parser.add_argument("--peer", action="store_true", help="Postfix with Rspamd besides")
    parser.add_argument("folder", nargs="?", help="mails; SLUICE_DATA/mail-spamassassin/spamassassin-corpus")
    options = parser.parse_args()
    print_bench("bench/scored", lambda folder: bench(folder, options))


def bench(folder, options):
    for name in ("mails", "signatures", *PORTS):
        os.mkdir(f"{folder}/{name}")
    mails.write(f"{folder}/mails")
    signatures.write(f"{folder}/signatures")
    data = os.environ.get("SLUICE_DATA", "data")
    corpus = pathlib.Path(options.folder or f"{data}/mail-spamassassin/spamassassin-corpus")
    sets = {"text4k": TEXTS}
    count = mails.write_corpus(f"{folder}/mails", corpus, MAIL_BYTES_MAX)
    if count:
        sets["corpus"] = min(count, CORPUS_MAX)
    sink = f"127.0.0.1:{SINK}"
    load = Load(os.environ["LOAD"], sink)
    programs = [load]
    peers = Targets(folder, PEER_PORTS, f"{folder}/signatures", load)
    try:
        targets = []
        for name, port in PORTS.items():
            after = "\n[spam]\n" if name == "scored" else ""
            address = f"127.0.0.1:{port}"
            sluice = start_sluice(f"{folder}/{name}", address, sink, f"{folder}/signatures", after=after)
            programs.append(sluice)
            targets.append(Target(name, port, [sluice]))
        if options.peer:
            peers.start(["rspamd"])
            targets += peers.targets
        tools = measures.Bench(load, f"{folder}/mails", 1.0, lambda: 60)
        busy = machine.Busy(lambda: processor_seconds(programs + peers.programs))
        figures = measure(tools, targets, sets, options)
        sent = f"{MAILS_A_CONNECTION} mails a connection, pipelined" if options.relayed else "a connection a mail"
        lines = ["# bench/scored", "", *machine.describe(folder)[:1], busy.describe(),
                 f"{options.senders} senders, {sent}, {sets.get('corpus', 0)} mails of the corpus, {options.rounds} rounds; median "
                 "[quartiles]", *peers.notes, "", table(figures)]
        return "\n".join(lines)
    finally:
        peers.stop()
        for program in reversed(programs):
            program.stop()


def measure(tools, targets, sets, options):
    """Figures by (set, target): CPU ms a mail and mails/s of each round."""
    figures = {}
    order = {"mails_per_connection": MAILS_A_CONNECTION, "pipelining": "yes"} if options.relayed else {}
    for number in range(-1, options.rounds):
        what = "warm-up" if number < 0 else f"round {number + 1} of {options.rounds}"
        print(f"bench/scored: {what}", file=sys.stderr, flush=True)
        for name, count in sets.items():
            for target in targets[::-1] if number % 2 else targets:
                mails_sent = min(count, TEXTS_A_ROUND_OF_PEER) if target.name == "rspamd" else count
                answer, seconds = tools._timed(target, name, mails=mails_sent, senders=options.senders,
                                                **order)
                if number >= 0:
                    figure = 1e3 * seconds / mails_sent, answer["mails_s"]
                    figures.setdefault((name, target.name), []).append(figure)
    return figures


def table(figures):
    rows = [["mails", "gateway", "CPU ms a mail", "beyond plain", "mails/s", "mails/s by CPU, two cores"]]
    for (name, target), values in figures.items():
        plain = figures[name, "plain"]
        cost = [cpu for cpu, _ in values]
        beyond = [ours[0] - theirs[0] for ours, theirs in zip(values, plain)]
        rows.append([name, target, spread(cost), "" if target == "plain" else spread(beyond),
                     spread([rate for _, rate in values]), spread([2e3 / cpu for cpu in cost])])
    return markdown(rows)


if __name__ == "__main__":
    main()

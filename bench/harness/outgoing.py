"""bench/queue: mails through a queue to a sink, counted when the last of them has arrived.

All targets have their queue on the same disk and flush it before they say 250. Twenty mails come over a connection. One round asks all
targets in turn; a cell is the median over the rounds, with the least and the most, a ratio the median of the ratios within each round.
"""

import argparse
import base64
import os
import subprocess
from statistics import median

import postfix
from load import Load
from machine import describe
from measures import print_bench
from processes import Failed, Program, processor_seconds
from sockets import is_open
from web import free_port, spread, write

SLUICE = """hostname = "gateway.bench.test"
[log]
level = "error"
[store]
folder = "{folder}/store"
size = "2G"
accounts = "{folder}/accounts"
relay = "smtp://127.0.0.1:{sink}"
[store.queue]
recipients_hour_max = 0
[[listener]]
protocol = "smtp"
address = "127.0.0.1:{sluice}"
forward = "store:"
auth = "any"
trust = "off"
"""
LOGIN = base64.b64encode(b"\0sender@client.test\0secret").decode()


def add_account(folder):
    accounts = [os.environ["SLUICE"], "account", "--accounts", f"{folder}/accounts", "add", "sender@client.test"]
    subprocess.run(accounts, input=b"secret\n", check=True, stdout=subprocess.DEVNULL)


def start_sluice(folder, ports):
    add_account(folder)
    conf = write(f"{folder}/sluice.toml", SLUICE.format(folder=folder, **ports))
    program = Program("sluice", [os.environ["SLUICE"], "serve", "--allow-root", "--config", conf], f"{folder}/sluice.out")
    return program.wait_until(lambda: "ready" in open(program.log).read())


def bench(options):
    def run(folder):
        os.chmod(folder, 0o755)
        ports = {name: free_port() for name in ("sluice", "postfix", "sink")}
        load = Load(os.environ["LOAD"], f"127.0.0.1:{ports['sink']}")
        programs = {}
        try:
            programs["postfix"] = postfix.start(folder, ports["postfix"], ports["sink"])
            programs["sluice"] = start_sluice(folder, ports)
            return table(folder, measure(load, programs, ports, options), options)
        finally:
            for program in programs.values():
                program.stop()
            load.stop()
    return run


def measure(load, programs, ports, options):
    figures = {}
    for _ in range(options.rounds):
        for size in options.bytes:
            for senders in options.senders:
                mails = max(20, min(options.mails, options.mails * 40_000 // size) * senders // max(options.senders))
                for name, program in programs.items():
                    order = {"target": f"127.0.0.1:{ports[name]}", "generate": size, "mails": mails, "senders": senders,
                             "mails_per_connection": 20, "timeout": 120}
                    if name == "sluice":
                        order["login"] = LOGIN
                    before = processor_seconds([program])
                    answer = load.run(**order)
                    if answer["delivered"] != mails or answer["duplicates"]:
                        raise Failed(f"{name}: {answer}")
                    used = processor_seconds([program]) - before
                    figures.setdefault((size, senders, name), []).append((answer["mails_s"], 1000 * used / mails))
    return figures


def table(folder, figures, options):
    lines = describe(folder) + ["", "| mail | senders | target | mails/s | CPU ms a mail | mails/s of Postfix |", "|---|---|---|---|---|---|"]
    for (size, senders, name), rounds in figures.items():
        rates, costs = zip(*rounds)
        other = [rate for rate, _ in figures[size, senders, "postfix"]]
        ratio = median(rate / peer for rate, peer in zip(rates, other))
        lines.append(f"| {size} B | {senders} | {name} | {spread(rates, 0)} | {spread(costs, 2)} | ×{ratio:.2f} |")
    return "\n".join(lines)


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(prog="bench/queue")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--senders", type=numbers, default=[1, 16])
    parser.add_argument("--bytes", type=numbers, default=[4_000])
    parser.add_argument("--mails", type=int, default=3_200)
    print_bench("queue", bench(parser.parse_args()))


if __name__ == "__main__":
    main()

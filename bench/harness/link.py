"""bench/link: what Sluice costs on a line of 100 Mb/s.

Three network namespaces in a row: client, gateway, server. Both lines are veth pairs with a token bucket of 100 Mb/s at
each end. Direct mails are routed through the gateway's kernel; the others go to Sluice there, which sends them on. So
both cross the same two lines, and what is compared is a gateway with a router.

One sender shows what the hold-back of the head adds to each mail; several senders fill the line. Alternates within each
round; throughput is payload from the first connection to the last reply, seen by the client.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from statistics import median

import mails
from load import Load
from processes import Failed, take_charge
from targets import start_sluice

RATE = "100mbit"
# What a token bucket lets through at once: the more, the fewer segments the kernel has to cut.
BURST = {"100mbit": "16kb", "1gbit": "128kb"}
AIM_PERCENT = 6.7
SERVER = "10.77.2.2:9025"
SLUICE = "10.77.1.2:2525"
RUN_SECONDS_MAX = 120


class Namespaces:
    """client, gateway and server, connected in a row; deleted with all that is in them."""

    def __init__(self, rate=RATE):
        self.rate = rate
        self.names = {name: f"sluice-{name}-{os.getpid()}" for name in ("client", "gateway", "server")}

    def __enter__(self):
        try:
            for name in self.names.values():
                _ip("netns", "add", name)
                _ip("-n", name, "link", "set", "lo", "up")
            self._connect("client", "10.77.1.1", "gateway", "10.77.1.2")
            self._connect("gateway", "10.77.2.1", "server", "10.77.2.2")
            _ip("-n", self.names["client"], "route", "add", "default", "via", "10.77.1.2")
            _ip("-n", self.names["server"], "route", "add", "default", "via", "10.77.2.1")
            _call(*self.within("gateway"), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        except Failed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def within(self, name):
        """The words that put a command into a namespace."""
        return ["ip", "netns", "exec", self.names[name]]

    def _connect(self, left, left_address, right, right_address):
        _ip("-n", self.names[left], "link", "add", f"to-{right}", "type", "veth",
            "peer", "name", f"to-{left}", "netns", self.names[right])
        for name, device, address in ((left, f"to-{right}", left_address), (right, f"to-{left}", right_address)):
            _ip("-n", self.names[name], "address", "add", f"{address}/30", "dev", device)
            _ip("-n", self.names[name], "link", "set", device, "up")
            _call("tc", "-n", self.names[name], "qdisc", "add", "dev", device, "root",
                  "tbf", "rate", self.rate, "burst", BURST[self.rate], "latency", "50ms")


def main():
    options = parse()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        with Namespaces() as namespaces:
            measure(options, folder, namespaces)
    except Failed as reason:
        print(f"bench/link: skipped: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(prog="bench/link", description="What Sluice costs on a 100 Mb/s line.")
    parser.add_argument("--quick", action="store_true", help="one minute: four senders, two rounds")
    parser.add_argument("--set", default="exe1m", choices=mails.SETS, help="which mails (exe1m)")
    parser.add_argument("--senders", help="numbers of senders (1,4,16)")
    parser.add_argument("--rounds", type=int, help="rounds (5)")
    options = parser.parse_args()
    senders = options.senders or ("4" if options.quick else "1,4,16")
    options.senders = [int(number) for number in senders.split(",")]
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


def measure(options, folder, namespaces):
    os.mkdir(f"{folder}/mails")
    mails.write(f"{folder}/mails")
    programs = []
    try:
        programs.append(Load(os.environ["LOAD"], SERVER, namespaces.within("server")))
        programs.append(start_sluice(folder, SLUICE, SERVER, within=namespaces.within("gateway")))
        client = Load(os.environ["LOAD"], within=namespaces.within("client"))
        programs.append(client)
        print(f"{options.set} on two lines of {RATE}; payload Mb/s, median [least..most] of {options.rounds} rounds\n")
        print("| senders | direct | through Sluice | below direct |\n|---|---|---|---|")
        for senders in options.senders:
            print(compare(options, folder, client, senders), flush=True)
        print(f"\nAim: no more than {AIM_PERCENT} % below direct.")
    finally:
        for program in reversed(programs):
            program.stop()


def compare(options, folder, client, senders):
    """One row of the table."""
    rates = {SERVER: [], SLUICE: []}
    manifest = mails.manifest(f"{folder}/mails", options.set)
    count = mails_for_some_seconds(folder, options.set)
    for number in range(options.rounds):
        for target in (SERVER, SLUICE) if number % 2 == 0 else (SLUICE, SERVER):
            answer = client.run(target=target, manifest=manifest, mails=count, senders=senders, timeout=RUN_SECONDS_MAX)
            if answer["accepted"] != count:
                raise Failed(f"{target}: {answer['accepted']} of {count} accepted, {answer['reply']!r}")
            rates[target].append(answer["payload_mbit_s"])
    below = [100 * (1 - through / direct) for direct, through in zip(rates[SERVER], rates[SLUICE])]
    return (f"| {senders} | {spread(rates[SERVER])} | {spread(rates[SLUICE])} | "
            f"{median(below):.1f} % [{min(below):.1f}..{max(below):.1f}] |")


def mails_for_some_seconds(folder, name):
    """As many mails as cross the line in about five seconds."""
    return max(16, int(5 * 12_000_000 / mails.wire_bytes(f"{folder}/mails", name)))


def spread(values):
    return f"{median(values):.1f} [{min(values):.1f}..{max(values):.1f}]"


def _ip(*words):
    _call("ip", *words)


def _call(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()

"""bench/retrieve: mails from Dovecot's mailboxes through Sluice beside the same without it.

Client, gateway and server are network namespaces in a row (`link.Namespaces`), both lines held to one rate. Direct
connections are routed through the gateway's kernel; the others end at Sluice, which has its own to the server. Each client
logs in once and then asks for one mail after the other until the time is up. Direct and through Sluice take turns; for a
client alone a relay has its turn too that stands where Sluice does and looks at nothing.

Sluice and the relay go first where somebody waits for a processor (SCHED_FIFO), as the router does that the kernel is: on a
machine of its own a gateway waits for neither clients nor server.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile

import machine
import mailboxes
from link import Namespaces
from load import Load
from processes import Failed, take_charge

PORTS = ("pop3", "pop3s", "imap", "imaps")
LINKS = {"100mbit": 100, "1gbit": 1000}
SERVER, GATEWAY = "10.77.2.2", "10.77.1.2"
RELAYS = {name: 19_090 + place for place, name in enumerate(PORTS)}
FIRST = ("chrt", "--fifo", "1")

# Below this share of the line, direct, something else than the line is the limit.
FULL_PERCENT = 90
AIM_PERCENT = 95
FIRST_AIM_MS = 1.0


def main():
    options = parse()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        mailboxes.certificate(folder)
        missed = []
        for place, link in enumerate(options.links):
            with Namespaces(link) as namespaces:
                missed += measure(options, f"{folder}/{link}", folder, link, namespaces, first=place == 0)
        report(missed)
    except Failed as reason:
        sys.exit(f"bench/retrieve: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(prog="bench/retrieve", description="POP3 and IMAP through Sluice, and without.")
    parser.add_argument("--quick", action="store_true", help="1 and 50 clients, one round of a second")
    parser.add_argument("--links", type=names, default=list(LINKS), help=", ".join(LINKS))
    parser.add_argument("--clients", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--protocols", type=names, default=["pop3", "imap"])
    parser.add_argument("--sizes", type=names, default=list(mailboxes.SIZES), help=", ".join(mailboxes.SIZES))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--queue", action="store_true", help="Sluice waits for a processor like everybody else")
    options = parser.parse_args()
    options.clients = options.clients or ([1, 50] if options.quick else [1, 10, 50, 200])
    options.seconds = options.seconds or (1.0 if options.quick else 2.0)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def names(text):
    return text.split(",")


def measure(options, folder, certificate, link, namespaces, first):
    """One table; the rows that miss the aim."""
    os.mkdir(folder)
    for name in ("server.crt", "server.key"):
        shutil.copy(f"{certificate}/{name}", folder)
    os.chmod(folder, 0o755)
    direct = {name: 19_060 + place for place, name in enumerate(PORTS)}
    through = {name: 19_070 + place for place, name in enumerate(PORTS)}
    programs, missed = [], []
    try:
        programs.append(mailboxes.start_dovecot(folder, direct, SERVER, namespaces.within("server")))
        listeners = [mailboxes.listener(name.rstrip("s"), through[name], direct[name], name.endswith("s"), GATEWAY, SERVER)
                     for name in PORTS]
        gateway = [*namespaces.within("gateway"), *([] if options.queue else FIRST)]
        programs.append(mailboxes.start_sluice(folder, listeners, within=gateway))
        relay = Load(os.environ["LOAD"], within=gateway)
        programs.append(relay)
        for name in PORTS:
            relay.run(relay=f"{GATEWAY}:{RELAYS[name]}", target=f"{SERVER}:{direct[name]}")
        load = Load(os.environ["LOAD"], within=namespaces.within("client"))
        programs.append(load)
        if first:
            print(machine.describe(folder)[0] + "\n")
        print(f"Two lines of {LINKS[link]} Mb/s.\n")
        print("| protocol | mails | TLS | clients | direct, Mb/s | Sluice, Mb/s | of direct | "
              "of a relay | busy | first byte later, ms | last byte later, ms | relay: first | last |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
        for protocol in options.protocols:
            for size in options.sizes:
                for tls in (False, True):
                    name = protocol + "s" * tls
                    for clients in options.clients:
                        cell = Cell(protocol, size, tls, clients, LINKS[link])
                        cell.measure(options, load, f"{SERVER}:{direct[name]}", f"{GATEWAY}:{through[name]}",
                                     f"{GATEWAY}:{RELAYS[name]}")
                        print(cell.row(), flush=True)
                        missed += cell.missed()
        print()
        return missed
    finally:
        for program in reversed(programs):
            program.stop()


class Cell:
    """One row: what came of the rounds."""

    def __init__(self, protocol, size, tls, clients, rate):
        self.protocol, self.size, self.tls, self.clients, self.rate = protocol, size, tls, clients, rate
        self.direct, self.through, self.relay, self.busy = [], [], [], []

    def measure(self, options, load, server, gateway, relay):
        ways = [(self.direct, server), (self.through, gateway)] + [(self.relay, relay)] * (self.clients == 1)
        for number in range(options.rounds):
            for way, target in ways[::1 if number % 2 == 0 else -1]:
                before = machine.processors()
                answer = load.run(retrieve=self.protocol, target=target, tls=int(self.tls), user=self.size,
                                  mails=mailboxes.SIZES[self.size][1], clients=self.clients,
                                  milliseconds=int(1000 * options.seconds))
                way.append(answer)
                if way is self.through:
                    self.busy.append(machine.busy_share(before))

    def mbit(self, answers):
        return statistics.median(8e-6 * answer["bytes"] / answer["wall_s"] for answer in answers)

    def percent(self, base):
        pairs = zip(base, self.through)
        return 100 * statistics.median(
            (b["bytes"] / b["wall_s"]) / (a["bytes"] / a["wall_s"]) for a, b in pairs)

    def later(self, way, what):
        """Milliseconds that the median mail comes later; of one client alone, for others wait for each other."""
        middle = [statistics.median(answer[what]["median"] for answer in answers) for answers in (way, self.direct)]
        return middle[0] - middle[1]

    def row(self):
        of_relay, late = "", [""] * 4
        if self.clients == 1:
            of_relay = f"{self.percent(self.relay):.0f} %"
            late = [f"{self.later(way, what):.2f}" for way in (self.through, self.relay) for what in ("first_ms", "whole_ms")]
        return (f"| {self.protocol} | {self.size} | {'yes' if self.tls else 'no'} | {self.clients} | "
                f"{self.mbit(self.direct):.1f} | {self.mbit(self.through):.1f} | {self.percent(self.direct):.0f} % | "
                f"{of_relay} | {100 * statistics.median(self.busy):.0f} % | {' | '.join(late)} |")

    def missed(self):
        name = f"{self.rate} Mb/s, {self.protocol}, {self.size}, TLS {'on' if self.tls else 'off'}, {self.clients} clients"
        if self.mbit(self.direct) >= FULL_PERCENT / 100 * self.rate and self.percent(self.direct) < AIM_PERCENT:
            yield f"{name}: {self.percent(self.direct):.1f} % of direct"
        if self.clients == 1 and self.later(self.through, "first_ms") > FIRST_AIM_MS:
            yield f"{name}: first byte {self.later(self.through, 'first_ms'):.2f} ms later"


def report(missed):
    print(f"Aim: {AIM_PERCENT} % of direct where direct takes {FULL_PERCENT} % of the line and more, and the first byte of an "
          f"answer no more than {FIRST_AIM_MS:.0f} ms later.")
    print("Missed:\n" + "\n".join(f"- {row}" for row in missed) if missed else "Missed: nowhere.")


if __name__ == "__main__":
    main()

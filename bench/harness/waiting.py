"""bench/waiting: a queue in which many mails wait for a domain whose server is not there.

The same mails for a good domain are sent with an empty queue and with a full one. Memory is the proportional set size of all processes
after a start, beyond that of a start with an empty queue. A start is over when the program says that it is ready, and its first mail
when that is at the sink; before the second start all processes are killed.
"""

import argparse
import os
import signal
import socket
import threading
import time
from statistics import median

from load import Load
from machine import describe
from measures import print_bench
from outgoing import LOGIN, SLUICE, add_account
from processes import Failed, Program, memory_bytes
from web import free_port, write

ROUTES = """[store.queue.routes]
"dead.test" = "smtp://127.0.0.1:{dead}"
"sink.test" = "smtp://127.0.0.1:{sink}"
[[listener]]"""
FILLERS = 32
MAIL = (b"From: sender@client.test\r\nDate: Sun, 29 Nov 2026 21:00:00 +0000\r\nMessage-ID: <1.bench@client.test>\r\n"
        b"Subject: x\r\n\r\n" + b"a line of the body\r\n" * 25 + b".\r\n")
ENVELOPE = b"MAIL FROM:<sender@client.test>\r\nRCPT TO:<user@dead.test>\r\nDATA\r\n"


def bench(options):
    def run(folder):
        ports = {name: free_port() for name in ("sluice", "sink", "dead")}
        load = Load(os.environ["LOAD"], f"127.0.0.1:{ports['sink']}")
        add_account(folder)
        site = Site(folder, ports, load)
        try:
            return table(folder, measure(site, options), options)
        finally:
            site.stop()
            load.stop()
    return run


class Site:
    def __init__(self, folder, ports, load):
        text = SLUICE.replace("[[listener]]", ROUTES).replace("2G", "8G").format(folder=folder, **ports)
        self.folder, self.ports, self.load, self.program = folder, ports, load, None
        self.conf = write(f"{folder}/sluice.toml", text)
        self.start()

    def start(self):
        """Seconds until it is ready, and until a mail has gone through it."""
        log = f"{self.folder}/sluice.out"
        open(log, "w").close()
        began = time.monotonic()
        self.program = Program("sluice", [os.environ["SLUICE"], "serve", "--allow-root", "--config", self.conf], log)
        self.program.wait_until(lambda: "ready" in open(log).read())
        ready = time.monotonic() - began
        self.rate(1, 1)
        return ready, time.monotonic() - began

    def stop(self):
        if self.program:
            self.program.stop()

    def kill(self):
        for process in self.program.tree():
            os.kill(process, signal.SIGKILL)
        self.stop()

    def rate(self, mails, senders):
        answer = self.load.run(target=f"127.0.0.1:{self.ports['sluice']}", generate=4_000, mails=mails, senders=senders,
                               mails_per_connection=20, timeout=120, login=LOGIN)
        if answer["delivered"] != mails or answer["duplicates"]:
            raise Failed(f"{answer}")
        return answer["mails_s"]

    def fill(self, count):
        """Mails a second that it accepts for the dead domain."""
        shares = [count // FILLERS + (at < count % FILLERS) for at in range(FILLERS)]
        refused = []
        threads = [threading.Thread(target=self.send, args=(share, refused)) for share in shares]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if refused:
            raise Failed(f"a mail for the dead domain: {refused[0]}")
        return count / (time.monotonic() - began)

    def send(self, count, refused):
        with socket.create_connection(("127.0.0.1", self.ports["sluice"])) as stream, stream.makefile("rb") as lines:
            def expect(code):
                line = lines.readline()
                while line[3:4] == b"-":
                    line = lines.readline()
                if not line.startswith(code):
                    raise ValueError(line)
            try:
                expect(b"220")
                stream.sendall(b"EHLO client.test\r\n")
                expect(b"250")
                stream.sendall(b"AUTH PLAIN " + LOGIN.encode() + b"\r\n")
                expect(b"235")
                for _ in range(count):
                    stream.sendall(ENVELOPE)
                    for code in (b"250", b"250", b"354"):
                        expect(code)
                    stream.sendall(MAIL)
                    expect(b"250")
            except ValueError as error:
                refused.append(error)


def measure(site, options):
    figures = {}
    rates = lambda: [site.rate(options.mails, 16) for _ in range(options.rounds)]
    site.stop()
    ready, first = site.start()
    figures["start with an empty queue"] = f"ready in {ready:.2f} s, first mail after {first:.2f} s"
    empty_bytes = memory_bytes([site.program])
    empty = rates()
    figures["accepted for the dead domain"] = f"{site.fill(options.waiting):.0f} mails/s"
    full = rates()
    figures["others, empty queue"] = f"{median(empty):.0f} mails/s"
    figures["others, full queue"] = f"{median(full):.0f} mails/s (x {median(full) / median(empty):.2f})"
    for name, end in (("start", site.stop), ("start after a kill", site.kill)):
        end()
        ready, first = site.start()
        figures[name] = f"ready in {ready:.2f} s, first mail after {first:.2f} s"
        each = (memory_bytes([site.program]) - empty_bytes) / options.waiting
        figures[f"memory, {name}"] = f"{each:.0f} bytes a mail"
    figures["others, after the starts"] = f"{median(rates()):.0f} mails/s"
    return figures


def table(folder, figures, options):
    lines = describe(folder) + ["", f"| {options.waiting} mails wait | |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {figure} |" for name, figure in figures.items()])


def main():
    parser = argparse.ArgumentParser(prog="bench/waiting")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--mails", type=int, default=3_200)
    parser.add_argument("--rounds", type=int, default=3)
    print_bench("waiting", bench(parser.parse_args()))


if __name__ == "__main__":
    main()

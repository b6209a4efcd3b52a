"""bench/retrieve: mails from Dovecot's mailboxes through Sluice beside the same without it.

Each client logs in once and then asks for one mail after the other until the time is up. Direct and through Sluice take
turns. The clients are threads of one process and share the two cores with the rest: the ratio counts, not the figures.
Time to the first byte is from the command to the first byte that answers it, of one client alone.
"""

import argparse
import os
import shutil
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time

import mailboxes
from processes import Failed, take_charge

PORTS = ("pop3", "pop3s", "imap", "imaps")


def main():
    options = parse()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    programs = []
    try:
        direct = {name: 19_060 + place for place, name in enumerate(PORTS)}
        through = {name: 19_070 + place for place, name in enumerate(PORTS)}
        mailboxes.certificate(folder)
        programs.append(mailboxes.start_dovecot(folder, direct))
        listeners = [mailboxes.listener(name.rstrip("s"), through[name], direct[name], name.endswith("s"))
                     for name in PORTS]
        programs.append(mailboxes.start_sluice(folder, listeners))
        report(options, direct, through)
    except Failed as reason:
        sys.exit(f"bench/retrieve: {reason}")
    finally:
        for program in reversed(programs):
            program.stop()
        shutil.rmtree(folder, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(prog="bench/retrieve", description="POP3 and IMAP through Sluice, and without.")
    parser.add_argument("--quick", action="store_true", help="1 and 50 clients, one round of a second")
    parser.add_argument("--clients", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--protocols", type=lambda text: text.split(","), default=["pop3", "imap"])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    options.clients = options.clients or ([1, 50] if options.quick else [1, 10, 50, 200])
    options.seconds = options.seconds or (1.0 if options.quick else 2.0)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def report(options, direct, through):
    print("| protocol | mails | TLS | clients | direct, MB/s | Sluice, MB/s | of direct | first byte later, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for protocol in options.protocols:
        for size in mailboxes.SIZES:
            for tls in (False, True):
                name = protocol + "s" * tls
                for clients in options.clients:
                    print(row(options, protocol, size, tls, clients, direct[name], through[name]), flush=True)


def row(options, protocol, size, tls, clients, direct, through):
    rates, delays = {direct: [], through: []}, {direct: [], through: []}
    for number in range(options.rounds):
        for port in (direct, through) if number % 2 == 0 else (through, direct):
            crowd = Crowd(protocol, size, tls, port, clients, options.seconds)
            rates[port].append(crowd.run() / 1e6)
            delays[port] += crowd.delays
    ratio = statistics.median(b / a for a, b in zip(rates[direct], rates[through]))
    later = "" if clients > 1 else f"{1000 * (statistics.median(delays[through]) - statistics.median(delays[direct])):.2f}"
    return (f"| {protocol} | {size} | {'yes' if tls else 'no'} | {clients} | {statistics.median(rates[direct]):.1f} | "
            f"{statistics.median(rates[through]):.1f} | {100 * ratio:.0f} % | {later} |")


class Crowd:
    """Some clients that ask for mails at the same time."""

    def __init__(self, protocol, size, tls, port, clients, seconds):
        self.reader = {"pop3": Pop3, "imap": Imap}[protocol]
        self.user, self.tls, self.port, self.clients, self.seconds = size, tls, port, clients, seconds
        self.count = mailboxes.SIZES[size][1]
        self.bytes, self.delays, self.failures = [0] * clients, [], []

    def run(self):
        """Bytes in a second."""
        self.begin = threading.Barrier(self.clients + 1)
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(self.clients)]
        for thread in threads:
            thread.start()
        self.begin.wait(60)
        start = time.monotonic()
        for thread in threads:
            thread.join()
        if self.failures:
            raise Failed(f"port {self.port}: {self.failures[0]!r}")
        return sum(self.bytes) / (time.monotonic() - start)

    def work(self, number):
        try:
            reader = self.reader(self.port, self.tls, self.user)
            self.begin.wait(60)
            end, mail = time.monotonic() + self.seconds, number
            while time.monotonic() < end:
                sent = time.monotonic()
                first, count = reader.retrieve(mail % self.count + 1)
                if number == 0:
                    self.delays.append(first - sent)
                self.bytes[number] += count
                mail += 1
        except Exception as reason:  # told by whoever waits for this thread
            self.failures.append(reason)
            self.begin.abort()


class Reader:
    """A connection that has greeted."""

    def __init__(self, port, tls, user):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.buffer = bytearray(1 << 17)
        self.log_in(user)

    def ask(self, line, end):
        """Sends a line, if any, and reads up to a line that begins like this."""
        if line:
            self.socket.sendall(line + b"\r\n")
        heard = b""
        while not any(part.startswith(end) for part in heard.splitlines(True) if part.endswith(b"\n")):
            piece = self.socket.recv(1 << 14)
            if not piece:
                raise Failed(f"closed after {heard!r}")
            heard += piece
        return heard

    def read_to(self, line, end):
        """When the first byte came, and how many did, up to this end."""
        self.socket.sendall(line)
        first, count, tail = None, 0, b""
        while not tail.endswith(end):
            got = self.socket.recv_into(self.buffer)
            first = first or time.monotonic()
            if not got:
                raise Failed("closed in the middle of a mail")
            count += got
            tail = (tail + bytes(self.buffer[max(0, got - 64):got]))[-64:]
        return first, count


class Pop3(Reader):
    def log_in(self, user):
        self.ask(None, b"+OK")
        self.ask(b"USER " + user.encode(), b"+OK")
        self.ask(b"PASS secret", b"+OK")

    def retrieve(self, mail):
        return self.read_to(b"RETR %d\r\n" % mail, b"\r\n.\r\n")


class Imap(Reader):
    def log_in(self, user):
        self.ask(None, b"* OK")
        self.ask(b"a LOGIN %s secret" % user.encode(), b"a OK")
        self.ask(b"b SELECT INBOX", b"b OK")
        self.number = 0

    def retrieve(self, mail):
        # Only the end of the answer is looked for: Dovecot tells how long it took.
        self.number += 1
        tag = b"t%d" % self.number
        self.socket.sendall(tag + b" FETCH %d BODY.PEEK[]\r\n" % mail)
        first, count, tail = None, 0, b""
        while tag + b" OK" not in tail or not tail.endswith(b"\r\n"):
            got = self.socket.recv_into(self.buffer)
            first = first or time.monotonic()
            if not got:
                raise Failed("closed in the middle of a mail")
            count += got
            tail = (tail + bytes(self.buffer[max(0, got - 200):got]))[-200:]
        return first, count


if __name__ == "__main__":
    main()

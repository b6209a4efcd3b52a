"""bench/memory: what a client costs that is slow, and in the middle of a mail with an attachment of 300 kB.

Every client sends a piece of 4 kB in turn, with pauses, until it has sent as much as was asked for, and then nothing for
a few seconds. The mails are all different: machine code from another place each. The figure is the proportional set
size, by process and by kind of memory; what a client costs is the growth from the first row to the last, divided by the
clients between them. Page tables are the kernel's, and stand beside it.
"""

import argparse
import multiprocessing
import shutil
import socket
import sys
import tempfile
import threading
import time

import mails
import signatures
from processes import Failed, take_charge
from sockets import is_open
from targets import start_sluice

SINK, DOOR = 19_090, 19_092
ATTACHMENT_BYTES = 300_000
PIECE_BYTES = 4 << 10
PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 4
COLUMNS = ("edge", "jails", "others", "anonymous", "shared", "files", "page tables")


def main():
    parser = argparse.ArgumentParser(prog="bench/memory", description="Memory of Sluice for each slow client.")
    parser.add_argument("--clients", type=counts, default=[1, 10, 50, 100, 200])
    parser.add_argument("--sent", type=counts, default=[20_000, 150_000], help="bytes that each has sent")
    parser.add_argument("--isolation", choices=("process", "none"), default="process")
    options = parser.parse_args()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    sink = multiprocessing.Process(target=serve, daemon=True)
    sink.start()
    try:
        signatures.write(folder)
        for sent in options.sent:
            measure(folder, options, sent)
    except Failed as reason:
        sys.exit(f"bench/memory: {reason}")
    finally:
        sink.kill()
        sink.join()
        shutil.rmtree(folder, ignore_errors=True)


def counts(text):
    return [int(count) for count in text.split(",")]


def measure(folder, options, sent):
    """Prints a table: a row without clients, and one for each number of clients, which all stay."""
    sluice = start_sluice(folder, f"127.0.0.1:{DOOR}", f"127.0.0.1:{SINK}", folder, isolation=options.isolation)
    clients = []
    try:
        print(f"\n{sent} bytes sent, kB (PSS):\n\n| clients | all | {' | '.join(COLUMNS)} |")
        print("|---" * (2 + len(COLUMNS)) + "|")
        rows = {0: row(0, sluice)}
        for count in options.clients:
            clients += fill(len(clients), count, sent)
            time.sleep(SETTLE_SECONDS)
            rows[count] = row(count, sluice)
        first, last = options.clients[0], options.clients[-1]
        if last > first:
            each = [(after - before) / (last - first) for before, after in zip(rows[first], rows[last])]
            print(f"| each of {first} to {last} | {' | '.join(f'{kilobytes:.1f}' for kilobytes in each)} |", flush=True)
        for client in clients:
            client.sendall(b"\r\n.\r\n")
        for client in clients:
            if not client.recv(512).startswith(b"250"):
                raise Failed("a mail was refused")
    finally:
        for client in clients:
            client.close()
        sluice.stop()


def fill(first, last, sent):
    """Clients number `first` to `last`, each of which has sent so much."""
    clients = [begin() for _ in range(first, last)]
    contents = [mail(number)[:sent] for number in range(first, last)]
    for at in range(0, sent, PIECE_BYTES):
        for client, content in zip(clients, contents):
            client.sendall(content[at:at + PIECE_BYTES])
        time.sleep(PAUSE_SECONDS)
    return clients


def begin():
    client = socket.create_connection(("127.0.0.1", DOOR))
    client.recv(512)
    for line in ("EHLO client.test", "MAIL FROM:<sender@client.test>", "RCPT TO:<user@sink.test>", "DATA"):
        client.sendall(line.encode() + b"\r\n")
        if client.recv(1024)[:1] not in (b"2", b"3"):
            raise Failed(f"{line} was refused")
    return client


def mail(number):
    return mails.program(ATTACHMENT_BYTES, 4_096 * number).replace(b"\n", b"\r\n")


def row(count, sluice):
    """Kilobytes, printed: of all, and by column."""
    kilobytes = dict.fromkeys(COLUMNS, 0)
    for process in sluice.tree():
        kinds = mapped(process)
        kilobytes[role(process)] += sum(kinds.values())
        for kind, size in kinds.items():
            kilobytes[kind] += size
        kilobytes["page tables"] += field(f"/proc/{process}/status", "VmPTE:")
    figures = [sum(kilobytes[role] for role in ("edge", "jails", "others")), *kilobytes.values()]
    print(f"| {count} | {' | '.join(map(str, figures))} |", flush=True)
    return figures


def role(process):
    with open(f"/proc/{process}/comm") as file:
        name = file.read()
    return "jails" if "jail " in name else "edge" if "edge" in name else "others"


def mapped(process):
    """Its PSS by kind of memory."""
    kinds = dict.fromkeys(("anonymous", "shared", "files"), 0)
    with open(f"/proc/{process}/smaps") as lines:
        kind = "anonymous"
        for words in map(str.split, lines):
            if "-" in words[0] and not words[0].endswith(":"):
                name = " ".join(words[5:])
                kind = "shared" if "memfd" in name else "files" if name.startswith("/") else "anonymous"
            elif words[0] == "Pss:":
                kinds[kind] += int(words[1])
    return kinds


def field(file, name):
    with open(file) as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def serve():
    """A mail server that takes everything."""
    server = socket.create_server(("127.0.0.1", SINK), backlog=1_000)
    while True:
        threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()


def answer(client):
    client.sendall(b"220 sink.test ESMTP\r\n")
    lines = client.makefile("rb")
    for line in lines:
        client.sendall(b"354 go on\r\n" if line.upper().startswith(b"DATA") else b"250 sink.test\r\n")
        if line.upper().startswith(b"DATA"):
            while lines.readline() not in (b".\r\n", b""):
                pass
            client.sendall(b"250 taken\r\n")


if __name__ == "__main__":
    main()

"""Sends mails one after the other, by several clients, until it is told to end; counts what became of them.

`refused` are connections that were not taken, and greetings other than 220; `lost` are mails whose answer never came after the dot;
`again` are those that were told to come again (4xx), or whose connection ended before the dot, as clients of SMTP do.
"""

import socket
import sys
import threading
import time

address = (sys.argv[1], int(sys.argv[2]))
count = {"taken": 0, "again": 0, "refused": 0, "lost": 0}
lock = threading.Lock()
ending = threading.Event()
slowest = 0.0


def note(what):
    with lock:
        count[what] += 1


def mail():
    global slowest
    began = time.monotonic()
    try:
        stream = socket.create_connection(address, timeout=60)
    except OSError:
        return note("refused")
    dotted = False
    try:
        file = stream.makefile("rb")

        def reply():
            line = file.readline()
            while line[3:4] == b"-":
                line = file.readline()
            return line[:3]

        greeting = reply()
        slowest = max(slowest, time.monotonic() - began)
        if greeting != b"220":
            # A session that the old program has taken, and ends, before it has begun.
            return note("again" if greeting in (b"421", b"") else "refused")
        for line in (b"EHLO a.test", b"MAIL FROM:<a@a.test>", b"RCPT TO:<b@b.test>", b"DATA"):
            stream.sendall(line + b"\r\n")
            if reply()[:1] not in (b"2", b"3"):
                return note("again")
        for _ in range(20):
            stream.sendall(b"Subject: x\r\n" if _ == 0 else (b"\r\n" if _ == 1 else b"line\r\n"))
            time.sleep(0.02)
        dotted = True
        stream.sendall(b".\r\n")
        answer = reply()
        note("taken" if answer[:1] == b"2" else "again" if answer else "lost")
    except OSError:
        note("lost" if dotted else "again")
    finally:
        stream.close()


def client():
    while not ending.is_set():
        mail()


threads = [threading.Thread(target=client) for _ in range(8)]
for thread in threads:
    thread.start()
sys.stdin.readline()
ending.set()
for thread in threads:
    thread.join()
print(", ".join(f"{what} {number}" for what, number in count.items()) + f", slowest greeting {slowest:.1f} s")

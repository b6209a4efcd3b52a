#!/usr/bin/env python3
"""Starts the image under QEMU and uses it as its users do: `bare/test.py IMAGE [--kills N] [--requests N] [--browser]`.

Mail comes in by SMTP; a browser's requests log in, list, read, download, write with an attachment, and log out. What is wrong is refused:
passwords, foreign recipients, forms of other sites, requests that are none. The machine is killed under load and started again: each mail
that was acknowledged is there. Prints what it measures, and ends with status 1 at the first thing that is not as it should be.
"""

import argparse
import hashlib
import http.client
import os
import random
import re
import smtplib
import socket
import subprocess
import tempfile
import threading
import time

import secure
from machine import Machine, check


def text(body):
    return " ".join(re.sub(r"<[^>]*>", " ", body.decode(errors="replace")).split())


def multipart(fields, name, content):
    boundary = "b" + hashlib.sha256(content).hexdigest()[:32]
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode() for key, value in fields.items()]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def use(machine):
    """Each thing that users do."""
    attachment = random.Random(1).randbytes(300_000)
    machine.send("Grüße", attachment=attachment)
    machine.send("to both", to=("info@example.org", "bob@example.org"))
    cookie = machine.log_in()
    check(cookie, "who knows the password logs in")
    status, _, page = machine.get("/", cookie)
    check(status == 200 and "Grüße" in text(page) and "to both" in text(page), "mail that has come is in the list")
    links = re.findall(rb'href="(/m/\d+/\d+)"', page)
    status, _, page = machine.get(links[-1].decode(), cookie)
    check(status == 200 and b"alert(1)" not in page, "a mail is read")
    frame = re.search(rb'src="([^"]*/html/[^"]*)"', page)[1].decode()
    status, headers, page_within = machine.get(frame, cookie)
    check(status == 200 and b"<b>Ann</b>" in page_within, "its page is shown in a frame")
    check(b"script" not in page_within and b"192.0.2.1" not in page_within, "without what runs and what fetches")
    check("sandbox" in headers["Content-Security-Policy"], "in a sandbox")
    status, _, content = machine.get(re.search(rb'href="([^"]*/part/[^"]*)"', page)[1].decode(), cookie)
    check(status == 200 and content == attachment, "an attachment is downloaded as it was sent")
    _, _, page = machine.get("/search?q=Gr%C3%BC%C3%9Fe", cookie)
    check("Grüße" in text(page) and "to both" not in text(page), "a word is found")

    _, _, page = machine.get("/write", cookie)
    token = re.search(rb'name="token" value="([^"]*)"', page)[1].decode()
    fields = {"token": token, "from": "ann@example.org", "to": "bob@example.org", "subject": "with a file", "text": "Hi", "do": "send"}
    body, kind = multipart(fields, "up.bin", attachment)
    status, headers, page = machine.request("POST", "/write", body, {"Cookie": cookie, "Content-Type": kind})
    check(status == 303 and "told=sent" in headers["Location"], "a mail with a file is sent: " + text(page)[:200])
    body, kind = multipart({**fields, "to": "eve@example.net"}, "up.bin", b"x")
    status, _, page = machine.request("POST", "/write", body, {"Cookie": cookie, "Content-Type": kind})
    check("its own accounts" in text(page), "and not to another server")
    other = machine.log_in("bob@example.org")
    _, _, page = machine.get("/", other)
    check("with a file" in text(page) and "to both" in text(page), "it is where it was sent")
    status, _, _ = machine.get(links[-1].decode(), other)
    check(status == 404, "nobody reads the mail of another")

    status, _, _ = machine.post("/logout", {"token": token}, cookie)
    check(status == 303 and b'type="password"' in machine.get("/", cookie)[2], "who logs out is logged out")


def refuse(machine):
    """Each thing that nobody may do."""
    check(machine.log_in(password="guess") is None, "a wrong password is refused")
    check(b'type="password"' in machine.get("/")[2], "a stranger sees the login page")
    check(machine.get("/settings")[0] == 303, "and is sent there from others")
    cookie = machine.log_in()
    status, _, _ = machine.post("/settings", {"token": "0" * 32}, cookie)
    check(status == 403, "a form without the token is refused")
    status, _, _ = machine.post("/login", {"name": "ann@example.org", "password": "secret"}, more={"Origin": "http://other.example"})
    check(status == 403, "a form of another site is refused")
    status, _, _ = machine.post("/login", {"name": "x" * 40_000, "password": "y"})
    check(status == 413, "a stranger's large form is refused")
    with smtplib.SMTP("127.0.0.1", machine.smtp, timeout=20) as session:
        for address in ("eve@example.net", "ann@elsewhere.example", "@example.org:eve@example.net"):
            session.ehlo()
            session.mail("")
            check(session.rcpt(address)[0] // 100 == 5, f"mail for {address} is refused")
            session.rset()
    for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n", b"A" * 20_000):
        with socket.create_connection(("127.0.0.1", machine.web), timeout=20) as one:
            one.sendall(nonsense)
            one.shutdown(socket.SHUT_WR)
            answer = one.recv(1_000)
            check(answer == b"" or b" 40" in answer[:16] or b" 43" in answer[:16], f"{nonsense[:10]} is refused: {answer[:50]}")
    idle = [socket.create_connection(("127.0.0.1", machine.web), timeout=20) for _ in range(20)]
    check(machine.get("/login")[0] == 200, "others are served beside the idle")
    for one in idle:
        one.close()
    for _ in range(12):
        machine.log_in(password="guess")
    check(machine.log_in() is None, "who has guessed often has to wait")


def pages(machine):
    """W^X: no page of the machine's page tables is written and run, and nothing is below the stacks and at address 0."""
    entries = re.findall(r"^([0-9a-f]{16}): [0-9a-f]{16} (\S{9})\r?$", machine.monitor("info tlb"), re.M)
    check(len(entries) > 30_000, f"the page tables are read: {len(entries)}")
    both = [address for address, flags in entries if flags[0] != "X" and flags[-1] == "W"]
    check(not both, f"no page is written and run: {both[:3]}")
    runs = [int(address, 16) for address, flags in entries if flags[0] != "X"]
    check(runs and min(runs) == 2 << 20 and max(runs) < 4 << 20, "only the image's code is run")
    mapped = {int(address, 16) for address, _ in entries}
    check(0 not in mapped, "nothing is at address 0")
    small = range(2 << 20, max(int(address, 16) for address, flags in entries if flags[2] != "P") + 4096, 4096)
    check(sum(address not in mapped for address in small) == 2, "below each of the two stacks is a page without memory")


def stay(machine):
    """Those who say nothing or little make room for others."""
    def connect(port, said):
        one = socket.create_connection(("127.0.0.1", port), timeout=20)
        one.sendall(said)
        return one

    # The machine is stopped meanwhile, so that all of them come at once.
    machine.monitor("stop")
    held = [connect(machine.web, b"GET /login HTTP/1.1\r\nHost: a\r\nX: ") for _ in range(80)]
    held += [connect(machine.smtp, b"EHLO a") for _ in range(40)]
    machine.monitor("cont")
    for _ in range(3):
        machine.answers()
        machine.send("beside those who say nothing")
    for one in held:
        one.close()
    check(machine.status()["connections"] <= 96, "connections are bounded")


def browse(machine):
    """A real browser, by TLS."""
    machine.send("for the browser")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser.mjs")
    command = ["node", script, f"https://127.0.0.1:{machine.secure}/", "ann@example.org", "secret", "for the browser"]
    ended = subprocess.run(command, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(ended.returncode == 0, f"a browser uses it: {ended.stdout}")
    print("in a browser: " + ", ".join(ended.stdout.splitlines()))


FIRST = 500


def grow(machine, count):
    """Bytes of memory that many requests take for ever."""
    cookie = machine.log_in()
    connection, free = http.client.HTTPConnection("127.0.0.1", machine.web, timeout=20), None
    for number in range(count):
        if number == FIRST:
            free = machine.status()["memory"]
        if number % 100 == 0:
            connection.close()
        connection.request("GET", ("/", "/settings", "/write", "/search?q=mail")[number % 4], headers={"Cookie": cookie})
        reply = connection.getresponse()
        check(reply.status == 200 and reply.read(), "a page comes")
    connection.close()
    if free is None:
        return 0
    more = free - machine.status()["memory"]
    check(more < 64 << 10, f"memory does not grow: {more} bytes")
    return more


def crash(machine, kills):
    """Mail comes in while the machine is killed; what was acknowledged is there."""
    acknowledged, ended = set(), threading.Event()

    def load(number):
        count = 0
        while not ended.is_set():
            count += 1
            subject = f"mail-{number}-{count}-"
            try:
                machine.send(subject, attachment=os.urandom(random.randrange(1, 60_000)))
                acknowledged.add(subject)
            except (OSError, smtplib.SMTPException):
                time.sleep(0.02)

    threads = [threading.Thread(target=load, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(random.uniform(0.05, 0.8))
        machine.kill()
        machine.start()
    ended.set()
    for thread in threads:
        thread.join()
    cookie, found, path = machine.log_in(), set(), "/"
    while path:
        _, _, page = machine.get(path, cookie)
        found.update(re.findall(r"mail-\d+-\d+-", text(page)))
        older = re.search(rb'href="([^"]*\?before=\d+)"', page)
        path = older[1].decode().replace("&amp;", "&") if older else None
    lost = acknowledged - found
    check(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged mails are lost, as {sorted(lost)[:3]}")
    return len(acknowledged)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--browser", action="store_true", help="Chromium too (browser.mjs)")
    options = parser.parse_args()
    print(f"image: {os.path.getsize(options.image)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options.image, folder)
        try:
            took = machine.start()
            print(f"first answer after {took * 1000:.0f} ms, with an empty disk made a store")
            use(machine)
            if options.browser:
                browse(machine)
            refuse(machine)
            machine.kill()
            print(f"first answer after {machine.start() * 1000:.0f} ms")
            pages(machine)
            stay(machine)
            secure.secure(machine)
            secure.keys(machine)
            secure.refuses(machine, "the processor has no randomness (RDRAND)", cpu="max,-rdrand")
            machine.start()
            count = options.requests
            print(f"{count} requests: {grow(machine, count)} bytes of memory more than after the first {FIRST}")
            print(f"killed {options.kills} times: {crash(machine, options.kills)} mails acknowledged, none lost")
        finally:
            machine.process.kill()
            machine.process.wait()
    print("as it should be")


if __name__ == "__main__":
    main()

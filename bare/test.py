#!/usr/bin/env python3
"""Starts the image under QEMU and uses it as its users do: `bare/test.py IMAGE [--kills N]`.

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
import signal
import smtplib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from email.message import EmailMessage

READY_SECONDS = 20


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Machine:
    """The image, with its two disks."""

    def __init__(self, image, folder):
        self.image, self.folder = image, folder
        self.web, self.smtp = free_port(), free_port()
        self.store, self.settings = f"{folder}/store.img", f"{folder}/site.conf"
        with open(self.store, "wb") as disk:
            disk.truncate(128 << 20)
        with open(self.settings, "w") as settings:
            settings.write("# a comment\nhostname = mx.example.org\nconnections = 32\naddress = 10.0.2.15/24\ngateway = 10.0.2.2\n"
                           "account = ann@example.org:{PLAIN}secret:aliases=info@example.org\n"
                           "account = bob@example.org:{PLAIN}secret:quota=2000000\n")

    def start(self):
        said, began = len(self.said()), time.monotonic()
        ports = f"hostfwd=tcp:127.0.0.1:{self.web}-:80,hostfwd=tcp:127.0.0.1:{self.smtp}-:25"
        self.console = open(f"{self.folder}/console", "ab")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max", "-m", "128", "-display", "none", "-serial", "stdio",
             "-no-reboot", "-kernel", self.image,
             "-drive", f"if=none,id=store,format=raw,file={self.store}", "-device", "virtio-blk-pci,drive=store",
             "-drive", f"if=none,id=site,format=raw,file={self.settings},readonly=on", "-device", "virtio-blk-pci,drive=site",
             "-netdev", f"user,id=net,{ports}", "-device", "virtio-net-pci,netdev=net"],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console)
        # A connection that QEMU's network begins before the machine listens is tried again seconds later.
        while "ready" not in self.said()[said:]:
            check(self.process.poll() is None, "the machine has stopped: " + self.said()[-500:])
            check(time.monotonic() - began < READY_SECONDS, "the machine does not start: " + self.said()[-500:])
            time.sleep(0.002)
        check(self.get("/login")[0] == 200, "the machine answers")
        return time.monotonic() - began

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def said(self):
        try:
            with open(f"{self.folder}/console", errors="replace") as console:
                return console.read()
        except FileNotFoundError:
            return ""

    def request(self, method, path, body=None, headers=None, timeout=20):
        connection = http.client.HTTPConnection("127.0.0.1", self.web, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def get(self, path, cookie=None):
        return self.request("GET", path, headers={"Cookie": cookie} if cookie else {})

    def post(self, path, fields, cookie=None, more=None):
        headers = {"Content-Type": "application/x-www-form-urlencoded", **({"Cookie": cookie} if cookie else {}), **(more or {})}
        return self.request("POST", path, urllib.parse.urlencode(fields), headers)

    def log_in(self, name="ann@example.org", password="secret"):
        status, headers, _ = self.post("/login", {"name": name, "password": password})
        cookie = headers.get("Set-Cookie", "").split(";")[0]
        return cookie if status == 303 else None

    def send(self, subject, to=("ann@example.org",), attachment=None):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "eve@example.net", ", ".join(to), subject
        mail.set_content(f"This is {subject}.\n")
        mail.add_alternative("<p>Hello <b>Ann</b><script>alert(1)</script><img src='http://192.0.2.1/x'></p>", subtype="html")
        if attachment:
            mail.add_attachment(attachment, maintype="application", subtype="octet-stream", filename="a.bin")
        with smtplib.SMTP("127.0.0.1", self.smtp, timeout=20) as session:
            session.send_message(mail)


def check(holds, what):
    if not holds:
        print(f"FAILED: {what}", file=sys.stderr)
        sys.exit(1)


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
    options = parser.parse_args()
    print(f"image: {os.path.getsize(options.image)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(os.path.abspath(options.image), folder)
        try:
            took = machine.start()
            print(f"first answer after {took * 1000:.0f} ms, with an empty disk made a store")
            use(machine)
            refuse(machine)
            machine.kill()
            print(f"first answer after {machine.start() * 1000:.0f} ms")
            print(f"killed {options.kills} times: {crash(machine, options.kills)} mails acknowledged, none lost")
        finally:
            machine.process.kill()
            machine.process.wait()
    print("as it should be")


main()

"""The image under QEMU, for the scripts here: started with its two disks, spoken to by its ports, killed."""

import http.client
import os
import re
import signal
import smtplib
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from email.message import EmailMessage

READY_SECONDS = 20


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


SETTINGS = """# a comment
hostname = mx.example.org
connections = 32
address = 10.0.2.15/24
gateway = 10.0.2.2
plain = yes
account = ann@example.org:{PLAIN}secret:aliases=info@example.org
account = bob@example.org:{PLAIN}secret:quota=2000000
"""


class Machine:
    """The image, with its two disks."""

    def __init__(self, image, folder, settings=SETTINGS):
        self.image, self.folder = os.path.abspath(image), folder
        self.web, self.smtp, self.secure = free_port(), free_port(), free_port()
        self.store, self.settings = f"{folder}/store.img", f"{folder}/site.conf"
        with open(self.store, "wb") as disk:
            disk.truncate(128 << 20)
        self.set(settings)

    def set(self, settings):
        with open(self.settings, "w") as file:
            file.write(settings)

    def network(self):
        ports = ((self.web, 80), (self.smtp, 25), (self.secure, 443))
        return "user,id=net," + ",".join(f"hostfwd=tcp:127.0.0.1:{outer}-:{inner}" for outer, inner in ports)

    def begin(self, cpu="max"):
        """Starts QEMU, and does not wait for the machine."""
        self.console = open(f"{self.folder}/console", "ab")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", cpu, "-m", "128", "-display", "none", "-serial", "stdio",
             "-no-reboot", "-kernel", self.image, "-monitor", f"unix:{self.folder}/monitor,server,nowait",
             "-drive", f"if=none,id=store,format=raw,file={self.store}", "-device", "virtio-blk-pci,drive=store",
             "-drive", f"if=none,id=site,format=raw,file={self.settings},readonly=on", "-device", "virtio-blk-pci,drive=site",
             "-netdev", self.network(), "-device", "virtio-net-pci,netdev=net,mac=52:54:00:12:34:56"],
            stdin=subprocess.PIPE, stdout=self.console, stderr=self.console)

    def start(self):
        said, began = len(self.said()), time.monotonic()
        self.begin()
        # A connection that QEMU's network begins before the machine listens is tried again seconds later.
        while "ready" not in self.said()[said:]:
            check(self.process.poll() is None, "the machine has stopped: " + self.said()[-500:])
            check(time.monotonic() - began < READY_SECONDS, "the machine does not start: " + self.said()[-500:])
            time.sleep(0.002)
        self.answers()
        return time.monotonic() - began

    def answers(self):
        check(self.get("/login")[0] in (200, 303), "the machine answers")

    def status(self):
        """The status page of the console, by its first words."""
        said = len(self.said())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        began = time.monotonic()
        while not re.search(r"memory \d+ of \d+ bytes free", self.said()[said:]):
            check(time.monotonic() - began < READY_SECONDS, "the console answers")
            time.sleep(0.01)
        page = self.said()[said:]
        numbers = {name: int(re.search(f"{name} (\\d+)", page)[1]) for name in ("requests", "mails", "messages", "memory")}
        return {**numbers, "connections": int(re.search(r"(\d+) of \d+ connections", page)[1])}

    def monitor(self, command):
        """The answer of QEMU's monitor."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(60)
            monitor.connect(f"{self.folder}/monitor")
            answer = b""
            for line in (b"", command.encode() + b"\n"):
                monitor.sendall(line)
                while not answer.endswith(b"(qemu) "):
                    answer += monitor.recv(1 << 20)
                answer, last = b"", answer
            return last.decode(errors="replace")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def said(self):
        try:
            with open(f"{self.folder}/console", errors="replace") as console:
                return console.read()
        except FileNotFoundError:
            return ""

    def request(self, method, path, body=None, headers=None, context=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.web, timeout=20)
        if context:
            connection = http.client.HTTPSConnection("127.0.0.1", self.secure, timeout=20, context=context)
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

    def send(self, subject, to=("ann@example.org",), attachment=None, context=None):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "eve@example.net", ", ".join(to), subject
        mail.set_content(f"This is {subject}.\n")
        mail.add_alternative("<p>Hello <b>Ann</b><script>alert(1)</script><img src='http://192.0.2.1/x'></p>", subtype="html")
        if attachment:
            mail.add_attachment(attachment, maintype="application", subtype="octet-stream", filename="a.bin")
        with smtplib.SMTP("127.0.0.1", self.smtp, timeout=20) as session:
            if context:
                session.starttls(context=context)
            session.send_message(mail)


def check(holds, what):
    if not holds:
        print(f"FAILED: {what}", file=sys.stderr)
        sys.exit(1)

"""bench/mailbox: one mailbox with COUNT mails by IMAP, and 10,000 of them by POP3, from sluice and from Dovecot with maildir and mdbox.

Mails are the same, 1 to 4 kB; the client is the same, and reads as fast as it comes. Each figure is the median of the rounds; the
first SELECT and the first FETCH after a start are apart from later ones, since Dovecot keeps what it has looked up in caches. Then
searches, sluice's with an index. Dovecot has none by default; `xapian` is mdbox with the plugin of Debian's package
dovecot-fts-xapian, which finds parts of words too, and takes most of an hour to make the index of 100,000 mails.
"""

import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from processes import Failed, Program, peak_resident_bytes, take_charge
from sockets import is_open

DOVECOT = """base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap pop3
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
passdb {{
 driver = static
 args = password=secret
}}
userdb {{
 driver = static
 args = uid=65534 gid=65534 home={folder}/home/%u
}}
mail_location = {location}
first_valid_uid = 1
first_valid_gid = 1
service imap-login {{
 chroot =
 inet_listener imap {{
  port = {imap}
 }}
}}
service pop3-login {{
 chroot =
 inet_listener pop3 {{
  port = {pop3}
 }}
}}
"""
INDEX = """default_vsz_limit = 0
mail_plugins = fts fts_xapian
plugin {
 fts = xapian
 fts_xapian = partial=3 full=20 verbose=0
}
"""
FORMATS = {"maildir": "maildir:~/Maildir", "mdbox": "mdbox:~/mdbox", "xapian": "mdbox:~/mdbox"}
TARGETS = ("sluice", "maildir", "mdbox")
COMMANDS = [
    ("SELECT", "SELECT INBOX"),
    ("FETCH flags, envelopes", "FETCH 1:* (FLAGS ENVELOPE)"),
    ("FETCH flags", "FETCH 1:* (FLAGS)"),
    ("SEARCH UNSEEN", "SEARCH UNSEEN"),
    ("SEARCH SUBJECT", 'SEARCH SUBJECT "number 77"'),
    ("SEARCH TEXT", 'SEARCH TEXT "nowhere to be found"'),
]
# Of them the first makes the index, in passing or before it answers.
SEARCHES = [
    ("text that is nowhere", 'TEXT "nowhere to be found"'),
    ("a word in a few", 'BODY "{word}"'),
    ("part of a word", 'BODY "{part}"'),
    ("two words beside each other", 'BODY "{pair}"'),
    ("subject", 'SUBJECT "number 77"'),
    ("sender", 'FROM "a13@example"'),
]


def main():
    parser = argparse.ArgumentParser(prog="bench/mailbox")
    parser.add_argument("count", nargs="?", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(TARGETS), help=", ".join(TARGETS))
    options = parser.parse_args()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        compare(options, folder)
    except Failed as reason:
        sys.exit(f"bench/mailbox: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(options, folder):
    for name, count in (("ann", options.count), ("bob", min(10_000, options.count))):
        mails(f"{folder}/made/{name}", count)
    rows = {}
    for target in options.targets:
        port = {"imap": free_port(), "pop3": free_port()}
        home = f"{folder}/{target}"
        os.mkdir(home, 0o755)
        fill(target, home, folder, port)
        for _ in range(options.rounds):
            program = start(target, home, port)
            try:
                for name, seconds in measure(port, options.count):
                    rows.setdefault(name, {}).setdefault(target, []).append(seconds * 1000)
            finally:
                peak = peak_resident_bytes(program) >> 20
                program.stop()
            print(f"{target}: peak {peak} MB", file=sys.stderr, flush=True)
        print("", file=sys.stderr)
        for name, seconds in searches(target, home, port, f"{folder}/made/ann/cur"):
            rows.setdefault(name, {})[target] = [second * 1000 for second in seconds]
        rows.setdefault("POP3, 10,000 mails", {})[target] = [drain(target, home, port) * 1000]
    with open("/proc/loadavg") as file:
        print(f"{options.count} mails; milliseconds, median [least..most] of {options.rounds} starts; load {file.read().split()[0]}\n")
    print(f"| | {' | '.join(options.targets)} |\n|{'---|' * (len(options.targets) + 1)}")
    for name, figures in rows.items():
        cell = lambda ms: "" if not ms else f"{statistics.median(ms):.1f} [{min(ms):.1f}..{max(ms):.1f}]"
        print(f"| {name} | {' | '.join(cell(figures.get(target)) for target in options.targets)} |")


def mails(folder, count):
    chance = random.Random(7)
    for part in ("cur", "new", "tmp"):
        os.makedirs(f"{folder}/{part}")
    words = [f"w{chance.randrange(100_000)}" for _ in range(2_000)]
    for number in range(count):
        text = " ".join(chance.choices(words, k=chance.randrange(100, 500)))
        with open(f"{folder}/cur/{1_700_000_000 + number}.{number}.bench:2,{'S' if number % 10 else ''}", "w") as file:
            file.write(f"From: A {number % 97} <a{number % 97}@example.net>\nTo: ann@example.org, b@example.org\nCc: c@example.org\n"
                       f"Subject: number {number}\nDate: Wed, 17 Jul 2024 02:23:{number % 60:02} -0700\n"
                       f"Message-ID: <{number}@example.net>\nIn-Reply-To: <{number - 1}@example.net>\n"
                       f"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{text}\n")


def fill(target, home, folder, port):
    if target == "sluice":
        run = lambda *words, **more: subprocess.run([os.environ["SLUICE"], *words], check=True, stdout=subprocess.DEVNULL, **more)
        run("store", "create", "--size", "2G", f"{home}/mail")
        for name in ("ann", "bob"):
            run("account", "--accounts", f"{home}/mail.accounts", "add", name, input=b"secret\n")
    else:
        for name in ("run", "state", "home"):
            os.mkdir(f"{home}/{name}")
        os.chmod(f"{home}/home", 0o777)
        with open(f"{home}/dovecot.conf", "w") as file:
            file.write(DOVECOT.format(folder=home, location=FORMATS[target], **port))
            file.write(INDEX if target == "xapian" else "")
    program = start(target, home, port)
    try:
        for name in ("ann", "bob"):
            append(port, name, f"{folder}/made/{name}/cur")
    finally:
        program.stop()


def append(port, name, folder):
    """By IMAP, as mail comes in: what is imported has no digest, and is read when it is asked for."""
    files = sorted(os.listdir(folder), key=lambda file: int(file.split(".")[0]))
    with socket.create_connection(("127.0.0.1", port["imap"])) as wire:
        wire.recv(4096)
        ask(wire, f"LOGIN {name} secret")
        for first in range(0, len(files), 500):
            command = b"x APPEND INBOX"
            for file in files[first:first + 500]:
                with open(f"{folder}/{file}", "rb") as mail:
                    text = mail.read().replace(b"\n", b"\r\n")
                command += b" (%s) {%d+}\r\n%s" % (b"\\Seen" if file.endswith("S") else b"", len(text), text)
            wire.sendall(command + b"\r\n")
            told = b""
            while b"x " not in told:
                told += wire.recv(65536)
            if b"x OK" not in told:
                raise Failed(f"APPEND: {told!r}")


def start(target, home, port, has_index=False):
    if target == "sluice":
        command = [os.environ["SLUICE"], "store", "serve", f"{home}/mail", "--imap", f"127.0.0.1:{port['imap']}",
                   "--pop3", f"127.0.0.1:{port['pop3']}", *([] if has_index else ["--no-search-index"])]
    else:
        command = ["/usr/sbin/dovecot", "-F", "-c", f"{home}/dovecot.conf"]
    program = Program(target, command, f"{home}/out")
    return program.wait_until(lambda: is_open(port["imap"]) and is_open(port["pop3"]))


def measure(port, count):
    """Names and seconds of commands, in a first session and in a second."""
    for session in ("first", "later"):
        with socket.create_connection(("127.0.0.1", port["imap"])) as wire:
            wire.recv(4096)
            ask(wire, "LOGIN ann secret")
            for name, command in COMMANDS:
                if session == "first" and name.startswith("SEARCH TEXT"):
                    continue
                began = time.monotonic()
                told = ask(wire, command)
                yield f"{name}, {session}", time.monotonic() - began
                if name == "SELECT" and f"* {count} EXISTS".encode() not in told[0]:
                    raise Failed(f"{count} mails were expected: {told[0][:500]!r}")


def searches(target, home, port, folder):
    """Names and seconds of searches, and of the first, which has an index made."""
    files = os.listdir(folder)
    with open(f"{folder}/{files[len(files) // 2]}") as mail:
        words = mail.read().split("\n\n")[1].split()
    texts = {"word": words[0], "part": words[0][1:], "pair": f"{words[3]} {words[4]}"}
    program = start(target, home, port, has_index=True)
    try:
        with socket.create_connection(("127.0.0.1", port["imap"])) as wire:
            wire.recv(4096)
            ask(wire, "LOGIN ann secret")
            ask(wire, "SELECT INBOX")
            began = time.monotonic()
            ask(wire, f"SEARCH {SEARCHES[0][1]}")
            first = time.monotonic() - began
            yield "search: the first", [first]
            if target == "sluice":
                program.wait_until(lambda: "the index is up to date" in program.log_tail(), seconds=600)
                yield "search: the index is made after", [time.monotonic() - began]
            for name, command in SEARCHES:
                figures = []
                for _ in range(5):
                    began = time.monotonic()
                    ask(wire, "SEARCH " + command.format(**texts))
                    figures.append(time.monotonic() - began)
                yield f"search: {name}", figures
    finally:
        peak = peak_resident_bytes(program) >> 20
        program.stop()
        print(f"{target}: peak {peak} MB while searching; {on_disk(target, home)}", file=sys.stderr, flush=True)


def on_disk(target, home):
    """What mails and index take."""
    if target == "sluice":
        accounts = subprocess.run([os.environ["SLUICE"], "store", "ls", f"{home}/mail"], stdout=subprocess.PIPE, check=True, text=True)
        return ", ".join(f"{name} {int(size.split()[0]) >> 20} MB" for name, _, size in map(lambda line: line.split("\t"), accounts.stdout.splitlines()))
    return subprocess.run(["du", "-sm", home], capture_output=True, check=True, text=True).stdout.split()[0] + " MB in all"


def ask(wire, command):
    """The beginning and the end of what is told up to the answer."""
    wire.sendall(f"x {command}\r\n".encode())
    first, last, total = b"", b"", 0
    while True:
        piece = wire.recv(1 << 20)
        if not piece:
            raise Failed(f"{command}: the connection is gone")
        first = (first + piece)[:4096] if len(first) < 4096 else first
        last = (last + piece)[-4096:]
        total += len(piece)
        if last.endswith(b"\r\n") and (b"\r\nx " in last or last.startswith(b"x ")):
            answer = last[last.rfind(b"\nx ") + 1:]
            if not answer.startswith(b"x OK"):
                raise Failed(f"{command}: {answer!r}")
            return first, total


def drain(target, home, port):
    """Seconds for bob to fetch all mails by POP3, one by one, and to have them removed."""
    program = start(target, home, port)
    try:
        with socket.create_connection(("127.0.0.1", port["pop3"])) as wire:
            replies = wire.makefile("rb")
            line = lambda command: (wire.sendall(command.encode() + b"\r\n"), replies.readline())[1]
            replies.readline()
            line("USER bob")
            began = time.monotonic()
            if not line("PASS secret").startswith(b"+OK"):
                raise Failed("no login")
            count = int(line("STAT").split()[1])
            for number in range(1, count + 1):
                if not line(f"RETR {number}").startswith(b"+OK"):
                    raise Failed(f"RETR {number}")
                while replies.readline() != b".\r\n":
                    pass
                line(f"DELE {number}")
            line("QUIT")
            return time.monotonic() - began
    finally:
        program.stop()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


if __name__ == "__main__":
    main()

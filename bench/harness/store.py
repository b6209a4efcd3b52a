"""bench/store --lmtp: deliveries a second through LMTP, 1 to 50 recipients a mail, into sluice and into Dovecot's formats.

Every server has its own folder, sockets and configuration, and the same accounts; the client is the same for all: it pipelines the
envelope, waits for the replies to the content, and sends the next mail. Each connection is a process of its own. The servers take
turns within each round. Bytes are what the kernel counts as written by the server's processes, those that have ended included as far
as they were waited for: Dovecot's are read at the end of a round while its workers are alive.
"""

import argparse
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from processes import Failed, Program, take_charge

DOVECOT = """import_environment = TZ LD_PRELOAD FLUSH_MICROSECONDS
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = lmtp
ssl = no
auth_mechanisms = plain
passdb {{
 driver = static
 args = nopassword=yes
}}
userdb {{
 driver = static
 args = uid=65534 gid=65534 home={folder}/mail/%u
}}
mail_location = {location}
first_valid_uid = 1
first_valid_gid = 1
mailbox_list_index = yes
service auth {{
 user = root
}}
service lmtp {{
 client_limit = 1
 process_limit = 100
 unix_listener {folder}/lmtp {{
  mode = 0666
 }}
}}
default_client_limit = 10000
"""

FORMATS = {
    "maildir": "maildir:~/Maildir",
    "sdbox": "sdbox:~/sdbox",
    "mdbox": "mdbox:~/mdbox",
    "mbox": "mbox:~/mail:INBOX=~/inbox",
}
TARGETS = ("sluice", *FORMATS)


def main():
    options = parse()
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir=options.folder)
    os.chmod(folder, 0o755)
    try:
        measure(options, folder)
    except Failed as reason:
        sys.exit(f"bench/store: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(prog="bench/store --lmtp", description="Deliveries a second through LMTP.")
    parser.add_argument("--quick", action="store_true", help="1, 5 and 15 recipients, one round of 1 s")
    parser.add_argument("--recipients", type=numbers)
    parser.add_argument("--connections", type=numbers, default=[1, 16])
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(TARGETS), help=", ".join(TARGETS))
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    options.recipients = options.recipients or ([1, 5, 15] if options.quick else [1, 2, 3, 5, 8, 10, 15, 50])
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (1.0 if options.quick else 1.5)
    return options


def numbers(text):
    return [int(number) for number in text.split(",")]


def measure(options, folder):
    accounts = max(options.recipients)
    figures = {}
    try:
        rounds(options, folder, figures, accounts)
    finally:
        # What there is, if the rest takes too long.
        if figures:
            report(options, figures)


def rounds(options, folder, figures, accounts):
    for place in range(options.rounds):
        for target in options.targets:
            home = f"{folder}/{target}-{place}"
            os.mkdir(home, 0o755)
            program = start(target, home, accounts)
            try:
                for connections in options.connections:
                    for recipients in options.recipients:
                        before = written(program)
                        mails, seconds = load(options, f"{home}/lmtp", recipients, connections)
                        key = (connections, recipients, target)
                        share = (written(program) - before) / max(1, mails * recipients * options.bytes)
                        figures.setdefault(key, []).append((mails * recipients / seconds, share))
                        print(".", end="", file=sys.stderr, flush=True)
            finally:
                program.stop()
                shutil.rmtree(home, ignore_errors=True)
            print(f" {target}", file=sys.stderr, flush=True)


def start(target, folder, accounts):
    """A server with so many accounts, `u1` and on, that takes mail at `folder/lmtp`."""
    if target == "sluice":
        return start_sluice(folder, accounts)
    for name in ("run", "state", "mail"):
        os.mkdir(f"{folder}/{name}")
    os.chmod(f"{folder}/mail", 0o777)
    with open(f"{folder}/dovecot.conf", "w") as file:
        file.write(DOVECOT.format(folder=folder, location=FORMATS[target]))
    program = Program("dovecot", ["/usr/sbin/dovecot", "-F", "-c", f"{folder}/dovecot.conf"], f"{folder}/dovecot.out")
    return program.wait_until(lambda: os.path.exists(f"{folder}/lmtp"))


def start_sluice(folder, accounts):
    sluice = os.environ["SLUICE"]
    subprocess.run([sluice, "store", "create", "--size", "4G", f"{folder}/mail"], check=True)
    # Nobody logs in: no account has a password.
    with open(f"{folder}/mail.accounts", "w") as file:
        file.write("".join(f"u{number}:\n" for number in range(1, accounts + 1)))
    command = [sluice, "store", "serve", f"{folder}/mail", "--lmtp", f"unix:{folder}/lmtp"]
    program = Program("sluice", command, f"{folder}/sluice.out")
    return program.wait_until(lambda: os.path.exists(f"{folder}/lmtp") and "ready" in open(f"{folder}/sluice.out").read())


def written(program):
    """Bytes that its processes have caused to be written."""
    total = 0
    for process in program.tree():
        try:
            with open(f"/proc/{process}/io") as file:
                total += int(next(line for line in file if line.startswith("write_bytes: ")).split()[1])
        except (OSError, StopIteration):
            pass
    return total


def load(options, path, recipients, connections):
    """Mails that were acknowledged to all recipients, and how long that took."""
    pool = multiprocessing.Pool(connections)
    try:
        each = [(options, path, recipients)] * connections
        pool.starmap(deliver_for, [(options, path, recipients, 0.05)] * connections)
        start_at = time.monotonic()
        counts = pool.starmap(deliver_for, [(*one, options.seconds) for one in each], chunksize=1)
        return sum(counts), time.monotonic() - start_at
    finally:
        # Not `terminate`, as `with` does it: a process that it ends while it holds the lock of all leaves the others waiting.
        pool.close()
        pool.join()


def deliver_for(options, path, recipients, seconds):
    head = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: bench\r\n\r\n"
    line = b"The quick brown fox jumps over the lazy dog and runs away from it again.\r\n"
    mail = head + line * ((options.bytes - len(head)) // len(line)) + b".\r\n"
    envelope = b"MAIL FROM:<a@example.org>\r\n"
    envelope += b"".join(b"RCPT TO:<u%d>\r\n" % number for number in range(1, recipients + 1)) + b"DATA\r\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        replies = connection.makefile("rb")
        expect(replies, b"220")
        connection.sendall(b"LHLO bench.test\r\n")
        expect(replies, b"250")
        mails, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            connection.sendall(envelope)
            for _ in range(recipients + 1):
                expect(replies, b"250")
            expect(replies, b"354")
            connection.sendall(mail)
            for _ in range(recipients):
                expect(replies, b"250")
            mails += 1
        connection.sendall(b"QUIT\r\n")
        return mails


def expect(replies, code):
    while True:
        line = replies.readline()
        if not line.startswith(code):
            raise Failed(f"{code.decode()} was expected, and {line!r} came")
        if line[3:4] != b"-":
            return


def report(options, figures):
    with open("/proc/loadavg") as file:
        busy = file.read().split()[0]
    version = subprocess.run(["/usr/sbin/dovecot", "--version"], capture_output=True, text=True).stdout.strip()
    print(f"mails of {options.bytes} bytes through LMTP; median [least..most] of {options.rounds} rounds of {options.seconds} s; "
          f"Dovecot {version}; load {busy}"
          + (f"; a flush takes {int(later) / 1000} ms longer" if (later := os.environ.get("FLUSH_MICROSECONDS")) else ""))
    for title, place in (("deliveries a second", 0), ("bytes written per byte delivered", 1)):
        for connections in options.connections:
            print(f"\n{title}, {connections} at a time\n\n| recipients | {' | '.join(options.targets)} |")
            print("|" + "---|" * (len(options.targets) + 1))
            for recipients in options.recipients:
                cells = [cell([one[place] for one in figures.get((connections, recipients, target), [])]) for target in options.targets]
                print(f"| {recipients} | {' | '.join(cells)} |")


def cell(values):
    return f"{digits(statistics.median(values))} [{digits(min(values))}..{digits(max(values))}]" if values else "-"


def digits(value):
    """Three digits that mean something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()

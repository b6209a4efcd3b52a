"""bench/trust: what a mail server is worth to good mail while others waste its time.

Good mails of 4 kB among clients that name recipients whom nobody knows, and clients that never finish; Sluice with and
without its tests of trust, Postfix's smtpd, and postscreen in front of smtpd. `bench/load/src/mixed.rs` is the load. Postfix
knows its recipients from a table; Sluice is told by its next hop, the load generator's sink, which refuses `nobody...`.
"""

import argparse
import os
import resource
import shutil
import socket
import ssl
import sys
import tempfile
import time
from statistics import median

import machine
import mailboxes
import postfix
import targets
from load import Load
from measures import _Peak
from processes import Failed, memory_bytes, processor_seconds, take_charge

PORTS = {"sink": 19_300, "sluice": 19_301, "sluice-off": 19_302, "smtpd": 19_303, "postscreen": 19_304}

# Recipients are looked up before anybody is let through, as the last clause of smtpd's restrictions would do it.
RECIPIENTS = """relay_domains = sink.test
relay_recipient_maps = inline:{user@sink.test=OK}
smtpd_recipient_restrictions = reject_unlisted_recipient, permit_mynetworks, reject
smtpd_relay_restrictions = permit_mynetworks, reject
"""

# Loopback clients are tested like everybody; what is off by default is the reaction, not the wait.
SCREENING = """postscreen_access_list =
postscreen_greet_action = enforce
"""

# Whoever has a certificate is trusted: it is the bench's own.
ANYONE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANYONE.check_hostname, ANYONE.verify_mode = False, ssl.CERT_NONE

COLUMNS = ("path", "good mails/s", "CPU ms a good mail", "switches a good mail", "peak MB", "connections held",
           "median ms", "95 % ms")


def main():
    parser = argparse.ArgumentParser(prog="bench/trust", description="Good mail among bounces and unfinished sessions.")
    parser.add_argument("--quick", action="store_true", help="one round, few shares, short runs")
    parser.add_argument("--paths", default="sluice,sluice-off,smtpd,postscreen")
    parser.add_argument("--bounces", default=None, help="percent, between commas")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--seconds", type=int, default=None, help="of each run")
    parser.add_argument("--rate", type=int, default=40, help="good mails a second of the open load")
    parser.add_argument("--senders", type=int, default=100, help="sessions at a time of the closed load")
    parser.add_argument("--loads", default="open,closed,idle")
    parser.add_argument("--connections", type=int, default=10_000, help="that wait, for idle")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (5 if options.quick else 15)
    options.bounces = options.bounces or ("0,95" if options.quick else "0,25,50,75,95")
    take_charge()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        measure(options, folder)
    except Failed as reason:
        sys.exit(f"bench/trust: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(options, folder):
    print("\n".join(machine.describe(folder)), flush=True)
    load = Load(os.environ["LOAD"], f"127.0.0.1:{PORTS['sink']}")
    try:
        for name in options.loads.split(","):
            if name == "idle":
                print(idle(options, folder), flush=True)
                continue
            about = {"open": f"open load, {options.rate} good mails/s offered",
                     "closed": f"closed load, {options.senders} sessions at a time"}[name]
            for bounces in map(int, options.bounces.split(",")):
                rows = cells(options, folder, load, name, bounces)
                print(f"\n{about}, {bounces} % bounces, 10 % unfinished sessions\n\n" + table(rows), flush=True)
    finally:
        load.stop()


def cells(options, folder, load, name, bounces):
    """Figures by path: those of each round."""
    rows = {path: [] for path in options.paths.split(",")}
    for number in range(options.rounds):
        order = list(rows)[number % len(rows):] + list(rows)[:number % len(rows)]
        for path in order:
            rows[path].append(cell(options, folder, load, path, name, bounces))
    return rows


def cell(options, folder, load, path, name, bounces):
    """One run against a path that has just been started."""
    place = tempfile.mkdtemp(prefix=path, dir=folder)
    os.chmod(place, 0o755)
    program = start(place, path)
    peak = _Peak([program])
    try:
        # The good clients, and in the closed load all of them, have waited for their greetings when it counts: there they
        # come by only as places become free.
        order = {"mixed": 1, "target": f"127.0.0.1:{PORTS[path]}", "seconds": options.seconds, "warm": 10 if name == "open" else 30,
                 "bounces": bounces, "unfinished": 10, "bots": 500}
        if name == "open":
            order |= {"rate": options.rate, "senders": 8000}
        else:
            order |= {"senders": options.senders, "bots": 100}
        before, switched = processor_seconds([program]), switches()
        answer = load.run(**order)
        share = answer["seconds"] / (answer["seconds"] + order["warm"])
        used, switched = processor_seconds([program]) - before, switches() - switched
        good = max(1, answer["accepted"])
        return {"good mails/s": answer["good_s"], "CPU ms a good mail": 1e3 * used * share / good,
                "switches a good mail": switched * share / good, "connections held": answer["open_max"],
                "median ms": answer["median_ms"], "95 % ms": answer["p95_ms"], "answer": answer,
                "peak MB": peak.stop() / 2**20}
    finally:
        peak.stop()
        program.stop()
        shutil.rmtree(place, ignore_errors=True)


def idle(options, folder):
    """What a connection costs Sluice that has said EHLO and waits, in the clear and encrypted."""
    mailboxes.certificate(folder)
    lines = ["\n| connections of strangers that wait | TLS | KiB each | growth, MB | empty, MB |", "|---|---|---|---|---|"]
    for tls in (False, True):
        place = tempfile.mkdtemp(prefix="idle", dir=folder)
        more = ('trust = "all"\nconnections_max = 20000\ntls = "offer"\n[trust]\ngreet_wait_ms = 0\nprefix.connections_max = 0\n'
                f'[[tls.certificate]]\nchain = "{folder}/server.crt"\nkey = "{folder}/server.key"\n')
        program = targets.start_sluice(place, f"127.0.0.1:{PORTS['sluice']}", f"127.0.0.1:{PORTS['sink']}", more=more)
        try:
            first = [wait_in_session(number, tls) for number in range(50)]
            empty = memory_bytes([program])
            held = [wait_in_session(number, tls) for number in range(options.connections)]
            time.sleep(1)
            grown = memory_bytes([program]) - empty
            for connection in first + held:
                connection.close()
            lines.append(f"| {options.connections} | {'yes' if tls else 'no'} | {grown / options.connections / 1024:.1f} | "
                         f"{grown / 2**20:.1f} | {empty / 2**20:.1f} |")
        finally:
            program.stop()
    return "\n".join(lines)


def wait_in_session(number, tls):
    """A client of its own address that has said EHLO."""
    connection = socket.create_connection(("127.0.0.1", PORTS["sluice"]),
                                          source_address=(f"127.3.{number // 250}.{number % 250 + 1}", 0))
    hear(connection, b"220 ")
    connection.sendall(b"EHLO x\r\n")
    hear(connection, b"250 ")
    if not tls:
        return connection
    connection.sendall(b"STARTTLS\r\n")
    hear(connection, b"220 ")
    secure = ANYONE.wrap_socket(connection)
    secure.sendall(b"EHLO x\r\n")
    hear(secure, b"250 ")
    return secure


def hear(connection, end):
    heard = b""
    while not any(line.startswith(end) for line in heard.split(b"\r\n")[:-1]):
        more = connection.recv(4096)
        if not more:
            raise Failed("a connection was closed")
        heard += more


def start(place, path):
    if path in ("smtpd", "postscreen"):
        more = RECIPIENTS + (SCREENING if path == "postscreen" else "")
        return postfix.start(f"{place}/postfix", PORTS[path], PORTS["sink"], screen=path == "postscreen", more=more)
    trust = 'trust = "all"\n' if path == "sluice" else 'trust = "off"\n'
    return targets.start_sluice(place, f"127.0.0.1:{PORTS[path]}", f"127.0.0.1:{PORTS['sink']}", more=trust)


def switches():
    """Context switches of the whole machine, the load generator's included."""
    with open("/proc/stat") as stat:
        return next(int(line.split()[1]) for line in stat if line.startswith("ctxt"))


def table(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for path, rounds in rows.items():
        values = [spread([figures[column] for figures in rounds]) for column in COLUMNS[1:]]
        lines.append(f"| {path} | " + " | ".join(values) + " |")
    for path, rounds in rows.items():
        for figures in rounds:
            answer = figures["answer"]
            if answer["refused"] or answer["lost"] or answer["dropped"]:
                lines.append(f"{path}: {answer['refused']} good mails refused {answer['reply']!r}, {answer['lost']} "
                             f"sessions lost, {answer['dropped']} not begun")
    return "\n".join(lines)


def spread(values):
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{median(values):.3g} [{min(values):.3g}..{max(values):.3g}]"


if __name__ == "__main__":
    main()

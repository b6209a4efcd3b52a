"""bench/bare: the webmail without an operating system, the same in a small Debian, and Roundcube there, all under QEMU's emulation.

The machines have the same processor, memory, disk and network, and run by turns: one stands still while another is measured. A view is the
page without compression, and what it needs besides. Instructions are those that the guest executes from the first request to the last,
divided by the views: waiting for the next request is among them where a guest does not sleep.
"""

import argparse
import http.client
import os
import re
import resource
import smtplib
import subprocess
import time
from statistics import median

from guest import Guest, Images, many_clients
from machine import describe
from measures import print_bench
from processes import Failed
from web import spread, write
from webmail import Browser, mails, roundcube_pages, sluice_pages

PAPER = """The paper, on real machines: first byte of GET login 0.26 ms without an operating system, 85 ms with Linux (Atmail), 183 ms with Windows (Mailtraq);
of POST login 0.6, 223 and 329 ms; 100 to 2,000 connections without a change."""
FORM = "application/x-www-form-urlencoded"
# Not the account whose mail is read: an account has a bounded number of sessions.
LOGIN = "name=bob@mail.test&password=secret"
ROUNDCUBE_LOGIN = "/index.php?_task=login"
SAMPLES = 40


def fill(guest, count):
    """Mail comes in as it does from outside."""
    mta = smtplib.SMTP if guest.role == "bare" else smtplib.LMTP
    with mta(guest.address, 25 if guest.role == "bare" else 24, timeout=60) as session:
        session.ehlo("bench.test")
        for mail in mails(count):
            if session.sendmail("eve@example.org", ["ann@mail.test"], mail):
                raise Failed(f"{guest.name} refused a mail")


def pages(guest, connections, scheme):
    """Views by name: the browsers, and the requests of one view as method, path and form."""
    port = 443 if scheme == "https" else 80
    found = roundcube_pages(port, connections, guest.address) if guest.role == "roundcube" else sluice_pages(port, guest.address, "ann@mail.test")
    views = {name: (browser, [("GET", path, "") for path in paths]) for name, (browser, paths) in found.items()}
    browser = views["inbox"][0]
    if guest.role == "roundcube":
        # The first request makes an identifier, and the second has the page.
        place = browser.place("/index.php?_task=mail&_action=compose")
        views["compose"] = (browser, [("GET", re.sub(r"^\./", "/index.php", place), "")])
        return views
    views["login"] = (views["login page"][0], [("POST", "/login", LOGIN)])
    views["compose"] = (browser, [("GET", "/write", "")])
    return views


def ask(guest, view, connections, seconds, scheme="http", closes=False):
    """Views a second, instructions a view in programs and in the kernel, and failed requests."""
    browser, requests = view
    heads = [{**{name: value for name, value in head.items() if name != "Accept-Encoding"}, **({"Connection": "close"} if closes else {})} for head in browser.heads()]
    lua = ", ".join("{" + ", ".join(f'["{name}"] = "{value}"' for name, value in {**head, "Content-Type": FORM}.items()) + "}" for head in heads)
    listed = ", ".join(f'{{ "{method}", "{path}", "{body}" }}' for method, path, body in requests)
    script = write(os.path.join(guest.folder, "ask.lua"), f"local heads, asked, at = {{ {lua} }}, {{ {listed} }}, -1\nrequest = function()\n"
                   "at = at + 1\nlocal head, one = heads[math.floor(at / #asked) % #heads + 1], asked[at % #asked + 1]\n"
                   "return wrk.format(one[1], one[2], head, one[3] ~= '' and one[3] or nil)\nend\n")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "-s", script, "--latency", f"{scheme}://{guest.address}/"]
    with guest:
        before = guest.instructions()
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        after = guest.instructions()
    count = int(re.search(r"(\d+) requests in", told)[1])
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    failed = sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", told))) + (int(wrong[1]) if wrong else 0)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", told)
    views = count / len(requests)
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", told)[1]) / len(requests), "failed": failed,
            "instructions": [(now - then) / max(views, 1) for now, then in zip(after, before)],
            "p99": float(late[1]) * {"us": 0.001, "ms": 1, "s": 1000}[late[2]]}


def first_byte(guest, method, path, form="", fields=None):
    """Milliseconds from a request to the first byte of its answer, on a connection that is open."""
    connection = http.client.HTTPConnection(guest.address, timeout=60)
    connection.connect()
    began = time.perf_counter()
    connection.request(method, path, form or None, {"Host": "mail.test", **({"Content-Type": FORM} if form else {}), **(fields or {})})
    reply = connection.getresponse()
    took = 1000 * (time.perf_counter() - began)
    body = reply.read()
    connection.close()
    if reply.status not in (200, 302, 303):
        raise Failed(f"{guest.name}: {path} is answered with {reply.status}")
    return took, body, "; ".join(value.split(";")[0] for name, value in reply.getheaders() if name.lower() == "set-cookie")


def latencies(guest):
    """The paper's two: the login page, and the login."""
    asked, entered = [], []
    with guest:
        for _ in range(SAMPLES // (1 if guest.role != "roundcube" else 8)):
            if guest.role != "roundcube":
                asked.append(first_byte(guest, "GET", "/login")[0])
                entered.append(first_byte(guest, "POST", "/login", LOGIN)[0])
                continue
            took, page, cookie = first_byte(guest, "GET", ROUNDCUBE_LOGIN)
            asked.append(took)
            token = re.search(rb'name="_token" value="([^"]+)"', page)[1].decode()
            form = f"_token={token}&_task=login&_action=login&_user=bob&_pass=secret"
            entered.append(first_byte(guest, "POST", ROUNDCUBE_LOGIN, form, {"Cookie": cookie})[0])
    return median(asked), median(entered)


def starts(make, rounds, targets):
    """Seconds from the start of QEMU to the first byte, on a disk that has been used."""
    took = {}
    for number in range(rounds + 1):
        for role in targets:
            guest = make(role)
            seconds = guest.start(counted=False, path=ROLES[role])
            guest.stop()
            if number:
                took.setdefault(role, []).append(1000 * seconds)
    return took


ROLES = {"bare": b"/login", "sluice": b"/login", "roundcube": ROUNDCUBE_LOGIN.encode()}


def bench(options):
    def run(folder):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        many_clients()
        images = Images(options.cache, folder, os.environ["SLUICE"], os.environ["BARE"], options.mails)
        kept = {}

        def again(role):
            if role not in kept:
                kept[role] = Guest(role, images, folder, role)
            return kept[role]

        def fresh(role, **settings):
            return Guest(role, images, folder, role, **settings)
        lines = describe(folder)[:1] + [run_version(), "", PAPER]
        parts = {"start": lambda: start_table(starts(again, options.rounds, options.targets)), "views": lambda: view_tables(fresh, options),
                 "connections": lambda: connection_table(fresh, options)}
        for name, part in parts.items():
            if name in options.parts:
                lines += ["", *part()]
        return "\n".join(lines)
    return run


def run_version():
    told = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    return told.splitlines()[0] + ", -accel tcg -cpu max,-erms -smp 1 -m 512"


def start_table(took):
    return ["| start of QEMU to first byte | ms |", "|---|---:|", *(f"| {role} | {spread(values, 0)} |" for role, values in took.items())]


def view_tables(fresh, options):
    guests = {role: fresh(role) for role in options.targets}
    views = {}
    for role, guest in guests.items():
        guest.start(path=ROLES[role])
        if role != "roundcube":
            fill(guest, options.mails)
        views[role] = {scheme: pages(guest, options.connections, scheme) for scheme in options.schemes}
        guest.monitor("stop")
    found, waits = {}, {}
    for number in range(options.rounds + 1):
        for role, guest in guests.items():
            waits.setdefault(role, []).append(latencies(guest))
        for scheme in options.schemes:
            for name in views["bare"][scheme]:
                for role, guest in guests.items():
                    if name in views[role][scheme]:
                        one = ask(guest, views[role][scheme][name], options.connections, options.seconds, scheme)
                        if one["failed"]:
                            raise Failed(f"{name} of {role}: {one['failed']} requests failed")
                        if number:
                            found.setdefault((scheme, name, role), []).append(one)
        for scheme in options.schemes:
            for role, guest in guests.items():
                one = ask(guest, views[role][scheme]["login page"], options.connections, options.seconds, scheme, closes=True)
                if number:
                    found.setdefault((scheme, "login page, connection each", role), []).append(one)
    for guest in guests.values():
        guest.stop()
    return [*wait_table(waits), "", *view_table(found)]


def wait_table(waits):
    lines = ["| first byte, ms | GET login | POST login |", "|---|---:|---:|"]
    for role, rounds in waits.items():
        lines.append(f"| {role} | " + " | ".join(spread(values, 2) for values in zip(*rounds[1:])) + " |")
    return lines


def view_table(found):
    lines = ["| view | target | views/s | million instructions a view | of these in the kernel | views/s of bare | instructions of bare |", "|---|---|---|---|---|---|---|"]
    for (scheme, name, role), rounds in found.items():
        bare = found[scheme, name, "bare"]
        rates, costs = [one["rate"] for one in rounds], [sum(one["instructions"]) / 1e6 for one in rounds]
        ratio = median(other["rate"] / max(one["rate"], 0.01) for one, other in zip(rounds, bare))
        less = median(sum(other["instructions"]) / sum(one["instructions"]) for one, other in zip(rounds, bare))
        inner = median(one["instructions"][1] / sum(one["instructions"]) for one in rounds)
        lines.append(f"| {scheme}, {name} | {role} | {spread(rates, 0 if median(rates) > 50 else 1)} | {spread(costs, 3)} | {100 * inner:.0f} % | "
                     f"×{ratio:.2f} | ×{less:.3f} |")
    return lines


def connection_table(fresh, options):
    lines = ["| login page, connections | target | views/s | p99, ms | failed |", "|---|---|---|---|---|"]
    for scheme in options.schemes:
        guests = {role: fresh(role, connections=2200, plain="yes" if scheme == "http" else "no") for role in options.targets}
        for role, guest in guests.items():
            guest.start(path=ROLES[role])
            guest.monitor("stop")
        for count in options.sweep:
            for role, guest in guests.items():
                view = (Browser(80, guest.address), [("GET", ROLES[role].decode(), "")])
                # So long do handshakes take before all are connected.
                seconds = options.seconds + (count // 15 if scheme == "https" else 0)
                rounds = [ask(guest, view, count, seconds, scheme) for _ in range(options.rounds)]
                lines.append(f"| {scheme}, {count} | {role} | {spread([one['rate'] for one in rounds], 0)} | {median(one['p99'] for one in rounds):.0f} | "
                             f"{sum(one['failed'] for one in rounds)} |")
        for guest in guests.values():
            guest.stop()
    return lines


def main():
    parser = argparse.ArgumentParser(prog="bench/bare")
    parser.add_argument("--cache", required=True, help="where Debian's packages are kept")
    parser.add_argument("--mails", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--sweep", type=lambda text: [int(one) for one in text.split(",")], default=[100, 250, 500, 1000, 2000])
    parser.add_argument("--targets", type=lambda text: ["bare", *(one for one in text.split(",") if one != "bare")], default=list(ROLES))
    parser.add_argument("--schemes", type=lambda text: text.split(","), default=["http", "https"])
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["start", "views", "connections"])
    print_bench("bare", bench(parser.parse_args()))


if __name__ == "__main__":
    main()

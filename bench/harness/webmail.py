"""bench/webmail: the pages of a mailbox, from Sluice, from nginx as a file with the same bytes, and from Roundcube.

The mailbox holds texts of 3 kB, HTML of 60 kB and one mail with 100 kB attached. One round asks every page of every target in turn,
by wrk with gzip accepted, as browsers do. A cell is the median over the rounds, with the least and the most.
Roundcube is tuned in its favour: nginx, a static pool of php-fpm with opcache and JIT, sessions in files, Dovecot with processes that
are kept; its inbox is two requests, the page and its list. PHP answers the requests of one session one after the other, in no order, so
Roundcube has a session for each connection; the others have one in all.
"""

import argparse
import http.client
import os
import re
import smtplib
import ssl
import subprocess
import urllib.parse
from statistics import median

from machine import describe
from measures import print_bench
from processes import Failed, Program, memory_bytes, processor_seconds
from sockets import is_open
from web import answers, free_port, spread, write

SLUICE = """hostname = "mail.test"
[log]
level = "warn"
[store]
folder = "{folder}/store"
size = "{size}"
accounts = "{folder}/accounts"
lmtp = ["127.0.0.1:{lmtp}"]
webmail = ["127.0.0.1:{webmail}"]
"""
NGINX = """daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000; sendfile on;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{static}; root {folder}/pages; default_type text/html; }}
  {peer}
}}
"""
PEER = """gzip on; gzip_comp_level 1; gzip_types text/css application/javascript application/json image/svg+xml;
  server {{
    listen 127.0.0.1:{roundcube}; root /usr/share/roundcube; index index.php;
    location ~ \\.php$ {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass unix:{folder}/php.sock; }}
  }}"""
FPM = """[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
user = nobody
group = nogroup
listen = {folder}/php.sock
listen.mode = 0666
pm = static
pm.max_children = 8
env[ROUNDCUBE_CONFIG_DIR] = {folder}/roundcube
php_admin_value[opcache.validate_timestamps] = 0
php_admin_value[opcache.jit] = tracing
php_admin_value[opcache.jit_buffer_size] = 64M
php_admin_value[session.save_path] = {folder}/roundcube
"""
ROUNDCUBE = """<?php
$config['db_dsnw'] = 'sqlite:///{folder}/roundcube/roundcube.db?mode=0666';
$config['temp_dir'] = $config['log_dir'] = '{folder}/roundcube';
$config['imap_host'] = '127.0.0.1:{imap}';
$config['session_storage'] = 'php';
$config['des_key'] = 'four-and-twenty-letters!';
$config['plugins'] = [];
$config['language'] = 'en_US';
"""
DOVECOT = """base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_max_userip_connections = 1000
passdb {{
 driver = static
 args = password=secret
}}
userdb {{
 driver = static
 args = uid=65534 gid=65534 home={folder}/mail/%u mail=maildir:{folder}/mail/%u
}}
first_valid_uid = 1
first_valid_gid = 1
service imap-login {{
 chroot =
 service_count = 0
 process_min_avail = 2
 inet_listener imap {{
  port = {imap}
 }}
}}
service imap {{
 service_count = 1000
 process_min_avail = 4
}}
"""
BROWSER = {"Accept-Encoding": "gzip", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0"}


def mails(count):
    """The newest last: an attachment, a large page, and texts."""
    words = "An ordinary sentence of a letter that says little. "
    fields = "From: Eve Example <eve{0}@example.org>\r\nTo: ann@mail.test\r\nSubject: The letter number {0}\r\n" \
             "Date: Mon, 2 Nov 2026 10:00:00 +0000\r\nMessage-ID: <{0}@example.org>\r\nMIME-Version: 1.0\r\n"
    text = "Content-Type: text/plain; charset=utf-8\r\n\r\n" + (words * 60).replace("says", "says,\r\nas letters do,")[:3000] + "\r\n"
    for number in range(count - 2):
        yield fields.format(number) + text
    rows = "".join(f'<tr><td style="padding:4px">Row {row}</td><td><a href="https://example.org/{row}">{words}</a></td></tr>' for row in range(450))
    html = f"<html><body><h1>News</h1><table>{rows}</table></body></html>"[:60_000]
    yield fields.format("large") + "Content-Type: text/html; charset=utf-8\r\n\r\n" + html.replace("</tr>", "</tr>\r\n") + "\r\n"
    data = ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3ODkwQUJDREVG" * 2380)[:133_334]
    lines = "\r\n".join(data[at:at + 76] for at in range(0, len(data), 76))
    yield fields.format("attached") + 'Content-Type: application/octet-stream; name="data.bin"\r\nContent-Transfer-Encoding: base64\r\n' \
        'Content-Disposition: attachment; filename="data.bin"\r\n\r\n' + lines + "\r\n"


class Browser:
    """One session; what it gets is decoded by nobody."""

    def __init__(self, port, host="127.0.0.1"):
        self.host, self.port, self.cookies, self.fields, self.others = host, port, {}, {}, []
        self.tls = {"context": ssl._create_unverified_context()} if port == 443 else None

    def connect(self):
        kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
        return kind(self.host, self.port, timeout=60, **(self.tls or {}))

    def ask(self, method, path, form=None, **fields):
        connection = self.connect()
        fields = {**fields, "Cookie": self.cookie(), "Host": "mail.test"}
        body = urllib.parse.urlencode(form) if form else None
        if form:
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, fields)
        reply = connection.getresponse()
        for name, value in reply.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.split(";")[0]
        return reply.status, reply.read()

    def place(self, path):
        """Where a request is sent on to."""
        connection = self.connect()
        connection.request("GET", path, headers={"Cookie": self.cookie(), "Host": "mail.test"})
        return connection.getresponse().getheader("Location")

    def get(self, path, **fields):
        status, body = self.ask("GET", path, **fields)
        if status != 200:
            raise Failed(f"{path} is answered with {status}")
        return body

    def cookie(self):
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def heads(self):
        """The fields of each session's requests."""
        heads = []
        for browser in [self, *self.others]:
            cookie = {"Cookie": browser.cookie()} if browser.cookies else {}
            heads.append({**BROWSER, **browser.fields, **cookie, "Host": "mail.test"})
        return heads


def start_sluice(folder, ports, count):
    size = f"{max(256, count * 12 // 1000 + 128)}M"
    conf = write(f"{folder}/sluice.toml", SLUICE.format(folder=folder, size=size, **ports))
    subprocess.run([os.environ["SLUICE"], "account", "--accounts", f"{folder}/accounts", "add", "ann"], input=b"secret\n", check=True,
                   stdout=subprocess.DEVNULL)
    program = Program("sluice", [os.environ["SLUICE"], "serve", "--allow-root", "--config", conf], f"{folder}/sluice.out")
    program.wait_until(lambda: answers(ports["webmail"]) and answers(ports["lmtp"]))
    with smtplib.LMTP("127.0.0.1", ports["lmtp"]) as session:
        session.ehlo("bench.test")
        for mail in mails(count):
            refused = session.sendmail("eve@example.org", ["ann@mail.test"], mail)
            if refused:
                raise Failed(f"a mail was refused: {refused}")
    return program


def sluice_pages(port, host="127.0.0.1", name="ann"):
    """The pages by name: a session, and the requests of one view."""
    browser = Browser(port, host)
    browser.ask("POST", "/login", {"name": name, "password": "secret"})
    home = browser.get("/").decode()
    folder = re.search(r'href="/m/(\d+)"', home)[1]
    rows = list(dict.fromkeys(re.findall(rf'href="/m/{folder}/(\d+)"', home)))
    if len(rows) != 50:
        raise Failed(f"the inbox has {len(rows)} rows")
    attached, large, text = rows[:3]
    parts = {uid: browser.get(f"/m/{folder}/{uid}").decode() for uid in (attached, large)}
    frame = re.search(r'src="([^"]*/html/[^"]*)"', parts[large])[1]
    file = re.search(r'href="([^"]*/part/[^"]*)"', parts[attached])[1]
    return {"login page": (Browser(port, host), ["/login"]), "inbox": (browser, [f"/m/{folder}"]), "text, 3 kB": (browser, [f"/m/{folder}/{text}"]),
            "HTML, 60 kB: page and frame": (browser, [f"/m/{folder}/{large}", frame]), "attachment, 100 kB": (browser, [file])}


def static_pages(folder, port, pages):
    """The same bodies, as files."""
    os.makedirs(f"{folder}/pages", exist_ok=True)
    static = {}
    for number, (name, (browser, paths)) in enumerate(pages.items()):
        files = []
        for part, path in enumerate(paths):
            body = browser.get(path, **BROWSER)
            with open(f"{folder}/pages/{number}-{part}", "wb") as file:
                file.write(body)
            files.append(f"/{number}-{part}")
        static[name] = (Browser(port), files)
    return static


def start_roundcube(folder, ports, count):
    for name in ("run", "state", "roundcube"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        os.chmod(f"{folder}/{name}", 0o777)
    for name in ("new", "cur", "tmp"):
        os.makedirs(f"{folder}/mail/ann/{name}")
    for number, mail in enumerate(mails(count)):
        write(f"{folder}/mail/ann/cur/{1_700_000_000 + number}.{number}.bench:2,S", mail.replace("\r\n", "\n"))
    subprocess.run(["chown", "-R", "nobody:nogroup", f"{folder}/mail", f"{folder}/roundcube"], check=True)
    dovecot = Program("dovecot", ["/usr/sbin/dovecot", "-F", "-c", write(f"{folder}/dovecot.conf", DOVECOT.format(folder=folder, **ports))],
                      f"{folder}/dovecot.out")
    dovecot.wait_until(lambda: is_open(ports["imap"]))
    write(f"{folder}/roundcube/config.inc.php", ROUNDCUBE.format(folder=folder, **ports))
    with open("/etc/roundcube/defaults.inc.php", encoding="utf-8") as defaults:
        write(f"{folder}/roundcube/defaults.inc.php", defaults.read())
    fpm = Program("php-fpm", ["/usr/sbin/php-fpm8.2", "-F", "-y", write(f"{folder}/fpm.conf", FPM.format(folder=folder))], f"{folder}/fpm.out")
    fpm.wait_until(lambda: os.path.exists(f"{folder}/php.sock"))
    return [dovecot, fpm]


def roundcube_pages(port, connections, host="127.0.0.1"):
    """As `sluice_pages`; the first session has the others with it."""
    pages = [roundcube_session(port, host) for _ in range(connections)]
    for name, (browser, _) in pages[0].items():
        browser.others = [other[name][0] for other in pages[1:]]
    return pages[0]


def roundcube_session(port, host):
    browser = Browser(port, host)
    token = re.search(rb'name="_token" value="([^"]+)"', browser.get("/index.php?_task=login"))[1].decode()
    status, _ = browser.ask("POST", "/index.php?_task=login", {"_token": token, "_task": "login", "_action": "login", "_user": "ann", "_pass": "secret"})
    home = browser.get("/index.php?_task=mail&_mbox=INBOX").decode()
    token = re.search(r'"request_token":"([^"]+)"', home)[1]
    browser.fields = {"X-Requested-With": "XMLHttpRequest", "X-Roundcube-Request": token}
    listed = "/index.php?_task=mail&_action=list&_mbox=INBOX&_refresh=1&_page=1&_remote=1"
    rows = re.findall(r"add_message_row\((\d+)", browser.get(listed, **browser.fields).decode())
    if len(rows) != 50:
        raise Failed(f"Roundcube's inbox has {len(rows)} rows")
    show = "/index.php?_task=mail&_mbox=INBOX&_action=show&_uid="
    attached, large, text = rows[:3]
    return {"login page": (Browser(port, host), ["/index.php?_task=login"]), "inbox": (browser, ["/index.php?_task=mail&_mbox=INBOX", listed]),
            "text, 3 kB": (browser, [show + text]), "HTML, 60 kB: page and frame": (browser, [show + large]),
            "attachment, 100 kB": (browser, [f"/index.php?_task=mail&_action=get&_mbox=INBOX&_uid={attached}&_part=0&_download=1"])}


def ask(folder, port, browser, paths, options):
    """Views a second, and how many there were."""
    heads = ", ".join("{" + ", ".join(f'["{name}"] = "{value}"' for name, value in head.items()) + "}" for head in browser.heads())
    listed = ", ".join(f'"{path}"' for path in paths)
    # A view is asked for as a whole by one session, and the next view by the next one.
    script = write(os.path.join(folder, "ask.lua"), f"local heads, paths, at = {{ {heads} }}, {{ {listed} }}, -1\nrequest = function()\n"
                   "at = at + 1\nlocal head = heads[math.floor(at / #paths) % #heads + 1]\n"
                   "return wrk.format(nil, paths[at % #paths + 1], head)\nend\n")
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "--timeout", "20s", "-s", script, "--latency",
               f"http://127.0.0.1:{port}/"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)", told)
    if wrong:
        raise Failed(f"not all answers are right: {wrong.group(0)}")
    count = int(re.search(r"(\d+) requests in", told).group(1)) / len(paths)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1)) / len(paths), count


def bench(options):
    def run(folder):
        programs = {}
        try:
            return table(folder, *measure(folder, programs, options))
        finally:
            for group in programs.values():
                for program in group:
                    program.stop()
    return run


def measure(folder, programs, options):
    os.chmod(folder, 0o777)
    names = ("lmtp", "webmail", "static", "roundcube", "imap")
    ports = {name: free_port() for name in names}
    programs["sluice"] = [start_sluice(folder, ports, options.mails)]
    peer = PEER.format(folder=folder, **ports) if options.peer else ""
    conf = write(f"{folder}/nginx.conf", NGINX.format(folder=folder, peer=peer, **ports))
    nginx = Program("nginx", ["nginx", "-p", folder, "-e", f"{folder}/nginx.log", "-c", conf], f"{folder}/nginx.out")
    programs["nginx"] = [nginx]
    nginx.wait_until(lambda: answers(ports["static"]))
    pages = {"sluice": (ports["webmail"], sluice_pages(ports["webmail"]))}
    pages["nginx"] = (ports["static"], static_pages(folder, ports["static"], pages["sluice"][1]))
    if options.peer:
        programs["roundcube"] = [nginx, *start_roundcube(folder, ports, options.mails)]
        pages["roundcube"] = (ports["roundcube"], roundcube_pages(ports["roundcube"], options.connections))
    figures, sizes = {}, {}
    for _ in range(options.rounds):
        for page in pages["sluice"][1]:
            for name, (port, views) in pages.items():
                browser, paths = views[page]
                before = processor_seconds(programs[name])
                try:
                    rate, count = ask(folder, port, browser, paths, options)
                except Failed as reason:
                    raise Failed(f"{page} of {name}: {reason}") from reason
                used = processor_seconds(programs[name]) - before
                figures.setdefault((page, name), []).append((rate, 1000 * used / max(count, 1)))
                sizes[page, name] = sum(len(browser.get(path, **BROWSER, **browser.fields)) for path in paths)
    return figures, sizes, memory_bytes(programs["sluice"])


def table(folder, figures, sizes, memory):
    lines = describe(folder) + ["", "| view | target | bytes | views/s | CPU ms a view | views/s of nginx |", "|---|---|---|---|---|---|"]
    for (page, name), rounds in figures.items():
        rates, costs = zip(*rounds)
        file = [rate for rate, _ in figures[page, "nginx"]]
        ratio = median(rate / other for rate, other in zip(rates, file))
        lines.append(f"| {page} | {name} | {sizes[page, name]} | {spread(rates, 0)} | {spread(costs, 3)} | ×{ratio:.3f} |")
    return "\n".join(lines + ["", f"Sluice after all of it: {memory / 1e6:.0f} MB (PSS of its processes)."])


def main():
    parser = argparse.ArgumentParser(prog="bench/webmail")
    parser.add_argument("--mails", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--peer", action="store_true", help="Roundcube too")
    print_bench("webmail", bench(parser.parse_args()))


if __name__ == "__main__":
    main()

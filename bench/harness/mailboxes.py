"""A Dovecot with one mailbox full of mails, and the listeners of Sluice in front of it."""

import base64
import os
import random
import subprocess

from processes import Program
from sockets import is_open

DOVECOT = """base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = pop3 imap
listen = {host}
ssl = yes
ssl_cert = <{folder}/server.crt
ssl_key = <{folder}/server.key
disable_plaintext_auth = no
mail_max_userip_connections = 10000
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
service pop3-login {{
 chroot =
 inet_listener pop3 {{
  port = {pop3}
 }}
 inet_listener pop3s {{
  port = {pop3s}
 }}
}}
service imap-login {{
 chroot =
 inet_listener imap {{
  port = {imap}
 }}
 inet_listener imaps {{
  port = {imaps}
 }}
}}
service pop3 {{
 process_limit = 1000
}}
service imap {{
 process_limit = 1000
}}
default_client_limit = 10000
default_process_limit = 1000
"""

LISTENER = """[[listener]]
protocol = "{protocol}"
address = "{host}:{address}"
forward = "{scheme}://{server}:{forward}"
forward_tls = "off"
forward_verify = {verify}
tls = "{tls}"
connections_max = 100000
connections_per_client_max = 100000
"""

SIZES = {"4k": (4_000, 40), "1m": (1_000_000, 20)}


def certificate(folder):
    """A certificate that vouches for itself, in server.crt and server.key."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", f"{folder}/server.key", "-out", f"{folder}/server.crt"],
        check=True, capture_output=True)


def start_dovecot(folder, ports, host="127.0.0.1", within=()):
    """Starts it with a mailbox for each of SIZES, by that name; `within` is a command that starts it elsewhere."""
    for name in ("run", "state", "mail"):
        os.mkdir(f"{folder}/{name}")
    os.chmod(f"{folder}/mail", 0o777)
    chance = random.Random(1)
    for name, (size, count) in SIZES.items():
        for part in ("", "new", "cur", "tmp"):
            os.makedirs(f"{folder}/mail/{name}/{part}", exist_ok=True)
            os.chmod(f"{folder}/mail/{name}/{part}", 0o777)
        for number in range(count):
            write_mail(f"{folder}/mail/{name}/cur/{1_700_000_000 + number}.{number}.bench:2,S", size, chance)
    with open(f"{folder}/dovecot.conf", "w") as file:
        file.write(DOVECOT.format(folder=folder, host=host, **ports))
    command = [*within, "/usr/sbin/dovecot", "-F", "-c", f"{folder}/dovecot.conf"]
    program = Program("dovecot", command, f"{folder}/dovecot.out")
    if within:
        # Its ports cannot be asked from here; it says when it has them.
        return program.wait_until(lambda: "starting up" in _text(f"{folder}/dovecot.log"))
    return program.wait_until(lambda: is_open(ports["imap"]) and is_open(ports["pop3"]))


def _text(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write_mail(path, size, chance):
    content = base64.encodebytes(chance.randbytes(int(size * 57 / 78))).decode()
    with open(path, "w") as file:
        file.write("From: a@bench.test\nTo: b@bench.test\nSubject: bench\nMIME-Version: 1.0\n"
                   "Content-Type: application/octet-stream; name=data.bin\nContent-Transfer-Encoding: base64\n\n" + content)
    os.chmod(path, 0o666)


def start_sluice(folder, listeners, head="", within=()):
    """Starts Sluice with these listeners; `within` is a command that starts it elsewhere."""
    configuration, log = f"{folder}/retrieve.toml", f"{folder}/retrieve.log"
    with open(configuration, "w") as file:
        file.write(f'hostname = "bench.test"\n[log]\nlevel = "warn"\n{head}[[tls.certificate]]\n'
                   f'chain = "{folder}/server.crt"\nkey = "{folder}/server.key"\n' + "".join(listeners))
    program = Program("sluice", [*within, os.environ["SLUICE"], "serve", "--allow-root", "--config", configuration], log)

    def ready():
        with open(log, errors="replace") as lines:
            return any(line.startswith("sluice: ready:") for line in lines)
    return program.wait_until(ready)


def listener(protocol, address, forward, tls, host="127.0.0.1", server="127.0.0.1"):
    """A listener at `host` in front of `server`; with TLS on both sides, or on none."""
    return LISTENER.format(protocol=protocol, host=host, server=server, address=address, forward=forward, scheme=protocol + "s" * tls,
                           tls="implicit" if tls else "off", verify='"nothing"')

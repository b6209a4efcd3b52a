"""TLS of the image, as OpenSSL, curl and Python's clients see it: `test.py` calls it."""

import hashlib
import os
import re
import smtplib
import socket
import ssl
import subprocess
import time

from machine import SETTINGS, check

SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
KEYS = (("prime256v1", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], None),
        ("SEC 1", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["ec"]),
        ("ed25519", ["-algorithm", "ED25519"], None))


def run(*command, given=b""):
    done = subprocess.run(command, input=given, capture_output=True, timeout=30)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def client(machine, *options):
    """What OpenSSL says of a connection, which it closes at once."""
    return run("openssl", "s_client", "-connect", f"127.0.0.1:{machine.secure}", "-servername", "mx.example.org", *options)[1]


def authority(machine):
    """The server's own certificate, as the one that a client trusts."""
    path = f"{machine.folder}/authority.pem"
    with open(path, "w") as file:
        file.write(ssl.get_server_certificate(("127.0.0.1", machine.secure), timeout=20))
    return path


def trusting(path):
    context = ssl.create_default_context(cafile=path)
    context.check_hostname = False
    return context


def fingerprint(machine):
    return re.findall(r"certificate SHA-256 ([0-9A-F:]+)", machine.said())[-1]


def secure(machine):
    trusted = authority(machine)
    with open(trusted) as file:
        certificate = ssl.PEM_cert_to_DER_cert(file.read())
    check(hashlib.sha256(certificate).hexdigest().upper() == fingerprint(machine).replace(":", ""), "the console shows the fingerprint")
    for suite in SUITES:
        for group in ("X25519", "P-256"):
            said = client(machine, "-CAfile", trusted, "-verify_hostname", "mx.example.org", "-ciphersuites", suite, "-groups", group)
            check("Verify return code: 0 (ok)" in said and f"Cipher is {suite}" in said, f"{suite} with {group}: {said[-600:]}")
    said = client(machine, "-groups", "X448:P-256")
    check("Cipher is TLS" in said, f"a client that guesses another group is asked again: {said[-600:]}")
    for version in ("-tls1", "-tls1_1", "-tls1_2"):
        check("Cipher is (NONE)" in client(machine, version, "-cipher", "ALL:@SECLEVEL=0"), f"{version} is refused")
    check("Cipher is (NONE)" in client(machine, "-groups", "X448"), "an unknown group is refused")
    url = f"https://mx.example.org:{machine.secure}/login"
    status, page = run("curl", "-s", "--cacert", trusted, "--resolve", f"mx.example.org:{machine.secure}:127.0.0.1", url)
    check(status == 0 and "password" in page, f"curl gets a page: {status} {page}")
    use(machine, trusting(trusted))
    mail(machine, trusting(trusted))
    nonsense(machine)


def use(machine, context):
    body = "name=ann%40example.org&password=secret"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    status, headers, _ = machine.request("POST", "/login", body, kind, context)
    cookie = headers.get("Set-Cookie", "")
    check(status == 303 and cookie.startswith("__Host-sluice=") and "Secure" in cookie, f"a browser logs in: {status} {cookie}")
    cookie = {"Cookie": cookie.split(";")[0]}
    attachment = os.urandom(700_000)
    machine.send("over TLS", attachment=attachment, context=context)
    _, _, page = machine.request("GET", "/", None, cookie, context)
    link = re.search(rb'href="(/m/\d+/\d+)"', page)[1].decode()
    _, _, page = machine.request("GET", link, None, cookie, context)
    part = re.search(rb'href="([^"]*/part/[^"]*)"', page)[1].decode()
    status, _, content = machine.request("GET", part, None, cookie, context)
    check(status == 200 and content == attachment, "what has come by TLS goes out by TLS")
    _, _, source = machine.request("GET", link + "/source", None, cookie, context)
    check(b"with ESMTPS id" in source, "its trace says so")


def mail(machine, context):
    with smtplib.SMTP("127.0.0.1", machine.smtp, timeout=20) as session:
        session.ehlo()
        check(session.has_extn("starttls"), "STARTTLS is offered")
        session.starttls(context=context)
        session.ehlo()
        check(not session.has_extn("starttls"), "and not twice")
    with socket.create_connection(("127.0.0.1", machine.smtp), timeout=20) as one:
        one.sendall(b"EHLO a\r\nSTARTTLS\r\nMAIL FROM:<injected@example.net>\r\n")
        said = b""
        while piece := one.recv(1_000):
            said += piece
        check(b"220 2.0.0" in said and said.count(b"250 2.1.0") == 0, f"nothing of what is before the handshake counts after it: {said}")


def nonsense(machine):
    hello = bytes.fromhex("1603010200010001fc0303")
    for bytes_ in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 70_000, b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" * 4_096,
                   hello + b"\x00" * 600, b"\x17\x03\x03\x00\x20" + b"x" * 32, b"\x80\x2e\x01\x00\x02"):
        with socket.create_connection(("127.0.0.1", machine.secure), timeout=20) as one:
            try:
                one.sendall(bytes_)
                one.shutdown(socket.SHUT_WR)
                answer = one.recv(1_000)
            except ConnectionError:
                answer = b""
            check(answer[:1] in (b"", b"\x15"), f"{bytes_[:8]} is answered by an alert: {answer[:50]}")
    machine.answers()


def keys(machine):
    """Certificates of the settings; and browsers are sent to HTTPS."""
    folder = machine.folder
    for name, options, convert in KEYS:
        run("openssl", "genpkey", *options, "-out", f"{folder}/key.pem")
        run("openssl", "req", "-x509", "-key", f"{folder}/key.pem", "-subj", "/CN=mx.example.org", "-days", "2", "-out", f"{folder}/own.pem")
        if convert:
            run("openssl", *convert, "-in", f"{folder}/key.pem", "-out", f"{folder}/key.pem")
        pem = "".join(open(f"{folder}/{file}.pem").read() for file in ("own", "key"))
        machine.kill()
        machine.set(SETTINGS.replace("plain = yes\n", "") + pem)
        machine.start()
        said = client(machine, "-CAfile", f"{folder}/own.pem")
        check("Verify return code: 0 (ok)" in said, f"the settings' certificate is shown, {name}: {said[-600:]}")
    status, headers, _ = machine.get("/m/1?a=b")
    check(status == 303 and headers["Location"] == "https://mx.example.org/m/1?a=b", f"a browser is sent to HTTPS: {status} {headers}")
    machine.kill()
    run("openssl", "genpkey", *KEYS[0][1], "-out", f"{folder}/key.pem")
    machine.set(SETTINGS + "".join(open(f"{folder}/{file}.pem").read() for file in ("own", "key")))
    refuses(machine, "the key of the settings is of another certificate")
    machine.set(SETTINGS)


def refuses(machine, why, cpu="max"):
    """The machine does not start, and says why."""
    said = len(machine.said())
    machine.begin(cpu)
    machine.process.wait(timeout=60)
    check(why in machine.said()[said:], f"the console says why: {machine.said()[said:]}")

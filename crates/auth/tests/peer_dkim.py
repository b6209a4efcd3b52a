"""Mails that dkimpy has signed and sealed, in `sys.argv[1]`, and what it says of each and of what became of it.

The key is `key.pem` there. Files are `N.eml`; a line `N DKIM ARC` is printed for each.
"""
import base64
import random
import re
import subprocess
import sys
import dkim

folder = sys.argv[1]
random.seed(int(sys.argv[2]))
key = open(folder + '/key.pem', 'rb').read()
der = subprocess.run(['openssl', 'pkey', '-in', folder + '/key.pem', '-pubout', '-outform', 'DER'],
                     capture_output=True, check=True).stdout
text = b'v=DKIM1; k=rsa; p=' + base64.b64encode(der)
open(folder + '/key.txt', 'wb').write(text)

SPACES = [b' ', b'\t', b'  ', b' \t ']
WORDS = [b'one', b'two', b'=3D', b'.', b'x' * 70, b'\xc3\xa4', b'--b', b'']


def word():
    return random.choice(WORDS)


def line():
    return b''.join(word() + random.choice(SPACES) for _ in range(random.randrange(4))) + random.choice(WORDS)


def mail():
    head = [b'From: A <a@example.com>', b'To:  b@example.net,\r\n\tc@example.net', b'Subject:' + line(),
            b'Date: Mon, 1 Jan 2024 00:00:00 +0000', b'X-Two: 1', b'x-two: 2\r\n  3 ',
            b'Authentication-Results: mx.example.com; none']
    body = b''.join(line() + b'\r\n' for _ in range(random.randrange(6))) + b'\r\n' * random.randrange(3)
    return b'\r\n'.join(head) + b'\r\n\r\n' + body


def changed(data):
    at = random.randrange(len(data))
    return random.choice([
        lambda: data[:at] + random.choice([b' ', b'x', b'\r\n', b'\t']) + data[at:],
        lambda: data[:at] + data[at + 1:],
        lambda: data + b'more\r\n',
        lambda: data + b'\r\n\r\n',
        lambda: data.replace(b'  ', b' ', 1),
        lambda: data.replace(b'\r\n', b' \r\n', 1),
        lambda: re.sub(b'(?i)subject', b'SUBJECT', data, count=1),
        lambda: b'Subject: first\r\n' + data,
    ])()


def said(data):
    try:
        signed = dkim.verify(data, dnsfunc=lambda *_, **__: text)
    except Exception:
        signed = False
    try:
        chain = dkim.arc_verify(data, dnsfunc=lambda *_, **__: text)[0].decode()
    except Exception:
        chain = 'error'
    return f'{int(bool(signed))} {chain}'


for number in range(int(sys.argv[3])):
    data = mail()
    forms = (random.choice([b'simple', b'relaxed']), random.choice([b'simple', b'relaxed']))
    names = random.sample([b'from', b'to', b'subject', b'date', b'x-two', b'x-two', b'missing'], 4)
    names = [b'from'] + [name for name in names if name != b'from']
    data = dkim.sign(data, b's', b'example.com', key, canonicalize=forms, include_headers=names,
                     length=random.random() < 0.3) + data
    for _ in range(random.randrange(3)):
        data = b''.join(dkim.arc_sign(data, b's', b'example.com', key, b'mx.example.com')) + data
    if random.random() < 0.6:
        data = changed(data)
    # What ends no line is nobody's mail.
    data = re.sub(rb'(?<!\r)\n|\r(?!\n)', b'\r\n', data)
    open(f'{folder}/{number}.eml', 'wb').write(data)
    print(number, said(data), flush=True)

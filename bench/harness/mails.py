"""The mails that are sent, made from files that every Debian system has.

| set | mail |
|---|---|
| exe1m | 1 MiB of executables, Base64 |
| gz1m | the same, gzipped first |
| text4k | 200 different texts, mean about 4 kB |
| mix8020 | four of those texts, then one executable of 14 to 70 kB (mean about 35 kB), and so on |

`marker_exe` and `marker_gz` are exe1m and gz1m with the harmless marker string of `signatures` inside: they show that a
gateway under test really looks into attachments. Each set is a manifest for the load generator.
"""

import base64
import glob
import gzip
import os
import random
import re
import textwrap

from signatures import MARKER

SETS = ("exe1m", "gz1m", "text4k", "mix8020")
TEXTS = 200
HEAD = ("Date: Fri, 20 Nov 2026 12:00:00 +0000\nFrom: Alice Example <sender@client.test>\n"
        "To: Bob Example <user@sink.test>\nSubject: {subject}\nMIME-Version: 1.0\n")


def write(folder):
    """Writes all sets to `folder`."""
    chance = random.Random(1)
    executable = _executable_of_1_mib()
    marked = executable[:700_000] + MARKER + executable[700_000 + len(MARKER):]
    for name, content in (("exe1m", executable), ("marker_exe", marked)):
        _write_set(folder, name, [(_mail(name, "One line of text.", content, "program.exe"), len(content))])
    for name, content in (("gz1m", executable), ("marker_gz", marked)):
        packed = gzip.compress(content, 6, mtime=0)
        _write_set(folder, name, [(_mail(name, "One line of text.", packed, "program.exe.gz"), len(packed))])
    texts = list(_texts(chance))
    _write_set(folder, "text4k", texts)
    _write_set(folder, "mix8020", _mixed(texts, chance))


def write_corpus(folder, corpus, bytes_max):
    """Writes the set `corpus`: all mails below a folder that are no longer; how many there are."""
    files = sorted(path for path in corpus.rglob("*") if path.is_file() and 0 < path.stat().st_size <= bytes_max)
    if files:
        _write_set(folder, "corpus", [(_as_sent(path.read_bytes()), path.stat().st_size) for path in files])
    return len(files)


def program(size, start):
    """A mail with so much of the executable attached, from a place on."""
    content = _executable_of_1_mib()
    start %= len(content) - size
    return _mail("a program", "One line of text.", content[start:start + size], "program.exe")


def _as_sent(mail):
    """Without the line that mbox puts in front."""
    return mail.split(b"\n", 1)[1] if mail.startswith(b"From ") and b"\n" in mail else mail


def manifest(folder, name):
    return os.path.join(folder, name + ".list")


def wire_bytes(folder, name):
    """Size of the first mail of a set on the wire, roughly: line ends count two bytes there."""
    with open(os.path.join(folder, f"{name}_000.eml"), "rb") as file:
        content = file.read()
    return len(content) + content.count(b"\n")


def _write_set(folder, name, mails):
    with open(manifest(folder, name), "w") as lines:
        for index, (content, payload_bytes) in enumerate(mails):
            file = f"{name}_{index:03d}.eml"
            with open(os.path.join(folder, file), "wb") as out:
                out.write(content)
            lines.write(f"{file} {payload_bytes}\n")


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _executable_of_1_mib():
    """Real machine code that gzip brings to about two fifths, as it does most programs."""
    content = b""
    for path in ("/usr/bin/ssh", "/usr/bin/openssl", "/usr/bin/perl", "/bin/bash"):
        if os.path.exists(path):
            content += _read(path)
    return content[:1 << 20]


def _mail(subject, text, attachment=None, name=None):
    head = HEAD.format(subject=subject)
    if attachment is None:
        return f"{head}Content-Type: text/plain; charset=us-ascii\n\n{text}\n".encode("ascii", "replace")
    kind = "application/gzip" if name.endswith(".gz") else "application/octet-stream"
    boundary = "=_sluice_bench_1"
    return (f'{head}Content-Type: multipart/mixed; boundary="{boundary}"\n\n'
            f"--{boundary}\nContent-Type: text/plain; charset=us-ascii\n\n{text}\n"
            f'--{boundary}\nContent-Type: {kind}; name="{name}"\nContent-Transfer-Encoding: base64\n'
            f'Content-Disposition: attachment; filename="{name}"\n\n'
            f"{base64.encodebytes(attachment).decode()}--{boundary}--\n").encode("ascii", "replace")


def _paragraphs():
    """English prose from the licences in Debian's base system."""
    for path in sorted(glob.glob("/usr/share/common-licenses/*")):
        text = _read(path).decode("ascii", "ignore")
        for paragraph in re.split(r"\n\s*\n", text):
            paragraph = " ".join(paragraph.split())
            if 80 < len(paragraph) < 1500:
                yield paragraph


def _text(length, paragraphs, chance):
    text = ""
    while len(text) < length:
        text += textwrap.fill(chance.choice(paragraphs), 72) + "\n\n"
    return text[:length + 200]


def _texts(chance):
    paragraphs = list(_paragraphs())
    for index in range(TEXTS):
        length = int(max(600, min(12_000, chance.lognormvariate(8.15, 0.5))))
        content = _mail(f"text message {index}", _text(length, paragraphs, chance))
        yield content, len(content)


def _mixed(texts, chance):
    paths = sorted(glob.glob("/usr/bin/*") + glob.glob("/usr/sbin/*"))
    paths = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)
             and 14_000 < os.path.getsize(path) < 70_000 and _read(path)[:4] == b"\x7fELF"]
    chance.shuffle(paths)
    mails = list(texts)
    paragraphs = list(_paragraphs())
    for place, index in enumerate(range(4, TEXTS, 5)):
        content = _read(paths[place % len(paths)])
        mails[index] = (_mail("a tool", _text(500, paragraphs, chance), content, "tool.exe"), len(content))
    return mails

#!/usr/bin/env bash
# IMAPClient 4.1.0 (PyPI): a part that a server sends as a literal8 (RFC 3516) is given as the text of the literal's length.
#
# FETCH of BINARY[1] may be answered by `{5}` or, where there are NULs, by `~{5}` and the bytes. The first gives the bytes; the
# second gives b'~{5}', no error is raised, and the bytes are lost.
# Seen: b'hello' for the one, b'~{5}' for the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet IMAPClient==4.1.0
cat >read.py <<'END'
from imapclient.response_parser import parse_fetch_response

def part(length):
    # A response as IMAPClient takes it from imaplib: the line up to a literal, and the literal.
    return parse_fetch_response([(b"1 (BINARY[1] " + length, b"hello"), b")"])[1][b"BINARY[1]"]

print(part(b"{5}"), part(b"~{5}"))
END
seen=$(tools/bin/python read.py)
echo "IMAPClient 4.1.0: a literal and a literal8 of hello give $seen"
[ "$seen" = "b'hello' b'~{5}'" ]

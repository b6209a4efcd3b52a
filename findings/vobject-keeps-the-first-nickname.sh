#!/usr/bin/env bash
# vobject 0.9.9 (PyPI): of several nicknames of a vCard only the first is kept, and the others are gone when the card is written.
#
# NICKNAME is a list of texts (RFC 2426 section 3.1.3, RFC 6350 section 6.2.3), as CATEGORIES is, which stays whole.
# Seen: `NICKNAME:Jim,Jimmie` is read and written as `NICKNAME:Jim`; `CATEGORIES:a,b` stays.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet vobject==0.9.9
cat >read.py <<'END'
import vobject

card = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:James Doe\r\nN:Doe;James;;;\r\nNICKNAME:Jim,Jimmie\r\nCATEGORIES:a,b\r\nEND:VCARD\r\n"
lines = vobject.readOne(card).serialize().splitlines()
print(" ".join(line for line in lines if line.startswith(("NICKNAME", "CATEGORIES"))))
END
seen=$(tools/bin/python read.py)
echo "vobject 0.9.9: NICKNAME:Jim,Jimmie and CATEGORIES:a,b become $seen"
[ "$seen" = "CATEGORIES:a,b NICKNAME:Jim" ]

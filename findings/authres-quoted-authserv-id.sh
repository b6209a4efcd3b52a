#!/usr/bin/env bash
# authres 1.2.0 (PyPI): an Authentication-Results field whose authserv-id is a quoted string is a syntax error.
#
# RFC 8601 section 2.2: authserv-id is a value (RFC 2045), which is a token or a quoted string. The same text without quotes is read.
# Seen: `example.com; none` is read, `"example.com"; none` raises SyntaxError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet authres==1.2.0
cat >read.py <<'END'
import authres

def read(value):
    try:
        return authres.AuthenticationResultsHeader.parse("Authentication-Results: " + value).authserv_id
    except authres.AuthResError as error:
        return type(error).__name__

print(read("example.com; none"), read('"example.com"; none'))
END
seen=$(tools/bin/python read.py)
echo "authres 1.2.0: without and with quotes: $seen"
[ "$seen" = "example.com SyntaxError" ]

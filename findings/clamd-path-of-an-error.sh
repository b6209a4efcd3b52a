#!/usr/bin/env bash
# clamd 1.0.2 (PyPI), the client of ClamAV's daemon: for a file that the daemon cannot open, the key of the result is not the path.
#
# clamd 1.4.6 answers SCAN with `PATH: File path check failure: No such file or directory. ERROR`. The client cuts at the last colon, so the path
# and a part of the error are the key, and looking up the path that was asked for finds nothing.
# Seen: {'/srv/mail/1: File path check failure': ('ERROR', 'No such file or directory.')}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet clamd==1.0.2
cat >ask.py <<'END'
import socket, threading
import clamd

# A daemon that answers one command as clamd 1.4.6 does.
daemon = socket.create_server(("127.0.0.1", 0))

def answer():
    client, _ = daemon.accept()
    client.recv(1000)
    client.sendall(b"/srv/mail/1: File path check failure: No such file or directory. ERROR\n")
    client.close()

threading.Thread(target=answer).start()
print(clamd.ClamdNetworkSocket("127.0.0.1", daemon.getsockname()[1], timeout=30).scan("/srv/mail/1"))
END
seen=$(timeout 60 tools/bin/python ask.py)
echo "clamd 1.0.2: $seen"
[ "$seen" = "{'/srv/mail/1: File path check failure': ('ERROR', 'No such file or directory.')}" ]

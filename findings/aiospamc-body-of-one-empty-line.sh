#!/usr/bin/env bash
# aiospamc 1.2.0 (PyPI): a response of spamd's protocol whose body is one empty line is no response.
#
# A server that states Content-length says 2 for such a body. Its parser takes the line for the end of the headers a second time, and
# raises BadResponse, though the request was carried out. Bodies of blanks, of one line feed, or that begin with an empty line are read,
# and so is the same response without Content-length, as spamd itself answers TELL.
# Seen: "OK" for the bodies of three blanks and of an empty line with text behind it, "BadResponse" for the empty line alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet aiospamc==1.2.0
cat >ask.py <<'END'
import asyncio
import aiospamc

async def ask(body):
    async def serve(reader, writer):
        await reader.read(1 << 16)
        writer.write(b"SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        await aiospamc.ping(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
        return "OK"
    except Exception as error:
        return type(error).__name__
    finally:
        server.close()

async def main():
    print(*[await ask(body) for body in (b"   ", b"\r\nabc", b"\r\n")])

asyncio.run(main())
END
seen=$(tools/bin/python ask.py)
echo "aiospamc 1.2.0: bodies of blanks, of an empty line and text, and of an empty line: $seen"
[ "$seen" = "OK OK BadResponse" ]

"""bench/idle: what an IMAP connection costs that is logged in and waits in IDLE: through the gateway, and of the mail store.

Clients and the server behind are event loops of one process each; the server says no more than it must. The figure is
the growth of Sluice's proportional set size over what it takes with no connection, divided by their number: memory of
the program, without the kernel's socket buffers. Afterwards one more connection shows that it still answers at once.
"""

import argparse
import asyncio
import multiprocessing
import os
import resource
import shutil
import ssl
import subprocess
import sys
import tempfile
import time

import mailboxes
from processes import Failed, Program, memory_bytes, take_charge
from sockets import is_open

SERVER, DOOR = 19_080, 19_082
AIMS = {False: 16, True: 48}
STORE_AIM = 12


def main():
    parser = argparse.ArgumentParser(prog="bench/idle", description="Memory of Sluice for each idle IMAP connection.")
    parser.add_argument("--connections", type=int, default=5_000)
    options = parser.parse_args()
    take_charge()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * options.connections, 4 * options.connections))
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        mailboxes.certificate(folder)
        print("| | connections | KiB each | aim | an answer, ms |\n|---|---|---|---|---|")
        for tls in (False, True):
            print(row(options.connections, folder, tls), flush=True)
        print(store_row(options.connections, folder), flush=True)
    except Failed as reason:
        sys.exit(f"bench/idle: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def row(connections, folder, tls):
    server = multiprocessing.Process(target=lambda: asyncio.run(serve(folder, tls)), daemon=True)
    server.start()
    while not is_open(SERVER):
        time.sleep(0.05)
    sluice = mailboxes.start_sluice(folder, [mailboxes.listener("imap", DOOR, SERVER, tls)])
    try:
        each, seconds = asyncio.run(fill(connections, sluice, tls))
    finally:
        sluice.stop()
        server.kill()
        server.join()
    name = "through the gateway, TLS on both sides" if tls else "through the gateway, in the clear"
    return shown(name, connections, each, AIMS[tls], seconds)


def store_row(connections, folder):
    """The store's own sessions, in the clear, of one account with an empty INBOX."""
    volume, accounts = f"{folder}/mail", f"{folder}/accounts"
    subprocess.run([os.environ["SLUICE"], "store", "create", "--size", "64M", volume], check=True, stdout=subprocess.DEVNULL)
    with open(accounts, "w") as file:
        file.write("tim:{PLAIN}secret:\n")
    os.chmod(accounts, 0o600)
    command = [os.environ["SLUICE"], "store", "serve", "--imap", f"127.0.0.1:{DOOR}", "--accounts", accounts]
    command += ["--sessions-max", str(connections + 10), volume]
    sluice = Program("sluice store", command, f"{folder}/store.log")
    try:
        sluice.wait_until(lambda: is_open(DOOR))
        each, seconds = asyncio.run(fill(connections, sluice, False))
    finally:
        sluice.stop()
    return shown("the store, in the clear", connections, each, STORE_AIM, seconds)


def shown(name, connections, each, aim, seconds):
    return f"| {name} | {connections} | {each / 1024:.1f} | {aim} | {1000 * seconds:.1f} |"


async def fill(connections, sluice, tls):
    """Bytes for each connection, and how long one more waits for an answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    secure = context if tls else None
    await idle(secure)
    before, held, gate = memory_bytes([sluice]), [], asyncio.Semaphore(50)

    async def one():
        async with gate:
            held.append(await idle(secure))
    await asyncio.gather(*(one() for _ in range(connections)))
    await asyncio.sleep(2)
    after = memory_bytes([sluice])
    start = time.monotonic()
    reader, writer = held[len(held) // 2]
    writer.write(b"DONE\r\n")
    await asyncio.wait_for(reader.readline(), 10)
    return (after - before) / connections, time.monotonic() - start


async def idle(secure):
    """A connection that is logged in and waits."""
    reader, writer = await asyncio.open_connection("127.0.0.1", DOOR, ssl=secure, limit=1 << 12)
    await reader.readline()
    for line, answer in ((b"a LOGIN tim secret", b"a OK"), (b"b SELECT INBOX", b"b OK"), (b"c IDLE", b"+")):
        writer.write(line + b"\r\n")
        while True:
            heard = await asyncio.wait_for(reader.readline(), 60)
            if not heard:
                raise Failed("a connection was closed")
            if heard.startswith(answer):
                break
    return reader, writer


async def serve(folder, tls):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/server.crt", f"{folder}/server.key")
    server = await asyncio.start_server(answer, "127.0.0.1", SERVER, ssl=context if tls else None, backlog=1_000,
                                        limit=1 << 12)
    async with server:
        await server.serve_forever()


async def answer(reader, writer):
    """An IMAP server that has an empty mailbox."""
    writer.write(b"* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\n")
    tag = b""
    while line := await reader.readline():
        words = line.split()
        if words == [b"DONE"]:
            writer.write(tag + b" OK done\r\n")
        elif words[1] == b"IDLE":
            tag = words[0]
            writer.write(b"+ idling\r\n")
        else:
            untagged = b"* 0 EXISTS\r\n* OK [UIDVALIDITY 1] fine\r\n" if words[1] == b"SELECT" else b""
            writer.write(untagged + words[0] + b" OK done\r\n")
    writer.close()


if __name__ == "__main__":
    main()

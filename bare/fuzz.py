#!/usr/bin/env python3
"""Sends the image under QEMU frames that nobody should send: `bare/fuzz.py IMAGE [--seconds N] [--seed N]`.

The machine's network is a UDP socket that carries its Ethernet frames, so that each byte of them is ours. Frames are random, or mutants of
ARP, IP, ICMP, UDP, DHCP and TCP; connections are made as they should be, and what follows is not: mutants of HTTP, TLS and SMTP, segments
out of order, twice, too large, with wrong flags and numbers. The machine has to stay up and to answer a whole request now and then. Ends
with status 1 and the seed if it does not.
"""

import argparse
import random
import select
import socket
import struct
import tempfile
import time

from machine import Machine, check, free_port

OURS, THEIRS = bytes.fromhex("525400000001"), bytes.fromhex("525400123456")
HERE, THERE = bytes([10, 0, 2, 2]), bytes([10, 0, 2, 15])
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SAID = (b"GET /login HTTP/1.1\r\nHost: a\r\n\r\n", b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 33\r\n\r\nname=ann%40example.org&password=a", b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<ann@example.org>\r\nDATA\r\na: b\r\n\r\nc\r\n.\r\n",
        b"POST /write HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n--b\r\n\r\n\r\n0\r\n\r\n",
        b"EHLO a\r\nSTARTTLS\r\n")


def checksum(content):
    content += b"\0" * (len(content) % 2)
    total = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", total ^ 0xFFFF)


def packet(protocol, content, identity=0):
    head = struct.pack("!BBHHHBB2s4s4s", 0x45, 0, 20 + len(content), identity, 0, 64, protocol, b"\0\0", HERE, THERE)
    return b"\x08\x00" + head[:10] + checksum(head) + head[12:] + content


def segment(port, to, sequence, acknowledged, flags, content=b"", options=b"", window=60_000):
    head = struct.pack("!HHIIBBH", port, to, sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF, (5 + len(options) // 4) << 4, flags, window)
    pseudo = HERE + THERE + struct.pack("!BBH", 0, 6, len(head) + 4 + len(options) + len(content))
    return packet(6, head + checksum(pseudo + head + b"\0" * 4 + options + content) + b"\0\0" + options + content)


def datagram(port, to, content):
    return packet(17, struct.pack("!HHHH", port, to, 8 + len(content), 0) + content)


def arp(operation):
    return b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + OURS + HERE + THEIRS + THERE


class Wire:
    """Frames to the machine, and from it."""

    def __init__(self, chance):
        self.chance, self.sent, self.port = chance, 0, 1_024
        self.here, self.there = free_port(), free_port()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", self.here))

    def network(self):
        return f"socket,id=net,udp=127.0.0.1:{self.here},localaddr=127.0.0.1:{self.there}"

    def send(self, content, to=THEIRS):
        self.sent += 1
        try:
            self.socket.sendto((to + OURS + content)[:1_514], ("127.0.0.1", self.there))
        except ConnectionError:
            pass  # QEMU is not there yet, or has ended: its process is looked at.

    def receive(self, seconds):
        """The next segment for us: its ports, numbers, flags and content."""
        until = time.monotonic() + seconds
        while select.select([self.socket], [], [], max(until - time.monotonic(), 0))[0]:
            frame = self.socket.recv(2_048)
            if frame[12:14] == b"\x08\x06":
                self.send(arp(2))
            elif frame[12:14] == b"\x08\x00" and frame[23] == 6:
                start = 14 + (frame[14] & 15) * 4
                end = 14 + struct.unpack("!H", frame[16:18])[0]
                port, to, sequence, acknowledged, offset, flags = struct.unpack("!HHIIBB", frame[start:start + 14])
                return to, port, sequence, acknowledged, flags, frame[start + (offset >> 4) * 4:end]
        return None

    def connect(self, to):
        """A connection: its port and the numbers of both sides."""
        self.port = 1_024 + (self.port - 1_023) % 60_000
        port, ours = self.port, self.chance.randrange(1 << 32)
        self.send(segment(port, to, ours, 0, SYN, options=b"\x02\x04\x05\xb4"))
        until = time.monotonic() + 2
        while time.monotonic() < until:
            heard = self.receive(0.2)
            if heard and heard[0] == port and heard[4] & (SYN | RST):
                if heard[4] & RST:
                    return None
                self.send(segment(port, to, ours + 1, heard[2] + 1, ACK))
                return port, ours + 1, heard[2] + 1
        return None

    def page(self):
        """A whole request: whether its answer came."""
        connection = self.connect(80)
        if not connection:
            return False
        port, ours, theirs = connection
        question, answer = b"GET /login HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b""
        self.send(segment(port, 80, ours, theirs, ACK | PSH, question))
        until = time.monotonic() + 5
        while time.monotonic() < until:
            heard = self.receive(0.5)
            if heard and heard[0] == port and heard[2] == theirs & 0xFFFFFFFF:
                answer, theirs = answer + heard[5], theirs + len(heard[5]) + (heard[4] & FIN)
                self.send(segment(port, 80, ours + len(question), theirs, ACK))
                if heard[4] & (FIN | RST):
                    self.send(segment(port, 80, ours + len(question), theirs, RST | ACK))
                    break
        return b"200 OK" in answer and b"</html>" in answer


def mutant(chance, content):
    """Some bytes changed, left out, doubled."""
    content = bytearray(content)
    for _ in range(chance.choice((0, 1, 1, 2, 5, 20))):
        at, kind = chance.randrange(len(content) + 1), chance.randrange(5)
        if kind == 0 and at < len(content):
            content[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif kind == 1 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del content[at:at + chance.randrange(1, 9)]
        elif kind == 3:
            content[at:at] = content[at:at + chance.randrange(1, 40)]
        else:
            content[at:at] = chance.randbytes(chance.randrange(1, 60))
    return bytes(content)


def client_hello(chance):
    """One that a server takes, apart from what is random."""
    def block(content, width):
        return len(content).to_bytes(width, "big") + content

    share = chance.choice(((0x1D, chance.randbytes(32)), (0x17, b"\x04" + chance.randbytes(64))))
    extensions = ((43, block(b"\x03\x04", 1)), (10, block(b"\x00\x1d\x00\x17", 2)), (13, block(b"\x04\x03\x08\x07", 2)),
                  (0, block(b"\x00" + block(b"mx.example.org", 2), 2)), (51, block(struct.pack("!H", share[0]) + block(share[1], 2), 2)))
    tail = b"".join(struct.pack("!H", kind) + block(content, 2) for kind, content in extensions)
    body = b"\x03\x03" + chance.randbytes(32) + block(chance.randbytes(32), 1) + block(b"\x13\x01\x13\x02\x13\x03", 2) + b"\x01\x00" + block(tail, 2)
    return b"\x16\x03\x01" + block(b"\x01" + block(body, 3), 2)


def lonely(chance):
    """A frame of no connection."""
    options = chance.randbytes(4 * chance.randrange(11))
    dhcp = b"\x02\x01\x06\x00" + chance.randbytes(232) + b"\x63\x82\x53\x63\x35\x01" + bytes([chance.randrange(9)]) + chance.randbytes(40)
    valid = chance.choice((
        lambda: chance.randbytes(chance.randrange(1, 1_500)), lambda: arp(chance.randrange(4)),
        lambda: packet(1, b"\x08\x00" + checksum(b"\x08\x00\0\0" + b"ping" * 8) + b"ping" * 8), lambda: datagram(67, 68, dhcp),
        lambda: datagram(chance.randrange(65_536), chance.randrange(65_536), chance.randbytes(40)),
        lambda: packet(chance.randrange(256), chance.randbytes(chance.randrange(200)), chance.randrange(65_536)),
        lambda: segment(chance.randrange(65_536), chance.choice((25, 80, 443, 1)), chance.randrange(1 << 32), chance.randrange(1 << 32),
                        chance.randrange(256), chance.randbytes(chance.randrange(60)), options, chance.randrange(65_536))))()
    return valid if chance.random() < 0.3 else mutant(chance, valid)


def talk(wire, chance):
    """A connection, and what should not follow."""
    to = chance.choice((25, 80, 443, 443))
    connection = wire.connect(to)
    if not connection:
        return
    port, ours, theirs = connection
    said = mutant(chance, client_hello(chance) if to == 443 else chance.choice(SAID))
    if to == 25 and said.endswith(b"STARTTLS\r\n"):
        said += mutant(chance, client_hello(chance))
    while said:
        piece, said = said[:(count := chance.choice((1, 5, 100, 1_400)))], said[count:]
        for _ in range(chance.choice((1, 1, 1, 2))):
            whole = segment(port, to, ours, theirs, ACK | PSH, piece)
            wire.send(whole if chance.random() < 0.95 else mutant(chance, whole))
        ours += len(piece) if chance.random() < 0.98 else chance.randrange(70_000)
        heard = wire.receive(0.002)
        if heard and heard[0] == port and chance.random() < 0.9:
            theirs = heard[2] + len(heard[5])
    for _ in range(chance.randrange(4)):
        wire.send(segment(port, to, ours + chance.randrange(-3, 3), theirs + chance.randrange(-3, 3), chance.randrange(64), chance.randbytes(chance.randrange(9))))
    if chance.random() < 0.7:
        wire.send(segment(port, to, ours, theirs, chance.choice((RST, RST | ACK, FIN | ACK))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    chance, pages, connections = random.Random(options.seed), 0, 0
    wire = Wire(chance)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options.image, folder)
        machine.network, machine.answers = wire.network, lambda: None
        try:
            machine.start()
            check(wire.page(), "the machine answers")
            first, until = machine.status()["memory"], time.monotonic() + options.seconds
            while time.monotonic() < until:
                for _ in range(200):
                    wire.send(lonely(chance), chance.choice((THEIRS, THEIRS, b"\xff" * 6)))
                for _ in range(10):
                    talk(wire, chance)
                    connections += 1
                check(machine.process.poll() is None and "panicked" not in machine.said(), f"the machine stays up, seed {options.seed}: " + machine.said()[-800:])
                check(any(wire.page() for _ in range(5)), f"the machine answers, seed {options.seed}: " + machine.said()[-800:])
                pages += 1
            # What is held for those who said half a thing goes when they are silent.
            grown = first - machine.status()["memory"]
        finally:
            machine.process.kill()
            machine.process.wait()
    print(f"{wire.sent} frames, {connections} connections, {pages} whole answers, {grown} bytes of memory held, seed {options.seed}")


if __name__ == "__main__":
    main()

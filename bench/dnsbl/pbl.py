#!/usr/bin/env python3
"""A second client of prefix block lists, written from docs/engine/pbl-draft.md and RFC 1035 alone.

    pbl.py ADDRESS:PORT ZONE NETWORK...

Asks for each network (an IPv4 /24 or IPv6 /48) by prefix and, of all its hosts or of 400 of its /64s, by address; status 1 if they
differ. Prints how many queries each way took."""
import ipaddress, os, random, socket, struct, sys

A, TXT = 1, 16
server, zone = sys.argv[1].rsplit(":", 1), sys.argv[2]
queries = 0

def skip_name(packet, at):
    while packet[at] and packet[at] < 0xC0:
        at += packet[at] + 1
    return at + (2 if packet[at] else 1)

def ask(name, kind):
    """The response code, and the data of the answers of that type."""
    global queries
    queries += 1
    ident = os.urandom(2)
    wire = b"".join(bytes([len(label)]) + label for label in f"{name}.{zone}".encode().split(b".")) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(5)
        udp.connect((server[0].strip("[]"), int(server[1])))
        udp.send(ident + struct.pack(">5H", 0x100, 1, 0, 0, 0) + wire + struct.pack(">2H", kind, 1))
        packet = udp.recv(4096)
    assert packet[:2] == ident and packet[2] & 0x80, "not the answer"
    at, found = skip_name(packet, 12) + 4, []
    for _ in range(struct.unpack_from(">H", packet, 6)[0]):
        at = skip_name(packet, at)
        record, _, _, length = struct.unpack_from(">HHIH", packet, at)
        if record == kind:
            found.append(packet[at + 10:at + 10 + length])
        at += 10 + length
    return packet[3] & 15, found

def text(record):
    joined = b""
    while record:
        joined, record = joined + record[1:1 + record[0]], record[1 + record[0]:]
    return joined

def classes(data, wide):
    """Of a host or /64: its addresses. None is "query each address"."""
    size, found, at = (2 if wide else 1), {}, 2
    try:
        if data[0] != 1 or not 1 <= data[1] <= 4:
            return None
        for _ in range(data[1]):
            coding, full, number = data[at] >> 6, data[at] >> 5 & 1, data[at] & 31
            address = data[at + 1:at + 5] if full else bytes([127, 0, 0, data[at + 1]])
            at += 5 if full else 2
            length = {0: number * size, 1: number * size * 2, 2: 32, 3: 0}[coding]
            hosts, at = data[at:at + length], at + length
            if len(hosts) < length or len(address) < 4 or (coding == 2 and wide):
                return None
            values = [int.from_bytes(hosts[i:i + size], "big") for i in range(0, length, size)]
            runs = {0: lambda: [(v, v) for v in values], 1: lambda: list(zip(values[::2], values[1::2])),
                    2: lambda: [(i, i) for i in range(256) if hosts[i >> 3] >> (7 - i & 7) & 1],
                    3: lambda: [(0, 65535 if wide else 255)]}[coding]()
            for first, last in runs:
                if last < first:
                    return None
                for host in range(first, last + 1):
                    found.setdefault(host, set()).add(address)
    except IndexError:
        return None
    return found if at == len(data) else None

def is_listing(address):
    return address[0] == 127 and address[:3] != b"\x7f\xff\xff"

_, capability = ask("_pbl", TXT)
words = text(capability[0]).decode().split(" ") if capability else []
assert words[:1] == ["v=pbl1"] and "p4=24" in words and "p6=48" in words, f"no capability: {words}"
wrong = 0
for network in map(ipaddress.ip_network, sys.argv[3:]):
    wide, first = network.version == 6, int(network.network_address)
    nibbles = lambda value, count: ".".join(f"{value >> 4 * at & 15:x}" for at in range(count))
    octets = lambda value: ".".join(reversed(str(ipaddress.ip_address(value)).split(".")))
    queries = 0
    code, answer = ask(nibbles(first >> 80, 12) + ".p6" if wide else octets(first).split(".", 1)[1] + ".p4", TXT)
    said = {} if code == 3 else classes(text(answer[0]), wide) if code == 0 and answer else None
    by_prefix, queries, listed = queries, 0, 0
    edges = {0, 1, 65535} | {n + d for n in (said or {}) for d in (-1, 0, 1)}
    hosts = sorted(set(random.sample(range(65536), 400)) | {e for e in list(edges)[:400] if 0 <= e < 65536}) if wide else range(256)
    for host in hosts:
        address = first + (host << 64) + random.getrandbits(64) if wide else first + host
        true = {a for a in ask(nibbles(address, 32) if wide else octets(address), A)[1] if is_listing(a)}
        listed += bool(true)
        if said is not None and {a for a in said.get(host, ()) if is_listing(a)} != true:
            print(f"{network} {host}: by prefix {said.get(host)}, by address {true}")
            wrong += 1
    state = "query each" if said is None else f"{by_prefix} query"
    print(f"{network}: {state} in place of {queries}, {listed} listed, {wrong} wrong")
sys.exit(wrong > 0)

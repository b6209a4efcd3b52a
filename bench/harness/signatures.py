"""The signature database of the benches: 19,807 generated signatures in ClamAV's text formats.

The recipe is that of the Avfs paper's experiments: 92 % plain byte strings, 4 % with wildcards, gaps or alternatives,
2 % logical signatures, 2 % hashes. A string begins with 4 to 12 bytes from a random place of real machine code, so that
its first bytes are distributed as in the files that are scanned, then has at least four changed bytes, then real and
changed ones, half and half; lengths are log-normal with median 48, from 10 to 200. Every signature is for every file
type, so nothing is left out by type. Signature *i* depends on nothing but *i* and the machine's libraries.

One signature more than the count is for the harmless MARKER, by which a gateway shows that it scans.
"""

import glob
import hashlib
import math
import os
import random

MARKER = b"SLUICE-HARMLESS-MARKER-STRING-FOR-SCANNER-TESTS-7f3a91"
COUNT = 19_807
CORPUS_BYTES = 64 << 20


def write(folder, count=COUNT):
    """Writes sluice.ndb, .hdb, .hsb and .ldb to `folder`."""
    corpus = _corpus()
    lines = {"ndb": ["Sluice.Marker.Plain:0:*:" + MARKER.hex()], "hdb": [], "hsb": [], "ldb": []}
    for index in range(count):
        kind, line = _signature(index, corpus)
        lines[kind].append(line)
    for kind, rows in lines.items():
        with open(os.path.join(folder, "sluice." + kind), "w") as file:
            file.write("\n".join(rows) + "\n")


def _corpus():
    """Shared libraries, in an order that mixes them well."""
    paths = [path for path in glob.glob("/usr/lib/*-linux-gnu/*.so*") if not os.path.islink(path)]
    paths.sort(key=lambda path: hashlib.md5(path.encode()).digest())
    corpus = bytearray()
    for path in paths:
        with open(path, "rb") as file:
            corpus += file.read(8 << 20)
        if len(corpus) >= CORPUS_BYTES:
            break
    return bytes(corpus[:CORPUS_BYTES])


def _signature(index, corpus):
    chance = random.Random(1_000_003 + index)
    share = chance.random()
    if share < 0.015:
        return "hdb", f"{chance.getrandbits(128):032x}:{chance.randint(200, 3_000_000)}:Sluice.H.{index}"
    if share < 0.02:
        return "hsb", f"{chance.getrandbits(256):064x}:{chance.randint(200, 3_000_000)}:Sluice.S.{index}"
    if share < 0.04:
        return "ldb", _logical(index, chance, corpus)
    if share < 0.08:
        return "ndb", f"Sluice.W.{index}:0:*:{_wild(chance, corpus)}"
    return "ndb", f"Sluice.B.{index}:0:*:{_string(chance, corpus, _length(chance)).hex()}"


def _length(chance):
    return max(10, min(200, int(math.exp(chance.gauss(math.log(48), 0.6)))))


def _string(chance, corpus, length):
    while True:
        start = chance.randrange(len(corpus) - 256)
        string = bytearray(corpus[start:start + length])
        if len(set(string[:8])) >= 4:  # the author of a signature avoids padding
            break
    changed = 0
    for place in range(chance.randint(4, min(12, length - 5)), length):
        if changed < 4 or chance.getrandbits(1):
            string[place] = (string[place] + chance.randint(1, 255)) & 255
            changed += 1
    return bytes(string)


def _logical(index, chance, corpus):
    count = chance.randint(2, 4)
    parts = [_string(chance, corpus, max(10, _length(chance) // 2)).hex() for _ in range(count)]
    every = "&".join(map(str, range(count)))
    some = "(" + "|".join(map(str, range(count - 1))) + f")&{count - 1}"
    return f"Sluice.L.{index};Engine:81-255,Target:0;{chance.choice([every, some, every])};" + ";".join(parts)


def _wild(chance, corpus):
    length = _length(chance)
    match chance.randint(0, 3):
        case 0:
            count = 2 + (chance.random() < 0.3)
            return "*".join(_string(chance, corpus, max(10, length // count)).hex() for _ in range(count))
        case 1:
            least = chance.randint(1, 16)
            halves = [_string(chance, corpus, max(10, length // 2)).hex() for _ in range(2)]
            return f"{halves[0]}{{{least}-{least + chance.randint(1, 64)}}}{halves[1]}"
        case 2:
            string = [f"{byte:02x}" for byte in _string(chance, corpus, max(16, length))]
            for _ in range(chance.randint(1, 4)):
                string[chance.randint(6, len(string) - 2)] = "??"
            return "".join(string)
        case _:
            string = _string(chance, corpus, max(16, length))
            place = chance.randint(6, len(string) - 3)
            choices = "|".join(f"{(string[place] + more) & 255:02x}" for more in (0, 7, 91))
            return f"{string[:place].hex()}({choices}){string[place + 1:].hex()}"

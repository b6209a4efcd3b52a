#!/usr/bin/env python3
"""Packs the image: `bare/pack.py IMAGE PACKED`. What comes out unpacks itself where the image would have been loaded (pack.S)."""

import os
import struct
import subprocess
import sys
import tempfile

PLACE = 16 << 20  # Of the packed image: behind the image, with room for it to grow.
SEARCHED = 32     # Places of the same four bytes that are tried.


def segments(elf):
    """Entry by the note, and the segments that are loaded: address, content, bytes in memory."""
    start, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    loads, entry = [], None
    for number in range(count):
        kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", elf, start + number * size)
        if kind == 1:
            loads.append((address, elf[offset:offset + in_file], in_memory))
        if kind == 4:
            entry = struct.unpack_from("<I", elf, offset + 16)[0]
    return entry, sorted(loads)


def number(count):
    return b"\xff" * (count // 255) + bytes([count % 255])


def sequence(literals, distance, length):
    token = min(len(literals), 15) << 4 | (min(length - 4, 15) if distance else 0)
    packed = bytes([token]) + (number(len(literals) - 15) if len(literals) >= 15 else b"") + literals
    if distance:
        packed += struct.pack("<H", distance) + (number(length - 19) if length >= 19 else b"")
    return packed


def same(content, one, other):
    """How many bytes are the same from two places on."""
    length, end = 0, len(content)
    while other + length < end and content[one + length] == content[other + length]:
        length += 1
    return length


def pack(content):
    """A block of LZ4: at each place the longest copy among the last that begin with the same four bytes."""
    known, packed, at, from_ = {}, bytearray(), 0, 0
    while at + 4 <= len(content):
        places = known.setdefault(content[at:at + 4], [])
        best = max(((same(content, place, at), place) for place in places[-SEARCHED:] if at - place < 65_536), default=(0, 0))
        places.append(at)
        if best[0] < 4:
            at += 1
            continue
        packed += sequence(content[from_:at], at - best[1], best[0])
        for passed in range(at + 1, min(at + best[0], len(content) - 4)):
            known.setdefault(content[passed:passed + 4], []).append(passed)
        at += best[0]
        from_ = at
    return bytes(packed + sequence(content[from_:], 0, 0))


def main():
    with open(sys.argv[1], "rb") as file:
        entry, loads = segments(file.read())
    first, end = loads[0][0], max(address + in_memory for address, _, in_memory in loads)
    content = bytearray(max(address + len(part) for address, part, _ in loads) - first)
    for address, part, _ in loads:
        content[address - first:address - first + len(part)] = part
    assert end < PLACE, "the image reaches the place of the packed one"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/packed", "wb") as file:
            file.write(pack(bytes(content)))
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pack.S")
        names = {"IMAGE": first, "IMAGE_END": end, "ENTRY": entry, "PACKED": f'"{folder}/packed"'}
        subprocess.run(["cc", "-c", "-o", f"{folder}/pack.o", source, *(f"-D{name}={value}" for name, value in names.items())], check=True)
        with open(f"{folder}/pack.ld", "w") as script:
            script.write(f"ENTRY(start) PHDRS {{ note PT_NOTE FLAGS(4); text PT_LOAD FLAGS(7); }} SECTIONS {{ . = {PLACE}; "
                         ".note.Xen : { *(.note.Xen) } :note :text .text : { *(.text) } :text /DISCARD/ : { *(*) } }")
        subprocess.run(["ld", "-n", "-s", "--no-warn-rwx-segments", "--build-id=none", "-T", f"{folder}/pack.ld", "-o", sys.argv[2], f"{folder}/pack.o"], check=True)
    print(f"{os.path.getsize(sys.argv[1])} bytes packed to {os.path.getsize(sys.argv[2])}")


main()

#!/usr/bin/env python3
"""Packs the image: `bare/pack.py IMAGE PACKED`. What comes out unpacks itself where the image would have been loaded (pack.S)."""

import os
import struct
import subprocess
import sys
import tempfile

PLACE = 16 << 20  # Of the packed image: behind the image, with room for it to grow.
SEARCHED = 64     # Places of the same four bytes that are tried.
DISTANCE_MAX = 65_535


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


def same(content, one, other, length):
    """How many bytes are the same from two places on, where so many are known to be."""
    end = len(content)
    while other + length < end and content[one + length] == content[other + length]:
        length += 1
    return length


def longest(content, places, at):
    """The longest copy of what stands at a place, and where it is."""
    best, end = (0, 0), len(content)
    for place in reversed(places):
        if at - place > DISTANCE_MAX:
            break
        length = best[0]
        # Only what is longer than the best is looked at.
        if at + length < end and content[place + length] == content[at + length] and content[place:place + length] == content[at:at + length]:
            best = max(best, (same(content, place, at, length), place))
    return best


def pack(content):
    """A block of LZ4. From the end on, each place takes what makes all behind it the smallest: a literal, or a copy as long as it can be or
    shorter."""
    known, copies, end = {}, [(0, 0)] * len(content), len(content)
    for at in range(end - 4):
        places = known.setdefault(content[at:at + 4], [])
        # Within a copy the rest of it is one.
        before = copies[at - 1]
        if before[0] > 64:
            copies[at] = (before[0] - 1, before[1] + 1)
        else:
            copies[at] = longest(content, places[-SEARCHED:], at)
        places.append(at)
    cost, chosen = [0] * (end + 1), [0] * end
    for at in range(end - 1, -1, -1):
        cost[at], length_max = cost[at + 1] + 1, copies[at][0]
        for length in {length_max, *range(4, min(length_max, 20) + 1)} if length_max >= 4 else ():
            bytes_ = cost[at + length] + 3 + (length > 18) + (length - 19) // 255 * (length > 18)
            if bytes_ <= cost[at]:
                cost[at], chosen[at] = bytes_, length
    packed, at, from_ = bytearray(), 0, 0
    while at < end:
        if chosen[at]:
            packed += sequence(content[from_:at], at - copies[at][1], chosen[at])
            at += chosen[at]
            from_ = at
        else:
            at += 1
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

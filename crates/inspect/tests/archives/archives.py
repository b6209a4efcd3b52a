#!/usr/bin/env python3
"""Archives by a grammar of oddities, and who opens them.

archives.py SEED COUNT FOLDER: writes COUNT archives into FOLDER, lets each reader that is installed extract them, and prints
one line for each archive: its file, its seed, what is odd about it, and the readers that came to the marker.
"""
import bz2
import io
import lzma
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

MARKER = b"marker-" + b"that-a-reader-" + b"comes-to-0123456789"
CLEAN = b"a clean file of some words, and a few more of them\n"


class Grammar:
    """Choices of one archive; each that is odd has a name."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.odd = []

    def chance(self, of, name):
        """Whether an oddity is wanted: once in so many times."""
        if self.random.randrange(of):
            return False
        self.odd.append(name)
        return True

    def pick(self, *choices):
        return self.random.choice(choices)

    def junk(self, most):
        return self.random.randbytes(self.random.randrange(1, most))


def deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def lzma_of_zip(data):
    filters = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16, "lc": 3, "lp": 0, "pb": 2}]
    return b"\x09\x14\x05\0\x5d\0\0\x01\0" + lzma.compress(data, lzma.FORMAT_RAW, filters=filters)


PACKERS = {0: lambda data: data, 8: deflate, 12: bz2.compress, 14: lzma_of_zip}


def zip_member(g, name, data, at):
    """The local record, and the central one."""
    method = g.pick(0, 8, 8, 8, 12, 14)
    packed = PACKERS[method](data)
    flags = g.pick(0, 0, 0, 1 << 11)
    if method == 14:
        flags |= 2
    if g.chance(15, "flags"):
        flags |= g.pick(1 << 6, 1 << 13, 1 << 6 | 1 << 13, 1 << 5, 1 << 4)
    crc, sizes = zlib.crc32(data), [len(packed), len(data)]
    local = {"version": 20, "flags": flags, "method": method, "crc": crc, "sizes": list(sizes), "name": name, "extra": b""}
    central = dict(local, sizes=list(sizes), offset=at, comment=b"", disk=0)
    descriptor = b""
    if g.chance(5, "descriptor"):
        local["flags"] |= 8
        central["flags"] |= 8
        if not g.chance(3, "descriptor besides sizes"):
            local["crc"], local["sizes"] = 0, [0, 0]
        descriptor = struct.pack("<III", crc, *sizes)
        if not g.chance(3, "descriptor without signature"):
            descriptor = b"PK\7\x08" + descriptor
        if g.chance(6, "no descriptor"):
            descriptor = b""
    for which, side in (("local", local), ("central", central)):
        if g.chance(10, f"{which} method"):
            side["method"] = g.pick(0, 8, 12, 14, 99, 1, 6, 9, 93)
        if g.chance(12, f"{which} flags"):
            side["flags"] ^= g.pick(1, 8, 1 << 6, 1 << 13, 1 << 11, 1 << 5, 1 << 4)
        if g.chance(14, f"{which} crc"):
            side["crc"] = g.random.getrandbits(32)
        if g.chance(10, f"{which} packed size"):
            side["sizes"][0] = g.pick(0, 1, len(packed) - 1, len(packed) + 1, len(packed) + 40, 0x7FFFFFFF, 0xFFFFFFFF)
        if g.chance(10, f"{which} size"):
            side["sizes"][1] = g.pick(0, 1, len(data) - 1, len(data) + 1, 0x7FFFFFFF, 0xFFFFFFFF)
        if g.chance(12, f"{which} name"):
            side["name"] = g.pick(b"other.txt", b"", b"a/" + name, name + b"/", b"../x", b"\0" + name, name + b"\0.txt", b"x" * 300)
        if g.chance(10, f"{which} zip64"):
            wide = struct.pack("<QQ", side["sizes"][1], side["sizes"][0])
            if g.chance(3, f"{which} zip64 lies"):
                wide = struct.pack("<QQ", g.pick(0, 5, len(data)), g.pick(0, 7, len(packed), len(packed) + 9))
            side["extra"] += struct.pack("<HH", 1, len(wide)) + wide
            if g.pick(True, True, False):
                side["sizes"] = [0xFFFFFFFF, 0xFFFFFFFF]
        if g.chance(10, f"{which} extra"):
            body = g.pick(b"", b"xyz", b"\0" * 40, struct.pack("<BI", 1, zlib.crc32(name)) + b"unicode.txt", MARKER)
            length = g.pick(len(body), len(body), len(body) + 3, 0xFFFF)
            side["extra"] += struct.pack("<HH", g.pick(0xCAFE, 0x7075, 0x5455, 1, 0x9901), length) + body
        if g.chance(20, f"{which} version"):
            side["version"] = g.pick(0, 10, 45, 63, 99, 0xFFFF)
    if g.chance(14, "central offset"):
        central["offset"] += g.pick(-1, 1, 4, -at, 30, 1 << 20)
        central["offset"] %= 1 << 32
    if g.chance(20, "member comment"):
        central["comment"] = g.pick(b"words", b"PK\5\6" + bytes(18), b"PK\3\4" + bytes(40))
    if g.chance(25, "member on another disk"):
        central["disk"] = g.pick(1, 5, 0xFFFF)
    signature = b"PK\3\4"
    if g.chance(30, "local signature"):
        signature = g.pick(b"PK\3\5", b"XX\3\4", b"PK\1\2")
    record = signature + struct.pack("<HHHHHIIIHH", local["version"], local["flags"], local["method"], 0, 0x5021, local["crc"],
        *local["sizes"], len(local["name"]), len(local["extra"])) + local["name"] + local["extra"] + packed + descriptor
    listed = b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", 20, central["version"], central["flags"], central["method"], 0, 0x5021,
        central["crc"], *central["sizes"], len(central["name"]), len(central["extra"]), len(central["comment"]),
        central["disk"], 0, g.pick(0, 0, 0x20 << 16), central["offset"]) + central["name"] + central["extra"] + central["comment"]
    return record, listed


def zip_archive(g, content, depth=0):
    prefix = g.junk(600) if g.chance(8, "prefix") else b""
    if prefix and g.chance(3, "prefix of text"):
        prefix = b"text in front\r\n" * 20
    counted = bool(prefix) and g.chance(2, "offsets count the prefix")
    body, listed = b"", []
    members = [(b"marked.txt", content)]
    for at in range(g.random.randrange(3)):
        members.insert(g.random.randrange(len(members) + 1), (b"clean%d.txt" % at, CLEAN * (at + 1)))
    if g.chance(15, "same name twice"):
        members.insert(g.random.randrange(len(members) + 1), (b"marked.txt", CLEAN))
    for name, data in members:
        if g.chance(15, "gap"):
            body += g.junk(60)
        record, entry = zip_member(g, name, data, len(body) + (len(prefix) if counted else 0))
        if not g.chance(20, "not listed"):
            listed.append(entry)
        if not g.chance(30, "listed only"):
            body += record
    if g.chance(12, "directory in another order"):
        g.random.shuffle(listed)
    if listed and g.chance(15, "listed twice"):
        listed.append(g.random.choice(listed))
    directory = b"".join(listed)
    at = len(body) + (len(prefix) if counted else 0)
    count, length = len(listed), len(directory)
    if g.chance(15, "count lies"):
        count = g.pick(0, 1, count + 1, 0xFFFF)
    if g.chance(15, "directory size lies"):
        length = max(0, length + g.pick(-1, 1, 46, -46, -length)) % (1 << 32)
    if g.chance(15, "directory offset lies"):
        at = (at + g.pick(-1, 1, -at, 1000)) % (1 << 32)
    comment = g.pick(b"words", b"PK\5\6" + bytes(18), b"c" * 2000, zip_plain(CLEAN)) if g.chance(8, "comment") else b""
    said = len(comment)
    if comment and g.chance(3, "comment length lies"):
        said = g.pick(0, max(0, said - 5), min(0xFFFF, said + 5))
    wide = b""
    if g.chance(12, "zip64 end"):
        wide = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, at)
        if g.chance(3, "zip64 end lies"):
            wide = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 0, 0, g.pick(0, length), g.pick(0, at + 9))
        wide += b"PK\6\7" + struct.pack("<IQI", 0, at + length, 1)
        if g.pick(True, False):
            count, length, at = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF
    disk = g.pick(1, 0xFFFF) if g.chance(30, "end on another disk") else 0
    end = wide + b"PK\5\6" + struct.pack("<HHHHIIH", disk, g.pick(0, 0, 0, disk), min(count, 0xFFFF), min(count, 0xFFFF), length, at, said) + comment
    whole = prefix + body + directory + end
    if g.chance(12, "two archives"):
        whole = g.pick(lambda: whole + zip_plain(CLEAN), lambda: zip_plain(CLEAN) + whole, lambda: whole + end, lambda: whole + zip_plain(CLEAN)[:30])()
    if g.chance(15, "junk behind"):
        whole += g.junk(300)
    if g.chance(25, "cut"):
        whole = whole[: len(whole) - g.random.randrange(1, 40)]
    if depth == 0 and g.chance(25, "nested"):
        return zip_archive(g, whole, 1)
    return whole


def zip_plain(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plain.txt", data)
    return out.getvalue()


def tar_header(g, name, size, kind=b"0", prefix=b"", magic=b"ustar\00000", link=b""):
    header = bytearray(512)
    header[: len(name[:100])] = name[:100]
    header[100:124] = b"0000644\0" + b"0000000\0" * 2
    number = b"%011o\0" % max(size, 0)
    if g.chance(12, "size in another form"):
        number = g.pick(b"\x80" + size.to_bytes(11, "big"), b"%12o" % size, b"%o\0" % size, b" %o" % size, b"%011o " % size, b"0o%o" % size)
    if g.chance(20, "size lies"):
        number = b"%011o\0" % g.pick(0, 1, size + 512, size - 1 if size else 7, 0o77777777)
    header[124:136] = number.ljust(12, b"\0")[:12]
    header[136:148] = b"00000000000\0"
    header[156:157] = kind
    header[157 : 157 + len(link[:100])] = link[:100]
    if not g.chance(12, "no magic"):
        header[257:265] = g.pick(magic, magic, b"ustar  \0") if g.chance(6, "gnu magic") else magic
    header[345 : 345 + len(prefix[:155])] = prefix[:155]
    header[148:156] = b" " * 8
    total = sum(header)
    if g.chance(20, "signed sum"):
        total = sum(byte - 256 if byte > 127 else byte for byte in header)
    if g.chance(25, "sum lies"):
        total += g.pick(1, 256, -1)
    header[148:156] = g.pick(b"%06o\0 " % (total & 0o777777), b"%06o\0 " % (total & 0o777777), b"%7o\0" % (total & 0o777777))
    return bytes(header)


def padded(data):
    return data + bytes(-len(data) % 512)


def pax(g, fields):
    body = b""
    for key, value in fields:
        line = b" %s=%s\n" % (key, value)
        length = len(line) + 1
        while len(b"%d" % length) + len(line) != length:
            length = len(b"%d" % length) + len(line)
        body += b"%d" % (length + (g.pick(-1, 1, 40) if g.chance(25, "pax length lies") else 0)) + line
    kind = g.pick(b"x", b"x", b"g", b"X") if g.chance(5, "another pax") else b"x"
    return tar_header(g, b"PaxHeaders/x", len(body), kind) + padded(body)


def tar_member(g, name, data):
    out = b""
    kind = b"0"
    if g.chance(8, "odd type"):
        kind = g.pick(b"\0", b"7", b"1", b"2", b"5", b"3", b"Z", b"A", b"V", b"M", b"D", b"K", b"L", b"S", b"x", b"g", b"I")
    if g.chance(8, "long name"):
        long = name + b"n" * 200 + b"\0"
        out += tar_header(g, b"././@LongLink", len(long), b"L", magic=b"ustar  \0") + padded(long)
    size = len(data)
    if g.chance(6, "pax"):
        fields = [(b"path", b"pax-" + name)]
        if g.chance(2, "pax size"):
            fields.append((b"size", b"%d" % g.pick(size, size, 0, size + 512, size - 1)))
        if g.chance(5, "pax sparse"):
            fields += [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.realsize", b"%d" % size)]
            data = padded(b"1\n0\n%d\n" % size) + data
            size = len(data)
        out += pax(g, fields)
    return out + tar_header(g, name, size, kind) + padded(data)


def tar_archive(g, content):
    members = [(b"marked.txt", content)]
    for at in range(g.random.randrange(3)):
        members.insert(g.random.randrange(len(members) + 1), (b"clean%d.txt" % at, CLEAN * (at + 1)))
    out = b""
    for name, data in members:
        if g.chance(15, "blocks of nothing"):
            out += bytes(512 * g.pick(1, 2, 3, 20))
        if g.chance(25, "block of junk"):
            out += g.random.randbytes(512)
        out += tar_member(g, name, data)
    if not g.chance(8, "no end"):
        out += bytes(1024)
    if g.chance(8, "another archive"):
        more = b"".join(tar_member(g, b"more.txt", g.pick(CLEAN, content)) for _ in range(1)) + bytes(1024)
        out = g.pick(out + more, more + out)
    if g.chance(6, "compressed"):
        out = g.pick(lambda: zlib.compress(out, wbits=31), lambda: bz2.compress(out), lambda: lzma.compress(out))()
    if g.chance(25, "cut"):
        out = out[: len(out) - g.random.randrange(1, 600)]
    return out


def seven_archive(g, content, folder):
    """Made by 7-Zip, then changed where that keeps it readable."""
    program = shutil.which("7z") or shutil.which("7zz") or shutil.which("7za")
    if not program:
        return zip_archive(g, content)
    where = os.path.join(folder, f"7z-{g.random.getrandbits(48):x}")
    os.makedirs(where)
    names = ["marked.txt"]
    open(os.path.join(where, "marked.txt"), "wb").write(content)
    for at in range(g.random.randrange(3)):
        names.append(f"clean{at}.txt")
        open(os.path.join(where, names[-1]), "wb").write(g.pick(b"", CLEAN * (at + 1)))
    method = g.pick("LZMA", "LZMA2", "PPMd", "BZip2", "Deflate", "Copy", "Deflate64")
    options = [f"-m0={method}", g.pick("-ms=on", "-ms=off"), g.pick("-mhc=on", "-mhc=off"), g.pick("-mf=off", "-mf=BCJ", "-mf=Delta:4", "-mf=on")]
    target = os.path.join(where, "a.7z")
    subprocess.run([program, "a", "-bd", "-y", *options, "a.7z", *names], cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    data = open(target, "rb").read() if os.path.exists(target) else b""
    shutil.rmtree(where)
    g.odd.append(method)
    if len(data) > 32 and g.chance(6, "header beyond the end"):
        offset, size, crc = struct.unpack("<QQI", data[12:32])
        start = struct.pack("<QQI", offset, size + g.pick(1, 20, 300, 5000), g.pick(crc, crc, 0))
        data = data[:8] + struct.pack("<I", zlib.crc32(start)) + start + data[32:]
        return data
    return changed(g, data)


def cab_block(g, data, method, history, reserve):
    packed = data
    if method == 1:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, *[history][: bool(history)])
        packed = b"CK" + packer.compress(data) + packer.flush()
    size = len(data)
    if g.chance(20, "block size"):
        size = g.pick(0, 1, size + 1, 0xFFFF)
    area = g.random.randbytes(reserve)
    head = struct.pack("<HH", len(packed), size)
    total = 0
    for at in range(0, len(packed) & ~3, 4):
        total ^= struct.unpack_from("<I", packed, at)[0]
    for at, byte in enumerate(packed[len(packed) & ~3 :]):
        total ^= byte << 8 * (len(packed) % 4 - 1 - at)
    total ^= struct.unpack("<I", head)[0]
    if g.chance(6, "no sum"):
        total = 0
    return struct.pack("<I", total) + head + area + packed


def cab_archive(g, content):
    """A cabinet of stored or MSZIP folders, with reserved areas."""
    flags, areas = 0, (0, 0, 0)
    if g.chance(2, "reserved areas"):
        flags |= 4
        areas = (g.pick(0, 4, 20, 600), g.pick(0, 0, 4, 255), g.pick(0, 0, 4, 255))
    names = b""
    if g.chance(12, "previous cabinet"):
        flags |= 1
        names += b"before.cab\0disk\0"
    if g.chance(12, "next cabinet"):
        flags |= 2
        names += b"after.cab\0disk\0"
    if g.chance(15, "unknown flags"):
        flags |= g.pick(8, 0x10, 0x8000)
    members = [(b"marked.txt", content)]
    for at in range(g.random.randrange(3)):
        members.insert(g.random.randrange(len(members) + 1), (b"clean%d.txt" % at, CLEAN * (at + 1)))
    folders, files = [], []
    for at, (name, data) in enumerate(members):
        if not folders or g.chance(3, "another folder"):
            folders.append([g.pick(0, 1, 1), b""])
        files.append([name, len(data), len(folders[-1][1]), len(folders) - 1])
        folders[-1][1] += data
    streams = []
    for method, data in folders:
        step = g.pick(32768, 32768, 100)
        blocks = [
            cab_block(g, data[at : at + step], method, data[max(0, at - 32768) : at], areas[2]) for at in range(0, len(data), step)
        ]
        streams.append((method, len(blocks), b"".join(blocks)))
    if g.chance(15, "folder number"):
        g.random.choice(files)[3] = g.pick(0xFFFD, 0xFFFE, 0xFFFF, 7)
    if g.chance(15, "file size"):
        g.random.choice(files)[1] += g.pick(1, -1, 5000)
    if g.chance(15, "file offset"):
        g.random.choice(files)[2] += g.pick(1, 7, 90000)
    table = b"".join(
        struct.pack("<IIHHHH", size, start, folder, 0x5021, 0, g.pick(0x20, 0x20, 0xA0)) + name + b"\0" for name, size, start, folder in files
    )
    reserve = struct.pack("<HBB", *areas) + g.random.randbytes(areas[0]) if flags & 4 else b""
    files_at = 36 + len(reserve) + len(names) + len(folders) * (8 + areas[1])
    gap = g.junk(40) if g.chance(12, "gap before files") else b""
    files_at += len(gap)
    at = files_at + len(table)
    listed, body = b"", b""
    for method, count, stream in streams:
        if g.chance(15, "gap before data"):
            body += g.junk(40)
        kind = method | (g.pick(0x10, 0x1500) if g.chance(25, "bits of method") else 0)
        if g.chance(25, "count of blocks"):
            count += g.pick(1, -1)
        listed += struct.pack("<IHH", at + len(body), count % 65536, kind) + g.random.randbytes(areas[1])
        body += stream
    size = at + len(body)
    if g.chance(10, "cabinet size"):
        size = g.pick(0, 36, size - 1, size + 100, 0xFFFFFFFF)
    counts = [len(folders), len(files)]
    if g.chance(25, "count of files"):
        counts[1] += g.pick(1, -1)
    version = g.pick(0x0103, 0x0103, 0x0103, 0x0103, 0x0102, 0x0204)
    head = b"MSCF" + struct.pack("<IIIIIHHHHHH", 0, size, 0, files_at, 0, version, *counts, flags, 0, 0)
    prefix = g.junk(600) if g.chance(8, "prefix") else b""
    return prefix + head + reserve + names + listed + gap + table + body


def changed(g, data):
    """Bytes changed here and there, something in front or behind."""
    data = bytearray(data)
    if g.chance(3, "bytes changed"):
        for _ in range(g.random.randrange(1, 4)):
            if data:
                data[g.random.randrange(len(data))] = g.pick(0, 1, 255, g.random.randrange(256))
    data = bytes(data)
    if g.chance(3, "prefix"):
        data = g.pick(g.junk(3000), b"text\n" * 200, b"ID3\3\0\0\0\0\0\0" + g.junk(500), b"MZ" + g.junk(900), b"<html>" + b"x" * 900) + data
    if g.chance(6, "junk behind"):
        data += g.junk(300)
    if g.chance(8, "cut"):
        data = data[: len(data) - g.random.randrange(1, max(2, len(data) // 4))]
    return data


def archive(seed, folder):
    g = Grammar(seed)
    content = CLEAN * g.random.randrange(3) + MARKER + CLEAN * g.random.randrange(40)
    samples = SAMPLES or [None]
    kind = g.pick(*["zip"] * 5, *["tar"] * 3, "cab", "7z", "sample")
    if kind == "sample" and samples[0]:
        name, data = g.pick(*samples)
        return name.rsplit(".", 1)[-1], changed(g, data), g.odd
    make = {"zip": zip_archive, "tar": tar_archive, "cab": cab_archive}.get(kind)
    if make:
        return kind, make(g, content), g.odd
    return "7z", seven_archive(g, content, folder), g.odd


# Readers: each says whether it comes to the marker.


def has(data):
    return MARKER in data or any(mark in data for mark in OTHER_MARKS)


def nested(data, reader, depth=0):
    """Whether the marker is there, or in an archive there."""
    return has(data)


def by_zipfile(path):
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            try:
                data = archive.read(info)
            except Exception:
                continue
            if has(data) or data[:2] == b"PK" and by_zipfile(io.BytesIO(data)):
                return True
    return False


def by_tarfile(path):
    with tarfile.open(path) as archive:
        for info in archive:
            file = archive.extractfile(info) if info.isreg() else None
            if file and has(file.read()):
                return True
    return False


def program(*words):
    def run(path):
        done = subprocess.run([word.replace("{}", path) for word in words], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        return has(done.stdout)

    return run


def by_unar(path):
    folder = path + ".unar"
    os.makedirs(folder, exist_ok=True)
    try:
        subprocess.run(["unar", "-q", "-f", "-D", "-p", "x", "-o", folder, path], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        for where, _, files in os.walk(folder):
            for name in files:
                file = os.path.join(where, name)
                if os.path.isfile(file) and not os.path.islink(file) and has(open(file, "rb").read()):
                    return True
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def readers():
    found = {"zipfile": by_zipfile, "tarfile": by_tarfile}
    if shutil.which("bsdtar"):
        found["bsdtar"] = program("bsdtar", "-xOf", "{}")
    for name in ("7z", "7zz", "7za"):
        if shutil.which(name):
            found["7-zip"] = program(name, "x", "-so", "-y", "-px", "{}")
            break
    if shutil.which("unzip"):
        found["unzip"] = program("unzip", "-p", "-P", "x", "{}")
    if shutil.which("unar"):
        found["unar"] = by_unar
    return found


def openers(path, sure):
    """Who opens it. Where the cheap readers do, the others need not be asked."""
    found = []
    for name, reader in sure.items():
        if name == "unar" and found:
            continue
        try:
            if reader(path):
                found.append(name)
        except Exception:
            pass
    return found


SAMPLES = []
OTHER_MARKS = []


def samples(path):
    """Archives of a table: format, file, zlib and Base64. What is in them is a mark, too."""
    import base64

    for line in open(path):
        fields = line.rstrip("\n").split("\t")
        if len(fields) > 2 and fields[0] in ("rar", "7z", "zip", "lha", "cab", "arj", "tar", "cpio"):
            try:
                data = zlib.decompress(base64.b64decode(fields[2]))
            except Exception:
                continue
            if "encrypted" not in fields[1] and fields[1] not in ("aes.zip", "traditional.zip"):
                SAMPLES.append((fields[1], data))
    OTHER_MARKS.append(b"-STANDARD-" + b"ANTIVIRUS-TEST-FILE")


def main():
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if len(sys.argv) > 4:
        samples(sys.argv[4])
    os.makedirs(folder, exist_ok=True)
    sure = readers()
    print("# " + " ".join(sure), flush=True)

    def one(number):
        suffix, data, odd = archive(f"{seed}-{number}", folder)
        path = os.path.join(folder, f"{number}.{suffix}")
        with open(path, "wb") as file:
            file.write(data)
        return f"{path}\t{seed}-{number}\t{'; '.join(odd)}\t{' '.join(openers(path, sure))}"

    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(one, range(count)):
            print(line, flush=True)


if __name__ == "__main__":
    main()

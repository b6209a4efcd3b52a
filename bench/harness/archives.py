"""Inputs of bench/unpack: each format's file, made by Debian's tools where they can make it.

Archives that nothing in Debian makes are put together: ARJ's compression is that of LHA's `lh6`, and members of small
archives in the public data (SLUICE_DATA) are repeated until there are enough of them.
"""

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from glob import glob
from typing import Callable

PIECES = [("/usr/lib/x86_64-linux-gnu/*.so*", 3), ("/usr/bin/*", 3), ("/usr/share/perl/*/*.p[lm]", 1),
          ("/usr/lib/python3/dist-packages/*/*.py", 1), ("/usr/share/doc/*/copyright", 1), ("/usr/lib/python3.*/*.py", 1)]
REPEATED_BYTES = 20 << 20


class Missing(Exception):
    """There is nothing to make an input of."""


@dataclass
class Case:
    """An input, what makes it, and what else reads it. `FILE` in a command stands for it."""
    name: str
    make: Callable[[str, str], str]
    tools: dict
    library: str = ""
    whole: bool = field(default=True)

    def told_min(self, content):
        return os.path.getsize(content) if self.whole else 1


def content_file(folder, size):
    """Programs, libraries and texts, each kind as much as it weighs."""
    path = f"{folder}/content"
    total = sum(weight for _, weight in PIECES)
    with open(path, "wb") as content:
        for pattern, weight in PIECES:
            left = size * weight // total
            for name in sorted(set(map(os.path.realpath, glob(pattern)))):
                if left <= 0:
                    break
                if os.path.isfile(name):
                    with open(name, "rb") as file:
                        left -= content.write(file.read(left))
    return path


def run(command, folder, **options):
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, **options)


def filtered(suffix, *command):
    """A tool that writes what it makes of the content to its output."""
    def make(content, folder):
        path = f"{folder}/content{suffix}"
        with open(path, "wb") as out:
            run([*command, content], folder, stdout=out)
        return path
    return make


def archive(name, *command):
    """A tool that makes the archive `name` of the content."""
    def make(content, folder):
        os.link(content, f"{folder}/content")
        run([*command, name, "content"], folder, stdout=subprocess.DEVNULL)
        return f"{folder}/{name}"
    return make


def lha(method):
    """LHA's static methods, of what ARJ makes."""
    def make(content, folder):
        arj = archive("content.arj", "arj", "a", "-y", f"-m{method}")(content, folder)
        with open(arj, "rb") as file:
            data = file.read()
        at = 4 + struct.unpack_from("<H", data, 2)[0] + 4 + 2  # behind the archive's header
        size = struct.unpack_from("<H", data, at + 2)[0]
        packed, original = struct.unpack_from("<II", data, at + 4 + 12)
        start = at + 4 + size + 4 + 2
        with open(content, "rb") as file:
            check = crc16(file.read())
        body = struct.pack("<5sIIIBBB7sHBH", b"-lh6-", packed, original, 0, 0x20, 1, 7, b"content", check, ord("U"), 0)
        header = bytes([len(body), sum(body) & 0xff]) + body
        path = f"{folder}/content.lzh"
        with open(path, "wb") as file:
            file.write(header + data[start:start + packed] + b"\0")
        return path
    return make


def crc16(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0xa001 * (byte & 1)
        table.append(byte)
    check = 0
    for byte in data:
        check = check >> 8 ^ table[(check ^ byte) & 0xff]
    return check


def repeated(path, start, end, count):
    """The bytes from `start` to `end` of a public archive, a member, `count` times over."""
    def make(_, folder):
        data = os.environ.get("SLUICE_DATA", "")
        found = os.path.join(data, "archives", path)
        if not data or not os.path.exists(found):
            raise Missing("its input is in the public archives, which SLUICE_DATA does not name")
        with open(found, "rb") as file:
            archive = file.read()
        name = f"{folder}/{os.path.basename(path)}"
        with open(name, "wb") as file:
            file.write(archive[:start] + archive[start:end] * count + archive[end:])
        return name
    return make


def chm(content, folder):
    """A help file, which is the one way of Debian to LZX."""
    os.link(content, f"{folder}/content.bin")
    with open(f"{folder}/index.html", "w") as page:
        page.write("<html><body></body></html>")
    with open(f"{folder}/content.hhp", "w") as project:
        project.write("[OPTIONS]\nCompiled file=content.chm\nDefault topic=index.html\n\n[FILES]\nindex.html\ncontent.bin\n")
    run(["chmcmd", "content.hhp"], folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"{folder}/content.chm"


def rar(*options):
    """RARLAB's archiver, which is not free software: a program named `rar`, or what RARLAB_RAR names."""
    def make(content, folder):
        program = shutil.which(os.environ.get("RARLAB_RAR", "rar"))
        if not program:
            raise Missing("it wants RARLAB's rar, which Debian has in non-free; RARLAB_RAR may name it")
        try:
            return archive("content.rar", program, "a", "-idq", *options)(content, folder)
        except subprocess.CalledProcessError as error:
            raise Missing("only versions of rar before 7 make it") from error
    return make


def sevenzip(name, *options):
    return archive(name, "7zz", "a", "-mmt1", *options)


SEVENZIP = {"7zz": "7zz t -mmt1 FILE"}
BSDTAR = {"bsdtar": "bsdtar -xOf FILE"}
UNAR = {"unar": "lsar -t FILE"}

CASES = [
    Case("gzip", filtered(".gz", "gzip", "-c"), {"gzip": "gzip -dc FILE"}, "zlib-rs"),
    Case("bzip2", filtered(".bz2", "bzip2", "-c"), {"bzip2": "bzip2 -dc FILE"} | SEVENZIP),
    Case("zstd", filtered(".zst", "zstd", "-qc"), {"zstd": "zstd -dc FILE"}, "ruzstd"),
    Case("brotli", filtered(".br", "brotli", "-c", "-q", "5"), {"brotli": "brotli -dc FILE"}, "brotli-decompressor"),
    Case("xz", filtered(".xz", "xz", "-c"), {"xz": "xz -T1 -dc FILE"} | SEVENZIP),
    Case("xz, x86 filter", filtered(".xz", "xz", "-c", "--x86", "--lzma2"), {"xz": "xz -T1 -dc FILE"}),
    Case("lzma", filtered(".lzma", "xz", "-c", "--format=lzma"), {"xz": "xz -dc FILE"} | SEVENZIP),
    Case("lzip", filtered(".lz", "lzip", "-c"), {"lzip": "lzip -dc FILE"}),
    Case("compress", filtered(".Z", "compress", "-c", "-f"), {"gzip": "gzip -dc FILE", "compress": "compress -dc FILE"}),
    Case("lz4", filtered(".lz4", "lz4", "-qc"), {"lz4": "lz4 -qdc FILE"}),
    Case("lz4, level 9", filtered(".lz4", "lz4", "-9qc"), {"lz4": "lz4 -qdc FILE"}),
    Case("lzop", filtered(".lzo", "lzop", "-c"), {"lzop": "lzop -dc FILE"}),
    Case("zip deflate", sevenzip("content.zip"), SEVENZIP | BSDTAR),
    Case("zip deflate64", sevenzip("content.zip", "-mm=Deflate64"), SEVENZIP),
    Case("zip ppmd", sevenzip("content.zip", "-mm=PPMd"), SEVENZIP),
    Case("7z LZMA2", sevenzip("content.7z", "-m0=LZMA2"), SEVENZIP | BSDTAR),
    Case("7z LZMA, BCJ2", sevenzip("content.7z", "-m0=BCJ2", "-m1=LZMA", "-m2=LZMA", "-m3=LZMA", "-mb0:1", "-mb0s1:2",
                                   "-mb0s2:3"), SEVENZIP),
    Case("7z PPMd", sevenzip("content.7z", "-m0=PPMd"), SEVENZIP | BSDTAR),
    Case("7z deflate", sevenzip("content.7z", "-m0=Deflate"), SEVENZIP),
    Case("cab MSZIP", archive("content.cab", "gcab", "-c", "-z"), {"cabextract": "cabextract -qp FILE"} | SEVENZIP),
    Case("chm LZX", chm, SEVENZIP),
    Case("arj 1", archive("content.arj", "arj", "a", "-y", "-m1"), {"arj": "arj t FILE"} | SEVENZIP),
    Case("arj 4", archive("content.arj", "arj", "a", "-y", "-m4"), {"arj": "arj t FILE"} | SEVENZIP),
    Case("lha lh6", lha(1), {"lha": "lha t FILE"} | SEVENZIP | UNAR),
    Case("lha lh1", repeated("lhasa/archives/lengths/lh1-2m.lzh", 0, -1, 10), {"lha": "lha t FILE"} | UNAR, whole=False),
    Case("rar 3", repeated("libarchive/libarchive/test/test_read_format_rar_filter.rar", 20, -7, 100), UNAR,
         whole=False),
    Case("rar 3, blocks", repeated("libarchive/libarchive/test/test_read_format_rar_multi_lzss_blocks.rar", 20, -7, 1), UNAR,
         whole=False),
    Case("rar 4, LZ", rar("-ma4", "-m5", "-mct-"), UNAR),
    Case("rar 4, PPMd", rar("-ma4", "-m5", "-mct+"), UNAR),
    Case("rar 5", rar("-m5"), BSDTAR),
]

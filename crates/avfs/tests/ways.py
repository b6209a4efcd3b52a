"""Every way to write a file and to read one, tried with one content.

    ways.py write FOLDER CONTENT [BEFORE]   each way writes its own file, which is called as the way is
    ways.py read FOLDER CONTENT             each way reads a file of its own that is there

One line a way: its name, and `written`, `read` (with `shows` behind if the content came through, whole or in part), or the
error of the first call that failed. Each way runs in a process of its own, since errors and closes concern openings. With BEFORE, a
file with this text is there before; a way that cannot be tried on this machine says `absent`.
"""

import ctypes
import errno
import mmap
import os
import platform
import random
import select
import signal
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"io_setup": 206, "io_getevents": 208, "io_submit": 209},
    "aarch64": {"io_setup": 0, "io_getevents": 4, "io_submit": 2},
}.get(platform.machine(), {})
NEW = os.O_RDWR | os.O_CREAT
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16
AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = 0x1000, 0x400


class Absent(Exception):
    """The machine does not have this way."""


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def syscall(name, *arguments):
    number = {"io_uring_setup": 425, "io_uring_enter": 426, **NUMBERS}.get(name)
    if number is None:
        raise Absent
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0 and ctypes.get_errno() in (errno.ENOSYS, errno.EPERM):
        raise Absent
    return checked(result)


def address(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def write_all(file, data, offset=None):
    while data:
        count = os.write(file, data) if offset is None else os.pwrite(file, data, offset)
        data, offset = data[count:], None if offset is None else offset + count


def done(*files):
    """What was written is asked about, and closed."""
    for file in files:
        os.fsync(file)
    for file in files:
        checked(LIBC.close(file))


def whole(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    write_all(file, content)
    done(file)


def pieces(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    for at in range(0, len(content), 4093):
        write_all(file, content[at : at + 4093])
    done(file)


def pwrite_random(path, content):
    file = os.open(path, NEW)
    chance = random.Random(len(content))
    write_all(file, chance.randbytes(len(content)), 0)
    places = list(range(0, len(content), max(1, len(content) // 23)))
    chance.shuffle(places)
    for at in places:
        begin = max(0, at - chance.randrange(50))
        write_all(file, content[begin : at + len(content) // 23 + 60], begin)
    os.ftruncate(file, len(content))
    done(file)


def vectors(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    half = len(content) // 2
    os.pwritev(file, [content[half:]], half)
    os.pwritev(file, [content[: half // 2], content[half // 2 : half]], 0)
    done(file)


def mapped(path, content):
    file = os.open(path, NEW)
    os.ftruncate(file, len(content))
    space = mmap.mmap(file, len(content))
    space[:] = content
    space.flush()
    done(file)


def mapped_and_closed(path, content):
    file = os.open(path, NEW)
    os.ftruncate(file, len(content))
    space = mmap.mmap(file, len(content))
    os.close(file)
    space[:] = content
    space.flush()
    space.close()


def truncated(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    half = len(content) // 2
    write_all(file, content[half:], half)
    os.ftruncate(file, len(content) + 100_000)
    os.fsync(file)
    os.ftruncate(file, len(content))
    write_all(file, content[:half], 0)
    done(file)


def truncated_by_name(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    write_all(file, content + b"behind it")
    os.truncate(path, len(content))
    done(file)


def appended_by_two(path, content):
    os.close(os.open(path, NEW | os.O_TRUNC))
    one, other = (os.open(path, os.O_WRONLY | os.O_APPEND) for _ in range(2))
    step = max(1, len(content) // 8)
    for number, at in enumerate(range(0, len(content), step)):
        piece = content[at : at + step]
        if number % 2 == 0:
            write_all(one, piece)
            continue
        child = os.fork()
        if child == 0:
            try:
                write_all(other, piece)
                os._exit(0)
            except OSError as error:
                os._exit(error.errno)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            raise OSError(code, os.strerror(code))
    done(one, other)


def copied_in_the_kernel(path, content):
    half, parts = len(content) // 2, []
    for number, piece in enumerate([content[:half], content[half:]]):
        parts.append(os.open(f"{path}.{number}", NEW | os.O_TRUNC))
        write_all(parts[-1], piece)
        os.fsync(parts[-1])
    file = os.open(path, NEW | os.O_TRUNC)
    os.copy_file_range(parts[1], file, len(content), 0, half)
    os.copy_file_range(parts[0], file, half, 0, 0)
    done(file)


def cloned(path, content):
    whole(path + ".from", content[: len(content) // 2])
    source, file = os.open(path + ".from", os.O_RDONLY), os.open(path, NEW | os.O_TRUNC)
    write_all(file, content)
    checked(LIBC.ioctl(file, ctypes.c_ulong(0x40049409), source))
    done(file)


def renamed_over(path, content):
    file = os.open(path + ".new", NEW | os.O_TRUNC)
    write_all(file, content)
    os.rename(path + ".new", path)
    done(file)


def linked(path, content):
    os.close(os.open(path, NEW))
    os.link(path, path + ".link")
    file = os.open(path + ".link", os.O_RDWR | os.O_TRUNC)
    write_all(file, content)
    done(file)


def linked_meanwhile(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    write_all(file, content)
    os.link(path, path + ".link")
    done(file)


def sparse(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    half = len(content) // 2
    os.lseek(file, half, os.SEEK_SET)
    write_all(file, content[half:])
    os.lseek(file, 0, os.SEEK_SET)
    write_all(file, content[:half])
    done(file)


def at_the_end_of_a_hole(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    os.ftruncate(file, 1 << 22)
    write_all(file, content, (1 << 22) - 4096)
    hole = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE
    checked(LIBC.fallocate(file, hole, ctypes.c_long(0), ctypes.c_long(1 << 20)))
    # What begins a file is what it is: only plain content is found here.
    done(file)


def allocated(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    checked(LIBC.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(len(content))))
    checked(LIBC.fallocate(file, FALLOC_ZERO_RANGE, ctypes.c_long(0), ctypes.c_long(len(content))))
    write_all(file, content, 0)
    done(file)


def direct(path, content):
    file = os.open(path, NEW | os.O_TRUNC | os.O_DIRECT)
    size = -(-len(content) // 4096) * 4096
    space = mmap.mmap(-1, size)
    space[: len(content)] = content
    os.writev(file, [space])
    os.ftruncate(file, len(content))
    done(file)


def synchronous(path, content):
    file = os.open(path, NEW | os.O_TRUNC | os.O_SYNC)
    write_all(file, content)
    checked(LIBC.close(file))


def sent(path, content):
    source = os.memfd_create("source")
    write_all(source, content)
    file = os.open(path, NEW | os.O_TRUNC)
    at = 0
    while at < len(content):
        at += os.sendfile(file, source, at, len(content) - at)
    done(file)


def spliced(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    (out, into) = os.pipe()
    for at in range(0, len(content), 4096):
        piece = content[at : at + 4096]
        os.write(into, piece)
        left = len(piece)
        while left:
            left -= os.splice(out, file, left)
    done(file)


def asynchronous(path, content, opcode=1):
    """By io_submit(2), in two requests, the second half first."""
    file = os.open(path, NEW | os.O_TRUNC)
    context = ctypes.c_ulong(0)
    syscall("io_setup", 4, ctypes.byref(context))
    half = len(content) // 2
    for piece, at in [(content[half:], half), (content[:half], 0)]:
        submit(context, opcode, file, bytearray(piece), at)
    done(file)


def submit(context, opcode, file, buffer, offset):
    block = bytearray(struct.pack("<QIIHhIQQqQII", 0, 0, 0, opcode, 0, file, address(buffer), len(buffer), offset, 0, 0, 0))
    pointer = ctypes.c_ulong(address(block))
    syscall("io_submit", context, ctypes.c_long(1), ctypes.byref(pointer))
    event = (ctypes.c_long * 4)()
    syscall("io_getevents", context, ctypes.c_long(1), ctypes.c_long(1), event, None)
    if event[2] < 0:
        raise OSError(-event[2], os.strerror(-event[2]))
    return event[2]


class Ring:
    """io_uring with one request at a time."""

    WRITE, READ = 23, 22

    def __init__(self):
        params = bytearray(120)
        self.file = syscall("io_uring_setup", 4, ctypes.c_void_p(address(params)))
        values = struct.unpack("<30I", params)
        self.submissions, self.completions = values[10:20], values[20:30]
        self.entries = mmap.mmap(self.file, values[0] * 64, offset=0x10000000)
        self.queue = mmap.mmap(self.file, self.submissions[6] + 4 * values[0])
        self.results = mmap.mmap(self.file, self.completions[5] + 16 * values[1], offset=0x8000000)

    def do(self, opcode, file, buffer, offset):
        head, tail, mask, _, _, _, array = self.submissions[:7]
        at = struct.unpack_from("<I", self.queue, tail)[0]
        place = at & struct.unpack_from("<I", self.queue, mask)[0]
        entry = struct.pack("<BBHiQQIIQ24x", opcode, 0, 0, file, offset, address(buffer), len(buffer), 0, 7)
        self.entries[place * 64 : place * 64 + 64] = entry
        struct.pack_into("<I", self.queue, array + 4 * place, place)
        struct.pack_into("<I", self.queue, tail, (at + 1) & 0xFFFFFFFF)
        syscall("io_uring_enter", self.file, 1, 1, 1, None, 0)
        head, _, mask, _, _, entries = self.completions[:6]
        at = struct.unpack_from("<I", self.results, head)[0]
        place = entries + 16 * (at & struct.unpack_from("<I", self.results, mask)[0])
        result = struct.unpack_from("<i", self.results, place + 8)[0]
        struct.pack_into("<I", self.results, head, (at + 1) & 0xFFFFFFFF)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result


def by_a_ring(path, content):
    ring, file, half = Ring(), os.open(path, NEW | os.O_TRUNC), len(content) // 2
    for piece, at in [(content[half:], half), (content[:half], 0)]:
        while piece:
            count = ring.do(Ring.WRITE, file, bytearray(piece), at)
            piece, at = piece[count:], at + count
    done(file)


def by_a_ring_direct(path, content):
    ring, file = Ring(), os.open(path, NEW | os.O_TRUNC | os.O_DIRECT)
    space = mmap.mmap(-1, -(-len(content) // 4096) * 4096)
    space[: len(content)] = content
    ring.do(Ring.WRITE, file, space, 0)
    os.ftruncate(file, len(content))
    done(file)


def killed(path, content):
    """Whoever writes is killed before it closes; the file is there for others when the kernel has closed it."""
    child = os.fork()
    if child == 0:
        file = os.open(path, NEW | os.O_TRUNC)
        write_all(file, content[: len(content) // 2])
        write_all(file, content[len(content) // 2 :])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def by_a_child(path, content):
    file = os.open(path, NEW | os.O_TRUNC)
    write_all(file, content[: len(content) // 2])
    child = os.fork()
    if child == 0:
        try:
            write_all(file, content[len(content) // 2 :])
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    os.waitpid(child, 0)
    done(file)


def opened_again(path, content):
    """By a descriptor that opens nothing, and its name in /proc."""
    os.close(os.open(path, NEW))
    held = os.open(path, os.O_PATH)
    file = os.open(f"/proc/self/fd/{held}", os.O_RDWR | os.O_TRUNC)
    write_all(file, content)
    done(file)


def without_a_name(path, content):
    file = os.open(os.path.dirname(path), os.O_RDWR | os.O_TMPFILE, 0o600)
    write_all(file, content)
    os.link(f"/proc/self/fd/{file}", path, src_dir_fd=0, follow_symlinks=True)
    done(file)


def removed_and_linked(path, content):
    file = os.open(path + ".gone", NEW)
    os.unlink(path + ".gone")
    write_all(file, content)
    checked(LIBC.linkat(file, b"", -100, os.fsencode(path + ".back"), AT_EMPTY_PATH))
    done(file)


def exchanged(path, content):
    os.close(os.open(path, NEW))
    file = os.open(path + ".new", NEW | os.O_TRUNC)
    write_all(file, content)
    checked(LIBC.renameat2(-100, os.fsencode(path + ".new"), -100, os.fsencode(path), 2))
    done(file)


def moved_folder(path, content):
    folder = path + ".folder"
    os.mkdir(folder)
    file = os.open(folder + "/file", NEW)
    write_all(file, content)
    os.rename(folder, folder + "2")
    done(file)


WRITES = [
    whole, pieces, pwrite_random, vectors, mapped, mapped_and_closed, truncated, truncated_by_name, appended_by_two,
    copied_in_the_kernel, cloned, renamed_over, linked, linked_meanwhile, sparse, at_the_end_of_a_hole, allocated, direct,
    synchronous, sent, spliced, asynchronous, by_a_ring, by_a_ring_direct, killed, by_a_child, opened_again, without_a_name,
    removed_and_linked, exchanged, moved_folder,
]  # fmt: skip


def r_read(path, size):
    with open(path, "rb", buffering=0) as file:
        return b"".join(iter(lambda: file.read(65536), b""))


def r_pread_backwards(path, size):
    file = os.open(path, os.O_RDONLY)
    return b"".join(reversed([os.pread(file, 1000, at) for at in reversed(range(0, size, 1000))]))


def r_vectors(path, size):
    file, one, two = os.open(path, os.O_RDONLY), bytearray(size // 2), bytearray(size)
    count = os.preadv(file, [one, two], 0)
    return bytes(one + two)[:count]


def r_mapped(path, size):
    return mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:]


def r_mapped_private(path, size):
    return mmap.mmap(os.open(path, os.O_RDWR), 0, flags=mmap.MAP_PRIVATE)[:]


def r_sent(path, size):
    file, target = os.open(path, os.O_RDONLY), os.memfd_create("target")
    while os.sendfile(target, file, None, size):
        pass
    return os.pread(target, size, 0)


def r_spliced(path, size):
    file, (out, into) = os.open(path, os.O_RDONLY), os.pipe()
    pieces = []
    while count := os.splice(file, into, 4096):
        pieces.append(os.read(out, count))
    return b"".join(pieces)


def r_direct(path, size):
    file, space = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, -(-size // 4096) * 4096)
    count = os.readv(file, [space])
    return space[:count]


def r_copied_in_the_kernel(path, size):
    file, other = os.open(path, os.O_RDONLY), os.open(path + ".copy", NEW)
    os.copy_file_range(file, other, size)
    return os.pread(other, size, 0)


def r_asynchronous(path, size):
    file, context, buffer = os.open(path, os.O_RDONLY), ctypes.c_ulong(0), bytearray(size)
    syscall("io_setup", 4, ctypes.byref(context))
    count = submit(context, 0, file, buffer, 0)
    return bytes(buffer[:count])


def r_by_a_ring(path, size):
    ring, file, buffer = Ring(), os.open(path, os.O_RDONLY), bytearray(size)
    count = ring.do(Ring.READ, file, buffer, 0)
    return bytes(buffer[:count])


def r_linked(path, size):
    os.link(path, path + ".link")
    return r_read(path + ".link", size)


def r_renamed(path, size):
    os.rename(path, path + ".renamed")
    return r_read(path + ".renamed", size)


def r_opened_again(path, size):
    held = os.open(path, os.O_PATH)
    return r_read(f"/proc/self/fd/{held}", size)


def r_read_and_write(path, size):
    return os.pread(os.open(path, os.O_RDWR), size, 0)


def r_appended(path, size):
    """Whoever appends a clean byte, and reads what is there then."""
    file = os.open(path, os.O_RDWR | os.O_APPEND)
    os.write(file, b".")
    return os.pread(file, size, 0)


def r_written_first(path, size):
    """Opened for writing alone, changed at its end, and then read."""
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, b".", size)
    os.close(file)
    return r_read(path, size)


def r_cut(path, size):
    """What is cut off by one byte is another content."""
    os.truncate(path, size - 1)
    return r_read(path, size)


def r_run(path, size):
    os.chmod(path, 0o755)
    (out, into) = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os.write(into, bytes([error.errno]))
        os._exit(0)
    os.waitpid(child, 0)
    code = os.read(out, 1)[0] if select.select([out], [], [], 0)[0] else 0
    # A file of another format was read to find that out.
    if code in (0, errno.ENOEXEC):
        return b"".join(CONTENT)
    raise OSError(code, os.strerror(code))


READS = [
    r_read, r_pread_backwards, r_vectors, r_mapped, r_mapped_private, r_sent, r_spliced, r_direct, r_copied_in_the_kernel,
    r_asynchronous, r_by_a_ring, r_linked, r_renamed, r_opened_again, r_read_and_write, r_appended, r_written_first, r_cut,
    r_run,
]  # fmt: skip

CONTENT = []


def run(way, work):
    """Does it in a process of its own, and says what came of it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except OSError as error:
            said = errno.errorcode[error.errno]
        except Absent:
            said = "absent"
        print(way, said, flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print(way, "SIG" + str(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else "failed", flush=True)


def shows(seen):
    """Whether a quarter of the content, or more, is in what was seen."""
    content = b"".join(CONTENT)
    quarter = max(1, len(content) // 4)
    return any(content[at : at + quarter] in seen for at in range(0, len(content) - quarter + 1, quarter))


def main():
    what, folder, content = sys.argv[1:4]
    with open(content, "rb") as file:
        CONTENT.append(file.read())
    ways = WRITES if what == "write" else READS
    for way in ways:
        name = way.__name__.removeprefix("r_")
        path = os.path.join(folder, name)
        if what == "read":
            def work(way=way, path=path):
                return "read" + (" shows" if shows(way(path, len(CONTENT[0]))) else "")
        else:
            if len(sys.argv) > 4:
                with open(path, "w") as file:
                    file.write(sys.argv[4])
            def work(way=way, path=path):
                way(path, CONTENT[0])
                return "written"
        run(name, work)


main()

"""What POSIX says of files, one case a line, for comparison: the same cases on two file systems have the same lines.

    posix.py FOLDER [SHARE]    of the large matrix one case in so many

Every kind of file, with several modes and owners, in folders with several modes and owners (sticky, set-group and closed ones
among them), is changed by several users in every way that names have: chmod, chown, link, mkdir, mkfifo, mknod, open with its flags,
rename, rmdir, symlink, truncate, unlink, utimensat. A line says what was done, by whom, the error, what the file and its folder are
afterwards, and which of their times have changed. The order and the names of cases do not depend on the machine.
"""

import errno
import itertools
import os
import socket
import stat
import sys
import zlib

ROOT = (0, 0, ())
OWNER, MEMBER, OTHER = (65534, 65534, ()), (65533, 65533, (65534,)), (65532, 65532, ())
USERS = {"root": ROOT, "owner": OWNER, "member": MEMBER, "other": OTHER}
PAST = 1_000_000_000
SHARE = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def become(user):
    os.setegid(0)
    os.seteuid(0)
    uid, gid, groups = USERS[user]
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)


def make(kind, path, mode=0o644, owner=OWNER):
    if kind == "none":
        return
    if kind == "file":
        with open(path, "w") as file:
            file.write("content")
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "full folder":
        os.mkdir(path)
        os.mkdir(path + "/inner")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
        os.chdir(here)
    elif kind == "device":
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    elif kind == "block":
        os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(259, 1000))
    elif kind == "link":
        os.symlink("target", path)
    elif kind == "link to folder":
        os.mkdir(os.path.dirname(path) + "/target")
        os.symlink("target", path)
    elif kind == "loop":
        os.symlink(os.path.basename(path), path)
    os.chown(path, owner[0], owner[1], follow_symlinks=False)
    if "link" not in kind and kind != "loop":
        os.chmod(path, mode)
    os.utime(path, (PAST, PAST), follow_symlinks=False)


def facts(path):
    try:
        of = os.lstat(path)
    except OSError as error:
        return errno.errorcode[error.errno]
    size = of.st_size if stat.S_ISREG(of.st_mode) or stat.S_ISLNK(of.st_mode) else "-"
    times = "".join(name for name, time in (("a", of.st_atime), ("m", of.st_mtime)) if int(time) != PAST)
    links = of.st_nlink
    return f"{of.st_mode:o} {links} {of.st_uid}:{of.st_gid} {size} {of.st_rdev} {times}"


def clean(path):
    for inner, folders, files in os.walk(path, topdown=False):
        for name in files + folders:
            whole = os.path.join(inner, name)
            (os.rmdir if os.path.isdir(whole) and not os.path.islink(whole) else os.unlink)(whole)


def do(label, place, user, work, names=("x",)):
    """One case: the error, and what is there afterwards."""
    changed = {name: os.lstat(f"{place}/{name}").st_ctime_ns for name in names if os.path.lexists(f"{place}/{name}")}
    become(user)
    try:
        said = work()
        said = "done" if said is None else said
    except OSError as error:
        said = errno.errorcode[error.errno]
    become("root")
    after = []
    for name in names:
        path = f"{place}/{name}"
        is_new = name in changed and os.path.lexists(path) and os.lstat(path).st_ctime_ns != changed[name]
        after.append(f"{name or '.'}[{facts(path)}{' c' if is_new else ''}]")
    print(label, user, said, *after)


KINDS = ["file", "folder", "full folder", "fifo", "socket", "device", "link", "link to folder", "loop", "none"]


def opened(path, flags, mode=0o666):
    file = os.open(path, flags | os.O_NONBLOCK, mode)
    try:
        if flags & (os.O_WRONLY | os.O_RDWR) and stat.S_ISREG(os.fstat(file).st_mode):
            os.write(file, b"new")
        return str(os.lseek(file, 0, os.SEEK_END)) if stat.S_ISREG(os.fstat(file).st_mode) else "open"
    finally:
        os.close(file)


def operations(place):
    """What is done to x, by its label."""
    x, y = f"{place}/x", f"{place}/y"
    flags = {"RDONLY": os.O_RDONLY, "WRONLY": os.O_WRONLY, "RDWR": os.O_RDWR}
    more = {"": 0, "CREAT": os.O_CREAT, "CREAT|EXCL": os.O_CREAT | os.O_EXCL, "TRUNC": os.O_TRUNC, "APPEND": os.O_APPEND}
    more |= {"NOFOLLOW": os.O_NOFOLLOW, "DIRECTORY": os.O_DIRECTORY, "CREAT|TRUNC": os.O_CREAT | os.O_TRUNC, "NOATIME": os.O_NOATIME}
    for (access, value), (other, added) in itertools.product(flags.items(), more.items()):
        yield f"open {access}|{other}", lambda value=value | added: opened(x, value)
    for mode in (0o000, 0o644, 0o4755, 0o2755, 0o1777):
        yield f"chmod {mode:o}", lambda mode=mode: os.chmod(x, mode)
    for uid, gid in ((-1, -1), (65534, -1), (-1, 65534), (65532, 65532), (-1, 65533), (0, 0)):
        yield f"chown {uid}:{gid}", lambda uid=uid, gid=gid: os.chown(x, uid, gid)
        yield f"lchown {uid}:{gid}", lambda uid=uid, gid=gid: os.lchown(x, uid, gid)
    yield "link", lambda: os.link(x, y)
    yield "link followed", lambda: os.link(x, y, follow_symlinks=True)
    yield "link onto", lambda: os.link(f"{place}/z", x)
    yield "mkdir", lambda: os.mkdir(x, 0o7777)
    yield "mkfifo", lambda: os.mkfifo(x, 0o7777)
    yield "mknod file", lambda: os.mknod(x, 0o7777 | stat.S_IFREG)
    yield "mknod device", lambda: os.mknod(x, 0o644 | stat.S_IFCHR, os.makedev(1, 5))
    yield "symlink", lambda: os.symlink("anything", x)
    yield "readlink", lambda: os.readlink(x)
    yield "rename", lambda: os.rename(x, y)
    yield "rename onto file", lambda: os.rename(x, f"{place}/z")
    yield "rename onto folder", lambda: os.rename(x, f"{place}/f")
    yield "rename from file", lambda: os.rename(f"{place}/z", x)
    yield "rename from folder", lambda: os.rename(f"{place}/f", x)
    yield "rename into itself", lambda: os.rename(x, f"{x}/y")
    yield "rename same", lambda: os.rename(x, x)
    yield "rename away", lambda: os.rename(x, f"{place}/f/x")
    yield "rmdir", lambda: os.rmdir(x)
    yield "rmdir dot", lambda: os.rmdir(x + "/.")
    yield "unlink", lambda: os.unlink(x)
    yield "unlink slash", lambda: os.unlink(x + "/")
    for size in (0, 3, 100, 1 << 22, -1):
        yield f"truncate {size}", lambda size=size: os.truncate(x, size)
    yield "utime now", lambda: os.utime(x)
    yield "utime then", lambda: os.utime(x, (PAST + 5, PAST + 6))
    yield "utime of link", lambda: os.utime(x, (PAST + 5, PAST + 6), follow_symlinks=False)
    yield "list", lambda: str(sorted(os.listdir(x)))
    yield "inner", lambda: opened(x + "/new", os.O_WRONLY | os.O_CREAT)
    yield "through", lambda: str(os.stat(x + "/inner").st_mode)
    for mode in (os.R_OK, os.W_OK, os.X_OK):
        yield f"access {mode}", lambda mode=mode: str(os.access(x, mode, effective_ids=True))
    yield "setxattr", lambda: os.setxattr(x, "user.a", b"1")
    yield "getxattr", lambda: os.getxattr(x, "user.a").hex()


FOLDERS = {"open": (0o777, ROOT), "sticky": (0o1777, ROOT), "sticky own": (0o1777, OWNER), "closed": (0o700, ROOT)}
FOLDERS |= {"unreadable": (0o333, ROOT), "unwritable": (0o555, OWNER), "group": (0o2775, OWNER), "no search": (0o666, ROOT)}


def matrix(root):
    place = root + "/place"
    for (folder, (mode, owner)), kind, user in itertools.product(FOLDERS.items(), KINDS, USERS):
        # Modes of the file itself are tried where the folder says nothing against it.
        modes = (0o644, 0o000, 0o6777) if folder == "open" and kind in ("file", "folder") else (0o644 if "folder" not in kind else 0o755,)
        for of in modes:
            for label, work in operations(place):
                case = f"{folder}/{kind} {of:o} {label}"
                if zlib.crc32(f"{case} {user}".encode()) % SHARE:
                    continue
                os.mkdir(place)
                make("file", place + "/z", 0o644, OTHER)
                make("folder", place + "/f", 0o777, OTHER)
                make(kind, place + "/x", of)
                os.chown(place, owner[0], owner[1])
                os.chmod(place, mode)
                os.utime(place, (PAST, PAST))
                do(case, place, user, work, ("x", "y", "z", ""))
                os.chmod(place, 0o777)
                clean(place)
                os.rmdir(place)


def names(root):
    """Lengths, what cannot be a name, and what is no folder."""
    place = root + "/names"
    os.mkdir(place)
    longest, longer, deep = "n" * 255, "n" * 256, "d/" * 2047
    cases = {"longest": longest, "longer": longer, "empty": "", "dot": ".", "dots": "..", "deep": deep + "x", "missing": "no/x"}
    make("file", place + "/file")
    make("loop", place + "/loop")
    cases |= {"below file": "file/x", "below loop": "loop/x", "slash": "file/", "unicode": "Ω\n\udcff"}
    for (label, name), (what, work) in itertools.product(
        cases.items(),
        {
            "open": lambda path: opened(path, os.O_RDWR | os.O_CREAT),
            "mkdir": os.mkdir,
            "stat": lambda path: oct(os.stat(path).st_mode),
            "symlink": lambda path: os.symlink("a", path),
            "mkfifo": os.mkfifo,
            "link": lambda path: os.link(place + "/file", path),
            "rename": lambda path: os.rename(place + "/spare", path),
            "rename from": lambda path: os.rename(path, place + "/spare"),
            "rmdir": os.rmdir,
            "unlink": os.unlink,
            "truncate": lambda path: os.truncate(path, 3),
            "chmod": lambda path: os.chmod(path, 0o600),
            "utime": lambda path: os.utime(path, (5, 5)),
        }.items(),
    ):
        if not os.path.lexists(place + "/spare"):
            make("file", place + "/spare")
        do(f"name {label} {what}", place, "root", lambda: work(f"{place}/{name}"))
        # By its dots, it may be the folder above.
        os.chmod(root, 0o755)
        os.chmod(place, 0o755)
    clean(place)


def rights(root):
    """Set-user and set-group rights, and who takes them away."""
    place = root + "/rights"
    os.mkdir(place)
    os.chmod(place, 0o777)
    for mode, user in itertools.product((0o4777, 0o2777, 0o6777, 0o2767, 0o6711), USERS):
        for label, work in {
            "write": lambda x: opened(x, os.O_WRONLY),
            "truncate": lambda x: os.truncate(x, 2),
            "open truncated": lambda x: os.close(os.open(x, os.O_WRONLY | os.O_TRUNC)),
            "chmod": lambda x: os.chmod(x, mode),
            "chown group": lambda x: os.chown(x, -1, USERS[user][1]),
            "fallocate": lambda x: allocate(x),
            "append": lambda x: opened(x, os.O_WRONLY | os.O_APPEND),
        }.items():
            make("file", place + "/x", mode)
            do(f"rights {mode:o} {label}", place, user, lambda: work(place + "/x"))
            os.unlink(place + "/x")
    # What is made in a folder with set-group rights.
    for mode, user in itertools.product((0o2777, 0o777), USERS):
        make("folder", place + "/x", mode, (0, 65534, ()))
        for label, work in {
            "file": lambda path: opened(path, os.O_WRONLY | os.O_CREAT, 0o6777),
            "folder": lambda path: os.mkdir(path, 0o777),
            "fifo": lambda path: os.mkfifo(path, 0o6777),
            "link": lambda path: os.symlink("a", path),
        }.items():
            do(f"made {mode:o} {label}", place, user, lambda: work(f"{place}/x/{label}"), ("x", f"x/{label}"))
        clean(place)
    for mask, user in itertools.product((0, 0o22, 0o777), ("root", "owner")):
        before = os.umask(mask)
        for label, work in {"open": lambda x: opened(x, os.O_CREAT | os.O_WRONLY, 0o7777), "mkdir": lambda x: os.mkdir(x, 0o7777)}.items():
            do(f"umask {mask:o} {label}", place, user, lambda: work(place + "/x"))
            clean(place)
        os.umask(before)


def allocate(path):
    file = os.open(path, os.O_WRONLY)
    os.posix_fallocate(file, 0, 100)
    os.close(file)


def opens(root):
    """What an open file is when its name, its mode or its length is another."""
    place = root + "/opens"
    os.mkdir(place)
    x = place + "/x"

    def unlinked():
        file = os.open(x, os.O_RDWR)
        os.unlink(x)
        os.write(file, b"longer than before")
        os.ftruncate(file, 10)
        of = os.fstat(file)
        said = f"{os.pread(file, 100, 0)} {of.st_nlink} {of.st_size}"
        os.close(file)
        return said

    def renamed_over():
        file = os.open(x, os.O_RDONLY)
        make("file", place + "/y", 0o600)
        os.rename(place + "/y", x)
        said = f"{os.read(file, 100)} {os.fstat(file).st_nlink} {os.stat(x).st_mode:o}"
        os.close(file)
        return said

    def closed_to_all():
        file = os.open(x, os.O_RDWR)
        os.fchmod(file, 0)
        os.write(file, b"still")
        said = f"{os.pread(file, 9, 0)} {os.fstat(file).st_mode:o}"
        os.close(file)
        return said

    def read_by_writer():
        file = os.open(x, os.O_WRONLY)
        try:
            return os.read(file, 1).hex()
        finally:
            os.close(file)

    def written_by_reader():
        file = os.open(x, os.O_RDONLY)
        try:
            return str(os.write(file, b"x"))
        finally:
            os.close(file)

    def cut_by_reader():
        file = os.open(x, os.O_RDONLY)
        try:
            return str(os.ftruncate(file, 1))
        finally:
            os.close(file)

    def appended_at():
        file = os.open(x, os.O_RDWR | os.O_APPEND)
        os.pwrite(file, b"end", 0)
        said = str(os.pread(file, 100, 0))
        os.close(file)
        return said

    def beyond():
        file = os.open(x, os.O_RDWR)
        os.pwrite(file, b"end", 5000)
        said = f"{os.fstat(file).st_size} {os.pread(file, 5, 4997)} {os.lseek(file, 5002, os.SEEK_DATA)}"
        os.close(file)
        return said

    def busy():
        os.chmod(x, 0o755)
        with open(x, "w") as file:
            file.write("#!/bin/sh\nexit 3\n")
        return str(os.spawnv(os.P_WAIT, x, [x]))

    def folder_gone():
        os.mkdir(place + "/f")
        folder = os.open(place + "/f", os.O_RDONLY)
        os.rmdir(place + "/f")
        try:
            return str(os.open("new", os.O_CREAT | os.O_RDWR, dir_fd=folder))
        finally:
            os.close(folder)

    def locks():
        import fcntl

        one, two = os.open(x, os.O_RDWR), os.open(x, os.O_RDWR)
        fcntl.flock(one, fcntl.LOCK_EX)
        try:
            fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(one)
            os.close(two)

    def locks_of_processes():
        import fcntl

        one = os.open(x, os.O_RDWR)
        fcntl.lockf(one, fcntl.LOCK_EX, 10, 5)
        child = os.fork()
        if child == 0:
            two = os.open(x, os.O_RDWR)
            try:
                fcntl.lockf(two, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
                fcntl.lockf(two, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
                os._exit(1)
            except OSError:
                os._exit(2)
        said = str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os.close(one)
        return said

    for user in USERS:
        for work in (unlinked, renamed_over, closed_to_all, read_by_writer, written_by_reader, cut_by_reader, appended_at, beyond, busy, folder_gone, locks, locks_of_processes):
            os.chmod(place, 0o777)
            make("file", x, 0o666)
            do(f"open file {work.__name__}", place, user, work)
            clean(place)


def main():
    root = os.path.join(sys.argv[1], "posix")
    os.umask(0o022)
    os.mkdir(root)
    os.chmod(root, 0o755)
    for part in (names, rights, opens, matrix):
        part(root)


main()

"""The file system under three loads.

| load | what is done |
|---|---|
| compile | a generated C project of 120 files is compiled and linked, one compiler after the other; with `--postfix` the 100 files of Postfix's library `util`, by its own makefiles, after its sources were unpacked. Then its objects are removed and made once more |
| postmark | as described for Postmark: 500 files of 4 kB to 1 MB are made; 5,000 transactions, each one that reads a file whole or appends to one, and one that makes or removes a file; then all are removed |
| read | a file of 1 GB of random bytes is read three times: for the first time by anybody, again, and again after the page cache was dropped. *scan* is `sluice scan` on the same file with the same signatures, less its start |

Targets: the bare folder; `pass`, a mount that inspects nothing; `bindfs`, another file system by FUSE that does nothing, where
it is there; mounts with the signatures of the paper's recipe, by their number; and with `--clamonacc` the bare folder watched by
ClamAV's clamonacc with prevention, and clamd with the last of these sets. Each load of each target begins with a fresh
folder. Seconds are those of the wall clock; the first round is thrown away where there are several. In brackets are the
processor seconds of the load and of all processes that serve it: on a busy machine these are what can be compared.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import signatures

SLUICE = os.environ.get("SLUICE") or os.path.join(os.path.dirname(__file__), "../../target/release/sluice")


def main():
    parser = argparse.ArgumentParser(prog="bench/avfs")
    parser.add_argument("--quick", action="store_true", help="a tenth of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--signatures", default="1024,19807,131072")
    parser.add_argument("--only", default="compile,postmark,read")
    parser.add_argument("--clamonacc", action="store_true", help="also clamonacc with clamd")
    parser.add_argument("--postfix", metavar="TARBALL", help="Postfix's source, as apt-get source postfix has it")
    args = parser.parse_args()
    scale = 10 if args.quick else 1
    folder = tempfile.mkdtemp(prefix="sluice-avfs.", dir="/var/tmp")
    try:
        targets = [("bare", None), ("pass", [SLUICE, "mount", "--pass-all"])]
        if shutil.which("bindfs"):
            targets.insert(1, ("bindfs", ["bindfs", "-f", "--multithreaded"]))
        for count in [int(text) for text in args.signatures.split(",") if text]:
            database = os.path.join(folder, f"signatures-{count}")
            os.mkdir(database)
            signatures.write(database, count)
            command = [SLUICE, "mount", "--database", database, "--cache", os.path.join(folder, "cache")]
            targets.append((f"{count} signatures", command))
        if args.clamonacc:
            targets.append((f"clamonacc, {count}", clamonacc(folder, database)))
        project = make_project(os.path.join(folder, "project"), 120 // scale)
        loads = {
            "compile": lambda place: compile_postfix(args.postfix, place) if args.postfix else compile_project(project, place),
            "postmark": lambda place: postmark(place, 500 // scale, 5_000 // scale),
            "read": lambda place: read(place, (1 << 30) // scale),
        }
        results = {}
        for number in range(args.rounds):
            for target, command in targets:
                for load in args.only.split(","):
                    for what, value in with_target(folder, command, loads[load]).items():
                        results.setdefault(what, {}).setdefault(target, []).append(value)
                        print(number, target, what, *(round(part, 2) for part in value), file=sys.stderr)
        show(results, [target for target, _ in targets])
    finally:
        shutil.rmtree(folder)


def show(results, targets):
    print("| load | " + " | ".join(targets) + " |")
    print("|---|" + "---:|" * len(targets))
    for what, rows in results.items():
        times = {target: median(values[1:] or values) for target, values in rows.items()}
        cells = [cell(times[target], times.get("bare", times[target])) if target in times else "" for target in targets]
        print(f"| {what} | " + " | ".join(cells) + " |")


def median(values):
    return [statistics.median(column) for column in zip(*values)]


def cell(value, bare):
    wall, cpu = (f"{mine:.2f} s ×{mine / max(theirs, 0.01):.2f}" for mine, theirs in zip(value, bare))
    return f"{wall} ({cpu})"


def with_target(folder, command, load):
    """Runs a load in a fresh folder, mounted or not."""
    global server, scanner
    source, point = os.path.join(folder, "source"), os.path.join(folder, "point")
    os.mkdir(source)
    os.mkdir(point)
    server = None
    scanner = [SLUICE, "scan", *command[2:]] if isinstance(command, list) and "--database" in command else None
    try:
        if command is None:
            return load(source)
        if callable(command):
            server, stop = command(source)
            try:
                return load(source)
            finally:
                stop()
        server = subprocess.Popen([*command, source, point], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while not os.path.ismount(point):
            if server.poll() is not None:
                raise SystemExit(f"{command}: {server.returncode}")
            time.sleep(0.05)
        return load(point)
    finally:
        if isinstance(server, subprocess.Popen):
            server.terminate()
            server.wait()
        os.rmdir(point)
        shutil.rmtree(source)


def clamonacc(folder, database):
    """Begins to watch a folder: clamd as user clamav, who is excluded, and clamonacc, which asks it about each file that is opened."""

    def watch(source):
        socket, config = os.path.join(folder, "clamd.socket"), os.path.join(folder, "clamd.conf")
        os.chmod(folder, 0o755)
        with open(os.path.join(database, "eicar.ndb"), "w") as file:
            file.write(f"Eicar:0:0:{EICAR.encode().hex()}\n")
        subprocess.run(["chown", "-R", "clamav", database], check=True)
        run = os.path.join(folder, "run")
        os.makedirs(run, exist_ok=True)
        shutil.chown(run, "clamav")
        socket = os.path.join(run, "socket")
        limits = [f"{name} 2000M" for name in ("MaxScanSize", "MaxFileSize", "StreamMaxLength", "OnAccessMaxFileSize")]
        with open(config, "w") as file:
            lines = [f"DatabaseDirectory {database}", f"LocalSocket {socket}", "User clamav", "Foreground yes", "OnAccessPrevention yes"]
            lines += [f"OnAccessIncludePath {source}", "OnAccessExcludeUname clamav", "OnAccessExtraScanning no", *limits]
            file.write("\n".join(lines) + "\n")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        watching = [subprocess.Popen(["clamd", "-c", config], **quiet)]

        def stop():
            for process in reversed(watching):
                process.terminate()
                process.wait()
            if os.path.exists(socket):
                os.unlink(socket)

        eicar = os.path.join(source, "eicar")
        with open(eicar, "w") as file:
            file.write(EICAR)
        try:
            wait_for(lambda: os.path.exists(socket))
            watching.append(subprocess.Popen(["clamonacc", "-F", "--fdpass", "-c", config], **quiet))
            wait_for(lambda: not may_read(eicar))
        except BaseException:
            stop()
            raise
        os.unlink(eicar)
        return watching, stop

    return watch


def may_read(path):
    try:
        open(path, "rb").close()
        return True
    except PermissionError:
        return False


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit("clamd or clamonacc does not do what it is here for")


EICAR = "X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"

# The process that serves the mount, if one does, or those that watch the folder; and the command that scans with the same signatures.
server, scanner = None, None


def processor_seconds():
    """Of this process, of those that it has waited for, and of the server with those that it has started."""
    times = os.times()
    total = times.user + times.system + times.children_user + times.children_system
    if server is None:
        return total
    tick = os.sysconf("SC_CLK_TCK")
    family = {process.pid for process in (server if isinstance(server, list) else [server])}
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(name) in family or int(fields[1]) in family:
            family.add(int(name))
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


class Watch:
    """How long something takes, and how much of the processors."""

    def __init__(self):
        self.began = time.monotonic(), processor_seconds()

    def read(self):
        return time.monotonic() - self.began[0], processor_seconds() - self.began[1]


def make_project(folder, count):
    """C files with some hundred functions each; the same ones each time."""
    os.mkdir(folder)
    chance = random.Random(7)
    names = []
    for number in range(count):
        text = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
        for function in range(80):
            a, b, c = (chance.randrange(1, 9999) for _ in range(3))
            text.append(
                f"int f{number}_{function}(const char *s, int n) {{ int x = {a}; for (int i = 0; i < n; i++) "
                f"{{ x = x * {b} + s[i % {c}]; if (x % {a} == 0) x ^= (int)strlen(s); }} return x; }}"
            )
        names.append(f"part{number}.c")
        with open(os.path.join(folder, names[-1]), "w") as file:
            file.write("\n".join(text) + "\n")
    with open(os.path.join(folder, "main.c"), "w") as file:
        file.write("int main(void) { return 0; }\n")
    return folder


def compile_project(project, place):
    build = os.path.join(place, "build")
    watch = Watch()
    shutil.copytree(project, build)
    result = {"compile": make(build, watch)}
    for name in os.listdir(build):
        if not name.endswith(".c"):
            os.unlink(os.path.join(build, name))
    return result | {"compile again": make(build, Watch())}


def make(build, watch):
    for name in sorted(name for name in os.listdir(build) if name.endswith(".c")):
        subprocess.run(["cc", "-O1", "-g", "-c", name], cwd=build, check=True)
    objects = [name for name in os.listdir(build) if name.endswith(".o")]
    subprocess.run(["cc", "-o", "program", *objects], cwd=build, check=True)
    subprocess.run(["./program"], cwd=build, check=True)
    return watch.read()


def compile_postfix(tarball, place):
    def run(*command):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, cwd=build, check=True, **quiet)

    build = place
    watch = Watch()
    run("tar", "xf", os.path.abspath(tarball), "--strip-components=1")
    result = {"unpack Postfix": watch.read()}
    watch = Watch()
    run("make", "-s", "makefiles", "CCARGS=-DNO_DB -DNO_NIS -DNO_EAI", "AUXLIBS=", "pie=no")
    run("make", "-s", "-C", "src/util")
    result["compile Postfix"] = watch.read()
    run("make", "-s", "-C", "src/util", "clean")
    watch = Watch()
    run("make", "-s", "-C", "src/util")
    return result | {"compile Postfix again": watch.read()}


def postmark(place, files, transactions):
    chance = random.Random(11)
    content = random.Random(13).randbytes(1 << 20)
    number, names = 0, []

    def create():
        nonlocal number
        number += 1
        name = os.path.join(place, f"file{number}")
        with open(name, "wb", buffering=0) as file:
            file.write(content[: chance.randrange(4_000, 1_000_000)])
        names.append(name)

    watch = Watch()
    for _ in range(files):
        create()
    for _ in range(transactions):
        name = chance.choice(names)
        if chance.random() < 0.5:
            with open(name, "rb", buffering=0) as file:
                while file.read(64 << 10):
                    pass
        else:
            with open(name, "ab", buffering=0) as file:
                file.write(content[: chance.randrange(500, 10_000)])
        if chance.random() < 0.5:
            create()
        else:
            os.unlink(names.pop(chance.randrange(len(names))))
    for name in names:
        os.unlink(name)
    return {"postmark": watch.read()}


def read(place, size):
    # Written below, where nobody inspects it.
    below = os.path.join(os.path.dirname(place), "source", "large")
    content = random.Random(17).randbytes(1 << 20)
    with open(below, "wb") as file:
        for _ in range(size >> 20):
            file.write(content)
    seconds = {}
    for what in ["read 1 GB, never inspected", "read again", "read again, page cache dropped"]:
        if "dropped" in what:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("1")
        watch = Watch()
        with open(os.path.join(place, "large"), "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
        seconds[what] = watch.read()
    if scanner:
        empty = os.path.join(os.path.dirname(place), "empty")
        open(empty, "w").close()
        start, whole = (scan(file) for file in (empty, below))
        seconds["scan of the same"] = tuple(max(0, all - alone) for all, alone in zip(whole, start))
    return seconds


def scan(file):
    watch = Watch()
    subprocess.run([*scanner, "--max-filesize", "0", "--max-scansize", "0", file], check=True, stdout=subprocess.DEVNULL)
    return watch.read()


main()

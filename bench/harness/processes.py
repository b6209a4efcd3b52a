"""Programs that the bench starts: their processor time, their memory, and their end.

A program is started in the foreground, so that everything it starts is its descendant; the tree is read from /proc
whenever it is asked for. Only processes of these trees are ever signalled. Should the bench be killed, a guard process
ends them in its place.
"""

import os
import signal
import subprocess
import sys
import time

STOP_SECONDS_MAX = 10


def take_charge():
    """To be called first: from now on the bench leaves nothing running, however it ends.

    SIGTERM and SIGINT end it by way of its `finally` blocks, and a guard is set for the case of SIGKILL.
    """
    Program.guard = Guard()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


class Guard:
    """A child that outlives the bench by as long as it takes to end what the bench could not.

    It is told of each program's start and end through a pipe, and acts when the pipe closes. (The kernel's own signal on
    a parent's death does not reach servers that change their user.) Forked before anything is opened, so that it keeps
    nothing else open.
    """

    def __init__(self):
        reading, self.pipe = os.pipe()
        if os.fork():
            os.close(reading)
            return
        os.setsid()
        os.close(self.pipe)
        running = set()
        with os.fdopen(reading) as lines:
            for word, process in map(str.split, lines):
                (running.add if word == "started" else running.discard)(int(process))
        for process in running:
            _end_tree(process)
        os._exit(0)

    def tell(self, word, process):
        os.write(self.pipe, f"{word} {process}\n".encode())


class Failed(Exception):
    """A program did not start, or ended before its time."""


class Program:
    """One program with its descendants; its output goes to `log`."""

    guard = None

    def __init__(self, name, command, log):
        self.name = name
        self.log = log
        with open(log, "ab") as out:
            self.root = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        self._watch("started")

    def wait_until(self, ready, seconds=60):
        """Waits for `ready()`; raises Failed with the end of the log when it does not come."""
        try:
            end = time.monotonic() + seconds
            while not ready():
                if self.root.poll() is not None or time.monotonic() > end:
                    raise Failed(f"{self.name} did not become ready; its log ends:\n{self.log_tail()}")
                time.sleep(0.05)
        except BaseException:  # an interrupt too: nobody else knows of this program yet
            self.stop()
            raise
        return self

    def log_tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-8:])

    def tree(self):
        """The ids of the program's processes."""
        return _tree(self.root.pid)

    def stop(self):
        """SIGTERM to the root, SIGKILL to what is left of its tree after STOP_SECONDS_MAX."""
        _end_tree(self.root.pid, self.root.poll)
        self.root.wait()
        self._watch("ended")

    def _watch(self, word):
        Program.guard.tell(word, self.root.pid)


def processor_seconds(programs):
    """User and system time of all processes of `programs`, those included that have ended and were waited for."""
    return sum(_processor_seconds(process) for program in programs for process in program.tree())


def memory_bytes(programs):
    """Proportional set size of all processes of `programs`."""
    return sum(_pss_bytes(process) for program in programs for process in program.tree())


def forget_peak(program):
    """Sets the kernel's high-water marks of the program's processes to what is resident now."""
    for process in program.tree():
        with open(f"/proc/{process}/clear_refs", "w") as file:
            file.write("5")


def peak_resident_bytes(program):
    """Largest resident sets that the program's processes had since their peaks were forgotten, or they began, in all."""
    lines = (_line(process, "status", "VmHWM:") for process in program.tree())
    return sum(int(line.split()[1]) * 1024 for line in lines if line)


def written_bytes(program):
    """What the program's processes have written to storage so far; its log counts."""
    lines = (_line(process, "io", "write_bytes:") for process in program.tree())
    return sum(int(line.split()[1]) for line in lines if line)


def _line(process, file, start):
    """None of a process that has ended."""
    try:
        with open(f"/proc/{process}/{file}") as lines:
            return next((line for line in lines if line.startswith(start)), None)
    except OSError:
        return None


def _end_tree(root, reap=lambda: None):
    tree = [process for process in _tree(root) if _is_alive(process)]
    if root in tree:
        os.kill(root, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS_MAX
    while any(map(_is_alive, tree)) and time.monotonic() < end:
        reap()
        time.sleep(0.05)
    for process in filter(_is_alive, tree):
        os.kill(process, signal.SIGKILL)


def _tree(root):
    found, todo = [], [root]
    while todo:
        process = todo.pop()
        found.append(process)
        todo += _children(process)
    return found


def _children(process):
    children = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    except OSError:
        pass
    return children


def _processor_seconds(process):
    try:
        # The process clock of another process: exact, where /proc/PID/stat counts in ticks of 10 ms.
        own = time.clock_gettime((~process << 3) | 2)
        with open(f"/proc/{process}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _pss_bytes(process):
    try:
        with open(f"/proc/{process}/smaps_rollup") as rollup:
            return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


"""Programs that the bench starts: their processor time, their memory, and their end.

A program is started in the foreground, so that everything it starts is its descendant; the tree is read from /proc
whenever it is asked for. Only processes of these trees are ever signalled. They die with the bench, should it be killed.
"""

import ctypes
import os
import signal
import subprocess
import time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

STOP_SECONDS_MAX = 10


class Failed(Exception):
    """A program did not start, or ended before its time."""


class Program:
    """One program with its descendants; its output goes to `log`."""

    def __init__(self, name, command, log, environment=None):
        self.name = name
        self.log = log
        with open(log, "ab") as out:
            self.root = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env=environment, preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0))

    def wait_until(self, ready, seconds=60):
        """Waits for `ready()`; raises Failed with the end of the log when it does not come."""
        end = time.monotonic() + seconds
        while not ready():
            if self.root.poll() is not None or time.monotonic() > end:
                self.stop()
                raise Failed(f"{self.name} did not become ready; its log ends:\n{self.log_tail()}")
            time.sleep(0.05)
        return self

    def log_tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-8:])

    def tree(self):
        """The ids of the program's processes."""
        found, todo = [], [self.root.pid]
        while todo:
            process = todo.pop()
            found.append(process)
            todo += _children(process)
        return found

    def stop(self):
        """SIGTERM to the root, SIGKILL to what is left of its tree after STOP_SECONDS_MAX."""
        tree = self.tree()
        self.root.terminate()
        end = time.monotonic() + STOP_SECONDS_MAX
        while any(map(_is_alive, tree)) and time.monotonic() < end:
            self.root.poll()
            time.sleep(0.05)
        for process in filter(_is_alive, tree):
            os.kill(process, signal.SIGKILL)
        self.root.wait()


def processor_seconds(programs):
    """User and system time of all processes of `programs`, those included that have ended and were waited for."""
    return sum(_processor_seconds(process) for program in programs for process in program.tree())


def memory_bytes(programs):
    """Proportional set size of all processes of `programs`."""
    return sum(_pss_bytes(process) for program in programs for process in program.tree())


def peak_resident_bytes(program):
    """Largest resident set that the program's first process had so far."""
    with open(f"/proc/{program.root.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


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


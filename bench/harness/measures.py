"""The measurements of bench/mail: what is sent in each, and what is read off it.

Each function does one cell (one target, one set of mails) and returns figures by name, or raises Incomplete when mails
were lost, refused or late: such a cell is left out of the medians and named in the notes.
"""

import os
import shutil
import sys
import tempfile
import threading
import time

from mails import manifest, wire_bytes
from processes import Failed, memory_bytes, processor_seconds, take_charge

# What a target still does for a mail after it has delivered it (queue files, logs) belongs to the mail.
SETTLE_SECONDS = 0.15
LINE_BYTES_PER_SECOND = 12_500_000
SENDERS = 16
RUN_SECONDS_MAX = 60
SAMPLE_SECONDS = 0.25


class Incomplete(Exception):
    """Not every mail of a cell was delivered, exactly once and whole."""


def print_bench(name, bench):
    """Prints what `bench(folder)` returns, for a folder that is gone afterwards; ends with the reason where there is nothing."""
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        print(bench(folder))
    except (Failed, Incomplete) as reason:
        sys.exit(f"{name}: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """What all measurements need: the load generator and the folder of mails."""

    def __init__(self, load, mails, throughput_seconds, seconds_left):
        self.load = load
        self.mails = mails
        self.throughput_seconds = throughput_seconds
        self.seconds_left = seconds_left
        self.counts = {}

    def shows_that_it_scans(self, target):
        """The reason why a target counts as one that does not find the marker, or None."""
        for name in ("marker_exe", "marker_gz"):
            answer = self.load.run(target=target.address, manifest=manifest(self.mails, name), timeout=3)
            if answer["delivered"]:
                return f"a mail with the marker ({name}) was delivered"
        return None

    def warm_up(self, target, sets):
        """Sends a few mails of each set, and finds out how many fill the time of a throughput cell."""
        for name in sets:
            self._run(target, name, mails=3, wait="sink")
            answer = self._run(target, name, mails=48, senders=SENDERS)
            wanted = int(answer["mails_s"] * self.throughput_seconds) // SENDERS * SENDERS
            self.counts[target.name, name] = max(2 * SENDERS, min(wanted, 20_000))

    def latency(self, target, name, mails):
        """One mail at a time, as fast as it goes, waiting for the sink."""
        answer, seconds = self._timed(target, name, mails=mails, wait="sink")
        return {"latency": answer["latency_ms"]["median"], "dot": answer["dot_ms"]["median"],
                "cpu_alone": 1e3 * seconds / mails}

    def paced(self, target, name, mails):
        """One mail at a time, at the pace of a 100 Mb/s line: what is left to do after the final dot."""
        answer = self._run(target, name, mails=mails, wait="sink", bytes_per_second=LINE_BYTES_PER_SECOND)
        return {"dot_paced": answer["dot_ms"]["median"]}

    def throughput(self, target, name):
        """SENDERS senders, each a connection a mail, until the last mail is at the sink."""
        mails = self.counts[target.name, name]
        answer, seconds = self._timed(target, name, mails=mails, senders=SENDERS)
        return {"rate": answer["mails_s"], "cpu_crowd": 1e3 * seconds / mails}

    def memory(self, target, name, clients, seconds, idle_bytes):
        """Peak growth over `idle_bytes` for each of `clients` clients that all take `seconds` for their mail."""
        peak = _Peak(target.programs)
        try:
            self._run(target, name, mails=clients, senders=clients,
                      bytes_per_second=int(wire_bytes(self.mails, name) / seconds))
        finally:
            peak_bytes = peak.stop()
        return {f"memory_{clients}": (peak_bytes - idle_bytes) / clients / 1024}

    def _timed(self, target, name, **order):
        before = processor_seconds(target.programs)
        answer = self._run(target, name, **order)
        time.sleep(SETTLE_SECONDS)
        return answer, processor_seconds(target.programs) - before

    def _run(self, target, name, **order):
        timeout = int(max(1, min(RUN_SECONDS_MAX, self.seconds_left())))
        answer = self.load.run(target=target.address, manifest=manifest(self.mails, name), timeout=timeout, **order)
        if answer["delivered"] != answer["mails"] or answer["duplicates"]:
            raise Incomplete(f"{target.name}, {name}: {answer['delivered']} of {answer['mails']} delivered, "
                             f"{answer['refused']} refused {answer['reply']!r}, {answer['lost']} lost, "
                             f"{answer['duplicates']} twice")
        return answer


class _Peak:
    """Samples the memory of some programs in a thread until it is stopped."""

    def __init__(self, programs):
        self.programs = programs
        self.bytes = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()

    def _sample(self):
        while not self.over.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, memory_bytes(self.programs))

    def stop(self):
        self.over.set()
        self.thread.join()
        return self.bytes

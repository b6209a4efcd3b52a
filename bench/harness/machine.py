"""What a figure has to be read with: the machine, the versions, and how busy the machine was with other things."""

import datetime
import os
import platform
import subprocess

PACKAGES = ("postfix", "amavisd-new", "amavisd-milter", "clamav-daemon", "rspamd")
TICKS = os.sysconf("SC_CLK_TCK")


def describe(folder):
    """Lines of text about the machine."""
    return [
        f"{datetime.datetime.now():%Y-%m-%d %H:%M}, {_system()}, Linux {platform.release()}, "
        f"{os.cpu_count()} cores ({_processor()}), {_memory_bytes() / 2**30:.0f} GB, queues on {_filesystem(folder)}",
        "Peers: " + ", ".join(f"{name} {version}" for name, version in _versions()),
    ]


class Busy:
    """How much of the machine something else used since this was made, apart from `programs`' own processor time."""

    def __init__(self, used):
        self.used = used
        self.start = self._now()
        self.loads = [os.getloadavg()[0]]

    def look(self):
        """Notes the present load average."""
        self.loads.append(os.getloadavg()[0])

    def describe(self):
        total, busy, used = (now - then for now, then in zip(self._now(), self.start))
        others = max(0.0, busy - used) / total if total else 0.0
        return (f"Load average {min(self.loads):.1f} to {max(self.loads):.1f} (the bench itself included); "
                f"other programs and the bench's own script used {100 * others:.0f} % of the processors")

    def _now(self):
        with open("/proc/stat") as stat:
            fields = [int(field) / TICKS for field in stat.readline().split()[1:9]]
        total = sum(fields)
        return total, total - fields[3] - fields[4], self.used()


def processors():
    """Ticks of all processors since the machine began: all, and idle."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def busy_share(before):
    """How much of the processors was used since then, by whomever."""
    (total, idle), (total_then, idle_then) = processors(), before
    return 1 - (idle - idle_then) / max(1, total - total_then)


def _system():
    with open("/etc/os-release") as release:
        values = dict(line.rstrip().split("=", 1) for line in release if "=" in line)
    return values.get("PRETTY_NAME", "unknown").strip('"')


def _processor():
    with open("/proc/cpuinfo") as information:
        return next((line.split(":", 1)[1].strip() for line in information if line.startswith("model name")), "unknown")


def _memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _filesystem(folder):
    shown = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True)
    return shown.stdout.strip() or "unknown"


def _versions():
    for name in PACKAGES:
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
        if shown.returncode == 0:
            yield name, shown.stdout

"""A Suricata to compare with: a Debian 13 laid in a folder, since Debian 12 has no package of it.

SURICATA_ROOT names such a folder; otherwise debootstrap lays one in target/peers/suricata (half a minute, 400 MB).
Nothing of it is started but `suricata -r` on captures, within the folder.
"""

import json
import os
import resource
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS_MAX = 900


def root():
    """The folder with a Debian that has Suricata."""
    known = os.environ.get("SURICATA_ROOT", os.path.join(ROOT, "target/peers/suricata"))
    if not os.path.exists(os.path.join(known, "usr/bin/suricata")):
        os.makedirs(os.path.dirname(known), exist_ok=True)
        command = ["debootstrap", "--variant=minbase", "--include=suricata", "trixie", known]
        subprocess.run(command, check=True, timeout=SECONDS_MAX, stdout=subprocess.DEVNULL)
    return known


# Bodies are inspected as a whole, and as few alerts as possible are left out because there are too many on one packet: with a
# packet-alert-max above 255 Suricata 7.0.10 takes 15.
SETTINGS = {
    "app-layer.protocols.http.libhtp.default-config.request-body-limit": "0",
    "app-layer.protocols.http.libhtp.default-config.response-body-limit": "0",
    "app-layer.protocols.http.libhtp.default-config.randomize-inspection-sizes": "no",
    "app-layer.protocols.smtp.inspected-tracker.content-limit": "1000000",
    "packet-alert-max": "255",
    "outputs.0.fast.enabled": "no",
}


def run(rules, capture, settings=None):
    """Runs it over a capture. The result: alerts as rows of EVE, what it says of rules, and its processor time in seconds."""
    tree = root()
    folder = os.path.join(tree, "var/tmp", f"run-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    try:
        shutil.copy(rules, os.path.join(folder, "test.rules"))
        os.link(capture, os.path.join(folder, "test.pcap")) if same_disk(capture, folder) else shutil.copy(
            capture, os.path.join(folder, "test.pcap"))
        inside = folder[len(tree):]
        command = ["chroot", tree, "suricata", "-S", f"{inside}/test.rules", "-r", f"{inside}/test.pcap", "-l", inside,
                   "-k", "none", "--runmode", "single"]
        for key, value in {**SETTINGS, **(settings or {})}.items():
            command += ["--set", f"{key}={value}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        with open(os.path.join(folder, "eve.json"), encoding="utf-8", errors="replace") as file:
            rows = [json.loads(line) for line in file if '"event_type":"alert"' in line]
        return rows, done.stderr, seconds
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def same_disk(one, other):
    return os.stat(one).st_dev == os.stat(other).st_dev

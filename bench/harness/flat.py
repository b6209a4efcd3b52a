"""bench/flat: the memory of Sluice while one mail of each size goes through it.

The mail is made while it is sent: a valid gzip attachment of stored blocks of random bytes, in Base64. Sluice is told
to refuse broken content, so that an accepted mail shows that it was decoded and unpacked to its last byte. A fresh
Sluice takes each size; its peak is the kernel's own high-water mark of the resident set. The signature database is
loaded, and the mail arrives as fast as loopback carries it, which is the worst case for buffers.
"""

import argparse
import os
import shutil
import sys
import tempfile

import signatures
from load import Load
from processes import Failed, forget_peak, peak_resident_bytes, take_charge, written_bytes
from targets import start_sluice

SIZES = [300_000, 10_000_000, 100_000_000, 1_000_000_000]
HUGE = 4_400_000_000
SINK = "127.0.0.1:19050"
SLUICE = "127.0.0.1:19051"
BYTES_PER_SECOND_MIN = 5_000_000


def main():
    parser = argparse.ArgumentParser(prog="bench/flat", description="Memory of Sluice against the size of a mail.")
    parser.add_argument("--huge", action="store_true", help="a mail of 4.4 GB (more than 32 bits count) too")
    parser.add_argument("--size", type=byte_counts, help="these sizes instead, in bytes")
    options = parser.parse_args()
    sizes = options.size or SIZES + [HUGE] * options.huge
    take_charge()
    folder = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        measure(folder, sizes)
    except Failed as reason:
        sys.exit(f"bench/flat: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def byte_counts(text):
    return [int(size) for size in text.split(",")]


def measure(folder, sizes):
    os.mkdir(f"{folder}/signatures")
    signatures.write(f"{folder}/signatures")
    load = Load(os.environ["LOAD"], SINK)
    try:
        print("| mail, MB | before, MB resident | peak, MB resident | growth, kB | to disk, kB | seconds | MB/s |")
        print("|---|---|---|---|---|---|---|")
        peaks = [one(folder, load, size) for size in sizes]
    finally:
        load.stop()
    print(f"\nThe largest mail's peak is {(peaks[-1] - peaks[0]) / 1024:+.0f} kB against the smallest one's.")


def one(folder, load, size):
    """Sends one mail through a fresh Sluice, prints a row, returns the peak."""
    sluice = start_sluice(folder, SLUICE, SINK, f"{folder}/signatures", more='on_malformed = "reject"\n')
    try:
        forget_peak(sluice)  # loading the signatures takes more than keeping them
        before = peak_resident_bytes(sluice)
        answer = load.run(target=SLUICE, generate=size, timeout=30 + size // BYTES_PER_SECOND_MIN)
        peak, written = peak_resident_bytes(sluice), written_bytes(sluice)
    finally:
        sluice.stop()
    if answer["delivered"] != 1:
        raise Failed(f"a mail of {size} bytes was not delivered: {answer['reply'] or 'no reply in time'}")
    print(f"| {size / 1e6:.1f} | {before / 2**20:.1f} | {peak / 2**20:.1f} | {(peak - before) / 1024:.0f} | "
          f"{written / 1024:.0f} | {answer['wall_s']:.1f} | {size / 1e6 / answer['wall_s']:.0f} |", flush=True)
    return peak


if __name__ == "__main__":
    main()

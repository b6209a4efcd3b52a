"""What intrusion rules cost: see bench/README.md."""

import argparse
import glob
import os
import random
import re
import subprocess
import tempfile

import conversations
import suricata

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTENT = re.compile(r'(content:\s*!?")((?:[^"\\]|\\.)*)(")')
SID = re.compile(r"(\bsid\s*:\s*)(\d+)")


def turned(text, by):
    """A text whose letters are moved on in the alphabet; bytes between bars stay."""
    def letter(found):
        code = ord(found.group())
        first = ord("a") if code >= ord("a") else ord("A")
        return chr(first + (code - first + by) % 26)
    pieces = text.split("|")
    return "|".join(piece if at % 2 else re.sub(r"(?<!\\)[A-Za-z]", letter, piece) for at, piece in enumerate(pieces))


def varied(rules, by):
    """The same rules with other contents and numbers: what sets of tens of thousands are made of."""
    other = [CONTENT.sub(lambda found: found.group(1) + turned(found.group(2), by) + found.group(3), rule) for rule in rules]
    return [SID.sub(lambda found: f"{found.group(1)}{int(found.group(2)) + by * 10_000_000}", rule) for rule in other]


def enabled(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if line.startswith("alert ")]


def written(folder, files, count):
    """Files of rules: the given ones, and variations of them until there are so many."""
    paths, total, by = [], 0, 0
    while by == 0 or total < count and by < 26:
        for number, rules in enumerate(files):
            rules = rules if by == 0 else varied(rules, by)[:max(0, count - total)]
            paths.append(os.path.join(folder, f"{count}-{by}-{number}.rules"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.writelines(f"{rule}\n" for rule in rules)
            total += len(rules)
        by += 1
    return paths


def example(package, name):
    command = ["cargo", "build", "-q", "--release", "--locked", "-p", package, "--example", name]
    subprocess.run(command, check=True, cwd=ROOT)
    return os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release/examples", name)


def figures(program, rounds, rules, pages):
    out = subprocess.run([program, str(rounds), *rules, "--", *pages], check=True, capture_output=True, text=True, timeout=900).stdout
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


def capture(folder, pages, rounds):
    """A capture of responses with the pages."""
    packets = conversations.Capture(random.Random(1), clients_at_home=True)
    for page in pages * rounds:
        talk = conversations.Conversation(80)
        talk.say(0, b"GET /index.html HTTP/1.1\r\nHost: www.site.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\n\r\n")
        with open(page, "rb") as file:
            body = file.read()
        talk.say(1, f"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        packets.add(talk)
    path = os.path.join(folder, f"{rounds}.pcap")
    with open(path, "wb") as file:
        file.write(packets.bytes())
    return path


def peer(folder, rules, captures, bytes_between):
    """Suricata's time to load, and MB/s: the difference between a long and a short capture."""
    joined = os.path.join(folder, "joined.rules")
    with open(joined, "w", encoding="utf-8") as out:
        for path in rules:
            with open(path, encoding="utf-8") as file:
                out.write(file.read())
    # The packets are logged by nothing but alerts.
    short, long = (suricata.run(joined, path)[2] for path in captures)
    return short, bytes_between / 1e6 / max(long - short, 1e-9)


def main():
    parser = argparse.ArgumentParser(prog="bench/ids")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    rounds = args.rounds or (3 if args.quick else 20)
    data = os.environ["SLUICE_DATA"]
    packs = sorted(glob.glob(os.path.join(data, "ids-rules/*/*.rules")))
    pages = [path for path in sorted(glob.glob(os.path.join(data, "web-pages/**"), recursive=True)) if os.path.isfile(path)][:400]
    program = example("sluice-rules", "watch")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        print("| rules | active | load s | memory MB | bodies MB/s | of 4 kB | of 1 MB | a head µs | a mail of 4 kB µs | of 1 MB µs |\n"
              "|---|---|---|---|---|---|---|---|---|---|")
        for count in (0, 17_000, 40_000):
            rules = written(folder, [enabled(path) for path in packs], count)
            row = figures(program, rounds, rules, pages)
            print(f"| {count or 'given':} | {row['active']:.0f} | {row['load_s']:.2f} | {row['memory_mb']:.0f} "
                  f"| {row['bodies_mb_s']:.0f} | {row['small_mb_s']:.0f} | {row['large_mb_s']:.0f} | {row['head_us']:.1f} "
                  f"| {row['mail_us']:.0f} | {row['large_mail_us']:.0f} |", flush=True)
        if args.peer:
            # Suricata reads none of Snort 3's.
            files = [enabled(path) for path in packs if "snort" not in path]
            captures = [capture(folder, pages, 1), capture(folder, pages, 1 + rounds)]
            size = sum(os.path.getsize(page) for page in pages) * rounds
            print("\n| rules of Suricata | Suricata: load s, MB/s | Sluice: load s, MB/s |\n|---|---|---|")
            for count in (0, 17_000):
                rules = written(folder, files, count)
                load, speed = peer(folder, rules, captures, size)
                row = figures(program, rounds, rules, pages)
                print(f"| {row['active']:.0f} | {load:.2f}, {speed:.0f} | {row['load_s']:.2f}, {row['bodies_mb_s']:.0f} |", flush=True)
        rules = written(folder, [enabled(path) for path in packs], 0)
        whole = example("sluice-inspect", "intrusion")
        subprocess.run([whole, str(rounds), *rules, "--", *pages], check=True, timeout=900)


if __name__ == "__main__":
    main()

"""Pages of the documentation as a reader sees them: their blocks, and a shell that they are pasted into."""

import re
import subprocess
import sys
import time

failures = []


def say(text):
    print(text, flush=True)


def fail(text):
    failures.append(text)
    say(f"!! {text}")


class Page:
    """A page, whose blocks are each used once: run, written into a file, or left out for a reason that is said."""

    def __init__(self, path):
        self.path = path
        self.blocks = list(blocks(open(path, encoding="utf-8").read()))
        say(f"\n{'=' * 100}\n{path}\n{'=' * 100}")

    def take(self, beginning):
        """The block in which this stands."""
        for block in self.blocks:
            if beginning in block[1]:
                self.blocks.remove(block)
                return block[1]
        fail(f"{self.path} has no block with {beginning!r}")
        return ""

    def skip(self, beginning, why):
        if self.take(beginning):
            say(f"-- left out: {beginning!r}: {why}")

    def done(self):
        for language, text, line in self.blocks:
            fail(f"{self.path}:{line}: nothing goes through this block ({language}): {text.splitlines()[:1]}")


def blocks(text):
    """Blocks in fences, and those that are set in by four blanks, each with its language and line."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r"^```(\w*)", lines[at])
        if fence:
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            yield fence.group(1), "\n".join(lines[at + 1:end]) + "\n", at + 1
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield "", "\n".join(line[4:] for line in lines[at:end]).rstrip() + "\n", at + 1
            at = end
        else:
            at += 1


def sh(commands, status=0, shows=(), quiet=False, seconds=120):
    """Pastes commands into a shell: each is echoed, and its output follows. `status` is that of the last, None any."""
    for line in commands.rstrip().splitlines():
        say(f"# {line}")
    try:
        done = subprocess.run(["bash", "-c", commands], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds)
        output, code = done.stdout.decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired as late:
        output, code = (late.stdout or b"").decode("utf-8", "replace"), "none in time"
    lines = output.rstrip().splitlines()
    if quiet and len(lines) > 6:
        lines = lines[:2] + [f"... {len(lines) - 4} lines"] + lines[-2:]
    for line in lines:
        say(f"    {line}")
    if status is not None and code != status:
        fail(f"exit status {code}, not {status}: {commands.strip().splitlines()[-1]}")
    for wanted in [shows] if isinstance(shows, str) else shows:
        if wanted not in output:
            fail(f"{wanted!r} is not shown by: {commands.strip().splitlines()[-1]}")
    return output


def write(path, text, mode="w"):
    say(f"-- {'into' if mode == 'w' else 'at the end of'} {path}:")
    for line in text.rstrip().splitlines():
        say(f"    {line}")
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


def wait_for(what, test, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = test()
        if found:
            return found
        time.sleep(0.2)
    fail(f"in {seconds} s there is no {what}")
    return None


def finish():
    say(f"\n{'=' * 100}")
    for failure in failures:
        say(f"!! {failure}")
    say("all pages hold" if not failures else f"{len(failures)} things do not hold")
    sys.exit(1 if failures else 0)

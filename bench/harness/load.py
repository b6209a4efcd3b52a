"""The load generator as a child process: one order in, one answer out. `bench/load/src/run.rs` lists the orders."""

import json
import subprocess

from processes import Failed, Program

# The answer of a run that its own time limit ends comes soon after.
GRACE_SECONDS = 20


class Load(Program):
    """The generator, with its sink on `sink`, if any; `within` is a command that starts it elsewhere."""

    def __init__(self, binary, sink=None, within=()):
        self.name = "load generator"
        command = [*within, binary] + (["--sink", sink] if sink else [])
        self.root = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)
        self._watch("started")
        if self.root.stdout.readline() != "ready\n":
            raise Failed("the load generator did not start: is the sink's port taken?")

    def run(self, **order):
        """Does one run and returns its figures."""
        words = " ".join(f"{key}={value}" for key, value in order.items())
        self.root.stdin.write(words + "\n")
        self.root.stdin.flush()
        line = self.root.stdout.readline()
        answer = json.loads(line) if line else {"error": "the load generator ended"}
        if "error" in answer:
            raise Failed(f"{answer['error']} ({words})")
        return answer

    def stop(self):
        self.root.stdin.close()
        self.root.wait(GRACE_SECONDS)
        self._watch("ended")

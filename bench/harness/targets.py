"""The paths that a mail can take through this machine, started and stopped as a whole.

| name | path |
|---|---|
| sink | the load generator straight to its own sink: no proxy |
| relay | Postfix, queue, sink |
| amavis | Postfix, amavisd with clamd, Postfix, sink |
| amavis-milter | Postfix with amavisd-milter, which has amavisd with clamd look at it, then sink |
| rspamd | Postfix with the rspamd milter, which has clamd scan each part, then sink |
| milter | Postfix with Sluice as its milter, then sink |
| sluice | Sluice, sink |
"""

import os
from dataclasses import dataclass, field

import postfix
import scanners
import sockets
from processes import Failed, Program

NAMES = ("sink", "relay", "amavis", "amavis-milter", "rspamd", "milter", "sluice")

SLUICE = """threads = 0
isolation = "{isolation}"

[database]
builtin = {builtin}

[resources]
head_pool_bytes = 16777216

[[listener]]
protocol = "{protocol}"
address = "{address}"
"""


@dataclass
class Target:
    """One path: where its mails go, and whose processor time and memory count."""

    name: str
    port: int
    programs: list = field(default_factory=list)
    scans: bool = False

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"


class Targets:
    """All paths of one run. `notes` says which of them did not start, and why."""

    def __init__(self, folder, ports, database, load):
        self.folder = folder
        self.ports = ports
        self.database = database
        self.load = load
        self.programs = []
        self.targets = []
        self.notes = []
        self._clamd = None

    def start(self, names):
        """Starts the named paths; one that fails is left out with a note."""
        for name in NAMES:
            if name not in names:
                continue
            try:
                self.targets.append(getattr(self, "_" + name.replace("-", "_"))())
            except (Failed, OSError, LookupError) as reason:
                self.notes.append(f"{name} is left out: {reason}")

    def stop(self):
        """Stops everything, in the opposite order."""
        for program in reversed(self.programs):
            program.stop()

    def _run(self, program):
        self.programs.append(program)
        return program

    def _sink(self):
        return Target("sink", self.ports["sink"], [self.load])

    def _relay(self):
        return Target("relay", self.ports["relay"], [self._postfix("relay")])

    def _amavis(self):
        clamd = self._shared_clamd()
        folder, back = f"{self.folder}/amavisd", self.ports["amavis_back"]
        amavisd = scanners.start_amavisd(folder, self.ports["amavis_tcp"], back, f"{self.folder}/clamd/socket")
        self._run(amavisd)
        relay = self._postfix("amavis", lmtp_filter=f"{folder}/socket", back=back)
        return Target("amavis", self.ports["amavis"], [relay, amavisd, clamd], scans=True)

    def _amavis_milter(self):
        clamd = self._shared_clamd()
        folder = f"{self.folder}/amavisd-milter"
        ports = self.ports["amavis_milter_tcp"], self.ports["sink"]
        amavisd, milter = scanners.start_amavisd_milter(folder, *ports, f"{self.folder}/clamd/socket")
        self._run(amavisd)
        self._run(milter)
        relay = self._postfix("amavis-milter", milter=f"{folder}/milter")
        return Target("amavis-milter", self.ports["amavis-milter"], [relay, milter, amavisd, clamd], scans=True)

    def _rspamd(self):
        clamd = self._shared_clamd()
        sockets.answer_no_such_domain(self.ports["dns"])
        rspamd = self._run(scanners.start_rspamd(f"{self.folder}/rspamd", self.ports, f"{self.folder}/clamd/socket"))
        relay = self._postfix("rspamd", milter=f"{self.folder}/rspamd/run/milter")
        return Target("rspamd", self.ports["rspamd"], [relay, rspamd, clamd], scans=True)

    def _milter(self):
        folder = f"{self.folder}/milter"
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        more = 'socket_mode = "666"\n'
        program = start_sluice(folder, f"unix:{folder}/socket", None, self.database, more)
        relay = self._postfix("milter", milter=f"{folder}/socket")
        return Target("milter", self.ports["milter"], [relay, self._run(program)], scans=True)

    def _sluice(self):
        port = self.ports["sluice"]
        program = start_sluice(self.folder, f"127.0.0.1:{port}", f"127.0.0.1:{self.ports['sink']}", self.database)
        return Target("sluice", port, [self._run(program)], scans=True)

    def _postfix(self, name, **settings):
        folder = f"{self.folder}/postfix-{name}"
        return self._run(postfix.start(folder, self.ports[name], self.ports["sink"], **settings))

    def _shared_clamd(self):
        if self._clamd is None:
            self._clamd = self._run(scanners.start_clamd(f"{self.folder}/clamd", self.database))
        return self._clamd


def start_sluice(folder, address, forward, database=None, more="", within=(), isolation="process", after=""):
    """Starts Sluice as a proxy to `forward`, or as a milter; without any signatures if there is no `database`.

    `more` is added to its listener's settings, `after` are further tables, `within` is a command that starts it elsewhere, and
    `isolation` is where it inspects.
    """
    binary = os.environ["SLUICE"]
    if not os.access(binary, os.X_OK):
        raise Failed(f"{binary} is missing: cargo build --release, or SLUICE=PATH")
    configuration = f"{folder}/sluice.toml"
    with open(configuration, "w") as file:
        builtin = "true" if database else "false"
        protocol = "smtp" if forward else "milter"
        hop = f'forward = "smtp://{forward}"\n' if forward else ""
        file.write(SLUICE.format(isolation=isolation, address=address, protocol=protocol, builtin=builtin) + hop + more + after)
    log = f"{folder}/sluice.log"
    open(log, "w").close()
    command = [*within, binary, "serve", "--allow-root", "--config", configuration] + (["--database", database] if database else [])
    return Program("sluice", command, log).wait_until(lambda: _says_ready(log))


def _says_ready(log):
    with open(log, errors="replace") as lines:
        return any(line.startswith("sluice: ready:") for line in lines)

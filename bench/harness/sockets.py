"""Loopback ports: whether one is taken, and a name server that knows nothing."""

import os
import socket
import threading

# What each program listens on, counted from --port-base.
PORTS = ("sink", "sluice", "relay", "amavis", "amavis_back", "amavis_tcp", "rspamd", "rspamd_milter", "rspamd_normal",
         "rspamd_controller", "dns", "milter", "amavis-milter", "amavis_milter_tcp")


def ports(base):
    """Port numbers by name; OSError names the first that is taken."""
    numbers = {name: base + place for place, name in enumerate(PORTS)}
    for name, number in numbers.items():
        if is_open(number):
            raise OSError(f"port {number} (for {name}) is taken; choose others with --port-base")
    return numbers


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_socket(path):
    """Whether somebody listens on a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return os.path.exists(path) and probe.connect_ex(path) == 0


def answer_no_such_domain(port):
    """A name server in a thread that answers NXDOMAIN at once; a silent one costs a gateway its time-out a mail."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", port))

    def serve():
        while True:
            question, peer = server.recvfrom(4096)
            if len(question) >= 12:
                server.sendto(question[:2] + b"\x81\x83" + question[4:6] + bytes(6) + question[12:], peer)

    threading.Thread(target=serve, daemon=True).start()

"""bench/web: pages of 5 and 40 kB from nginx, directly, through Squid without a cache, and through Sluice.

Squid and Sluice write a line of each request into a log. One round asks all of them in turn. A cell is the median over the
rounds, with the least and the most; a ratio is the median of the ratios within each round.
"""

import argparse
import os
import re
import socket
import subprocess
from statistics import median

from machine import describe
from measures import print_bench
from processes import Program, processor_seconds

SIZES = {"5k": 5_000, "40k": 40_000}
NGINX = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_requests 1000000; sendfile on;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; root {folder}; default_type text/html; }}
}}
"""
SQUID = """http_port 127.0.0.1:{port}
pid_filename {folder}/squid.pid
cache_log {folder}/squid-cache.log
access_log stdio:{folder}/access.log
cache deny all
cache_store_log none
coredump_dir {folder}
shutdown_lifetime 0 seconds
visible_hostname squid.test
http_access allow all
"""
SLUICE = """hostname = "proxy.test"
threads = 1
[database]
paths = []
[[listener]]
protocol = "http"
address = "127.0.0.1:{port}"
destinations = ["127.0.0.1"]
ports = [{origin}]
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def ask(folder, port, url, options):
    """Requests a second, and how many there were in all."""
    script = write(os.path.join(folder, "ask.lua"),
                   f'wrk.path = "{url}"\nwrk.headers["Host"] = "{url.split("/")[2] if "//" in url else "origin.test"}"\n')
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "-s", script, f"http://127.0.0.1:{port}/"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)", told)
    if wrong:
        raise SystemExit(f"not all answers are right: {wrong.group(0)}")
    count = int(re.search(r"(\d+) requests in", told).group(1))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1)), count


def bench(options):
    def run(folder):
        programs = {}
        try:
            return table(folder, measure(folder, programs, options))
        finally:
            for program in programs.values():
                program.stop()
    return run


def measure(folder, programs, options):
    """Figures by page and target, one pair a round: requests a second, and milliseconds of processor time of each."""
    os.chmod(folder, 0o777)
    for name, size in SIZES.items():
        write(os.path.join(folder, name), ("An ordinary page of text, and more of it. " * 1000)[:size])
    ports = {name: free_port() for name in ("nginx", "squid", "sluice")}
    origin = ports["nginx"]
    commands = {
        "nginx": (NGINX, lambda conf: ["nginx", "-p", folder, "-e", f"{folder}/nginx.log", "-c", conf]),
        "squid": (SQUID, lambda conf: ["squid", "-N", "-f", conf]),
        "sluice": (SLUICE, lambda conf: [os.environ["SLUICE"], "serve", "--allow-root", "--config", conf]),
    }
    for name, (settings, command) in commands.items():
        settings = settings.format(folder=folder, port=ports[name], origin=origin)
        conf = write(os.path.join(folder, name + ".conf"), settings)
        programs[name] = Program(name, command(conf), os.path.join(folder, name + ".out"))
        programs[name].wait_until(lambda port=ports[name]: answers(port))
    figures = {}
    for _ in range(options.rounds):
        for size in SIZES:
            for name, program in programs.items():
                url = f"/{size}" if name == "nginx" else f"http://127.0.0.1:{origin}/{size}"
                before = processor_seconds([program])
                rate, count = ask(folder, ports[name], url, options)
                used = processor_seconds([program]) - before
                figures.setdefault((size, name), []).append((rate, 1000 * used / max(count, 1)))
    return figures


def table(folder, figures):
    lines = describe(folder) + ["", "| page | target | requests/s | CPU ms a request | requests/s of Squid |", "|---|---|---|---|---|"]
    for (size, name), rounds in figures.items():
        rates, costs = zip(*rounds)
        squid = [rate for rate, _ in figures[size, "squid"]]
        ratio = median(rate / other for rate, other in zip(rates, squid))
        lines.append(f"| {size} | {name} | {spread(rates, 0)} | {spread(costs, 3)} | ×{ratio:.2f} |")
    return "\n".join(lines)


def spread(values, digits):
    return f"{median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(prog="bench/web")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    print_bench("web", bench(options))


if __name__ == "__main__":
    main()

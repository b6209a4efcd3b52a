"""bench/web: pages of 5 and 40 kB from nginx: directly, and through proxies that filter nothing (nginx, Squid without a cache, and
Sluice, which inspects without signatures) or do (E2Guardian with the lists of its package, and Sluice with the same lists and
19,807 signatures).

Sluice inspects in processes of its own, as by default. All but nginx write a line of each request into a log. One round asks all of
them in turn. A cell is the median over the rounds, with the least and the most; a ratio is the median of the ratios within each round.
"""

import argparse
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from statistics import median

import signatures
from machine import describe
from measures import print_bench
from processes import Program, processor_seconds
from table import markdown

TARGETS = ("nginx", "nginx-proxy", "squid", "e2guardian", "sluice", "sluice-filters")
SIZES = {"5k": 5_120, "40k": 40_960}
LISTS = "/etc/e2guardian"
WORDS = """the of and network packet garden window river mountain school library kitchen paper server music travel summer winter
letter history science market village people number system water""".split()
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
NGINX_PROXY = """daemon off;
worker_processes 1;
pid {folder}/nginx-proxy.pid;
error_log {folder}/nginx-proxy.log;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_requests 1000000; proxy_max_temp_file_size 0;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
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
[database]
builtin = {filters}
{web}
[[listener]]
protocol = "http"
address = "127.0.0.1:{port}"
destinations = ["127.0.0.1"]
ports = [{origin}]
"""
# What is changed of E2Guardian's own configuration, and what is added.
E2GUARDIAN = {"filterports": "{port}", "filterip": "127.0.0.1", "transparenthttpsport": None, "icapport": None}
E2GUARDIAN_ADDED = """
loglocation = '{folder}/e2guardian.log'
statlocation = '{folder}/e2guardian.statistics'
pidfilename = '{folder}/e2guardian.pid'
daemonuser = 'nobody'
daemongroup = 'nogroup'
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
            return table(folder, measure(folder, programs, options), options)
        finally:
            for program in programs.values():
                program.stop()
    return run


def page(size):
    """A page of words, the same at each run."""
    chance = random.Random(7)
    text = "<html><head><title>A page</title></head><body>\n"
    while len(text) < size:
        text += '<p class="a">' + " ".join(chance.choices(WORDS, k=40)) + ".</p>\n"
    return text[:size]


def start(name, folder, port, origin):
    """Starts one of the targets."""
    fields = {"folder": folder, "port": port, "origin": origin, "filters": "false", "web": ""}
    if name == "e2guardian":
        return Program(name, ["e2guardian", "-N", "-c", e2guardian(fields)], f"{folder}/{name}.out")
    if name.startswith("nginx"):
        conf = write(f"{folder}/{name}.conf", (NGINX if name == "nginx" else NGINX_PROXY).format(**fields))
        command = ["nginx", "-p", folder, "-e", f"{folder}/{name}.log", "-c", conf]
    elif name == "squid":
        command = ["squid", "-N", "-f", write(f"{folder}/{name}.conf", SQUID.format(**fields))]
    else:
        command = [os.environ["SLUICE"], "serve", "--allow-root", "--config", f"{folder}/{name}.toml"]
        if name == "sluice-filters":
            os.mkdir(f"{folder}/signatures")
            signatures.write(f"{folder}/signatures")
            fields |= {"filters": "true", "web": f'[web]\nconfig = "{LISTS}"'}
            command += ["--database", f"{folder}/signatures"]
        write(f"{folder}/{name}.toml", SLUICE.format(**fields))
    return Program(name, command, os.path.join(folder, name + ".out"))


def e2guardian(fields):
    """A copy of E2Guardian's configuration, with this port and no other; its path."""
    folder = fields["folder"] + "/e2guardian"
    shutil.copytree(LISTS, folder, symlinks=True)
    lines = open(f"{folder}/e2guardian.conf", encoding="utf-8").read().splitlines()
    kept = [line for line in lines if line.split("=")[0].strip(" #") not in E2GUARDIAN]
    kept += [f"{name} = {value}" for name, value in E2GUARDIAN.items() if value]
    write(f"{folder}/e2guardian.conf", ("\n".join(kept) + E2GUARDIAN_ADDED).format(**fields))
    for path, _, names in os.walk(folder):
        for name in names:
            text = open(f"{path}/{name}", encoding="latin-1").read()
            with open(f"{path}/{name}", "w", encoding="latin-1") as file:
                file.write(text.replace(LISTS, folder))
    return f"{folder}/e2guardian.conf"


def measure(folder, programs, options):
    """Figures by page and target, one pair a round: requests a second, and milliseconds of processor time of each."""
    os.chmod(folder, 0o777)
    for name, size in SIZES.items():
        write(os.path.join(folder, name), page(size))
    ports = {name: free_port() for name in options.targets}
    for name, port in ports.items():
        programs[name] = start(name, folder, port, ports["nginx"])
        programs[name].wait_until(lambda port=port: answers(port))
    figures = {}
    for number in range(options.rounds):
        print(f"bench/web: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for size in SIZES:
            for name, program in programs.items():
                url = f"/{size}" if name.startswith("nginx") else f"http://127.0.0.1:{ports['nginx']}/{size}"
                before = processor_seconds([program])
                rate, count = ask(folder, ports[name], url, options)
                used = processor_seconds([program]) - before
                figures.setdefault((size, name), []).append((rate, 1000 * used / max(count, 1)))
    return figures


def table(folder, figures, options):
    others = [name for name in ("squid", "e2guardian") if name in options.targets]
    rows = [["page", "target", "requests/s", "CPU ms a request", *(f"requests/s of {name}" for name in others)]]
    for (size, name), rounds in figures.items():
        rates, costs = zip(*rounds)
        ratios = [median(rate / other for rate, (other, _) in zip(rates, figures[size, other])) for other in others]
        rows.append([size, name, spread(rates, 0), spread(costs, 3), *(f"×{ratio:.2f}" for ratio in ratios)])
    return "\n".join([*describe(folder), "", markdown(rows)])


def spread(values, digits):
    return f"{median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(prog="bench/web")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--targets", type=lambda text: ["nginx", *text.split(",")], default=TARGETS, help=", ".join(TARGETS[1:]))
    options = parser.parse_args()
    print_bench("web", bench(options))


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# Queries per second of the server's processor time: rbldnsd and Sluice with the same list of a million, half of the queries
# listed, and a server that only sends each packet back (examples/echo.rs: what the kernel's sockets cost).
#   bench/dnsbl/speed.sh [SECONDS [ROUNDS]]
# Senders: dnsperf with 1 (as by default), 8 and 100 sockets, and examples/flood.rs. The server has one core, the sender the other.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-3}; rounds=${2:-5}
sluice=${SLUICE:-target/release/sluice}
[ -n "${SLUICE:-}" ] || cargo build -q --release -p sluice
cargo build -q --release -p sluice-dnsbl --example flood --example echo
work=$(mktemp -d); chmod 755 "$work"; server=; trap '[ -z "$server" ] || kill $server 2> /dev/null; rm -rf "$work"' EXIT
port=5391
bench/dnsbl/lists.py 1000000 > "$work/list"
python3 - "$work" <<'PY'
import random, sys
random.seed(9)
listed = [line.strip() for line in open(sys.argv[1] + "/list") if line[0].isdigit()]
with open(sys.argv[1] + "/queries", "w") as out:
    for index in range(300000):
        address = random.choice(listed).split(".") if index % 2 else [str(random.getrandbits(8)) for _ in range(4)]
        print(".".join(reversed(address)) + ".bl.test", "TXT" if index % 10 == 0 else "A", file=out)
PY
clock() { python3 -c 'import sys; print(sum(int(open(f"/proc/{sys.argv[1]}/task/{task}/schedstat").read().split()[0]) for task in __import__("os").listdir(f"/proc/{sys.argv[1]}/task")) // 1000)' "$server"; }
send() {
    case $1 in
        flood) taskset -c 1 target/release/examples/flood 127.0.0.1:$port "$work/queries" "$seconds" | sed 's/.*, \([0-9]*\) answered.*/\1/' ;;
        dnsperf-*) taskset -c 1 dnsperf -s 127.0.0.1 -p $port -d "$work/queries" -c "${1#*-}" -q "$2" -l "$seconds" 2> /dev/null |
            awk '/Queries completed/ {print $3}' ;;
    esac
}
senders=("flood")
command -v dnsperf > /dev/null && senders+=("dnsperf-1 100" "dnsperf-8 400" "dnsperf-100 400")
for ((round = 1; round <= rounds; round++)); do
    for who in rbldnsd sluice echo; do
        case $who in
            rbldnsd) command=(/usr/sbin/rbldnsd -n -b "127.0.0.1/$port" -u nobody "bl.test:ip4set:$work/list") ;;
            sluice) command=("$sluice" dnsbl serve --listen "127.0.0.1:$port" --zone "bl.test:ip4set:$work/list") ;;
            echo) command=(target/release/examples/echo "127.0.0.1:$port") ;;
        esac
        taskset -c 0 "${command[@]}" > /dev/null 2>&1 & server=$!
        until dig +tries=1 +time=1 -p $port @127.0.0.1 2.0.0.127.bl.test A > /dev/null 2>&1; do sleep 0.05; done
        for sender in "${senders[@]}"; do
            before=$(clock)
            # shellcheck disable=SC2086
            answered=$(send $sender)
            echo "$round ${sender%% *} $who $answered $(($(clock) - before))"
        done
        kill $server; wait $server 2> /dev/null || true; server=
    done
done > "$work/figures"
python3 - "$work/figures" <<'PY'
import collections, statistics, sys
rates = collections.defaultdict(dict)
for line in open(sys.argv[1]):
    turn, sender, who, answered, micros = line.split()
    rates[sender][who, int(turn)] = int(answered) * 1e6 / max(1, int(micros))
print(f"{'sender':<12} {'rbldnsd/s':>10} {'sluice/s':>10} {'echo/s':>10}   {'sluice : rbldnsd':<22} echo : rbldnsd")
for sender, found in rates.items():
    turns = sorted({turn for _, turn in found})
    row = [statistics.median(found[who, turn] for turn in turns) for who in ("rbldnsd", "sluice", "echo")]
    def ratio(who):
        all = sorted(found[who, turn] / found["rbldnsd", turn] for turn in turns)
        return f"{statistics.median(all):.2f} ({all[0]:.2f} to {all[-1]:.2f})"
    print(f"{sender:<12} {row[0]:>10.0f} {row[1]:>10.0f} {row[2]:>10.0f}   {ratio('sluice'):<22} {ratio('echo')}")
PY

#!/usr/bin/env bash
# Queries per second of processor time of rbldnsd and of us, the same list of a million, half of the questions listed.
#   bench/dnsbl/speed.sh [SECONDS]
# The sender is examples/flood.rs; dnsperf's numbers are shown too where it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-6}
sluice=${SLUICE:-target/release/sluice}
[ -n "${SLUICE:-}" ] || cargo build -q --release -p sluice
cargo build -q --release -p sluice-dnsbl --example flood
work=$(mktemp -d); chmod 755 "$work"; trap 'rm -rf "$work"' EXIT
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
clock() { awk '{print $14 + $15}' "/proc/$server/stat"; }
for round in 1 2 3; do
    for who in rbldnsd ours; do
        case $who in
            rbldnsd) command=(/usr/sbin/rbldnsd -n -b "127.0.0.1/$port" -u nobody "bl.test:ip4set:$work/list") ;;
            ours) command=("$sluice" dnsbl serve --listen "127.0.0.1:$port" --zone "bl.test:ip4set:$work/list") ;;
        esac
        "${command[@]}" > /dev/null 2>&1 & server=$!
        until dig +tries=1 +time=1 -p $port @127.0.0.1 2.0.0.127.bl.test A > /dev/null 2>&1; do sleep 0.05; done
        for sender in flood dnsperf; do
            before=$(clock)
            case $sender in
                flood) answered=$(target/release/examples/flood 127.0.0.1:$port "$work/queries" "$seconds" | sed 's/.*, \([0-9]*\) answered.*/\1/') ;;
                dnsperf)
                    command -v dnsperf > /dev/null || continue
                    answered=$(dnsperf -s 127.0.0.1 -p $port -d "$work/queries" -c 8 -q 400 -l "$seconds" 2> /dev/null |
                        awk '/Queries completed/ {print $3}') ;;
            esac
            ticks=$(($(clock) - before))
            printf '%d %-8s %-8s %9d answered, %5d ms of processor time: %8d a second\n' \
                $round $sender $who "$answered" $((ticks * 10)) $((answered * 100 / (ticks > 0 ? ticks : 1)))
        done
        kill $server; wait $server 2> /dev/null || true
    done
done

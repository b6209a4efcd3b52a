#!/usr/bin/env bash
# Memory and load time of rbldnsd and of our tables for the same lists: one address (what the process takes by itself),
# 1 and 10 million random addresses. SLUICE=PATH names a built Sluice.
#   bench/dnsbl/memory.sh [LISTINGS...]
set -euo pipefail
cd "$(dirname "$0")/../.."
sluice=${SLUICE:-target/release/sluice}
[ -n "${SLUICE:-}" ] || cargo build -q --release -p sluice
work=$(mktemp -d); chmod 755 "$work"; trap 'rm -rf "$work"' EXIT
port=5390
for count in "${@:-1 1000000 10000000}"; do for count in $count; do
    bench/dnsbl/lists.py "$count" > "$work/list"
    for kind in ip4set ip4tset ip4trie; do
        for who in rbldnsd ours; do
            case $who in
                rbldnsd) command=(/usr/sbin/rbldnsd -n -b "127.0.0.1/$port" -u nobody "bl.test:$kind:$work/list") ;;
                ours) command=("$sluice" dnsbl serve --listen "127.0.0.1:$port" --zone "bl.test:$kind:$work/list") ;;
            esac
            began=$(date +%s%N)
            "${command[@]}" > /dev/null 2>&1 & server=$!
            until dig +tries=1 +time=1 -p $port @127.0.0.1 2.0.0.127.bl.test A > /dev/null 2>&1; do sleep 0.02; done
            loaded=$((($(date +%s%N) - began) / 1000000))
            memory=$(awk '/VmRSS|VmHWM/ {printf "%s %s kB  ", $1, $2}' "/proc/$server/status")
            printf '%9d %-8s %-8s %6d ms  %s\n' "$count" $kind $who $loaded "$memory"
            kill $server; wait $server 2> /dev/null || true
        done
    done
done; done

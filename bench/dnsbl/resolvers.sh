#!/usr/bin/env bash
# Which forms pass unbound, BIND and the PowerDNS Recursor of Debian, as installed and with rebinding protection. Each is given
# the zone bl.test as a stub or forward zone of our server; what it answers is compared with what we answer.
#   bench/dnsbl/resolvers.sh PATH/OF/sluice
set -euo pipefail
sluice=$(realpath "${1:?usage: resolvers.sh PATH/OF/sluice}")
work=$(mktemp -d); chmod 755 "$work"
pids=(); trap 'kill "${pids[@]}" 2> /dev/null || true; wait 2> /dev/null || true; rm -rf "$work"' EXIT
port=5410 ours=5400
{
    printf '$SOA 3600 ns.bl.test a.bl.test 5 1h 1h 1w 1h\n$NS 1h ns.bl.test\n127.0.0.2\n192.0.2.1\n192.0.2.200 :4:x\n'
    # Bitmaps that look like ::1, fd00::/8, fe80::/10 and 2001:db8::/32.
    printf '10.1.1.127\n'
    for host in 0 1 2 3 4 5 7 99; do printf '10.1.2.%d\n10.1.3.%d\n' $host $host; done | grep -v '10.1.3.7$'
    printf '10.1.3.6\n10.1.3.8\n10.1.4.2\n10.1.4.15\n10.1.4.20\n'
} > "$work/list"
"$sluice" dnsbl serve --aaaa --listen "127.0.0.1:$ours" --zone "bl.test:ip4set:$work/list" > /dev/null 2>&1 & pids+=($!)
ask() { dig +tries=1 +time=3 +noall +answer +comments -p "$1" @127.0.0.1 "$2" "$3" 2> /dev/null |
    sed -n 's/.*status: \([A-Z]*\).*/\1/p; s/^[^;].*IN\t[A-Z]*\t//p' | sort | tr '\n' ' '; }
look() {
    local name=$1 index
    for index in $(seq 100); do dig +tries=1 +time=1 -p $port @127.0.0.1 bl.test SOA > /dev/null 2>&1 && break; sleep 0.1; done
    printf '%-34s' "$name"
    for question in 2.0.0.127:A 1.2.0.192:A 1.2.0.192:TXT 9.9.9.9:A _pbl:TXT 2.0.192.p4:TXT 9.9.9.p4:TXT \
        0.1.1.10:AAAA 0.2.1.10:AAAA 0.3.1.10:AAAA 0.4.1.10:AAAA; do
        below=${question%:*} kind=${question#*:}
        [ "$(ask $port "$below.bl.test" "$kind")" = "$(ask $ours "$below.bl.test" "$kind")" ] && printf 'pass  ' || printf 'DROP  '
    done
    echo
    kill "${pids[-1]}"; wait "${pids[-1]}" 2> /dev/null || true; unset 'pids[-1]'; port=$((port + 1))
}
printf '%-34s%s\n' '' 'test  A     TXT   NX    _pbl  p4    p4-NX ::1   fd00  fe80  other'
for protection in '' 'private-address: 127.0.0.0/8
 private-address: ::1/128
 private-address: fd00::/8
 private-address: fe80::/10
 private-address: ::ffff:0:0/96' 'use-caps-for-id: yes'; do
    printf 'server:\n interface: 127.0.0.1@%d\n access-control: 127.0.0.0/8 allow\n do-not-query-localhost: no\n username: ""\n chroot: ""\n directory: "%s"\n pidfile: ""\n use-syslog: no\n module-config: "iterator"\n local-zone: "test." nodefault\n %s\nstub-zone:\n name: bl.test\n stub-addr: 127.0.0.1@%d\n' \
        $port "$work" "$protection" $ours > "$work/unbound.conf"
    unbound -d -c "$work/unbound.conf" > "$work/unbound.log" 2>&1 & pids+=($!)
    look "unbound ${protection%%:*}"
done
for protection in '' 'deny-answer-addresses { 127.0.0.0/8; ::1; fd00::/8; fe80::/10; ::ffff:0:0/96; };'; do
    printf 'options { directory "%s"; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; recursion yes; dnssec-validation no; pid-file none; session-keyfile none; %s };\nzone "bl.test" { type forward; forward only; forwarders { 127.0.0.1 port %d; }; };\ncontrols { };\n' \
        "$work" $port "$protection" $ours > "$work/named.conf"
    named -f -g -c "$work/named.conf" > "$work/named.log" 2>&1 & pids+=($!)
    look "BIND ${protection%% *}"
done
mkdir -p "$work/pdns"
pdns_recursor --config-dir="$work/pdns" --socket-dir="$work" --local-address=127.0.0.1 --local-port=$port --daemon=no \
    --forward-zones="bl.test=127.0.0.1:$ours" --dont-query= --dnssec=off > "$work/pdns.log" 2>&1 & pids+=($!)
look 'PowerDNS Recursor'

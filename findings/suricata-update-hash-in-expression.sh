#!/usr/bin/env bash
# suricata-update 1.3.3 (PyPI): a blank and # end a line of disable.conf, within an expression and within quotes too.
#
# The line `re:"anchor #top"` disables every rule that has `"anchor`, since what is read is `re:"anchor`: more rules are off than
# the line names, and no word is said. `[#]`, or a `#` behind another character than a blank, means what it says.
# Seen: with the first line both rules are disabled, with the second one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet suricata-update==1.3.3

mkdir rules
cat >rules/own.rules <<'RULES'
alert http any any -> any any (msg:"one"; content:"anchor #top"; sid:1000001; rev:1;)
alert http any any -> any any (msg:"two"; content:"anchor bottom"; sid:1000002; rev:1;)
RULES
tar czf own.tar.gz -C rules .

# enabled LINE: how many rules are left with this line in disable.conf.
enabled() {
    rm -rf data out && mkdir data out
    echo "$1" >disable.conf
    tools/bin/suricata-update --no-test --no-reload --url "file://$folder/own.tar.gz" -D data -o out \
        --suricata-version 7.0.5 --disable-conf disable.conf >log 2>&1 || { cat log; exit 1; }
    grep -c '^alert' out/suricata.rules || true
}

with_hash=$(enabled 're:"anchor #top"')
with_class=$(enabled 're:"anchor [#]top"')
echo "suricata-update 1.3.3: re:\"anchor #top\" leaves $with_hash rules of 2, re:\"anchor [#]top\" leaves $with_class"
[ "$with_hash" = 0 ] && [ "$with_class" = 1 ]

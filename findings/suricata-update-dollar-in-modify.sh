#!/usr/bin/env bash
# suricata-update 1.3.3 (PyPI): in modify.conf `\$` is the end of the text, and not a dollar: the backslash is taken away first.
#
# To replace $EXTERNAL_NET one writes "\\$EXTERNAL_NET" or "[$]EXTERNAL_NET". With "\$EXTERNAL_NET" the rule stays as it was, and no
# word is said.
# Seen: the three lines give the rule unchanged, the rule changed, the rule changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet suricata-update==1.3.3

mkdir rules
echo 'alert http $EXTERNAL_NET any -> any any (msg:"one"; content:"a"; sid:1000001; rev:1;)' >rules/own.rules
tar czf own.tar.gz -C rules .

# source LINE: where the rule is for, with this line in modify.conf.
source_of() {
    rm -rf data out && mkdir data out
    printf '%s\n' "$1" >modify.conf
    tools/bin/suricata-update --no-test --no-reload --url "file://$folder/own.tar.gz" -D data -o out \
        --suricata-version 7.0.5 --modify-conf modify.conf >log 2>&1 || { cat log; exit 1; }
    grep -o '^alert http [^ ]*' out/suricata.rules
}

one=$(source_of '1000001 "\$EXTERNAL_NET" "any"')
two=$(source_of '1000001 "\\$EXTERNAL_NET" "any"')
class=$(source_of '1000001 "[$]EXTERNAL_NET" "any"')
echo "suricata-update 1.3.3: \\\$ gives '$one', \\\\\$ gives '$two', [\$] gives '$class'"
[ "$one" = 'alert http $EXTERNAL_NET' ] && [ "$two" = 'alert http any' ] && [ "$class" = 'alert http any' ]

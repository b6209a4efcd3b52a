#!/usr/bin/env bash
# vcf 2.1.2 (npm): a parameter in quotes ends at its first colon or semicolon, and the rest of it becomes the value.
#
# A quoted parameter may hold both (RFC 6350 section 3.3: QSAFE-CHAR), and LABEL of an address is where they stand.
# Seen: ADR;LABEL="c/o: Doe":;;Street 1;;;; has the value ' Doe":;;Street 1;;;;' and the label '"c/o'.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund vcf@2.1.2 >/dev/null
cat >read.js <<'END'
const card = ['BEGIN:VCARD', 'VERSION:4.0', 'FN:Jane Doe', 'ADR;LABEL="c/o: Doe":;;Street 1;;;;', 'END:VCARD', ''].join('\r\n')
const address = require('vcf').parse(card)[0].get('adr')
console.log(JSON.stringify([address.label, address.valueOf()]))
END
seen=$(node read.js)
echo "vcf 2.1.2: label and value: $seen"
[ "$seen" = '["\"c/o"," Doe\":;;Street 1;;;;"]' ]

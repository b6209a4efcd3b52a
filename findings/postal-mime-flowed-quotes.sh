#!/usr/bin/env bash
# postal-mime 4.0.0 (npm): quoted lines of format=flowed are joined with the quote mark of the second one in the middle.
#
# RFC 3676 section 4.2: the marks of quotation are taken from a line before it is joined to the one above, which has as many.
# Seen: `> one ` and `> two` become `> one > two`, where a reader would see `> one two`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund postal-mime@4.0.0 >/dev/null
cat >read.mjs <<'END'
import PostalMime from 'postal-mime'
const mail = ['From: jane@example.org', 'Content-Type: text/plain; format=flowed', '', '> one ', '> two', ''].join('\r\n')
console.log((await PostalMime.parse(mail)).text.trim())
END
seen=$(node read.mjs)
echo "postal-mime 4.0.0: $seen"
[ "$seen" = "> one > two" ]

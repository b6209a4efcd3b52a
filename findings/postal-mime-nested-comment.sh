#!/usr/bin/env bash
# postal-mime 4.0.0 (npm): of an author whose name stands in a comment with a comment in it, the name is what follows the inner one.
#
# Comments nest (RFC 5322 section 3.2.2), and a name in a comment is the older form of a display name.
# Seen: `jane@example.org (Jane (home) Doe)` has the name `Doe)`; without the inner comment it is `Jane Doe`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund postal-mime@4.0.0 >/dev/null
cat >read.mjs <<'END'
import PostalMime from 'postal-mime'
const name = async from => (await PostalMime.parse(`From: ${from}\r\n\r\ntext\r\n`)).from.name
console.log(`${await name('jane@example.org (Jane Doe)')}, ${await name('jane@example.org (Jane (home) Doe)')}`)
END
seen=$(node read.mjs)
echo "postal-mime 4.0.0: names: $seen"
[ "$seen" = "Jane Doe, Doe)" ]

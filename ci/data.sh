#!/usr/bin/env bash
# Unpacks the public test material, where it lies beside the checkout, and prints the folder. Tests that want it look
# below SLUICE_DATA; without it they say that they are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

packs=../shared/data
data=$PWD/target/data
[ -d "$packs" ] || exit 0
command -v zstd >/dev/null || exit 0
mkdir -p "$data"
for pack in "$packs"/*.tar.zst; do
    name=$(basename "$pack" .tar.zst)
    [ -e "$data/$name" ] || tar --zstd -xf "$pack" -C "$data"
done
echo "$data"

#!/usr/bin/env bash
# Runs fuzz targets one after the other: `fuzz/run.sh SECONDS [NAME...]`, all of them without a name.
# What is found anew goes to fuzz/target/found, so that the seeds in fuzz/corpus stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: fuzz/run.sh SECONDS [NAME...]}
shift
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z0-9]*_[a-z0-9_]*\)"/\1/p' fuzz/Cargo.toml)

for name in "$@"; do
    found=fuzz/target/found/$name
    mkdir -p "$found"
    echo "== $name"
    cargo fuzz run -s none "$name" "$found" "fuzz/corpus/$name" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done

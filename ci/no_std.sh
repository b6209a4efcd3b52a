#!/usr/bin/env bash
# Whether the cores that the bare-machine host runs stay `no_std`: none of them may name std outside of tests.
set -euo pipefail
cd "$(dirname "$0")/.."

for crate in stream mime proto; do
    grep -q '^#!\[no_std\]' "crates/$crate/src/lib.rs" || { echo "$crate is not no_std" >&2; exit 1; }
done

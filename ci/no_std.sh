#!/usr/bin/env bash
# Whether the cores that the bare-machine host runs do without std, and all that they depend on: a program without std
# is linked with them, for the host, since no bare target is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

for crate in stream text flow mime proto store digest sieve index webmail jmap keep cluster; do
    grep -qE '^#!\[(no_std|cfg_attr\(not\(test\), no_std\))\]' "crates/$crate/src/lib.rs" ||
        { echo "$crate is not no_std" >&2; exit 1; }
done

# The versions of the workspace; cargo drops from the copy what this program does not use.
cp Cargo.lock ci/no_std/Cargo.lock
target=${CARGO_TARGET_DIR:-target}/no-std
cargo build -q --release --manifest-path ci/no_std/Cargo.toml --target-dir "$target"
"$target/release/sluice-no-std" || { echo "the program without std does not run" >&2; exit 1; }

#!/usr/bin/env bash
# The gate: everything that a commit has to pass. `--quick`: what takes less than three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=false
[ "${1:-}" = --quick ] && quick=true

SLUICE_DATA=${SLUICE_DATA:-$(ci/data.sh)}
[ -z "$SLUICE_DATA" ] || export SLUICE_DATA

# Unpacked by ci/setup.sh.
exim=$PWD/target/peers/exim/usr/sbin/exim4
[ ! -x "$exim" ] || export SLUICE_EXIM=${SLUICE_EXIM:-$exim}

step() { printf '\n== %s\n' "$*"; }

step format
cargo fmt --all --check

step "floor order and tidiness"
ci/tidy.sh

step clippy
cargo clippy --workspace --all-targets --locked -q -- -D warnings

if $quick; then
    step "tests (libraries and program)"
    cargo test --workspace --lib --bins --locked -q
    exit 0
fi

step docs
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked -q

step "fuzz targets"
cargo check --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/fuzz" -q

step "no_std cores"
ci/no_std.sh

step "tests, corpus replay among them"
cargo test --workspace --locked
step "tests of signatures, every database from a file"
cargo test -p sluice-scan --features through-file --locked

step "pages that are made from the sources"
ci/findings.sh
packaging/pages.sh --check target/debug/sluice

step "licences, bans, sources"
cargo deny --log-level error check bans licenses sources

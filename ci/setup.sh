#!/usr/bin/env bash
# Installs what the tests use and the machine lacks: real mail peers from Debian, and cargo-deny.
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing+=("$2"); }
need cc gcc
need swaks swaks
need smtp-source postfix
need clamscan clamav
need zip zip
need xz xz-utils
need zstd zstd
need strace strace
need python3 python3
need ip iproute2

if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}"
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo"
    $as_root apt-get update -q
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny

#!/usr/bin/env bash
# Tests as they run on AArch64, under emulation on another machine: `ci/arm64.sh`, or `ci/arm64.sh test -p sluice-scan`.
#
# Needed are the standard library for it (`rustup target add aarch64-unknown-linux-gnu`; beside Debian's own rustc
# libstd-rust-dev:arm64) and, of Debian, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user. What is slow there
# says nothing of a real processor.
#
# Tests that compare with another program (clamscan, sigtool, yara, osslsigncode) fail there instead of being skipped if it is
# not installed: under qemu a program that is not there seems to start, and ends with status 127.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

# Pages have 4, 16 or 64 KiB there; the allocator is made for the largest, and works with all.
export JEMALLOC_SYS_WITH_LG_PAGE=16

[ $# -gt 0 ] || set -- test -p sluice-pattern -p sluice-digest
command=$1
shift
exec cargo "$command" --locked --target aarch64-unknown-linux-gnu "$@"

#!/usr/bin/env bash
# The image without an operating system: built, looked through for what an operating system would have to bring, and used under QEMU.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}/bare")
unpacked=$target/x86_64-unknown-linux-gnu/release/sluice-bare
image=$target/sluice-bare
bytes_max=$((1 << 20))

(cd bare && cargo fmt --check && cargo build --release --locked -q --target-dir "$target")
! cargo tree --manifest-path bare/Cargo.toml --locked -e normal --prefix none | grep -E '^(libc|getrandom|tokio|mio|rustix) ' ||
    { echo "the image depends on an operating system" >&2; exit 1; }
! readelf -lW "$unpacked" | grep -E 'INTERP|DYNAMIC| RWE ' ||
    { echo "the image wants a loader, or pages that are written and run" >&2; exit 1; }
bare/pack.py "$unpacked" "$image"
[ "$(stat -c %s "$image")" -le "$bytes_max" ] || { echo "the image has more than $bytes_max bytes" >&2; exit 1; }
python3 bare/test.py "$image" --kills 2 --requests 1000
python3 bare/fuzz.py "$image" --seconds 8

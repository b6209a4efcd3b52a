#!/usr/bin/env bash
# Runs fuzz targets, one after the other.
#
#   fuzz/run.sh SECONDS [NAME...]      so long each; all of them without a name
#   fuzz/run.sh --hours N [NAME...]    they share so many hours (a fraction will do)
#   fuzz/run.sh --changed              those whose crate changed against origin/main, or else HEAD~, a minute each
#                                      (FUZZ_SECONDS: another time)
#
# With AddressSanitizer where a nightly toolchain is installed, which it needs, and without it elsewhere; FUZZ_SANITIZER=none
# or =address decides. A case over ten seconds, over 2 GiB in all or 512 MiB at once is a failure like a crash. The next
# targets run all the same; at the end stands how often each ran, and the script fails if one did. FUZZ_TOTALS names a file
# that gets those lines, too. What is found anew goes to fuzz/target/found, so that the seeds in fuzz/corpus stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | head -n -1 >&2; exit 2; }
targets() { sed -n 's/^name = "\([a-z0-9]*_[a-z0-9_]*\)"/\1/p' fuzz/Cargo.toml; }

# The crates that changed, and all that stand on the vocabulary of stages where that did.
changed() {
    local base crates
    base=$(git merge-base HEAD origin/main 2>/dev/null || true)
    # On the main branch itself: the last commit.
    [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse HEAD~)
    crates=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } |
        sed -n 's|^crates/\([a-z]*\)/src/.*|\1|p; s|^fuzz/fuzz_targets/\([a-z]*\)_.*|\1|p' | sort -u)
    case " $(echo $crates) " in *" stream "*) crates="mime unpack scan" ;; esac
    for crate in $crates; do targets | grep "^${crate}_" || true; done
}

case ${1:-} in
    --hours)
        hours=${2:?$(usage)}
        shift 2
        [ $# -gt 0 ] || set -- $(targets)
        seconds=$(awk -v hours="$hours" -v count=$# 'BEGIN { n = int(hours * 3600 / count); print n < 1 ? 1 : n }')
        ;;
    --changed)
        seconds=${FUZZ_SECONDS:-60}
        set -- $(changed)
        [ $# -gt 0 ] || { echo "no crate with fuzz targets has changed"; exit 0; }
        ;;
    [0-9]*)
        seconds=$1
        shift
        [ $# -gt 0 ] || set -- $(targets)
        ;;
    *) usage ;;
esac

command -v cargo-fuzz > /dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz --locked" >&2; exit 3; }

toolchain=
sanitizer=${FUZZ_SANITIZER:-}
nightly=$(rustup toolchain list 2>/dev/null | sed -n 's/^\(nightly[^ ]*\).*/\1/p' | head -1)
[ -n "$sanitizer" ] || { [ -n "$nightly" ] && sanitizer=address || sanitizer=none; }
if [ "$sanitizer" != none ]; then
    [ -n "$nightly" ] || { echo "a sanitizer needs a nightly toolchain" >&2; exit 3; }
    toolchain=+$nightly
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=
total=0
note() { echo "$1"; [ -z "${FUZZ_TOTALS:-}" ] || echo "$1" >> "$FUZZ_TOTALS"; }

for name in "$@"; do
    found=fuzz/target/found/$name
    mkdir -p "$found"
    echo "== $name, $seconds s, sanitizer: $sanitizer"
    status=0
    cargo $toolchain fuzz run -s "$sanitizer" "$name" "$found" "fuzz/corpus/$name" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 \
        -print_final_stats=1 > "$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
    # Where a target fails the statistics are missing: the last line of its progress tells.
    [ -n "$runs" ] || runs=$(sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -1)
    total=$((total + ${runs:-0}))
    if [ $status -eq 0 ]; then
        note "$name $seconds s ${runs:-0} executions"
    else
        tail -40 "$log" >&2
        failed="$failed $name"
        note "$name FAILED after ${runs:-0} executions"
    fi
done

note "$# targets, $total executions, sanitizer: $sanitizer${failed:+, failed:$failed}"
[ -z "$failed" ]

#!/usr/bin/env bash
# Reads the sources: each crate imports only from the floors below it, each file says what it is for, and `unsafe`
# stays where the house allows it.
set -euo pipefail
cd "$(dirname "$0")/.."

floor() {
    case $1 in
        stream) echo 0 ;;
        pattern | text | mime | unpack | proto | store) echo 1 ;;
        scan | rules) echo 2 ;;
        inspect | webmail) echo 3 ;;
        sluice | bare) echo 4 ;;
        *) echo "no floor for crate $1" >&2; exit 1 ;;
    esac
}

status=0
fail() { echo "tidy: $*" >&2; status=1; }

for manifest in crates/*/Cargo.toml; do
    crate=$(basename "$(dirname "$manifest")")
    for used in $(sed -n '/^\[dependencies\]/,/^\[/s|.*path = "\.\./\([a-z]*\)".*|\1|p' "$manifest"); do
        [ "$(floor "$used")" -lt "$(floor "$crate")" ] || fail "$crate imports $used, which is not below it"
    done
done

while read -r file; do
    head -1 "$file" | grep -q '^//!' || fail "$file does not say what it is for"
done < <(git ls-files 'crates/*/src/*.rs')

for crate in stream mime unpack scan proto inspect; do
    grep -q 'forbid(unsafe_code)' "crates/$crate/src/lib.rs" || fail "$crate does not forbid unsafe code"
done

exit $status

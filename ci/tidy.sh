#!/usr/bin/env bash
# Reads the sources: each crate imports only from the floors below it, each file says what it is for, `unsafe` stays where
# the house allows it, what is not a host does without files, sockets, clocks and threads, and the pages link to each other.
set -euo pipefail
cd "$(dirname "$0")/.."

floor() {
    case $1 in
        stream | text) echo 0 ;;
        pattern | digest | mime | unpack | proto | store | flow | index) echo 1 ;;
        scan | rules | learn | dnsbl | auth | sieve | webmail | jmap | cluster) echo 2 ;;
        inspect | keep) echo 3 ;;
        edge | jail | avfs | mailbox | ledger | lookup) echo 4 ;;
        # The binary, which puts the hosts together.
        sluice) echo 5 ;;
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

# What parses content is linked into no door: a door imports what crosses the wall, and its protocols.
for used in $(sed -n 's|.*path = "\.\./\([a-z]*\)".*|\1|p' crates/edge/Cargo.toml); do
    case $used in
        stream | flow | proto) ;;
        *) fail "edge imports $used, and a door parses no content" ;;
    esac
done

# The map names each crate that there is, and no other.
mapped=$(awk '/^```/ { if (inside) exit; inside = 1; next } inside { print $1 ~ /^[0-4]$/ ? $3 : $1 }' ARCHITECTURE.md | sort)
crates=$(for crate in crates/*/; do basename "$crate"; done | sort)
[ "$mapped" = "$crates" ] || fail "ARCHITECTURE.md maps" $mapped "and there are" $crates

# Links between pages lead somewhere, and every page is in the index.
python3 ci/links.py || status=1

# The modules of a crate import each other in no ring.
python3 ci/rings.py $crates || status=1

while read -r file; do
    head -1 "$file" | grep -q '^//!' || fail "$file does not say what it is for"
done < <(git ls-files 'crates/*/src/*.rs')

# A host hands in bytes, the time, and what is kept from call to call; tests may do as they like. The types of addresses are
# in `core::net`.
for crate in crates/*; do
    [ "$(floor "$(basename "$crate")")" -lt 4 ] || continue
    while read -r file; do
        awk '/^#\[cfg\(test\)\]$/ { test = 1; next }
             test && /^mod .*\{$/ { exit }
             { test = 0 }
             /^ *\/\// { next }
             /thread_local!|std::(fs|net|time|thread)([^a-z_]|$)|std::\{[^}]*(fs|net|time|thread)[^a-z_]/ { print FILENAME ":" FNR ": " $0; found = 1 }
             END { exit found }' "$file" >&2 || fail "$file has to do without a host"
    done < <(git ls-files "$crate/src/*.rs")
done

for crate in stream text flow mime unpack scan rules learn auth sieve proto store cluster index dnsbl inspect webmail jmap keep edge avfs mailbox ledger lookup; do
    grep -q 'forbid(unsafe_code)' "crates/$crate/src/lib.rs" || fail "$crate does not forbid unsafe code"
done

# Where lengths from the wire are framed a sum cannot wrap; docs/operate/limits.md speaks of the others.
for module in spool window; do
    grep -q 'deny(clippy::arithmetic_side_effects)' "crates/stream/src/$module.rs" ||
        fail "crates/stream/src/$module.rs does not deny arithmetic that wraps"
done
for module in \
    archive/alz archive/appledouble archive/ar archive/arj archive/cab archive/cpio archive/lha archive/lha/header \
    archive/macbinary archive/rar/v4 archive/rar/v5 archive/rpm archive/sevenz/header archive/tar/header \
    archive/tar/listing archive/tar/pax archive/tar/sparse archive/xar archive/xar/table archive/zip/descriptor \
    archive/zip/directory archive/zip/place archive/zip/record archive/zip/tail disk/dmg/tables \
    document/chm/directory document/ole2/crypt document/ole2/directory document/onenote frame/archive \
    frame/compressed frame/reader program/installshield program/installshield/cabinet program/nsis \
    program/nsis/header program/sis stream/xz/index; do
    grep -q 'deny(clippy::arithmetic_side_effects)' "crates/unpack/src/$module.rs" ||
        fail "crates/unpack/src/$module.rs does not deny arithmetic that wraps"
done
for crate in stream text flow mime unpack scan rules learn auth sieve proto store cluster index dnsbl inspect webmail jmap keep mailbox; do
    grep -A1 "^\[profile.release.package.sluice-$crate\]" Cargo.toml | grep -q 'overflow-checks = true' ||
        fail "$crate is built without overflow checks"
done

exit $status

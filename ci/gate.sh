#!/usr/bin/env bash
# The gate: everything that a commit has to pass. All steps run, whatever fails, and a table at the end says which did
# and how long each took.
#
#   ci/gate.sh            the whole gate
#   ci/gate.sh --quick    what takes less than three minutes, before each commit
#   ci/gate.sh --fuzz     the whole gate, then a minute of fuzzing for each target whose crate has changed
set -uo pipefail
cd "$(dirname "$0")/.."

mode=${1:---whole}
case $mode in
    --whole | --quick | --fuzz) ;;
    *) echo "usage: ci/gate.sh [--quick | --fuzz]" >&2; exit 2 ;;
esac

SLUICE_DATA=${SLUICE_DATA:-$(ci/data.sh)}
[ -z "$SLUICE_DATA" ] || export SLUICE_DATA

# Unpacked by ci/setup.sh, but for versitygw: GOBIN=target/peers go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
peers=$PWD/target/peers
[ ! -x "$peers/exim/usr/sbin/exim4" ] || export SLUICE_EXIM=${SLUICE_EXIM:-$peers/exim/usr/sbin/exim4}
[ ! -x "$peers/opensmtpd/usr/sbin/smtpd" ] || export SLUICE_OPENSMTPD=${SLUICE_OPENSMTPD:-$peers/opensmtpd/usr/sbin/smtpd}
[ ! -x "$peers/versitygw" ] || export SLUICE_VERSITYGW=${SLUICE_VERSITYGW:-$peers/versitygw}
[ ! -d "$peers/opendkim/usr" ] || export SLUICE_OPENDKIM=${SLUICE_OPENDKIM:-$peers/opendkim}

# What each step came to: a file, since some run beside the others.
table=${CARGO_TARGET_DIR:-target}/gate.table
mkdir -p "${table%/*}"
: >"$table"
trap 'trap - INT TERM; kill 0' INT TERM

# step NAME COMMAND...
step() {
    local name=$1 began=$SECONDS outcome=ok
    shift
    printf '\n== %s\n' "$name"
    "$@" || outcome=FAILED
    printf '%-48s %5d s  %s\n' "$name" $((SECONDS - began)) "$outcome" >>"$table"
}

conclude() {
    printf '\n== gate: %d s\n' "$SECONDS"
    cat "$table"
    ! grep -q 'FAILED$' "$table"
    exit
}

clippy() { cargo clippy --workspace --all-targets --locked -q -- -D warnings; }
docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked -q; }
fuzz_targets() { cargo check --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" -q; }

# All that tests print is kept in a file, since it says what they skipped; what failed is shown.
printed=${CARGO_TARGET_DIR:-target}/tests.log
# What is compiled, each test program with what it came to, and how many tests have passed by then. A program that takes long says
# how far it is: on a terminal in one line, in a pipe now and then.
progress() {
    local terminal=0
    [ ! -t 1 ] || terminal=1
    awk -v terminal="$terminal" '
        function clear() { if (terminal && open) { printf "\r\033[K"; open = 0 } }
        /^ +Compiling / { crates++; if (terminal) { printf "\r\033[K%d crates compiled", crates; open = 1 } else if (crates % 50 == 0) print crates " crates compiled"; fflush() }
        /^ +Running / { clear(); program = $0; sub(/^ +Running (unittests )?/, "", program); sub(/ \(.*\/deps\//, " (", program); print "running " program; fflush(); count = 0 }
        /^test .* (ok|FAILED|ignored)$/ { count++; if ($NF == "ok") passed++; if ($NF == "FAILED") { clear(); print; fflush() } }
        /^test .* ok$/ && (terminal || count % 100 == 0) { if (terminal) { printf "\r\033[K%d tests passed", passed; open = 1 } else print "  " passed " tests passed"; fflush() }
        /^test result/ { clear(); print "  " $0; fflush() }
        /^error/ { clear(); print; fflush() }'
}

# Every database that the tests build goes through its file form. No documentation has examples that run. Conversations wait more
# than they compute, so there are two at a time for each core.
tests() {
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
    cargo test --workspace --lib --bins --tests --features sluice-scan/through-file --locked --no-fail-fast -- --show-output 2>&1 | tee "$printed" |
        progress
    local outcome=${PIPESTATUS[0]}
    [ "$outcome" = 0 ] || sed -n '/^failures:$/,/^test result/p' "$printed"
    return "$outcome"
}

# Tests pass where a peer is missing ("skipped: ... not installed"). With SLUICE_REQUIRE_PEERS, which `make test` sets, that is a
# failure: ci/setup.sh installs them. A test that skips something that Debian does not package uses other words. Public corpora
# are not in the repository ("no pack: NAME"): the tests over mails read corpus/ everywhere, and one line says what was not there.
skips() {
    local log=${1:-$printed} packs
    sed -n 's/^skipped: //p' "$log" | sort | uniq -c
    packs=$(sed -n 's|^no pack: ||p' "$log" | sort -u | paste -sd, | sed 's/,/, /g')
    [ -z "$packs" ] || echo "corpus/ alone, without the public corpora (SLUICE_DATA): $packs"
    [ -z "${SLUICE_REQUIRE_PEERS:-}" ] || ! grep -q '^skipped: .*not installed' "$log"
}

# A log without corpora passes, one without a peer does not; and no test calls a corpus a peer, or fails without one.
skips_are_told_apart() {
    local log
    log=$(mktemp)
    printf '%s\n' 'no pack: mail-mime' 'no pack: av-clamav' 'skipped: no network namespaces for us' >"$log"
    (SLUICE_REQUIRE_PEERS=1 skips "$log") | grep -q 'SLUICE_DATA): av-clamav, mail-mime$' || return 1
    (SLUICE_REQUIRE_PEERS=1 skips "$log") >/dev/null || return 1
    echo 'skipped: exim4 is not installed, or we are not root' >>"$log"
    ! (SLUICE_REQUIRE_PEERS=1 skips "$log") >/dev/null || return 1
    (SLUICE_REQUIRE_PEERS='' skips "$log") >/dev/null || return 1
    rm "$log"
    ! git grep -nE '"(skipped: .*(SLUICE_DATA|no packs)|SLUICE_DATA is not set)' -- crates
}

# Beside the tests once they are compiled, for these wait more than they compute, and after their compilation, whose folder is shared.
beside() {
    renice -n 19 "$BASHPID" >/dev/null
    until grep -qE '^(error|warning: build failed| +Running )' "$printed"; do sleep 1; done
    step clippy clippy
    step documentation docs
    step "fuzz targets" fuzz_targets
}

step format cargo fmt --all --check
step "floor order and tidiness" ci/tidy.sh
step "skips are told apart" skips_are_told_apart

if [ "$mode" = --quick ]; then
    step clippy clippy
    step "tests (libraries and program)" cargo test --workspace --lib --bins --locked --no-fail-fast -q
    conclude
fi

: >"$printed"
beside >"$table.beside" 2>&1 &
step "tests, corpus replay among them" tests
step "nothing was skipped" skips
step "the bare machine" ci/bare.sh
step "no_std cores" ci/no_std.sh
wait
cat "$table.beside"
step "findings are described" ci/findings.sh
step "pages that are made from the sources" packaging/pages.sh --check "${CARGO_TARGET_DIR:-target}/debug/sluice"
step "licences and sources" ci/licences.py . bare
[ "$mode" != --fuzz ] || step "fuzzing" fuzz/run.sh --changed
conclude

#!/usr/bin/env bash
# Writes the man pages and the completions, as the command line and docs/operate/configuration.md describe themselves, into packaging/man and
# packaging/completions, and the list of all keys: `packaging/pages.sh PATH/OF/sluice`. With `--check` before it: whether they are up to date.
set -euo pipefail
cd "$(dirname "$0")"

check=false
if [ "${1:-}" = --check ]; then
    check=true
    shift
fi
sluice=$(cd "$OLDPWD" && realpath "${1:?usage: packaging/pages.sh [--check] PATH/OF/sluice}")

keys=../crates/sluice/src/config/keys.tsv
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/completions"
"$sluice" man "$fresh/man"
./page5.py ../docs >"$fresh/man/sluice.toml.5"
./keys.py ../docs >"$fresh/keys.tsv"
"$sluice" completions bash >"$fresh/completions/sluice"
"$sluice" completions zsh >"$fresh/completions/_sluice"
"$sluice" completions fish >"$fresh/completions/sluice.fish"

if $check; then
    diff -r "$fresh/man" man && diff -r "$fresh/completions" completions && diff "$fresh/keys.tsv" "$keys" && exit 0
    echo "out of date: run packaging/pages.sh $sluice" >&2
    exit 1
fi
rm -rf man completions
mv "$fresh/man" "$fresh/completions" .
mv "$fresh/keys.tsv" "$keys"

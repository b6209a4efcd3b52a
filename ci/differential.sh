#!/usr/bin/env bash
# Differential tests of a night: mails made by a grammar of oddities, read by Sluice and by other parsers.
#   ci/differential.sh [--mails N] [--seed FIRST] [--node FOLDER]
# FOLDER is one in which `npm install mailparser postal-mime` was run. Without --seed the numbers begin at the day's.
set -euo pipefail
cd "$(dirname "$0")/.."

mails=100000
seed=$(($(date +%s) / 86400 * 1000000))
while [ $# -gt 0 ]; do
    case $1 in
        --mails) mails=$2 ;;
        --seed) seed=$2 ;;
        --node) NODE_MODULES=$(realpath "$2"); export NODE_MODULES ;;
        *) echo "usage: ci/differential.sh [--mails N] [--seed FIRST] [--node FOLDER]" >&2; exit 2 ;;
    esac
    shift 2
done

SLUICE_DIFFERENTIAL_MAILS=$mails SLUICE_DIFFERENTIAL_SEED=$seed \
    cargo test -p sluice-inspect --test all differential:: --locked -- --nocapture
